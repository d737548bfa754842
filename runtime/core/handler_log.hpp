// Takes the lines that handlers log from the region to the program's log.
#pragma once

#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/core/host_bridge.hpp>

#include <array>
#include <atomic>
#include <deque>
#include <string>
#include <vector>

namespace gyre::detail {

/// Thread-safe, waits for nothing. What lies in the region is checked: a damaged entry is counted.
class HandlerLog {
 public:
  /// `bridges` and `actors` must outlive this; a bridge for each worker is there before the first call.
  HandlerLog(const std::deque<HostBridge>& bridges, const ActorSet& actors, uint32_t workers)
      : bridges_(bridges), actors_(actors), taken_(workers) {}

  /// Logs the lines that are there, at most LogEntry::room of each worker. Does nothing while another thread
  /// does. Costs a load a worker where there are none.
  void take() noexcept;
  /// Returns whether there are lines to take. Costs a load a worker.
  bool has_lines() const noexcept;
  /// Returns the lines that were logged.
  uint64_t logged() const { return logged_.load(std::memory_order_relaxed); }  // a number alone
  /// Returns the lines that found no room, and the damaged ones.
  uint64_t dropped() const;

  using Words = std::array<uint64_t, LogEntry::words>;
  /// Returns the text of an entry; empty if it is damaged.
  static std::string text_of(const Words& entry);

 private:
  void log(uint32_t worker, const Words& entry);

  const std::deque<HostBridge>& bridges_;
  const ActorSet& actors_;
  std::vector<uint64_t> taken_;  // of each worker; the taking thread's
  std::atomic<bool> taking_{false};
  std::atomic<uint64_t> logged_{0}, damaged_{0};
};

}  // namespace gyre::detail
