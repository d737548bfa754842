#include "names.hpp"

#include <cctype>

namespace gyre::compiler {
namespace {

// Keywords that can come out of a camelCase name, macros of the standard headers, and types and namespaces
// that the views use, each between spaces.
constexpr std::string_view taken =
    " alignas alignof and and_eq asm assert auto bitand bitor bool break case catch char char16_t char32_t "
    "char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default defaults delete do double dynamic_cast else enum errno explicit "
    "export "
    "extern false float for friend goto if inline int int16_t int32_t int64_t int8_t linux long mutable "
    "namespace new noexcept not not_eq nullptr offsetof operator or or_eq private protected public "
    "register reinterpret_cast requires return short signed sizeof static static_assert static_cast "
    "stderr stdin stdout strdupa strndupa struct switch template this thread_local throw true try typedef "
    "typeid typename "
    "uint16_t uint32_t uint64_t uint8_t union unix unsigned using virtual void volatile wchar_t while wire "
    "xor "
    "xor_eq ";

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::string snake_case(std::string_view schema_name) {
  std::string name;
  for (size_t i = 0; i < schema_name.size(); ++i) {
    const char c = schema_name[i];
    const bool ends_acronym = i + 1 < schema_name.size() && is_lower(schema_name[i + 1]);
    if (is_upper(c) && i > 0 && (!is_upper(schema_name[i - 1]) || ends_acronym)) name += '_';
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (taken.find(' ' + name + ' ') != std::string_view::npos) name += '_';
  return name;
}

std::string prefixed(std::string_view prefix, std::string_view schema_name) {
  std::string name = snake_case(schema_name);
  if (name.ends_with('_')) name.pop_back();  // set_default is not a keyword
  return std::string(prefix) + name;
}

std::string title_case(std::string_view schema_name) {
  std::string name(schema_name);
  if (!name.empty()) name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

std::string header_name(std::string_view schema_file, std::string_view ending) {
  if (schema_file.ends_with(".capnp")) schema_file.remove_suffix(std::string_view(".capnp").size());
  return std::string(schema_file) + std::string(ending);
}

}  // namespace gyre::compiler
