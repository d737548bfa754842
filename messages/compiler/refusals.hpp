// What the views cannot have, each offence by name.
#pragma once

#include <string>
#include <vector>

#include "schema.hpp"

namespace gyre::compiler {

/// What keeps a requested file from being generated, a line each; nothing if it can be.
std::vector<std::string> refusals(const Schema& schema,
                                  CodeGeneratorRequest::RequestedFile::Reader requested);

}  // namespace gyre::compiler
