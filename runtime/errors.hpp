// Errors: an exception at set-up, a Result on the message path. Both say what was being done, what is
// wrong with the actual numbers, and what to do.
#pragma once

#include <gyre/bridge/errors/error.hpp>

#include <boost/outcome/basic_result.hpp>
#include <boost/outcome/policy/base.hpp>
#include <string>
#include <string_view>

namespace gyre {

/// Says why a message or an operation failed. Copyable; allocates only in message().
struct Failure {
  // Not an aggregate: g++ zeroes those by an instruction that takes longer than all else of a small reply.
  constexpr Failure() noexcept {}
  /// Sets the members in their order.
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

  /// Value of `detail` for a too_large message whose packed bytes would unpack to more than the limit.
  static constexpr uint32_t unpacks_to_too_much = 1;

  Status status = Status::ok;
  uint32_t detail = 0;  ///< see ErrorBody::detail
  uint64_t asked = 0;  ///< the number that was too large, in bytes, slots or microseconds depending on status
  uint64_t limit = 0;  ///< the limit, in the unit of `asked`
  /// Name of the malformed struct in its schema; null if unknown. Static memory.
  const char* struct_name = nullptr;
  const char* field_name = nullptr;  ///< name of the malformed field; null if unknown or the root pointer
  uint8_t malformed_reason = 0;      ///< a wire::Malformed
  /// Source file of a failed GYRE_CHECK, whose line is `detail`; null if unknown. Static memory.
  const char* file = nullptr;
  /// Name of an actor type; null if unknown. Static memory. For a message in flight when the engine
  /// failed: the type that its worker handled last, with the message type in struct_name. For
  /// actor_table_full: the type whose max_per_worker is the limit.
  const char* actor_name = nullptr;

  /// Returns one line of text: what failed, the numbers, what to do.
  std::string message() const;
};

/// Returns the status's name as written in the source, for example "ring_full".
std::string_view name(Status status);

/// Copies `text` into memory that is never freed, once per distinct text; for the few names that a Failure
/// may hold. Returns null if there is no memory; the name is unknown then.
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

/// Holds a value or a Failure (Boost.Outcome): `if (result) use(result.value()); else
/// log(result.error().message());`. value() throws gyre::Error if there is no value.
template <class T>
using Result = BOOST_OUTCOME_V2_NAMESPACE::basic_result<T, Failure, detail::ThrowGyreError>;

/// Makes a successful Result<void>.
inline auto success() { return BOOST_OUTCOME_V2_NAMESPACE::success(); }

}  // namespace gyre
