// Device memory of the program as buffers, on the fake driver: in process, and from an engine process.
#include <signal.h>
#include <unistd.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/device_program.hpp"
#include "support/engine_processes.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;
using namespace gyre_test;

TEST_CASE("memory of a program is a buffer without a copy, and its owner is released once") {
  if (without_nvrtc()) return;
  const auto isolation = GENERATE(Isolation::in_process, Isolation::process);
  const auto kind = GENERATE(ProgramMemory::malloc, ProgramMemory::mapped_shareable);
  Program program(isolation);
  constexpr size_t elements = 5000;
  float* const there = program.allocate(elements, kind);
  {
    Runtime runtime = program.launch();
    auto imported = std::make_optional(runtime.import_memory(there, elements, program.owner(there)));
    CHECK(imported->kind() == MemoryKind::imported);
    CHECK(imported->size() == elements);
    CHECK(runtime.ledger().used(MemoryKind::imported).buffers == 1);
    CHECK(runtime.ledger().used(MemoryKind::imported).bytes == elements * sizeof(float));
    CHECK(runtime.stats().memory.buffers[3] == elements * sizeof(float));
    REQUIRE(add(runtime, *imported, *imported, *imported));
    CHECK(there[4999] == 9998);  // the worker wrote there
    there[7] = 100;
    std::vector<float> some(2);
    imported->read(some, 7);
    CHECK(some == std::vector<float>{100, 16});
    imported->write(std::vector<float>{1, 2, 3}, 4997);
    CHECK(there[4998] == 2);
    CHECK(program.released == 0);
    imported.reset();
    CHECK(within_a_minute([&] { return program.released == 1; }));
    CHECK(runtime.ledger().used(MemoryKind::imported).buffers == 0);
    CHECK(runtime.ledger().freed(MemoryKind::imported).buffers == 0);
    runtime.terminate();
    CHECK(runtime.ledger().empty());
  }
  CHECK(program.owners == 0);
  CHECK(program.fake.misuse() == "");
  CHECK(program.fake.live() == FakeDriver::Live{});
  if (program.processes) CHECK(program.processes->reports() == "");
}

TEST_CASE("parts of one allocation are imported, again and beside each other, from any element on") {
  if (without_nvrtc()) return;
  const auto isolation = GENERATE(Isolation::in_process, Isolation::process);
  const auto kind = GENERATE(ProgramMemory::malloc, ProgramMemory::mapped_shareable);
  Program program(isolation);
  float* const there = program.allocate(1000, kind);
  const std::shared_ptr<void> owner = program.owner(there);
  Runtime runtime = program.launch();
  for (int round = 0; round < 3; ++round) {
    const auto low = runtime.import_memory(there + 1, 100, owner);
    const auto same = runtime.import_memory(there + 1, 100, owner);
    const auto high = runtime.import_memory(there + 703, 297, owner);
    { const auto freed = runtime.import_memory(there + 1, 100, owner); }
    std::fill_n(there, 1000, 1.0f);
    REQUIRE(add(runtime, low, same, low));
    REQUIRE(add(runtime, high, high, high));
    CHECK(std::count(there, there + 1000, 2.0f) == 397);
    CHECK(std::count(there, there + 1000, 1.0f) == 603);
  }
  runtime.terminate();
  CHECK(owner.use_count() == 1);
  CHECK(program.fake.misuse() == "");
  if (program.processes) CHECK(program.processes->reports() == "");
}

TEST_CASE("copies go on while the engine process opens memory of the program") {
  if (without_nvrtc()) return;
  Program program(Isolation::process);
  setenv("GYRE_TEST_OPENING_AWAITS_COPY", "1", 1);
  Runtime runtime = program.launch();
  unsetenv("GYRE_TEST_OPENING_AWAITS_COPY");
  {
    auto buffer = runtime.allocate<float>(MemoryKind::device, 10);
    float* const there = program.allocate(10);
    std::optional<Buffer<float>> imported;
    std::string refused;
    std::atomic<bool> ended{false};
    std::thread importing([&] {
      refused = refusal([&] { imported = runtime.import_memory(there, 10, program.owner(there)); });
      ended = true;
    });
    const std::vector<float> ones(10, 1);
    while (!ended) buffer.write(ones);
    importing.join();
    CHECK(refused == "it was taken");
    std::vector<float> found(10);
    buffer.read(found);
    CHECK(found == ones);
  }
  runtime.terminate();
  CHECK(program.processes->reports() == "");
}

TEST_CASE("new memory at an old address is imported anew") {
  if (without_nvrtc()) return;
  Program program(Isolation::process);
  Runtime runtime = program.launch();
  for (int round = 0; round < 20; ++round) {  // the heap gives the same address again, mostly
    float* const there = program.allocate(3000);
    const auto imported = runtime.import_memory(there, 3000, program.owner(there));
    REQUIRE(add(runtime, imported, imported, imported));
    CHECK(there[2999] == 5998);
  }
  runtime.terminate();
  CHECK(program.owners == 0);
  CHECK(program.released == 20);
}

TEST_CASE("an owner is kept while a message that was sent before may still use its memory") {
  if (without_nvrtc()) return;
  Program program(Isolation::in_process);
  float* const there = program.allocate(100);
  Runtime runtime = program.launch();
  auto imported = std::make_optional(runtime.import_memory(there, 100, program.owner(there)));
  program.fake.hold(true);
  auto pending = runtime.client().ask<VectorAddRequest>(Address<actors::VectorAdd>{},
                                                        adding(*imported, *imported, *imported));
  imported.reset();
  (void)runtime.allocate<float>(MemoryKind::device, 10);
  CHECK(program.released == 0);
  CHECK(runtime.ledger().freed(MemoryKind::imported).buffers == 1);
  program.fake.hold(false);
  const auto reply = pending.get();
  REQUIRE_FALSE(reply);
  CHECK(reply.error().status == Status::bad_buffer);
  CHECK(within_a_minute([&] { return program.released == 1; }));
  CHECK(runtime.ledger().freed(MemoryKind::imported).buffers == 0);
}

TEST_CASE("a handler may read a read-only buffer, and gets an error reply for writing it") {
  if (without_nvrtc()) return;
  const auto isolation = GENERATE(Isolation::in_process, Isolation::process);
  Program program(isolation);
  float* const there = program.allocate(100);
  Runtime runtime = program.launch();
  const float* const constant = there;
  auto imported = runtime.import_memory(constant, 100, program.owner(there));
  CHECK(imported.access() == BufferAccess::read_only);
  auto result = runtime.allocate<float>(MemoryKind::device, 100);
  REQUIRE(add(runtime, imported, imported, result));
  std::vector<float> sums(100);
  result.read(sums);
  CHECK(sums[99] == 198);
  const auto reply = add(runtime, result, result, imported);
  REQUIRE_FALSE(reply);
  CHECK(reply.error().status == Status::bad_buffer);
  CHECK(BadHandle::fault_of(reply.error().detail) == BufferFault::read_only);
  CHECK_THAT(reply.error().message(), containing("is of a read-only buffer, and the handler may write"));
  CHECK_THROWS_WITH(imported.write(sums), containing("writing a buffer: it is read-only"));
  CHECK(there[99] == 99);
}

TEST_CASE("memory that cannot be imported is refused by what it is, and its owner released") {
  if (without_nvrtc()) return;
  const auto isolation = GENERATE(Isolation::in_process, Isolation::process);
  Program program(isolation);
  program.fake.device.devices = 2;
  Runtime runtime = program.launch();
  const auto refused = [&](ProgramMemory kind, int ordinal = 0) {
    float* const there = program.allocate(100, kind, ordinal);
    return refusal([&] { (void)runtime.import_memory(there, 100, program.owner(there)); });
  };
  const auto says = [](const char* text) { return containing(text); };
  CHECK_THAT(refused(ProgramMemory::managed), says("importing 400 bytes at 0x"));
  CHECK_THAT(refused(ProgramMemory::managed), says("it is managed memory"));
  CHECK_THAT(refused(ProgramMemory::pinned), says("it is page-locked host memory"));
  CHECK_THAT(refused(ProgramMemory::malloc, 1),
             says("it is of device GPU-66616b65-0102-0304-0506-0708090a0b0d, and "
                  "the workers run on GPU-66616b65-0102-0304-0506-0708090a0b0c"));
  if (isolation == Isolation::process) {
    CHECK_THAT(refused(ProgramMemory::pool),
               says("stream-ordered pool (cudaMallocAsync), which no other process"));
    CHECK_THAT(refused(ProgramMemory::mapped), says("cuMemCreate without a handle type"));
  }
  CHECK(program.owners == 0);
  std::vector<float> host(100);
  CHECK_THAT(refusal([&] { (void)runtime.import_memory(host.data(), 100, nullptr); }),
             says("it is ordinary host memory, or was freed"));
  float* const there = program.allocate(100);
  const auto owner = program.owner(there);
  const auto import = [&](float* from, uint64_t elements) {
    return refusal([&] { (void)runtime.import_memory(from, elements, owner); });
  };
  CHECK_THAT(import(nullptr, 100), says("the pointer is null"));
  CHECK_THAT(import(there, 0), says("importing 0 elements of 4 bytes"));
  CHECK_THAT(import(there, 101), says("its allocation has 400 bytes"));
  CHECK_THAT(import(there + 1, 100), says("and 396 from there on; import less"));
  CHECK_THAT(import(there, ~uint64_t(0) / 2), says("there are not as many bytes"));
  CHECK_THAT(import(reinterpret_cast<float*>(reinterpret_cast<char*>(there) + 2), 10),
             says("the address is no multiple of 4"));
  CHECK(owner.use_count() == 1);
  CHECK(runtime.ledger().used(MemoryKind::imported).buffers == 0);
  CHECK(import(there, 100) == "it was taken");  // and nothing was left in the way
  runtime.terminate();
  CHECK(runtime.ledger().empty());
  CHECK_THAT(import(there, 100), says("the runtime has terminated"));
  CHECK(owner.use_count() == 1);
}

TEST_CASE("the CPU engine says that it imports no memory") {
  Runtime runtime = Runtime::launch(builtin_actors(), {.engine = EngineKind::cpu});
  std::vector<float> host(100);
  CHECK_THROWS_WITH((void)runtime.import_memory(host.data(), 100, nullptr),
                    containing("the workers of the CPU engine have no device memory"));
  CHECK_THAT(runtime.refusal(MemoryKind::imported), containing("--engine cuda"));
}

TEST_CASE("a buffer that outlives its runtime keeps its owner until it is freed") {
  if (without_nvrtc()) return;
  const auto isolation = GENERATE(Isolation::in_process, Isolation::process);
  Program program(isolation);
  float* const there = program.allocate(100);
  std::optional<Buffer<float>> imported;
  {
    Runtime runtime = program.launch();
    imported.emplace(runtime.import_memory(there, 100, program.owner(there)));
  }
  CHECK(program.released == 0);
  imported.reset();
  CHECK(program.released == 1);
  CHECK(program.fake.misuse() == "");
  CHECK(program.fake.live() == FakeDriver::Live{});
  if (program.processes) CHECK(program.processes->reports() == "");
}

TEST_CASE(
    "an engine process that is killed loses an imported buffer, and the program's memory is as it was") {
  if (without_nvrtc()) return;
  Program program(Isolation::process);
  float* const there = program.allocate(100);
  const auto owner = program.owner(there);
  Runtime runtime = program.launch();
  auto lost = std::make_optional(runtime.import_memory(there, 100, owner));
  REQUIRE(add(runtime, *lost, *lost, *lost));
  kill(engines_of(getpid()).at(0), SIGKILL);
  REQUIRE(within_a_minute([&] { return runtime.state() == Lifecycle::failed; }));
  std::vector<float> values(100);
  CHECK(status_of([&] { lost->read(values); }) == Status::buffer_lost);
  CHECK(status_of([&] { (void)runtime.import_memory(there, 100, owner); }) == Status::buffer_lost);
  CHECK(there[99] == 198);
  CHECK(owner.use_count() == 2);
  runtime.relaunch();
  CHECK(status_of([&] { lost->read(values); }) == Status::buffer_lost);
  auto imported = runtime.import_memory(there, 100, owner);
  REQUIRE(add(runtime, imported, imported, imported));
  CHECK(there[99] == 396);
  lost.reset();
  CHECK(within_a_minute([&] { return owner.use_count() == 2; }));
  runtime.terminate();
}

TEST_CASE("threads import, ask and free while others do") {
  if (without_nvrtc()) return;
  const auto isolation = GENERATE(Isolation::in_process, Isolation::process);
  Program program(isolation);
  program.options.workers = 2;
  std::atomic<int> wrong{0};
  {
    Runtime runtime = program.launch();
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (int round = 0; round < 20; ++round) {
          float* const there = program.allocate(
              500, thread % 2 == 0 ? ProgramMemory::malloc : ProgramMemory::mapped_shareable);
          const auto imported = runtime.import_memory(there, 500, program.owner(there));
          if (!add(runtime, imported, imported, imported) || there[499] != 998) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    runtime.terminate();
    CHECK(runtime.ledger().empty());
  }
  CHECK(wrong == 0);
  CHECK(program.owners == 0);
  CHECK(program.released == 80);
  if (program.processes) CHECK(program.processes->reports() == "");
}
