// Actors that only CUDA runs: the host's compiler sees no more of their handlers than the declaration.
#include <gyre/gyre.hpp>
#include <gyre/runtime/actors/actor_library.hpp>
#include <gyre_halves_actors_sources.hpp>
#include <support/actors/toolkit.official.hpp>

#include "support/actors/halves.hpp"
#include "support/catch.hpp"

using namespace gyre;
using gyre_test::containing;
using gyre_toolkit::Halves;

TEST_CASE("the CPU engine refuses an actor that is cuda_only, by its name") {
  const ActorSet set = ActorSet::of<Halves>(gyre_halves_actors::sources);
  CHECK(set.compiled_in());
  CHECK(set.handlers().size() == 1);
  CHECK_THROWS_WITH(Runtime::launch(set, {.engine = EngineKind::cpu}),
                    containing("gyre_toolkit::Halves can run on CUDA only (cuda_only); use --engine cuda"));
  CHECK_THROWS_AS(Runtime::launch(set, {.engine = EngineKind::cpu}), EngineUnavailable);
}

TEST_CASE("a library of an actor that is cuda_only is known, and refused by the CPU engine too") {
  const LibraryOfActors exported(ActorSet::of<Halves>(gyre_halves_actors::sources));
  CHECK(exported.library().make_worker == nullptr);
  const ActorSet loaded = ActorSet::from_library(exported.library());
  CHECK(loaded.compiled_in());
  CHECK(loaded.handlers().size() == 1);
  CHECK_THROWS_WITH(Runtime::launch(loaded, {.engine = EngineKind::cpu}), containing("gyre_toolkit::Halves"));
}
