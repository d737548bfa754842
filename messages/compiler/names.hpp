// From names in a Cap'n Proto schema to names in the generated C++.
#pragma once

#include <string>
#include <string_view>

namespace gyre::compiler {

/// `processingNs` as `processing_ns`, `parseHTTPBody` as `parse_http_body`. A name that C++ or one of its
/// headers has taken gets a `_` at the end.
std::string snake_case(std::string_view schema_name);

}  // namespace gyre::compiler
