#include <capnp/any.h>
#include <capnp/compat/json.h>
#include <capnp/dynamic.h>
#include <capnp/message.h>
#include <capnp/schema-parser.h>
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <gyre/messages/compiler/names.hpp>
#include <gyre/messages/compiler/refusals.hpp>
#include <gyre/messages/compiler/schema.hpp>
#include <gyre/messages/compiler/view_writer.hpp>
#include <gyre/messages/reader.hpp>
#include <gyre/runtime/actors/actor_schemas.hpp>
#include <gyre/runtime/c/schema.hpp>
#include <gyre_c_schemas_sources.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>

namespace gyre::c {

namespace {

namespace compiler = gyre::compiler;

// The library's parser calls itself for each bracket in a bracket, and for each member of a member.
constexpr uint32_t deepest = 100;

// The line, from 1, where brackets or members lie deeper than that; 0: there is none.
uint32_t line_too_deep(std::string_view text) {
  uint32_t line = 1, brackets = 0, members = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '\n':
        ++line;
        break;
      case '#':
        i = std::min(text.find('\n', i), text.size()) - 1;
        break;
      case '"':  // to its end, which is on the same line
        for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i) {
          if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] != '\n') ++i;
        }
        if (i < text.size() && text[i] == '\n') ++line;
        break;
      case '(':
      case '[':
      case '{':
        members = 0;
        if (++brackets > deepest) return line;
        break;
      case ')':
      case ']':
      case '}':
        if (brackets != 0) --brackets;
        break;
      case '.':
        if (++members > deepest) return line;
        break;
      case ',':
      case ';':
      case '=':
      case ':':
        members = 0;
        break;
      default:
        break;
    }
  }
  return 0;
}

// The schemas of one parse, by name, and what is wrong with them.
class Library {
 public:
  explicit Library(std::span<const SourceText> given) {
    for (const SourceFile& own : gyre_c_schemas::sources.files) texts_.emplace(own.name, own.text);
    for (const SourceText& file : given) {
      const std::string name = without_slash(file.name);
      if (name.size() <= 6 || !name.ends_with(".capnp")) {
        throw BadSchema(
            fmt::format("a schema is named \"{}\"; give it a name that ends in .capnp", file.name));
      }
      if (const uint32_t line = line_too_deep(file.text); line != 0) {
        throw BadSchema(
            fmt::format("{}:{}: this lies deeper than {} brackets, or names a member of more than "
                        "{} others; write it flatter",
                        name, line, deepest, deepest));
      }
      if (!texts_.emplace(name, file.text).second) {
        throw BadSchema(
            fmt::format("there are two schemas {}, or it is one of Gyre's own; give it another name", name));
      }
    }
  }

  const std::string* text_of(const std::string& name) const {
    const auto found = texts_.find(name);
    return found == texts_.end() ? nullptr : &found->second;
  }
  static std::string without_slash(std::string_view name) {
    return std::string(name.substr(std::min(name.find_first_not_of('/'), name.size())));
  }
  // "../units.capnp" in shop/orders/new.capnp: shop/units.capnp.
  static std::string resolved(std::string_view from, std::string_view import) {
    if (import.starts_with('/')) return without_slash(import);
    std::vector<std::string_view> parts;
    const auto add = [&parts](std::string_view path) {
      while (!path.empty()) {
        const size_t end = std::min(path.find('/'), path.size());
        const std::string_view part = path.substr(0, end);
        path.remove_prefix(std::min(end + 1, path.size()));
        if (part == ".." && !parts.empty()) {
          parts.pop_back();
        } else if (part != "." && part != ".." && !part.empty()) {
          parts.push_back(part);
        }
      }
    };
    const size_t folder = from.rfind('/');
    add(folder == std::string_view::npos ? std::string_view() : from.substr(0, folder));
    add(import);
    std::string name;
    for (const std::string_view part : parts) (name.empty() ? name : name += "/") += part;
    return name;
  }

  void report(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (!problems_.empty()) problems_ += '\n';
    problems_ += line;
  }
  void note_import(const std::string& from, const std::string& name) {
    const std::lock_guard lock(mutex_);
    imports_[from].insert(name);
  }
  const std::string& problems() const { return problems_; }
  const std::set<std::string>& imports_of(const std::string& name) { return imports_[name]; }

 private:
  std::map<std::string, std::string, std::less<>> texts_;
  std::mutex mutex_;
  std::string problems_;
  std::map<std::string, std::set<std::string>> imports_;
};

class File final : public capnp::SchemaFile {
 public:
  File(std::shared_ptr<Library> library, std::string name)
      : library_(std::move(library)), name_(std::move(name)) {}

  kj::StringPtr getDisplayName() const override { return {name_.c_str(), name_.size()}; }
  kj::Array<const char> readContent() const override {
    const std::string& text = *library_->text_of(name_);
    return kj::heapArray<const char>(text.data(), text.size());
  }
  kj::Maybe<kj::Own<SchemaFile>> import(kj::StringPtr path) const override {
    const std::string name = Library::resolved(name_, {path.cStr(), path.size()});
    if (library_->text_of(name) == nullptr) return nullptr;
    library_->note_import(name_, name);
    return kj::Own<SchemaFile>(kj::heap<File>(library_, name));
  }
  bool operator==(const SchemaFile& other) const override {
    const auto* const file = dynamic_cast<const File*>(&other);
    return file != nullptr && file->library_ == library_ && file->name_ == name_;
  }
  bool operator!=(const SchemaFile& other) const override { return !(*this == other); }
  size_t hashCode() const override { return std::hash<std::string>()(name_); }
  void reportError(SourcePos start, SourcePos, kj::StringPtr message) const override {
    library_->report(fmt::format("{}:{}:{}: {}", name_, start.line + 1, start.column + 1, message.cStr()));
  }

 private:
  std::shared_ptr<Library> library_;
  std::string name_;
};

// Every node declared in `scope`, groups included, by its id.
void collect(const capnp::ParsedSchema& scope, std::map<uint64_t, capnp::Schema>& nodes);
void collect_groups(capnp::StructSchema of, std::map<uint64_t, capnp::Schema>& nodes) {
  for (const auto field : of.getFields()) {
    if (!field.getProto().isGroup()) continue;
    const capnp::StructSchema group = field.getType().asStruct();
    if (nodes.emplace(group.getProto().getId(), group).second) collect_groups(group, nodes);
  }
}
void collect(const capnp::ParsedSchema& scope, std::map<uint64_t, capnp::Schema>& nodes) {
  if (!nodes.emplace(scope.getProto().getId(), scope).second) return;
  if (scope.getProto().isStruct()) collect_groups(scope.asStruct(), nodes);
  for (const capnp::ParsedSchema nested : scope.getAllNested()) collect(nested, nodes);
}

std::string type_json(capnp::Type type) {
  if (type.isEnum()) {
    std::string names;
    for (const auto enumerant : type.asEnum().getEnumerants()) {
      names += fmt::format("{}\"{}\"", names.empty() ? "" : ",", enumerant.getProto().getName().cStr());
    }
    return "{\"enum\":[" + names + "]}";
  }
  if (type.isList()) return "{\"list\":" + type_json(type.asList().getElementType()) + "}";
  if (type.isStruct()) return fmt::format("{{\"struct\":\"{}\"}}", type.asStruct().getProto().getId());
  switch (type.which()) {
    case capnp::schema::Type::VOID:
      return "\"Void\"";
    case capnp::schema::Type::BOOL:
      return "\"Bool\"";
    case capnp::schema::Type::INT8:
      return "\"Int8\"";
    case capnp::schema::Type::INT16:
      return "\"Int16\"";
    case capnp::schema::Type::INT32:
      return "\"Int32\"";
    case capnp::schema::Type::INT64:
      return "\"Int64\"";
    case capnp::schema::Type::UINT8:
      return "\"UInt8\"";
    case capnp::schema::Type::UINT16:
      return "\"UInt16\"";
    case capnp::schema::Type::UINT32:
      return "\"UInt32\"";
    case capnp::schema::Type::UINT64:
      return "\"UInt64\"";
    case capnp::schema::Type::FLOAT32:
      return "\"Float32\"";
    case capnp::schema::Type::FLOAT64:
      return "\"Float64\"";
    case capnp::schema::Type::TEXT:
      return "\"Text\"";
    case capnp::schema::Type::DATA:
      return "\"Data\"";
    default:
      return "\"AnyPointer\"";
  }
}

// The default of a field in the data section, as the bits that its value is xor'ed with; 0 for other fields.
uint64_t default_bits(const capnp::schema::Value::Reader& value) {
  switch (value.which()) {
    case capnp::schema::Value::BOOL:
      return value.getBool();
    case capnp::schema::Value::INT8:
      return uint8_t(value.getInt8());
    case capnp::schema::Value::INT16:
      return uint16_t(value.getInt16());
    case capnp::schema::Value::INT32:
      return uint32_t(value.getInt32());
    case capnp::schema::Value::INT64:
      return uint64_t(value.getInt64());
    case capnp::schema::Value::UINT8:
      return value.getUint8();
    case capnp::schema::Value::UINT16:
      return value.getUint16();
    case capnp::schema::Value::UINT32:
      return value.getUint32();
    case capnp::schema::Value::UINT64:
      return value.getUint64();
    case capnp::schema::Value::FLOAT32:
      return std::bit_cast<uint32_t>(value.getFloat32());
    case capnp::schema::Value::FLOAT64:
      return std::bit_cast<uint64_t>(value.getFloat64());
    case capnp::schema::Value::ENUM:
      return value.getEnum();
    default:
      return 0;
  }
}

bool is_pointer(capnp::Type type) {
  return type.isList() || type.isText() || type.isData() || type.isStruct() || type.isAnyPointer();
}

// Where the fields of a struct lie in a message.
std::string layout_json(capnp::StructSchema type) {
  const auto shape = type.getProto().getStruct();
  std::string text =
      fmt::format("{{\"words\":{},\"pointers\":{}", shape.getDataWordCount(), shape.getPointerCount());
  if (shape.getDiscriminantCount() != 0) text += fmt::format(",\"tag\":{}", shape.getDiscriminantOffset());
  if (shape.getIsGroup()) text += ",\"group\":true";
  text += ",\"fields\":{";
  const char* between = "";
  for (const auto field : type.getFields()) {
    const auto proto = field.getProto();
    text += fmt::format("{}\"{}\":{{\"at\":{}", between, proto.getName().cStr(),
                        proto.isSlot() ? proto.getSlot().getOffset() : 0);
    between = ",";
    if (proto.isSlot()) {
      if (const uint64_t bits = default_bits(proto.getSlot().getDefaultValue()); bits != 0) {
        text += fmt::format(",\"default\":\"{}\"", bits);
      } else if (is_pointer(field.getType()) && proto.getSlot().getHadExplicitDefault()) {
        text += ",\"default\":true";
      }
    }
    if (proto.getDiscriminantValue() != capnp::schema::Field::NO_DISCRIMINANT) {
      text += fmt::format(",\"member\":{}", proto.getDiscriminantValue());
    }
    text += "}";
  }
  return text + "}}";
}

std::string describe(const std::map<uint64_t, capnp::Schema>& nodes) {
  std::string text = "{";
  for (const auto& [id, node] : nodes) {
    if (!node.getProto().isStruct() || node.getProto().getIsGeneric()) continue;
    if (text.size() > 1) text += ',';
    text += fmt::format("\"{}\":{{\"name\":\"{}\",\"fields\":{{", id, compiler::schema_name(node.getProto()));
    const char* between = "";
    for (const auto field : node.asStruct().getFields()) {
      text +=
          fmt::format("{}\"{}\":{}", between, field.getProto().getName().cStr(), type_json(field.getType()));
      between = ",";
    }
    text += "}";
    std::string members;
    for (const auto field : node.asStruct().getUnionFields()) {
      members += fmt::format("{}\"{}\"", members.empty() ? "" : ",", field.getProto().getName().cStr());
    }
    if (!members.empty()) text += fmt::format(",\"union\":[{}]", members);
    text += fmt::format(",\"layout\":{}}}", layout_json(node.asStruct()));
  }
  return text + "}";
}

// What the library has to say of bad bytes is thrown; it must not go to the embedder's standard error.
class Quiet final : public kj::ExceptionCallback {
  void logMessage(kj::LogSeverity, const char*, int, int, kj::String&&) override {}
};

}  // namespace

struct Schema::Parsed {
  capnp::SchemaParser parser;
  std::map<uint64_t, capnp::Schema> nodes;
  std::string description;
  std::vector<SourceText> views;
  capnp::JsonCodec json;

  capnp::StructSchema struct_of(uint64_t type_id) const {
    const auto found = nodes.find(type_id);
    if (found == nodes.end() || !found->second.getProto().isStruct() ||
        found->second.getProto().getStruct().getIsGroup()) {
      throw UnknownType(
          fmt::format("no struct has the id {:#x}; gyre_schema_describe lists all there are", type_id));
    }
    if (found->second.getProto().getIsGeneric()) {
      throw UnknownType(fmt::format("struct {} is generic; messages are of plain ones",
                                    compiler::schema_name(found->second.getProto())));
    }
    return found->second.asStruct();
  }
};

namespace {

// The compiler plugin's request for `given`, whose nodes are among `nodes`.
void make_views(std::span<const SourceText> given, const std::map<std::string, uint64_t>& file_ids,
                const std::map<uint64_t, capnp::Schema>& nodes, Library& library,
                std::vector<SourceText>& views) {
  capnp::MallocMessageBuilder message;
  auto request = message.initRoot<compiler::CodeGeneratorRequest>();
  auto all = request.initNodes(uint32_t(nodes.size()));
  uint32_t at = 0;
  for (const auto& [id, node] : nodes) all.setWithCaveats(at++, node.getProto());
  auto files = request.initRequestedFiles(uint32_t(given.size()));
  for (uint32_t i = 0; i < given.size(); ++i) {
    const std::string name = Library::without_slash(given[i].name);
    files[i].setId(file_ids.at(name));
    files[i].setFilename(name);
    const auto& imported = library.imports_of(name);
    auto imports = files[i].initImports(uint32_t(imported.size()));
    uint32_t n = 0;
    for (const std::string& import : imported) {
      imports[n].setName("/" + import);
      const auto id = file_ids.find(import);
      imports[n++].setId(id == file_ids.end() ? 0 : id->second);
    }
  }
  const compiler::Schema schema(request.asReader());
  for (const auto requested : request.asReader().getRequestedFiles()) {
    const auto problems = compiler::refusals(schema, requested);
    for (const std::string& problem : problems) library.report(problem);
    if (!problems.empty()) continue;
    views.push_back({compiler::header_name(std::string(requested.getFilename()), ".view.hpp"),
                     compiler::view_header(schema, requested)});
  }
}

}  // namespace

namespace {

// A type as schemas spell it.
std::string spelt(capnp::Type type) {
  if (type.isList()) return "List(" + spelt(type.asList().getElementType()) + ")";
  if (type.isStruct()) return compiler::schema_name(type.asStruct().getProto());
  if (type.isEnum()) return compiler::schema_name(type.asEnum().getProto());
  const std::string json = type_json(type);
  return json.substr(1, json.size() - 2);
}

bool same_type(capnp::Type a, capnp::Type b) {
  if (a.which() != b.which()) return false;
  if (a.isList()) return same_type(a.asList().getElementType(), b.asList().getElementType());
  if (a.isStruct()) return a.asStruct().getProto().getId() == b.asStruct().getProto().getId();
  if (a.isEnum()) return a.asEnum().getProto().getId() == b.asEnum().getProto().getId();
  return true;
}

// A field that lies in the message itself: of a struct, or of a group in it.
struct Leaf {
  std::string path;  // "price.cents"
  capnp::StructSchema::Field field;
  struct Member {
    uint16_t discriminant;
    uint32_t discriminant_offset;
    bool operator==(const Member&) const = default;
  };
  std::vector<Member> member_of;  // the unions that the field is in, the outermost first

  std::optional<uint16_t> number() const {
    const auto ordinal = field.getProto().getOrdinal();
    return ordinal.isExplicit() ? std::optional(ordinal.getExplicit()) : std::nullopt;
  }
};

void collect_leaves(capnp::StructSchema scope, const Leaf& around, std::vector<Leaf>& leaves) {
  for (const auto field : scope.getFields()) {
    const auto proto = field.getProto();
    Leaf leaf = around;
    leaf.field = field;
    (leaf.path.empty() ? leaf.path : leaf.path += ".") += proto.getName().cStr();
    if (proto.getDiscriminantValue() != capnp::schema::Field::NO_DISCRIMINANT) {
      leaf.member_of.push_back(
          {proto.getDiscriminantValue(), scope.getProto().getStruct().getDiscriminantOffset()});
    }
    if (proto.isGroup()) {
      collect_leaves(field.getType().asStruct(), leaf, leaves);
    } else {
      leaves.push_back(std::move(leaf));
    }
  }
}

// The field by its name, else by its number: a renamed one, or one that a group was made around.
const Leaf* counterpart(const Leaf& leaf, const std::vector<Leaf>& others) {
  const auto find = [&others](auto&& is_it) {
    const auto found = std::find_if(others.begin(), others.end(), is_it);
    return found == others.end() ? nullptr : &*found;
  };
  if (const Leaf* const named = find([&](const Leaf& other) { return other.path == leaf.path; }))
    return named;
  return find([&](const Leaf& other) { return leaf.number() && other.number() == leaf.number(); });
}

// Of a field that both have: what differs, or "".
std::string difference_of(const std::string& name, const Leaf& ours, const Leaf& theirs) {
  if (!same_type(ours.field.getType(), theirs.field.getType())) {
    return fmt::format("field {} of {} is {} in the schema, and the actors were built with {}", ours.path,
                       name, spelt(ours.field.getType()), spelt(theirs.field.getType()));
  }
  if (ours.member_of != theirs.member_of) {
    return fmt::format(
        "field {} of {} is another field of its union, in another union, or in none, in what the actors were "
        "built with",
        ours.path, name);
  }
  const auto a = ours.field.getProto().getSlot(), b = theirs.field.getProto().getSlot();
  if (a.getOffset() != b.getOffset()) {
    return fmt::format(
        "field {} of {} lies elsewhere in what the actors were built with: its number, or one before it, "
        "is another there",
        ours.path, name);
  }
  // By content, that of texts and lists too.
  if (capnp::AnyStruct::Reader(a.getDefaultValue()) != capnp::AnyStruct::Reader(b.getDefaultValue())) {
    return fmt::format("field {} of {} has another default in what the actors were built with", ours.path,
                       name);
  }
  return {};
}

// Of a struct or enum that both have.
std::string difference_of(capnp::Schema ours, capnp::Schema theirs) {
  const std::string name = compiler::schema_name(ours.getProto());
  if (ours.getProto().which() != theirs.getProto().which()) {
    return fmt::format("{} is another kind of thing in what the actors were built with", name);
  }
  if (ours.getProto().isEnum()) {
    for (const auto enumerant : ours.asEnum().getEnumerants()) {
      KJ_IF_MAYBE (other, theirs.asEnum().findEnumerantByName(enumerant.getProto().getName())) {
        if (enumerant.getOrdinal() != other->getOrdinal()) {
          return fmt::format(
              "enumerant {} of {} has the number {} in the schema, and the actors were built with {}",
              enumerant.getProto().getName().cStr(), name, enumerant.getOrdinal(), other->getOrdinal());
        }
      }
    }
    return {};
  }
  if (!ours.getProto().isStruct() || ours.getProto().getStruct().getIsGroup()) return {};
  std::vector<Leaf> own, other;
  collect_leaves(ours.asStruct(), {}, own);
  collect_leaves(theirs.asStruct(), {}, other);
  for (const Leaf& leaf : own) {
    const Leaf* const found = counterpart(leaf, other);
    if (found == nullptr) continue;
    if (auto difference = difference_of(name, leaf, *found); !difference.empty()) return difference;
  }
  return {};
}

// Why the official library refused to read a message. It tells its reasons apart by their texts alone.
std::string unreadable(const kj::Exception& error, const capnp::ReaderOptions& options) {
  const std::string_view said = error.getDescription().cStr();
  if (said.find("traversal limit") != std::string_view::npos) {
    return fmt::format(
        "it leads through more than {} words, 64 times its size or 65,536; elements without a size count one "
        "each: make such lists shorter, and let fewer pointers lead to one object",
        options.traversalLimitInWords);
  }
  if (said.find("nested") != std::string_view::npos) {
    return fmt::format("it nests deeper than {} structs and lists; make it flatter", options.nestingLimit);
  }
  return "a pointer in it leads out of it, or to another kind of thing than its field's; check who made it";
}

}  // namespace

Schema::Schema(std::span<const SourceText> files) : parsed_(parse(files, {})) {}
Schema::Schema(std::span<const capnp::StructSchema> roots) : parsed_(parse({}, roots)) {}

std::unique_ptr<const Schema::Parsed> Schema::parse(std::span<const SourceText> files,
                                                    std::span<const capnp::StructSchema> roots) {
  auto parsed = std::make_unique<Parsed>();
  const auto library = std::make_shared<Library>(files);
  const Quiet quiet;
  try {
    std::map<std::string, uint64_t> file_ids;
    const auto parse = [&](const std::string& name) {
      const capnp::ParsedSchema file = parsed->parser.parseFile(kj::heap<File>(library, name));
      if (!library->problems().empty()) return;
      file_ids.emplace(name, file.getProto().getId());
      collect(file, parsed->nodes);
    };
    for (const SourceText& file : files) parse(Library::without_slash(file.name));
    for (const SourceFile& own : gyre_c_schemas::sources.files) {
      if (library->problems().empty()) parse(std::string(own.name));
    }
    if (library->problems().empty()) {
      make_views(files, file_ids, parsed->nodes, *library, parsed->views);
      for (const auto& [id, schema] : schemas_below(roots)) parsed->nodes.emplace(id, schema);
      parsed->description = describe(parsed->nodes);
    }
  } catch (const kj::Exception& error) {
    library->report(error.getDescription().cStr());
  }
  if (!library->problems().empty()) throw BadSchema(library->problems());
  return parsed;
}

Schema::Schema(Schema&&) noexcept = default;
Schema::~Schema() = default;

uint64_t Schema::type_id(std::string_view name) const {
  const size_t colon = name.rfind(':');
  const std::string file =
      colon == std::string_view::npos ? "" : Library::without_slash(name.substr(0, colon));
  const std::string_view plain = colon == std::string_view::npos ? name : name.substr(colon + 1);
  std::vector<const capnp::Schema*> found;
  for (const auto& [id, node] : parsed_->nodes) {
    const auto proto = node.getProto();
    if (!proto.isStruct() || proto.getStruct().getIsGroup() || compiler::schema_name(proto) != plain)
      continue;
    const std::string display = proto.getDisplayName();
    if (file.empty() || display.substr(0, display.find(':')) == file) found.push_back(&node);
  }
  if (found.empty()) {
    throw UnknownType(fmt::format("no struct is named {}; gyre_schema_describe lists all there are", name));
  }
  if (found.size() > 1) {
    throw UnknownType(fmt::format("{} structs are named {} ({} and {} for two); say which by file.capnp:{}",
                                  found.size(), name, found[0]->getProto().getDisplayName().cStr(),
                                  found[1]->getProto().getDisplayName().cStr(), plain));
  }
  return found[0]->getProto().getId();
}

void Schema::check_against(std::span<const capnp::StructSchema> roots) const {
  const Quiet quiet;
  try {
    const auto theirs = schemas_below(roots);
    for (const auto& [id, schema] : theirs) {
      const auto found = parsed_->nodes.find(id);
      if (found == parsed_->nodes.end()) continue;
      const std::string difference = difference_of(found->second, schema);
      if (!difference.empty()) throw BadSchema(difference);
    }
    for (const capnp::StructSchema& root : roots) {
      const auto proto = root.getProto();
      const std::string name = compiler::schema_name(proto);
      if (parsed_->nodes.count(proto.getId()) != 0) continue;
      for (const auto& [id, node] : parsed_->nodes) {
        // Of the actors' own ones another may have that name, in another file.
        if (theirs.count(id) != 0 || !node.getProto().isStruct() ||
            compiler::schema_name(node.getProto()) != name)
          continue;
        throw BadSchema(fmt::format(
            "struct {} has the id {:#x}, and the actors were built with {:#x}: give the schema's file, or "
            "the struct, the id that it has there",
            name, id, proto.getId()));
      }
    }
  } catch (const kj::Exception& error) {
    throw BadSchema(error.getDescription().cStr());
  }
}

const std::string& Schema::description() const { return parsed_->description; }
const std::vector<SourceText>& Schema::views() const { return parsed_->views; }

std::vector<std::byte> Schema::from_json(uint64_t type_id, std::string_view json, Encoding encoding) const {
  const capnp::StructSchema type = parsed_->struct_of(type_id);
  const Quiet quiet;
  try {
    capnp::MallocMessageBuilder message;
    const auto root = message.initRoot<capnp::DynamicStruct>(type);
    fill_from_json(root, json);
    // As one segment, and without what decoding left behind.
    capnp::MallocMessageBuilder one(
        uint(std::min<uint64_t>(root.asReader().totalSize().wordCount + 1, 1u << 29)));
    one.setRoot(root.asReader());
    const auto segments = one.getSegmentsForOutput();
    if (segments.size() != 1) throw BadJson("the message is larger than 4 GiB; send less at a time");
    const auto bytes = segments[0].asBytes();
    return encode({reinterpret_cast<const std::byte*>(bytes.begin()), bytes.size()}, encoding);
  } catch (const kj::Exception& error) {
    throw BadJson(fmt::format("reading JSON as {}: {}", type.getShortDisplayName().cStr(),
                              error.getDescription().cStr()));
  }
}

std::string Schema::to_json(uint64_t type_id, const Encoded& message) const {
  const capnp::StructSchema type = parsed_->struct_of(type_id);
  const auto why = [&](std::string_view what) {
    return fmt::format("reading {} bytes as {}: {}", message.bytes.size(), type.getShortDisplayName().cStr(),
                       what);
  };
  const Quiet quiet;
  capnp::ReaderOptions options;
  try {
    detail::Frame frame(message);
    if (const Failure failure = frame.open(); failure.status != Status::ok)
      throw BadMessage(why(failure.message()));
    std::vector<kj::ArrayPtr<const capnp::word>> segments;
    if (!frame.take_segments(segments)) throw BadMessage(why("its segments are not what its table claims"));
    // A worker's budget: what a worker reads, and answers, is read here too.
    options.traversalLimitInWords = wire::Message::default_traversal_words(
        uint32_t(std::min<uint64_t>(frame.total_bytes(), std::numeric_limits<uint32_t>::max())));
    capnp::SegmentArrayMessageReader reader(kj::arrayPtr(segments.data(), segments.size()), options);
    const auto text = parsed_->json.encode(reader.getRoot<capnp::DynamicStruct>(type));
    return std::string(text.cStr(), text.size());
  } catch (const kj::Exception& error) {
    throw BadMessage(why(unreadable(error, options)));
  }
}

}  // namespace gyre::c
