#include "comparison.hpp"

#include <fmt/format.h>
#include <kj/string.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace gyre::tools {

namespace {

// The bits as an integer that grows with the number; -0 and 0 are 0.
template <class Signed, class Float>
Signed ordered(Float value) {
  const auto bits = std::bit_cast<Signed>(value);
  return bits >= 0 ? bits : Signed(std::numeric_limits<Signed>::min() - bits);
}

std::string text_of(const capnp::DynamicValue::Reader& value) { return kj::str(value).cStr(); }

// Prints enough digits to distinguish the value from the next ones.
template <class Float>
std::string text_of_float(Float value) {
  return fmt::format("{:.{}g}", value, std::numeric_limits<Float>::max_digits10);
}

}  // namespace

uint64_t ulp_distance(float a, float b) {
  return uint64_t(std::abs(int64_t(ordered<int32_t>(a)) - int64_t(ordered<int32_t>(b))));
}

uint64_t ulp_distance(double a, double b) {
  const int64_t x = ordered<int64_t>(a), y = ordered<int64_t>(b);
  return x > y ? uint64_t(x) - uint64_t(y) : uint64_t(y) - uint64_t(x);
}

bool Comparison::add(uint64_t message, capnp::DynamicStruct::Reader tested,
                     capnp::DynamicStruct::Reader reference) {
  message_ = message;
  const uint64_t before = differences_;
  structs({}, tested, reference);
  return differences_ == before;
}

void Comparison::add_difference(uint64_t message, const std::string& what, const std::string& tested,
                                const std::string& reference) {
  ++differences_;
  if (!first_) first_ = Difference{message, what, tested, reference};
}

void Comparison::structs(const std::string& path, capnp::DynamicStruct::Reader tested,
                         capnp::DynamicStruct::Reader reference) {
  const auto member = [&](capnp::StructSchema::Field field) {
    const std::string name = field.getProto().getName().cStr();
    if (ignored_.count(name) != 0) return;
    const capnp::Type type = field.getType();
    // Absent on both sides: nothing to look at, and of a recursive type no end.
    const bool pointer = type.isStruct() || type.isList() || type.isText() || type.isData();
    if (pointer && !field.getProto().isGroup() && !tested.has(field) && !reference.has(field)) return;
    values(path.empty() ? name : path + "." + name, type, tested.get(field), reference.get(field));
  };
  for (const auto field : tested.getSchema().getNonUnionFields()) member(field);
  if (tested.getSchema().getUnionFields().size() == 0) return;
  // A member that this schema does not know has no field.
  const auto name = [](const kj::Maybe<capnp::StructSchema::Field>& which) -> std::string {
    KJ_IF_MAYBE (field, which) return field->getProto().getName().cStr();
    return "(unknown)";
  };
  const auto which = tested.which(), other = reference.which();
  if (name(which) != name(other)) {
    add_difference(message_, path.empty() ? "(union)" : path + ".(union)", name(which), name(other));
    return;
  }
  KJ_IF_MAYBE (field, which) member(*field);
}

void Comparison::lists(const std::string& path, capnp::DynamicList::Reader tested,
                       capnp::DynamicList::Reader reference) {
  if (tested.size() != reference.size()) {
    add_difference(message_, path + ".size", std::to_string(tested.size()), std::to_string(reference.size()));
  }
  const capnp::Type type = tested.getSchema().getElementType();
  for (uint32_t i = 0; i < std::min(tested.size(), reference.size()); ++i) {
    values(fmt::format("{}[{}]", path, i), type, tested[i], reference[i]);
  }
}

void Comparison::values(const std::string& path, capnp::Type type, const capnp::DynamicValue::Reader& tested,
                        const capnp::DynamicValue::Reader& reference) {
  const auto differ = [&] { add_difference(message_, path, text_of(tested), text_of(reference)); };
  switch (type.which()) {
    case capnp::schema::Type::VOID:
      return;
    case capnp::schema::Type::FLOAT32:
      return floats(path, tested.as<float>(), reference.as<float>());
    case capnp::schema::Type::FLOAT64:
      return floats(path, tested.as<double>(), reference.as<double>());
    case capnp::schema::Type::STRUCT:
      return structs(path, tested.as<capnp::DynamicStruct>(), reference.as<capnp::DynamicStruct>());
    case capnp::schema::Type::LIST:
      return lists(path, tested.as<capnp::DynamicList>(), reference.as<capnp::DynamicList>());
    case capnp::schema::Type::BOOL:
      if (tested.as<bool>() != reference.as<bool>()) differ();
      return;
    case capnp::schema::Type::ENUM:
      if (tested.as<capnp::DynamicEnum>().getRaw() != reference.as<capnp::DynamicEnum>().getRaw()) differ();
      return;
    case capnp::schema::Type::TEXT:
      if (tested.as<capnp::Text>() != reference.as<capnp::Text>()) differ();
      return;
    case capnp::schema::Type::DATA:
      if (tested.as<capnp::Data>() != reference.as<capnp::Data>()) differ();
      return;
    case capnp::schema::Type::UINT8:
    case capnp::schema::Type::UINT16:
    case capnp::schema::Type::UINT32:
    case capnp::schema::Type::UINT64:
      if (tested.as<uint64_t>() != reference.as<uint64_t>()) differ();
      return;
    case capnp::schema::Type::INT8:
    case capnp::schema::Type::INT16:
    case capnp::schema::Type::INT32:
    case capnp::schema::Type::INT64:
      if (tested.as<int64_t>() != reference.as<int64_t>()) differ();
      return;
    default:  // AnyPointer, interfaces: actors' messages have none
      return;
  }
}

template <class Float>
void Comparison::floats(const std::string& path, Float tested, Float reference) {
  ++floats_;
  if (tested == reference || (std::isnan(tested) && std::isnan(reference))) return;
  ++inexact_;
  const Difference here{message_, path, text_of_float(tested), text_of_float(reference)};
  const double difference = std::abs(double(tested) - double(reference));
  const bool numbers = !std::isnan(tested) && !std::isnan(reference);
  if (numbers) {
    const auto keep = [&here](std::optional<Largest>& largest, double value) {
      if (std::isnan(value)) return;  // of an infinity, relative to one
      if (!largest || value > largest->value) largest = Largest{value, here};
    };
    keep(absolute_, difference);
    keep(relative_, difference / std::abs(double(reference)));
    keep(ulps_, double(ulp_distance(tested, reference)));
  }
  // Between an infinity and anything else no tolerance helps; and a tolerance that is NaN allows nothing.
  const bool finite = std::isfinite(tested) && std::isfinite(reference);
  const double allowed = tolerance_.absolute + tolerance_.relative * std::abs(double(reference));
  if (!finite || !(difference <= allowed)) {
    add_difference(message_, path, here.tested, here.reference);
  }
}

}  // namespace gyre::tools
