// The host's description of the actor types in a worker: their state and their handlers.
#pragma once

#include <gyre/device/actor/description.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace gyre {

/// One actor type.
struct ActorDescription : ActorRecord {
  std::vector<HandlerTypes> types;        ///< of the handlers, in the order of their message_type numbers
  std::vector<uint32_t> max_reply_bytes;  ///< of the handlers; 0: not declared
};

/// Returns what handlers of any of `actors` may do.
Rights rights_of(const std::vector<ActorDescription>& actors);

/// Parses the bytes of a gyre::Description, one entry per actor type. Throws Error if they are damaged.
std::vector<ActorDescription> read_description(std::span<const std::byte> bytes);

/// Returns the bytes that read_description() parses.
std::vector<std::byte> write_description(const std::vector<ActorDescription>& actors);

/// Describes actor types that the program is compiled with.
template <class... Actors>
std::vector<ActorDescription> description_of() {
  constexpr auto description = describe<Actors...>();
  return read_description(std::as_bytes(std::span(&description, 1)));
}

}  // namespace gyre
