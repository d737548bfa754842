// Several threads that begin their counted work together.
#pragma once

#include <algorithm>
#include <barrier>
#include <chrono>
#include <exception>
#include <thread>
#include <vector>

namespace gyre::bench {

/// Runs `warm_up(t)` and then, once all are there, `work(t)` in `count` threads, at least 1, t from 0;
/// returns the seconds from then until the last had finished. Waits for all; rethrows the first exception of
/// the first thread that has one.
template <class WarmUp, class Work>
double run_together(uint32_t count, WarmUp&& warm_up, Work&& work) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::exception_ptr> failures(count);
  std::vector<Clock::time_point> begins(count), ends(count);  // each thread's own: nobody starts a late clock
  std::barrier barrier{std::ptrdiff_t(count)};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      const auto keeping_failures = [&](auto&& part) {
        try {
          if (!failures[t]) part(t);
        } catch (...) {
          failures[t] = std::current_exception();
        }
      };
      keeping_failures(warm_up);
      barrier.arrive_and_wait();
      begins[t] = Clock::now();
      keeping_failures(work);
      ends[t] = Clock::now();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  const auto begin = *std::min_element(begins.begin(), begins.end());
  const auto end = *std::max_element(ends.begin(), ends.end());
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace gyre::bench
