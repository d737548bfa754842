// A driver whose n-th call fails: wraps whatever Driver::load() would have given, a GPU's or the fake.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>

#include <string>
#include <vector>

namespace gyre_test {

/// While one lives, Driver::load() gives the wrapped functions. One at a time, made and destroyed while no
/// runtime lives. Thread-safe.
class FailingDriver {
 public:
  FailingDriver();
  ~FailingDriver();
  FailingDriver(const FailingDriver&) = delete;
  FailingDriver& operator=(const FailingDriver&) = delete;

  /// Counts from 1 again, and fails call number `n` from here, once, with `code`, without making it; 0: none.
  void fail(size_t n, CUresult code);
  /// The names of the functions called since fail(), in order.
  std::vector<std::string> calls() const;
  /// The function whose call failed since fail(); empty if none did.
  std::string failed() const;
  /// Whether the calling thread made the call that failed. A runtime's watcher, a thread of its own, makes
  /// calls too.
  bool failed_on_this_thread() const;

 private:
  std::function<gyre::cuda::Driver()> wrapped_;
};

}  // namespace gyre_test
