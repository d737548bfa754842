// Every driver call that a runtime makes fails once, where it is made, on the real driver. What leaks cannot
// be counted here as on the fake; but every launch after a failure works, and the device's memory comes back.
#include "support/fault_injection.hpp"

#include "support/catch.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

size_t free_device_memory() {
  const cuda::Driver driver = cuda::Driver::load();
  const cuda::Context context(driver, 0);
  const cuda::Context::Current current(context);
  size_t free = 0, total = 0;
  driver.check(driver.cuMemGetInfo(&free, &total), "reading the device's free memory");
  return free;
}

void fail_every_call(const Options& options, Phase phase) {
  FailingDriver failing;
  const Life healthy = live_with_fault(failing, phase, 0, CUDA_SUCCESS, options);
  REQUIRE(healthy.error.empty());
  REQUIRE(healthy.answered);
  const size_t free_before = free_device_memory();
  for (size_t n = 1; n <= sites(phase, healthy); ++n) {
    const Life life = live_with_fault(failing, phase, n, CUDA_ERROR_UNKNOWN, options);
    INFO("call " << n << ": " << life.failed << "\n" << life.error);
    REQUIRE_FALSE(life.failed.empty());
    if (life.error.empty()) {
      CHECK(life.answered);
    } else {
      CHECK(life.error.find("CUDA_ERROR_UNKNOWN") != std::string::npos);
    }
    CHECK(life.balanced);
    CHECK_FALSE(life.stuck);
    const Life next = live_with_fault(failing, Phase::launch, 0, CUDA_SUCCESS, options);
    CHECK(next.error.empty());
    CHECK(next.answered);
  }
  // A few contexts that could not be released, or a module, are a few megabytes at most.
  CHECK(free_device_memory() + (size_t(1) << 30) > free_before);
}

}  // namespace

TEST_CASE("each driver call of a launch fails once: a named error, and the next launch works", "[gpu]") {
  fail_every_call({}, Phase::launch);
}

TEST_CASE("each driver call of a launch on unified memory fails once, and the next launch works", "[gpu]") {
  fail_every_call({.transport = TransportKind::unified}, Phase::launch);
}

TEST_CASE("driver calls under traffic and in terminate fail once and do no harm", "[gpu]") {
  fail_every_call({}, Phase::traffic);
  fail_every_call({}, Phase::terminate);
}

TEST_CASE("each driver call of an engine's end fails once, and the next launch works", "[gpu]") {
  fail_every_call({}, Phase::destruction);
}
