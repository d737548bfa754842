#include <fmt/format.h>
#include <gyre/runtime/cuda/ahead.hpp>
#include <gyre/runtime/cuda/verdict.hpp>

#include <charconv>
#include <string_view>

namespace gyre::cuda {

namespace {

// A device of that architecture as far as its number tells: for what no device is needed to refuse.
DeviceLimits limits_of(int architecture) {
  DeviceLimits limits;
  limits.name = fmt::format("compute capability {}.{}", architecture / 10, architecture % 10);
  limits.compute_major = architecture / 10;
  limits.compute_minor = architecture % 10;
  limits.cooperative_launch = limits.map_host_memory = true;
  limits.threads_a_block = 1024;
  limits.cluster_launch = architecture >= 90;
  limits.memory_bytes = ~uint64_t(0);
  return limits;
}

KernelFacts facts_of(const std::string& name, int architecture, const KernelLimits& limits) {
  KernelFacts facts;
  facts.name = name;
  facts.architecture = architecture;
  facts.registers = limits.registers;
  facts.static_shared_bytes = limits.static_shared_bytes;
  facts.local_bytes = limits.local_bytes;
  return facts;
}

void add(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// The first number between `before` and `after`. Without std::regex, which compiles for seconds.
std::optional<uint32_t> number_between(std::string_view text, std::string_view before,
                                       std::string_view after) {
  for (size_t end = text.find(after); end != text.npos; end = text.find(after, end + 1)) {
    size_t begin = end;
    while (begin != 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
    uint32_t number = 0;
    if (std::from_chars(text.data() + begin, text.data() + end, number).ec != std::errc()) continue;
    if (text.substr(0, begin).ends_with(before)) return number;
  }
  return std::nullopt;
}

void check_without_device(const KernelCompiler& compiler, const LaunchRequest& asked, int architecture,
                          LaunchVerdict& verdict) {
  verdict.unchecked.push_back(
      "what the device allows, how many blocks can be resident, shared memory: there is no device here");
  constexpr int with_clusters = 90;
  const DeviceLimits limits = limits_of(architecture == 0 ? with_clusters : architecture);
  const LaunchRequest request = on_device(asked, limits);
  add(verdict.problems, device_problems(request, limits));
  add(verdict.problems, memory_problems(request, limits, host_memory()));
  if (architecture == 0) {
    verdict.unchecked.push_back("the kernel: say for which --architecture to compile it");
    return;
  }
  const CompiledKernel kernel = compiler.compile(architecture, with_possible_block(request, limits).block);
  if (const auto reported = reported_limits(kernel.log)) {
    verdict.kernel = facts_of(compiler.name, architecture, *reported);
  } else {
    verdict.unchecked.push_back("registers: the compiler did not report them");
  }
}

void check_on_device(const Driver& driver, const KernelCompiler& compiler, const LaunchRequest& asked,
                     int ordinal, LaunchVerdict& verdict) {
  const DeviceLimits limits = read_limits(driver, ordinal);
  const LaunchRequest request = on_device(asked, limits);
  verdict.grid = request.grid;
  const int architecture = 10 * limits.compute_major + limits.compute_minor;
  verdict.device = fmt::format("{}, compute capability {}.{}, {} multiprocessors", limits.name,
                               limits.compute_major, limits.compute_minor, limits.multiprocessors);
  const HostMemory host = host_memory();
  KernelLimits kernel_limits;
  const KernelLimits* kernel = nullptr;
  Others others;
  const LaunchRequest possible = with_possible_block(request, limits);
  try {
    if (can_load_kernels(limits)) {
      DeviceLease lease(ordinal);
      const CompiledKernel compiled = compiler.compile(architecture, possible.block);
      const Context context(driver, ordinal, lease, ContextKind::own);
      kernel_limits = LoadedKernel(context, compiled).limits(possible, limits);
      kernel = &kernel_limits;
      others = lease.others();
    } else {
      verdict.unchecked.push_back("the kernel: none can be loaded on this device");
    }
  } catch (const Error& error) {
    verdict.problems.push_back(error.what());
    verdict.unchecked.push_back("the kernel on the device: see what is wrong");
  }
  add(verdict.problems, launch_problems(request, limits, host, kernel, others));
  if (kernel == nullptr) return;
  verdict.kernel = facts_of(compiler.name, architecture, *kernel);
  verdict.kernel->blocks_a_multiprocessor = kernel->blocks_a_multiprocessor;
  verdict.kernel->max_grid = resident_blocks(limits, *kernel);
  verdict.fits = what_fits(possible, limits, *kernel);
  if (request.cluster > 1 && !kernel->clusters_known) {
    verdict.unchecked.push_back(
        "how many clusters can be resident: this driver, or this device, does not tell "
        "(cuOccupancyMaxActiveClusters)");
  }
}

}  // namespace

KernelCompiler compiler_of(const ActorSet& actors) {
  return {actors.kernel(), [actors](int architecture, uint32_t block) {
            try {
              Program program = program_of(actors, architecture, block);
              program.options.push_back("--ptxas-options=-v");
              return compile_text(program.text, actors.kernel(), architecture, program.options,
                                  actors.sources().files);
            } catch (const EngineUnavailable&) {  // a launch needs no NVRTC where one was compiled ahead
              if (auto kernel = find_ahead(actors, architecture, block)) return *std::move(kernel);
              throw;
            }
          }};
}

void check_launch(const KernelCompiler& compiler, const LaunchRequest& request, int ordinal, int architecture,
                  LaunchVerdict& verdict) {
  verdict.grid = request.grid;
  verdict.block = request.block;
  verdict.cluster = request.cluster;
  verdict.dynamic_shared_bytes = request.dynamic_shared_bytes;
  verdict.region_bytes = request.region_bytes;
  std::optional<Driver> driver;
  try {
    driver = Driver::load();
    find_device(*driver, ordinal);
  } catch (const EngineUnavailable& error) {
    driver.reset();
    verdict.engine_missing = architecture == 0;
    (architecture == 0 ? verdict.problems : verdict.unchecked).push_back(error.what());
  }
  try {
    if (driver) {
      check_on_device(*driver, compiler, request, ordinal, verdict);
    } else {
      check_without_device(compiler, request, architecture, verdict);
    }
  } catch (const EngineUnavailable& error) {
    verdict.engine_missing = true;
    verdict.problems.push_back(error.what());
  } catch (const Error& error) {
    verdict.problems.push_back(error.what());
  }
}

std::optional<KernelLimits> reported_limits(const std::string& log) {
  const auto registers = number_between(log, "Used ", " registers");
  if (!registers) return std::nullopt;
  KernelLimits limits;
  limits.registers = *registers;
  limits.static_shared_bytes =
      number_between(log, "", " bytes smem").value_or(0);  // absent where it uses none
  limits.local_bytes = number_between(log, "", " bytes stack frame").value_or(0);
  return limits;
}

}  // namespace gyre::cuda
