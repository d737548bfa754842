// Messages of any schema with random content, made through the official library's reflection.
#pragma once

#include <capnp/dynamic.h>
#include <capnp/message.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>

namespace gyre::tools {

using Random = std::mt19937_64;

/// What values may be.
struct RandomValues {
  /// Floats uniform in [-1, 1) instead of any bits, integers 0 to 99, enumerants that there are, every field
  /// set, and all lists of one message of one length.
  bool ordinary = false;
  uint32_t longest_list = 30;  ///< where ordinary
};

/// Fills structs at random: each field is set or left alone, each union holds any of its members.
class RandomMessage {
 public:
  /// Lists, texts and structs are made until about `words` words are used; all have something to say of
  /// themselves in few words, so that messages are small and many.
  RandomMessage(Random& random, int64_t words, const RandomValues& values = {})
      : random_(random), words_(words), ordinary_(values.ordinary) {
    if (ordinary_) length_ = uint32_t(random_() % (uint64_t(values.longest_list) + 1));
  }

  void fill(capnp::DynamicStruct::Builder out, int depth = 0) {
    for (const auto field : out.getSchema().getNonUnionFields()) {
      if (ordinary_ || random_() % 4 != 0) set(out, field, depth);
    }
    const auto members = out.getSchema().getUnionFields();
    if (members.size() != 0) set(out, members[uint32_t(random_() % members.size())], depth);
  }

 private:
  static constexpr int max_depth = 5;

  void set(capnp::DynamicStruct::Builder out, capnp::StructSchema::Field field, int depth) {
    const capnp::Type type = field.getType();
    if (field.getProto().isGroup()) {
      fill(out.init(field).as<capnp::DynamicStruct>(), depth);
    } else if (type.isList()) {
      fill(out.init(field, size(depth)).as<capnp::DynamicList>(), depth + 1);
    } else if (type.isStruct()) {
      if (depth < max_depth && take(1 + struct_words(type.asStruct())))
        fill(out.init(field).as<capnp::DynamicStruct>(), depth + 1);
      else if (field.getProto().getDiscriminantValue() != capnp::schema::Field::NO_DISCRIMINANT)
        out.init(field);
    } else {
      std::string bytes;
      out.set(field, scalar(type, bytes));
    }
  }

  void fill(capnp::DynamicList::Builder out, int depth) {
    const capnp::Type type = out.getSchema().getElementType();
    for (uint32_t i = 0; i < out.size(); ++i) {
      if (type.isStruct()) {
        if (take(struct_words(type.asStruct())) && depth < max_depth)
          fill(out[i].as<capnp::DynamicStruct>(), depth + 1);
      } else if (type.isList()) {
        fill(out.init(i, size(depth)).as<capnp::DynamicList>(), depth + 1);
      } else {
        std::string bytes;
        out.set(i, scalar(type, bytes));
      }
    }
  }

  /// A value of a type that is no list and no struct; `bytes` keeps what a Text or Data refers to.
  capnp::DynamicValue::Reader scalar(capnp::Type type, std::string& bytes) {
    const uint64_t bits = ordinary_ && !type.isFloat32() && !type.isFloat64() ? random_() % 100 : random_();
    switch (type.which()) {
      case capnp::schema::Type::VOID:
        return capnp::VOID;
      case capnp::schema::Type::BOOL:
        return (bits & 1) != 0;
      case capnp::schema::Type::INT8:
        return int8_t(bits);
      case capnp::schema::Type::INT16:
        return int16_t(bits);
      case capnp::schema::Type::INT32:
        return int32_t(bits);
      case capnp::schema::Type::INT64:
        return int64_t(bits);
      case capnp::schema::Type::UINT8:
        return uint8_t(bits);
      case capnp::schema::Type::UINT16:
        return uint16_t(bits);
      case capnp::schema::Type::UINT32:
        return uint32_t(bits);
      case capnp::schema::Type::UINT64:
        return bits;
      case capnp::schema::Type::FLOAT32: {
        if (ordinary_) return float(int64_t(bits >> 40) - (1 << 23)) / float(1 << 23);
        float value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
      }
      case capnp::schema::Type::FLOAT64: {
        if (ordinary_) return double(int64_t(bits >> 11) - (int64_t(1) << 52)) / double(int64_t(1) << 52);
        double value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
      }
      case capnp::schema::Type::ENUM:  // now and then one that no schema knows
        if (ordinary_) {
          return capnp::DynamicEnum(type.asEnum(), uint16_t(bits % type.asEnum().getEnumerants().size()));
        }
        return capnp::DynamicEnum(type.asEnum(), uint16_t(bits % 64 == 0 ? bits >> 8 : (bits >> 8) % 4));
      default:
        bytes.resize(take(2) ? bits % 20 : 0);
        for (char& byte : bytes) byte = char(random_());
        if (type.isText()) return capnp::Text::Reader(bytes.c_str(), bytes.size());
        return capnp::Data::Reader(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    }
  }

  uint32_t size(int depth) {
    if (ordinary_) return depth < max_depth && take(1 + int64_t(length_)) ? length_ : 0;
    const uint64_t bits = random_();
    const uint32_t most = bits % 16 == 0 ? 30 : 5;
    const auto size = uint32_t((bits >> 8) % most);
    return depth < max_depth && take(1 + size) ? size : 0;
  }
  static int64_t struct_words(capnp::StructSchema schema) {
    const auto node = schema.getProto().getStruct();
    return node.getDataWordCount() + node.getPointerCount();
  }
  bool take(int64_t words) {
    if (words_ < words) return false;
    words_ -= words;
    return true;
  }

  Random& random_;
  int64_t words_;
  bool ordinary_;
  uint32_t length_ = 0;
};

}  // namespace gyre::tools
