// What a module says of the actors compiled into it, so that the host needs no C++ types of theirs. One text
// for g++ and NVRTC: the host compares.
#pragma once

#include <gyre/device/actor/dispatch.hpp>

namespace gyre {

/// One actor type, as its workers were compiled. 32 bytes on both sides.
struct ActorRecord {
  uint32_t state_bytes;     ///< of one actor in its table; 0: the type has no table
  uint32_t max_per_worker;  ///< actors; ~0: as many as the launch allows
  uint32_t handlers;
  uint8_t side_by_side;           ///< SideBySide: which of its messages may be handled at once
  uint8_t listed;                 ///< bits: the rights that its handlers' contexts list
  uint8_t most_sent;              ///< messages that one of its handlers may send; 0: none sends
  uint8_t reply_handlers;         ///< states of its asks: see AwaitsOf
  uint32_t rollback_bytes;        ///< of its state, put back where a message ends in an error; 0: it is not
  uint32_t scratch_bytes;         ///< of scratch memory for one message
  uint8_t cuda_only;              ///< 1: the CPU engine does not run it
  uint8_t asks;                   ///< 1: a handler takes gyre::Asking
  uint16_t most_in_batch;         ///< messages that a call of an on_batch() takes; 0: it has none
  uint32_t shared_scratch_bytes;  ///< of a block's shared memory, for one message

  /// Bits of `listed`.
  enum : uint8_t { may_tell_host = 1, may_set_timers = 2, may_send_to_many = 4, may_send_large = 8 };
  /// Returns `listed` of a type with these rights.
  GYRE_DEVICE static constexpr uint8_t bits_of(Rights rights) {
    return uint8_t((rights.tells_host ? uint32_t(may_tell_host) : 0) |
                   (rights.sets_timers ? uint32_t(may_set_timers) : 0) |
                   (rights.sends_to_many ? uint32_t(may_send_to_many) : 0) |
                   (rights.sends_large ? uint32_t(may_send_large) : 0));
  }
  /// Returns what handlers of the type may do.
  GYRE_DEVICE constexpr Rights rights() const {
    return {most_sent != 0,
            asks != 0,
            (listed & may_tell_host) != 0,
            (listed & may_set_timers) != 0,
            (listed & may_send_to_many) != 0,
            (listed & may_send_large) != 0};
  }
  /// HandlesSideBySide of the type.
  GYRE_DEVICE constexpr bool has_side_by_side() const { return SideBySide(side_by_side) == SideBySide::any; }
  /// The type's table in a worker, where the launch allows so many actors of each type.
  /// @param lists_keys  a handler of the set broadcasts
  GYRE_DEVICE constexpr ActorTableLayout table(uint32_t actors_per_worker, bool lists_keys) const {
    return {state_bytes, max_per_worker < actors_per_worker ? max_per_worker : actors_per_worker, lists_keys};
  }
};

/// One handler, as its workers were compiled. 24 bytes on both sides.
struct HandlerRecord {
  HandlerTypes types;
  uint32_t max_reply_bytes;  ///< max_reply_bytes() of it
  uint32_t reserved;
};

/// The front of a Description. 16 bytes on both sides.
struct DescriptionHeader {
  static constexpr uint64_t expected_magic = 0x3263736544657279ull;  // "yreDesc2"
  uint64_t magic;
  uint32_t actors;
  uint32_t handlers;  ///< of all actors
};
static_assert(sizeof(ActorRecord) == 32 && sizeof(DescriptionHeader) == 16 && sizeof(HandlerRecord) == 24,
              "a description lies alike on both sides");
static_assert(offsetof(ActorRecord, max_per_worker) == 4 && offsetof(ActorRecord, handlers) == 8 &&
                  offsetof(ActorRecord, side_by_side) == 12 && offsetof(ActorRecord, listed) == 13 &&
                  offsetof(ActorRecord, most_sent) == 14 && offsetof(ActorRecord, reply_handlers) == 15 &&
                  offsetof(ActorRecord, asks) == 25 && offsetof(ActorRecord, rollback_bytes) == 16 &&
                  offsetof(ActorRecord, scratch_bytes) == 20 && offsetof(ActorRecord, cuda_only) == 24 &&
                  offsetof(ActorRecord, most_in_batch) == 26 &&
                  offsetof(ActorRecord, shared_scratch_bytes) == 28 &&
                  offsetof(HandlerRecord, max_reply_bytes) == 16 &&
                  offsetof(DescriptionHeader, actors) == 8 && offsetof(DescriptionHeader, handlers) == 12 &&
                  offsetof(HandlerTypes, response) == 8,
              "a description's fields lie alike on both sides");

/// Every actor type in the order of its numbers, then the handlers of the first, of the second, … A plain
/// value, without padding.
template <uint32_t Actors, uint32_t Handlers>
struct Description {
  DescriptionHeader header;
  ActorRecord actors[Actors];
  HandlerRecord handlers[Handlers == 0 ? 1 : Handlers];  ///< as many as the header says
};

namespace detail {

template <class Actor>
GYRE_DEVICE constexpr ActorRecord record_of() {
  if constexpr (side_by_side<Actor>() == SideBySide::distinct_keys) {
    static_assert(!HasOnStart<Actor> && rollback_bytes<Actor>() == 0 && scratch_bytes<Actor>() == 0 &&
                      shared_scratch_bytes<Actor>() == 0,
                  "keys_side_by_side is for actors without on_start(), rollback_on_error and scratch memory");
  }
  constexpr Rights rights = rights_of<Actor>();
  return {state_bytes<Actor>(),
          capacity_of<Actor>(~0u),
          gyre::HandlesOf<Actor>::count,
          uint8_t(side_by_side<Actor>()),
          ActorRecord::bits_of(rights),
          uint8_t(most_sent<Actor>()),
          uint8_t(gyre::AwaitsOf<Actor>::count),
          rollback_bytes<Actor>(),
          scratch_bytes<Actor>(),
          CudaOnly<Actor> ? uint8_t(1) : uint8_t(0),
          rights.asks ? uint8_t(1) : uint8_t(0),
          uint16_t(most_in_batch<Actor>()),
          shared_scratch_bytes<Actor>()};
}

template <class Actor, class... Requests>
GYRE_DEVICE constexpr void list_handlers(Handles<Requests...>, HandlerRecord* handlers, uint32_t& n) {
  ((handlers[n++] = {{Requests::type_id, response_id<Actor, Requests>()},
                     max_reply_bytes<Actor, Requests>(),
                     0}),
   ...);
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
