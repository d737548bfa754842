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

// Finds the actor in its table or creates it; the actor's hooks are called later, by the group. One thread.
// @tparam asks         an actor of the set asks: replies come, for the incarnation in Envelope::correlation
// @tparam sets_timers  an actor of the set sets timers: messages come that create no actor
// @tparam lists_keys   an actor of the set broadcasts: see ActorTableLayout
template <class Actor, bool asks, bool sets_timers, bool lists_keys>
GYRE_DEVICE void find_or_create_in(ActorTable table, uint32_t capacity, const Envelope& envelope,
                                   MessageVerdict& verdict) {
  const uint32_t message_type = envelope.message_type;
  if constexpr (asks) {
    if (message_type == call_message::reply && (envelope.flags & envelope_flags::to_asker) != 0) {
      verdict.state = table.find(envelope.key);
      if (verdict.state == nullptr || table.incarnation_of(envelope.key) != uint32_t(envelope.correlation))
        verdict.refused = Status::no_such_actor;
      return;
    }
  }
  if (message_type >= count_of(gyre::HandlesOf<Actor>{}) && !is_lifecycle(message_type)) {
    verdict.refused = Status::unknown_message;
    return;
  }
  verdict.state = table.find(envelope.key);
  if (verdict.state != nullptr) return;
  bool creates = message_type == lifecycle_message::start ||
                 (message_type != lifecycle_message::stop && created_by_message<Actor>());
  if constexpr (sets_timers) creates = creates && (envelope.flags & envelope_flags::timer) == 0;
  if (!creates) {
    verdict.refused = Status::no_such_actor;
    return;
  }
  verdict.state = table.insert<asks, lists_keys>(envelope.key);
  if (verdict.state == nullptr) {
    verdict.refused = Status::actor_table_full;
    verdict.detail = capacity;
    return;
  }
  new (verdict.state) Actor{};
  verdict.new_actor = 1;
}

template <bool asks, bool sets_timers, bool lists_keys>
struct FindOrCreate {
  const Envelope& envelope;
  MessageVerdict& verdict;
  template <class Actor>
  GYRE_DEVICE void operator()(ActorType<Actor>, uint32_t n, const ActorTableLayout& layout, uint8_t* table) {
    if constexpr (state_bytes<Actor>() != 0) {
      if (n == envelope.actor_type) {
        find_or_create_in<Actor, asks, sets_timers, lists_keys>(ActorTable(table, layout), layout.capacity,
                                                                envelope, verdict);
      }
    }
  }
};
struct IncarnationOf {
  uint32_t actor_type;
  uint64_t key;
  uint32_t found = 0;
  template <class Actor>
  GYRE_DEVICE void operator()(ActorType<Actor>, uint32_t n, const ActorTableLayout& layout, uint8_t* table) {
    if constexpr (state_bytes<Actor>() != 0) {
      if (n == actor_type) found = ActorTable(table, layout).incarnation_of(key);
    }
  }
};
// Of the places of one type's table: see ActorTable::find_at().
struct PlacesOf {
  uint32_t actor_type;
  uint32_t places = 0;
  template <class Actor>
  GYRE_DEVICE void operator()(ActorType<Actor>, uint32_t n, const ActorTableLayout& layout, uint8_t* table) {
    if constexpr (state_bytes<Actor>() != 0) {
      if (n == actor_type) places = ActorTable(table, layout).places();
    }
  }
};
struct FindAt {
  uint32_t actor_type, place;
  uint64_t& key;
  bool found = false;
  template <class Actor>
  GYRE_DEVICE void operator()(ActorType<Actor>, uint32_t n, const ActorTableLayout& layout, uint8_t* table) {
    if constexpr (state_bytes<Actor>() != 0) {
      if (n == actor_type) found = ActorTable(table, layout).find_at(place, key);
    }
  }
};
struct Remove {
  uint32_t actor_type;
  uint64_t key;
  bool removed = false;
  template <class Actor>
  GYRE_DEVICE void operator()(ActorType<Actor>, uint32_t n, const ActorTableLayout& layout, uint8_t* table) {
    if constexpr (state_bytes<Actor>() != 0) {
      if (n == actor_type) removed = ActorTable(table, layout).erase(key);
    }
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
// Finds the actors of several messages, one a thread; those that are not there are created one after the
// other.
template <bool asks, bool lists_keys>
struct FindOrCreateEach {
  bool has_one;
  const Envelope& envelope;
  MessageVerdict& verdict;
  uint32_t actor_type;  // of all
  void* state = nullptr;
  template <class Actor>
  GYRE_DEVICE void operator()(ActorType<Actor>, uint32_t n, const ActorTableLayout& layout, uint8_t* table) {
    if constexpr (state_bytes<Actor>() != 0 && side_by_side<Actor>() != SideBySide::none) {
      if (n != actor_type) return;
      const ActorTable actors(table, layout);
      if (has_one) state = actors.find(envelope.key);
      for (uint32_t left = PollGroup::ballot(has_one && state == nullptr); left != 0; left &= left - 1) {
        if (PollGroup::rank() == lowest_bit(left)) {
          find_or_create_in<Actor, asks, false, lists_keys>(actors, layout.capacity, envelope, verdict);
          state = verdict.state;
        }
        PollGroup::sync();
      }
    }
  }
};
}  // namespace detail

/// Finds the actor that a message is for, or creates it: sets `verdict.state`, or `verdict.refused`. One
/// thread.
/// @param tables  the worker's
template <class... Actors>
GYRE_DEVICE void find_or_create(ActorList<Actors...> actors, const EngineMemory& memory, uint8_t* tables,
                                const Envelope& envelope, MessageVerdict& verdict) {
  if (envelope.actor_type >= sizeof...(Actors)) {
    verdict.refused = Status::unknown_actor;
    return;
  }
  visit_tables(actors, memory, tables,
               detail::FindOrCreate<rights_of_any<Actors...>().asks, rights_of_any<Actors...>().sets_timers,
                                    rights_of_any<Actors...>().sends_to_many>{envelope, verdict});
}

/// Returns which incarnation of that actor there is: see ActorTable::incarnation_of(); 0 for a type without
/// a table. One thread.
template <class... Actors>
GYRE_DEVICE uint32_t incarnation_of(ActorList<Actors...> actors, const EngineMemory& memory, uint8_t* tables,
                                    uint32_t actor_type, uint64_t key) {
  detail::IncarnationOf visit{actor_type, key};
  visit_tables(actors, memory, tables, visit);
  return visit.found;
}

/// Returns how many places the table of that type has for find_actor_at(); 0 for a type without a table.
template <class... Actors>
GYRE_DEVICE uint32_t places_of(ActorList<Actors...> actors, const EngineMemory& memory, uint8_t* tables,
                               uint32_t actor_type) {
  detail::PlacesOf visit{actor_type};
  visit_tables(actors, memory, tables, visit);
  return visit.places;
}
/// Returns ActorTable::find_at() for the table of that type. Any thread; no other one changes the table.
/// @param key  set to the actor's key
template <class... Actors>
GYRE_DEVICE bool find_actor_at(ActorList<Actors...> actors, const EngineMemory& memory, uint8_t* tables,
                               uint32_t actor_type, uint32_t place, uint64_t& key) {
  detail::FindAt visit{actor_type, place, key};
  visit_tables(actors, memory, tables, visit);
  return visit.found;
}

/// Removes an actor from its table; returns whether it was there. One thread.
template <class... Actors>
GYRE_DEVICE bool remove(ActorList<Actors...> actors, const EngineMemory& memory, uint8_t* tables,
                        uint32_t actor_type, uint64_t key) {
  detail::Remove visit{actor_type, key};
  visit_tables(actors, memory, tables, visit);
  return visit.removed;
}

/// Calls `visit(actor, key, actor_type)` for each actor whose type has an on_stop. By the whole handler
/// group.
template <class... Actors, class Visit>
GYRE_DEVICE void for_each_to_stop(ActorList<Actors...> actors, const EngineMemory& memory, uint8_t* tables,
                                  Visit&& visit) {
  visit_tables(actors, memory, tables, detail::VisitActorsToStop<Visit>{visit});
}

/// find_or_create() for one message of each thread that has one, all to actors of one type. By a warp.
/// @returns the state of the thread's actor; null where its type has none, or `verdict` refuses it
template <class... Actors>
GYRE_DEVICE void* find_or_create_each(ActorList<Actors...> actors, const EngineMemory& memory,
                                      uint8_t* tables, uint32_t actor_type, bool has_one,
                                      const Envelope& envelope, MessageVerdict& verdict) {
  detail::FindOrCreateEach<rights_of_any<Actors...>().asks, rights_of_any<Actors...>().sends_to_many> visit{
      has_one, envelope, verdict, actor_type};
  visit_tables(actors, memory, tables, visit);
  return visit.state;
}
}  // namespace gyre
