#include <fmt/format.h>
#include <gyre/bridge/cuda/device_lease.hpp>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/fork.hpp>

#include <algorithm>
#include <map>
#include <mutex>

namespace gyre::cuda {

namespace {

struct Lease {
  int ordinal;
  CUcontext claimed;  // null: it has an own context, or none yet
  Residency residency;
};
struct KeptContext {
  Driver driver;
  CUdevice device;
  CUcontext own;  // null: a retain of the device's primary context

  void end() const noexcept {
    if (own != nullptr) {
      driver.check_or_log(driver.cuCtxDestroy(own), "ending a CUDA context (cuCtxDestroy)");
    } else {
      driver.check_or_log(driver.cuDevicePrimaryCtxRelease(device),
                          "releasing the device's primary context (cuDevicePrimaryCtxRelease)");
    }
  }
};
struct Contexts {
  std::mutex mutex;
  uint64_t next_number = 1;
  std::map<uint64_t, Lease> leases;
  std::vector<KeptContext> kept;

  // With the mutex held, so that no kernel comes to be meanwhile.
  void end_unused() noexcept {
    if (!leases.empty()) return;
    for (const KeptContext& context : kept) context.end();
    kept.clear();
  }
};
// Never destroyed: a runtime may end with the program's static objects.
Contexts& contexts() {
  static Contexts& contexts = *new Contexts;
  return contexts;
}

}  // namespace

DeviceLease::DeviceLease(int ordinal) : ordinal_(ordinal) {
  const detail::ForkDeferred deferred;
  Contexts& all = contexts();
  const std::lock_guard lock(all.mutex);
  number_ = all.next_number++;
  all.leases.emplace(number_, Lease{ordinal, nullptr, {}});
}

DeviceLease::~DeviceLease() {
  if (kept_) return;
  const detail::ForkDeferred deferred;
  Contexts& all = contexts();
  const std::lock_guard lock(all.mutex);
  all.leases.erase(number_);
  all.end_unused();
}

void DeviceLease::claim(CUcontext context) {
  const detail::ForkDeferred deferred;
  Contexts& all = contexts();
  const std::lock_guard lock(all.mutex);
  const bool taken = std::any_of(all.leases.begin(), all.leases.end(), [&](const auto& lease) {
    return lease.first != number_ && lease.second.claimed == context;
  });
  if (taken) {
    throw Error(
        fmt::format("launching on CUDA device {}: this process already has workers in that context (or a "
                    "runtime, client, reply or buffer left of them), and loading a second kernel would wait "
                    "until they end; use --context own, terminate the first runtime, or give one runtime "
                    "more --workers",
                    ordinal_));
  }
  all.leases.at(number_).claimed = context;
}

void DeviceLease::hold(const Residency& residency) {
  const detail::ForkDeferred deferred;
  Contexts& all = contexts();
  const std::lock_guard lock(all.mutex);
  all.leases.at(number_).residency = residency;
}

std::vector<Residency> DeviceLease::others() const {
  const detail::ForkDeferred deferred;
  Contexts& all = contexts();
  const std::lock_guard lock(all.mutex);
  std::vector<Residency> others;
  for (const auto& [number, lease] : all.leases) {
    if (number != number_ && lease.ordinal == ordinal_ && lease.residency.grid != 0)
      others.push_back(lease.residency);
  }
  return others;
}

CUcontext take_context(CUdevice device) noexcept {
  const detail::ForkDeferred deferred;
  Contexts& all = contexts();
  const std::lock_guard lock(all.mutex);
  const auto found = std::find_if(all.kept.begin(), all.kept.end(), [&](const KeptContext& context) {
    return context.own != nullptr && context.device == device;
  });
  if (found == all.kept.end()) return nullptr;
  CUcontext const own = found->own;
  all.kept.erase(found);
  return own;
}

void release_context(const Driver& driver, CUdevice device, CUcontext own) noexcept {
  const detail::ForkDeferred deferred;
  Contexts& all = contexts();
  const std::lock_guard lock(all.mutex);
  try {
    all.kept.push_back({driver, device, own});
  } catch (const std::bad_alloc&) {  // beside leases the process keeps it, and never uses it again
    if (all.leases.empty()) KeptContext{driver, device, own}.end();
  }
  all.end_unused();
}

void forget_contexts() noexcept {
  const detail::ForkDeferred deferred;
  Contexts& all = contexts();
  const std::lock_guard lock(all.mutex);
  all.leases.clear();
  all.kept.clear();
}

}  // namespace gyre::cuda
