// Copies of buffers of an engine process, which runs on the fake driver: whole, in bounds, and with an end.
#include <signal.h>
#include <unistd.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/process/copy_lane.hpp>
#include <gyre/runtime/process/engine_process.hpp>
#include <gyre/runtime/process/launch_message.hpp>
#include <gyre/runtime/system/futex.hpp>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/detached.hpp"
#include "support/engine_processes.hpp"
#include "support/fake_engine_processes.hpp"
#include "support/rounds.hpp"
#include "support/stepped.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;
using namespace gyre_test;
using process::CopyDirection;
using process::CopyLane;
using process::StagingBlock;

namespace {

Options in_a_process() {
  Options options;
  options.engine = EngineKind::cuda;
  options.isolation = Isolation::process;
  options.heartbeat_timeout = std::chrono::seconds(30);  // on a busy machine it may have no turn for seconds
  options.slots = 8;
  return options;
}

void fill(std::span<uint8_t> bytes, unsigned seed) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = uint8_t((i * 31 + i / 251 + seed) >> (i % 3));
}

template <class Holds>
bool within_a_minute(Holds holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// An engine process that has launched, without a runtime: what a program could tell it.
class RawEngine {
 public:
  RawEngine() {
    capnp::MallocMessageBuilder message;
    Options options = in_a_process();
    options.transport = TransportKind::pinned;
    process::write_launch(message.initRoot<process::control::ToEngine>().initLaunch(), probe_actors(),
                          options, 1);
    process::Received answer = process_.call(message, process::control::FromEngine::LAUNCHED);
    (void)answer.take_descriptor();  // the region's
    staging_ = SharedMemory(answer.take_descriptor(), sizeof(StagingBlock));
  }

  uint64_t allocate(MemoryKind kind, uint64_t bytes) {
    capnp::MallocMessageBuilder message;
    auto block = message.initRoot<process::control::ToEngine>().initAllocate();
    block.setKind(uint32_t(kind));
    block.setBytes(bytes);
    process::Received answer = process_.call(message, process::control::FromEngine::ALLOCATED);
    return answer.root<process::control::FromEngine>().getAllocated();
  }
  StagingBlock& block() { return *static_cast<StagingBlock*>(staging_.address()); }

  // What the engine process says to a command; empty if it copied.
  std::string says(CopyDirection direction, const process::CopyCommand& command) {
    CopyLane& lane = block().lanes[size_t(direction)];
    const uint32_t number = lane.asked.load();
    CopyLane::Slot& slot = lane.slot(number);
    slot.command = command;
    slot.refused.store(0);
    lane.asked.store(number + 1);
    detail::futex_wake_shared(detail::whole(lane.asked));
    REQUIRE(within_a_minute([&] { return lane.done.load() == number + 1; }));
    return slot.refused.load() == 0 ? "" : slot.why.data();
  }
  process::EngineProcess& process() { return process_; }

 private:
  process::EngineProcess process_{std::chrono::seconds(30)};
  SharedMemory staging_;
};

}  // namespace

TEST_CASE("copies of every size, from and to any offset, arrive whole, of pinned memory and of ordinary") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
    constexpr size_t most = (17 << 20) + 5;  // more than the staging memory
    auto buffer = runtime.allocate<uint8_t>(MemoryKind::device, most + 64);
    auto pinned_in = runtime.allocate<uint8_t>(MemoryKind::pinned, most + 64);
    auto pinned_out = runtime.allocate<uint8_t>(MemoryKind::pinned, most + 64);
    std::vector<uint8_t> in(most + 64), out(most + 64), expected(most + 64), all(most + 64);
    unsigned seed = 0;
    for (const size_t bytes : {size_t(0), size_t(1), size_t(4097), size_t(128 << 10), (size_t(128) << 10) + 1,
                               size_t(1 << 20) - 1, size_t(1 << 20), (size_t(4) << 20) + 3, most}) {
      for (const bool from_pinned : {false, true}) {
        for (const size_t offset : {size_t(0), size_t(13)}) {
          const std::span<uint8_t> from = (from_pinned ? pinned_in.host() : std::span(in)).subspan(7, bytes);
          const std::span<uint8_t> to = (from_pinned ? pinned_out.host() : std::span(out)).subspan(3, bytes);
          fill(from, ++seed);
          std::fill(to.begin(), to.end(), 0);
          buffer.write(from, offset);
          std::copy(from.begin(), from.end(), expected.begin() + ptrdiff_t(offset));
          buffer.read(to, offset);
          CHECK(std::equal(to.begin(), to.end(), from.begin()));
          buffer.read(all);
          CHECK(all == expected);
        }
      }
    }
    CHECK_THROWS_WITH(buffer.write(in, 1), containing("bytes from byte 1 on, and it has"));
    CHECK(runtime.stats().writes.copies == 32);  // none of those without bytes
  }
  CHECK(processes.reports().empty());
}

TEST_CASE("threads that write and read buffers of one engine process at once each get their own bytes") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        const size_t bytes = 300'000 + 400'000 * (t / 2);
        auto buffer = runtime.allocate<uint8_t>(MemoryKind::device, bytes);
        auto pinned = runtime.allocate<uint8_t>(MemoryKind::pinned, bytes);
        std::vector<uint8_t> in(bytes), out(bytes);
        for (int round = 0; round < rounds(30); ++round) {
          fill(in, t * 1000 + unsigned(round));
          if (t % 2 == 0) {
            buffer.write(in);
            buffer.read(pinned.host());
            wrong += !std::equal(in.begin(), in.end(), pinned.host().begin());
          } else {
            std::copy(in.begin(), in.end(), pinned.host().begin());
            buffer.write(pinned.host());
            buffer.read(out);
            wrong += in != out;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
  CHECK(processes.reports().empty());
}

TEST_CASE("a copy of ordinary memory ends while other threads write from pinned buffers between its parts") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
    auto large = runtime.allocate<uint8_t>(MemoryKind::device, 20 << 20);
    std::vector<uint8_t> in(20 << 20), out(20 << 20);
    std::atomic<bool> ended{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        auto small = runtime.allocate<uint8_t>(MemoryKind::device, 64);
        auto pinned = runtime.allocate<uint8_t>(MemoryKind::pinned, 64);
        std::vector<uint8_t> found(64);
        for (unsigned n = 0; !ended.load(); ++n) {
          fill(pinned.host(), n + t);
          small.write(pinned.host());
          small.read(found);
          if (!std::equal(found.begin(), found.end(), pinned.host().begin())) ++wrong;
        }
      });
    }
    for (unsigned n = 0; n < 20; ++n) {
      fill(in, n);
      large.write(in);
      large.read(out);
      if (in != out) ++wrong;
    }
    ended = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong.load() == 0);
  }
  CHECK(processes.reports().empty());
}

TEST_CASE("a copy ends with an error when its engine process is killed, and so does the next") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  for (const bool pinned : {false, true}) {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
    auto buffer = runtime.allocate<uint8_t>(MemoryKind::device, 5'000'000);
    auto memory = runtime.allocate<uint8_t>(MemoryKind::pinned, buffer.size());
    std::vector<uint8_t> ordinary(buffer.size());
    const std::span<uint8_t> host = pinned ? memory.host() : std::span(ordinary);
    std::atomic<int> copied{0};
    std::atomic<Status> status{Status::ok};
    std::thread copying([&] {
      try {
        for (;; ++copied) copied % 2 == 0 ? buffer.write(host) : buffer.read(host);
      } catch (const Error& error) {
        status = error.status();
      }
    });
    REQUIRE(within_a_minute([&] { return copied > 3; }));
    kill(engines_of(getpid()).at(0), SIGKILL);
    copying.join();
    CHECK(status == Status::buffer_lost);
    CHECK_THROWS_AS(buffer.read(host), Error);
    REQUIRE(within_a_minute([&] { return runtime.state() == Lifecycle::failed; }));
    (void)runtime.terminate();
  }
}

TEST_CASE("copies arrive whole from a driver whose streams write no words") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  setenv("GYRE_TEST_STREAMS_WRITE_NO_WORDS", "1", 1);
  Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
  unsetenv("GYRE_TEST_STREAMS_WRITE_NO_WORDS");
  auto buffer = runtime.allocate<uint8_t>(MemoryKind::device, 1000);
  for (uint8_t round = 1; round <= 3 * CopyLane::slots; ++round) {
    const std::vector<uint8_t> sent(1000, round);
    std::vector<uint8_t> back(1000);
    buffer.write(sent);
    buffer.read(back);
    CHECK(back == sent);
  }
  (void)runtime.terminate();
}

TEST_CASE("a copy that its engine process never finishes ends with an error that says so") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Options options = in_a_process();
  options.heartbeat_timeout = std::chrono::milliseconds(300);
  setenv("GYRE_TEST_COPIES_NEVER_END", "1", 1);
  struct Copy {
    Runtime runtime;
    std::string error = {};  // of the copy; empty where it ended
    Status status = Status::ok;
  };
  // Of ordinary memory, and of pinned. Each waits for 9 seconds: both at once.
  Copy copies[] = {{Runtime::launch(probe_actors(), options)}, {Runtime::launch(probe_actors(), options)}};
  unsetenv("GYRE_TEST_COPIES_NEVER_END");
  std::vector<std::thread> threads;
  for (Copy& copy : copies) {
    threads.emplace_back([&copy, pinned = &copy == &copies[1]] {
      auto buffer = copy.runtime.allocate<uint8_t>(MemoryKind::device, 1000);
      auto memory = copy.runtime.allocate<uint8_t>(MemoryKind::pinned, 1000);
      std::vector<uint8_t> ordinary(1000);
      try {
        buffer.write(pinned ? memory.host() : std::span(ordinary));
      } catch (const Error& error) {
        copy.error = error.what();
        copy.status = error.status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Copy& copy : copies) {
    CHECK(copy.status == Status::buffer_lost);
    CHECK_THAT(copy.error, containing("it finished no part of a copy into a buffer for 9000 ms (30 times "
                                      "Options::heartbeat_timeout"));
    REQUIRE(within_a_minute([&] { return copy.runtime.state() == Lifecycle::failed; }));
    (void)copy.runtime.terminate();
  }
}

TEST_CASE("copies that go on by themselves are made in their order, of one buffer, beside those of others") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
    constexpr size_t bytes = 300'000;
    constexpr unsigned count = 6;
    std::vector<Buffer<uint8_t>> buffers;
    std::vector<std::vector<uint8_t>> in(3 * count, std::vector<uint8_t>(bytes)), out = in;
    for (unsigned n = 0; n < count; ++n)
      buffers.push_back(runtime.allocate<uint8_t>(MemoryKind::device, bytes));
    for (int round = 0; round < rounds(5); ++round) {
      std::vector<Future<void>> futures;
      // Each buffer: written, read, written, read; every read gets what was written before it.
      for (unsigned turn = 0; turn < 3; ++turn) {
        for (unsigned n = 0; n < count; ++n) {
          const unsigned at = turn * count + n;
          fill(in[at], unsigned(round) * 100 + at);
          std::fill(out[at].begin(), out[at].end(), 0);
          futures.push_back(buffers[n].write_async(in[at]));
          futures.push_back(buffers[n].read_async(out[at]));
        }
      }
      futures.push_back(buffers[0].write_async(std::span<uint8_t>(), 5));
      // A blocking one comes behind those that were begun.
      std::vector<uint8_t> last(bytes);
      buffers[3].read(last);
      CHECK(last == in[2 * count + 3]);
      for (Future<void>& future : futures) CHECK(future.get());
      CHECK(out == in);
    }
    CHECK_THROWS_WITH(buffers[0].write_async(in[0], 1), containing("bytes from byte 1 on, and it has"));
    CHECK_THROWS_WITH(buffers[0].read_async(out[0], bytes + 1), containing("reading a buffer"));
    buffers.clear();
    CHECK(runtime.ledger().used(MemoryKind::device).buffers == 0);
    const auto books = runtime.terminate();
    CHECK(runtime.ledger().empty());
    (void)books;
  }
  CHECK(processes.reports().empty());
}

TEST_CASE("a copy's outcome is waited for, called back with and awaited, before and after it is done") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
  auto buffer = runtime.allocate<uint8_t>(MemoryKind::device, 3'000'000);
  std::vector<uint8_t> in(buffer.size()), out(buffer.size());
  fill(in, 1);
  std::atomic<int> called{0}, good{0};
  const auto note = [&](const Result<void>& outcome) {
    good += bool(outcome);
    ++called;
  };
  for (int round = 0; round < rounds(10); ++round) {
    called = good = 0;
    buffer.write_async(in).then(note);
    Future<void> waited = buffer.read_async(out);
    CHECK(waited.wait_for(std::chrono::minutes(1)));
    CHECK(waited.ready());
    std::move(waited).then(note);  // it is done
    Future<void> moved = buffer.read_async(out), other = std::move(moved);
    [](Future<void> future, const auto& outcome_goes_to) -> Detached {
      outcome_goes_to(co_await std::move(future));
    }(std::move(other), note);
    CHECK(moved.get().error().status == Status::terminated);
    CHECK(within_a_minute([&] { return called == 3; }));
    CHECK(good == 3);
    CHECK(out == in);
  }
  // A future that nobody takes the outcome of does not stop its copy.
  std::vector<uint8_t> zeros(buffer.size());
  (void)buffer.write_async(zeros);
  buffer.read(out);
  CHECK(out == zeros);
}

TEST_CASE("a buffer that is destroyed, replaced or moved while copies go on lets them end first") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  {
    Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
    constexpr size_t bytes = 4'000'000;
    std::vector<uint8_t> in(bytes), zeros(bytes), out(bytes);
    fill(in, 5);
    for (int round = 0; round < rounds(10); ++round) {
      Future<void> future;
      {
        auto buffer = runtime.allocate<uint8_t>(MemoryKind::device, bytes);
        future = buffer.write_async(in);
      }
      // The next one may have its memory, and is zeroed all the same.
      auto next = runtime.allocate<uint8_t>(MemoryKind::device, bytes);
      CHECK(future.ready());
      CHECK(future.get());
      next.read(out);
      CHECK(out == zeros);
      Future<void> moved_under = next.write_async(in);
      auto moved = std::move(next);
      moved.read(out);
      CHECK(moved_under.get());
      CHECK(out == in);
      Future<void> replaced = moved.write_async(zeros);
      moved = runtime.allocate<uint8_t>(MemoryKind::device, 10);
      CHECK(replaced.ready());
    }
    // Futures and buffers outlive their runtime.
    auto buffer = runtime.allocate<uint8_t>(MemoryKind::device, bytes);
    Future<void> future = buffer.write_async(in);
    (void)runtime.terminate();
    CHECK(future.get());
  }
  CHECK(processes.reports().empty());
}

TEST_CASE("copies that go on when their engine process is killed say that the buffer is lost") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  Runtime runtime = Runtime::launch(probe_actors(), in_a_process());
  auto buffer = runtime.allocate<uint8_t>(MemoryKind::device, 8'000'000);
  std::vector<uint8_t> bytes(buffer.size());
  // So many that some have not begun when it is killed.
  std::vector<Future<void>> futures;
  for (int n = 0; n < 50; ++n)
    futures.push_back(n % 2 == 0 ? buffer.write_async(bytes) : buffer.read_async(bytes));
  kill(engines_of(getpid()).at(0), SIGKILL);
  std::atomic<int> lost{0}, done{0};
  for (Future<void>& future : futures) {
    std::move(future).then([&](const Result<void>& outcome) {
      lost += !outcome && outcome.error().status == Status::buffer_lost;
      ++done;
    });
  }
  CHECK(within_a_minute([&] { return done == 50; }));
  CHECK(lost > 0);
  REQUIRE(within_a_minute([&] { return runtime.state() == Lifecycle::failed; }));
  Future<void> late = buffer.write_async(bytes);
  CHECK(late.get().error().status == Status::buffer_lost);
}

TEST_CASE("an engine process copies nothing that is not of a buffer, whatever a program asks for by a lane") {
  if (without_nvrtc()) return;
  const FakeEngineProcesses processes(GYRE_TEST_FAKE_ENGINE);
  RawEngine engine;
  const uint64_t device = engine.allocate(MemoryKind::device, 10'000);
  const uint64_t pinned = engine.allocate(MemoryKind::pinned, 10'000);
  for (const CopyDirection direction : {CopyDirection::in, CopyDirection::out}) {
    const auto says = [&](const process::CopyCommand& command) { return engine.says(direction, command); };
    CHECK(says({device, 10'000, 0, 0}).empty());
    CHECK(says({device + 9'999, 1, 0, StagingBlock::lane_bytes - 1}).empty());
    CHECK(says({device + 1, 9'999, pinned + 1, 0}).empty());
    const process::CopyCommand of_no_buffer[] = {{device, 10'001, 0, 0},
                                                 {device + 9'999, 2, 0, 0},
                                                 {device - 1, 2, 0, 0},
                                                 {device, ~uint64_t(0), 0, 0},
                                                 {0, 1, 0, 0},
                                                 {pinned, 1, 0, 0},
                                                 {device, 10'000, pinned + 1, 0},
                                                 {device, 1, pinned - 1, 0},
                                                 {device, 1, device, 0},
                                                 {device, 1, ~uint64_t(0), 0}};
    for (const process::CopyCommand& command : of_no_buffer)
      CHECK_THAT(says(command), containing("are of no buffer in"));
    for (const uint64_t staged : {StagingBlock::lane_bytes, StagingBlock::lane_bytes + 1, ~uint64_t(0)})
      CHECK_THAT(says({device, 1, 0, staged}), containing("of the staging memory on, which has"));
    CHECK_THAT(says({device, 10'000, 0, StagingBlock::lane_bytes - 9'999}),
               containing("10000 bytes from byte"));
  }
  // What is copied is what lies there.
  StagingBlock& block = engine.block();
  std::memcpy(block.memory[0].data() + 100, "from the program", 16);
  CHECK(engine.says(CopyDirection::in, {device + 5, 16, 0, 100}).empty());
  CHECK(engine.says(CopyDirection::out, {device + 5, 16, 0, 200}).empty());
  CHECK(std::memcmp(block.memory[1].data() + 200, "from the program", 16) == 0);
  // A count that is nothing of the sort: as many commands as there seem to be, until it is right again.
  CopyLane& lane = block.lanes[0];
  const uint32_t asked = lane.asked.load();
  lane.asked.store(asked + 1000);
  detail::futex_wake_shared(detail::whole(lane.asked));
  CHECK(within_a_minute([&] { return lane.done.load() == asked + 1000; }));
  // Nor is what the program writes where the stream counts.
  for (const uint32_t nonsense : {asked + 5000, asked, ~uint32_t(0)}) {
    lane.done.store(nonsense);
    CHECK(engine.says(CopyDirection::in, {device + 5, 16, 0, 100}).empty());
  }
  CHECK(!engine.process().failure());
}
