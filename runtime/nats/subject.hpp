// Subjects of a namespace, and the shard of an actor. docs/reference/nats.md is the specification.
#pragma once

#include <gyre/runtime/address.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace gyre::nats {

/// Returns the actor type's name in a subject: `my_Counter` of `my::Counter`.
/// @param type_name  the qualified C++ name
std::string name_in_subject(std::string_view type_name);

/// Returns the 64-bit FNV-1a hash of a name's bytes and of the 8 bytes of `number`, the lowest first.
constexpr uint64_t hash_of(std::string_view name, uint64_t number) {
  char bytes[8] = {};
  for (int k = 0; k < 8; ++k) bytes[k] = char(number >> (8 * k));
  return fnv1a({bytes, sizeof bytes}, fnv1a(name));
}

/// Returns the shard of an actor.
/// @param name    the actor type's name in a subject
/// @param shards  the namespace's number of shards, at least 1
constexpr uint32_t shard_of(std::string_view name, uint64_t key, uint32_t shards) {
  // The upper half: in the lowest bits of FNV-1a the higher bits of a byte never show.
  return uint32_t((hash_of(name, key) >> 32) % shards);
}

/// Returns how much a node is preferred as a shard's owner: of several nodes, the one with the largest number
/// is to own it. Source: D. Thaler, C. V. Ravishankar, "Using Name-Based Mappings to Increase Hit Rates",
/// 1998 (rendezvous hashing). The hash is finished as MurmurHash3 does, since names that differ in the last
/// letter alone would be preferred alike.
constexpr uint64_t preference(std::string_view node, uint32_t shard) {
  uint64_t hash = hash_of(node, shard);
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53;
  return hash ^ (hash >> 33);
}

/// Returns true if `name` may be a namespace's or a node's: 1 to 32 letters, digits, `_` and `-`.
bool is_name(std::string_view name);

/// Stands in place of an actor's name in subjects of durable tells: no actor type may have it.
inline constexpr std::string_view durable_token = "durable";

/// Names what belongs to one namespace.
class Subjects {
 public:
  /// @param name  the namespace; is_name(name) must hold
  explicit Subjects(std::string_view name) : prefix_("gyre." + std::string(name) + "."), name_(name) {}

  const std::string& name() const { return name_; }
  /// Returns the subject of asks and tells to an actor type in one shard.
  std::string request(std::string_view actor, uint32_t shard) const {
    return prefix_ + std::string(actor) + "." + std::to_string(shard);
  }
  /// Returns the subject of requests to all actor types in one shard.
  std::string requests_of_shard(uint32_t shard) const { return request("*", shard); }
  /// Returns the subject of durable tells to an actor type in one shard.
  std::string durable(std::string_view actor, uint32_t shard) const {
    return prefix_ + std::string(durable_token) + "." + std::string(actor) + "." + std::to_string(shard);
  }
  /// Returns the subject of durable tells to all actor types in one shard.
  std::string durable_of_shard(uint32_t shard) const { return durable("*", shard); }
  /// Returns the queue group, ShardEntry::group, by which a shard's owner subscribes.
  static std::string queue_group(uint64_t group);
  /// Returns the actor's name in a subject of request() or durable(); empty if the subject is no such one.
  std::string_view actor_in(std::string_view subject) const;

  std::string bucket() const { return "gyre_" + name_; }
  std::string stream() const { return "gyre_" + name_ + "_tells"; }

 private:
  std::string prefix_;
  std::string name_;
};

}  // namespace gyre::nats
