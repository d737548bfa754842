#include <gyre/runtime/call_table.hpp>

#include <cstring>
#include <thread>

namespace gyre {

CallTable::CallTable(uint32_t calls, uint32_t body_capacity, Arena& arena)
    : slots_(calls),
      bodies_(new capnp::word[size_t(calls) * body_capacity / sizeof(capnp::word)]),
      arena_(arena) {
  free_.reserve(calls);
  const size_t words = body_capacity / sizeof(capnp::word);
  for (uint32_t i = calls; i-- > 0;) {
    slots_[i].body = bodies_.get() + i * words;
    free_.bounded_push(i);
  }
}

std::optional<CallId> CallTable::acquire() {
  uint32_t index;
  if (!free_.pop(index)) return std::nullopt;
  CallSlot& slot = slots_[index];
  const uint64_t generation = (slot.word.load(std::memory_order_relaxed) >> generation_shift) + 1;
  // The generation keeps within what a correlation holds; 2^44 uses of one slot take years.
  const uint64_t kept = generation & ((uint64_t(1) << (64 - index_bits)) - 1);
  slot.word.store(kept << generation_shift | idle, std::memory_order_relaxed);
  return call_of(index, kept);
}

void CallTable::arm(CallId call, uint32_t worker, int64_t deadline_ns, uint64_t timeout_us) {
  CallSlot& s = slot(call);
  s.failure = Failure{};
  s.body_bytes = 0;
  s.worker.store(worker, std::memory_order_relaxed);
  s.timeout_us.store(timeout_us, std::memory_order_relaxed);
  s.deadline_ns.store(deadline_ns, std::memory_order_relaxed);
  s.word.store(generation_of(call) << generation_shift | pending, std::memory_order_release);
}

bool CallTable::begin_outcome(CallId call) {
  if ((call & (max_calls - 1)) >= slots_.size()) return false;
  std::atomic<uint64_t>& word = slot(call).word;
  uint64_t seen = word.load(std::memory_order_acquire);
  do {
    if (seen >> generation_shift != generation_of(call) || (seen & phase_mask) != pending) return false;
  } while (!word.compare_exchange_weak(seen, (seen & ~phase_mask) | deciding, std::memory_order_acq_rel,
                                       std::memory_order_acquire));
  return true;
}

void CallTable::complete_answered(CallId call, const uint32_t* body, uint32_t body_bytes) {
  CallSlot& s = slot(call);
  std::memcpy(static_cast<void*>(s.body), body, body_bytes);
  s.answer = s.body;
  s.body_bytes = body_bytes;
  decide(call);
}

void CallTable::complete_in_block(CallId call, const ArenaBlock& block, uint64_t body_bytes) {
  CallSlot& s = slot(call);
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
  const uint64_t before =
      slot(call).word.fetch_or(decided, std::memory_order_acq_rel);  // deciding | decided = decided
  if ((before & abandoned) != 0) recycle(call);
}

void CallTable::settle() const {
  for (const CallSlot& s : slots_) {
    while ((s.word.load(std::memory_order_acquire) & phase_mask) == deciding) std::this_thread::yield();
  }
}

bool CallTable::done(CallId call) const {
  return (slot(call).word.load(std::memory_order_acquire) & phase_mask) == decided;
}

capnp::MessageReader& CallTable::body(CallId call) {
  CallSlot& s = slot(call);
  if (!s.reader) s.reader.emplace(s.answer, s.body_bytes / sizeof(capnp::word));
  return *s.reader;
}

std::span<const std::byte> CallTable::body_bytes(CallId call) const {
  const CallSlot& s = slot(call);
  return {reinterpret_cast<const std::byte*>(s.answer), s.body_bytes};
}

void CallTable::release(CallId call) { recycle(call); }

void CallTable::abandon(CallId call) {
  const uint64_t before = slot(call).word.fetch_or(abandoned, std::memory_order_acq_rel);
  if ((before & phase_mask) == decided) recycle(call);
}

void CallTable::recycle(CallId call) {
  CallSlot& s = slot(call);
  s.reader.reset();
  if (s.block != 0) arena_.free(s.block, s.body_bytes);
  s.block = 0;
  s.word.store(generation_of(call) << generation_shift | idle, std::memory_order_release);
  free_.bounded_push(uint32_t(call & (max_calls - 1)));
}

}  // namespace gyre
