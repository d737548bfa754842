// Finds what the host asks to read of a worker's actors: the state of one, or slots of a type's table.
#pragma once

#include <gyre/device/actor/lookup.hpp>

namespace gyre {

namespace detail {
// What states and slots are copied by.
struct alignas(16) CopiedChunk {
  uint64_t words[2];
};
static_assert(sizeof(CopiedChunk) == sizeof(ActorTableLayout::Slot));
}  // namespace detail

/// Answers a message of Control::read_state or Control::read_slots: writes the reply's body to `response`.
/// Creates no actor. By the whole handler group, after a barrier; another must follow. Not inlined: the code
/// of a worker stays what it is without it, but for the call.
/// @param tables    the worker's
/// @param found     a word that the group shares
/// @param response  16-aligned
template <class... Actors>
GYRE_DEVICE_NOINLINE Handled read_actors(ActorList<Actors...> actors, const EngineMemory& memory,
                                         uint8_t* tables, const Envelope& envelope, void*& found,
                                         void* response, uint32_t capacity) {
  const detail::TableOfType of_type = detail::table_of(actors, memory, tables, envelope.actor_type);
  const ActorTable table = of_type.table();
  const bool reads_state = envelope.message_type == uint16_t(Control::read_state);
  if (HandlerGroup::rank() == 0) {
    void* from = of_type.memory;
    if (from != nullptr)
      from = reads_state ? table.find(envelope.key) : of_type.memory + of_type.layout.slots_offset();
    found = from;
  }
  HandlerGroup::sync();
  const auto* const chunks = static_cast<const detail::CopiedChunk*>(found);
  constexpr uint32_t not_to_be_read = 1;  // see ErrorBody
  if (chunks == nullptr) return {Status::no_such_actor, not_to_be_read, 0, 0};
  const uint32_t slots = of_type.layout.slots();
  const SlotRange range = SlotRange::of(envelope.key);
  uint32_t first = 0, count = of_type.layout.state_bytes / uint32_t(sizeof(detail::CopiedChunk)), end = count;
  if (!reads_state) {
    first = range.first < slots ? range.first : 0;
    count = range.count < slots ? range.count : slots;
    end = slots;
  }
  if (capacity < sizeof(ActorsRead) || (capacity - sizeof(ActorsRead)) / sizeof(detail::CopiedChunk) < count)
    return {Status::reply_too_large, capacity, 0, 0};
  auto* const out = static_cast<detail::CopiedChunk*>(response) + 1;
  GYRE_ROLLED
  for (uint32_t i = HandlerGroup::rank(); i < count; i += HandlerGroup::size()) {
    const uint32_t at = first + i;
    out[i] = chunks[at < end ? at : at - end];
  }
  const uint32_t bytes = count * uint32_t(sizeof(detail::CopiedChunk));
  if (HandlerGroup::rank() == 0) {
    *static_cast<ActorsRead*>(response) = {reads_state ? of_type.bytes : bytes, slots, table.living(), 0};
  }
  return {Status::ok, 0, 0, uint32_t(sizeof(ActorsRead)) + bytes};
}

}  // namespace gyre
