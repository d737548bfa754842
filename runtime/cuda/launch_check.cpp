#include <fmt/format.h>
#include <gyre/runtime/cuda/launch_check.hpp>

#include <algorithm>

namespace gyre::cuda {

namespace {
// Scalar 16-byte accesses and cooperative launch with forward progress of every thread.
constexpr int compute_needed = 75;
// The most blocks a cluster that every device with clusters takes (CUDA programming guide).
constexpr uint32_t portable_cluster = 8;
constexpr uint32_t warp = 32;

constexpr uint64_t rounded_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// What blocks take of one multiprocessor, by the units in which the hardware gives it.
struct Load {
  uint64_t threads = 0, blocks = 0, registers = 0, shared_bytes = 0;

  void add(const Load& block, uint64_t times) {
    threads += block.threads * times;
    blocks += block.blocks * times;
    registers += block.registers * times;
    shared_bytes += block.shared_bytes * times;
  }
};

Load block_of(const Residency& kernel, const DeviceLimits& device) {
  constexpr uint64_t registers_at_once = 256, shared_bytes_at_once = 128;  // of a warp, of a block
  const uint64_t warps = std::max<uint64_t>(rounded_up(kernel.block, warp) / warp, 1);
  return {warps * warp, 1, warps * rounded_up(uint64_t(kernel.registers) * warp, registers_at_once),
          rounded_up(kernel.shared_bytes + device.shared_bytes_reserved_a_block, shared_bytes_at_once)};
}

// How many more such blocks a multiprocessor with that load takes, at most `most`.
uint64_t room_for(const Load& block, const Load& load, const DeviceLimits& device, uint64_t most) {
  const auto limit = [&most](uint64_t has, uint64_t used, uint64_t needed) {
    if (has == 0 || needed == 0) return;
    most = std::min(most, used < has ? (has - used) / needed : 0);
  };
  limit(device.threads_a_multiprocessor, load.threads, block.threads);
  limit(device.blocks_a_multiprocessor, load.blocks, block.blocks);
  limit(device.registers_a_multiprocessor, load.registers, block.registers);
  limit(device.shared_bytes_a_multiprocessor, load.shared_bytes, block.shared_bytes);
  return most;
}
}  // namespace

bool can_load_kernels(const DeviceLimits& device) {
  return !device.prohibited && 10 * device.compute_major + device.compute_minor >= compute_needed;
}

Problems launch_problems(const LaunchRequest& request, const DeviceLimits& device, const HostMemory& host,
                         const KernelLimits* kernel, const Others& others) {
  Problems problems = device_problems(request, device);
  const auto add = [&problems](const Problems& more) {
    problems.insert(problems.end(), more.begin(), more.end());
  };
  add(memory_problems(request, device, host));
  if (kernel != nullptr) add(kernel_problems(with_possible_block(request, device), device, *kernel, others));
  return problems;
}

Problems device_problems(const LaunchRequest& request, const DeviceLimits& device) {
  Problems problems;
  const auto wrong = [&problems](std::string line) { problems.push_back(std::move(line)); };
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
  if (device.prohibited) {
    wrong(
        "the device's compute mode is \"prohibited\" (CU_DEVICE_ATTRIBUTE_COMPUTE_MODE is 2): nvidia-smi -c "
        "DEFAULT changes it");
  }
  if (device.watchdog) {
    wrong(
        "the device ends kernels that run long (CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT is 1), and Gyre's "
        "kernel stays: use a GPU without a display");
  }
  if (request.block == 0 || request.block % warp != 0) {
    wrong(fmt::format("{} threads a block: must be a multiple of 32 (a warp)", request.block));
  }
  if (request.block > device.threads_a_block) {
    wrong(fmt::format("{} threads a block: the device allows {} (CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)",
                      request.block, device.threads_a_block));
  }
  if (request.grid == 0) wrong("a grid of 0 blocks: at least 1");
  if (request.cluster == 0) wrong("clusters of 0 blocks: at least 1, which means none");
  if (request.cluster > 1) {
    if (!device.cluster_launch) {
      wrong(
          fmt::format("clusters of {} blocks: the device has no clusters (CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH "
                      "is 0); compute capability 9.0 and later have them",
                      request.cluster));
    }
    if (request.cluster > portable_cluster) {
      wrong(
          fmt::format("clusters of {} blocks: at most {}, which every device with clusters takes (CUDA "
                      "programming guide)",
                      request.cluster, portable_cluster));
    }
    if (request.grid % request.cluster != 0) {
      wrong(fmt::format(
          "a grid of {} blocks in clusters of {}: it must be a multiple of that; {} is the next",
          request.grid, request.cluster, (uint64_t(request.grid) / request.cluster + 1) * request.cluster));
    }
  }
  return problems;
}

Problems memory_problems(const LaunchRequest& request, const DeviceLimits& device, const HostMemory& host) {
  Problems problems;
  if (host.bytes != 0 && request.region_bytes > host.bytes) {
    problems.push_back(
        fmt::format("a region of {} bytes of pinned memory: the host has {} ({}); ask for fewer --workers or "
                    "--slots, or less --arena-bytes",
                    request.region_bytes, host.bytes, host.source));
  }
  if (request.device_bytes > device.memory_bytes) {
    problems.push_back(
        fmt::format("{} bytes of the device's memory: it has {} (cuDeviceTotalMem); ask for fewer "
                    "--actors-per-worker or --workers",
                    request.device_bytes, device.memory_bytes));
  }
  return problems;
}

Problems kernel_problems(const LaunchRequest& request, const DeviceLimits& device, const KernelLimits& kernel,
                         const Others& others) {
  Problems problems;
  const auto wrong = [&problems](std::string line) { problems.push_back(std::move(line)); };
  if (request.block > kernel.threads_a_block) {
    wrong(
        fmt::format("{} threads a block: the kernel's {} registers a thread allow {} "
                    "(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)",
                    request.block, kernel.registers, kernel.threads_a_block));
  }
  const uint64_t shared = uint64_t(request.dynamic_shared_bytes) + kernel.static_shared_bytes;
  if (shared > device.shared_bytes_a_block_opt_in) {
    wrong(fmt::format(
        "{} bytes of shared memory a block ({} dynamic, for the slots in hand, the messages that a handler "
        "may send and the actors' shared_scratch_bytes, {} static, of the actors): the "
        "device allows {}, and {} without opting in "
        "(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN and "
        "…_PER_BLOCK); use smaller --slot-bytes, a smaller N of gyre::Sending<N>, or smaller "
        "shared_scratch_bytes or actors",
        shared, request.dynamic_shared_bytes, kernel.static_shared_bytes, device.shared_bytes_a_block_opt_in,
        device.shared_bytes_a_block));
    return problems;  // no block can be resident
  }
  const uint64_t resident = resident_blocks(device, kernel);
  if (request.grid > resident) {
    wrong(
        fmt::format("a grid of {} blocks: {} blocks of {} threads can be resident at once ({} a "
                    "multiprocessor, with {} registers "
                    "a "
                    "thread and {} bytes of shared memory, on {} multiprocessors; "
                    "cuOccupancyMaxActiveBlocksPerMultiprocessor), and a cooperative launch needs all "
                    "resident; ask for fewer --workers (--blocks, of a grid-scoped set), a smaller --block "
                    "or, under MPS, "
                    "more --multiprocessors",
                    request.grid, resident, request.block, kernel.blocks_a_multiprocessor, kernel.registers,
                    shared, device.multiprocessors));
  } else if (const uint64_t beside = resident_beside(request, device, kernel, others);
             request.grid > beside) {
    uint64_t held = 0;
    for (const Residency& other : others) held += other.grid;
    wrong(
        fmt::format("a grid of {} blocks: {} of the {} blocks of {} threads that can be resident at once fit "
                    "beside the {} blocks that other runtimes of this process hold, and a cooperative launch "
                    "needs all resident; terminate one of those, or ask for fewer --workers (--blocks, of a "
                    "grid-scoped set) or a smaller --block",
                    request.grid, beside, resident, request.block, held));
  }
  if (request.cluster > 1 && kernel.clusters_known) {
    const uint64_t clusters = (uint64_t(request.grid) + request.cluster - 1) / request.cluster;
    if (clusters > kernel.clusters) {
      wrong(fmt::format("{} clusters of {} blocks: {} can be resident at once (cuOccupancyMaxActiveClusters)",
                        clusters, request.cluster, kernel.clusters));
    }
  }
  return problems;
}

Residency residency_of(const LaunchRequest& request, const KernelLimits& kernel) {
  return {request.grid, request.block, kernel.registers,
          uint64_t(request.dynamic_shared_bytes) + kernel.static_shared_bytes};
}

uint64_t resident_beside(const LaunchRequest& request, const DeviceLimits& device, const KernelLimits& kernel,
                         const Others& others) {
  if (others.empty() || device.multiprocessors == 0) return resident_blocks(device, kernel);
  const uint64_t all = device.multiprocessors;
  Load everywhere, most;  // on each multiprocessor, and at most on those that have a remainder's block
  uint64_t remainders = 0;
  for (const Residency& other : others) {
    const Load block = block_of(other, device);
    const uint64_t remainder = other.grid % all;
    everywhere.add(block, other.grid / all);
    most.add(block, other.grid / all + (remainder != 0));
    remainders += remainder;
  }
  const uint64_t fuller = std::min(remainders, all);
  const Load block = block_of(residency_of(request, kernel), device);
  return (all - fuller) * room_for(block, everywhere, device, kernel.blocks_a_multiprocessor) +
         fuller * room_for(block, most, device, kernel.blocks_a_multiprocessor);
}

LaunchRequest on_device(const LaunchRequest& request, const DeviceLimits& device) {
  LaunchRequest resolved = request;
  if (request.block_a_multiprocessor) resolved.grid = std::max(device.multiprocessors, 1u);
  return resolved;
}

LaunchRequest with_possible_block(const LaunchRequest& request, const DeviceLimits& device) {
  LaunchRequest possible = request;
  const uint64_t warps = std::max<uint64_t>((uint64_t(request.block) + warp - 1) / warp, 1);
  possible.block = uint32_t(std::min<uint64_t>(warps * warp, device.threads_a_block));
  return possible;
}

std::vector<std::string> what_fits(const LaunchRequest& request, const DeviceLimits& device,
                                   const KernelLimits& kernel) {
  std::vector<std::string> fits;
  const uint32_t shared = std::min(request.dynamic_shared_bytes, dynamic_shared_limit(device, kernel));
  fits.push_back(
      fmt::format("a grid of at most {} blocks of {} threads with {} bytes of dynamic shared memory ({} a "
                  "multiprocessor, on {})",
                  resident_blocks(device, kernel), request.block, shared, kernel.blocks_a_multiprocessor,
                  device.multiprocessors));
  if (request.cluster > 1 && kernel.clusters_known) {
    fits.push_back(fmt::format("a grid of at most {} blocks in clusters of {} ({} clusters)",
                               uint64_t(kernel.clusters) * request.cluster, request.cluster,
                               kernel.clusters));
  }
  // A kernel compiled for a block says no more than that block; another can be compiled for a larger one.
  fits.push_back(
      fmt::format("blocks of 32 to {} threads, in steps of 32",
                  kernel.threads_a_block < request.block ? kernel.threads_a_block : device.threads_a_block));
  fits.push_back(
      fmt::format("at most {} bytes of dynamic shared memory a block", dynamic_shared_limit(device, kernel)));
  return fits;
}

std::string lines(const Problems& problems) {
  std::string text;
  for (const std::string& problem : problems) text += "  " + problem + "\n";
  return text;
}

}  // namespace gyre::cuda
