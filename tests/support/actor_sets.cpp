// The sets of actors that several sources launch. Their workers are templates: here each is compiled, once.

#include "support/abacus.hpp"
#include "support/counters.hpp"
#include "support/stepped.hpp"

gyre::ActorSet gyre_test::probe_actors() { return gyre::ActorSet::of<Probe>(gyre_test_actors::sources); }

gyre::ActorSet gyre_counters::counter_actors() {
  return gyre::ActorSet::of<Counter, Orderly, Guest>(gyre_state_actors::sources);
}

gyre::ActorSet gyre_test::abacus_actors() { return gyre::ActorSet::of<Abacus>(gyre_abacus_actors::sources); }
