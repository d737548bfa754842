// From a message's actor type and key to the actor: finds it in its worker's tables, creates and removes it.
#pragma once

#include <gyre/bridge/mailbox.hpp>
#include <gyre/device/actor/handlers.hpp>
#include <gyre/device/actor/table.hpp>
#include <gyre/device/context.hpp>

#if !defined(__CUDACC_RTC__)
#include <new>
#endif

namespace gyre {

/// The actor types of a worker, as a value to dispatch on; a type's number is its place in the list.
template <class... Actors>
struct ActorList {};
/// One of them.
template <class Actor>
struct ActorType {};

// Visitors are structs: NVRTC takes a generic lambda for a host function.

/// Calls `visit(ActorType<Actor>{})` for the type with the number `actor_type`.
/// @returns false where there is none
template <class... Actors, class Visit>
GYRE_DEVICE_INLINE bool visit_actor(ActorList<Actors...>, uint32_t actor_type, Visit&& visit) {
  uint32_t n = 0;
  return ((n++ == actor_type ? (visit(ActorType<Actors>{}), true) : false) || ...);
}
/// Calls `visit(ActorType<Actor>{}, number, layout, table)` for each type in its order, with where its table
/// lies.
/// @param tables  the worker's: of the first type, and behind it of the others
template <class... Actors, class Visit>
GYRE_DEVICE_INLINE void visit_tables(ActorList<Actors...>, const EngineMemory& memory, uint8_t* tables,
                                     Visit&& visit) {
  uint32_t n = 0;
  ActorTableLayout layout{};
  constexpr bool lists_keys = rights_of_any<Actors...>().sends_to_many;
  ((layout = ActorTables<Actors>::first(memory.actors_per_worker, lists_keys),
    visit(ActorType<Actors>{}, n++, layout, tables), tables += layout.bytes()),
   ...);
}

namespace detail {

GYRE_DEVICE constexpr bool is_lifecycle(uint32_t message_type) {
  return message_type == lifecycle_message::start || message_type == lifecycle_message::stop;
}

// The table of one type, and what finding or creating an actor in it must know of the type.
struct TableOfType {
  uint32_t actor_type;
  uint8_t* memory = nullptr;  // null: the type has no table, or there is no such type
  ActorTableLayout layout{};
  uint32_t bytes = 0;  // of an actor
  uint32_t handled_messages = 0;
  bool created_by_message = false;
  GYRE_DEVICE explicit TableOfType(uint32_t type) : actor_type(type) {}
  template <class Actor>
  GYRE_DEVICE void operator()(ActorType<Actor>, uint32_t n, const ActorTableLayout& of_type, uint8_t* table) {
    if constexpr (state_bytes<Actor>() != 0) {
      if (n != actor_type) return;
      memory = table;
      layout = of_type;
      bytes = sizeof(Actor);
      handled_messages = count_of(gyre::HandlesOf<Actor>{});
      created_by_message = detail::created_by_message<Actor>();
    }
  }
  GYRE_DEVICE ActorTable table() const { return ActorTable(memory, layout); }
};
template <class... Actors>
GYRE_DEVICE TableOfType table_of(ActorList<Actors...> actors, const EngineMemory& memory, uint8_t* tables,
                                 uint32_t actor_type) {
  TableOfType of_type(actor_type);
  visit_tables(actors, memory, tables, of_type);
  return of_type;
}
struct ConstructActor {
  void* state;
  template <class Actor>
  GYRE_DEVICE void operator()(ActorType<Actor>) const {
    new (state) Actor{};
  }
};
template <class Visit>
struct VisitActorsToStop {
  Visit& visit;
  template <class Actor>
  GYRE_DEVICE void operator()(ActorType<Actor>, uint32_t actor_type, const ActorTableLayout& layout,
                              uint8_t* table_begin) {
    if constexpr (HasOnStop<Actor>) {
      const ActorTable table(table_begin, layout);
      uint32_t left = table.living();
      GYRE_ROLLED
      for (uint32_t n = 0; left != 0 && n < table.slot_count(); ++n) {
        uint64_t key = 0;
        void* const state = table.at(n, key);
        if (state == nullptr) continue;
        visit(*static_cast<Actor*>(state), key, actor_type);
        --left;
      }
    }
  }
};
}  // namespace detail

/// Finds the actor that a message is for, or creates it: sets `verdict.state`, or `verdict.refused`; the
/// actor's hooks are called later, by the group. One thread.
/// @param tables  the worker's
template <class... Actors>
GYRE_DEVICE void find_or_create(ActorList<Actors...> actors, const EngineMemory& memory, uint8_t* tables,
                                const Envelope& envelope, MessageVerdict& verdict) {
  constexpr Rights rights = rights_of_any<Actors...>();
  const uint32_t message_type = envelope.message_type;
  if (envelope.actor_type >= sizeof...(Actors)) {
    verdict.refused = Status::unknown_actor;
    return;
  }
  const detail::TableOfType of_type = detail::table_of(actors, memory, tables, envelope.actor_type);
  if (of_type.memory == nullptr) return;
  ActorTable table = of_type.table();
  if constexpr (rights.asks) {
    if (message_type == call_message::reply && (envelope.flags & envelope_flags::to_asker) != 0) {
      verdict.state = table.find(envelope.key, uint32_t(envelope.correlation));
      if (verdict.state == nullptr) verdict.refused = Status::no_such_actor;
      return;
    }
  }
  if (message_type >= of_type.handled_messages && !detail::is_lifecycle(message_type)) {
    verdict.refused = Status::unknown_message;
    return;
  }
  verdict.state = table.find(envelope.key);
  if (verdict.state != nullptr) return;
  bool creates = message_type == lifecycle_message::start ||
                 (message_type != lifecycle_message::stop && of_type.created_by_message);
  // A timer's message creates none.
  if constexpr (rights.sets_timers) creates = creates && (envelope.flags & envelope_flags::timer) == 0;
  if (!creates) {
    verdict.refused = Status::no_such_actor;
    return;
  }
  // Replies come for an incarnation; messages to all actors of a type need its keys.
  verdict.state = table.template insert<rights.asks, rights.sends_to_many>(envelope.key);
  if (verdict.state == nullptr) {
    verdict.refused = Status::actor_table_full;
    verdict.detail = of_type.layout.capacity;
    return;
  }
  visit_actor(actors, envelope.actor_type, detail::ConstructActor{verdict.state});
  verdict.new_actor = 1;
}

/// Returns which incarnation of that actor there is: see ActorTable::incarnation_of(); 0 for a type without
/// a table. One thread.
template <class... Actors>
GYRE_DEVICE uint32_t incarnation_of(ActorList<Actors...> actors, const EngineMemory& memory, uint8_t* tables,
                                    uint32_t actor_type, uint64_t key) {
  const detail::TableOfType of_type = detail::table_of(actors, memory, tables, actor_type);
  return of_type.memory == nullptr ? 0 : of_type.table().incarnation_of(key);
}

/// Returns how many places the table of that type has for find_actor_at(); 0 for a type without a table.
template <class... Actors>
GYRE_DEVICE uint32_t places_of(ActorList<Actors...> actors, const EngineMemory& memory, uint8_t* tables,
                               uint32_t actor_type) {
  const detail::TableOfType of_type = detail::table_of(actors, memory, tables, actor_type);
  return of_type.memory == nullptr ? 0 : of_type.table().places();
}
/// Returns ActorTable::find_at() for the table of that type. Any thread; no other one changes the table.
/// @param key  set to the actor's key
template <class... Actors>
GYRE_DEVICE bool find_actor_at(ActorList<Actors...> actors, const EngineMemory& memory, uint8_t* tables,
                               uint32_t actor_type, uint32_t place, uint64_t& key) {
  const detail::TableOfType of_type = detail::table_of(actors, memory, tables, actor_type);
  return of_type.memory != nullptr && of_type.table().find_at(place, key);
}

/// Removes an actor from its table; returns whether it was there. One thread.
template <class... Actors>
GYRE_DEVICE bool remove(ActorList<Actors...> actors, const EngineMemory& memory, uint8_t* tables,
                        uint32_t actor_type, uint64_t key) {
  const detail::TableOfType of_type = detail::table_of(actors, memory, tables, actor_type);
  return of_type.memory != nullptr && of_type.table().erase(key);
}

/// Calls `visit(actor, key, actor_type)` for each actor whose type has an on_stop. By the whole handler
/// group.
template <class... Actors, class Visit>
GYRE_DEVICE void for_each_to_stop(ActorList<Actors...> actors, const EngineMemory& memory, uint8_t* tables,
                                  Visit&& visit) {
  visit_tables(actors, memory, tables, detail::VisitActorsToStop<Visit>{visit});
}

/// find_or_create() for one message of each thread that has one, all to actors of one type: those that are
/// not there are created one after the other. By a warp.
/// @returns the state of the thread's actor; null where its type has none, or `verdict` refuses it
template <class... Actors>
GYRE_DEVICE void* find_or_create_each(ActorList<Actors...> actors, const EngineMemory& memory,
                                      uint8_t* tables, uint32_t actor_type, bool has_one,
                                      const Envelope& envelope, MessageVerdict& verdict) {
  const detail::TableOfType of_type = detail::table_of(actors, memory, tables, actor_type);
  if (of_type.memory == nullptr) return nullptr;
  void* state = has_one ? of_type.table().find(envelope.key) : nullptr;
  GYRE_ROLLED
  for (uint32_t left = PollGroup::ballot(has_one && state == nullptr); left != 0; left &= left - 1) {
    if (PollGroup::rank() == detail::lowest_bit(left)) {
      find_or_create(actors, memory, tables, envelope, verdict);
      state = verdict.state;
    }
    PollGroup::sync();
  }
  return state;
}
}  // namespace gyre
