// capnpc-gyre, a Cap'n Proto compiler plugin. For every requested schema F.capnp it writes, below the current
// directory:
//   F.view.hpp      views of the structs for workers, one text for g++, clang and NVRTC
//   F.official.hpp  host only: which view belongs to which official class
// What the views do not cover is refused, each offending field by name, and then nothing is written.
//
// Use: capnp compile -o capnpc-gyre:DIR --src-prefix=SOURCE_DIR F.capnp
#include <capnp/schema.capnp.h>
#include <capnp/serialize.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "names.hpp"

namespace gyre::compiler {
namespace {

using capnp::schema::CodeGeneratorRequest;
using capnp::schema::Field;
using capnp::schema::Node;
using capnp::schema::Type;
using capnp::schema::Value;

constexpr uint64_t cxx_namespace_id = 0xb9c6f99ebf805f2c;  // $Cxx.namespace
constexpr uint64_t cxx_name_id = 0xf264a779fef191ce;       // $Cxx.name
constexpr const char* supported =
    "supported are Void, Bool, integers, floats, enums, and lists of integers, floats and enums";

/// One number printed by printf's rules.
template <class Number>
std::string format(const char* pattern, Number number) {
  char text[128];
  return {text, static_cast<size_t>(std::snprintf(text, sizeof text, pattern, number))};
}

/// Lines of C++, indented by the braces around them.
class Lines {
 public:
  void add(const std::string& line) {
    text_ += line.empty() ? "\n" : std::string(depth_ * 2, ' ') + line + '\n';
  }
  void open(const std::string& line) {
    add(line);
    ++depth_;
  }
  void close(const std::string& line) {
    --depth_;
    add(line);
  }
  /// An access specifier: half an indentation to the left.
  void access(const std::string& line) { text_ += std::string(depth_ * 2 - 1, ' ') + line + '\n'; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  size_t depth_ = 0;
};

/// The request's nodes, and what can be asked of them without regard to the file being generated.
class Schema {
 public:
  explicit Schema(CodeGeneratorRequest::Reader request) {
    for (const auto node : request.getNodes()) nodes_.emplace(node.getId(), node);
  }

  Node::Reader node(uint64_t id) const {
    const auto found = nodes_.find(id);
    if (found == nodes_.end()) {
      throw std::runtime_error(
          format("the compiler's request lacks node 0x%016lx; is it of a capnp older than 0.9?", id));
    }
    return found->second;
  }
  Node::Reader file_of(Node::Reader node) const {
    while (!node.isFile()) node = this->node(node.getScopeId());
    return node;
  }
  /// The name of a struct or enum in C++, the scopes in its file included, as VectorAddResponse::Error.
  std::string path(Node::Reader node) const {
    const std::string name = cxx_name(node);
    const Node::Reader scope = this->node(node.getScopeId());
    return scope.isFile() ? name : path(scope) + "::" + name;
  }
  std::string cxx_name(Node::Reader node) const {
    const std::string display_name = node.getDisplayName();
    return annotation(node, cxx_name_id).value_or(display_name.substr(node.getDisplayNamePrefixLength()));
  }
  std::optional<std::string> cxx_namespace(Node::Reader file) const {
    return annotation(file, cxx_namespace_id);
  }

 private:
  static std::optional<std::string> annotation(Node::Reader node, uint64_t id) {
    for (const auto annotation : node.getAnnotations()) {
      if (annotation.getId() == id) return annotation.getValue().getText();
    }
    return std::nullopt;
  }

  std::map<uint64_t, Node::Reader> nodes_;
};

/// The name in the schema without its file, as VectorAddResponse.Error.
std::string schema_name(Node::Reader node) {
  const std::string name = node.getDisplayName();
  return name.substr(name.find(':') + 1);
}

/// Types that are no list and declared by no schema: as a schema spells them, and as the views do.
struct BuiltinType {
  Type::Which which;
  const char* schema;
  const char* cxx;  // null: no view of it as a scalar
};
constexpr BuiltinType builtin_types[] = {
    {Type::VOID, "Void", nullptr},
    {Type::BOOL, "Bool", nullptr},
    {Type::INT8, "Int8", "int8_t"},
    {Type::INT16, "Int16", "int16_t"},
    {Type::INT32, "Int32", "int32_t"},
    {Type::INT64, "Int64", "int64_t"},
    {Type::UINT8, "UInt8", "uint8_t"},
    {Type::UINT16, "UInt16", "uint16_t"},
    {Type::UINT32, "UInt32", "uint32_t"},
    {Type::UINT64, "UInt64", "uint64_t"},
    {Type::FLOAT32, "Float32", "float"},
    {Type::FLOAT64, "Float64", "double"},
    {Type::TEXT, "Text", nullptr},
    {Type::DATA, "Data", nullptr},
    {Type::ANY_POINTER, "AnyPointer", nullptr},
};

const BuiltinType* builtin(Type::Reader type) {
  for (const BuiltinType& candidate : builtin_types) {
    if (candidate.which == type.which()) return &candidate;
  }
  return nullptr;
}

/// A type as a schema spells it.
std::string type_text(Type::Reader type, const Schema& schema) {
  if (const BuiltinType* found = builtin(type)) return found->schema;
  if (type.isList()) return "List(" + type_text(type.getList().getElementType(), schema) + ")";
  if (type.isEnum()) return schema_name(schema.node(type.getEnum().getTypeId()));
  if (type.isStruct()) return schema_name(schema.node(type.getStruct().getTypeId()));
  if (type.isInterface()) return schema_name(schema.node(type.getInterface().getTypeId()));
  return format("of a kind that capnpc-gyre does not know (%u)", unsigned(type.which()));
}

/// Whether a wire::Scalar holds it: as a field of its own, or as the element of a list.
bool is_scalar(Type::Reader type) {
  const BuiltinType* const found = builtin(type);
  return type.isEnum() || (found != nullptr && found->cxx != nullptr);
}

/// Why the views cannot have the field; nothing if they can.
std::optional<std::string> why_unsupported(Field::Reader field, const Schema& schema) {
  if (field.isGroup()) {
    const bool is_union = schema.node(field.getGroup().getTypeId()).getStruct().getDiscriminantCount() != 0;
    return is_union ? "a union" : "a group";
  }
  const Type::Reader type = field.getSlot().getType();
  const std::string text = type_text(type, schema);
  if (field.getDiscriminantValue() != Field::NO_DISCRIMINANT) return ":" + text + " in a union";
  if (type.isList()) {
    if (!is_scalar(type.getList().getElementType())) return ":" + text;
    if (field.getSlot().getHadExplicitDefault()) return ":" + text + " with a default";
    return std::nullopt;
  }
  if (type.isVoid() || type.isBool() || is_scalar(type)) return std::nullopt;
  return ":" + text;
}

/// A default as a schema spells it.
std::string value_text(Value::Reader value, Type::Reader type, const Schema& schema) {
  if (value.isBool()) return value.getBool() ? "true" : "false";
  if (value.isFloat32()) return format("%.9g", double(value.getFloat32()));
  if (value.isFloat64()) return format("%.17g", value.getFloat64());
  if (value.isInt8()) return std::to_string(value.getInt8());
  if (value.isInt16()) return std::to_string(value.getInt16());
  if (value.isInt32()) return std::to_string(value.getInt32());
  if (value.isInt64()) return std::to_string(value.getInt64());
  if (value.isUint8()) return std::to_string(value.getUint8());
  if (value.isUint16()) return std::to_string(value.getUint16());
  if (value.isUint32()) return std::to_string(value.getUint32());
  if (value.isUint64()) return std::to_string(value.getUint64());
  if (value.isEnum()) {
    const auto enumerants = schema.node(type.getEnum().getTypeId()).getEnum().getEnumerants();
    return enumerants[value.getEnum()].getName();
  }
  return "void";
}

/// A number, as value_text() spells it, as a C++ literal. What C++ has no literal for is given by its bits.
std::string number_literal(Value::Reader value, const std::string& text) {
  const std::string fraction = text.find_first_of(".e") == std::string::npos ? ".0" : "";
  if (value.isInt64()) return value.getInt64() == INT64_MIN ? "-9223372036854775807l - 1" : text + "l";
  if (value.isUint32()) return text + "u";
  if (value.isUint64()) return text + "ul";
  if (value.isFloat32()) {
    if (std::isfinite(value.getFloat32())) return text + fraction + "f";
    return format("__builtin_bit_cast(float, 0x%08xu)", std::bit_cast<uint32_t>(value.getFloat32()));
  }
  if (value.isFloat64()) {
    if (std::isfinite(value.getFloat64())) return text + fraction;
    return format("__builtin_bit_cast(double, 0x%016lxul)", std::bit_cast<uint64_t>(value.getFloat64()));
  }
  return text;
}

/// The view and official headers of one requested file.
class FileGenerator {
 public:
  FileGenerator(const Schema& schema, CodeGeneratorRequest::RequestedFile::Reader requested)
      : schema_(schema),
        requested_(requested),
        file_(schema.node(requested.getId())),
        name_(requested.getFilename()) {}

  /// Generates both. Where problems() is not empty afterwards they are not to be used.
  void generate() {
    const auto declared_namespace = schema_.cxx_namespace(file_);
    if (!declared_namespace) {
      refuse(
          "no C++ namespace; add: using Cxx = import \"/capnp/c++.capnp\"; $Cxx.namespace(\"your::name\");");
      return;
    }
    namespace_ = *declared_namespace;
    check_nested(file_);
    if (!problems_.empty()) return;
    generate_view();
    generate_official();
  }

  const std::vector<std::string>& problems() const { return problems_; }
  const std::string& view() const { return view_; }
  const std::string& official() const { return official_; }
  /// Where a header of this file goes, relative to the output directory, as messages/echo.view.hpp.
  std::filesystem::path output(const std::string& ending) const {
    return std::filesystem::path(header_of(name_, ending)).relative_path();
  }

 private:
  static std::string header_of(std::string schema_file, const std::string& ending) {
    if (schema_file.ends_with(".capnp")) schema_file.resize(schema_file.size() - std::strlen(".capnp"));
    return schema_file + ending;
  }
  void refuse(const std::string& problem) { problems_.push_back(name_ + ": " + problem); }

  // ---- What is refused

  void check_nested(Node::Reader scope) {
    for (const auto nested : scope.getNestedNodes()) {
      const Node::Reader node = schema_.node(nested.getId());
      if (node.isStruct()) {
        check_struct(node);
        check_nested(node);
      } else if (node.isEnum()) {
        std::map<std::string, std::string> taken;
        for (const auto enumerant : node.getEnum().getEnumerants()) {
          check_name(taken, "enum " + schema_name(node), "enumerants", enumerant.getName());
        }
      } else if (node.isInterface()) {
        refuse("interface " + schema_name(node) + " is not supported; declare structs and enums only");
      }
    }
  }

  void check_struct(Node::Reader node) {
    const std::string where = "struct " + schema_name(node);
    if (node.getIsGeneric()) refuse(where + " is generic, which is not supported; write it out for one type");
    const std::string name = schema_.cxx_name(node);
    if (name == "Reader" || name == "Builder") refuse(where + " has a name that every view uses; rename it");

    std::map<std::string, std::string> taken;
    for (const auto field : node.getStruct().getFields()) {
      const std::string field_name = field.getName();
      check_name(taken, where, "fields", field_name);
      if (const auto reason = why_unsupported(field, schema_)) {
        refuse(where + ": field " + field_name + " is " + *reason + ", which is not supported; " + supported);
      } else if (field.getSlot().getType().isEnum()) {
        check_enum(where, field_name, field.getSlot().getType());
      } else if (field.getSlot().getType().isList()) {
        const Type::Reader element = field.getSlot().getType().getList().getElementType();
        if (element.isEnum()) check_enum(where, field_name, element);
      }
    }
  }

  void check_name(std::map<std::string, std::string>& taken, const std::string& where,
                  const std::string& what, const std::string& name) {
    const auto [other, is_new] = taken.emplace(snake_case(name), name);
    if (!is_new) {
      refuse(where + ": " + what + " " + other->second + " and " + name + " would both be " + other->first +
             " in C++; rename one");
    }
  }

  /// An enum of another file must be reachable through this file's imports, and that file have a namespace.
  void check_enum(const std::string& where, const std::string& field, Type::Reader type) {
    const Node::Reader declaring_file = schema_.file_of(schema_.node(type.getEnum().getTypeId()));
    if (declaring_file.getId() == file_.getId()) return;
    const std::string other = declaring_file.getDisplayName();
    const std::string use = where + ": field " + field + " uses an enum of " + other;
    if (!import_of(declaring_file))
      refuse(use + ", which is imported only through other files; import it here");
    if (!schema_.cxx_namespace(declaring_file)) refuse(use + ", which has no C++ namespace; add one there");
  }

  std::optional<std::string> import_of(Node::Reader file) const {
    for (const auto import : requested_.getImports()) {
      if (import.getId() == file.getId()) return import.getName();
    }
    return std::nullopt;
  }

  // ---- F.view.hpp

  void generate_view() {
    Lines body;
    declare_nested(file_, body);
    define_nested(file_, body);

    Lines head;
    head.add("// Generated by capnpc-gyre from " + name_ + "; do not edit.");
    head.add("#pragma once");
    head.add("");
    head.add("#include <gyre/messages/view.hpp>");
    for (const std::string& include : includes_) head.add("#include " + include);
    head.add("");
    head.add("namespace " + namespace_ + "::view {");
    head.add("");
    head.add("namespace wire = ::gyre::wire;");
    view_ = head.text() + body.text() + "\n}  // namespace " + namespace_ + "::view\n";
  }

  void declare_nested(Node::Reader scope, Lines& lines) {
    for (const auto nested : scope.getNestedNodes()) {
      const Node::Reader node = schema_.node(nested.getId());
      if (node.isEnum()) declare_enum(node, lines);
      if (node.isStruct()) declare_struct(node, lines);
    }
  }

  void declare_enum(Node::Reader node, Lines& lines) {
    lines.add("");
    lines.open("enum class " + schema_.cxx_name(node) + " : uint16_t {");
    uint16_t value = 0;
    for (const auto enumerant : node.getEnum().getEnumerants()) {
      lines.add(snake_case(std::string(enumerant.getName())) + format(" = %u,", unsigned(value++)));
    }
    lines.close("};");
  }

  void declare_struct(Node::Reader node, Lines& lines) {
    const auto layout = node.getStruct();
    lines.add("");
    lines.open("struct " + schema_.cxx_name(node) + " {");
    lines.add(format("static constexpr uint64_t type_id = 0x%016lx;", node.getId()));
    lines.add("static constexpr const char* type_name = \"" + schema_name(node) + "\";");
    lines.add(format("static constexpr uint32_t data_words = %u;", unsigned(layout.getDataWordCount())));
    lines.add(format("static constexpr uint32_t pointers = %u;", unsigned(layout.getPointerCount())));
    declare_nested(node, lines);
    lines.add("");
    lines.add("class Reader;");
    lines.add("class Builder;");
    lines.close("};");
  }

  void define_nested(Node::Reader scope, Lines& lines) {
    for (const auto nested : scope.getNestedNodes()) {
      const Node::Reader node = schema_.node(nested.getId());
      if (!node.isStruct()) continue;
      define_class(node, "Reader", lines);
      define_class(node, "Builder", lines);
      define_nested(node, lines);
    }
  }

  void define_class(Node::Reader node, const std::string& name, Lines& lines) {
    lines.add("");
    lines.open("class " + schema_.path(node) + "::" + name + " {");
    lines.access("public:");
    lines.add("using Struct = " + schema_.path(node) + ";");
    lines.add("GYRE_DEVICE explicit " + name + "(wire::Struct" + name + " fields) : fields_(fields) {}");
    for (const auto field : node.getStruct().getFields()) {
      lines.add("");
      lines.add("// " + declaration(field));
      if (!field.getSlot().getType().isVoid()) {
        lines.add("GYRE_DEVICE " + (name == "Reader" ? getter(field, node) : setter(field, node)));
      }
    }
    lines.add("");
    lines.access("private:");
    lines.add("wire::Struct" + name + " fields_;");
    lines.close("};");
  }

  /// The field as its schema declares it.
  std::string declaration(Field::Reader field) const {
    const auto slot = field.getSlot();
    std::string text =
        std::string(field.getName()) + format(" @%u :", unsigned(field.getOrdinal().getExplicit()));
    text += type_text(slot.getType(), schema_);
    if (slot.getHadExplicitDefault())
      text += " = " + value_text(slot.getDefaultValue(), slot.getType(), schema_);
    return text + ";" + (slot.getType().isVoid() ? "  (nothing to get or set)" : "");
  }

  std::string getter(Field::Reader field, Node::Reader scope) {
    const auto slot = field.getSlot();
    const Type::Reader type = slot.getType();
    const std::string name = snake_case(std::string(field.getName()));
    const std::string index = format("%u", slot.getOffset());
    const std::string arguments = "(" + index + default_argument(slot, scope) + "); }";
    if (type.isBool()) return "bool " + name + "() const { return fields_.get_bool" + arguments;
    if (type.isList()) {
      const std::string element = scalar(type.getList().getElementType(), scope);
      return "wire::ListReader<" + element + "> " + name + "() const { return fields_.get_list<" + element +
             ">" + arguments;
    }
    const std::string value = scalar(type, scope);
    return value + " " + name + "() const { return fields_.get<" + value + ">" + arguments;
  }

  std::string setter(Field::Reader field, Node::Reader scope) {
    const auto slot = field.getSlot();
    const Type::Reader type = slot.getType();
    std::string name = snake_case(std::string(field.getName()));
    if (name.ends_with('_')) name.pop_back();  // set_default is not a keyword
    const std::string index = format("%u", slot.getOffset());
    if (type.isList()) {
      const std::string element = scalar(type.getList().getElementType(), scope);
      return "wire::ListBuilder<" + element + "> init_" + name +
             "(uint32_t size) { return fields_.init_list<" + element + ">(" + index + ", size); }";
    }
    const std::string arguments = "(" + index + ", value" + default_argument(slot, scope) + "); }";
    if (type.isBool()) return "void set_" + name + "(bool value) { fields_.set_bool" + arguments;
    const std::string value = scalar(type, scope);
    return "void set_" + name + "(" + value + " value) { fields_.set<" + value + ">" + arguments;
  }

  std::string scalar(Type::Reader type, Node::Reader scope) {
    return type.isEnum() ? enum_name(schema_.node(type.getEnum().getTypeId()), scope) : builtin(type)->cxx;
  }

  /// The enum as the views of `scope` can write it; notes the header to include where it is another file's.
  std::string enum_name(Node::Reader node, Node::Reader scope) {
    const std::string path = schema_.path(node);
    const Node::Reader file = schema_.file_of(node);
    if (file.getId() != file_.getId()) {
      const std::string import = header_of(*import_of(file), ".view.hpp");
      includes_.insert(import.starts_with('/') ? "<" + import.substr(1) + ">" : "\"" + import + "\"");
      return "::" + *schema_.cxx_namespace(file) + "::view::" + path;
    }
    // A type nested in a struct around the field hides one of the file that has the same name.
    const std::string first = path.substr(0, path.find("::"));
    bool hidden = first == "Reader" || first == "Builder";
    for (; !scope.isFile(); scope = schema_.node(scope.getScopeId())) {
      for (const auto nested : scope.getNestedNodes())
        hidden = hidden || first == std::string(nested.getName());
    }
    return hidden ? "::" + namespace_ + "::view::" + path : path;
  }

  /// `, 42` for a field with a default, nothing for the others.
  std::string default_argument(Field::Slot::Reader slot, Node::Reader scope) {
    if (!slot.getHadExplicitDefault()) return "";
    const Type::Reader type = slot.getType();
    const std::string text = value_text(slot.getDefaultValue(), type, schema_);
    if (!type.isEnum()) return ", " + number_literal(slot.getDefaultValue(), text);
    return ", " + scalar(type, scope) + "::" + snake_case(text);
  }

  // ---- F.official.hpp

  void generate_official() {
    const std::string base = std::filesystem::path(name_).filename();
    Lines lines;
    lines.add("// Generated by capnpc-gyre from " + name_ + "; do not edit.");
    lines.add("#pragma once");
    lines.add("");
    lines.add("#include \"" + base + ".h\"");
    lines.add("#include \"" + header_of(base, ".view.hpp") + "\"");
    lines.add("#include <gyre/messages/official.hpp>");
    pair_nested(file_, lines);
    official_ = lines.text();
  }

  void pair_nested(Node::Reader scope, Lines& lines) {
    for (const auto nested : scope.getNestedNodes()) {
      const Node::Reader node = schema_.node(nested.getId());
      if (!node.isStruct()) continue;
      const std::string official = "::" + namespace_ + "::" + schema_.path(node);
      const std::string view = "::" + namespace_ + "::view::" + schema_.path(node);
      lines.add("");
      pair("OfficialOf", view, official, lines);
      pair("ViewOf", official, view, lines);
      lines.add("static_assert(" + view + "::type_id == capnp::typeId<" + official + ">());");
      lines.add("static_assert(" + view + "::data_words == " + official + "::_capnpPrivate::dataWordSize);");
      lines.add("static_assert(" + view + "::pointers == " + official + "::_capnpPrivate::pointerCount);");
      pair_nested(node, lines);
    }
  }

  static void pair(const std::string& trait, const std::string& key, const std::string& type, Lines& lines) {
    lines.add("template <>");
    lines.open("struct gyre::" + trait + "<" + key + "> {");
    lines.add("using type = " + type + ";");
    lines.close("};");
  }

  const Schema& schema_;
  CodeGeneratorRequest::RequestedFile::Reader requested_;
  Node::Reader file_;
  std::string name_;       // of the schema file, as messages/echo.capnp
  std::string namespace_;  // of the official classes
  std::set<std::string> includes_;
  std::vector<std::string> problems_;
  std::string view_, official_;
};

void write(const std::filesystem::path& path, const std::string& text) {
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) {
    throw std::runtime_error("writing " + std::filesystem::absolute(path).string() + ": " +
                             std::strerror(errno));
  }
}

int run() {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = uint64_t(1) << 30;  // the compiler is trusted, however large its schemas
  capnp::StreamFdMessageReader message(STDIN_FILENO, options);
  const auto request = message.getRoot<CodeGeneratorRequest>();
  const Schema schema(request);

  std::vector<FileGenerator> files;
  bool refused = false;
  for (const auto requested : request.getRequestedFiles()) {
    FileGenerator& file = files.emplace_back(schema, requested);
    file.generate();
    for (const std::string& problem : file.problems()) {
      std::fprintf(stderr, "capnpc-gyre: %s\n", problem.c_str());
      refused = true;
    }
  }
  if (refused) return 1;
  for (const FileGenerator& file : files) {
    write(file.output(".view.hpp"), file.view());
    write(file.output(".official.hpp"), file.official());
  }
  return 0;
}

}  // namespace
}  // namespace gyre::compiler

int main(int argc, char**) {
  if (argc > 1 || isatty(STDIN_FILENO)) {
    std::fputs(
        "capnpc-gyre: a plugin of the Cap'n Proto compiler, which starts it and gives it its input. Use:\n"
        "  capnp compile -o path/to/capnpc-gyre:OUTPUT_DIR --src-prefix=SOURCE_DIR SOURCE_DIR/file.capnp\n",
        stderr);
    return 2;
  }
  try {
    return gyre::compiler::run();
  } catch (const kj::Exception& exception) {
    std::fprintf(
        stderr,
        "capnpc-gyre: reading the compiler's request from standard input: %s; is it capnp that started "
        "this?\n",
        exception.getDescription().cStr());
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "capnpc-gyre: %s\n", exception.what());
  }
  return 1;
}
