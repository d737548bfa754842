// The entries of a namespace's bucket, as text and as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gyre::nats::detail {

/// The entry `config`: what is fixed for a namespace.
struct NamespaceConfig {
  // The server compares each two of the shards' subjects when the stream is made: 0.5 s for so many.
  static constexpr uint32_t max_shards = 1024;

  uint32_t shards = 0;
  uint32_t lease_ms = 0;
  uint32_t clock_error_ms = 0;
  std::string actors;  ///< names in subjects, sorted, with commas

  std::string text() const;
  /// Returns empty if the text is no such entry.
  static std::optional<NamespaceConfig> read(std::string_view text);
};

/// An entry `node.NAME`.
struct NodeEntry {
  enum class State {
    serving,
    leaving,  ///< hands its shards over, and takes none
    gone,     ///< has left, or its lease has ended
  };
  uint64_t life = 0;
  State state = State::gone;

  bool operator==(const NodeEntry&) const = default;
  std::string text() const;
  static std::optional<NodeEntry> read(std::string_view text);
};

/// An entry `shard.N`.
struct ShardEntry {
  enum class State {
    taken,  ///< its owner does not listen yet
    serving,
    moving,  ///< its owner holds requests and waits for those in flight
  };
  std::string node;   ///< the owner
  uint64_t life = 0;  ///< of the owner
  State state = State::taken;
  std::string to;      ///< moving: the next owner
  uint64_t group = 0;  ///< of the owner's subscription, Subjects::queue_group(): new with each takeover

  bool operator==(const ShardEntry&) const = default;
  std::string text() const;
  static std::optional<ShardEntry> read(std::string_view text);
};

}  // namespace gyre::nats::detail
