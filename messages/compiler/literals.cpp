#include "literals.hpp"

#include <capnp/any.h>
#include <capnp/message.h>
#include <capnp/serialize.h>

#include <bit>
#include <cmath>
#include <stdexcept>

#include "lines.hpp"

namespace gyre::compiler {

std::string number_literal(Value::Reader value, const std::string& text) {
  const std::string fraction = text.find_first_of(".e") == std::string::npos ? ".0" : "";
  if (value.isInt64()) return value.getInt64() == INT64_MIN ? "-9223372036854775807l - 1" : text + "l";
  if (value.isUint32()) return text + "u";
  if (value.isUint64()) return text + "ul";
  if (value.isFloat32()) {
    if (std::isfinite(value.getFloat32())) return text + fraction + "f";
    return format("__builtin_bit_cast(float, 0x%08xu)", std::bit_cast<uint32_t>(value.getFloat32()));
  }
  if (value.isFloat64()) {
    if (std::isfinite(value.getFloat64())) return text + fraction;
    return format("__builtin_bit_cast(double, 0x%016lxul)", std::bit_cast<uint64_t>(value.getFloat64()));
  }
  return text;
}

std::string body_literal(Value::Reader value) {
  capnp::MallocMessageBuilder scratch;
  auto root = scratch.getRoot<capnp::AnyPointer>();
  if (value.isText()) root.setAs<capnp::Text>(value.getText());
  if (value.isData()) root.setAs<capnp::Data>(value.getData());
  if (value.isList()) root.set(value.getList());
  if (value.isStruct()) root.set(value.getStruct());
  // Once more, into one segment.
  capnp::MallocMessageBuilder message(unsigned(root.asReader().targetSize().wordCount) + 1);
  message.setRoot(root.asReader());
  const auto segments = message.getSegmentsForOutput();
  if (segments.size() != 1) throw std::runtime_error("a default takes more than one segment");
  std::string text;
  for (const capnp::word& word : segments[0]) {
    text += (text.empty() ? "" : ", ") + format("0x%lxul", std::bit_cast<uint64_t>(word));
  }
  return text;
}

}  // namespace gyre::compiler
