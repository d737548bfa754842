// Stats in a file, for other processes of the same user to read while the runtime works.
#pragma once

#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/stats.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace gyre {

/// What such a file said.
struct PublishedStats {
  uint64_t pid = 0;
  uint64_t interval_ms = 0;    ///< from one time that it is written to the next
  double age_s = 0;            ///< since it was written
  bool process_there = false;  ///< whoever writes it has it open (where locks do not work: its pid is there)
  Stats stats;

  /// The process is gone, or has not written for ten intervals and a second.
  bool stale() const { return !process_there || age_s > 1 + 10e-3 * double(interval_ms); }
};

/// The folder of the files: $GYRE_STATS_DIR, or $XDG_RUNTIME_DIR/gyre, or /tmp/gyre-UID.
std::string stats_folder();
/// The files there, oldest first; empty where the folder is not there, or not this user's alone to write.
std::vector<std::string> stats_files();
/// Reads one. Throws Error: it is not there, not this user's, of another version or damaged.
PublishedStats read_stats_file(const std::string& path);

namespace detail {

/// Bytes that read_stats() understands.
std::vector<std::byte> write_stats(const Stats& stats);
/// Throws Error where they are none.
Stats read_stats(std::span<const std::byte> bytes);

/// Writes stats to a file of its own, with a thread of its own, until it is destroyed; then the file is
/// removed. In a forked child it leaves the parent's alone. At its start it removes the files of processes
/// that are gone.
class StatsPublisher {
 public:
  /// Null, and a warning in the log, where there can be no such file.
  static std::unique_ptr<StatsPublisher> start(std::function<Stats()> read,
                                               std::chrono::milliseconds interval) noexcept;
  ~StatsPublisher();
  StatsPublisher(const StatsPublisher&) = delete;
  StatsPublisher& operator=(const StatsPublisher&) = delete;

  const std::string& path() const { return path_; }

 private:
  StatsPublisher(std::function<Stats()> read, std::chrono::milliseconds interval);
  bool write();
  void run();

  const ForkGuard fork_;
  const std::function<Stats()> read_;
  const std::chrono::milliseconds interval_;
  int file_ = -1;
  std::string path_;
  struct Thread {
    std::mutex mutex;  // of ended
    std::condition_variable end;
    bool ended = false;
    std::thread thread;
  };
  // Apart, so that a forked child, which has no such thread, can leave it as it is.
  std::unique_ptr<Thread> thread_ = std::make_unique<Thread>();
};

}  // namespace detail
}  // namespace gyre
