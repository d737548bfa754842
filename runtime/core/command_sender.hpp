// The host's commands to one worker, and the time that the worker expires messages by.
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/runtime/cpu/doorbell.hpp>

#include <atomic>
#include <mutex>

namespace gyre {

/// Thread-safe, lock-free. Command and time share one word: a change of one stores both.
class CommandSender {
 public:
  /// `bridge`, `bar`, `bell`: as HostBridge's.
  CommandSender(const Bridge& bridge, const BarBridge& bar, Doorbell* bell)
      : line_(bar.command_line != nullptr ? bar.command_line : bridge.command_line),
        over_bar_(bar.command_line != nullptr),
        worker_line_(bridge.worker_line),
        bell_(bell) {}

  /// Commands the worker; returns what the worker will acknowledge. Nothing follows Command::stop: a later
  /// command repeats the stop.
  CommandWord command(Command command) {
    return command_next([command](Command) { return command; });
  }
  /// Repeats the last command, with a new number.
  CommandWord command_again() {
    return command_next([](Command last) { return last; });
  }
  /// Marks the time as never due: the worker reads the host's clock itself.
  void never_publish_time() { published_time_ns_.store(INT64_MAX, std::memory_order_relaxed); }
  /// Publishes the time to the worker, which expires messages by this time alone. Does nothing where a later
  /// time was published, or another thread is publishing one. `now_ns`: the host's clock, now or before.
  void publish_time(int64_t now_ns) {
    const std::unique_lock lock(time_mutex_, std::try_to_lock);
    if (!lock || now_ns <= published_time_ns()) return;
    change_line([now_ns](uint64_t last) {
      return CommandLine::both({uint32_t(last)}, uint32_t(uint64_t(now_ns) / 1000));
    });
    // Pairs with published_time_ns(): the worker reads a message that is sent after this after the time.
    published_time_ns_.store(now_ns, std::memory_order_release);
  }
  /// Returns the last published time. Pairs with the store in publish_time().
  int64_t published_time_ns() const { return published_time_ns_.load(std::memory_order_acquire); }
  /// Returns the last command that the worker obeys. Pairs with the worker's store, before which it stored
  /// its clock.
  CommandWord acknowledged() const { return {uint32_t(Memory::load_acquire(worker_line_->acknowledged))}; }
  /// True if the worker obeys `word` or a later command.
  bool obeys(CommandWord word) const {
    return int32_t((acknowledged().word >> 8 << 8) - (word.word >> 8 << 8)) >= 0;
  }

 private:
  template <class Choose>
  CommandWord command_next(Choose&& choose) {
    return {uint32_t(change_line([&](uint64_t line) {
      const CommandWord last{uint32_t(line)};
      const Command before = last.command();
      return CommandLine::both(last.next(before == Command::stop ? before : choose(before)),
                               CommandLine::host_us_in(line));
    }))};
  }
  // Changes CommandLine::command to `change(last)`, and returns it.
  template <class Change>
  uint64_t change_line(Change&& change) {
    // Acquire and release pair with each other: threads that command see each other's last line.
    uint64_t last = commanded_.load(std::memory_order_acquire), changed;
    do {
      changed = change(last);
    } while (!commanded_.compare_exchange_weak(last, changed, std::memory_order_acq_rel,
                                               std::memory_order_acquire));
    // Another thread's later change may have been stored before this one: it is stored again then. Of two
    // threads at least one sees the other's, by the fence between its store and its load.
    for (uint64_t sent = changed;;) {
      store_line(sent);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      const uint64_t newest = commanded_.load(std::memory_order_acquire);
      if (newest == sent) return changed;
      sent = newest;
    }
  }
  void store_line(uint64_t command) {
    Memory::store_release(line_->command, command);  // pairs with the worker's load of its command line
    if (over_bar_) Memory::store_fence();
    if (bell_ != nullptr) bell_->ring();
  }

  CommandLine* const line_;
  const bool over_bar_;
  const WorkerLine* const worker_line_;
  Doorbell* const bell_;
  std::atomic<uint64_t> commanded_{0};                     // the last CommandLine::command
  std::atomic<int64_t> published_time_ns_{INT64_MIN / 2};  // written each 2 ms at the most
  std::mutex time_mutex_;                                  // of publish_time; tried, never waited for
};

}  // namespace gyre
