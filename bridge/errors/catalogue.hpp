// The catalogue of errors that have numbers: what each means in Gyre, and what to check next. docs/reference/errors.md
// shows it. Statuses take their names from it; texts about CUDA's and NVRTC's errors take name, meaning and
// check. What one failure of Gyre's own says, with its numbers, is in runtime/errors.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gyre {

/// Says which interface defines an error number. Numbers are unique within a source.
enum class ErrorSource {
  gyre,   ///< a Status
  cuda,   ///< a CUresult of the CUDA driver
  nvrtc,  ///< an nvrtcResult of the compiler NVRTC
};

/// One error. Static memory.
struct ErrorEntry {
  ErrorSource source;
  uint32_t code;
  std::string_view name;     ///< as its source writes it: "ring_full", "CUDA_ERROR_ILLEGAL_ADDRESS"
  std::string_view meaning;  ///< in Gyre, not in general
  std::string_view check;    ///< what to check or do next; empty if there is nothing to do
};

/// Returns all entries, by source and number.
std::span<const ErrorEntry> error_catalogue();

/// Finds an entry; null if the catalogue has none.
const ErrorEntry* find_error(ErrorSource source, uint32_t code);

/// Returns "<meaning>; <check>" for the end of an error's text; empty if the catalogue has no such error.
std::string error_advice(ErrorSource source, uint32_t code);

/// The error's row in docs/reference/errors.md: | `name (code)` | meaning | check |.
std::string markdown_row(const ErrorEntry& entry);

/// "Gyre", "CUDA driver", "NVRTC".
std::string_view name(ErrorSource source);

}  // namespace gyre
