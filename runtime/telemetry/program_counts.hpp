// Counts of the program's own in a runtime's stats.
#pragma once

#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/stats.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gyre {

namespace detail {

/// Returns what is wrong with the names, help texts or number of a section's counts, and what to do; empty if
/// they are good. Whoever reads counts of another process asks this first.
std::string problem_with(const CountSection& section);

/// The sections that the program has added to a runtime's stats. Thread-safe.
class ProgramCounts {
 public:
  using Read = std::function<void(std::span<uint64_t>)>;
  static constexpr size_t most_sections = 64;

  /// Adds a section, and returns the number by which it is removed. Throws Error.
  uint64_t add(CountSection section, Read read);
  /// Removes a section. Waits while another thread reads the counts. Does nothing in a forked child, where a
  /// thread that does not exist may hold the lock.
  void remove(uint64_t number) noexcept;
  /// Reads all sections in the order in which they were added. Leaves out one whose function throws.
  std::vector<CountSection> read();

 private:
  struct Added {
    uint64_t number;
    CountSection section;
    Read read;
    bool warned = false;
  };

  ForkGuard fork_;
  std::mutex mutex_;  // held while the functions are called
  std::vector<Added> added_;
  uint64_t next_ = 1;
};

}  // namespace detail

/// Keeps counts in a runtime's stats: Runtime::add_counts() returns it. The destructor removes them.
/// Move-only. May outlive the Runtime.
class AddedCounts {
 public:
  /// Makes a guard of no counts.
  AddedCounts() = default;
  AddedCounts(std::shared_ptr<detail::ProgramCounts> counts, uint64_t number)
      : counts_(std::move(counts)), number_(number) {}
  AddedCounts(AddedCounts&&) noexcept = default;
  AddedCounts& operator=(AddedCounts&& other) noexcept;
  /// Calls remove().
  ~AddedCounts() { remove(); }

  /// Removes the counts from the stats. Afterwards their function is not called, and no call is on its way:
  /// blocks while another thread reads the stats, as long as the functions of all counts take. Do not call it
  /// in such a function, or with a lock that such a function takes.
  void remove() noexcept;

 private:
  std::shared_ptr<detail::ProgramCounts> counts_;
  uint64_t number_ = 0;
};

}  // namespace gyre
