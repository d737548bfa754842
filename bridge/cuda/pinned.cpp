#include <gyre/bridge/cuda/pinned.hpp>

#include <cstring>

namespace gyre::cuda {

PinnedRegion::PinnedRegion(const Context& context, size_t bytes, size_t zeroed_bytes) : context_(context) {
  const Driver& driver = context.driver();
  const Context::Current current(context);
  try {
    driver.check(driver.cuMemHostAlloc(&host_, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                 "allocating " + std::to_string(bytes) + " bytes of pinned memory for the region");
    std::memset(host_, 0, zeroed_bytes);
    driver.check(driver.cuMemHostGetDevicePointer(&device_, host_, 0), "mapping the region's pinned memory");
  } catch (...) {
    free();
    throw;
  }
}

PinnedRegion::~PinnedRegion() { free(); }

// Where the context is dead the call fails, and the memory went with it.
void PinnedRegion::free() noexcept {
  if (host_ == nullptr) return;
  const Context::Current current(context_, std::nothrow);
  context_.driver().cuMemFreeHost(host_);
}

}  // namespace gyre::cuda
