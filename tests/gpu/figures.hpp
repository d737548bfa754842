// What the programs of the GPU tests share: checks that are counted, figures, and what they skip.
#pragma once

#include <fmt/format.h>
#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/runtime/cuda/program.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace gyre_test {

using Clock = std::chrono::steady_clock;
inline double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

inline std::atomic<uint64_t> wrong{0};
inline void expect(bool held, const std::string& what) {
  if (held) return;
  ++wrong;
  std::printf("WRONG: %s\n", what.c_str());
  std::fflush(stdout);
}

/// Prints a figure's line at once: what follows it may not end.
template <class... Values>
void say(fmt::format_string<Values...> format, Values&&... values) {
  std::puts(fmt::format(format, std::forward<Values>(values)...).c_str());
  std::fflush(stdout);
}

/// Times, in the unit of whoever adds them.
class Times {
 public:
  void add(double time) { times_.push_back(time); }
  void add(const std::vector<float>& times) { times_.insert(times_.end(), times.begin(), times.end()); }
  size_t count() const { return times_.size(); }
  /// Returns the time that `part` of all are below; 0 if there is none.
  double at(double part) const {
    if (times_.empty()) return 0;
    auto sorted = times_;
    const size_t index = std::min(sorted.size() - 1, size_t(part * double(sorted.size())));
    std::nth_element(sorted.begin(), sorted.begin() + long(index), sorted.end());
    return sorted[index];
  }
  double p50() const { return at(0.5); }
  double max() const { return at(1); }

 private:
  std::vector<double> times_;
};

/// True if $GYRE_ENGINE is tests' fake-gyre-engine, which needs no GPU. Its times say nothing.
inline bool on_fake_driver() {
  const char* const engine = std::getenv("GYRE_ENGINE");
  return engine != nullptr && std::string(engine).find("fake-gyre-engine") != std::string::npos;
}

/// Returns why nothing can be shown here; empty if all can.
inline std::string why_skipped() {
  if (on_fake_driver())
    return gyre::cuda::nvrtc_available() ? "" : "the fake driver needs NVRTC, which is not here";
  return gyre::cuda::Driver::device_count() > 0 ? "" : "no CUDA device here";
}

}  // namespace gyre_test
