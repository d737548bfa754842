// Finds workers whose handler does not return.
#pragma once

#include <gyre/runtime/core/clock.hpp>
#include <gyre/runtime/core/host_side.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace gyre::detail {

/// A worker stores its heartbeat each millisecond between messages, so a heartbeat that stands still while
/// the worker has work is a handler that has not returned. One thread's.
class StallWatch {
 public:
  /// @param host  must outlive this
  explicit StallWatch(const HostSide& host) : host_(host), seen_(host.layout.workers) {}

  /// Returns a worker that has been in one handler for Options::stall_after; nothing if there is none, or if
  /// that is 0. Call it every few milliseconds.
  std::optional<uint32_t> find() {
    const int64_t limit_ns = std::chrono::nanoseconds(host_.options.stall_after).count();
    if (limit_ns == 0) return std::nullopt;
    const int64_t now_ns = host_now_ns();
    for (uint32_t worker = 0; worker < host_.layout.workers; ++worker) {
      const HostBridge& bridge = host_.bridges[worker];
      // Relaxed: a number alone, as WorkerReport::publish_if_due() stores it.
      const uint64_t heartbeat_ns = Memory::load_relaxed(bridge.bridge().worker_line->heartbeat_ns);
      Seen& seen = seen_[worker];
      // Of messages between actors the host knows nothing; idle workers have a heartbeat, too.
      const bool may_have_work = host_.actors.most_sent() != 0 || bridge.may_have_work();
      if (heartbeat_ns != seen.heartbeat_ns || !may_have_work) {
        seen = {heartbeat_ns, now_ns};
      } else if (now_ns - seen.since_ns >= limit_ns) {
        return worker;
      }
    }
    return std::nullopt;
  }

 private:
  struct Seen {
    uint64_t heartbeat_ns = 0;
    int64_t since_ns = INT64_MAX;
  };

  const HostSide& host_;
  std::vector<Seen> seen_;  // by worker
};

}  // namespace gyre::detail
