// The exceptions of set-up. Each says what was being done, what is wrong with the actual numbers, and what to
// do.
#pragma once

#include <gyre/messages/status.hpp>

#include <atomic>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gyre {

/// Thrown by set-up (Runtime::launch and what it calls), and by Result::value() of a result without a value.
class Error : public std::runtime_error {
 public:
  /// `message` is what what() says.
  explicit Error(const std::string& message, Status status = Status::ok)
      : std::runtime_error(message), status_(status) {}
  /// The failed message's status, where the error comes from one; else Status::ok.
  Status status() const { return status_; }

 private:
  Status status_;
};

/// Thrown where the engine asked for does not exist on this machine; the message says why and what to
/// install.
class EngineUnavailable : public Error {
  using Error::Error;
};

/// Thrown where the options themselves are wrong, on any machine; the message lists all that is wrong.
class BadOptions : public Error {
  using Error::Error;
};

namespace detail {
/// Receives a line about an error that cannot be thrown, as in a destructor. Never throws.
using ErrorLog = void (*)(std::string_view line) noexcept;
/// Where such lines go: the runtime's log, once that is linked; null: nowhere.
inline std::atomic<ErrorLog> error_log{nullptr};
}  // namespace detail

}  // namespace gyre
