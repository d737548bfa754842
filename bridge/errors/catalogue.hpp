// Every error that has a number: what it means here, and what to check next. The one place where this is
// said; docs/errors.md shows it, and error texts take it from here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gyre {

/// Whose number it is. Numbers are unique within a source.
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
  std::string_view check;    ///< what to look at or do next; empty where there is nothing to do
};

/// All of them, by source and number.
std::span<const ErrorEntry> error_catalogue();

/// Null where the catalogue has no such error.
const ErrorEntry* find_error(ErrorSource source, uint32_t code);

/// "<meaning>; <check>", to stand at the end of an error's text; empty where the catalogue has no such error.
std::string error_advice(ErrorSource source, uint32_t code);

/// The error's row in docs/errors.md: | `name (code)` | meaning | check |.
std::string markdown_row(const ErrorEntry& entry);

/// "Gyre", "CUDA driver", "NVRTC".
std::string_view name(ErrorSource source);

}  // namespace gyre
