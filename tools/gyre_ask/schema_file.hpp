// Messages as text: what a schema file says of them.
#pragma once

#include <capnp/schema-parser.h>
#include <kj/filesystem.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gyre::tools {

/// Reads and writes messages of one schema file as Cap'n Proto's text, such as `(amount = 5)`. Not
/// thread-safe. Functions throw BadOptions that name the file.
class SchemaFile {
 public:
  /// Parses a file.
  /// @param folders  where imports that begin with a slash are looked for, before /usr/local/include and
  ///                 /usr/include
  SchemaFile(const std::string& file, const std::vector<std::string>& folders);

  /// Returns the type id of a struct. In `name` a dot leads to a nested struct: `Order.Price`.
  uint64_t type_id(const std::string& name) const;
  /// Returns the message that the text describes, as a stream.
  std::string encode(const std::string& name, const std::string& text) const;
  /// Returns a message as text of several lines.
  /// @throws Error  if the stream is no message
  std::string decode(const std::string& name, const std::string& stream) const;

 private:
  capnp::StructSchema struct_of(const std::string& name) const;

  std::string file_;
  // The parser reads from them for as long as it lives.
  kj::Own<kj::Filesystem> disk_;
  std::vector<kj::Own<const kj::ReadableDirectory>> folders_;
  capnp::SchemaParser parser_;
  capnp::ParsedSchema schema_;
};

}  // namespace gyre::tools
