// What handlers may do: one value, by which both sides decide what workers have code and memory for.
#pragma once

#include <gyre/messages/fixed_width.hpp>

namespace gyre {

/// What a handler may do, as its context says; of several handlers what any of them may. Workers of a set
/// have no code and no memory for what none of its handlers may do.
struct Rights {
  bool sends = false;          ///< sends to other actors: workers have mailboxes
  bool asks = false;           ///< asks other actors, answers later, forwards: workers have reply rings
  bool tells_host = false;     ///< ToHost: a part of the workers' rings is kept for it
  bool sets_timers = false;    ///< Timers: workers have tables of them
  bool sends_to_many = false;  ///< ToMany: workers have subscriptions
  bool sends_large = false;    ///< LargeMessages: workers share a pool of bodies

  /// Returns the rights of both.
  GYRE_DEVICE constexpr Rights operator|(Rights other) const {
    return {sends || other.sends,
            asks || other.asks,
            tells_host || other.tells_host,
            sets_timers || other.sets_timers,
            sends_to_many || other.sends_to_many,
            sends_large || other.sends_large};
  }
};

}  // namespace gyre
