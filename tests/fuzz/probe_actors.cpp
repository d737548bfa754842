#include "support/stepped.hpp"

gyre::ActorSet gyre_test::probe_actors() { return gyre::ActorSet::of<Probe>(gyre_test_actors::sources); }
