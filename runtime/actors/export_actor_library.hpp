// How a shared object exports actors: included by the sources that say so, and by nothing else.
#pragma once

#include <gyre/runtime/actors/actor_library.hpp>

namespace gyre::detail {

// Of this shared object alone: hidden, or all loaded objects would share one.
__attribute__((visibility("hidden"))) inline const ExportedActors* exported_actors = nullptr;

struct ExportActors {
  explicit ExportActors(ExportedActors& actors) {
    actors.next = exported_actors;
    exported_actors = &actors;
  }
};

}  // namespace gyre::detail

// Weak: any number of the object's sources may define it.
extern "C" __attribute__((visibility("default"), weak)) const gyre::ExportedActors* gyre_exported_actors() {
  return gyre::detail::exported_actors;
}

/// GYRE_EXPORT_ACTOR_LIBRARY(name, headers_hash, built_with, function that returns the const ActorLibrary*)
#define GYRE_EXPORT_ACTOR_LIBRARY(name, headers_hash, built_with, ...)                              \
  static gyre::ExportedActors gyre_export_of_##name{                                                \
      gyre::ExportedActors::expected_magic, headers_hash, built_with, #name, __VA_ARGS__, nullptr}; \
  static const gyre::detail::ExportActors gyre_exported_as_##name(gyre_export_of_##name);
