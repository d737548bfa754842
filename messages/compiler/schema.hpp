// What the compiler asks for: the nodes of its request, and what can be asked of them without regard to the
// header being written.
#pragma once

#include <capnp/schema-loader.h>
#include <capnp/schema.capnp.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gyre::compiler {

using capnp::schema::CodeGeneratorRequest;
using capnp::schema::Field;
using capnp::schema::Node;
using capnp::schema::Type;
using capnp::schema::Value;

class Schema {
 public:
  explicit Schema(CodeGeneratorRequest::Reader request);

  Node::Reader node(uint64_t id) const;
  Node::Reader file_of(Node::Reader node) const;
  /// Enums, structs and interfaces declared in a file or struct.
  std::vector<Node::Reader> nested(Node::Reader scope) const;
  /// The struct node of a group, or of a named union.
  Node::Reader group(Field::Reader field) const { return node(field.getGroup().getTypeId()); }

  /// The name of a struct, group or enum in C++, the scopes in its file included, as
  /// VectorAddResponse::Error.
  std::string path(Node::Reader node) const;
  std::string cxx_name(Node::Reader node) const;
  std::optional<std::string> cxx_namespace(Node::Reader file) const;

  /// A type as a schema spells it.
  std::string type_text(Type::Reader type) const;
  /// A default as a schema spells it; of field number `index` of `scope`.
  std::string default_text(Node::Reader scope, unsigned index) const;

 private:
  std::map<uint64_t, Node::Reader> nodes_;
  capnp::SchemaLoader loader_;
};

/// The name of a field as C++ has it before its case is changed: its own, or what $Cxx.name says.
std::string declared_name(Field::Reader field);
std::string declared_name(capnp::schema::Enumerant::Reader enumerant);

/// The name in the schema without its file, as VectorAddResponse.Error.
std::string schema_name(Node::Reader node);

/// The views' type for integers and floats, as int32_t; null for other types.
const char* number_type(Type::Reader type);

/// Whether the field is there only while its union holds it.
inline bool in_union(Field::Reader field) { return field.getDiscriminantValue() != Field::NO_DISCRIMINANT; }
inline bool has_union(Node::Reader node) { return node.getStruct().getDiscriminantCount() != 0; }

/// What is behind a pointer of its own.
inline bool is_pointer(Type::Reader type) {
  return type.isText() || type.isData() || type.isList() || type.isStruct();
}

}  // namespace gyre::compiler
