// Objects whose destructor may wait: they end on a thread of the runtime, not on the program's.
#pragma once

#include <cstdint>
#include <memory>

namespace gyre::detail {

/// What release_later() takes.
class ReleasedLater {
 public:
  ReleasedLater() = default;
  ReleasedLater(const ReleasedLater&) = delete;
  ReleasedLater& operator=(const ReleasedLater&) = delete;
  virtual ~ReleasedLater() = default;

 private:
  friend class ReleaseQueue;
  ReleasedLater* next_ = nullptr;  // in the queue
};

/// Destroys `object` soon, on a thread that is there while it has something to destroy. Objects are destroyed
/// one after the other, in the order of the calls. Does not wait for that, nor allocate; never throws. If no
/// thread can be started, the object waits for the next call. Any thread; not for objects that a parent of
/// this process made before fork().
void release_later(std::unique_ptr<ReleasedLater> object) noexcept;

/// Blocks until all objects that were given before are destroyed, at most until `until_ns`.
/// @returns false if some are not
bool wait_for_releases(int64_t until_ns) noexcept;

}  // namespace gyre::detail
