// F.view.hpp: views of the structs of a file for workers, one text for g++, clang and NVRTC.
#pragma once

#include <string>

#include "schema.hpp"

namespace gyre::compiler {

/// The text of the header. The file must have been found free of refusals.
std::string view_header(const Schema& schema, CodeGeneratorRequest::RequestedFile::Reader requested);

}  // namespace gyre::compiler
