// JSON documents of the programs. nlohmann's library is behind it, seen by one source alone: whatever
// includes its header compiles for seconds.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gyre::tools {

/// One value: null, a truth value, a number, a text, an array, or an object, whose keys are sorted. A value
/// type; a moved-from one is null. What is asked of a value of another kind throws Error.
class Json {
 public:
  Json();
  Json(std::nullptr_t) : Json() {}
  Json(std::same_as<bool> auto value) : Json(Kind::truth, value) {}
  Json(std::signed_integral auto value) : Json(int64_t(value)) {}
  Json(std::unsigned_integral auto value) requires(!std::same_as<decltype(value), bool>)
      : Json(uint64_t(value)) {}
  Json(int64_t value);
  Json(uint64_t value);
  Json(double value);
  Json(std::string_view value);
  Json(const std::string& value) : Json(std::string_view(value)) {}
  Json(const char* value) : Json(std::string_view(value)) {}
  template <class T>
  Json(const std::vector<T>& values) : Json(array()) {
    for (const T& value : values) push_back(Json(value));
  }
  template <class T, size_t size>
  Json(const std::array<T, size>& values) : Json(array()) {
    for (const T& value : values) push_back(Json(value));
  }
  /// {{"key", value}, …} is an object; what is not all pairs that begin with a text is an array.
  Json(std::initializer_list<Json> values);
  static Json array();
  /// Null where `text` is no JSON.
  static Json parse(const std::string& text);

  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(Json other) noexcept;
  ~Json();

  /// The value of a key, null where it is new. Makes an object of null. References hold until the next key.
  Json& operator[](std::string_view key);
  /// Throws Error where there is no such key.
  const Json& operator[](std::string_view key) const;
  Json& operator[](const char* key) { return (*this)[std::string_view(key)]; }
  const Json& operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  /// An array's element. Throws Error past its end.
  Json& operator[](std::integral auto index) { return element(size_t(index)); }
  const Json& operator[](std::integral auto index) const {
    return const_cast<Json&>(*this).element(size_t(index));
  }
  bool has(std::string_view key) const;  ///< false of what is no object

  void push_back(Json value);       ///< makes an array of null
  Json& back();                     ///< the last element
  void update(const Json& object);  ///< takes over its keys and values
  const std::vector<Json>& elements() const;
  bool empty() const;  ///< true of null, and of arrays and objects without anything

  uint64_t as_uint64() const;
  double as_double() const;
  const std::string& as_string() const;

  /// The document: in one line, or with so many blanks a level.
  std::string text(int indent = -1) const;
  /// Numbers are equal by value: 2 is 2.0.
  friend bool operator==(const Json& a, const Json& b);

 private:
  struct Value;
  enum class Kind { truth };
  Json(Kind, bool value);
  Json& element(size_t index);
  std::unique_ptr<Value> value_;  // none: null
};

}  // namespace gyre::tools
