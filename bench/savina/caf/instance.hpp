// What the CAF versions of the benchmarks share.
#pragma once

#include <bench/savina/hash.hpp>
#include <caf/all.hpp>

#include <memory>
#include <vector>

#include "savina/benchmark.hpp"

// Messages are told apart by the types of their contents alone: atoms of CAF 0.17 and of 0.18 differ.

namespace gyre::bench::savina {

/// One instance that is to begin.
struct CafInstance {
  caf::actor_system& system;
  caf::actor collector;
  uint64_t number = 0;
  Size size;

  /// Tells the collector the result.
  void report(caf::event_based_actor* self, uint64_t value) const { self->send(collector, number, value); }
};

/// Ends actors that the calling one does not need any more, and the calling one.
template <class Actors>
void end_all(caf::event_based_actor* self, const Actors& actors) {
  for (const caf::actor& actor : actors) self->send_exit(actor, caf::exit_reason::user_shutdown);
  self->quit();
}

// Each spawns an instance's actors and begins.
void start_ping_pong(const CafInstance& instance);
void start_counting(const CafInstance& instance);
void start_fork_join(const CafInstance& instance);
void start_create(const CafInstance& instance);
void start_big(const CafInstance& instance);
void start_fib(const CafInstance& instance);
void start_dictionary(const CafInstance& instance);
void start_bank(const CafInstance& instance);

}  // namespace gyre::bench::savina
