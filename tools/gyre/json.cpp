#include "json.hpp"

#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

namespace gyre::tools {

struct Json::Value {
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json, std::less<>>;
  using Held = std::variant<bool, int64_t, uint64_t, double, std::string, Array, Object>;
  Held held;

  // The value as a T. A null becomes an empty T first.
  template <class T>
  static T& made(Json& json, const char* kind) {
    if (!json.value_) json.value_.reset(new Value{T()});
    return const_cast<T&>(read<T>(json, kind));
  }
  template <class T>
  static const T& read(const Json& json, const char* kind) {
    const T* const found = json.value_ ? std::get_if<T>(&json.value_->held) : nullptr;
    if (found == nullptr) throw Error(fmt::format("reading JSON: {} is no {}", json.text(), kind));
    return *found;
  }

  static nlohmann::json to_library(const Json& json) {
    if (!json.value_) return nullptr;
    return std::visit(
        [](const auto& held) -> nlohmann::json {
          using T = std::decay_t<decltype(held)>;
          if constexpr (std::is_same_v<T, Array>) {
            nlohmann::json array = nlohmann::json::array();
            for (const Json& element : held) array.push_back(to_library(element));
            return array;
          } else if constexpr (std::is_same_v<T, Object>) {
            nlohmann::json object = nlohmann::json::object();
            for (const auto& [key, value] : held) object[key] = to_library(value);
            return object;
          } else {
            return held;
          }
        },
        json.value_->held);
  }
  static Json of_library(const nlohmann::json& json) {
    switch (json.type()) {
      case nlohmann::json::value_t::boolean:
        return json.get<bool>();
      case nlohmann::json::value_t::number_integer:
        return json.get<int64_t>();
      case nlohmann::json::value_t::number_unsigned:
        return json.get<uint64_t>();
      case nlohmann::json::value_t::number_float:
        return json.get<double>();
      case nlohmann::json::value_t::string:
        return json.get<std::string>();
      case nlohmann::json::value_t::array: {
        Json array = Json::array();
        for (const auto& element : json) array.push_back(of_library(element));
        return array;
      }
      case nlohmann::json::value_t::object: {
        Json object;
        object.value_.reset(new Value{Object()});
        for (const auto& [key, value] : json.items()) object[key] = of_library(value);
        return object;
      }
      default:
        return nullptr;
    }
  }
};

Json::Json() = default;
Json::Json(Kind, bool value) : value_(new Value{value}) {}
Json::Json(int64_t value) : value_(new Value{value}) {}
Json::Json(uint64_t value) : value_(new Value{value}) {}
Json::Json(double value) : value_(new Value{value}) {}
Json::Json(std::string_view value) : value_(new Value{std::string(value)}) {}

Json::Json(std::initializer_list<Json> values) {
  bool pairs = true;
  for (const Json& value : values) {
    const auto* const array = value.value_ ? std::get_if<Value::Array>(&value.value_->held) : nullptr;
    pairs = pairs && array != nullptr && array->size() == 2 && array->front().value_ &&
            std::holds_alternative<std::string>(array->front().value_->held);
  }
  if (!pairs) {
    value_.reset(new Value{Value::Array(values)});
    return;
  }
  Value::Object object;
  for (const Json& value : values) object.insert_or_assign(value[0].as_string(), value[1]);
  value_.reset(new Value{std::move(object)});
}

Json::Json(const Json& other) : value_(other.value_ ? new Value(*other.value_) : nullptr) {}
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(Json other) noexcept {
  value_ = std::move(other.value_);
  return *this;
}
Json::~Json() = default;

Json Json::array() {
  Json json;
  json.value_.reset(new Value{Value::Array()});
  return json;
}

Json Json::parse(const std::string& text) {
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  return document.is_discarded() ? Json() : Value::of_library(document);
}

Json& Json::operator[](std::string_view key) {
  auto& object = Value::made<Value::Object>(*this, "object");
  const auto found = object.find(key);
  return found != object.end() ? found->second : object[std::string(key)];
}

const Json& Json::operator[](std::string_view key) const {
  const auto& object = Value::read<Value::Object>(*this, "object");
  const auto found = object.find(key);
  if (found == object.end()) throw Error(fmt::format("reading JSON: {} has no key {}", text(), key));
  return found->second;
}

Json& Json::element(size_t index) {
  auto& array = Value::made<Value::Array>(*this, "array");
  if (index >= array.size()) throw Error(fmt::format("reading JSON: {} has no element {}", text(), index));
  return array[index];
}

bool Json::has(std::string_view key) const {
  const auto* const object = value_ ? std::get_if<Value::Object>(&value_->held) : nullptr;
  return object != nullptr && object->find(key) != object->end();
}

void Json::push_back(Json value) { Value::made<Value::Array>(*this, "array").push_back(std::move(value)); }

Json& Json::back() { return element(elements().size() - 1); }

void Json::update(const Json& object) {
  for (const auto& [key, value] : Value::read<Value::Object>(object, "object")) (*this)[key] = value;
}

const std::vector<Json>& Json::elements() const { return Value::read<Value::Array>(*this, "array"); }

bool Json::empty() const {
  if (!value_) return true;
  if (const auto* const array = std::get_if<Value::Array>(&value_->held)) return array->empty();
  if (const auto* const object = std::get_if<Value::Object>(&value_->held)) return object->empty();
  return false;
}

uint64_t Json::as_uint64() const {
  if (const auto* const number = value_ ? std::get_if<int64_t>(&value_->held) : nullptr;
      number && *number >= 0)
    return uint64_t(*number);
  return Value::read<uint64_t>(*this, "whole number");
}

double Json::as_double() const {
  if (const auto* const number = value_ ? std::get_if<int64_t>(&value_->held) : nullptr)
    return double(*number);
  if (const auto* const number = value_ ? std::get_if<uint64_t>(&value_->held) : nullptr)
    return double(*number);
  return Value::read<double>(*this, "number");
}

const std::string& Json::as_string() const { return Value::read<std::string>(*this, "text"); }

std::string Json::text(int indent) const { return Value::to_library(*this).dump(indent); }

bool operator==(const Json& a, const Json& b) {
  return Json::Value::to_library(a) == Json::Value::to_library(b);
}

}  // namespace gyre::tools
