// A list of deliverables in the order in which they were added. Intrusive: adding allocates nothing.
#pragma once

#include <gyre/runtime/system/futex.hpp>

#include <atomic>

namespace gyre::detail {

/// Holds what is delivered once. Its owner keeps it alive until then.
struct Deliverable {
  Deliverable* next = nullptr;              // used by CompletionList
  void (*deliver)(Deliverable&) = nullptr;  // may throw; may end the Deliverable's life
};

/// Collects deliverables. Any thread may add; one thread at a time takes all, and may sleep until there
/// are any. Lock-free; adding never waits.
///
/// A wakeup cannot be lost: push() stores newest_ and then loads sleeping_; the taker stores sleeping_ and
/// then loads newest_. All four operations are seq_cst, so at least one side sees the other's store.
class CompletionList {
 public:
  /// Adds a deliverable, and wakes the taker.
  void push(Deliverable& added) noexcept {
    Deliverable* newest = newest_.load(std::memory_order_relaxed);
    do {
      added.next = newest;
    } while (
        !newest_.compare_exchange_weak(newest, &added, std::memory_order_seq_cst, std::memory_order_relaxed));
    wake();
  }
  /// Wakes the sleeping taker, if there is one. It also works for a flag that the caller stored elsewhere
  /// by a seq_cst operation before, if the taker checks the flag between prepare_sleep() and sleep().
  void wake() noexcept {
    if (sleeping_.load(std::memory_order_seq_cst) == 0) [[likely]]
      return;
    if (sleeping_.exchange(0, std::memory_order_seq_cst) != 0) futex_wake(whole(sleeping_));
  }
  /// Takes all deliverables, oldest first, linked by `next`; null if there are none.
  Deliverable* take_all() noexcept {
    // The exchange pairs with the compare-exchange of push(): the taker sees the deliverables' content.
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

  /// Announces that the taker is about to sleep. The taker calls prepare_sleep(), checks whether there is
  /// work, calls sleep() if there is none, and end_sleep().
  void prepare_sleep() noexcept { sleeping_.store(1, std::memory_order_seq_cst); }
  /// Returns true if there is no deliverable.
  bool empty() const noexcept { return newest_.load(std::memory_order_seq_cst) == nullptr; }
  /// Sleeps until wake(), at most until `until_ns` of the steady clock; may return early. Returns true if
  /// woken.
  bool sleep(int64_t until_ns) noexcept {
    futex_wait(whole(sleeping_), 1, until_ns);
    return sleeping_.load(std::memory_order_seq_cst) == 0;
  }
  /// Announces that the taker is awake.
  void end_sleep() noexcept { sleeping_.store(0, std::memory_order_seq_cst); }

 private:
  std::atomic<Deliverable*> newest_{nullptr};
  std::atomic<uint32_t> sleeping_{0};  // a futex: 1 while the taker sleeps or is about to
};

}  // namespace gyre::detail
