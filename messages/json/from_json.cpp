#include <capnp/compat/json.capnp.h>
#include <capnp/compat/json.h>
#include <capnp/message.h>
#include <fmt/format.h>
#include <gyre/messages/compiler/schema.hpp>
#include <gyre/messages/json/from_json.hpp>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>

namespace gyre {

namespace {

// The official parser calls itself for each bracket in a bracket, and refuses more.
constexpr uint32_t most_brackets = 64;

struct Problem {
  std::string text;
};

// The bytes of the UTF-8 character that `text` begins with; 0: it begins with none.
size_t character_bytes(std::string_view text) {
  const auto byte = [text](size_t i) { return i < text.size() ? uint8_t(text[i]) : uint8_t(0); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const size_t bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Characters written longer than need be, halves of surrogates, and what lies beyond Unicode.
  const bool outside = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
                       (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  return outside ? 0 : bytes;
}

// Refuses what the official parser would take for the end of the text, or would not notice.
void check_text(std::string_view json) {
  std::string_view text, key;  // the string that was read last; the last one before a colon
  size_t begin = 0;            // of the string
  bool in_string = false;
  uint32_t brackets = 0;
  const auto refuse = [&](size_t at, const std::string& what) {
    throw Problem{fmt::format("byte {}{} {}", at,
                              key.empty() ? std::string() : fmt::format(", behind \"{:.40}\",", key), what)};
  };
  for (size_t i = 0; i < json.size();) {
    const size_t bytes = character_bytes(json.substr(i));
    const char character = json[i];
    if (character == '\0') refuse(i, "is NUL; give one JSON object, without a NUL behind it or in it");
    if (bytes == 0)
      refuse(i, fmt::format("is {:#04x}, and no UTF-8; write text in UTF-8", uint8_t(character)));
    if (in_string) {
      if (character == '\\' && i + 1 < json.size() && (json[i + 1] == '"' || json[i + 1] == '\\')) ++i;
      if (character == '"') {
        in_string = false;
        text = json.substr(begin, i - begin);
      }
    } else if (character == '"') {
      in_string = true;
      begin = i + 1;
    } else if (character == ':') {
      key = text;
    } else if (character == '[' || character == '{') {
      if (++brackets > most_brackets) {
        refuse(i, fmt::format("opens a bracket within {} others; write the message flatter", most_brackets));
      }
    } else if ((character == ']' || character == '}') && brackets != 0) {
      --brackets;
    }
    i += bytes;
  }
}

// JSON without escapes by number of what is no ASCII: version 0.9 of the library reads those wrongly.
std::string plain_escapes(std::string_view json) {
  const auto number_at = [&](size_t at) -> int32_t {  // of \uXXXX; -1: there is none
    if (json.size() - at < 6 || json[at] != '\\' || json[at + 1] != 'u') return -1;
    uint32_t number = 0;
    const auto end = std::from_chars(json.data() + at + 2, json.data() + at + 6, number, 16).ptr;
    return end == json.data() + at + 6 ? int32_t(number) : -1;
  };
  std::string text;
  text.reserve(json.size());
  for (size_t i = 0; i < json.size();) {
    if (json[i] != '\\') {
      text += json[i++];
      continue;
    }
    int32_t number = number_at(i);
    if (number < 0x80) {  // or an escape of another kind: two characters at least
      text += json.substr(i, 2);
      i = std::min(i + 2, json.size());
      continue;
    }
    i += 6;
    if (number >= 0xd800 && number < 0xe000) {
      const int32_t low = i < json.size() ? number_at(i) : -1;
      if (number >= 0xdc00 || low < 0xdc00 || low >= 0xe000) {
        throw Problem{fmt::format(
            "\\u{:04x}, before byte {}, is half of a character; write both halves, or UTF-8", number, i)};
      }
      i += 6;
      number = 0x10000 + ((number - 0xd800) << 10) + (low - 0xdc00);
    }
    const auto add = [&text](int32_t byte) { text += char(byte); };
    if (number < 0x800) {
      add(0xc0 | number >> 6);
    } else {
      if (number < 0x10000) {
        add(0xe0 | number >> 12);
      } else {
        add(0xf0 | number >> 18);
        add(0x80 | (number >> 12 & 0x3f));
      }
      add(0x80 | (number >> 6 & 0x3f));
    }
    add(0x80 | (number & 0x3f));
  }
  return text;
}

std::string shown(capnp::JsonValue::Reader value) {
  switch (value.which()) {
    case capnp::JsonValue::NULL_:
      return "null";
    case capnp::JsonValue::BOOLEAN:
      return value.getBoolean() ? "true" : "false";
    case capnp::JsonValue::NUMBER:
      return std::isinf(value.getNumber()) ? "a number beyond all floats"
                                           : fmt::format("{}", value.getNumber());
    case capnp::JsonValue::STRING:
      return fmt::format("\"{:.40}\"", value.getString().cStr());
    case capnp::JsonValue::ARRAY:
      return "an array";
    default:
      return "an object";
  }
}

[[noreturn]] void refuse(const std::string& path, capnp::JsonValue::Reader value,
                         const std::string& expected) {
  throw Problem{
      fmt::format("{} is {}; give {}", path.empty() ? "the message" : path, shown(value), expected)};
}

// A number that the string is, whole.
template <class T>
bool read_number(capnp::Text::Reader text, T& number) {
  const auto result = std::from_chars(text.begin(), text.end(), number);
  return result.ec == std::errc() && result.ptr == text.end() && text.size() != 0;
}

template <class T>
void check_integer(capnp::JsonValue::Reader value, const std::string& path, const char* type) {
  constexpr T lowest = std::numeric_limits<T>::min(), highest = std::numeric_limits<T>::max();
  // 2^53 + 1 is read as 2^53.
  constexpr double first_inexact = double(uint64_t(1) << 53);
  T integer{};
  if (value.isString() && read_number(value.getString(), integer)) return;
  const double number = value.isNumber() ? value.getNumber() : std::numeric_limits<double>::quiet_NaN();
  const bool exact = std::abs(number) < first_inexact;
  if (exact && number == std::floor(number) && number >= double(lowest) && number <= double(highest)) return;
  std::string expected = fmt::format("an integer from {} to {}, for a {}", lowest, highest, type);
  if (value.isNumber() && !exact) expected += ", as a string of digits where it is 2^53 or more";
  refuse(path, value, expected);
}

// `beyond`: the least number that becomes an infinity.
void check_float(capnp::JsonValue::Reader value, const std::string& path, const char* type, double beyond) {
  double number = 0;
  bool good = false;
  if (value.isNumber()) {
    number = value.getNumber();
    good = std::isfinite(number);  // else there are too many digits
  } else if (value.isString()) {
    good = read_number(value.getString(), number);
  }
  if (good && (!std::isfinite(number) || std::abs(number) < beyond)) return;
  refuse(path, value, fmt::format("a number that a {} holds, or \"NaN\", \"Infinity\", \"-Infinity\"", type));
}

void check_struct(capnp::JsonValue::Reader value, capnp::StructSchema type, const std::string& path);

void check(capnp::JsonValue::Reader value, capnp::Type type, const std::string& path) {
  switch (type.which()) {
    case capnp::schema::Type::STRUCT:
      return check_struct(value, type.asStruct(), path);
    case capnp::schema::Type::LIST: {
      if (!value.isArray()) refuse(path, value, "an array, for a list");
      uint32_t i = 0;
      for (const auto element : value.getArray()) {
        check(element, type.asList().getElementType(), fmt::format("{}[{}]", path, i++));
      }
      return;
    }
    case capnp::schema::Type::ENUM: {
      std::string names;
      for (const auto enumerant : type.asEnum().getEnumerants()) {
        const auto name = enumerant.getProto().getName();
        if (value.isString() && value.getString() == name) return;
        (names.empty() ? names : names += ", ") += name.cStr();
      }
      refuse(path, value, "one of " + names);
    }
    case capnp::schema::Type::VOID:
      if (!value.isNull()) refuse(path, value, "null, for a Void");
      return;
    case capnp::schema::Type::BOOL:
      if (!value.isBoolean()) refuse(path, value, "true or false, for a Bool");
      return;
    case capnp::schema::Type::TEXT:
      if (!value.isString()) refuse(path, value, "a string, for a Text");
      return;
    case capnp::schema::Type::DATA:
      if (!value.isArray()) refuse(path, value, "an array of bytes, for Data");
      for (const auto byte : value.getArray()) {
        // The codec takes a string for the byte 0.
        if (byte.isString()) refuse(path, byte, "an integer from 0 to 255, for a byte of Data");
        check_integer<uint8_t>(byte, path, "byte of Data");
      }
      return;
    case capnp::schema::Type::FLOAT32:
      // Half a step above the largest.
      return check_float(value, path, "Float32", 0x1.ffffffp127);
    case capnp::schema::Type::FLOAT64:
      return check_float(value, path, "Float64", std::numeric_limits<double>::infinity());
    case capnp::schema::Type::INT8:
      return check_integer<int8_t>(value, path, "Int8");
    case capnp::schema::Type::INT16:
      return check_integer<int16_t>(value, path, "Int16");
    case capnp::schema::Type::INT32:
      return check_integer<int32_t>(value, path, "Int32");
    case capnp::schema::Type::INT64:
      return check_integer<int64_t>(value, path, "Int64");
    case capnp::schema::Type::UINT8:
      return check_integer<uint8_t>(value, path, "UInt8");
    case capnp::schema::Type::UINT16:
      return check_integer<uint16_t>(value, path, "UInt16");
    case capnp::schema::Type::UINT32:
      return check_integer<uint32_t>(value, path, "UInt32");
    case capnp::schema::Type::UINT64:
      return check_integer<uint64_t>(value, path, "UInt64");
    default:
      refuse(path, value, "no such field: pointers to anything are not read from JSON");
  }
}

void check_struct(capnp::JsonValue::Reader value, capnp::StructSchema type, const std::string& path) {
  const std::string at = path.empty() ? "" : path + ": ", of = compiler::schema_name(type.getProto());
  if (!value.isObject()) refuse(path, value, "an object of fields, for a " + of);
  std::set<std::string_view> names;
  const char* member = nullptr;  // of the union, that was there already
  for (const auto given : value.getObject()) {
    KJ_IF_MAYBE (field, type.findFieldByName(given.getName())) {
      const auto proto = field->getProto();
      const char* const name = proto.getName().cStr();
      if (!names.insert(name).second) {
        throw Problem{
            fmt::format("{}{} stands twice, here as {}; give it once", at, name, shown(given.getValue()))};
      }
      if (proto.getDiscriminantValue() != capnp::schema::Field::NO_DISCRIMINANT) {
        if (member != nullptr) {
          throw Problem{
              fmt::format("{}{} and {} are fields of one union of {}, which holds one of them; give one", at,
                          member, name, of)};
        }
        member = name;
      }
      check(given.getValue(), field->getType(), path.empty() ? name : path + "." + name);
      continue;
    }
    std::string known;
    for (const auto field : type.getFields()) {
      (known.empty() ? known : known += ", ") += field.getProto().getName().cStr();
    }
    throw Problem{fmt::format("{}{} has no field {:.80} (given {}); it has {}", at, of,
                              given.getName().cStr(), shown(given.getValue()),
                              known.empty() ? "none" : known)};
  }
}

}  // namespace

void fill_from_json(capnp::DynamicStruct::Builder root, std::string_view json) {
  const capnp::StructSchema type = root.getSchema();
  const auto bad = [&type](std::string_view what) {
    return BadJson(fmt::format("reading JSON as {}: {}", type.getShortDisplayName().cStr(), what));
  };
  try {
    check_text(json);
    const std::string text = plain_escapes(json);
    capnp::MallocMessageBuilder message;
    const auto value = message.initRoot<capnp::JsonValue>();
    const capnp::JsonCodec codec;
    codec.decodeRaw(kj::arrayPtr(text.data(), text.size()), value);
    check_struct(value, type, {});
    codec.decode(value.asReader(), root);
  } catch (const Problem& problem) {
    throw bad(problem.text);
  } catch (const kj::Exception& error) {
    throw bad(fmt::format("it is no JSON: {}", error.getDescription().cStr()));
  }
}

}  // namespace gyre
