// Errors: an exception at set-up, a result on the message path. Both say what was being done, what is wrong
// with the actual numbers, and what to do.
#pragma once

#include <gyre/bridge/errors/error.hpp>

#include <boost/outcome/basic_result.hpp>
#include <boost/outcome/policy/base.hpp>
#include <string>
#include <string_view>

namespace gyre {

/// Why a message or an operation failed. A small value: no allocation until its text is asked for.
struct Failure {
  // Not an aggregate: g++ zeroes those by an instruction that takes longer than all else of a small reply.
  constexpr Failure() noexcept {}
  /// The members in their order.
  constexpr explicit Failure(Status status, uint32_t detail = 0, uint64_t asked = 0, uint64_t limit = 0,
                             const char* struct_name = nullptr, const char* field_name = nullptr,
                             uint8_t malformed_reason = 0, const char* file = nullptr,
                             const char* actor_name = nullptr) noexcept
      : status(status),
        detail(detail),
        asked(asked),
        limit(limit),
        struct_name(struct_name),
        field_name(field_name),
        malformed_reason(malformed_reason),
        file(file),
        actor_name(actor_name) {}

  /// The detail of a too_large where packed bytes claim to unpack to more than so few may.
  static constexpr uint32_t unpacks_to_too_much = 1;

  Status status = Status::ok;
  uint32_t detail = 0;  ///< see ErrorBody::detail
  uint64_t asked = 0;   ///< the number that was too much: bytes, slots, microseconds; by status
  uint64_t limit = 0;   ///< what it was held against, in the same unit
  /// Of a malformed message: the struct and the field in question, as their schema names them; null where
  /// they are not known (a null field: the root pointer). Static memory.
  const char* struct_name = nullptr;
  const char* field_name = nullptr;
  uint8_t malformed_reason = 0;  ///< a wire::Malformed
  /// Of a GYRE_CHECK that failed: the source file; `detail` is its line. Null where it is not known. Static
  /// memory.
  const char* file = nullptr;
  /// Of a message that was in flight when the engine failed: the actor type that its worker was last busy
  /// with; the message type is in struct_name. Of an actor_table_full: the actor type, where its own
  /// max_per_worker is the limit. Null where it is not known. Static memory.
  const char* actor_name = nullptr;

  /// One line: what failed, the numbers, what to do.
  std::string message() const;
};

/// The status's name as written in the source: "ring_full".
std::string_view name(Status status);

/// The same text in memory that is never freed, one copy of each: for the few names a Failure may hold.
/// Null where there is no memory for it: such a name is not known.
const char* static_text(std::string_view text) noexcept;

namespace detail {
struct ThrowGyreError : BOOST_OUTCOME_V2_NAMESPACE::policy::base {
  template <class Impl>
  static void wide_value_check(Impl&& self) {
    if (!base::_has_value(self)) throw Error(base::_error(self).message(), base::_error(self).status);
  }
  template <class Impl>
  static void wide_error_check(Impl&& self) {
    if (!base::_has_error(self)) throw Error("asked a result that has a value for its error");
  }
};
}  // namespace detail

/// A value or a Failure (Boost.Outcome). `if (result) use(result.value()); else
/// log(result.error().message());` value() throws gyre::Error where there is none.
template <class T>
using Result = BOOST_OUTCOME_V2_NAMESPACE::basic_result<T, Failure, detail::ThrowGyreError>;

inline auto success() { return BOOST_OUTCOME_V2_NAMESPACE::success(); }

}  // namespace gyre
