// How every row is measured: the same loop, the same clock, one message in flight.
#pragma once

#include <gyre/runtime/options.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common_options.hpp"
#include "gaps.hpp"
#include "histogram.hpp"
#include "samples.hpp"

namespace gyre::bench {

/// What all rows of a run share.
struct Plan {
  Options options;
  uint64_t messages = 100'000;      ///< counted, a row
  std::optional<int> own_cpu;       ///< the measuring thread's, while a row is measured; none: not pinned
  std::optional<int> baseline_cpu;  ///< of a baseline's second thread; none: not pinned
  bool random_gaps = false;         ///< before each message a pause of 0 to 3 µs, which no sample holds
  uint32_t pollers = 1;             ///< warps that poll for `raw`, 1 or 2

  uint64_t warm_up() const { return (messages + 9) / 10; }
};

/// What a message asks for: rows of one work are compared with each other.
enum class Work { echo, vector_add, inference };
inline const char* name(Work work) {
  return work == Work::echo ? "echo" : work == Work::vector_add ? "vector-add" : "inference";
}

/// Which CPU a round was measured on, and how quick that was: see arithmetic_ns().
struct RoundCpu {
  int cpu = 0;
  int baseline_cpu = 0;  ///< where a baseline's second thread was
  uint64_t arithmetic_before_ns = 0;
  uint64_t arithmetic_after_ns = 0;
};

/// One line of the table.
struct Row {
  std::string name = {};
  std::string transport = {};  ///< where its messages lie: "pinned", "heap", "none"
  uint32_t size = 0;           ///< bytes of a message's body; 0: it has none
  std::string wait = {};       ///< how it waits: "spin", "polite", "driver"
  bool checked = true;         ///< every word of every reply was
  std::string remark = {};
  Work work = Work::echo;
  bool random_gaps = false;
  uint32_t workers = 1;              ///< live meanwhile
  Summary summary = {};              ///< no messages: the row was interrupted
  Histogram histogram = {};          ///< of the samples of all rounds
  std::vector<Summary> rounds = {};  ///< of every round, in order; `summary` is the median one's by p50
  std::vector<RoundCpu> cpus = {};   ///< of every round, where its CPU was chosen for it; else empty

  /// Takes the samples of a round.
  void record(std::vector<uint64_t> samples_ns) {
    for (const uint64_t sample : samples_ns) histogram.add(sample);
    summary = summarise(std::move(samples_ns));
    rounds.push_back(summary);
  }
};

/// Calls prepare() and round_trip() for the plan's messages, after a tenth as many that are not counted, and
/// times each round_trip() alone: from before its request is written until its reply has been checked. What
/// they throw passes through. Empty where the user interrupted it.
template <class Prepare, class RoundTrip>
std::vector<uint64_t> measure(const Plan& plan, Prepare&& prepare, RoundTrip&& round_trip) {
  using Clock = std::chrono::steady_clock;
  std::vector<uint64_t> samples(plan.messages);
  RandomGaps gaps;
  const auto one = [&]() -> uint64_t {
    prepare();
    if (plan.random_gaps) gaps.wait();
    const auto begin = Clock::now();
    round_trip();
    return uint64_t((Clock::now() - begin) / std::chrono::nanoseconds(1));
  };
  for (uint64_t i = 0; i < plan.warm_up(); ++i) {
    if (tools::interrupt_requested()) return {};
    one();
  }
  for (uint64_t& sample : samples) {
    if (tools::interrupt_requested()) return {};
    sample = one();
  }
  return samples;
}

/// What one reading of the clock costs: the mean over many, in nanoseconds. Each sample of a row holds about
/// one.
inline double clock_cost_ns() {
  using Clock = std::chrono::steady_clock;
  constexpr int readings = 100'000;
  const auto begin = Clock::now();
  auto last = begin;
  for (int i = 0; i < readings; ++i) last = Clock::now();
  return std::chrono::duration<double, std::nano>(last - begin).count() / readings;
}

}  // namespace gyre::bench
