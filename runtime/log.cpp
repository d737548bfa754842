#include <sys/uio.h>
#include <unistd.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/system/cancellation.hpp>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace gyre {

// Nothing here is locked: a child of fork() would wait for ever for a lock that another thread of its parent
// held. Nothing here is destroyed: what ends the process may still log.
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

constexpr int not_set = -1;
constinit std::atomic<int> current_level{not_set};

// Lines of information are bare, as programs print them.
std::string_view prefix_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "gyre: debug: ";
    case LogLevel::info:
      return "gyre: ";
    case LogLevel::warning:
      return "gyre: warning: ";
    default:
      return "gyre: error: ";
  }
}

// One system call a line, so that lines of several threads and processes do not mix. A second one writes what
// the first did not, which a file that takes part of a line may need.
void write_to_standard_error(LogLevel level, std::string_view line) noexcept {
  const auto part_of = [](std::string_view text) {
    return iovec{const_cast<char*>(text.data()), text.size()};
  };
  iovec parts[] = {part_of(prefix_of(level)), part_of(line), part_of("\n")};
  for (iovec* part = parts; part != std::end(parts);) {
    const ssize_t written = writev(STDERR_FILENO, part, int(std::end(parts) - part));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    size_t rest = size_t(written);
    for (; part != std::end(parts) && rest >= part->iov_len; ++part) rest -= part->iov_len;
    if (part == std::end(parts)) return;
    part->iov_base = static_cast<char*>(part->iov_base) + rest;
    part->iov_len -= rest;
  }
}

// The embedder's logger. A replaced logger is destroyed when no thread logs. A thread increments `logging`
// before it reads `current`; set_logger() exchanges `current` before it reads `logging`. All are seq_cst:
// either the thread reads the new logger, or destroy_replaced() sees the thread counted. The same pairing
// holds between the decrement of `logging` with the following load of `replaced`, and keep_replaced() with
// the following load of `logging`: one of the two threads destroys the logger.
struct Sink {
  const Logger logger;
  Sink* next_replaced = nullptr;
};
constinit std::atomic<Sink*> current{nullptr};  // null: standard error
constinit std::atomic<uint32_t> logging{0};     // threads that may use a Sink
constinit std::atomic<Sink*> replaced{nullptr};

void keep_replaced(Sink* first, Sink* last) noexcept {
  last->next_replaced = replaced.load(std::memory_order_relaxed);  // a guess, which the exchange checks
  while (!replaced.compare_exchange_weak(last->next_replaced, first, std::memory_order_seq_cst)) {
  }
}

void destroy_replaced() noexcept {
  while (logging.load(std::memory_order_seq_cst) == 0) {
    Sink* first = replaced.exchange(nullptr, std::memory_order_seq_cst);
    if (first == nullptr) return;
    if (logging.load(std::memory_order_seq_cst) == 0) {
      while (first != nullptr) delete std::exchange(first, first->next_replaced);
    } else {
      Sink* last = first;
      while (last->next_replaced != nullptr) last = last->next_replaced;
      keep_replaced(first, last);  // for the thread that logs last
    }
  }
}

class Logging {
 public:
  Logging() { logging.fetch_add(1, std::memory_order_seq_cst); }
  ~Logging() {
    const bool last = logging.fetch_sub(1, std::memory_order_seq_cst) == 1;
    if (last && replaced.load(std::memory_order_seq_cst) != nullptr) destroy_replaced();
  }
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;

  const Sink* sink() const { return current.load(std::memory_order_seq_cst); }
};

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
  Sink* const before =
      current.exchange(logger ? new Sink{std::move(logger)} : nullptr, std::memory_order_seq_cst);
  if (before == nullptr) return;
  keep_replaced(before, before);
  destroy_replaced();
}

// current_level is a number alone: relaxed, with no partner.
void set_log_level(LogLevel level) noexcept { current_level.store(int(level), std::memory_order_relaxed); }

namespace {
// Errors of the parts below the runtime come here too, from the program's start on.
const bool errors_are_logged = [] {
  detail::error_log = [](std::string_view line) noexcept {
    if (LogLevel::warning >= log_level()) detail::log_line(LogLevel::warning, line);
  };
  return true;
}();
}  // namespace

LogLevel log_level() noexcept {
  int level = current_level.load(std::memory_order_relaxed);
  if (level == not_set) {
    const int first = int(level_at_first());
    if (current_level.compare_exchange_strong(level, first, std::memory_order_relaxed)) level = first;
  }
  return LogLevel(level);
}

void detail::log_line(LogLevel level, std::string_view line) noexcept try {
  const CancellationDeferred deferred;  // a thread that is cancelled in here would end the process
  const Logging now;
  if (const Sink* const sink = now.sink()) {
    sink->logger(level, line);
  } else {
    write_to_standard_error(level, line);
  }
} catch (...) {  // a log is a courtesy
}

}  // namespace gyre
