// The exceptions of set-up. Each text says what was being done, what is wrong with the actual numbers, and
// what to do.
#pragma once

#include <gyre/messages/status.hpp>

#include <atomic>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gyre {

/// Reports a failed set-up (Runtime::launch and what it calls), or Result::value() of a Result without a
/// value.
class Error : public std::runtime_error {
 public:
  /// Makes an error whose what() is `message`.
  explicit Error(const std::string& message, Status status = Status::ok)
      : std::runtime_error(message), status_(status) {}
  /// Returns the status of the failed message or operation; Status::ok if the error has none.
  Status status() const { return status_; }

 private:
  Status status_;
};

/// Reports that this machine lacks the requested engine. The text says why, and what to install.
class EngineUnavailable : public Error {
  using Error::Error;
};

/// Reports options that are wrong on any machine. The text lists everything that is wrong.
class BadOptions : public Error {
  using Error::Error;
};

namespace detail {
/// Receives a line about an error that cannot be thrown, as in a destructor. Never throws.
using ErrorLog = void (*)(std::string_view line) noexcept;
/// Receives these lines: the runtime's log sets it if the program links the runtime; null drops them.
inline std::atomic<ErrorLog> error_log{nullptr};
}  // namespace detail

}  // namespace gyre
