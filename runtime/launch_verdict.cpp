#include <fmt/format.h>
#include <gyre/runtime/core/engine.hpp>
#include <gyre/runtime/cpu/engine.hpp>
#include <gyre/runtime/launch_verdict.hpp>

#include <sstream>

#if defined(GYRE_WITH_CUDA)
#include <gyre/runtime/cuda/verdict.hpp>
#endif

namespace gyre {

namespace {

void add_lines(std::vector<std::string>& to, const std::string& text) {
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos) to.push_back(line.substr(begin));
  }
}

void check_cuda(const ActorSet& actors, const Options& options, const LaunchPlan& plan,
                LaunchVerdict& verdict) {
#if defined(GYRE_WITH_CUDA)
  add_lines(verdict.problems, cuda::grid_problem(actors, options));
  cuda::LaunchRequest request = cuda::request_of(actors, options);
  request.cluster = plan.cluster;
  request.dynamic_shared_bytes = plan.dynamic_shared_bytes.value_or(request.dynamic_shared_bytes);
  cuda::check_launch(cuda::compiler_of(actors), request, options.device, plan.architecture, verdict);
#else
  (void)actors, (void)options, (void)plan;
  verdict.engine_missing = true;
  verdict.problems.push_back(
      "this Gyre was built without the CUDA toolkit; install the toolkit (12 or 13) and build again, or use "
      "--engine cpu");
#endif
}

}  // namespace

LaunchVerdict check_launch(const ActorSet& actors, const Options& options, const LaunchPlan& plan) {
  LaunchVerdict verdict;
  verdict.engine = chosen_engine(options);
  verdict.grid = options.workers;
  verdict.block = options.block;
  add_lines(verdict.problems, options.problems() + actors.problems(options));
  if (verdict.engine == EngineKind::cuda) {
    check_cuda(actors, options, plan, verdict);
    return verdict;
  }
  verdict.device = "CPU";
  verdict.region_bytes = options.region_layout(actors.handlers().size()).region_bytes();
  add_lines(verdict.problems, CpuEngine::problems(options));
  return verdict;
}

std::string LaunchVerdict::text() const {
  std::string text = device.empty() ? "no device" : device;
  if (engine == EngineKind::cuda) {
    text += fmt::format(": a grid of {} blocks of {} threads, {} bytes of dynamic shared memory a block",
                        grid, block, dynamic_shared_bytes);
    if (cluster > 1) text += fmt::format(", clusters of {}", cluster);
  } else {
    text += fmt::format(": {} worker threads", grid);
  }
  text += fmt::format(", region of {} bytes\n", region_bytes);
  if (kernel) {
    text += fmt::format(
        "  kernel {}\n  compiled for compute capability {}.{}: {} registers and {} bytes of "
        "local memory a thread, {} bytes of static shared memory a block\n",
        kernel->name, kernel->architecture / 10, kernel->architecture % 10, kernel->registers,
        kernel->local_bytes, kernel->static_shared_bytes);
  }
  const auto list = [&text](std::string_view heading, const std::vector<std::string>& entries) {
    if (entries.empty()) return;
    text += fmt::format("{}:\n", heading);
    for (const std::string& entry : entries) text += fmt::format("  {}\n", entry);
  };
  list("wrong", problems);
  list("would fit", fits);
  list("not checked", unchecked);
  text += ok() ? (unchecked.empty() ? "verdict: it can be launched\n"
                                    : "verdict: nothing wrong as far as it could be checked\n")
               : "verdict: it cannot be launched\n";
  return text;
}

}  // namespace gyre
