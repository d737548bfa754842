// A program's own actors for the C interface: a shared object that gyre_actors_load (gyre.h) loads.
#pragma once

#include <gyre/runtime/c/gyre.h>
#include <gyre/runtime/actor_set.hpp>

#include <new>

namespace gyre::c {

/// What such an object gives out: plain values of one layout for all time, up to `built_with`.
struct ActorPlugin {
  const char*
      built_with;  ///< GYRE_VERSION and the compiler's __VERSION__; what follows is good for that alone
  size_t actor_set_bytes;
  void (*make)(void* place);  ///< makes the ActorSet there; throws what making it throws
};

inline constexpr const char* built_with = GYRE_VERSION ", " __VERSION__;

}  // namespace gyre::c

/// GYRE_EXPORT_ACTORS(shop, gyre::ActorSet::of<shop::Order>(shop_actors::sources)), at namespace scope in one
/// source file of a shared object that links gyre::runtime and the actors: gyre_actors_load(path, "shop", …)
/// finds it.
#define GYRE_EXPORT_ACTORS(name, ...)                                                                       \
  extern "C" __attribute__((visibility("default"))) const gyre::c::ActorPlugin* gyre_exported_##name() {    \
    static const gyre::c::ActorPlugin plugin{gyre::c::built_with, sizeof(gyre::ActorSet),                   \
                                             [](void* place) { new (place) gyre::ActorSet(__VA_ARGS__); }}; \
    return &plugin;                                                                                         \
  }
