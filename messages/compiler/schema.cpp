#include "schema.hpp"

#include <capnp/dynamic.h>
#include <capnp/schema.h>

#include <stdexcept>

#include "lines.hpp"
#include "names.hpp"

namespace gyre::compiler {
namespace {

constexpr uint64_t cxx_namespace_id = 0xb9c6f99ebf805f2c;  // $Cxx.namespace
constexpr uint64_t cxx_name_id = 0xf264a779fef191ce;       // $Cxx.name

/// Types that are no list and declared by no schema: as a schema spells them, and as the views do.
struct BuiltinType {
  Type::Which which;
  const char* schema;
  const char* number;  // null: no number
};
constexpr BuiltinType builtin_types[] = {
    {Type::VOID, "Void", nullptr},        {Type::BOOL, "Bool", nullptr},
    {Type::INT8, "Int8", "int8_t"},       {Type::INT16, "Int16", "int16_t"},
    {Type::INT32, "Int32", "int32_t"},    {Type::INT64, "Int64", "int64_t"},
    {Type::UINT8, "UInt8", "uint8_t"},    {Type::UINT16, "UInt16", "uint16_t"},
    {Type::UINT32, "UInt32", "uint32_t"}, {Type::UINT64, "UInt64", "uint64_t"},
    {Type::FLOAT32, "Float32", "float"},  {Type::FLOAT64, "Float64", "double"},
    {Type::TEXT, "Text", nullptr},        {Type::DATA, "Data", nullptr},
};

const BuiltinType* builtin(Type::Reader type) {
  for (const BuiltinType& candidate : builtin_types) {
    if (candidate.which == type.which()) return &candidate;
  }
  return nullptr;
}

template <class Declaration>
std::optional<std::string> annotation(Declaration declaration, uint64_t id) {
  for (const auto annotation : declaration.getAnnotations()) {
    if (annotation.getId() == id) return annotation.getValue().getText();
  }
  return std::nullopt;
}

std::string any_pointer_text(Type::AnyPointer::Reader any) {
  if (!any.isUnconstrained()) return "a type parameter";
  if (any.getUnconstrained().isStruct()) return "AnyStruct";
  if (any.getUnconstrained().isList()) return "AnyList";
  if (any.getUnconstrained().isCapability()) return "Capability";
  return "AnyPointer";
}

}  // namespace

Schema::Schema(CodeGeneratorRequest::Reader request) {
  for (const auto node : request.getNodes()) {
    nodes_.emplace(node.getId(), node);
    loader_.load(node);
  }
}

Node::Reader Schema::node(uint64_t id) const {
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) {
    throw std::runtime_error(
        format("the compiler's request lacks node 0x%016lx; is it of a capnp older than 0.9?", id));
  }
  return found->second;
}

Node::Reader Schema::file_of(Node::Reader node) const {
  while (!node.isFile()) node = this->node(node.getScopeId());
  return node;
}

std::vector<Node::Reader> Schema::nested(Node::Reader scope) const {
  std::vector<Node::Reader> nodes;
  for (const auto nested : scope.getNestedNodes()) {
    const Node::Reader node = this->node(nested.getId());
    if (node.isEnum() || node.isStruct() || node.isInterface()) nodes.push_back(node);
  }
  return nodes;
}

std::string Schema::path(Node::Reader node) const {
  const std::string name = cxx_name(node);
  const Node::Reader scope = this->node(node.getScopeId());
  return scope.isFile() ? name : path(scope) + "::" + name;
}

std::string Schema::cxx_name(Node::Reader node) const {
  if (node.isStruct() && node.getStruct().getIsGroup()) {
    for (const auto field : this->node(node.getScopeId()).getStruct().getFields()) {
      if (field.isGroup() && field.getGroup().getTypeId() == node.getId())
        return title_case(declared_name(field));
    }
  }
  const std::string display_name = node.getDisplayName();
  return annotation(node, cxx_name_id).value_or(display_name.substr(node.getDisplayNamePrefixLength()));
}

std::optional<std::string> Schema::cxx_namespace(Node::Reader file) const {
  return annotation(file, cxx_namespace_id);
}

std::string Schema::type_text(Type::Reader type) const {
  if (const BuiltinType* found = builtin(type)) return found->schema;
  if (type.isList()) return "List(" + type_text(type.getList().getElementType()) + ")";
  if (type.isEnum()) return schema_name(node(type.getEnum().getTypeId()));
  if (type.isStruct()) return schema_name(node(type.getStruct().getTypeId()));
  if (type.isInterface()) return schema_name(node(type.getInterface().getTypeId()));
  if (type.isAnyPointer()) return any_pointer_text(type.getAnyPointer());
  return format("of a kind that capnpc-gyre does not know (%u)", unsigned(type.which()));
}

std::string Schema::default_text(Node::Reader scope, unsigned index) const {
  const auto field = loader_.get(scope.getId()).asStruct().getFields()[index];
  const auto slot = field.getProto().getSlot();
  const Value::Reader value = slot.getDefaultValue();
  switch (value.which()) {
    case Value::VOID:
      return "void";
    case Value::BOOL:
      return value.getBool() ? "true" : "false";
    case Value::INT8:
      return std::to_string(value.getInt8());
    case Value::INT16:
      return std::to_string(value.getInt16());
    case Value::INT32:
      return std::to_string(value.getInt32());
    case Value::INT64:
      return std::to_string(value.getInt64());
    case Value::UINT8:
      return std::to_string(value.getUint8());
    case Value::UINT16:
      return std::to_string(value.getUint16());
    case Value::UINT32:
      return std::to_string(value.getUint32());
    case Value::UINT64:
      return std::to_string(value.getUint64());
    case Value::FLOAT32:
      return format("%.9g", double(value.getFloat32()));
    case Value::FLOAT64:
      return format("%.17g", value.getFloat64());
    case Value::ENUM: {
      const auto enumerants = node(slot.getType().getEnum().getTypeId()).getEnum().getEnumerants();
      return enumerants[value.getEnum()].getName();
    }
    case Value::TEXT:
      return kj::str(capnp::DynamicValue::Reader(value.getText())).cStr();
    case Value::DATA: {
      std::string bytes;
      for (const uint8_t byte : value.getData())
        bytes += format(bytes.empty() ? "%02x" : " %02x", unsigned(byte));
      return "0x\"" + bytes + "\"";
    }
    case Value::LIST:
      return kj::str(value.getList().getAs<capnp::DynamicList>(field.getType().asList())).cStr();
    case Value::STRUCT:
      return kj::str(value.getStruct().getAs<capnp::DynamicStruct>(field.getType().asStruct())).cStr();
    default:
      return "?";
  }
}

std::string declared_name(Field::Reader field) {
  return annotation(field, cxx_name_id).value_or(field.getName());
}
std::string declared_name(capnp::schema::Enumerant::Reader enumerant) {
  return annotation(enumerant, cxx_name_id).value_or(enumerant.getName());
}

std::string schema_name(Node::Reader node) {
  const std::string name = node.getDisplayName();
  return name.substr(name.find(':') + 1);
}

const char* number_type(Type::Reader type) {
  const BuiltinType* const found = builtin(type);
  return found == nullptr ? nullptr : found->number;
}

}  // namespace gyre::compiler
