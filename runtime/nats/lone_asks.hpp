// Which asks the thread that takes them waits for.
#pragma once

#include <atomic>
#include <cstdint>

namespace gyre::nats::detail {

/// Tells the asks of a client that asks one at a time from those of many at once. A lone ask is waited for by
/// the thread that takes it: waking another thread for the reply would take longer than a short handler. In a
/// burst that thread has the next ask to take meanwhile. Times are of lease_clock_ns(). Thread-safe; the
/// operations are relaxed, as they only choose a thread.
class LoneAsks {
 public:
  /// A lone ask comes at least so long after the one before, and is waited for at most as long again.
  static constexpr int64_t pause_ns = 50'000;
  /// So many asks after pauses end a burst. In a burst that fills the processors many asks come after a
  /// pause, because each wait delays the next ones.
  static constexpr uint32_t pauses_after_burst = 16;

  /// Notes an ask. Returns true if it is a lone one.
  bool note(int64_t now_ns) {
    const int64_t last_ns = last_ns_.exchange(now_ns, std::memory_order_relaxed);
    if (now_ns - last_ns <= pause_ns) {
      pauses_.store(0, std::memory_order_relaxed);
      return false;
    }
    const uint32_t pauses = pauses_.load(std::memory_order_relaxed);
    if (pauses >= pauses_after_burst) return true;
    pauses_.store(pauses + 1, std::memory_order_relaxed);
    return false;
  }
  /// Notes that a lone ask was waited for until now: what came during the wait came without a pause.
  void note_wait(int64_t now_ns) { last_ns_.store(now_ns, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> last_ns_{-pause_ns - 1};  // of the last ask, or of the wait for it
  std::atomic<uint32_t> pauses_{pauses_after_burst};
};

}  // namespace gyre::nats::detail
