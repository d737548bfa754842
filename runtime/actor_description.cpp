#include <fmt/format.h>
#include <gyre/bridge/error.hpp>
#include <gyre/runtime/actor_description.hpp>

#include <cstring>

namespace gyre {

std::vector<ActorDescription> read_description(std::span<const std::byte> bytes) {
  size_t at = 0;
  const auto take = [&](auto& value) {
    if (bytes.size() - at < sizeof value) {
      throw Error(
          fmt::format("reading the actors' description: it has {} bytes, and its content needs more; "
                      "the module is not one of this Gyre",
                      bytes.size()));
    }
    std::memcpy(&value, bytes.data() + at, sizeof value);
    at += sizeof value;
  };
  DescriptionHeader header{};
  take(header);
  if (header.magic != DescriptionHeader::expected_magic) {
    throw Error(
        fmt::format("reading the actors' description: it begins with {:#018x} instead of {:#018x}; "
                    "the module is not one of this Gyre",
                    header.magic, DescriptionHeader::expected_magic));
  }
  std::vector<ActorDescription> actors;
  for (uint32_t n = 0; n < header.actors; ++n) {
    ActorRecord record{};
    take(record);
    actors.push_back({record, {}});
  }
  for (ActorDescription& actor : actors) {
    for (uint32_t n = 0; n < actor.handlers; ++n) {
      HandlerTypes types{};
      take(types);
      actor.types.push_back(types);
    }
  }
  return actors;
}

}  // namespace gyre
