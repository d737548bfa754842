// Defaults of fields as C++ literals.
#pragma once

#include <string>

#include "schema.hpp"

namespace gyre::compiler {

/// The default of a field that is an integer or a float; `text` is how a schema spells it. What C++ has no
/// literal for is given by its bits.
std::string number_literal(Value::Reader value, const std::string& text);

/// The words of a whole message body whose root pointer leads to the default of a Text, Data, list or struct,
/// separated by commas.
std::string body_literal(Value::Reader value);

}  // namespace gyre::compiler
