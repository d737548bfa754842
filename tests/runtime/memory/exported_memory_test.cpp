// Gyre's buffers in the program's CUDA code, on the fake driver: in process, and from an engine process.
#include <signal.h>
#include <unistd.h>
#include <gyre/gyre.hpp>

#include <algorithm>
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

std::vector<float> content(const Buffer<float>& buffer) {
  std::vector<float> values(buffer.size());
  buffer.read(values);
  return values;
}

}  // namespace

TEST_CASE("a device buffer is memory of the program without a copy") {
  if (without_nvrtc()) return;
  const auto isolation = GENERATE(Isolation::in_process, Isolation::process);
  // Parts of an allocation of 2 MiB, and allocations of their own.
  const size_t elements = GENERATE(1, 5000, 700'000);
  Program program(isolation);
  program.fake.make_context_for_program();
  {
    Runtime runtime = program.launch();
    auto before = runtime.allocate<float>(MemoryKind::device, 3);
    auto buffer = runtime.allocate<float>(MemoryKind::device, elements);
    auto after = runtime.allocate<float>(MemoryKind::device, 3);
    CHECK(buffer.device() == 0);
    std::shared_ptr<float> there = buffer.export_memory();
    CHECK(std::all_of(there.get(), there.get() + elements, [](float each) { return each == 0; }));
    std::fill_n(there.get(), elements, 1.5f);
    REQUIRE(add(runtime, buffer, buffer, buffer));
    CHECK(std::all_of(there.get(), there.get() + elements, [](float each) { return each == 3; }));
    buffer.write(std::vector<float>{7}, elements - 1);
    CHECK(there.get()[elements - 1] == 7);
    CHECK(content(before) == std::vector<float>(3));
    CHECK(content(after) == std::vector<float>(3));
    CHECK(buffer.export_memory() == there);                      // mapped once
    CHECK(reinterpret_cast<uintptr_t>(there.get()) % 256 == 0);  // DLPack wants it so
    there.reset();
    runtime.terminate();
  }
  CHECK(exports_are_released());
  program.fake.end_context_of_program();
  CHECK(program.fake.misuse() == "");
  CHECK(program.fake.live() == FakeDriver::Live{});
  if (program.processes) CHECK(program.processes->reports() == "");
}

TEST_CASE("memory of a freed buffer is not used again while the program has it") {
  if (without_nvrtc()) return;
  const auto isolation = GENERATE(Isolation::in_process, Isolation::process);
  Program program(isolation);
  program.fake.make_context_for_program();
  {
    Runtime runtime = program.launch();
    auto buffer = std::make_optional(runtime.allocate<float>(MemoryKind::device, 1000));
    buffer->write(std::vector<float>(1000, 5));
    std::shared_ptr<float> there = buffer->export_memory();
    program.fake.hold(isolation == Isolation::in_process);
    auto pending = runtime.client().ask<VectorAddRequest>(Address<actors::VectorAdd>{},
                                                          adding(*buffer, *buffer, *buffer));
    buffer.reset();
    program.fake.hold(false);
    (void)pending.get();  // taken before the handle was stale, or not
    CHECK(runtime.ledger().used(MemoryKind::device).buffers == 1);
    CHECK(runtime.ledger().freed(MemoryKind::device).buffers == 0);
    there.get()[999] = 6;
    {
      const auto other = runtime.allocate<float>(MemoryKind::device, 1000);
      CHECK(content(other) == std::vector<float>(1000));
      REQUIRE(add(runtime, other, other, other));
      CHECK(there.get()[999] == 6);
    }
    const size_t waits = program.fake.context_waits();
    there.reset();
    CHECK(exports_are_released());
    CHECK(program.fake.context_waits() == waits + 1);  // kernels may still have used it
    CHECK(runtime.ledger().used(MemoryKind::device).buffers == 0);
    CHECK(runtime.ledger().freed(MemoryKind::device).buffers == 2);
    runtime.terminate();
    CHECK(runtime.ledger().empty());
  }
  CHECK(exports_are_released());
  program.fake.end_context_of_program();
  CHECK(program.fake.misuse() == "");
  CHECK(program.fake.live() == FakeDriver::Live{});
  if (program.processes) CHECK(program.processes->reports() == "");
}

TEST_CASE("the next buffer has the room of one whose export the program has just let go of") {
  if (without_nvrtc()) return;
  Program program(Isolation::in_process);
  program.fake.device.memory_bytes = 160 << 20;  // for one such buffer beside Gyre's own memory
  program.options.arena_bytes = 1 << 20;
  program.fake.make_context_for_program();
  {
    Runtime runtime = program.launch();
    for (int round = 0; round < 50; ++round) {
      auto buffer = runtime.allocate<float>(MemoryKind::device, (100 << 20) / sizeof(float));
      CHECK(buffer.export_memory().get()[7] == 0);
      buffer.write(std::vector<float>{1}, 7);
    }
    runtime.terminate();
  }
  CHECK(exports_are_released());
  CHECK(program.fake.misuse() == "");
}

TEST_CASE("exported memory outlives buffer and runtime") {
  if (without_nvrtc()) return;
  const auto isolation = GENERATE(Isolation::in_process, Isolation::process);
  Program program(isolation);
  program.fake.make_context_for_program();
  std::shared_ptr<float> there;
  {
    Runtime runtime = program.launch();
    auto buffer = runtime.allocate<float>(MemoryKind::device, 100);
    there = buffer.export_memory();
    REQUIRE(add(runtime, buffer, buffer, buffer));
    there.get()[42] = 42;
    runtime.terminate();
  }
  if (isolation == Isolation::process) CHECK(engines_of(getpid()).empty());
  CHECK(there.get()[42] == 42);
  there.get()[99] = 1;
  there.reset();
  CHECK(exports_are_released());
  program.fake.end_context_of_program();
  CHECK(program.fake.misuse() == "");
  CHECK(program.fake.live() == FakeDriver::Live{});
  if (program.processes) CHECK(program.processes->reports() == "");
}

TEST_CASE("an engine process that is killed leaves what it exported") {
  if (without_nvrtc()) return;
  Program program(Isolation::process);
  program.fake.make_context_for_program();
  {
    Runtime runtime = program.launch();
    auto buffer = runtime.allocate<float>(MemoryKind::device, 100);
    auto other = runtime.allocate<float>(MemoryKind::device, 100);
    std::shared_ptr<float> there = buffer.export_memory();
    buffer.write(std::vector<float>(100, 4));
    kill(engines_of(getpid()).at(0), SIGKILL);
    REQUIRE(within_a_minute([&] { return runtime.state() == Lifecycle::failed; }));
    CHECK(std::count(there.get(), there.get() + 100, 4.0f) == 100);
    CHECK(status_of([&] { (void)other.export_memory(); }) == Status::buffer_lost);
    runtime.relaunch();
    there.get()[0] = 1;
    auto anew = runtime.allocate<float>(MemoryKind::device, 100);
    CHECK(content(anew) == std::vector<float>(100));
    CHECK(there.get()[0] == 1);
    runtime.terminate();
  }
  CHECK(exports_are_released());
  program.fake.end_context_of_program();
  CHECK(program.fake.misuse() == "");
  CHECK(program.fake.live() == FakeDriver::Live{});
}

TEST_CASE("an export needs a context of the program, and makes none") {
  if (without_nvrtc()) return;
  Program program(Isolation::process);
  program.fake.device.devices = 2;
  Runtime runtime = program.launch();
  auto buffer = runtime.allocate<float>(MemoryKind::device, 100);
  const auto said = [&] { return refusal([&] { (void)buffer.export_memory(); }); };
  CHECK_THAT(said(), containing("exporting a buffer: this thread has no CUDA context on device "
                                "GPU-66616b65-0102-0304-0506-0708090a0b0c"));
  CHECK_THAT(said(), containing("cudaFree(0)"));
  CHECK(program.fake.live().retains == 0);
  program.fake.make_context_for_program();
  CHECK(said() == "it was taken");
  CHECK(FakeDriver::current_contexts() == 0);
  runtime.terminate();
}

TEST_CASE("host memory is exported as it is, and keeps its engine") {
  Runtime runtime = Runtime::launch(builtin_actors(), {.engine = EngineKind::cpu});
  const auto kind = GENERATE(MemoryKind::device, MemoryKind::pinned);
  auto buffer = std::make_optional(runtime.allocate<float>(kind, 100));
  CHECK(buffer->device() == std::nullopt);
  std::shared_ptr<float> there = buffer->export_memory();
  std::fill_n(there.get(), 100, 2.0f);
  REQUIRE(add(runtime, *buffer, *buffer, *buffer));
  CHECK(there.get()[99] == 4);
  buffer.reset();
  runtime.terminate();
  CHECK(there.get()[99] == 4);
  CHECK(runtime.ledger().used(kind).buffers == 1);
  there.reset();
  CHECK(runtime.ledger().empty());
}

TEST_CASE("memory that has another way into the program is not exported") {
  if (without_nvrtc()) return;
  Program program(Isolation::in_process);
  Runtime runtime = program.launch();
  auto unified = runtime.allocate<float>(MemoryKind::unified, 10);
  CHECK_THROWS_WITH((void)unified.export_memory(), containing("its memory is unified; look at it by view()"));
  float* const there = program.allocate(10);
  auto imported = runtime.import_memory(there, 10, program.owner(there));
  CHECK_THROWS_WITH((void)imported.export_memory(),
                    containing("its memory is imported; use what it was imported from"));
}

TEST_CASE("a device without memory that other processes can map has buffers, and exports none") {
  if (without_nvrtc()) return;
  setenv("GYRE_TEST_NO_SHAREABLE_MEMORY", "1", 1);
  Program program(Isolation::process);
  program.fake.make_context_for_program();
  Runtime runtime = program.launch();
  unsetenv("GYRE_TEST_NO_SHAREABLE_MEMORY");
  auto buffer = runtime.allocate<float>(MemoryKind::device, 10);
  REQUIRE(add(runtime, buffer, buffer, buffer));
  CHECK_THROWS_WITH((void)buffer.export_memory(), containing("launch with --isolation in_process"));
  runtime.terminate();
  CHECK(program.processes->reports() == "");
}

TEST_CASE("threads allocate, export, ask and free while others do") {
  if (without_nvrtc()) return;
  const auto isolation = GENERATE(Isolation::in_process, Isolation::process);
  Program program(isolation);
  program.options.workers = 2;
  program.fake.make_context_for_program();
  std::atomic<int> wrong{0};
  {
    Runtime runtime = program.launch();
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (int round = 0; round < 20; ++round) {
          std::shared_ptr<float> there;
          {
            auto buffer = runtime.allocate<float>(MemoryKind::device, 500);
            there = buffer.export_memory();
            std::fill_n(there.get(), 500, float(thread + 1));
            if (!add(runtime, buffer, buffer, buffer)) ++wrong;
          }
          if (std::count(there.get(), there.get() + 500, 2.0f * float(thread + 1)) != 500) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(exports_are_released());
    runtime.terminate();
    CHECK(runtime.ledger().empty());
  }
  CHECK(wrong == 0);
  CHECK(exports_are_released());
  program.fake.end_context_of_program();
  CHECK(program.fake.misuse() == "");
  CHECK(program.fake.live() == FakeDriver::Live{});
  if (program.processes) CHECK(program.processes->reports() == "");
}
