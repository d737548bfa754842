// Copies within host memory by several threads: one alone does not reach the memory's speed.
#pragma once

#include <gyre/bridge/fork.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace gyre::detail {

/// Copies and zeroes large blocks with threads that help the calling one. They start at the first large
/// block. Between blocks they spin for some microseconds, then sleep. Thread-safe: while one thread has the
/// helpers, the others work alone.
class CopyThreads {
 public:
  /// Blocks from this size on are worth a helper: sharing one takes some 2 µs.
  static constexpr size_t worth_helping = size_t(192) << 10;

  /// Returns those of this process; made by the first who asks, ended with the last who keeps them.
  static std::shared_ptr<CopyThreads> shared();
  /// @param helpers  threads beside the calling one
  explicit CopyThreads(uint32_t helpers) : most_helpers_(helpers) {}
  ~CopyThreads();
  CopyThreads(const CopyThreads&) = delete;
  CopyThreads& operator=(const CopyThreads&) = delete;

  /// Copies as std::memcpy does. Waits for a helper only while it copies its last part.
  void copy(void* to, const void* from, size_t bytes) noexcept;
  /// Zeroes as std::memset does, likewise.
  void zero(void* to, size_t bytes) noexcept;

 private:
  struct Job {
    char* to = nullptr;
    const char* from = nullptr;  // null: zeroes
    size_t bytes = 0;
    size_t part_bytes = 0;
    std::atomic<size_t> next{0};  // byte that nobody has taken
    void work() noexcept;
  };

  void run(void* to, const void* from, size_t bytes) noexcept;
  void start_helpers() noexcept;
  void help() noexcept;

  const ForkGuard fork_;
  const uint32_t most_helpers_;
  std::mutex mutex_;  // held by the thread that has the helpers
  Job job_;           // its thread writes it while open_ is false and nobody is inside
  // A helper enters by inside_ += 1, then reads open_. The job's thread ends it by open_ = false, then reads
  // inside_. All four are sequentially consistent: either the helper finds the job closed, or is waited for.
  std::atomic<bool> open_{false};
  std::atomic<uint32_t> inside_{0};
  std::atomic<uint32_t> jobs_{0};      // so far; helpers sleep on it
  std::atomic<uint32_t> sleeping_{0};  // helpers
  std::atomic<bool> ending_{false};
  std::vector<std::thread> helpers_;  // by mutex_
};

}  // namespace gyre::detail
