#include <gyre/runtime/calls/call_table.hpp>
#include <gyre/runtime/core/deadline.hpp>
#include <gyre/runtime/system/futex.hpp>

#include <thread>

namespace gyre {

namespace {

size_t whole(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

// Places are zeroed memory that the kernel gives page by page, where replies come.
CallTable::CallTable(uint32_t calls, uint32_t body_capacity, Arena& arena)
    : calls_(calls),
      pages_(whole(calls, SlotPage::count) / SlotPage::count),
      slots_(pages_.data()->slots.data()),
      place_bytes_(groups_for(body_capacity) * group_bytes),
      place_stride_(uint32_t(whole(place_bytes_, 128))),
      page_of_places_(uint32_t(whole(SlotPage::count * place_stride_, page_bytes))),
      places_(static_cast<std::byte*>(std::calloc(pages_.size() + 1, page_of_places_))),
      arena_(arena),
      kept_at_most_(std::min(Kept::most, calls / 16 / SlotPage::count * SlotPage::count)),
      may_be_kept_(kept_at_most_ == 0 ? 0 : calls / 2) {
  if (places_ == nullptr) throw std::bad_alloc();
  first_place_ = reinterpret_cast<std::byte*>(whole(reinterpret_cast<uintptr_t>(places_.get()), page_bytes));
  for (uint32_t i = 0; i < calls; ++i) slot_at(i).place = place_at(i);
  const uint32_t whole_pages = may_be_kept_ != 0 ? calls / SlotPage::count : 0;
  free_.reserve(calls);
  free_pages_.reserve(whole_pages);
  for (uint32_t page = whole_pages; page-- > 0;) free_pages_.bounded_push(page);
  for (uint32_t i = calls; i-- > whole_pages * SlotPage::count;) free_.bounded_push(i);
}

bool CallTable::take_shared(uint32_t& index) {
  if (free_.pop(index)) return true;
  uint32_t page;
  // Another thread may have taken the last page just now, and not given back yet what it does not need of it.
  if (!free_pages_.pop(page)) return free_.pop(index);
  index = page * SlotPage::count;
  for (uint32_t i = 1; i < SlotPage::count; ++i) free_.bounded_push(index + i);
  return true;
}

// For a thread that keeps none.
bool CallTable::take_page(Kept& kept) {
  uint32_t page;
  if ((kept.limit == 0 && !may_keep_more(kept)) || !free_pages_.pop(page)) return false;
  for (uint32_t i = SlotPage::count; i-- > 0;) kept.indices[kept.count++] = page * SlotPage::count + i;
  return true;
}

// Raises what the thread may keep by a page, while threads together keep less than they may.
bool CallTable::may_keep_more(Kept& kept) {
  if (kept.limit >= kept_at_most_) return false;
  uint32_t left = may_be_kept_.load(std::memory_order_relaxed);
  do {
    if (left < SlotPage::count) return false;
  } while (!may_be_kept_.compare_exchange_weak(left, left - SlotPage::count, std::memory_order_relaxed));
  kept.limit += SlotPage::count;
  return true;
}

void CallTable::free_block(CallSlot& s) {
  s.readable = false;  // the reader is of the block
  arena_.free(s.block, s.body_bytes);
  s.in_block = false;
}

bool CallTable::complete_in_block(CallId call, const ArenaBlock& block, uint64_t body_bytes) {
  CallSlot& s = slot(call);
  s.readable = false;  // the reader is of the place
  s.in_arena = static_cast<const capnp::word*>(arena_.at(block.reply_offset));
  s.body_bytes = body_bytes;
  s.block = block.id;
  s.in_block = true;
  return decide(call);
}

bool CallTable::complete_failed(CallId call, const Failure& failure) {
  CallSlot& s = slot(call);
  s.failure = failure;
  s.failed = true;
  return decide(call);
}

// Of a call that somebody has noted something of.
bool CallTable::decide_noted(CallId call, uint64_t before) {
  const bool counts = (before & overruled) == 0;
  if ((before & abandoned) != 0) {
    recycle(call);
  } else if (counts) {
    announce(slot(call), before);
  }
  return counts;
}

// To those who wait for an outcome, which is there; `before`: the slot's word without it. The owner may have
// given the slot back by now: that its futex is woken for nothing does no harm.
void CallTable::announce(CallSlot& s, uint64_t before) {
  if ((before & watched) != 0) completed_.push(*s.when_decided);
  if ((before & asleep) != 0) detail::futex_wake(detail::low_half(s.word));
}

Failure CallTable::failure(CallId call) const {
  const CallSlot& s = slot(call);
  if ((s.word.load(std::memory_order_relaxed) & overruled) != 0) {
    const uint64_t timeout_us = s.timeout_us.load(std::memory_order_relaxed);
    return Failure{Status::timed_out, 0, timeout_us, timeout_us};
  }
  return s.failed ? s.failure : Failure{};
}

bool CallTable::prepare_sleep(CallId call) {
  return !has_outcome(slot(call).word.fetch_or(asleep, std::memory_order_acq_rel));
}

void CallTable::sleep(CallId call, int64_t until_ns) {
  std::atomic<uint64_t>& word = slot(call).word;
  const uint64_t seen = word.load(std::memory_order_acquire);
  if (has_outcome(seen) || (seen & asleep) == 0) return;
  detail::futex_wait(detail::low_half(word), uint32_t(seen), until_ns);
}

void CallTable::end_sleep(CallId call) { slot(call).word.fetch_and(~asleep, std::memory_order_acq_rel); }

bool CallTable::wake(CallId call) {
  if (index_of(call) >= calls_) return false;
  std::atomic<uint64_t>& word = slot(call).word;
  uint64_t seen = word.load(std::memory_order_acquire);
  do {
    if (seen >> generation_shift != generation_of(call)) return false;
    if ((seen & asleep) == 0) return (seen & watched) != 0;
  } while (!word.compare_exchange_weak(seen, seen & ~asleep, std::memory_order_acq_rel,
                                       std::memory_order_acquire));
  detail::futex_wake(detail::low_half(word));
  return (seen & watched) != 0;
}

void CallTable::watch(CallId call, detail::Deliverable& deliverable) {
  CallSlot& s = slot(call);
  s.when_decided = &deliverable;
  const uint64_t before = s.word.fetch_or(watched, std::memory_order_acq_rel);
  if (has_outcome(before)) completed_.push(deliverable);
}

uint32_t CallTable::held() const {
  uint32_t count = 0;
  for (const SlotPage& page : pages_) {
    for (const CallSlot& s : page.slots) {
      const uint64_t word = s.word.load(std::memory_order_acquire);
      count += (word & phase_mask) != idle && (word & abandoned) == 0;
    }
  }
  return count;
}

// Cap'n Proto reads whole words of the place, behind an answer too: there it has zeros.
void CallTable::clear_behind_answer(CallSlot& s) {
  if (s.dirty_bytes <= s.body_bytes) return;
  std::memset(s.place + sizeof(Envelope) + s.body_bytes, 0, s.dirty_bytes - s.body_bytes);
  s.dirty_bytes = uint32_t(s.body_bytes);
}

// The reader is of the whole place, for this answer and those after it.
const capnp::AnyPointer::Reader& CallTable::root(CallId call) {
  CallSlot& s = slot(call);
  if (!s.in_block) clear_behind_answer(s);
  if (!s.readable) {
    const uint64_t bytes = s.in_block ? s.body_bytes : place_bytes_ - sizeof(Envelope);
    s.reader.emplace(s.answer(), bytes / sizeof(capnp::word));
    s.root = s.reader->getRoot<capnp::AnyPointer>();
    s.readable = true;
  }
  return s.root;
}

std::span<const std::byte> CallTable::body_bytes(CallId call) const {
  const CallSlot& s = slot(call);
  return {reinterpret_cast<const std::byte*>(s.answer()), s.body_bytes};
}

}  // namespace gyre
