// The actors that come with Gyre.
#pragma once

#include <gyre/device/builtin/echo.hpp>
#include <gyre/device/builtin/vector_add.hpp>
#include <gyre/messages/echo.official.hpp>
#include <gyre/messages/vector_add.official.hpp>
#include <gyre/runtime/actor_set.hpp>

#include <vector>

namespace gyre {

/// Returns the set of Echo and VectorAdd, for tools, benchmarks and first steps.
ActorSet builtin_actors();

/// Returns the headers of Echo and VectorAdd, for a text given to ActorSet::from_source() that includes them.
std::vector<SourceText> builtin_actor_headers();

}  // namespace gyre
