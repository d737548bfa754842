#include "refusals.hpp"

#include <cmath>
#include <map>
#include <set>

#include "names.hpp"

namespace gyre::compiler {
namespace {

// Every view has these names, as every official class has.
bool is_reserved(const std::string& type) {
  return type == "Reader" || type == "Builder" || type == "Reads" || type == "Builds" || type == "Which";
}
// Macros of the standard headers that an enumerant can become.
bool is_macro(const std::string& enumerant) {
  return enumerant == "BUFSIZ" || enumerant == "EOF" || enumerant == "INFINITY" || enumerant == "NAN";
}

/// The names of one C++ scope, and what has taken each.
using Names = std::map<std::string, std::string>;

class Check {
 public:
  Check(const Schema& schema, CodeGeneratorRequest::RequestedFile::Reader requested)
      : schema_(schema),
        requested_(requested),
        file_(schema.node(requested.getId())),
        file_name_(requested.getFilename()) {}

  std::vector<std::string> run() {
    if (!schema_.cxx_namespace(file_)) {
      refuse(
          "no C++ namespace; add: using Cxx = import \"/capnp/c++.capnp\"; $Cxx.namespace(\"your::name\");");
    } else {
      check_nested(file_);
    }
    return problems_;
  }

 private:
  void refuse(const std::string& problem) { problems_.push_back(file_name_ + ": " + problem); }

  void refuse_if_taken(Names& names, const std::string& name, const std::string& owner,
                       const std::string& where) {
    const auto [other, is_new] = names.emplace(name, owner);
    if (is_new || !told_.insert(where + other->second + owner).second) return;
    refuse(where + ": " + other->second + " and " + owner + " would both be " + name + " in C++; rename one");
  }

  /// An enumerant, or a union's member in its Which, among `names`.
  void check_enumerant(Names& names, const std::string& name, const std::string& owner,
                       const std::string& where) {
    const std::string enumerant = upper_case(name);
    refuse_if_taken(names, enumerant, owner, where);
    if (is_macro(enumerant)) {
      refuse(where + ": " + owner + " would be " + enumerant +
             " in C++, a macro of the standard headers; rename it");
    }
  }

  void check_nested(Node::Reader scope) {
    for (const Node::Reader node : schema_.nested(scope)) {
      const std::string name = schema_name(node);
      if (node.isInterface()) {
        refuse("interface " + name + " is not supported; declare structs and enums only");
        continue;
      }
      const std::string where = (node.isStruct() ? "struct " : "enum ") + name;
      if (is_reserved(schema_.cxx_name(node))) refuse(where + " has a name that every view uses; rename it");
      if (node.isEnum()) {
        check_enumerants(node, where);
      } else if (node.getIsGeneric()) {
        refuse(where + " is generic, which is not supported; write it out for one type");
      } else {
        check_struct(node, where);
        check_nested(node);
      }
    }
  }

  void check_enumerants(Node::Reader node, const std::string& where) {
    Names names;
    for (const auto enumerant : node.getEnum().getEnumerants()) {
      check_enumerant(names, declared_name(enumerant), "enumerant " + std::string(enumerant.getName()),
                      where);
    }
  }

  /// A struct or a group.
  void check_struct(Node::Reader node, const std::string& where) {
    Names types, members;
    types.emplace(schema_.cxx_name(node), "the struct itself");
    for (const Node::Reader nested : schema_.nested(node))
      refuse_if_taken(types, schema_.cxx_name(nested), schema_.cxx_name(nested), where);
    Names enumerants = types;  // those of Which are in the struct's own scope

    for (const auto field : node.getStruct().getFields()) {
      const std::string owner = "field " + std::string(field.getName());
      refuse_if_taken(members, "get" + title_case(declared_name(field)), owner, where);
      if (in_union(field)) check_enumerant(enumerants, declared_name(field), owner, where);
      if (field.isSlot()) {
        check_default(where + ": " + owner, field.getSlot());
        check_type(where + ": " + owner, field.getSlot().getType());
      } else {
        check_group(schema_.group(field), types, where, field.getName());
      }
    }
  }

  void check_group(Node::Reader group, Names& types, const std::string& where, const std::string& name) {
    const std::string type = schema_.cxx_name(group);
    if (is_reserved(type)) {
      refuse(where + ": group " + name + " would be " + type + ", which every view uses; rename it");
    }
    refuse_if_taken(types, type, "group " + name, where);
    // The official headers do not compile then either: what is in the group would be looked up in it alone.
    for (Node::Reader around = schema_.node(group.getScopeId()); !around.isFile();
         around = schema_.node(around.getScopeId())) {
      if (schema_.cxx_name(around) == type && around.getId() != group.getScopeId()) {
        refuse(where + ": group " + name + " would be " + type +
               ", like a struct or group around it; rename one");
      }
    }
    check_struct(group, "group " + schema_name(group));
  }

  /// The official C++ classes take a default of -0 for none, and the rest of the official library does not.
  void check_default(const std::string& field, Field::Slot::Reader slot) {
    const auto value = slot.getDefaultValue();
    const bool negative_zero =
        (value.isFloat32() && value.getFloat32() == 0 && std::signbit(value.getFloat32())) ||
        (value.isFloat64() && value.getFloat64() == 0 && std::signbit(value.getFloat64()));
    if (slot.getHadExplicitDefault() && negative_zero) {
      refuse(field +
             " has the default -0, which the official C++ classes read as none, and other programs do not; "
             "leave "
             "it out");
    }
  }

  void check_type(const std::string& field, Type::Reader type) {
    const std::string is = field + " is :" + schema_.type_text(type);
    while (type.isList()) type = type.getList().getElementType();
    if (type.isAnyPointer()) {
      if (type.getAnyPointer().isUnconstrained()) {
        refuse(is + ", which is not supported; give it a type, or send it as Data");
      } else {
        refuse(is + ", which is not supported; write the struct out for one type");
      }
    } else if (type.isInterface()) {
      refuse(is + ", an interface, which is not supported; send a number or a Text that names the object");
    } else if (type.isEnum()) {
      check_declaration(field, is, "an enum", schema_.node(type.getEnum().getTypeId()));
    } else if (type.isStruct()) {
      check_declaration(field, is, "a struct", schema_.node(type.getStruct().getTypeId()));
    }
  }

  /// A type of another file must be reachable through this file's imports, and that file have a namespace.
  void check_declaration(const std::string& field, const std::string& is, const std::string& kind,
                         Node::Reader node) {
    if (node.getIsGeneric())
      return refuse(is + ", of a generic type, which is not supported; write it out for one type");
    const Node::Reader file = schema_.file_of(node);
    if (file.getId() == file_.getId()) return;
    const std::string use = field + " uses " + kind + " of " + std::string(file.getDisplayName());
    bool imported = false;
    for (const auto import : requested_.getImports()) imported = imported || import.getId() == file.getId();
    if (!imported) refuse(use + ", which is imported only through other files; import it here");
    if (!schema_.cxx_namespace(file)) refuse(use + ", which has no C++ namespace; add one there");
  }

  const Schema& schema_;
  CodeGeneratorRequest::RequestedFile::Reader requested_;
  Node::Reader file_;
  std::string file_name_;
  std::vector<std::string> problems_;
  std::set<std::string> told_;  // pairs of names: most would collide in more than one way
};

}  // namespace

std::vector<std::string> refusals(const Schema& schema,
                                  CodeGeneratorRequest::RequestedFile::Reader requested) {
  return Check(schema, requested).run();
}

}  // namespace gyre::compiler
