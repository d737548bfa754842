#include <gyre/runtime/cuda/launch_check.hpp>

#include "support/catch.hpp"

using namespace gyre::cuda;

namespace {
const DeviceLimits h200{"NVIDIA H200", 9, 0, true, true, false, false, 1024, 132, 49152};
const KernelLimits small_kernel{1024, 64, 48, 8};
bool says(const std::string& problems, const std::string& what) {
  return problems.find(what) != std::string::npos;
}
}  // namespace

TEST_CASE("what fits is not complained about") {
  CHECK(device_problems({132, 256, 768}, h200).empty());
  CHECK(kernel_problems({8 * 132, 256, 768}, h200, small_kernel).empty());
}

TEST_CASE("one block above what can be resident is refused with all the numbers") {
  const std::string problems = kernel_problems({8 * 132 + 1, 256, 768}, h200, small_kernel);
  for (const char* const number :
       {"1057", "1056", "256", "8 a multiprocessor", "64 registers", "816 bytes", "132"}) {
    INFO(problems);
    CHECK(says(problems, number));
  }
}

TEST_CASE("2048 threads and 1 thread a block are refused, naming 1024 and 32") {
  CHECK(says(device_problems({1, 2048, 0}, h200), "the device allows 1024"));
  CHECK(says(device_problems({1, 1, 0}, h200), "multiple of 32"));
  CHECK(says(device_problems({1, 0, 0}, h200), "multiple of 32"));
}

TEST_CASE("a device that cannot keep a cooperative kernel is refused, all reasons at once") {
  DeviceLimits device = h200;
  device.compute_major = 7;
  device.compute_minor = 0;
  device.cooperative_launch = false;
  device.map_host_memory = false;
  device.prohibited = true;
  device.watchdog = true;
  const std::string problems = device_problems({0, 2048, 0}, device);
  for (const char* const said : {"7.0", "7.5", "COOPERATIVE_LAUNCH", "CAN_MAP_HOST_MEMORY", "prohibited",
                                 "KERNEL_EXEC_TIMEOUT", "2048", "0 workers"}) {
    INFO(problems);
    CHECK(says(problems, said));
  }
}

TEST_CASE("too many registers or too much shared memory are refused with their limits") {
  CHECK(says(kernel_problems({1, 1024, 0}, h200, {512, 128, 0, 1}), "128 registers a thread allow 512"));
  const std::string problems = kernel_problems({1, 32, 49152}, h200, small_kernel);
  INFO(problems);
  CHECK(says(problems, "49200 bytes of shared memory"));
  CHECK(says(problems, "the device allows 49152"));
}
