// Every driver call that a runtime makes fails once, where it is made, on the fake driver.
#include <gyre/runtime/cuda/program.hpp>
#include <gyre/runtime/log.hpp>

#include <set>

#include "support/catch.hpp"
#include "support/fake_driver.hpp"
#include "support/fault_injection.hpp"
#include "support/rounds.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

bool releases(const std::string& function) {
  for (const char* const name :
       {"cuMemHostUnregister", "cuMemFree", "cuDestroyExternalMemory", "cuStreamDestroy", "cuModuleUnload",
        "cuDevicePrimaryCtxRelease", "cuCtxDestroy"}) {
    if (function == name) return true;
  }
  return false;
}

// Whether call `n` of a healthy life is one to fail: in the quick tier each function's first alone.
bool chosen(const std::vector<std::string>& calls, size_t all, size_t n) {
  const auto begin = calls.begin(), end = begin + ptrdiff_t(std::min(all, calls.size())),
             call = begin + ptrdiff_t(n) - 1;
  if (every_place() || call >= end) return true;
  return std::find(begin, call, *call) == call;
}

// `only`: sites of these functions alone; none: all.
void fail_every_call(const Options& options, Phase phase, const std::set<std::string>& only = {}) {
  const Life healthy = [&] {
    FakeDriver fake({probe_actors()});
    FailingDriver failing;
    return live_with_fault(failing, phase, 0, CUDA_SUCCESS, options);
  }();
  CHECK(healthy.error.empty());
  CHECK(healthy.answered);
  REQUIRE_FALSE(healthy.calls.empty());
  const size_t all = sites(phase, healthy);
  for (size_t n = 1; n <= all; ++n) {
    if (!chosen(healthy.calls, all, n)) continue;
    if (!only.empty() && !only.contains(healthy.calls[n - 1])) continue;
    FakeDriver fake({probe_actors()});
    FailingDriver failing;
    const CUresult code = n % 2 == 0 ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_ILLEGAL_ADDRESS;
    const std::string name = n % 2 == 0 ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR_ILLEGAL_ADDRESS";
    const Life life = live_with_fault(failing, phase, n, code, options);
    INFO("call " << n << ": " << life.failed << ", healthy: " << healthy.calls[n - 1] << "\n"
                 << life.error << "\n"
                 << fake.live().text() << "\n"
                 << fake.misuse());
    REQUIRE_FALSE(life.failed.empty());
    // A named error, or harmless.
    if (life.error.empty()) {
      CHECK(life.answered);
    } else {
      CHECK(life.error.find(name) != std::string::npos);
      CHECK(life.error.find(": ") != std::string::npos);
    }
    CHECK(life.balanced);
    CHECK_FALSE(life.stuck);
    // No leak, but for what could not be given back.
    CHECK(fake.misuse().empty());
    CHECK(fake.live().workers == 0);
    FakeDriver::Live left;
    if (life.failed == "cuDevicePrimaryCtxRelease") left.retains = 1;
    if (life.failed == "cuCtxDestroy") left.contexts = 1;
    CHECK(fake.live() == left);
    // Without a current context an owner's memory stays: a region, or the buffers' table and staging block.
    const size_t unreleased = life.failed == "cuCtxPushCurrent" ? 2 : releases(life.failed) ? 1 : 0;
    CHECK(fake.reclaimed() <= unreleased);
    // One that the watcher did not leave went with its thread.
    const bool left_current = life.failed == "cuCtxPopCurrent" && life.failed_here;
    CHECK(FakeDriver::current_contexts() == (left_current ? 1u : 0u));

    const Life next = live_with_fault(failing, Phase::launch, 0, CUDA_SUCCESS, options);
    CHECK(next.error.empty());
    CHECK(next.answered);
    CHECK(next.balanced);
    CHECK(fake.live() == left);
  }
}

// Lines that were logged while it lives, together.
class Logged {
 public:
  Logged() {
    set_logger([this](LogLevel level, std::string_view line) {
      if (level >= LogLevel::warning) (text_ += line) += '\n';
    });
  }
  ~Logged() { set_logger({}); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Calls of destructors, whose errors nobody can be thrown.
void log_every_release(const Options& options, Phase phase, std::set<std::string>& seen) {
  const Life healthy = [&] {
    FakeDriver fake({probe_actors()});
    FailingDriver failing;
    return live_with_fault(failing, phase, 0, CUDA_SUCCESS, options);
  }();
  for (size_t n = 1; n <= sites(phase, healthy); ++n) {
    const std::string& function = healthy.calls[n - 1];
    if (!releases(function) && function != "cuCtxPopCurrent") continue;
    FakeDriver fake({probe_actors()});
    FailingDriver failing;
    const Logged logged;
    const Life life = live_with_fault(failing, phase, n, CUDA_ERROR_UNKNOWN, options);
    INFO("call " << n << ": " << life.failed << "\n" << logged.text());
    REQUIRE(life.failed == function);
    CHECK(logged.text().find("(" + function + "): CUDA_ERROR_UNKNOWN (999)") != std::string::npos);
    seen.insert(function);
  }
}

const Options in_primary{.context = CudaContext::primary};
const std::set<std::string> primary_alone = {"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease"};
const std::set<std::string> unified_alone = {"cuMemAllocManaged", "advise", "cuMemFree"};

}  // namespace

TEST_CASE("a driver call that gives something back and fails is logged with its function and its error") {
  if (without_nvrtc()) return;
  std::set<std::string> seen;
  log_every_release({}, Phase::destruction, seen);
  log_every_release(in_primary, Phase::destruction, seen);
  CHECK(seen == std::set<std::string>{"cuCtxDestroy", "cuCtxPopCurrent", "cuDevicePrimaryCtxRelease",
                                      "cuMemFree", "cuMemHostUnregister", "cuModuleUnload",
                                      "cuStreamDestroy"});
}

TEST_CASE("a driver call that fails at launch is a named error, nothing leaks, and the next launch works") {
  if (without_nvrtc()) return;
  fail_every_call({}, Phase::launch);
  fail_every_call(in_primary, Phase::launch, primary_alone);
}

TEST_CASE("a driver call that fails in unified memory's launch is a named error, and nothing leaks") {
  if (without_nvrtc()) return;
  fail_every_call({.transport = TransportKind::unified}, Phase::launch, unified_alone);
}

TEST_CASE("a driver call that fails once under traffic does no harm") {
  if (without_nvrtc()) return;
  fail_every_call({}, Phase::traffic);
}

TEST_CASE("a driver call that fails while the runtime terminates does no harm") {
  if (without_nvrtc()) return;
  fail_every_call({}, Phase::terminate);
}

TEST_CASE(
    "a driver call that fails while the engine is destroyed leaves what could not be given back at most") {
  if (without_nvrtc()) return;
  fail_every_call({}, Phase::destruction);
  fail_every_call(in_primary, Phase::destruction, primary_alone);
  fail_every_call({.transport = TransportKind::unified}, Phase::destruction, unified_alone);
}
