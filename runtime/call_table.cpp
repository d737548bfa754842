#include <gyre/runtime/call_table.hpp>
#include <gyre/runtime/packing.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
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
      place_colours_(std::bit_floor(page_of_places_ / (SlotPage::count * place_stride_)) - 1),
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

bool CallTable::take_free(uint32_t& index) {
  const uint32_t thread = detail::thread_number();
  if (thread < detail::thread_numbers) {
    Kept& kept = kept_[thread];
    if (kept.count != 0 || take_page(kept)) {
      index = kept.indices[--kept.count];
      return true;
    }
  }
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

void CallTable::give_free(uint32_t index) {
  const uint32_t thread = detail::thread_number();
  if (thread < detail::thread_numbers) {
    Kept& kept = kept_[thread];
    // Who takes none has no use for them.
    if (kept.count < kept.limit || (kept.limit != 0 && may_keep_more(kept))) {
      kept.indices[kept.count++] = index;
      return;
    }
  }
  free_.bounded_push(index);
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

std::optional<CallId> CallTable::acquire() {
  uint32_t index;
  if (!take_free(index)) return std::nullopt;
  CallSlot& slot = slot_at(index);
  const uint64_t generation = (slot.word.load(std::memory_order_relaxed) >> generation_shift) + 1;
  // The generation keeps within what a correlation holds; 2^44 uses of one slot take years.
  const uint64_t kept = generation & ((uint64_t(1) << (64 - index_bits)) - 1);
  slot.word.store(kept << generation_shift | idle, std::memory_order_relaxed);
  return call_of(index, kept);
}

void CallTable::arm(CallId call, uint32_t worker, int64_t deadline_ns, uint64_t timeout_us) {
  CallSlot& s = slot(call);
  s.failure.status = Status::ok;
  s.body_bytes = 0;
  s.worker.store(worker, std::memory_order_relaxed);
  s.timeout_us.store(timeout_us, std::memory_order_relaxed);
  s.deadline_ns.store(deadline_ns, std::memory_order_relaxed);
  s.word.store(generation_of(call) << generation_shift | pending, std::memory_order_release);
}

bool CallTable::begin_outcome(CallId call) {
  if (index_of(call) >= calls_) return false;
  std::atomic<uint64_t>& word = slot(call).word;
  uint64_t seen = word.load(std::memory_order_acquire);
  do {
    if (seen >> generation_shift != generation_of(call) || (seen & phase_mask) != pending) return false;
  } while (!word.compare_exchange_weak(seen, (seen & ~phase_mask) | deciding, std::memory_order_acq_rel,
                                       std::memory_order_acquire));
  return true;
}

// Of a reply unpacked to the place: behind it all stays zero.
void CallTable::keep_answer(CallSlot& s, uint32_t body_bytes) {
  const uint32_t unpacked = groups_for(body_bytes) * group_bytes - uint32_t(sizeof(Envelope));
  const uint32_t dirty = std::max(s.dirty_bytes, unpacked);
  std::byte* const body = s.place + sizeof(Envelope);
  if (dirty > body_bytes) std::memset(body + body_bytes, 0, dirty - body_bytes);
  s.dirty_bytes = body_bytes;
  s.answer = reinterpret_cast<const capnp::word*>(body);
  s.body_bytes = body_bytes;
}

void CallTable::complete_answered(CallId call, uint32_t body_bytes) {
  keep_answer(slot(call), body_bytes);
  decide(call);
}

bool CallTable::complete_own(CallId call, uint32_t body_bytes) {
  CallSlot& s = slot(call);
  keep_answer(s, body_bytes);
  uint64_t expected = generation_of(call) << generation_shift | pending;
  return s.word.compare_exchange_strong(expected, expected | decided, std::memory_order_acq_rel,
                                        std::memory_order_acquire);
}

void CallTable::complete_in_block(CallId call, const ArenaBlock& block, uint64_t body_bytes) {
  CallSlot& s = slot(call);
  s.readable = false;  // the reader is of the place
  s.answer = static_cast<const capnp::word*>(arena_.at(block.reply_offset));
  s.body_bytes = body_bytes;
  s.block = block.id;
  decide(call);
}

void CallTable::complete_failed(CallId call, const Failure& failure) {
  slot(call).failure = failure;
  decide(call);
}

void CallTable::decide(CallId call) {
  CallSlot& s = slot(call);
  const uint64_t before =
      s.word.fetch_or(decided, std::memory_order_acq_rel);  // deciding | decided = decided
  if ((before & abandoned) != 0) return recycle(call);
  if ((before & watched) != 0) completed_.push(*s.when_decided);
}

void CallTable::watch(CallId call, detail::Deliverable& deliverable) {
  CallSlot& s = slot(call);
  s.when_decided = &deliverable;
  const uint64_t before = s.word.fetch_or(watched, std::memory_order_acq_rel);
  if ((before & phase_mask) == decided) completed_.push(deliverable);
}

void CallTable::settle() const {
  for (const SlotPage& page : pages_) {
    for (const CallSlot& s : page.slots) {
      while ((s.word.load(std::memory_order_acquire) & phase_mask) == deciding) std::this_thread::yield();
    }
  }
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

bool CallTable::done(CallId call) const {
  return (slot(call).word.load(std::memory_order_acquire) & phase_mask) == decided;
}

const capnp::AnyPointer::Reader& CallTable::root(CallId call) {
  CallSlot& s = slot(call);
  if (!s.readable) {
    const uint64_t bytes = s.block != 0 ? s.body_bytes : place_bytes_ - sizeof(Envelope);
    s.reader.emplace(s.answer, bytes / sizeof(capnp::word));
    s.root = s.reader->getRoot<capnp::AnyPointer>();
    s.readable = true;
  }
  return s.root;
}

std::span<const std::byte> CallTable::body_bytes(CallId call) const {
  const CallSlot& s = slot(call);
  return {reinterpret_cast<const std::byte*>(s.answer), s.body_bytes};
}

void CallTable::release(CallId call) { recycle(call); }

void CallTable::abandon(CallId call) {
  if (!done(call)) {
    const uint64_t before = slot(call).word.fetch_or(abandoned, std::memory_order_acq_rel);
    if ((before & phase_mask) != decided) return;
  }
  recycle(call);
}

void CallTable::recycle(CallId call) {
  CallSlot& s = slot(call);
  if (s.block != 0) {
    s.readable = false;
    arena_.free(s.block, s.body_bytes);
    s.block = 0;
  }
  s.word.store(generation_of(call) << generation_shift | idle, std::memory_order_release);
  give_free(index_of(call));
}

}  // namespace gyre
