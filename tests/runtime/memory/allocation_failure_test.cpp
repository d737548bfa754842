// Memory runs out once, at each place where a launch, the first messages and the end ask for some: a clean
// error, no leak, and the next launch works. Or a thread is suspended there. An executable of its own: it
// replaces the global operator new, and is linked so that mmap and aligned_alloc of Gyre's own code come here
// first.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <thread>

#include "support/catch.hpp"
#include "support/rounds.hpp"
#include "support/stepped.hpp"

#if defined(GYRE_WITH_CUDA)
#include <gyre/runtime/cuda/program.hpp>

#include "support/fake_driver.hpp"
#include "support/without_nvrtc.hpp"
#endif

namespace {

thread_local uint64_t allocations_left = 0;     // of this thread, until one fails; 0: none does
thread_local uint64_t allocations_made = 0;     // of this thread
thread_local size_t most_aligned = ~size_t(0);  // bytes that aligned_alloc gives this thread at once
std::atomic<int64_t> outstanding{0};

// Suspends a thread at one of its allocations.
struct Suspension {
  uint64_t allocations_left;  // of the thread, until the one that suspends it
  std::atomic<bool> suspended{false}, goes_on{false};

  void count_allocation() {
    if (--allocations_left != 0) return;
    suspended = true;
    while (!goes_on) std::this_thread::yield();
  }
};
thread_local Suspension* suspension = nullptr;  // of this thread; null: none

// The fake driver's own memory is not Gyre's.
bool in_fake_driver() {
#if defined(GYRE_WITH_CUDA)
  return gyre_test::FakeDriver::in_call();
#else
  return false;
#endif
}

bool fails() {
  if (in_fake_driver()) return false;
  if (suspension != nullptr) suspension->count_allocation();
  ++allocations_made;
  return allocations_left != 0 && --allocations_left == 0;
}

}  // namespace

extern "C" {
void* __real_mmap(void*, size_t, int, int, int, off_t);
void* __real_aligned_alloc(size_t, size_t);
void* __wrap_mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  return fails() ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, file, offset);
}
void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return fails() || bytes > most_aligned ? nullptr : __real_aligned_alloc(alignment, bytes);
}
}

namespace {
void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  ++outstanding;
  return memory;
}
void uncounted(void* memory) noexcept {
  if (memory != nullptr) --outstanding;
  std::free(memory);
}
}  // namespace

void* operator new(size_t bytes) { return counted(fails() ? nullptr : std::malloc(bytes != 0 ? bytes : 1)); }
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  const size_t unit = size_t(alignment);
  return counted(fails() ? nullptr : __real_aligned_alloc(unit, (bytes + unit - 1) / unit * unit));
}
void* operator new[](size_t bytes, std::align_val_t alignment) { return operator new(bytes, alignment); }
void operator delete(void* memory) noexcept { uncounted(memory); }
void operator delete[](void* memory) noexcept { uncounted(memory); }
void operator delete(void* memory, size_t) noexcept { uncounted(memory); }
void operator delete[](void* memory, size_t) noexcept { uncounted(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { uncounted(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { uncounted(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { uncounted(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { uncounted(memory); }

using namespace gyre;
using namespace gyre_test;

namespace {

struct Attempt {
  bool failed_one = false;  // an allocation was refused
  bool whole = false;       // all was done, and rightly
  bool clean = true;        // what was thrown says what it is
  int64_t leaked = 0;       // allocations
  uint64_t asked_for = 0;   // allocations, since `arm`
};

void live(const Options& options, bool& right) {
  Runtime runtime = Runtime::launch(probe_actors(), options);
  Client client = runtime.client();
  right = true;
  for (const uint32_t words : {1u, 10'000u}) {  // in a slot, and in the arena
    auto reply = client
                     .ask<ProbeRequest>(probe,
                                        [words](ProbeRequest::Builder request) {
                                          request.setAction(Action::ECHO);
                                          auto filler = request.initFiller(words);
                                          for (uint32_t i = 0; i < words; ++i) filler.set(i, i);
                                        })
                     .get();
    right = right && reply && reply.value()->getFiller().size() == words;
    right = right && client.tell<ProbeNote>(probe, noting(1));
  }
  right = right && client.ask<ProbeRequest>(probe, asking(Action::FAIL, 1)).get().error().detail == 1;
  right = right && runtime.take_dead_letters().empty();
  right = right && runtime.drain();
  right = runtime.terminate().books.balanced() && right;
}

// A life of a runtime in a thread of its own, whose allocation number `n` after `begin` fails; 0: none.
template <class Arm>
Attempt attempt(const Options& options, Arm arm) {
  Attempt made;
  const int64_t before = outstanding;
  std::thread([&] {
    const uint64_t n = arm();
    allocations_made = 0;
    try {
      live(options, made.whole);
    } catch (const std::bad_alloc&) {
    } catch (const Error& error) {
      const std::string text = error.what();
      made.clean = text.find("launching") != std::string::npos || text.find("memory") != std::string::npos;
    } catch (...) {
      made.clean = false;
    }
    made.failed_one = n != 0 && allocations_left == 0;
    made.asked_for = allocations_made;
    allocations_left = 0;
  }).join();
  made.leaked = outstanding - before;
  return made;
}

}  // namespace

TEST_CASE("memory that runs out at any place on the CPU engine is a clean error, and the next launch works") {
  const Options options{.engine = EngineKind::cpu, .workers = 2, .slots = 8};
  const auto from_the_start = [](uint64_t n) { return [n] { return allocations_left = n; }; };
  for (int warm = 0; warm < 2; ++warm) REQUIRE(attempt(options, from_the_start(0)).whole);
  uint64_t n = 1;
  for (;; n += n < 16 || every_place() ? 1 : 5) {
    const Attempt made = attempt(options, from_the_start(n));
    if (!made.failed_one) break;
    const Attempt next = attempt(options, from_the_start(0));
    INFO("allocation " << n);
    CHECK(made.clean);
    CHECK(made.leaked == 0);
    CHECK(next.whole);
    CHECK(next.leaked == 0);
  }
  CHECK(n > 50);
}

TEST_CASE(
    "a thread suspended while it frees a buffer keeps neither terminate nor a view from ending: it says so") {
  bool given_up = false, freed_whole = false;
  for (uint64_t n = 1; !freed_whole; ++n) {
    INFO("suspended at allocation " << n);
    Stepped s;
    Buffer<uint64_t> viewed(s.core, MemoryKind::unified, 10);
    std::optional<Buffer<uint64_t>> freed(std::in_place, s.core, MemoryKind::device, 10);
    (void)Buffer<uint64_t>(s.core, MemoryKind::device, 1000);  // retired
    Suspension suspends{n};
    std::atomic<bool> done{false};
    std::thread frees([&] {
      suspension = &suspends;
      freed.reset();
      suspension = nullptr;
      done = true;
    });
    while (!suspends.suspended && !done) std::this_thread::yield();
    freed_whole = !suspends.suspended;
    CHECK(viewed.view(1ms));
    CHECK(s.core->stats().memory.buffers_freed[uint32_t(MemoryKind::device)] >= 8000);
    const Termination report = s.core->terminate(1ms);
    CHECK(report.books.balanced());
    CHECK(s.core->buffers().ledger().freed(MemoryKind::device).buffers == (report.buffers_stuck ? 1 : 0));
    suspends.goes_on = true;
    frees.join();
    // Those that terminate() gave up are released with the core.
    CHECK(s.core->buffers().ledger().freed(MemoryKind::device).buffers == (report.buffers_stuck ? 2 : 0));
    CHECK(s.core->buffers().ledger().used(MemoryKind::device).buffers == 0);
    given_up = given_up || report.buffers_stuck;
  }
  CHECK(given_up);
}

TEST_CASE("a region that the machine has no memory for is refused with all the numbers") {
  struct Limit {
    Limit() { most_aligned = size_t(1) << 30; }
    ~Limit() { most_aligned = ~size_t(0); }
  } const limit;
  const Options options{.engine = EngineKind::cpu,
                        .arena_bytes = uint64_t(1) << 40,
                        .actors_per_worker = 77,
                        .region_budget = ~uint64_t(0)};
  std::string text = "it launched";
  try {
    (void)Runtime::launch(probe_actors(), options);
  } catch (const BadOptions& error) {
    text = error.what();
  }
  INFO(text);
  const uint64_t region = options.region_layout(probe_actors().handlers().size()).region_bytes();
  for (const std::string& said :
       {std::string("there is not enough memory for it"), std::string("--arena-bytes 1099511627776"),
        "a region of " + std::to_string(region) + " bytes", std::string("--actors-per-worker 77"),
        std::string("ask for less")}) {
    CHECK(text.find(said) != std::string::npos);
  }
}

TEST_CASE("tables of actors that no machine has memory for are refused with the numbers") {
  std::string text = "it launched";
  try {
    (void)Runtime::launch(probe_actors(),
                          {.engine = EngineKind::cpu, .workers = 64, .actors_per_worker = 1u << 30});
  } catch (const BadOptions& error) {
    text = error.what();
  }
  INFO(text);
  CHECK(text.find("fewer --actors-per-worker (1073741824)") != std::string::npos);
}

#if defined(GYRE_WITH_CUDA)
namespace {
uint64_t after_loading = 0;
cuda::Driver fake_table;
CUresult load_and_arm(CUmodule* module, const void* image, unsigned int options, CUjit_option* names,
                      void** values) {
  const CUresult result = fake_table.cuModuleLoadDataEx(module, image, options, names, values);
  allocations_left = after_loading;
  allocations_made = 0;
  return result;
}
}  // namespace

TEST_CASE(
    "memory that runs out anywhere behind the compiler on the CUDA engine is a clean error, and the next "
    "launch works") {
  if (gyre_test::without_nvrtc()) return;
  FakeDriver fake({probe_actors()});
  const auto loader = cuda::Driver::replace_loader({});
  cuda::Driver::replace_loader([&] {
    fake_table = loader();
    cuda::Driver driver = fake_table;
    driver.cuModuleLoadDataEx = load_and_arm;
    return driver;
  });
  const Options options{.engine = EngineKind::cuda, .isolation = Isolation::in_process, .slots = 8};
  const auto behind_the_compiler = [](uint64_t n) { return [n] { return after_loading = n; }; };
  REQUIRE(attempt(options, behind_the_compiler(0)).whole);
  const uint64_t all = attempt(options, behind_the_compiler(0)).asked_for;
  REQUIRE(all > 100);
  // Each costs a compilation, and most are the nodes of two free lists: the first, the last, and some
  // between.
  for (uint64_t n = 1; n <= all;
       n += n < 16 || n + 40 > all ? 1 : std::min<uint64_t>(all / 8, all - 40 - n + 1)) {
    const Attempt made = attempt(options, behind_the_compiler(n));
    INFO("allocation " << n << " of " << all << ", " << fake.live().text() << ", " << fake.reclaimed());
    CHECK(made.clean);
    CHECK(fake.live() == FakeDriver::Live{});
    CHECK(fake.reclaimed() == 0);
    CHECK(fake.misuse().empty());
  }
  CHECK(attempt(options, behind_the_compiler(0)).whole);
}
#endif
