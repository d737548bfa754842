#include <gyre/runtime/builtin_actors.hpp>
#include <gyre_builtin_actors_sources.hpp>

#include <algorithm>

namespace gyre {

ActorSet builtin_actors() {
  return ActorSet::of<actors::Echo, actors::VectorAdd>(gyre_builtin_actors::sources);
}

std::vector<SourceText> builtin_actor_headers() {
  std::vector<SourceText> headers;
  for (const SourceFile& file : gyre_builtin_actors::sources.files) {
    const auto& own = gyre_builtin_actors::sources.actor_headers;
    if (std::find(own.begin(), own.end(), file.name) != own.end())
      headers.push_back({std::string(file.name), std::string(file.text)});
  }
  return headers;
}

}  // namespace gyre
