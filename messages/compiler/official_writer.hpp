// F.official.hpp: host only, which view belongs to which official class.
#pragma once

#include <string>

#include "schema.hpp"

namespace gyre::compiler {

/// The text of the header. The file must have been found free of refusals.
std::string official_header(const Schema& schema, CodeGeneratorRequest::RequestedFile::Reader requested);

}  // namespace gyre::compiler
