// A shared object of the tests' actors, for gyre_actors_load.
#include <gyre/runtime/c/export_actors.hpp>
#include <gyre_telling_actors_sources.hpp>
#include <gyre_test_actors_sources.hpp>

#include "support/actors/probe.hpp"
#include "support/actors/probe.official.hpp"
#include "support/actors/telling.hpp"
#include "support/actors/telling.official.hpp"

namespace {
gyre::ActorSet no_probes() { throw gyre::BadOptions("making the set: there are no probes today"); }
}  // namespace

GYRE_EXPORT_ACTORS(probes, gyre::ActorSet::of<gyre_test::Probe>(gyre_test_actors::sources))
GYRE_EXPORT_ACTORS(no_probes, no_probes())
GYRE_EXPORT_ACTORS(speakers, gyre::ActorSet::of<gyre_telling::Speaker>(gyre_telling_actors::sources))
