// The actors that come with Gyre.
#pragma once

#include <gyre/device/builtin/echo.hpp>
#include <gyre/device/builtin/vector_add.hpp>
#include <gyre/messages/echo.official.hpp>
#include <gyre/messages/vector_add.official.hpp>
#include <gyre/runtime/actor_set.hpp>

namespace gyre {

/// Echo and VectorAdd, for the tools, the benchmarks and first steps.
ActorSet builtin_actors();

}  // namespace gyre
