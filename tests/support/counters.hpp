// The actors with state, and how to talk to them.
#pragma once

#include <gyre/gyre.hpp>
#include <gyre_state_actors_sources.hpp>
#include <support/actors/counter.official.hpp>

#include "support/actors/counter.hpp"

namespace gyre_counters {

gyre::ActorSet counter_actors();
inline gyre::Address<Counter> counter(uint64_t key) { return {key}; }

inline auto adding(uint64_t amount) {
  return [amount](Add::Builder add) { add.setAmount(amount); };
}
inline auto incrementing(uint64_t amount) {
  return [amount](Increment::Builder increment) { increment.setAmount(amount); };
}
inline auto numbered(uint32_t sender, uint64_t number) {
  return [sender, number](Numbered::Builder message) {
    message.setSender(sender);
    message.setNumber(number);
  };
}
inline auto nothing = [](auto) {};

}  // namespace gyre_counters
