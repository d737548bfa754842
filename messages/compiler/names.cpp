#include "names.hpp"

#include <cctype>

namespace gyre::compiler {

std::string title_case(std::string_view schema_name) {
  std::string name(schema_name);
  if (!name.empty()) name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

std::string upper_case(std::string_view schema_name) {
  std::string name;
  for (const char c : schema_name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isupper(letter) != 0 && !name.empty()) name += '_';
    name += static_cast<char>(std::toupper(letter));
  }
  return name == "NULL" ? "NULL_" : name;
}

std::string header_name(std::string_view schema_file, std::string_view ending) {
  if (schema_file.ends_with(".capnp")) schema_file.remove_suffix(std::string_view(".capnp").size());
  return std::string(schema_file) + std::string(ending);
}

}  // namespace gyre::compiler
