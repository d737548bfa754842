#include <gyre/runtime/calls/call_table.hpp>
#include <gyre/runtime/system/futex.hpp>

namespace gyre {

using detail::CallSlot;
using detail::CallWord;

// Acts on the marks of a call that this thread has just decided; `before`: its word before that.
bool CallTable::act_on_marks(CallId call, CallWord before) {
  if (before.has(CallWord::abandoned)) {
    recycle(call);
  } else if (!before.has(CallWord::overruled)) {
    announce(slot(call), before);
  }
  return !before.has(CallWord::overruled);
}

// Delivers and wakes for an outcome that is there; `before`: the slot's word without it. The owner may have
// given the slot back by now: waking its futex for nothing does no harm.
void CallTable::announce(CallSlot& s, CallWord before) {
  if (before.has(CallWord::watched)) completed_.push(*s.when_decided);
  if (before.has(CallWord::asleep)) detail::futex_wake(detail::low_half(s.state.word()));
}

Failure CallTable::failure(CallId call) const {
  if (!overruled(call)) return slot(call).answer.failure();
  return Failure{Status::timed_out, 0, timeout_us(call), timeout_us(call)};
}

void CallTable::sleep(CallId call, int64_t until_ns) {
  const detail::CallState& state = slot(call).state;
  const CallWord seen = state.load();
  if (seen.has_outcome() || !seen.has(CallWord::asleep)) return;
  detail::futex_wait(detail::low_half(state.word()), uint32_t(seen.bits), until_ns);
}

bool CallTable::wake(CallId call) {
  if (index_of(call) >= calls()) return false;
  detail::CallState& state = slot(call).state;
  CallWord seen;
  if (state.take_asleep(call, seen)) detail::futex_wake(detail::low_half(state.word()));
  return seen.generation() == detail::generation_of(call) && seen.has(CallWord::watched);
}

void CallTable::watch(CallId call, detail::Deliverable& deliverable) {
  CallSlot& s = slot(call);
  s.when_decided = &deliverable;
  if (s.state.mark(CallWord::watched).has_outcome()) completed_.push(deliverable);
}

uint32_t CallTable::held() const {
  uint32_t count = 0;
  for (uint32_t i = 0; i < calls(); ++i) {
    const CallWord word = slots_[i].state.load();
    count += word.phase() != detail::Phase::idle && !word.has(CallWord::abandoned);
  }
  return count;
}

}  // namespace gyre
