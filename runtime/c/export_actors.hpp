// Exports actors from a shared object, for programs in other languages (gyre_actors_load) and for the
// tools (--actors FILE.so).
#pragma once

#include <gyre/runtime/c/gyre.h>
#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/actors/export_actor_library.hpp>

/// Exports an actor set under a name. Write it at namespace scope in one source file of a shared object
/// that links gyre::runtime and the actors:
/// `GYRE_EXPORT_ACTORS(shop, gyre::ActorSet::of<shop::Order>(shop_actors::sources))`.
/// gyre_actors_load(path, "shop", …) then finds the set. Include the <schema>.official.hpp of the actors'
/// messages, so that the object carries their schemas.
#define GYRE_EXPORT_ACTORS(name, ...)                                           \
  GYRE_EXPORT_ACTOR_LIBRARY(                                                    \
      name, gyre::actor_library_headers_hash(), GYRE_VERSION ", " __VERSION__,  \
      +[]() -> const gyre::ActorLibrary* {                                      \
        static const gyre::LibraryOfActors actors{gyre::ActorSet(__VA_ARGS__)}; \
        return &actors.library();                                               \
      })
