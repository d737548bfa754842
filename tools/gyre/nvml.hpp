// NVIDIA's management library, as far as Gyre's programs ask it: who else is on a GPU, and what energy it
// took. Loaded where it is installed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gyre::tools {

/// What NVML says of one GPU.
struct GpuUse {
  unsigned processes = 0;  ///< that compute on it
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
};

/// Of the GPU with that PCI bus id ("0000:1b:00.0"); nothing where NVML is not installed or does not tell.
std::optional<GpuUse> gpu_use(const std::string& pci_bus_id);

/// The energy that GPU has taken since its driver was loaded, in joules; nothing where NVML does not tell.
std::optional<double> gpu_joules(const std::string& pci_bus_id);

}  // namespace gyre::tools
