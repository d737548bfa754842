// What is ready to be delivered, in the order in which it became so. Intrusive: adding allocates nothing.
#pragma once

#include <atomic>

namespace gyre::detail {

/// Something to be delivered once. Whoever owns it keeps it until it was delivered.
struct Deliverable {
  Deliverable* next = nullptr;              // the list's
  void (*deliver)(Deliverable&) = nullptr;  // may throw; may end the Deliverable's life
};

/// Any thread adds, one at a time takes all. Lock-free; nothing here waits.
class CompletionList {
 public:
  void push(Deliverable& added) noexcept {
    Deliverable* newest = newest_.load(std::memory_order_relaxed);
    do {
      added.next = newest;
    } while (
        !newest_.compare_exchange_weak(newest, &added, std::memory_order_acq_rel, std::memory_order_relaxed));
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

 private:
  std::atomic<Deliverable*> newest_{nullptr};
};

}  // namespace gyre::detail
