// The benchmarks of the Savina suite (Imam and Sarkar, AGERE! 2014) that gyre-bench savina runs.
#pragma once

#include <gyre/gyre.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gyre::bench::savina {

/// The size of one instance. What the numbers count is the benchmark's to say; 0 where they count nothing.
struct Size {
  uint32_t messages = 0;
  uint32_t actors = 0;
  uint32_t under_way = 0;  ///< requests of one actor that are not answered yet, at most
};

/// Limits Size::under_way where it can be chosen: a handler sends so many messages at most.
inline constexpr uint32_t most_under_way = 31;

/// One benchmark: all that is the same whatever runs it, and its actors on Gyre.
struct Benchmark {
  const char* name;
  Size full;                ///< the suite's default
  bool has_window = false;  ///< Size::under_way can be chosen

  /// Returns the size of so many percent of the full one's messages.
  Size (*scaled)(const Size& full, uint32_t percent);
  std::string (*text)(const Size&);
  /// Returns the messages between actors of one instance, which rates count. Messages that an implementation
  /// needs besides, as to go on sending, are not counted.
  uint64_t (*messages)(const Size&);
  /// Returns the result of an instance. Computed by loops, without actors.
  uint64_t (*expected)(const Size&, uint64_t instance);

  ActorSet (*actors)();
  /// Returns the actors of one type that an instance has, at most.
  uint64_t (*actors_of_a_type)(const Size&);
  /// Returns the messages of an instance that may wait at one time, where Options::spill_bytes of the default
  /// may be too few. None: they are enough.
  uint64_t (*most_waiting)(const Size&) = nullptr;
  /// Lowers `under_way` to what a launch with `options` has room for. Returns why it has no room at all, else
  /// an empty string. None: it always has.
  std::string (*fit)(Size&, uint64_t instances, const Options& options) = nullptr;
  /// Tells the first actor of each instance to begin.
  TellManyResult (*start)(Client&, uint64_t instances, const Size&);
};

/// In the order of the suite.
const std::vector<Benchmark>& benchmarks();

/// What one run of a benchmark gave.
struct Outcome {
  double seconds = 0;                 ///< from before the first message to the result of the last instance
  std::vector<uint64_t> values = {};  ///< results, one an instance
  std::string refused = {};           ///< not empty: why it was not run
};

/// Thrown where the user interrupts a run.
struct Interrupted {};

/// Runs `instances` instances side by side on Gyre's engine. Launching is not part of the time. Refused where
/// the launch is. Throws Error where messages are lost or it takes longer than `options.timeout`.
Outcome run_on_engine(const Benchmark& benchmark, Size size, uint32_t instances, Options options);

/// Computes the results of so many instances, by several threads.
std::vector<uint64_t> expected_values(const Benchmark& benchmark, const Size& size, uint32_t instances);
/// Throws Error where a result is not the expected one. `engine`: what errors call it.
void check_values(const Benchmark& benchmark, const std::string& engine,
                  const std::vector<uint64_t>& expected, const std::vector<uint64_t>& values);

}  // namespace gyre::bench::savina
