// What moving large data costs without Gyre: blocking copies of one kind of host memory, and messages'
// payloads copied into pinned memory and on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace gyre::bench {

/// Which way data moves: to the workers' memory, from it, or both at once.
enum class Direction { in, out, both };
inline constexpr Direction directions[] = {Direction::in, Direction::out, Direction::both};
const char* name(Direction direction);

/// What kind of host memory a copy reads or writes.
enum class HostMemory { pinned, pageable };
const char* name(HostMemory memory);

/// Seconds that plain copies of `bytes` bytes take. What was copied is compared, outside the time. No kernel
/// may live on the device. One thread's.
class PlainCopies {
 public:
  virtual ~PlainCopies() = default;
  /// `times` blocking copies, one after the other; of both directions a thread each. Of pageable memory the
  /// faster of two ways: the driver's own, and through a pinned block that as many threads fill or empty as
  /// Gyre has for it. Throws Error.
  virtual double copies(Direction direction, HostMemory memory, uint64_t times) = 0;
  /// `times` payloads, several under way: by memcpy of as many threads into pinned memory, then copied to the
  /// device; or the other way round. Throws Error.
  virtual double payloads(Direction direction, uint64_t times) = 0;
};

#if defined(GYRE_WITH_CUDA)
/// By cuMemcpyHtoDAsync and cuMemcpyDtoHAsync. Throws EngineUnavailable, Error.
std::unique_ptr<PlainCopies> plain_copies_of_device(int device, uint64_t bytes, uint32_t depth);
#endif
/// By memcpy, for the CPU engine. Throws std::bad_alloc.
std::unique_ptr<PlainCopies> plain_copies_of_host(uint64_t bytes);

/// Throws Error unless both blocks hold the same. `what`: for example "copying to the device".
void expect_equal(const void* got, const void* expected, uint64_t bytes, const std::string& what);

}  // namespace gyre::bench
