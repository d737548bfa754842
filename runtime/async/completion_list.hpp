// What is ready to be delivered, in the order in which it became so. Intrusive: adding allocates nothing.
#pragma once

#include <gyre/runtime/system/futex.hpp>

#include <atomic>

namespace gyre::detail {

/// Something to be delivered once. Whoever owns it keeps it until it was delivered.
struct Deliverable {
  Deliverable* next = nullptr;              // the list's
  void (*deliver)(Deliverable&) = nullptr;  // may throw; may end the Deliverable's life
};

/// Any thread adds, one at a time takes all, and may sleep until there is something. Lock-free; adding never
/// waits.
class CompletionList {
 public:
  void push(Deliverable& added) noexcept {
    Deliverable* newest = newest_.load(std::memory_order_relaxed);
    do {
      added.next = newest;
    } while (
        !newest_.compare_exchange_weak(newest, &added, std::memory_order_seq_cst, std::memory_order_relaxed));
    wake();
  }
  /// Wakes who sleeps for it, if anybody does: also for what the caller stored elsewhere before this, by a
  /// seq_cst operation, and the sleeper checks between prepare_sleep() and sleep().
  void wake() noexcept {
    if (sleeping_.load(std::memory_order_seq_cst) == 0) [[likely]]
      return;
    if (sleeping_.exchange(0, std::memory_order_seq_cst) != 0) futex_wake(whole(sleeping_));
  }
  /// All that was added, the oldest first, linked by `next`; null if there is none.
  Deliverable* take_all() noexcept {
    if (newest_.load(std::memory_order_relaxed) == nullptr) return nullptr;
    Deliverable* oldest = nullptr;
    for (Deliverable* taken = newest_.exchange(nullptr, std::memory_order_acq_rel); taken != nullptr;) {
      Deliverable* const older = taken->next;
      taken->next = oldest;
      oldest = taken;
      taken = older;
    }
    return oldest;
  }

  /// By who takes: prepare_sleep(), a check whether there is anything to do, sleep() if not, end_sleep().
  void prepare_sleep() noexcept { sleeping_.store(1, std::memory_order_seq_cst); }
  bool empty() const noexcept { return newest_.load(std::memory_order_seq_cst) == nullptr; }
  /// Until wake(), at `until_ns` of the steady clock the latest; may return early. True where it was woken.
  bool sleep(int64_t until_ns) noexcept {
    futex_wait(whole(sleeping_), 1, until_ns);
    return sleeping_.load(std::memory_order_seq_cst) == 0;
  }
  void end_sleep() noexcept { sleeping_.store(0, std::memory_order_seq_cst); }

 private:
  std::atomic<Deliverable*> newest_{nullptr};
  std::atomic<uint32_t> sleeping_{0};  // who takes; a futex
};

}  // namespace gyre::detail
