#include <fmt/format.h>
#include <gyre/runtime/core/handler_log.hpp>
#include <gyre/runtime/log.hpp>

#include <bit>
#include <cctype>
#include <cstring>
#include <string_view>

namespace gyre::detail {

namespace {

constexpr size_t most_characters = 1000;  // of a line

// A line stays one line, whatever bytes a text has.
std::string printable(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (uint8_t(c) < 0x20 || c == 0x7f) c = '?';
  }
  return line;
}

// Whether a format's part between the braces is harmless: the empty one, or a colon and what fmt takes for
// numbers and texts. Widths of three digits are refused: they make long lines of short entries.
bool is_harmless(std::string_view spec) {
  if (spec.empty()) return true;
  if (spec[0] != ':' || spec.size() > 10) return false;
  size_t digits = 0;
  for (const char c : spec.substr(1)) {
    digits = std::isdigit(uint8_t(c)) != 0 ? digits + 1 : 0;
    if (digits > 2 || std::strchr("0123456789.+-# <>^xXobdeEfFgGs", c) == nullptr) return false;
  }
  return true;
}

struct Argument {
  LogKind kind;
  uint64_t word;
  std::string_view text;

  std::string formatted(std::string_view spec) const {
    try {
      return formatted_as(fmt::format("{{{}}}", spec));
    } catch (const fmt::format_error&) {
      return formatted_as("{}");
    }
  }

 private:
  std::string formatted_as(const std::string& format) const {
    switch (kind) {
      case LogKind::signed_number:
        return fmt::format(fmt::runtime(format), int64_t(word));
      case LogKind::unsigned_number:
        return fmt::format(fmt::runtime(format), word);
      case LogKind::real:
        return fmt::format(fmt::runtime(format), std::bit_cast<double>(word));
      case LogKind::text:
        return fmt::format(fmt::runtime(format), text);
      case LogKind::boolean:
        return fmt::format(fmt::runtime(format), word != 0);
    }
    return {};
  }
};

// Each {} becomes an argument; what has none stays as it is, and arguments without one come last.
std::string fill_in(std::string_view format, const std::vector<Argument>& arguments) {
  std::string line;
  size_t next = 0;
  for (size_t at = 0; at < format.size(); ++at) {
    const char c = format[at];
    if ((c == '{' || c == '}') && at + 1 < format.size() && format[at + 1] == c) {
      line += c;
      ++at;
      continue;
    }
    const size_t end = c == '{' ? format.find('}', at) : std::string_view::npos;
    if (end == std::string_view::npos || next == arguments.size()) {
      line += c;
      continue;
    }
    const std::string_view spec = format.substr(at + 1, end - at - 1);
    line += arguments[next++].formatted(is_harmless(spec) ? spec : std::string_view());
    at = end;
  }
  for (; next < arguments.size(); ++next) {
    line += ' ';
    line += arguments[next].formatted({});
  }
  return line;
}

}  // namespace

std::string HandlerLog::text_of(const Words& entry) {
  const auto count = uint32_t(entry[3]), format_bytes = uint32_t(entry[3] >> 32),
             kinds = uint32_t(entry[2] >> 32);
  if (count > LogEntry::most_arguments || format_bytes > LogEntry::payload_bytes - 8 * count) return {};
  const std::string_view payload(reinterpret_cast<const char*>(entry.data() + LogEntry::head_words),
                                 LogEntry::payload_bytes);
  std::string_view rest = payload.substr(8 * count);
  const std::string_view format = rest.substr(0, format_bytes);
  rest.remove_prefix(format_bytes);
  std::vector<Argument> arguments;
  for (uint32_t n = 0; n < count; ++n) {
    const auto kind = LogKind(kinds >> (4 * n) & 15);
    const uint64_t word = entry[LogEntry::head_words + n];
    if (kind < LogKind::signed_number || kind > LogKind::boolean) return {};
    arguments.push_back({kind, word, {}});
    if (kind != LogKind::text) continue;
    if (word > rest.size()) return {};
    arguments.back().text = rest.substr(0, word);
    rest.remove_prefix(word);
  }
  return printable(fill_in(format, arguments).substr(0, most_characters));
}

void HandlerLog::take() noexcept {
  // Pairs with the store below: taken_ is the last thread's.
  if (taking_.load(std::memory_order_relaxed) || taking_.exchange(true, std::memory_order_acquire)) return;
  for (uint32_t worker = 0; worker < bridges_.size(); ++worker) {
    const Bridge& bridge = bridges_[worker].bridge();
    for (uint32_t n = 0; n < LogEntry::room; ++n) {
      const LogEntry& entry = bridge.log[taken_[worker] % LogEntry::room];
      // Pairs with the store of the thread that logged.
      if (Memory::load_acquire(entry.content[0]) != taken_[worker] + 1) break;
      Words words;
      for (uint32_t k = 0; k < LogEntry::words; ++k) words[k] = Memory::load_relaxed(entry.content[k]);
      // Pairs with the load of a thread that logs: the entry may be overwritten.
      Memory::store_release(bridge.host_line->log_taken, ++taken_[worker]);
      try {
        log(worker, words);
      } catch (...) {  // no memory for the text
        damaged_.fetch_add(1, std::memory_order_relaxed);
      }
    }
  }
  taking_.store(false, std::memory_order_release);  // pairs with the exchange
}

bool HandlerLog::has_lines() const noexcept {
  for (const HostBridge& worker : bridges_) {
    const Bridge& bridge = worker.bridge();
    const uint64_t taken = Memory::load_relaxed(bridge.host_line->log_taken);
    // Relaxed: who takes the line loads it again.
    if (Memory::load_relaxed(bridge.log[taken % LogEntry::room].content[0]) == taken + 1) return true;
  }
  return false;
}

void HandlerLog::log(uint32_t worker, const Words& entry) {
  const std::string text = text_of(entry);
  const std::string_view actor = actors_.actor_name(uint16_t(entry[2]));
  if (text.empty() || actor.empty()) {
    damaged_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  logged_.fetch_add(1, std::memory_order_relaxed);
  if (log_level() == LogLevel::off) return;
  log_line(LogLevel::info, fmt::format("worker {}, {}, key {}: {}", worker, actor, entry[1], text));
}

uint64_t HandlerLog::dropped() const {
  uint64_t dropped = damaged_.load(std::memory_order_relaxed);
  for (const HostBridge& bridge : bridges_) {
    const Bridge& worker = bridge.bridge();
    dropped += Memory::load_relaxed(worker.counts[worker.handlers].log.lines_dropped);
  }
  return dropped;
}

}  // namespace gyre::detail
