#include <fmt/format.h>
#include <gyre/runtime/core/engine.hpp>
#include <gyre/runtime/cpu/engine.hpp>
#include <gyre/runtime/errors.hpp>

#include <atomic>

#if defined(GYRE_WITH_CUDA)
#include <gyre/runtime/cuda/engine.hpp>
#include <gyre/runtime/cuda/loaded_kernel.hpp>
#include <gyre/runtime/process/mps.hpp>
#include <gyre/runtime/process/process_engine.hpp>
#endif

namespace gyre {

namespace {

#if defined(GYRE_WITH_CUDA)
// A forked child that cannot use the parent's CUDA must not take that for a machine without a GPU.
bool cuda_device_present(const Options& options) {
  if (options.isolation == Isolation::process) {
    // Devices stay, and it takes an engine process to look for them. A number alone: relaxed.
    static std::atomic<bool> found{false};
    if (!found.load(std::memory_order_relaxed) && cuda::Driver::library_present())
      found.store(process::device_count(options) > 0, std::memory_order_relaxed);
    return found.load(std::memory_order_relaxed);
  }
  cuda::Driver::refuse_after_fork();
  return cuda::Driver::device_count() > 0;
}
std::unique_ptr<Engine> make_cuda_engine(const ActorSet& actors, const Options& options) {
  if (options.isolation == Isolation::process)
    return std::make_unique<process::ProcessEngine>(actors, options);
  return std::make_unique<cuda::CudaEngine>(actors, options);
}
std::string grid_problem(const ActorSet& actors, const Options& options) {
  return cuda::grid_problem(actors, options);
}
std::string multiprocessors_problem(const Options& options) {
  if (options.multiprocessors == 0 || options.multiprocessors == all_multiprocessors) return {};
  if (options.isolation == Isolation::in_process) {
    return fmt::format(
        "--multiprocessors {}: only an engine process can have a part of the device, under MPS; use "
        "--isolation process, or --multiprocessors all",
        options.multiprocessors);
  }
  if (process::mps_runs()) return {};
  return fmt::format(
      "--multiprocessors {}: without MPS processes take turns on the whole device, and nothing listens at "
      "{}; start MPS (nvidia-cuda-mps-control -d), or use --multiprocessors all",
      options.multiprocessors, process::mps_control());
}
#else
std::string multiprocessors_problem(const Options&) { return {}; }
std::string grid_problem(const ActorSet&, const Options&) { return {}; }
bool cuda_device_present(const Options&) { return false; }
std::unique_ptr<Engine> make_cuda_engine(const ActorSet&, const Options&) {
  throw EngineUnavailable(
      "launching on CUDA: this Gyre was built without the CUDA toolkit; install the toolkit (12 or 13) and "
      "build again, "
      "or use --engine cpu");
}
#endif

std::string transport_problem(const Options& options, bool on_cuda) {
  const TransportKind transport = options.transport;
  if (on_cuda && transport == TransportKind::unified && options.isolation == Isolation::process) {
    return "--transport unified: managed memory cannot be shared with the engine's process; use --transport "
           "pinned, or --isolation in_process";
  }
  if (transport == TransportKind::automatic || (transport == TransportKind::heap) != on_cuda) return {};
  if (!detail::is_named(transport)) return {};  // Options::problems() says it
  if (on_cuda) {
    return fmt::format("--transport {}: the CUDA engine's transports are bar, pinned and unified",
                       name(transport));
  }
  return fmt::format("--transport {}: the CPU engine's only transport is heap", name(transport));
}

std::string context_problem(const Options& options, bool on_cuda) {
  if (!on_cuda || options.context != CudaContext::given || options.isolation != Isolation::process) return {};
  return "--context given: a context of this process is of no use to the engine's; use --isolation "
         "in_process";
}

std::string stall_problem(const Options& options, bool on_cuda) {
  if (options.stall_after.count() == 0 || (on_cuda && options.isolation == Isolation::process)) return {};
  return fmt::format(
      "--stall-after {}: an endless handler can be ended only with its process; use --isolation process",
      options.stall_after.count());
}

// Lines of what the engine says of the options, without its device.
std::string engine_problems(const ActorSet& actors, const Options& options, bool on_cuda) {
  std::string problems;
  for (const std::string& problem :
       {transport_problem(options, on_cuda), context_problem(options, on_cuda),
        on_cuda ? multiprocessors_problem(options) : std::string(), stall_problem(options, on_cuda),
        on_cuda ? grid_problem(actors, options) : CpuEngine::problems(options)}) {
    if (!problem.empty()) problems += "  " + problem + "\n";
  }
  return problems;
}

}  // namespace

#if defined(GYRE_WITH_CUDA)
std::string device_problems(const ActorSet& actors, const Options& options) {
  try {
    if (options.isolation == Isolation::process) return process::device_problems(actors, options);
    const cuda::Driver driver = cuda::Driver::load();
    const cuda::DeviceLimits limits = cuda::read_limits(driver, options.device);
    const cuda::LaunchRequest request = cuda::on_device(cuda::request_of(actors, options), limits);
    return cuda::lines(cuda::launch_problems(request, limits, cuda::host_memory(), nullptr));
  } catch (const Error& error) {
    return cuda::lines({error.what()});
  }
}
#else
std::string device_problems(const ActorSet&, const Options&) { return {}; }
#endif

std::string launch_problems(const ActorSet& actors, const Options& options) {
  std::string problems = options.problems() + actors.problems(options);
  try {
    const bool on_cuda = chosen_engine(options) == EngineKind::cuda;
    problems += engine_problems(actors, options, on_cuda);
    if (on_cuda && !problems.empty()) problems += device_problems(actors, options);
  } catch (
      const Error& error) {  // which engine it would be is not known; making it says why, if all is right
    if (!problems.empty()) problems += "  " + std::string(error.what()) + "\n";
  }
  return problems;
}

EngineKind chosen_engine(const Options& options) {
  if (options.engine != EngineKind::automatic) return options.engine;
  return cuda_device_present(options) ? EngineKind::cuda : EngineKind::cpu;
}

std::unique_ptr<Engine> make_engine(const ActorSet& actors, const Options& options) {
  const bool on_cuda = chosen_engine(options) == EngineKind::cuda;
  for (const std::string& problem : {transport_problem(options, on_cuda), context_problem(options, on_cuda),
                                     on_cuda ? multiprocessors_problem(options) : std::string()}) {
    if (!problem.empty())
      throw BadOptions("launching a runtime: these options are wrong:\n  " + problem + "\n");
  }
  if (on_cuda) return make_cuda_engine(actors, options);
  return std::make_unique<CpuEngine>(actors, options);
}

ProgramStreams& Engine::program_streams() {
  throw Error(
      "ordering an ask and a CUDA stream: the workers use no CUDA device; synchronise the stream yourself, "
      "or "
      "launch with --engine cuda");
}

}  // namespace gyre
