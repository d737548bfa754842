// Lines that handlers log: written to the worker's part of the region, where the host takes them.
#pragma once

#include <gyre/device/platform.hpp>
#include <gyre/device/worker/shared.hpp>
#include <gyre/messages/wire.hpp>

namespace gyre::detail {

/// One argument of a line: a number's bits, or a text and its bytes.
struct LogValue {
  LogKind kind;
  uint64_t word;
  const char* text = nullptr;
};

template <uint32_t size>
GYRE_DEVICE LogValue log_value(const char (&text)[size]) {
  return {LogKind::text, size - 1, text};
}
template <class T>
GYRE_DEVICE LogValue log_value(const T& value) {
  if constexpr (requires {
                  value.data();
                  value.size();
                }) {
    return {LogKind::text, value.size(), value.data()};
  } else if constexpr (wire::is_same<T, bool>) {
    return {LogKind::boolean, value};
  } else if constexpr (__is_enum(T)) {
    return {LogKind::signed_number, uint64_t(int64_t(value))};
  } else {
    static_assert(
        requires { T(1) / T(2); }, "ctx.log() takes numbers, bool, enums and texts");
    if constexpr (T(1) / T(2) != T(0)) {
      return {LogKind::real, __builtin_bit_cast(uint64_t, double(value))};
    } else if constexpr (T(-1) < T(1)) {
      return {LogKind::signed_number, uint64_t(int64_t(value))};
    } else {
      return {LogKind::unsigned_number, uint64_t(value)};
    }
  }
}

/// Writes a line, or counts it where the host has not taken enough of those before it. One thread; waits for
/// nothing but reads across the bus.
/// @param format_bytes  at most LogEntry::payload_bytes - 8 * count
/// @param count         at most LogEntry::most_arguments
GYRE_DEVICE_NOINLINE inline void log_line_of_handler(const WorkerShared& shared, uint64_t key,
                                                     const char* format, uint32_t format_bytes,
                                                     const LogValue* values, uint32_t count) {
  HandlerCounts& counts = shared.memory.counts[shared.memory.counts_per_worker - 1];
  uint64_t line = load_added(counts.log.lines);
  for (;;) {
    // Pairs with the host's store of log_taken: it is done with the entry.
    if (line - Memory::load_acquire(shared.log.host_line->log_taken) >= LogEntry::room) {
      return add_soon(counts.log.lines_dropped, 1);
    }
    const uint64_t found = compare_and_swap(counts.log.lines, line, line + 1);
    if (found == line) break;
    line = found;
  }
  uint64_t words[LogEntry::words] = {};
  auto* const payload = reinterpret_cast<char*>(words + LogEntry::head_words);
  uint32_t end = 8 * count, kinds = 0;
  const auto append = [&](const char* text, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; ++i) payload[end + i] = text[i];
    end += bytes;
  };
  append(format, format_bytes);
  for (uint32_t n = 0; n < count; ++n) {
    uint64_t word = values[n].word;
    if (values[n].kind == LogKind::text) {
      if (word > LogEntry::payload_bytes - end) word = LogEntry::payload_bytes - end;
      append(values[n].text, uint32_t(word));
    }
    words[LogEntry::head_words + n] = word;
    kinds |= uint32_t(values[n].kind) << (4 * n);
  }
  // The worker names each message's actor there before its handler runs.
  const uint32_t types = Memory::load(shared.log.last_words->packet).data[2];
  words[1] = key;
  words[2] = types | uint64_t(kinds) << 32;
  words[3] = count | uint64_t(format_bytes) << 32;
  LogEntry& entry = shared.log.entries[line % LogEntry::room];
  for (uint32_t k = 1; k < LogEntry::words; ++k) Memory::store_relaxed(entry.content[k], words[k]);
  Memory::store_release(entry.content[0], line + 1);  // pairs with the host's load in HandlerLog::take()
}

}  // namespace gyre::detail
