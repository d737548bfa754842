#include <fmt/format.h>

#include "doctor.hpp"
#include "nvml.hpp"
#include "patterns.hpp"

#if defined(GYRE_WITH_CUDA)
#include <gyre/runtime/c/gyre.h>
#include <unistd.h>
#include <gyre/bridge/cuda/bar.hpp>
#include <gyre/bridge/cuda/device_lease.hpp>
#include <gyre/bridge/cuda/pinned.hpp>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/ahead.hpp>
#include <gyre/runtime/cuda/arguments.hpp>
#include <gyre/runtime/cuda/loaded_kernel.hpp>
#include <gyre/runtime/cuda/toolkit.hpp>
#include <gyre/runtime/process/engine_process.hpp>
#include <gyre/runtime/process/mps.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#endif

namespace gyre::tools {

#if defined(GYRE_WITH_CUDA)

namespace {

constexpr uint64_t mebibyte = uint64_t(1) << 20;

std::string version_text(int cuda_version) {
  return fmt::format("{}.{}", cuda_version / 1000, cuda_version % 1000 / 10);
}

Finding check_kernel_module() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  const Found version = search(line, "[0-9]+[.][0-9.]*[0-9]");
  if (version.empty()) {
    return {"kernel module", Health::bad,
            "/proc/driver/nvidia/version is not there: the NVIDIA driver is not loaded",
            "install NVIDIA's driver (525 or later) on a machine with an NVIDIA GPU; in a container, pass "
            "GPUs in"};
  }
  return {"kernel module", Health::ok, fmt::format("NVIDIA driver {}", version[0]), ""};
}

Finding check_device_files() {
  namespace fs = std::filesystem;
  size_t gpus = 0;
  bool control = false;
  std::string closed;
  std::error_code failed;
  for (fs::directory_iterator entry("/dev", failed), end; !failed && entry != end; entry.increment(failed)) {
    const std::string file = entry->path().filename().string();
    const bool gpu = !match(file, "nvidia[0-9]+").empty();
    if (!gpu && file != "nvidiactl" && file != "nvidia-uvm") continue;
    gpus += gpu;
    control = control || file == "nvidiactl";
    if (access(entry->path().c_str(), R_OK | W_OK) != 0) closed += fmt::format(" {}", entry->path().string());
  }
  if (gpus == 0 || !control) {
    return {"device files", Health::bad,
            fmt::format("/dev has {} of nvidia0, nvidia1, …, and {} nvidiactl", gpus, control ? "has" : "no"),
            "load the driver (nvidia-modprobe); in a container, pass GPUs in"};
  }
  if (!closed.empty()) {
    return {"device files", Health::bad,
            fmt::format("not open to this user for reading and writing:{}", closed),
            "ask for the group that they belong to (video, render), or chmod 666 them"};
  }
  return {"device files", Health::ok, fmt::format("{} GPUs in /dev, open to this user", gpus), ""};
}

Finding check_nvrtc(int driver_version) {
  try {
    const cuda::NvrtcVersion version = cuda::nvrtc_version();
    const cuda::ToolkitHeaders headers = cuda::find_toolkit_headers(version.major);
    const std::string found = fmt::format(
        "NVRTC {}.{}; Gyre was built with the headers of CUDA {}; {}", version.major, version.minor,
        version_text(CUDA_VERSION),
        headers.folders.empty()
            ? fmt::format(
                  "actors that include the toolkit do not compile: no headers of CUDA {} in $CUDA_HOME, "
                  "/usr/local/cuda or $GYRE_CUDA_PATH",
                  version.major)
            : fmt::format("actors find those of {} in {}", headers.version, headers.folders.front()));
    if (driver_version != 0 && version.major > driver_version / 1000) {
      return {"toolkit", Health::warn, found,
              fmt::format(
                  "the driver is of CUDA {} and may not load what a newer NVRTC compiles: install a newer "
                  "driver, or an older toolkit (12.3 at least)",
                  version_text(driver_version))};
    }
    return {"toolkit", Health::ok, found, ""};
  } catch (const Error& error) {
    const std::string advice = "install CUDA toolkit 12.3 or later (package cuda-nvrtc)";
    if (builtin_actors().sources().ahead.empty()) return {"toolkit", Health::bad, error.what(), advice};
    return {"toolkit", Health::warn, error.what(), advice + "; without it only actors compiled ahead launch"};
  }
}

// Whether the built-in actors' first launch on a device compiles them.
Finding check_ahead(const std::string& what, int architecture, bool compiler) {
  const ActorSet actors = builtin_actors();
  if (cuda::find_ahead(actors, architecture, Options{}.block))
    return {what, Health::ok, "the built-in ones were compiled ahead: a launch needs no NVRTC", ""};
  const auto& ahead = actors.sources().ahead;
  const std::string found = fmt::format("the built-in ones were not compiled ahead for this device{}{}",
                                        ahead.empty() ? "" : ", but ", cuda::list_of_ahead(ahead));
  if (compiler) return {what, Health::ok, found + ": their first launch compiles them", ""};
  return {what, Health::bad, found + ", and NVRTC is not here",
          fmt::format("install NVRTC, or build Gyre with -DGYRE_ARCHITECTURES={}", architecture)};
}

// Whether kernels of several processes run at the same time.
Finding check_mps() {
  const std::string control = process::mps_control();
  if (process::mps_runs()) {
    return {"MPS", Health::ok,
            fmt::format("runs ({}): an engine process and the kernels of others do not slow each other down, "
                        "if --multiprocessors leaves them room; a device fault of one ends them all",
                        control),
            ""};
  }
  return {"MPS", Health::ok,
          fmt::format("does not run ({}): an engine process takes turns with other processes on the whole "
                      "device, and a device fault ends one process alone",
                      control),
          "nvidia-cuda-mps-control -d starts it, before the processes that are to use it"};
}

// Starts one, which makes no CUDA call.
Finding check_engine_process() {
  try {
    const process::EngineProcess engine{Options{}.heartbeat_timeout};
    return {"gyre-engine", Health::ok, fmt::format("{}, of this Gyre ({})", engine.path(), GYRE_VERSION), ""};
  } catch (const Error& error) {
    return {"gyre-engine", Options{}.isolation == Isolation::process ? Health::bad : Health::warn,
            error.what(), "--isolation in_process works without it"};
  }
}

// Whether the fastest transport works: by making and testing a little of its memory, without a kernel.
Finding check_transport(const cuda::Driver& driver, int ordinal) {
  const std::string what = fmt::format("device {} transport", ordinal);
  try {
    const cuda::Context context(driver, ordinal);
    const cuda::BarMemoryHere bar(context, mebibyte);
    const bool whole_lines = bar.memory.inbound().store == LineStore::movdir64b;
    return {what, Health::ok,
            fmt::format("bar: yes, {} MiB of the device's memory can be written by the host, {}",
                        bar.memory.heap_bytes() / mebibyte,
                        whole_lines ? "64 bytes at once (MOVDIR64B)" : "16 bytes at once"),
            ""};
  } catch (const Error& error) {
    return {what, Health::warn, fmt::format("bar: no, {}", error.what()),
            "mend that for lower latency; --transport auto uses pinned memory until then"};
  }
}

void check_device(const cuda::Driver& driver, int ordinal, bool compiler, Findings& findings, bool& usable) {
  const std::string what = fmt::format("device {}", ordinal);
  try {
    const cuda::DeviceLimits limits = cuda::read_limits(driver, ordinal);
    const cuda::Problems problems = cuda::device_problems({}, limits);
    const std::string found = fmt::format("{}, compute capability {}.{}, {} multiprocessors, {} MiB",
                                          limits.name, limits.compute_major, limits.compute_minor,
                                          limits.multiprocessors, limits.memory_bytes / mebibyte);
    if (problems.empty()) {
      findings.push_back({what, Health::ok, found, ""});
      findings.push_back(
          check_ahead(what + " actors", 10 * limits.compute_major + limits.compute_minor, compiler));
      if (findings.back().health != Health::bad) usable = true;
      findings.push_back(check_transport(driver, ordinal));
    } else {
      for (const std::string& problem : problems) {
        findings.push_back(
            {what, Health::bad, found + ": " + problem, "choose another --device, or --engine cpu"});
      }
    }
    const CUdevice device = cuda::find_device(driver, ordinal);
    int mode = 0;
    driver.check(driver.cuDeviceGetAttribute(&mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, device),
                 "reading the compute mode");
    if (mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS) {
      findings.push_back({what + " compute mode", Health::warn, "exclusive: one process at a time",
                          "another process on it makes the launch fail; nvidia-smi -c DEFAULT changes it"});
    } else if (mode == CU_COMPUTEMODE_DEFAULT) {
      findings.push_back({what + " compute mode", Health::ok, "default: shared", ""});
    }  // prohibited is among the problems
    if (!limits.watchdog) findings.push_back({what + " watchdog", Health::ok, "none: kernels may stay", ""});
    char bus_id[32] = {};
    driver.check(driver.cuDeviceGetPCIBusId(bus_id, int(sizeof bus_id), device), "reading the PCI bus id");
    const auto use = gpu_use(bus_id);
    if (!use) {
      findings.push_back({what + " use", Health::unknown,
                          "NVML (libnvidia-ml.so.1) is not here, or does not tell",
                          "look at nvidia-smi for other processes"});
      return;
    }
    const std::string memory =
        fmt::format("{} MiB of {} MiB free", use->free_bytes / mebibyte, use->total_bytes / mebibyte);
    if (use->processes > 0) {
      findings.push_back(
          {what + " use", Health::warn,
           fmt::format("{} other processes compute on it; {}", use->processes, memory),
           process::mps_runs()
               ? "under MPS they run beside Gyre's workers if --multiprocessors leaves them room"
               : "they take turns with Gyre's workers: expect slower replies, start MPS, or end "
                 "them (nvidia-smi lists them)"});
    } else {
      findings.push_back({what + " use", Health::ok, "no other process computes on it; " + memory, ""});
    }
  } catch (const Error& error) {
    findings.push_back({what, Health::bad, error.what(), "choose another --device, or --engine cpu"});
  }
}

}  // namespace

Findings check_cuda(bool& usable) {
  Findings findings = {check_kernel_module(), check_device_files()};
  usable = false;
  std::optional<cuda::Driver> driver;
  int version = 0, devices = 0;
  try {
    driver = cuda::Driver::load();
    driver->check(driver->cuDriverGetVersion(&version), "reading the driver's CUDA version");
    driver->check(driver->cuDeviceGetCount(&devices), "counting devices");
    findings.push_back({"driver", Health::ok, fmt::format("libcuda of CUDA {}", version_text(version)), ""});
  } catch (const Error& error) {
    driver.reset();
    findings.push_back({"driver", Health::bad, error.what(), "until then --engine cpu works"});
  }
  findings.push_back(check_nvrtc(version));
  const bool compiler = cuda::nvrtc_available();
  findings.push_back(check_engine_process());
  findings.push_back(check_mps());
  if (!driver) return findings;
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string of = visible == nullptr ? "" : fmt::format(", of CUDA_VISIBLE_DEVICES={}", visible);
  findings.push_back({"devices", devices > 0 ? Health::ok : Health::bad, fmt::format("{}{}", devices, of),
                      devices > 0 ? "" : "check nvidia-smi and CUDA_VISIBLE_DEVICES"});
  for (int ordinal = 0; ordinal < devices; ++ordinal)
    check_device(*driver, ordinal, compiler, findings, usable);
  return findings;
}

Finding check_smallest_kernel(int ordinal) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds time_limit(5);
  constexpr uint32_t answer = 0x67797265;
  constexpr const char* what = "smallest kernel";
  try {
    const cuda::Driver driver = cuda::Driver::load();
    const cuda::DeviceLimits limits = cuda::read_limits(driver, ordinal);
    cuda::DeviceLease lease(ordinal);
    const int architecture = 10 * limits.compute_major + limits.compute_minor;
    const cuda::CompiledKernel compiled = cuda::compile_text(
        "__global__ void smallest(volatile unsigned int* word, unsigned int answer) {\n"
        "  if (threadIdx.x == 31) *word = answer;\n"
        "}\n",
        "smallest", architecture, {fmt::format("--gpu-architecture=sm_{}", architecture)}, {});
    // Left behind where the kernel does not end.
    auto context = std::make_unique<cuda::Context>(driver, ordinal, lease, cuda::ContextKind::own);
    auto kernel = std::make_unique<cuda::LoadedKernel>(*context, compiled);
    auto word = std::make_unique<cuda::PinnedRegion>(*context, 4096, 4096);
    const cuda::Context::Current current(*context);
    CUstream stream = nullptr;
    driver.check(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "creating a stream");
    cuda::ArgumentBlock arguments;
    arguments.push_pointer("word", word->device_address(), sizeof(uint32_t));
    arguments.push("answer", answer);
    arguments.check(driver, kernel->function(), "the smallest kernel");
    const auto begin = Clock::now();
    driver.check(driver.cuLaunchCooperativeKernel(kernel->function(), 1, 1, 1, 32, 1, 1, 0, stream,
                                                  arguments.addresses()),
                 "launching one block of 32 threads");
    CUresult result = CUDA_ERROR_NOT_READY;
    while ((result = driver.cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY &&
           Clock::now() - begin < time_limit) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    if (result == CUDA_ERROR_NOT_READY) {
      word->leak(), kernel->leak(), context->leak(), lease.keep();
      (void)word.release(), (void)kernel.release();
      return {
          what, Health::bad,
          fmt::format("one block of 32 threads did not end within {} s", time_limit.count()),
          "another process may keep the GPU (nvidia-smi); look into the system's log (dmesg) for Xid lines"};
    }
    driver.check(result, "running one block of 32 threads");
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    const uint32_t seen = std::atomic_ref(*static_cast<uint32_t*>(word->host_address())).load();
    driver.check(driver.cuStreamDestroy(stream), "ending the stream of the test kernel");
    if (seen != answer) {
      return {what, Health::bad,
              fmt::format("it ended, and wrote {:#x} instead of {:#x} to pinned memory", seen, answer),
              "mapped host memory does not work here: look into the system's log (dmesg), and at the IOMMU"};
    }
    return {what, Health::ok,
            fmt::format(
                "compiled in {:.0f} ms; one block of 32 threads wrote its word to pinned memory, {:.2f} ms "
                "from launch to end, on device {} ({})",
                compiled.compile_ms, ms, ordinal, limits.name),
            ""};
  } catch (const Error& error) {
    return {what, Health::bad, error.what(), "mend that first; --engine cpu works without a GPU"};
  }
}

#else

namespace {
constexpr const char* build_again = "install the toolkit (12.3 or later) and build again; --engine cpu works";
}

Findings check_cuda(bool& usable) {
  usable = false;
  return {{"toolkit", Health::bad, "this Gyre was built without the CUDA toolkit", build_again}};
}

Finding check_smallest_kernel(int) {
  return {"smallest kernel", Health::bad, "this Gyre was built without the CUDA toolkit", build_again};
}

#endif

}  // namespace gyre::tools
