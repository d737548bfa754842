// Pools: actors of one type that share work, chosen by a hash.
#pragma once

#include <gyre/device/address.hpp>

namespace gyre {

/// A pool of actors of one type, with keys in a row: `constexpr gyre::Pool<Parser> parsers{0, 64}`. Send to
/// `parsers.member(order_id)` as to any address. Programs and handlers choose alike, and so does every
/// version of Gyre. The workers share the members evenly, where the pool has as many as there are workers, or
/// a multiple of that. A plain value.
template <class ActorType>
struct Pool {
  using Actor = ActorType;
  uint64_t first_key = 0;  ///< of the first member
  uint32_t size = 1;       ///< members, at least 1

  /// Returns the n-th member. `n` is below `size`.
  GYRE_DEVICE constexpr Address<Actor> at(uint32_t n) const { return {first_key + n}; }
  /// Returns the member for a number, such as an order's: always the same one. Different numbers, also those
  /// that follow each other, spread evenly over the pool. Where `size` changes, most numbers get another
  /// member.
  GYRE_DEVICE constexpr Address<Actor> member(uint64_t value) const { return at(place_of(mixed(value))); }
  /// Returns the member for `count` bytes, such as a name's.
  GYRE_DEVICE constexpr Address<Actor> member(const char* bytes, uint64_t count) const {
    // FNV-1a, whose upper bits alone depend on the last bytes too little.
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint64_t i = 0; i < count; ++i) hash = (hash ^ uint8_t(bytes[i])) * 0x100000001b3u;
    return at(place_of(mixed(hash)));
  }

 private:
  // The finalizer of SplitMix64 (Sebastiano Vigna, public domain): each bit depends on all bits. The tables
  // of actors hash keys by another one.
  GYRE_DEVICE static constexpr uint64_t mixed(uint64_t value) {
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
  }
  // The high half of a product in place of a remainder (Lemire, "Fast random integer generation in an
  // interval", 2019).
  GYRE_DEVICE constexpr uint32_t place_of(uint64_t hash) const {
    return uint32_t(((hash >> 32) * size) >> 32);
  }
};

}  // namespace gyre
