#include <fmt/format.h>
#include <gyre/runtime/cuda/launch_check.hpp>

namespace gyre::cuda {

namespace {
// Scalar 16-byte accesses and cooperative launch with forward progress of every thread.
constexpr int compute_needed = 75;
}  // namespace

std::string device_problems(const LaunchRequest& request, const DeviceLimits& device) {
  std::string problems;
  const auto wrong = [&problems](const std::string& line) { problems += "  " + line + "\n"; };
  const int compute = 10 * device.compute_major + device.compute_minor;
  if (compute < compute_needed) {
    wrong(fmt::format("compute capability {}.{}: Gyre needs 7.5 or later (Turing)", device.compute_major,
                      device.compute_minor));
  }
  if (!device.cooperative_launch) {
    wrong("the device does not support cooperative launches (CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH is 0)");
  }
  if (!device.map_host_memory) {
    wrong("the device cannot map host memory (CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY is 0)");
  }
  if (device.prohibited)
    wrong("the device's compute mode is \"prohibited\": nvidia-smi -c shows and changes it");
  if (device.watchdog) {
    wrong(
        "the device ends kernels that run long (CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT is 1), and Gyre's "
        "kernel "
        "stays: use a GPU without a display");
  }
  if (request.block == 0 || request.block % 32 != 0) {
    wrong(fmt::format("{} threads a block: must be a multiple of 32 (a warp)", request.block));
  }
  if (request.block > device.threads_a_block) {
    wrong(fmt::format("{} threads a block: the device allows {} (CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)",
                      request.block, device.threads_a_block));
  }
  if (request.grid == 0) wrong("0 workers: at least 1");
  return problems;
}

std::string kernel_problems(const LaunchRequest& request, const DeviceLimits& device,
                            const KernelLimits& kernel) {
  std::string problems;
  const auto wrong = [&problems](const std::string& line) { problems += "  " + line + "\n"; };
  if (request.block > kernel.threads_a_block) {
    wrong(fmt::format("{} threads a block: the kernel's {} registers a thread allow {}", request.block,
                      kernel.registers, kernel.threads_a_block));
  }
  const uint32_t shared = request.dynamic_shared_bytes + kernel.static_shared_bytes;
  if (shared > device.shared_bytes_a_block) {
    wrong(fmt::format(
        "{} bytes of shared memory a block ({} for the slots in hand, {} of the actors): the device allows "
        "{}; use "
        "smaller --slot-bytes or smaller actors",
        shared, request.dynamic_shared_bytes, kernel.static_shared_bytes, device.shared_bytes_a_block));
  } else {
    const uint64_t resident = uint64_t(kernel.blocks_a_multiprocessor) * device.multiprocessors;
    if (request.grid > resident) {
      wrong(
          fmt::format("{} workers: {} blocks of {} threads can be resident at once ({} a multiprocessor, "
                      "with {} registers a "
                      "thread and {} bytes of shared memory, on {} multiprocessors), and a cooperative "
                      "launch needs all resident",
                      request.grid, resident, request.block, kernel.blocks_a_multiprocessor, kernel.registers,
                      shared, device.multiprocessors));
    }
  }
  return problems;
}

}  // namespace gyre::cuda
