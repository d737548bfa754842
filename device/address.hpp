// The address of one actor, in programs and in handlers.
#pragma once

#include <gyre/messages/fixed_width.hpp>

namespace gyre {

/// Names an actor by its type and its key. Worker `key mod Options::workers` runs the actor.
template <class ActorType>
struct Address {
  using Actor = ActorType;
  uint64_t key = 0;
};

}  // namespace gyre
