// The Cap'n Proto schemas of actors' messages, as they go with the actors in a shared object.
#pragma once

#include <capnp/schema.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace gyre {

/// The structs, groups and enums that fields of `roots` lead to, and `roots`, by their ids. Roots that are
/// empty are left out. Refers to what they refer to. Throws kj::Exception for a schema that the library finds
/// fault with.
std::map<uint64_t, capnp::Schema> schemas_below(std::span<const capnp::StructSchema> roots);

/// Schemas as bytes: a CodeGeneratorRequest, which names no file, as a stream. Throws as schemas_below.
std::vector<std::byte> encode_schemas(const std::map<uint64_t, capnp::Schema>& schemas);

/// The schemas that such bytes hold, by their ids; the schema compiler's own requests are such bytes too.
/// They stay loaded until the process ends, for what is found in them is handed out as static memory: call it
/// once for the same bytes. Throws kj::Exception where the bytes are none.
std::map<uint64_t, capnp::Schema> load_schemas(std::span<const std::byte> bytes);

}  // namespace gyre
