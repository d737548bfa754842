// What engine_answers_fuzz.cpp tells fuzzed_engine.cpp to say.
#pragma once

#include <cstdint>

namespace gyre_fuzz {

/// Before the bytes to send.
struct Record {
  /// Closes its socket and goes on; or waits, ends or crashes at the next request.
  enum Then : uint32_t { waits, closes, ends, crashes };
  uint32_t bytes;
  uint32_t descriptors;   ///< beside them, of memory
  uint64_t memory_bytes;  ///< of each
  uint32_t sealed;
  uint32_t then;  ///< after the last record: a Then
};

}  // namespace gyre_fuzz
