// The first tutorial's actor, as a shared object for programs that are not in C++.
#include <averages_sources.hpp>
#include <gyre/runtime/c/export_actors.hpp>

#include <averages/average.hpp>
#include <averages/average.official.hpp>

GYRE_EXPORT_ACTORS(averages, gyre::ActorSet::of<averages::Average>(averages::sources))
