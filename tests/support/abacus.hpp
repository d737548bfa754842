// The tests' actor for buffers, and what is sent to it.
#pragma once

#include <gyre/gyre.hpp>
#include <gyre_abacus_actors_sources.hpp>
#include <support/actors/abacus.official.hpp>

#include "support/actors/abacus.hpp"

namespace gyre_test {

gyre::ActorSet abacus_actors();

inline constexpr gyre::Address<Abacus> abacus{};

template <class T>
auto adding(const gyre::Buffer<T>& buffer, uint64_t amount, uint64_t at_least = 0,
            Way way = Way::EVERY_THREAD) {
  return [&buffer, amount, at_least, way](Add::Builder add) {
    buffer.set(add.initBuffer());
    add.setAmount(amount);
    add.setAtLeast(at_least);
    add.setWay(way);
  };
}
inline auto noting(const gyre::Buffer<uint64_t>& buffer, uint64_t amount) {
  return [&buffer, amount](Note::Builder note) {
    buffer.set(note.initBuffer());
    note.setAmount(amount);
  };
}

}  // namespace gyre_test
