// From names in a Cap'n Proto schema to names in the generated C++.
#pragma once

#include <string>
#include <string_view>

namespace gyre::compiler {

/// `processingNs` as `processing_ns`, `parseHTTPBody` as `parse_http_body`. A name that C++ or one of its
/// headers has taken gets a `_` at the end.
std::string snake_case(std::string_view schema_name);

/// `set_` and `processingNs` as `set_processing_ns`.
std::string prefixed(std::string_view prefix, std::string_view schema_name);

/// `place` as `Place`: the class of a group, as the official C++ generator names it.
std::string title_case(std::string_view schema_name);

/// `messages/echo.capnp` and `.view.hpp` as `messages/echo.view.hpp`.
std::string header_name(std::string_view schema_file, std::string_view ending);

}  // namespace gyre::compiler
