// The actors that come with Gyre.
#pragma once

#include <gyre/device/builtin/echo.hpp>
#include <gyre/device/builtin/vector_add.hpp>
#include <gyre/messages/echo.official.hpp>
#include <gyre/messages/vector_add.official.hpp>
#include <gyre/runtime/actor_set.hpp>

namespace gyre {

/// Returns the set of Echo and VectorAdd, for tools, benchmarks and first steps.
ActorSet builtin_actors();

}  // namespace gyre
