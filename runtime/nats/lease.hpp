// The lease of a node, which its threads ask before they serve.
#pragma once

#include <ctime>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace gyre::nats::detail {

/// Returns nanoseconds of a clock that also runs while the machine sleeps: a lease ends then as well.
inline int64_t lease_clock_ns() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// Says until when the node may serve, and in which life. One thread renews it; any thread asks.
class Lease {
 public:
  bool valid() const { return lease_clock_ns() < end_ns_.load(std::memory_order_acquire); }
  /// Returns true while no other node can have taken this node's shards over, also after the lease has ended.
  /// If the servers lose the bucket, another node may have: see is_confirmed().
  bool is_last() const { return lease_clock_ns() < last_until_ns_.load(std::memory_order_relaxed); }
  /// @param from_ns         by lease_clock_ns(): before the renewal was sent
  /// @param clock_error_ns  other nodes wait so long after the lease
  void renew(int64_t from_ns, int64_t lease_ns, int64_t clock_error_ns) {
    last_until_ns_.store(from_ns + lease_ns + clock_error_ns / 2, std::memory_order_relaxed);
    // Release, paired with the load: who finds the lease valid sees what was done before it was renewed.
    end_ns_.store(from_ns + lease_ns * 9 / 10, std::memory_order_release);
  }
  void end() { end_ns_.store(0, std::memory_order_release); }
  /// Returns true if confirm() was called since the connection was last lost: the node's entry is in the
  /// bucket, or the servers do not say. Until then another node may own the shards, since the servers may
  /// have lost the bucket.
  /// @param disconnects  ConnectionEvents::disconnects, now
  bool is_confirmed(uint64_t disconnects) const {
    return confirmed_at_.load(std::memory_order_relaxed) == disconnects;
  }
  /// @param disconnects  as it was before the bucket was asked
  void confirm(uint64_t disconnects) { confirmed_at_.store(disconnects, std::memory_order_relaxed); }
  /// Returns the node's life, in which messages are handled once; 0: it has none.
  uint64_t life() const { return life_.load(std::memory_order_acquire); }
  // Release, paired with the load: who sees the life finds the node as it was when the life began.
  void set_life(uint64_t life) { life_.store(life, std::memory_order_release); }

 private:
  std::atomic<int64_t> end_ns_{0};
  std::atomic<int64_t> last_until_ns_{0};
  std::atomic<uint64_t> life_{0};
  std::atomic<uint64_t> confirmed_at_{0};
};

}  // namespace gyre::nats::detail
