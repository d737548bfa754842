#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/actors/actor_description.hpp>

#include <cstring>

namespace gyre {

Rights rights_of(const std::vector<ActorDescription>& actors) {
  Rights rights;
  for (const ActorDescription& actor : actors) rights = rights | actor.rights();
  return rights;
}

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
    actors.push_back({record, {}, {}});
  }
  for (ActorDescription& actor : actors) {
    for (uint32_t n = 0; n < actor.handlers; ++n) {
      HandlerRecord handler{};
      take(handler);
      actor.types.push_back(handler.types);
      actor.max_reply_bytes.push_back(handler.max_reply_bytes);
    }
  }
  return actors;
}

std::vector<std::byte> write_description(const std::vector<ActorDescription>& actors) {
  std::vector<std::byte> bytes;
  const auto put = [&](const auto& value) {
    const auto* const begin = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), begin, begin + sizeof value);
  };
  DescriptionHeader header{DescriptionHeader::expected_magic, uint32_t(actors.size()), 0};
  for (const ActorDescription& actor : actors) header.handlers += uint32_t(actor.types.size());
  put(header);
  for (const ActorDescription& actor : actors) put(static_cast<const ActorRecord&>(actor));
  for (const ActorDescription& actor : actors) {
    for (size_t n = 0; n < actor.types.size(); ++n) {
      put(HandlerRecord{actor.types[n], actor.max_reply_bytes[n], 0});
    }
  }
  return bytes;
}

}  // namespace gyre
