// This project's actors, as a shared object that programs in other languages load.
#include <gyre/runtime/c/export_actors.hpp>
#include <till_sources.hpp>

#include <till/actors/adjuster.hpp>
#include <till/actors/till.hpp>
#include <till/schemas/adjust-v1.0,draft.official.hpp>
#include <till/schemas/old/order.official.hpp>
#include <till/schemas/order.official.hpp>

GYRE_EXPORT_ACTORS(till, gyre::ActorSet::of<till::Till, till::Adjuster>(till::sources))
