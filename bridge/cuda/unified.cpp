#include <gyre/bridge/cuda/unified.hpp>
#include <gyre/bridge/errors/error.hpp>

#include <cstring>

namespace gyre::cuda {

UnifiedRegion::UnifiedRegion(const Context& context, size_t bytes, size_t zeroed_bytes) : context_(context) {
  const Driver& driver = context.driver();
  if (context.attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 0) {
    throw EngineUnavailable(
        "launching with --transport unified: host and device cannot use managed memory at the same time here "
        "(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS is 0 on " +
        context.name() + "); use --transport pinned");
  }
  const Context::Current current(context);
  try {
    driver.check(driver.cuMemAllocManaged(&device_, bytes, CU_MEM_ATTACH_GLOBAL),
                 "allocating " + std::to_string(bytes) + " bytes of unified memory for the region");
    host_ = reinterpret_cast<void*>(device_);
    if (driver.advise == nullptr) {
      throw EngineUnavailable(
          "launching with --transport unified: the driver has no cuMemAdvise; install driver 525 or later, "
          "or "
          "use --transport pinned");
    }
    driver.check(driver.advise(device_, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU),
                 "keeping the region's unified memory on the host");
    driver.check(driver.advise(device_, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, context.device()),
                 "mapping the region's unified memory for the device");
    std::memset(host_, 0, zeroed_bytes);
  } catch (...) {
    free();
    throw;
  }
}

UnifiedRegion::~UnifiedRegion() { free(); }

// Where the context is dead the call fails, and the memory went with it.
void UnifiedRegion::free() noexcept {
  if (host_ == nullptr) return;
  const Context::Current current(context_, std::nothrow);
  context_.driver().check_or_log(context_.driver().cuMemFree(device_),
                                 "freeing the region's unified memory (cuMemFree)");
}

}  // namespace gyre::cuda
