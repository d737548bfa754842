// From names in a Cap'n Proto schema to names in the generated C++: those that capnpc-c++ makes of them.
#pragma once

#include <string>
#include <string_view>

namespace gyre::compiler {

/// Writes `place` as `Place`: a group's class, and the end of a member's name, as in `getPlace`.
std::string title_case(std::string_view schema_name);

/// Writes `lengthsDiffer` as `LENGTHS_DIFFER`: an enumerant, and a union's member in its Which. `null`, which
/// would be a macro, becomes `NULL_`.
std::string upper_case(std::string_view schema_name);

/// `messages/echo.capnp` and `.view.hpp` as `messages/echo.view.hpp`.
std::string header_name(std::string_view schema_file, std::string_view ending);

}  // namespace gyre::compiler
