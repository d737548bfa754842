#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <gyre/runtime/log.hpp>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>

namespace gyre {

namespace {

constexpr LogLevel levels[] = {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error,
                               LogLevel::off};

LogLevel level_at_first() noexcept {
  const char* const asked = std::getenv("GYRE_LOG");
  for (const LogLevel level : levels) {
    if (asked != nullptr && name(level) == asked) return level;
  }
  return LogLevel::warning;
}

std::atomic<LogLevel>& current_level() noexcept {
  static std::atomic<LogLevel> level{level_at_first()};
  return level;
}

// Lines of information are bare, as programs print them.
class ToStandardError {
 public:
  ToStandardError() : logger_("gyre", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_pattern("gyre: %v");
    logger_.set_level(spdlog::level::trace);
  }
  void operator()(LogLevel level, std::string_view line) {
    switch (level) {
      case LogLevel::debug:
        return logger_.debug("debug: {}", line);
      case LogLevel::info:
        return logger_.info("{}", line);
      case LogLevel::warning:
        return logger_.warn("warning: {}", line);
      default:
        return logger_.error("error: {}", line);
    }
  }

 private:
  spdlog::logger logger_;
};

// Never destroyed: what ends the process may still log.
struct Sink {
  std::mutex mutex;
  std::shared_ptr<const Logger> logger;  // null: standard error
};
Sink& sink() {
  static Sink* const sink = new Sink;
  return *sink;
}
ToStandardError& standard_error() {
  static ToStandardError* const logger = new ToStandardError;
  return *logger;
}

}  // namespace

std::string_view name(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
    case LogLevel::off:
      return "off";
  }
  return "?";
}

void set_logger(Logger logger) {
  auto shared = logger ? std::make_shared<const Logger>(std::move(logger)) : nullptr;
  const std::lock_guard lock(sink().mutex);
  sink().logger.swap(shared);
}

void set_log_level(LogLevel level) noexcept { current_level().store(level, std::memory_order_relaxed); }

namespace {
// Errors of the parts below the runtime come here too, from the program's start on.
const bool errors_are_logged = [] {
  detail::error_log = [](std::string_view line) noexcept {
    if (LogLevel::warning >= log_level()) detail::log_line(LogLevel::warning, line);
  };
  return true;
}();
}  // namespace

LogLevel log_level() noexcept { return current_level().load(std::memory_order_relaxed); }

void detail::log_line(LogLevel level, std::string_view line) noexcept try {
  std::shared_ptr<const Logger> logger;
  {
    const std::lock_guard lock(sink().mutex);
    logger = sink().logger;
  }
  if (logger) {
    (*logger)(level, line);
  } else {
    standard_error()(level, line);
  }
} catch (...) {  // a log is a courtesy
}

}  // namespace gyre
