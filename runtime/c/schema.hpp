// Schemas known at run time: parsed by the official library, for messages from and to JSON and for the views
// that actors include.
#pragma once

#include <capnp/schema.h>
#include <gyre/messages/json/from_json.hpp>
#include <gyre/runtime/actors/actor_sources.hpp>
#include <gyre/runtime/encoded.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gyre::c {

/// What parsing, or making views, says of a schema: each problem a line, with file, line and column.
class BadSchema : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// No struct of that name or id.
class UnknownType : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// The bytes are no message of that type.
class BadMessage : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Move-only. Once made, any thread may use it, and many at once.
class Schema {
 public:
  /// `files` by the names that imports use. Throws BadSchema.
  explicit Schema(std::span<const SourceText> files);
  /// These, with all that they lead to, and Gyre's own. Refers to their memory. Throws BadSchema.
  explicit Schema(std::span<const capnp::StructSchema> roots);
  Schema(Schema&&) noexcept;
  ~Schema();

  /// Throws UnknownType.
  uint64_t type_id(std::string_view name) const;
  /// As gyre_schema_describe.
  const std::string& description() const;
  /// Of the files that were given, in their order: name and text. They lie still until the Schema ends, moved
  /// or not.
  const std::vector<SourceText>& views() const;

  /// Throws BadSchema where a struct or enum that `roots` lead to is here too, and not as there: a field of
  /// the same name or number that lies elsewhere or is of another type. What only one of both has is a
  /// revision's. It names the field, and both types.
  void check_against(std::span<const capnp::StructSchema> roots) const;

  /// The message, encoded. Throws UnknownType, BadJson.
  std::vector<std::byte> from_json(uint64_t type_id, std::string_view json, Encoding encoding) const;
  /// Throws UnknownType, BadMessage.
  std::string to_json(uint64_t type_id, const Encoded& message) const;

 private:
  struct Parsed;
  static std::unique_ptr<const Parsed> parse(std::span<const SourceText> files,
                                             std::span<const capnp::StructSchema> roots);
  std::unique_ptr<const Parsed> parsed_;
};

}  // namespace gyre::c
