#include <fmt/format.h>
#include <gyre/bridge/cuda/device_lease.hpp>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/fork.hpp>

#include <mutex>
#include <set>
#include <vector>

namespace gyre::cuda {

namespace {

struct KeptContext {
  Driver driver;
  CUdevice device;
};
void release_now(const Driver& driver, CUdevice device) noexcept {
  driver.check_or_log(driver.cuDevicePrimaryCtxRelease(device),
                      "releasing the device's primary context (cuDevicePrimaryCtxRelease)");
}
struct LiveDevices {
  std::mutex mutex;
  std::set<int> ordinals;
  std::vector<KeptContext> contexts;  // retained once more than they are used
};
// Never destroyed: a runtime may end with the program's static objects.
LiveDevices& live_devices() {
  static LiveDevices& devices = *new LiveDevices;
  return devices;
}

}  // namespace

DeviceLease::DeviceLease(int ordinal) : ordinal_(ordinal) {
  const detail::ForkDeferred deferred;
  const std::lock_guard lock(live_devices().mutex);
  if (!live_devices().ordinals.insert(ordinal).second) {
    throw Error(
        fmt::format("launching on CUDA device {}: this process already has workers on it (or a runtime, "
                    "client, reply or buffer left of them), and loading a "
                    "second kernel would wait "
                    "until they end; terminate the first runtime, or give one runtime more --workers",
                    ordinal));
  }
}

DeviceLease::~DeviceLease() {
  if (kept_) return;
  const detail::ForkDeferred deferred;
  const std::lock_guard lock(live_devices().mutex);
  live_devices().ordinals.erase(ordinal_);
}

void release_context(const Driver& driver, CUdevice device) noexcept {
  const detail::ForkDeferred deferred;
  LiveDevices& live = live_devices();
  const std::lock_guard lock(live.mutex);
  const bool others_live = live.ordinals.size() > live.ordinals.count(int(device));
  if (!others_live) {
    release_now(driver, device);
    for (const KeptContext& kept : live.contexts) release_now(kept.driver, kept.device);
    live.contexts.clear();
    return;
  }
  try {
    live.contexts.push_back({driver, device});
  } catch (const std::bad_alloc&) {  // the process keeps it
  }
}

}  // namespace gyre::cuda
