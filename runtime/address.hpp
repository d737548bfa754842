// How programs name actors: the identity of an actor type, and the address of one actor.
#pragma once

#include <gyre/device/address.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gyre_type_name {
// Lies outside namespace gyre, since g++ omits from a type's name the namespaces that enclose this
// function.
template <class T>
constexpr std::string_view of() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr size_t begin = text.find("T = ") + 4;
  constexpr size_t end = text.find_first_of(";]", begin);
  return text.substr(begin, end - begin);
}
}  // namespace gyre_type_name

namespace gyre {

/// Returns the type's qualified name, as the compiler writes it. Static memory.
template <class T>
constexpr std::string_view type_name() {
  return gyre_type_name::of<T>();
}

/// Computes the 64-bit FNV-1a hash (Fowler, Noll, Vo).
/// @param hash  hash of the text before `text`, to continue it
constexpr uint64_t fnv1a(std::string_view text, uint64_t hash = 0xcbf29ce484222325u) {
  for (const char c : text) hash = (hash ^ uint8_t(c)) * 0x100000001b3u;
  return hash;
}

/// Identifies an actor type on the host: the hash of its qualified name.
template <class Actor>
inline constexpr uint64_t actor_id = fnv1a(type_name<Actor>());

/// Names an actor type by its qualified name, for example "my::Counter". Use it for actors whose C++ types
/// the program does not have; it works for every actor type.
class ActorName {
 public:
  /// Takes a name with its namespaces. Does not check the name: messages to an unknown one fail with
  /// Status::unknown_actor.
  constexpr ActorName(std::string_view name) : id_(fnv1a(name)) {}
  /// Takes a qualified name as a C string, without checking it.
  constexpr ActorName(const char* name) : ActorName(std::string_view(name)) {}
  /// Takes a qualified name as a std::string, without checking it.
  ActorName(const std::string& name) : ActorName(std::string_view(name)) {}
  constexpr uint64_t id() const { return id_; }

 private:
  uint64_t id_;
};

/// Names an actor by the name of its type and its key.
struct NamedAddress {
  ActorName actor;
  uint64_t key = 0;
};

}  // namespace gyre
