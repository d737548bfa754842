#include <fmt/format.h>
#include <gyre/bridge/error.hpp>
#include <gyre/runtime/cuda/device_lease.hpp>

#include <mutex>
#include <set>

namespace gyre::cuda {

namespace {

struct LiveDevices {
  std::mutex mutex;
  std::set<int> ordinals;
};
LiveDevices& live_devices() {
  static LiveDevices devices;
  return devices;
}

}  // namespace

DeviceLease::DeviceLease(int ordinal) : ordinal_(ordinal) {
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
  const std::lock_guard lock(live_devices().mutex);
  live_devices().ordinals.erase(ordinal_);
}

}  // namespace gyre::cuda
