#include <gyre/runtime/cuda/launch_check.hpp>

#include "support/catch.hpp"

using namespace gyre::cuda;

namespace {
DeviceLimits h200() {
  DeviceLimits device;
  device.name = "NVIDIA H200";
  device.compute_major = 9;
  device.cooperative_launch = device.map_host_memory = device.cluster_launch = true;
  device.threads_a_block = 1024;
  device.multiprocessors = 132;
  device.shared_bytes_a_block = 49152;
  device.shared_bytes_a_block_opt_in = 232448;
  device.memory_bytes = 150'000'000'000;
  return device;
}
KernelLimits small_kernel() {
  KernelLimits kernel;
  kernel.threads_a_block = 1024;
  kernel.registers = 64;
  kernel.static_shared_bytes = 48;
  kernel.blocks_a_multiprocessor = 8;
  return kernel;
}
LaunchRequest asking(uint32_t grid, uint32_t block, uint32_t shared, uint32_t cluster = 1) {
  LaunchRequest request;
  request.grid = grid;
  request.block = block;
  request.dynamic_shared_bytes = shared;
  request.cluster = cluster;
  return request;
}
// All of `said` in one and the same line.
bool says(const std::vector<std::string>& problems, const std::vector<std::string>& said) {
  for (const std::string& line : problems) {
    bool all = true;
    for (const std::string& part : said) all = all && line.find(part) != std::string::npos;
    if (all) return true;
  }
  return false;
}
}  // namespace

TEST_CASE("what fits is not complained about") {
  CHECK(device_problems(asking(132, 256, 768), h200()).empty());
  CHECK(kernel_problems(asking(8 * 132, 256, 768), h200(), small_kernel()).empty());
  LaunchRequest request = asking(8 * 132, 256, 768, 8);
  request.region_bytes = 1 << 30;
  request.device_bytes = 1 << 30;
  const KernelLimits kernel = small_kernel();
  CHECK(launch_problems(request, h200(), {uint64_t(64) << 30, "physical memory"}, &kernel).empty());
}

TEST_CASE("one block above what can be resident is refused with all the numbers") {
  const Problems problems = kernel_problems(asking(8 * 132 + 1, 256, 768), h200(), small_kernel());
  REQUIRE(problems.size() == 1);
  INFO(problems[0]);
  CHECK(says(problems, {"1057 blocks", "1056 blocks of 256 threads", "8 a multiprocessor", "64 registers",
                        "816 bytes", "132 multiprocessors", "cuOccupancyMaxActiveBlocksPerMultiprocessor"}));
}

TEST_CASE("2048 threads and 1 thread a block are refused, naming 1024 and 32") {
  CHECK(says(device_problems(asking(1, 2048, 0), h200()), {"2048", "the device allows 1024"}));
  CHECK(says(device_problems(asking(1, 1, 0), h200()), {"1 threads", "multiple of 32"}));
  CHECK(says(device_problems(asking(1, 0, 0), h200()), {"multiple of 32"}));
}

TEST_CASE("a device that cannot keep a cooperative kernel is refused, all reasons at once") {
  DeviceLimits device = h200();
  device.compute_major = 7;
  device.compute_minor = 0;
  device.cooperative_launch = false;
  device.map_host_memory = false;
  device.prohibited = true;
  device.watchdog = true;
  const Problems problems = device_problems(asking(0, 2048, 0), device);
  INFO(lines(problems));
  CHECK(problems.size() == 7);
  for (const char* const said : {"7.0: Gyre needs 7.5", "COOPERATIVE_LAUNCH", "CAN_MAP_HOST_MEMORY",
                                 "prohibited", "KERNEL_EXEC_TIMEOUT", "2048", "grid of 0 blocks"}) {
    CHECK(says(problems, {said}));
  }
  CHECK_FALSE(can_load_kernels(device));
  CHECK(can_load_kernels(h200()));
}

TEST_CASE("too many registers are refused with their limit") {
  KernelLimits kernel = small_kernel();
  kernel.threads_a_block = 512;
  kernel.registers = 128;
  CHECK(says(kernel_problems(asking(1, 1024, 0), h200(), kernel),
             {"1024 threads", "128 registers a thread allow 512"}));
}

TEST_CASE("shared memory is held against what a block may opt in to, and both numbers are said") {
  CHECK(kernel_problems(asking(1, 32, 49152), h200(), small_kernel()).empty());
  CHECK(needs_opt_in(asking(1, 32, 49152), h200(), 48));
  CHECK_FALSE(needs_opt_in(asking(1, 32, 49104), h200(), 48));
  CHECK(kernel_problems(asking(1, 32, 232400), h200(), small_kernel()).empty());
  const Problems problems = kernel_problems(asking(1, 32, 232401), h200(), small_kernel());
  REQUIRE(problems.size() == 1);
  INFO(problems[0]);
  CHECK(
      says(problems, {"232449 bytes", "232401 dynamic", "48 static", "232448", "49152", "PER_BLOCK_OPTIN"}));
  // More than 32 bits can count.
  CHECK(kernel_problems(asking(1, 32, 0xffffffff), h200(), small_kernel()).size() == 1);
}

TEST_CASE("clusters are held against the device, the portable size, the grid and what can be resident") {
  DeviceLimits ampere = h200();
  ampere.cluster_launch = false;
  CHECK(says(device_problems(asking(4, 32, 0, 2), ampere), {"clusters of 2", "CLUSTER_LAUNCH"}));
  CHECK(says(device_problems(asking(32, 32, 0, 16), h200()), {"clusters of 16", "at most 8"}));
  CHECK(
      says(device_problems(asking(10, 32, 0, 4), h200()), {"10 blocks in clusters of 4", "12 is the next"}));
  CHECK(says(device_problems(asking(1, 32, 0, 0), h200()), {"clusters of 0"}));
  CHECK(device_problems(asking(12, 32, 0, 4), h200()).empty());
  KernelLimits kernel = small_kernel();
  kernel.clusters = 100;
  kernel.clusters_known = true;
  CHECK(kernel_problems(asking(800, 32, 0, 8), h200(), kernel).empty());
  CHECK(says(kernel_problems(asking(808, 32, 0, 8), h200(), kernel),
             {"101 clusters of 8", "100 can be resident", "cuOccupancyMaxActiveClusters"}));
  kernel.clusters_known = false;
  CHECK(kernel_problems(asking(808, 32, 0, 8), h200(), kernel).empty());
}

TEST_CASE("a region larger than the host's memory, and more than the device has, are refused with numbers") {
  LaunchRequest request = asking(1, 32, 0);
  request.region_bytes = 8'000'000'001;
  request.device_bytes = 150'000'000'001;
  const HostMemory host{8'000'000'000, "physical memory"};
  const Problems problems = memory_problems(request, h200(), host);
  CHECK(problems.size() == 2);
  CHECK(says(problems, {"8000000001", "8000000000", "physical memory", "--arena-bytes"}));
  CHECK(says(problems, {"150000000001", "150000000000", "cuDeviceTotalMem"}));
  request.region_bytes = 8'000'000'000;
  request.device_bytes = 150'000'000'000;
  CHECK(memory_problems(request, h200(), host).empty());
}

TEST_CASE("wrong in every way is said in one go") {
  LaunchRequest request = asking(2001, 2048, 300000, 4);
  request.region_bytes = uint64_t(1) << 50;
  KernelLimits kernel = small_kernel();
  const Problems problems = launch_problems(request, h200(), {1 << 30, "physical memory"}, &kernel);
  INFO(lines(problems));
  CHECK(problems.size() == 4);
  CHECK(says(problems, {"2048 threads"}));
  CHECK(says(problems, {"2001 blocks in clusters of 4"}));
  CHECK(says(problems, {"1125899906842624", "1073741824"}));
  CHECK(says(problems, {"300048 bytes of shared memory"}));
}

TEST_CASE("a block a multiprocessor is as many blocks as the device has of them") {
  LaunchRequest request = asking(7, 32, 0);
  CHECK(on_device(request, h200()).grid == 7);
  request.block_a_multiprocessor = true;
  CHECK(on_device(request, h200()).grid == 132);
}

TEST_CASE("what would fit is said for the next block that the device can run") {
  CHECK(with_possible_block(asking(1, 1, 0), h200()).block == 32);
  CHECK(with_possible_block(asking(1, 0, 0), h200()).block == 32);
  CHECK(with_possible_block(asking(1, 33, 0), h200()).block == 64);
  CHECK(with_possible_block(asking(1, 256, 0), h200()).block == 256);
  CHECK(with_possible_block(asking(1, 0xffffffff, 0), h200()).block == 1024);
  const auto fits = what_fits(asking(5000, 256, 768), h200(), small_kernel());
  CHECK(says(fits, {"at most 1056 blocks of 256 threads", "768 bytes"}));
  CHECK(says(fits, {"blocks of 32 to 1024 threads"}));
  CHECK(says(fits, {"at most 232400 bytes of dynamic shared memory"}));
}

TEST_CASE("what other kernels of the process hold is not there for one more") {
  DeviceLimits device = h200();
  device.threads_a_multiprocessor = 2048;
  device.blocks_a_multiprocessor = 32;
  device.registers_a_multiprocessor = 65536;
  device.shared_bytes_a_multiprocessor = 233472;
  device.shared_bytes_reserved_a_block = 1024;
  KernelLimits kernel = small_kernel();
  kernel.blocks_a_multiprocessor = 32;
  const LaunchRequest warps = asking(32 * 132, 32, 768);
  CHECK(resident_beside(warps, device, kernel, {}) == 32 * 132);
  CHECK(kernel_problems(warps, device, kernel).empty());
  // Each block of one warp has a place of its own.
  CHECK(resident_beside(warps, device, kernel, {{1, 32, 64, 816}}) == 32 * 132 - 1);
  CHECK(resident_beside(warps, device, kernel, {{132, 32, 64, 816}}) == 31 * 132);
  CHECK(resident_beside(warps, device, kernel, {{133, 32, 64, 816}}) == 31 * 132 - 1);
  // Threads, registers and shared memory, each where it is the scarcest.
  CHECK(resident_beside(asking(1, 1024, 0), device, small_kernel(), {{132, 1056, 8, 0}}) == 0);
  CHECK(resident_beside(asking(1, 512, 0), device, small_kernel(), {{132, 256, 128, 0}}) == 132);
  CHECK(resident_beside(asking(1, 32, 32 << 10), device, small_kernel(), {{132, 32, 64, 200 << 10}}) == 0);
  CHECK(resident_beside(asking(1, 32, 16 << 10), device, small_kernel(), {{132, 32, 64, 200 << 10}}) == 132);
  // Two with a block each: they may be on one multiprocessor, or on two.
  const Others two = {{1, 32, 64, 816}, {1, 32, 64, 816}};
  CHECK(resident_beside(warps, device, kernel, two) == 32 * 132 - 4);
  const Problems problems = kernel_problems(warps, device, kernel, two);
  REQUIRE(problems.size() == 1);
  INFO(problems[0]);
  CHECK(says(problems,
             {"a grid of 4224 blocks: 4220 of the 4224 blocks of 32 threads", "beside the 2 blocks"}));
  // More than can be resident without others is said as that alone.
  CHECK(says(kernel_problems(asking(32 * 132 + 1, 32, 768), device, kernel, two),
             {"4225 blocks: 4224 blocks"}));
  // Of a device that does not tell nothing is known.
  CHECK(resident_beside(warps, h200(), kernel, two) == 32 * 132);
}
