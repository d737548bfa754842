// Stats in a file, for other processes of the same user to read while the runtime works.
#pragma once

#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/stats.hpp>
#include <gyre/runtime/telemetry/actor_requests.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace gyre {

/// The content of a stats file.
struct PublishedStats {
  uint64_t pid = 0;
  uint64_t interval_ms = 0;    ///< time between two writes
  double age_s = 0;            ///< since the last write
  bool process_there = false;  ///< its writer has it open (without file locks: the pid exists)
  Stats stats;

  /// Returns true if the process is gone, or has not written for ten intervals and a second.
  bool stale() const { return !process_there || age_s > 1 + 10e-3 * double(interval_ms); }
};

/// Returns the folder of the files: $GYRE_STATS_DIR, or $XDG_RUNTIME_DIR/gyre, or /tmp/gyre-UID.
std::string stats_folder();
/// Lists the files, oldest first; empty if there is no folder, or if other users may write to it.
std::vector<std::string> stats_files();
/// Reads one file. Throws Error if it is missing, damaged, of another user or of another version.
PublishedStats read_stats_file(const std::string& path);

namespace detail {

/// Returns the stats as bytes for read_stats().
std::vector<std::byte> write_stats(const Stats& stats);
/// Reads the bytes of write_stats(). Throws Error if they are damaged.
Stats read_stats(std::span<const std::byte> bytes);

/// Writes stats to its own file on its own thread until it is destroyed, then removes the file. The thread
/// also answers other processes that list actors. In a forked child it leaves the parent's file alone. The
/// constructor removes the files of processes that are gone.
class StatsPublisher {
 public:
  /// Starts to publish. Returns null and logs a warning if the file cannot be made.
  /// @param list  lists actors; it must not take much longer than `interval`. Empty: no process can ask
  static std::unique_ptr<StatsPublisher> start(std::function<Stats()> read,
                                               std::chrono::milliseconds interval,
                                               ActorRequests::List list = {}) noexcept;
  ~StatsPublisher();
  StatsPublisher(const StatsPublisher&) = delete;
  StatsPublisher& operator=(const StatsPublisher&) = delete;

  const std::string& path() const { return path_; }

 private:
  StatsPublisher(std::function<Stats()> read, std::chrono::milliseconds interval, ActorRequests::List list);
  bool write();
  void end_files() noexcept;
  bool wait_until(std::chrono::steady_clock::time_point time);
  void run();

  const ForkGuard fork_;
  const std::function<Stats()> read_;
  const std::chrono::milliseconds interval_;
  int file_ = -1;
  std::string path_;
  struct Thread {
    std::unique_ptr<ActorRequests> requests;
    int end = -1;  // an eventfd: readable once the thread is to end
    std::thread thread;
  };
  // Allocated separately: a forked child, which does not have the thread, leaves the object as it is.
  std::unique_ptr<Thread> thread_ = std::make_unique<Thread>();
};

}  // namespace detail
}  // namespace gyre
