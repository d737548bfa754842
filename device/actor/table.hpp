// Where a worker keeps its actors: for each type with state, a hash table from keys to states, in memory of
// the engine's own. One thread of its worker reads and writes it.
//
// Open addressing with linear probing at a load of two thirds at most, and deletion by shifting back (Knuth,
// The Art of Computer Programming, vol. 3, 6.4, algorithm R): no tombstones, so a table never slows down with
// age. An idle actor costs its state and 28 bytes; 36 where messages are handed to all actors of a type.
#pragma once

#include <gyre/device/context.hpp>

namespace gyre {

namespace detail {

template <class Actor>
concept HasOnStart = requires(Actor actor, Context& context) {
  actor.on_start(context);
};
template <class Actor>
concept HasOnStop = requires(Actor actor, Context& context) {
  actor.on_stop(context);
};

/// Whether a message creates the actor it is addressed to: unless the type says
/// `static constexpr bool created_by_message = false`.
template <class Actor>
GYRE_DEVICE constexpr bool created_by_message() {
  if constexpr (requires { Actor::created_by_message; }) {
    return Actor::created_by_message;
  } else {
    return true;
  }
}

inline constexpr uint32_t state_alignment = 16;

/// Bytes a state takes in the table; 0 for a type without state, hooks or birth control: it needs no table,
/// and every key is the same to it.
template <class Actor>
GYRE_DEVICE constexpr uint32_t state_bytes() {
  static_assert(__is_trivially_copyable(Actor), "an actor's state lies in memory that no destructor visits");
  static_assert(alignof(Actor) <= state_alignment, "an actor's state may be aligned to 16 bytes at most");
  if constexpr (__is_empty(Actor) && !HasOnStart<Actor> && !HasOnStop<Actor> && created_by_message<Actor>()) {
    return 0;
  } else {
    return uint32_t((sizeof(Actor) + state_alignment - 1) / state_alignment * state_alignment);
  }
}

/// Most actors of the type that one worker holds: what the launch allows, or less where the type says
/// `static constexpr uint32_t max_per_worker`.
template <class Actor>
GYRE_DEVICE constexpr uint32_t capacity_of(uint32_t actors_per_worker) {
  if constexpr (requires { Actor::max_per_worker; }) {
    return Actor::max_per_worker < actors_per_worker ? Actor::max_per_worker : actors_per_worker;
  } else {
    return actors_per_worker;
  }
}

}  // namespace detail

/// How one type's table lies in memory: header, slots, free list, states. All of it zero: no actors.
struct ActorTableLayout {
  uint32_t state_bytes;     ///< a multiple of 16; 0: no table
  uint32_t capacity;        ///< actors
  bool lists_keys = false;  ///< keys lie behind the states: messages are handed to all actors of the type

  struct Header {
    uint32_t living;   ///< actors there are
    uint32_t touched;  ///< states that were ever used: the others are not in the free list
    uint32_t created;  ///< actors that there ever were, modulo 2^32, where they are counted
    uint32_t reserved[13];
  };
  struct Slot {
    uint64_t key;
    uint32_t state;        ///< index + 1; 0: the slot is empty
    uint32_t incarnation;  ///< tells the actor from earlier ones with its key
  };

  GYRE_DEVICE constexpr uint32_t slots() const { return capacity + capacity / 2 + 1; }
  /// Returns the slot where a key is, in a table of `slots` slots; the key lies behind it where others have
  /// that slot.
  // Finalizer of MurmurHash3 (Austin Appleby, public domain), then the high half of a product for a remainder
  // (Lemire, "Fast random integer generation in an interval", 2019).
  GYRE_DEVICE static constexpr uint32_t home_of(uint64_t key, uint32_t slots) {
    key = (key ^ (key >> 33)) * 0xff51afd7ed558ccdu;
    key = (key ^ (key >> 33)) * 0xc4ceb9fe1a85ec53u;
    return uint32_t(((key >> 32) * slots) >> 32);
  }
  GYRE_DEVICE constexpr uint64_t slots_offset() const { return sizeof(Header); }
  GYRE_DEVICE constexpr uint64_t free_offset() const {
    return slots_offset() + uint64_t(slots()) * sizeof(Slot);
  }
  GYRE_DEVICE constexpr uint64_t states_offset() const {
    return (free_offset() + uint64_t(capacity) * sizeof(uint32_t) + 63) / 64 * 64;
  }
  GYRE_DEVICE constexpr uint64_t keys_offset() const {
    return states_offset() + uint64_t(capacity) * state_bytes;
  }
  GYRE_DEVICE constexpr uint64_t bytes() const {
    const uint64_t keys_bytes = lists_keys ? uint64_t(capacity) * sizeof(uint64_t) : 0;
    return state_bytes == 0 ? 0 : (keys_offset() + keys_bytes + 255) / 256 * 256;
  }
};
static_assert(sizeof(ActorTableLayout::Header) == 64 && sizeof(ActorTableLayout::Slot) == 16,
              "actors' tables lie alike on both sides");

/// One type's actors of one worker. Refers to the memory, owns nothing. One thread.
class ActorTable {
 public:
  GYRE_DEVICE ActorTable(uint8_t* memory, ActorTableLayout layout) : memory_(memory), layout_(layout) {}

  /// The state of the actor with that key; null if there is none.
  GYRE_DEVICE void* find(uint64_t key) const {
    const Slot& slot = slots()[slot_of(key)];
    return slot.state == 0 ? nullptr : state(slot.state - 1);
  }
  /// Returns the state of the actor with that key and incarnation; null if there is none.
  GYRE_DEVICE void* find(uint64_t key, uint32_t incarnation) const {
    const Slot& slot = slots()[slot_of(key)];
    return slot.state == 0 || slot.incarnation != incarnation ? nullptr : state(slot.state - 1);
  }
  /// Room for the state of an actor that find does not find, of any content; null if there is no more.
  /// @tparam counts_incarnations  incarnation_of() is used
  /// @tparam lists_keys           find_at() is used
  template <bool counts_incarnations = false, bool lists_keys = false>
  GYRE_DEVICE void* insert(uint64_t key) {
    if (header().living == layout_.capacity) return nullptr;
    const uint32_t free = header().touched - header().living;  // states in the free list
    const uint32_t index = free != 0 ? free_list()[free - 1] : header().touched++;
    ++header().living;
    uint32_t incarnation = 0;
    if constexpr (counts_incarnations) incarnation = ++header().created;
    slots()[slot_of(key)] = {key, index + 1, incarnation};
    if constexpr (lists_keys) keys()[index] = key;
    return state(index);
  }
  /// Returns whether there was one with that key.
  GYRE_DEVICE bool erase(uint64_t key) {
    uint32_t hole = slot_of(key);
    if (slots()[hole].state == 0) return false;
    free_list()[header().touched - header().living] = slots()[hole].state - 1;
    --header().living;
    const uint32_t count = layout_.slots();
    GYRE_ROLLED
    for (uint32_t i = hole;;) {
      i = i + 1 == count ? 0 : i + 1;
      if (slots()[i].state == 0) break;
      // An actor may move back into the hole if its home does not lie behind the hole, on the way round to
      // it.
      const uint32_t home = home_of(slots()[i].key);
      const bool stays = hole <= i ? hole < home && home <= i : hole < home || home <= i;
      if (stays) continue;
      slots()[hole] = slots()[i];
      hole = i;
    }
    slots()[hole] = {};
    return true;
  }
  /// Returns a number that no other actor of the table had, of 2^32 that came before it; 0 if there is no
  /// actor with that key.
  GYRE_DEVICE uint32_t incarnation_of(uint64_t key) const {
    const Slot& slot = slots()[slot_of(key)];
    return slot.state == 0 ? 0 : slot.incarnation;
  }
  GYRE_DEVICE uint32_t living() const { return header().living; }

  /// Places for find_at(): as many actors as there were at once.
  GYRE_DEVICE uint32_t places() const { return header().touched; }
  /// Returns whether there is an actor in a place, below places(), and sets `key` to its key. An actor keeps
  /// its place while it lives. In a table that lists keys. Any thread.
  GYRE_DEVICE bool find_at(uint32_t place, uint64_t& key) const {
    key = keys()[place];
    const Slot& slot = slots()[slot_of(key)];
    return slot.state == place + 1;  // else its last actor is gone, perhaps for another one with its key
  }

  /// The n-th slot's actor, n below slots(): its state, and its key in `key`; null where the slot is empty.
  GYRE_DEVICE void* at(uint32_t n, uint64_t& key) const {
    key = slots()[n].key;
    return slots()[n].state == 0 ? nullptr : state(slots()[n].state - 1);
  }
  GYRE_DEVICE uint32_t slot_count() const { return layout_.slots(); }

 private:
  using Header = ActorTableLayout::Header;
  using Slot = ActorTableLayout::Slot;

  GYRE_DEVICE uint32_t home_of(uint64_t key) const { return ActorTableLayout::home_of(key, layout_.slots()); }
  // The slot with that key, or the empty one where it would be. There is one: a third of the slots are empty.
  GYRE_DEVICE uint32_t slot_of(uint64_t key) const {
    const uint32_t count = layout_.slots();
    uint32_t i = home_of(key);
    GYRE_ROLLED
    while (slots()[i].state != 0 && slots()[i].key != key) i = i + 1 == count ? 0 : i + 1;
    return i;
  }
  GYRE_DEVICE Header& header() const { return *reinterpret_cast<Header*>(memory_); }
  GYRE_DEVICE Slot* slots() const { return reinterpret_cast<Slot*>(memory_ + layout_.slots_offset()); }
  GYRE_DEVICE uint32_t* free_list() const {
    return reinterpret_cast<uint32_t*>(memory_ + layout_.free_offset());
  }
  GYRE_DEVICE uint64_t* keys() const { return reinterpret_cast<uint64_t*>(memory_ + layout_.keys_offset()); }
  GYRE_DEVICE void* state(uint32_t index) const {
    return memory_ + layout_.states_offset() + uint64_t(index) * layout_.state_bytes;
  }

  uint8_t* memory_;
  ActorTableLayout layout_;
};

/// The table of the Nth of `Actors` in a worker's memory.
template <class... Actors>
struct ActorTables;
template <>
struct ActorTables<> {
  GYRE_DEVICE static constexpr uint64_t bytes(uint32_t, bool = false) { return 0; }
};
template <class First, class... Rest>
struct ActorTables<First, Rest...> {
  /// @param lists_keys  see ActorTableLayout
  GYRE_DEVICE static constexpr ActorTableLayout first(uint32_t actors_per_worker, bool lists_keys = false) {
    return {detail::state_bytes<First>(), detail::capacity_of<First>(actors_per_worker), lists_keys};
  }
  /// Of all their tables, for one worker: a multiple of 256.
  GYRE_DEVICE static constexpr uint64_t bytes(uint32_t actors_per_worker, bool lists_keys = false) {
    return first(actors_per_worker, lists_keys).bytes() +
           ActorTables<Rest...>::bytes(actors_per_worker, lists_keys);
  }
};

}  // namespace gyre
