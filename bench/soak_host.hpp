// The host's side of gyre-bench soak: producers and checks over Gyre's own host bridges.
#pragma once

#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/core/host_bridge.hpp>

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace gyre::bench {

/// What is sent.
struct SoakPlan {
  uint64_t messages = 1'000'000;
  uint32_t threads = 2;                          ///< producers; each sends to every worker
  uint32_t least_packets = 4, most_packets = 4;  ///< a message; 3 or more, for its envelope
  std::chrono::milliseconds timeout{5000};       ///< without any message coming back
};

/// What came of it, once run() has returned: every message came back once, whole, and in the order of its
/// sender.
struct SoakFigures {
  double seconds = 0;
  uint64_t messages = 0;
  uint64_t packets = 0;   ///< one way
  uint64_t checksum = 0;  ///< of all bodies' words, sent and received alike
};

/// Sends messages whose size and content follow from sender, worker and number, takes each as it comes back,
/// and compares every word. By HostBridge: claims, prepaid replies, and drains by whichever thread comes.
class SoakHost {
 public:
  /// One Bridge a worker, whose memory must outlive this. `bar`: what each reads of the host instead; empty
  /// where none does.
  SoakHost(const std::vector<Bridge>& bridges, const SoakPlan& plan, const std::vector<BarBridge>& bar = {});

  /// Blocks until all is sent and back. `look()` is called by this thread every few milliseconds; what it
  /// throws ends the run. Throws Error for anything lost, doubled, torn or out of order, by its number.
  SoakFigures run(const std::function<void()>& look);

  /// Messages that came back so far. Any thread.
  uint64_t received() const;
  /// The producers' handles while run() runs, for whoever interrupts them; empty otherwise. Any thread.
  std::vector<pthread_t> producers() const;

 private:
  // The checks of one worker's replies: used by whoever drains it, one thread at a time.
  struct alignas(128) Received {
    std::vector<uint64_t> next;  // by producer
    uint64_t checksum = 0;
    std::atomic<uint64_t> messages{0};
  };

  void produce(uint32_t producer);
  void drain(uint32_t worker);
  void check(uint32_t worker, const uint32_t* payload) noexcept;
  void fail(std::string text) noexcept;
  bool over() const { return failed_.load(std::memory_order_relaxed); }
  uint32_t packets_of(uint64_t number) const;

  const SoakPlan plan_;
  std::deque<HostBridge> bridges_;
  std::deque<Received> received_;
  std::vector<uint64_t> sent_checksums_, sent_packets_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;  // of what follows
  std::string failure_;
  std::vector<pthread_t> producers_;
};

}  // namespace gyre::bench
