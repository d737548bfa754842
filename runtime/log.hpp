// Gyre's log: what goes wrong, and on request what it does, at set-up and at the end. Nothing on the message
// path is logged.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace gyre {

enum class LogLevel { debug, info, warning, error, off };
std::string_view name(LogLevel level);

/// Gets a line at a time, without an end of line. From any thread, several at once; it must not use the
/// runtime that logs. What it throws is dropped.
using Logger = std::function<void(LogLevel, std::string_view)>;

/// From now on lines go to `logger`; empty: to standard error, as at first, one write() a line. The logger
/// before it is destroyed when no thread logs any more. Any thread. Neither this nor logging takes a lock: a
/// child of fork() can log, whatever its parent's threads were at.
void set_logger(Logger logger);

/// From now on lines below `level` are not made, but for those that Options::verbose asks for. At first the
/// level is what $GYRE_LOG says: debug, info, warning, error or off; warning where it says nothing. Any
/// thread.
void set_log_level(LogLevel level) noexcept;
LogLevel log_level() noexcept;

namespace detail {

/// Logs the line, whatever the level. Never throws.
void log_line(LogLevel level, std::string_view line) noexcept;

/// Logs what `text()` returns, a string, which is not called for a level that is not logged; `asked`: log it
/// whatever the level. Never throws.
template <class Text>
void log(LogLevel level, Text&& text, bool asked = false) noexcept {
  if (!asked && level < log_level()) return;
  try {
    log_line(level, text());
  } catch (...) {  // no memory for the text
    log_line(level, "something happened that there was no memory to describe");
  }
}

}  // namespace detail
}  // namespace gyre
