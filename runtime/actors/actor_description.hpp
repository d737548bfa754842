// What the host knows of the actor types in a worker: their state and their handlers.
#pragma once

#include <gyre/device/actor/description.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace gyre {

/// One actor type.
struct ActorDescription : ActorRecord {
  std::vector<HandlerTypes> types;        ///< of the handlers, in the order of their message_type numbers
  std::vector<uint32_t> max_reply_bytes;  ///< of the same; 0: the actor does not say
};

/// Takes the bytes of a gyre::Description apart, one entry an actor type. Throws Error where they are none.
std::vector<ActorDescription> read_description(std::span<const std::byte> bytes);

/// The bytes that read_description takes apart so.
std::vector<std::byte> write_description(const std::vector<ActorDescription>& actors);

/// The same of actors that the program itself is compiled with.
template <class... Actors>
std::vector<ActorDescription> description_of() {
  constexpr auto description = describe<Actors...>();
  return read_description(std::as_bytes(std::span(&description, 1)));
}

}  // namespace gyre
