// What a module says of the actors compiled into it, so that the host needs no C++ types of theirs. One text
// for g++ and NVRTC: the host compares.
#pragma once

#include <gyre/device/dispatch.hpp>

namespace gyre {

/// One actor type, as its workers were compiled. 16 bytes on both sides.
struct ActorRecord {
  uint32_t state_bytes;     ///< of one actor in its table; 0: the type has no table
  uint32_t max_per_worker;  ///< actors; ~0: as many as the launch allows
  uint32_t handlers;
  uint32_t side_by_side;  ///< 1: its messages may be handled side by side

  /// The type's table in a worker, where the launch allows so many actors of each type.
  GYRE_DEVICE constexpr ActorTableLayout table(uint32_t actors_per_worker) const {
    return {state_bytes, max_per_worker < actors_per_worker ? max_per_worker : actors_per_worker};
  }
};

/// The front of a Description. 16 bytes on both sides.
struct DescriptionHeader {
  static constexpr uint64_t expected_magic = 0x3163736544657279ull;  // "yreDesc1"
  uint64_t magic;
  uint32_t actors;
  uint32_t handlers;  ///< of all actors
};
static_assert(sizeof(ActorRecord) == 16 && sizeof(DescriptionHeader) == 16 && sizeof(HandlerTypes) == 16,
              "a description lies alike on both sides");
static_assert(offsetof(ActorRecord, max_per_worker) == 4 && offsetof(ActorRecord, handlers) == 8 &&
                  offsetof(DescriptionHeader, actors) == 8 && offsetof(DescriptionHeader, handlers) == 12 &&
                  offsetof(HandlerTypes, response) == 8,
              "a description's fields lie alike on both sides");

/// Every actor type in the order of its numbers, then the handlers of the first, of the second, … A plain
/// value, without padding.
template <uint32_t Actors, uint32_t Handlers>
struct Description {
  DescriptionHeader header;
  ActorRecord actors[Actors];
  HandlerTypes handlers[Handlers == 0 ? 1 : Handlers];  ///< as many as the header says
};

namespace detail {

template <class Actor>
GYRE_DEVICE constexpr ActorRecord record_of() {
  return {state_bytes<Actor>(), capacity_of<Actor>(~0u), gyre::HandlesOf<Actor>::count,
          HandlesSideBySide<Actor> ? 1u : 0u};
}

template <class Actor, class... Requests>
GYRE_DEVICE constexpr void list_handlers(Handles<Requests...>, HandlerTypes* handlers, uint32_t& n) {
  ((handlers[n++] = {Requests::type_id, response_id<Actor, Requests>()}), ...);
}

}  // namespace detail

/// The description of a worker of `Actors`.
template <class... Actors>
GYRE_DEVICE constexpr auto describe() {
  constexpr uint32_t handlers = handler_count<Actors...>;
  Description<sizeof...(Actors), handlers> description{
      {DescriptionHeader::expected_magic, sizeof...(Actors), handlers}, {}, {}};
  uint32_t actor = 0, handler = 0;
  ((description.actors[actor++] = detail::record_of<Actors>()), ...);
  (detail::list_handlers<Actors>(HandlesOf<Actors>{}, description.handlers, handler), ...);
  return description;
}

#if defined(__CUDACC_RTC__)
/// Where the host finds it in the module, by the lowered name of `&gyre::description<Actors...>`.
template <class... Actors>
__constant__ const auto description = describe<Actors...>();
#endif

}  // namespace gyre
