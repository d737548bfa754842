// A part of a listing of actors, and where it goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace gyre {

/// Says where a listing of actors goes on. Client::list_actors() makes it; the default is the begin.
struct ActorCursor {
  uint32_t worker = 0;
  uint32_t slot = 0;  ///< of the worker's table
  uint64_t key = 0;   ///< the least key that is left of those whose place is that slot
};

/// Holds a part of a listing of actors.
struct ActorPage {
  std::vector<uint64_t> keys;       ///< in no order
  std::optional<ActorCursor> next;  ///< where the listing goes on; empty at its end
};

}  // namespace gyre
