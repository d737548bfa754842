// Gyre's log: what goes wrong, and on request what Gyre does at set-up and at the end. Nothing on the
// message path is logged.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace gyre {

/// Orders log lines by importance; `off` logs nothing.
enum class LogLevel { debug, info, warning, error, off };
/// Returns the level's name, for example "warning".
std::string_view name(LogLevel level);

/// Receives one line per call, without an end of line. Several threads may call it at once. It must not
/// use the runtime that logs. What it throws is dropped.
using Logger = std::function<void(LogLevel, std::string_view)>;

/// Sends log lines to `logger` from now on. Destroys the previous logger once no thread uses it.
/// Thread-safe. Neither this function nor logging takes a lock, so a child of fork() can always log.
/// @param logger  empty: lines go to standard error, one write() per line; this is the default
void set_logger(Logger logger);

/// Suppresses lines below `level` from now on, except those that Options::verbose asks for. The default is
/// the level in $GYRE_LOG (debug, info, warning, error or off), else warning. Thread-safe.
void set_log_level(LogLevel level) noexcept;
/// Returns the current level. Thread-safe.
LogLevel log_level() noexcept;

namespace detail {

/// Logs the line at every level setting. Never throws.
void log_line(LogLevel level, std::string_view line) noexcept;

/// Logs the string that `text()` returns. Does not call `text` if the level is suppressed. Never throws.
/// @param asked  log the line at every level setting
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
