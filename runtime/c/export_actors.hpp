// A program's own actors as a shared object, which programs in other languages (gyre_actors_load) and the
// tools
// (--actors FILE.so) load.
#pragma once

#include <gyre/runtime/c/gyre.h>
#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/actors/export_actor_library.hpp>

/// GYRE_EXPORT_ACTORS(shop, gyre::ActorSet::of<shop::Order>(shop_actors::sources)), at namespace scope in one
/// source file of a shared object that links gyre::runtime and the actors: gyre_actors_load(path, "shop", …)
/// finds it. Include the <schema>.official.hpp of the actors' messages too: then the object carries their
/// schemas.
#define GYRE_EXPORT_ACTORS(name, ...)                                           \
  GYRE_EXPORT_ACTOR_LIBRARY(                                                    \
      name, gyre::actor_library_headers_hash(), GYRE_VERSION ", " __VERSION__,  \
      +[]() -> const gyre::ActorLibrary* {                                      \
        static const gyre::LibraryOfActors actors{gyre::ActorSet(__VA_ARGS__)}; \
        return &actors.library();                                               \
      })
