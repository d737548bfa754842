#include <gyre/runtime/builtin_actors.hpp>
#include <gyre_builtin_actors_sources.hpp>

namespace gyre {

ActorSet builtin_actors() {
  return ActorSet::of<actors::Echo, actors::VectorAdd>(gyre_builtin_actors::sources);
}

}  // namespace gyre
