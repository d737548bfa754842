// The slots of the call table, and the places of their answers.
#pragma once

#include <gyre/runtime/async/completion_list.hpp>
#include <gyre/runtime/calls/answer.hpp>
#include <gyre/runtime/calls/call_state.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <vector>

namespace gyre::detail {

/// One call. What the message path uses lies in the first line.
struct alignas(128) CallSlot {
  CallState state;
  // Written by the sender before it arms the call. The deadline may change later; threads that iterate over
  // calls in flight read it.
  std::atomic<int64_t> deadline_ns{0};
  std::atomic<uint64_t> timeout_us{0};
  std::atomic<uint32_t> worker{0};
  Answer answer;
  Deliverable* when_decided = nullptr;  // of a watched call; written before the mark is set
};
static_assert(sizeof(CallState) + 2 * sizeof(int64_t) + 2 * sizeof(uint32_t) + sizeof(AnswerFields) <= 64);

/// A page of slots, which one thread takes together: processors fetch lines of a page ahead, and take them
/// from the thread that owns them.
struct alignas(4096) SlotPage {
  static constexpr uint32_t count = 4096 / sizeof(CallSlot);
  std::array<CallSlot, count> slots;
};
static_assert(4096 % sizeof(CallSlot) == 0 && sizeof(SlotPage) == 4096);

/// All slots. Memory of places is zeroed, and given page by page by the kernel, where replies come.
class Slots {
 public:
  /// `body_capacity`: largest reply body in a place, bytes, a multiple of 16. Throws std::bad_alloc.
  Slots(uint32_t count, uint32_t body_capacity);

  uint32_t count() const { return count_; }
  CallSlot& operator[](uint32_t index) { return slots_[index]; }
  const CallSlot& operator[](uint32_t index) const { return slots_[index]; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  const uint32_t count_;
  std::vector<SlotPage> pages_;
  CallSlot* const slots_;  // all of pages_: they lie without gaps
  std::unique_ptr<std::byte[], Free> places_;
};

}  // namespace gyre::detail
