// Asks behind CUDA streams of the program, and streams behind replies, on the fake driver.
#include <signal.h>
#include <unistd.h>
#include <gyre/gyre.hpp>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/device_program.hpp"
#include "support/engine_processes.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

using Pending = StreamFuture<messages::VectorAddResponse>;

// A program with a context and a stream, and a runtime with a buffer that both use.
class Streams {
 public:
  explicit Streams(Isolation isolation, std::chrono::milliseconds timeout = std::chrono::minutes(1))
      : program(isolation), stream(program.fake.make_stream_for_program()) {
    program.fake.make_context_for_program();
    program.options.timeout = timeout;
    runtime.emplace(program.launch());
    buffer.emplace(runtime->allocate<float>(MemoryKind::device, 100));
    elements = buffer->export_memory();
    std::fill_n(elements.get(), 100, 1.0f);
  }
  auto ask() {
    return runtime->client().ask<VectorAddRequest>(Address<actors::VectorAdd>{},
                                                   adding(*buffer, *buffer, *buffer));
  }
  // What the buffer's first element was when the stream had its turn; empty before.
  void note_in_stream() {
    program.fake.give_work(
        stream, [this] { noted = first_element(); }, true);
  }
  float first_element() const {
    Memory::fence();  // a stream reads device memory by CUDA's calls
    return elements.get()[0];
  }
  bool stream_went_on() { return program.fake.stream_is_done(stream); }
  // Nothing is left, but for one page of words.
  void check_end() {
    elements.reset();
    buffer.reset();
    CHECK(exports_are_released());
    runtime->terminate();
    CHECK(runtime->ledger().empty());
    runtime.reset();
    FakeDriver::Live live = program.fake.live();
    CHECK(live.allocations <= 1);
    CHECK(live.bytes <= 4096);
    live.allocations = live.bytes = 0;
    live.retains -= 1;
    CHECK(live.text() == FakeDriver::Live{}.text());
    CHECK(program.fake.misuse() == "");
    if (program.processes) CHECK(program.processes->reports() == "");
  }

  Program program;
  CUstream stream;
  std::optional<Runtime> runtime;
  std::optional<Buffer<float>> buffer;
  std::shared_ptr<float> elements;
  std::optional<float> noted;
};

}  // namespace

TEST_CASE("an ask after a stream sees what the stream was given before, and waits for no later work") {
  if (without_nvrtc()) return;
  Streams streams(GENERATE(Isolation::in_process, Isolation::process));
  FakeDriver& fake = streams.program.fake;
  fake.give_work(streams.stream, [&] { streams.elements.get()[0] = 21; });
  std::atomic<bool> later{false}, finished{false};
  std::thread asker([&] {
    streams.runtime->client().wait_for_stream(streams.stream);
    CHECK(finished);
    CHECK(streams.ask().get());
  });
  REQUIRE(within_a_minute([&] { return fake.recorded_events() == 1; }));
  fake.give_work(streams.stream, [&] { later = true; });  // not finished meanwhile
  finished = true;
  fake.finish_work(streams.stream);
  asker.join();
  CHECK(streams.first_element() == 42);
  CHECK_FALSE(later);
  fake.finish_work(streams.stream);  // the end of an export waits for it
  streams.check_end();
}

TEST_CASE("a stream without work is not waited for, whichever it is") {
  if (without_nvrtc()) return;
  Streams streams(Isolation::process);
  for (void* const stream : {static_cast<void*>(streams.stream), static_cast<void*>(nullptr),
                             static_cast<void*>(CU_STREAM_LEGACY)}) {
    streams.runtime->client().wait_for_stream(stream, std::chrono::nanoseconds(0));
  }
  CHECK(streams.program.fake.recorded_events() == 0);
  streams.check_end();
}

TEST_CASE("a stream that failed, does not end, or is none is a named error") {
  if (without_nvrtc()) return;
  Streams streams(GENERATE(Isolation::in_process, Isolation::process));
  FakeDriver& fake = streams.program.fake;
  const auto waiting = [&](void* stream) {
    return refusal([&] { streams.runtime->client().wait_for_stream(stream, std::chrono::milliseconds(1)); });
  };
  void* const none = reinterpret_cast<void*>(0x77);
  CHECK_THAT(waiting(none),
             containing("waiting for the work of stream 0x77: CUDA_ERROR_INVALID_HANDLE (400)"));
  fake.give_work(streams.stream, [] {});
  CHECK_THAT(waiting(streams.stream), containing("it is not done after 1 ms"));
  CHECK(status_of([&] {
          streams.runtime->client().wait_for_stream(streams.stream, std::chrono::milliseconds(0));
        }) == Status::timed_out);
  fake.fail_stream(streams.stream, CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_THAT(waiting(streams.stream), containing("CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
  {
    auto future = streams.ask();
    fake.hold(true);
    auto held = streams.ask();
    if (streams.program.options.isolation == Isolation::in_process) {
      CHECK_THAT(refusal([&] { (void)std::move(held).wait_on(none); }),
                 containing("making stream 0x77 wait for a reply: CUDA_ERROR_INVALID_HANDLE (400)"));
    }
    fake.hold(false);
    CHECK(future.get());
    CHECK(held.get());  // it is as it was
  }
  streams.check_end();
}

TEST_CASE("a program without a CUDA context, and the CPU engine, order no streams") {
  Runtime cpu = Runtime::launch(builtin_actors(), {.engine = EngineKind::cpu});
  CHECK_THROWS_WITH(cpu.client().wait_for_stream(nullptr), containing("the workers use no CUDA device"));
  if (without_nvrtc()) return;
  Program program(Isolation::process);
  Runtime runtime = program.launch();
  CHECK_THROWS_WITH(runtime.client().wait_for_stream(nullptr),
                    containing("waiting for the work of stream 0x0: this thread has no CUDA context"));
  CHECK(program.fake.live().retains == 0);
  runtime.terminate();
}

TEST_CASE("a stream that waits for a reply finds what the handler wrote") {
  if (without_nvrtc()) return;
  const auto isolation = GENERATE(Isolation::in_process, Isolation::process);
  Streams streams(isolation);
  streams.program.fake.hold(isolation == Isolation::in_process);
  {
    Pending pending = streams.ask().wait_on(streams.stream);
    streams.note_in_stream();
    if (isolation == Isolation::in_process) {
      CHECK_FALSE(streams.stream_went_on());
      CHECK_FALSE(pending.ready());
      CHECK_FALSE(pending.wait_for(std::chrono::milliseconds(1)));
    }
    streams.program.fake.hold(false);
    CHECK(within_a_minute([&] { return streams.stream_went_on(); }));
    CHECK(streams.noted == 2);
    CHECK(pending.get());
    CHECK(pending.get().error().status == Status::terminated);  // it is empty
    // The outcome is there: nothing to wait for.
    auto done = streams.ask();
    done.wait();
    CHECK(std::move(done).wait_on(streams.stream).get());
  }
  streams.check_end();
}

TEST_CASE("a program may capture streams while it launches, asks, copies and ends") {
  if (without_nvrtc()) return;
  Program program(GENERATE(Isolation::in_process, Isolation::process));
  FakeDriver& fake = program.fake;
  fake.make_context_for_program();
  const CUstream stream = fake.make_stream_for_program();
  fake.capture(true);
  {
    Runtime runtime = program.launch();
    Buffer<float> buffer = runtime.allocate<float>(MemoryKind::device, 100);
    buffer.write(std::vector<float>(100, 1.0f));
    const std::shared_ptr<float> exported = buffer.export_memory();
    runtime.client().wait_for_stream(stream);
    Pending pending = runtime.client()
                          .ask<VectorAddRequest>(Address<actors::VectorAdd>{}, adding(buffer, buffer, buffer))
                          .wait_on(stream);
    CHECK(pending.get());
    CHECK(within_a_minute([&] { return fake.stream_is_done(stream); }));
    std::vector<float> sums(100);
    buffer.read(sums);
    CHECK(sums == std::vector<float>(100, 2.0f));
    CHECK(exported.get()[99] == 2);
  }
  fake.capture(false);
  CHECK(fake.misuse() == "");
  if (program.processes) CHECK(program.processes->reports() == "");
}

TEST_CASE("a stream goes on whatever becomes of the ask that it waits for") {
  if (without_nvrtc()) return;
  Streams streams(Isolation::in_process, std::chrono::seconds(2));  // of the launch, too
  FakeDriver& fake = streams.program.fake;
  const auto went_on = [&] { return streams.stream_went_on(); };
  fake.hold(true);
  SECTION("a timeout") {
    Pending pending = streams.ask().wait_on(streams.stream);
    CHECK_FALSE(streams.stream_went_on());
    CHECK(within_a_minute(went_on));
    CHECK(pending.get().error().status == Status::timed_out);
  }
  SECTION("it is cancelled") {
    Pending pending = streams.ask().wait_on(streams.stream);
    CHECK(pending.cancel());
    CHECK(within_a_minute(went_on));
    CHECK(pending.get().error().status == Status::cancelled);
  }
  SECTION("nobody wants the outcome") {
    { const Pending dropped = streams.ask().wait_on(streams.stream); }
    CHECK_FALSE(streams.stream_went_on());
    CHECK(within_a_minute(went_on));
  }
  SECTION("the runtime ends") {
    Pending pending = streams.ask().wait_on(streams.stream);
    streams.runtime->terminate(std::chrono::milliseconds(0));
    CHECK(within_a_minute(went_on));
    CHECK_FALSE(pending.get());
    fake.hold(false);
    return;  // the worker was stuck, and keeps its memory
  }
  SECTION("the device faults") {
    Pending pending = streams.ask().wait_on(streams.stream);
    fake.fault();
    CHECK(within_a_minute([&] { return pending.ready(); }));
    CHECK_FALSE(pending.get());
    return;  // the driver answers nothing any more
  }
  fake.hold(false);
  streams.check_end();
}

TEST_CASE("a program that lets go of an export does not wait for its streams") {
  if (without_nvrtc()) return;
  Streams streams(GENERATE(Isolation::in_process, Isolation::process));
  FakeDriver& fake = streams.program.fake;
  fake.give_work(streams.stream, [] {});
  std::atomic<bool> let_go{false};
  std::thread finishing([&] {  // late, if the thread below waits for it
    for (int ms = 0; ms < 20'000 && !let_go; ++ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    fake.finish_work(streams.stream);
  });
  streams.buffer.reset();
  streams.elements.reset();
  CHECK_FALSE(streams.stream_went_on());
  CHECK(streams.runtime->ledger().used(MemoryKind::device).buffers == 1);  // the stream may use it
  let_go = true;
  finishing.join();
  CHECK(exports_are_released());
  CHECK(streams.stream_went_on());
  CHECK(streams.runtime->ledger().used(MemoryKind::device).buffers == 0);
  streams.check_end();
}

TEST_CASE("a stream goes on when the engine process is killed") {
  if (without_nvrtc()) return;
  Streams streams(Isolation::process);
  const pid_t engine = engines_of(getpid()).at(0);
  stop_process(engine);
  {
    Pending pending = streams.ask().wait_on(streams.stream);
    streams.note_in_stream();
    CHECK_FALSE(streams.stream_went_on());
    kill(engine, SIGKILL);
    CHECK(within_a_minute([&] { return streams.stream_went_on(); }));
    CHECK(pending.get().error().status == Status::engine_failed);
  }
  streams.runtime->relaunch();
  streams.buffer.emplace(streams.runtime->allocate<float>(MemoryKind::device, 100));
  CHECK(streams.ask().wait_on(streams.stream).get());
  CHECK(streams.stream_went_on());
  streams.check_end();
}

TEST_CASE("many threads make many streams wait, with one page of words") {
  if (without_nvrtc()) return;
  Streams streams(GENERATE(Isolation::in_process, Isolation::process));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      const CUstream stream = streams.program.fake.make_stream_for_program();
      for (int round = 0; round < 400; ++round) {
        std::atomic<bool> reached{false};
        auto pending = streams.ask().wait_on(stream);
        streams.program.fake.give_work(
            stream, [&] { reached = true; }, true);
        if (!pending.get() || !streams.program.fake.stream_is_done(stream) || !reached) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  streams.check_end();
}
