// GYRE_CHECK: an assertion of a handler, which ends its message and not its worker.
#pragma once

#include <gyre/device/worker/shared.hpp>

namespace gyre {

/// Hashes a source file's name for an error reply: FNV-1a (Fowler, Noll, Vo) of the part behind the last
/// slash, so that a header has one hash on both engines.
GYRE_DEVICE constexpr uint64_t source_name_hash(const char* path) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *path != 0; ++path) {
    hash = *path == '/' ? 0xcbf29ce484222325u : (hash ^ uint8_t(*path)) * 0x100000001b3u;
  }
  return hash;
}

namespace detail {
/// Returns the verdict on the message that the calling thread's team handles.
GYRE_DEVICE inline MessageVerdict& current_verdict() {
  WorkerShared& shared = worker_shared();
#if defined(__CUDACC_RTC__)
  if (shared.team_log_size < log_warp_size) return shared.batch_verdicts[threadIdx.x >> shared.team_log_size];
#endif
  return shared.verdict;
}

template <uint64_t file>
GYRE_DEVICE inline void check_failed(uint32_t line) {
  MessageVerdict& verdict = current_verdict();
  verdict.exceptional = 1;
  if (!HandlerGroup::first_to_set(verdict.status, Status::check_failed)) return;
  verdict.detail = line;
  verdict.where = file;
}
}  // namespace detail

}  // namespace gyre

/// Returns from the function if `condition` is false, and ends the message with Status::check_failed, the
/// file and the line. Use it in a handler, or in a function that returns void and is called by a handler.
/// One thread with a false condition ends the message. If a Context::sync() follows, the condition must
/// have one value in all threads.
#define GYRE_CHECK(condition) GYRE_CHECK_RETURN(condition, )
/// GYRE_CHECK in a function that returns `value` where the condition is false.
#define GYRE_CHECK_RETURN(condition, value)                                       \
  do {                                                                            \
    if (!(condition)) {                                                           \
      ::gyre::detail::check_failed<::gyre::source_name_hash(__FILE__)>(__LINE__); \
      return value;                                                               \
    }                                                                             \
  } while (false)
