// Replies of two engines, field by field.
#pragma once

#include <capnp/dynamic.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace gyre::tools {

/// Says which numbers count as the same: |tested - reference| <= absolute + relative * |reference|.
/// Tolerances of 0 require equal numbers.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

/// Returns the distance in floating point numbers: 0 for equal numbers (also -0 and 0), 1 for a number and
/// the next one. Infinity is next to the largest number. Neither may be a NaN.
uint64_t ulp_distance(float a, float b);
uint64_t ulp_distance(double a, double b);

/// One value in which the engines differ.
struct Difference {
  uint64_t message = 0;   ///< its number, from 0
  std::string path;       ///< of the field: "result[3]"
  std::string tested;     ///< its value on the tested engine
  std::string reference;  ///< its value on the reference engine
};

/// The largest of a kind, and where.
struct Largest {
  double value = 0;
  Difference where;
};

/// Compares reply after reply. Texts, integers, enumerants, lengths and members of unions must be equal;
/// floating point numbers within the tolerance, any NaN is equal to any NaN. A field that one side lacks has
/// its default value. One thread.
class Comparison {
 public:
  /// `ignored`: names of fields that are not compared, wherever they are (times, for instance).
  explicit Comparison(const Tolerance& tolerance, std::set<std::string> ignored = {})
      : tolerance_(tolerance), ignored_(std::move(ignored)) {}

  /// Compares two replies to message number `message`; returns true if they are the same. Throws
  /// kj::Exception if a reply is no message of its schema.
  bool add(uint64_t message, capnp::DynamicStruct::Reader tested, capnp::DynamicStruct::Reader reference);
  /// Adds a difference that is not a field, for example the outcomes of the message.
  void add_difference(uint64_t message, const std::string& what, const std::string& tested,
                      const std::string& reference);

  uint64_t differences() const { return differences_; }  ///< values beyond the tolerance
  uint64_t floats() const { return floats_; }            ///< floating point numbers compared
  uint64_t inexact() const { return inexact_; }          ///< of them, those that are not equal
  const std::optional<Difference>& first() const { return first_; }
  /// Over all floating point numbers that are not equal, within the tolerance too; empty if there are none
  /// of both of which are numbers.
  const std::optional<Largest>& absolute() const { return absolute_; }
  const std::optional<Largest>& relative() const { return relative_; }
  const std::optional<Largest>& ulps() const { return ulps_; }

 private:
  void structs(const std::string& path, capnp::DynamicStruct::Reader tested,
               capnp::DynamicStruct::Reader reference);
  void lists(const std::string& path, capnp::DynamicList::Reader tested,
             capnp::DynamicList::Reader reference);
  void values(const std::string& path, capnp::Type type, const capnp::DynamicValue::Reader& tested,
              const capnp::DynamicValue::Reader& reference);
  template <class Float>
  void floats(const std::string& path, Float tested, Float reference);

  Tolerance tolerance_;
  std::set<std::string> ignored_;
  uint64_t message_ = 0, differences_ = 0, floats_ = 0, inexact_ = 0;
  std::optional<Difference> first_;
  std::optional<Largest> absolute_, relative_, ulps_;
};

}  // namespace gyre::tools
