// Messages from JSON, by schemas known at run time. What the official library's codec takes for another value
// than the one that was written is refused here, by name.
#pragma once

#include <capnp/dynamic.h>

#include <stdexcept>
#include <string_view>

namespace gyre {

/// Names the field by its path, the value, and what is expected.
class BadJson : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Fills `root` from JSON. Fields stand by their names, enumerants too, Data as an array of numbers. An
/// integer may be a string of digits, and is one from 2^53 on: as numbers those are not exact.
/// @throws BadJson where the text is no JSON in UTF-8, nests more than 64 brackets, repeats a key, or holds a
///         value that its field does not take
void fill_from_json(capnp::DynamicStruct::Builder root, std::string_view json);

}  // namespace gyre
