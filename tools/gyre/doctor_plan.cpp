#include <fmt/format.h>
#include <gyre/bridge/error.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <filesystem>

#include "doctor.hpp"

#if defined(GYRE_WITH_CUDA)
#include <gyre/runtime/cuda/verdict.hpp>
#endif

namespace gyre::tools {

#if defined(GYRE_WITH_CUDA)

namespace {

// The kernel of the actors of a header that is not built into this program.
cuda::KernelCompiler compiler_of_file(const Plan& plan) {
  namespace fs = std::filesystem;
  const fs::path file = fs::absolute(plan.actors_file);
  if (!fs::is_regular_file(file)) {
    throw BadOptions(
        fmt::format("reading the actors of --actors {}: there is no such file", plan.actors_file));
  }
  const std::string text =
      fmt::format("#include <gyre/device/kernel.hpp>\n#include \"{}\"\n", file.filename().string());
  const std::string kernel = fmt::format("gyre::worker_kernel<{}>", plan.types);
  std::vector<std::string> folders = {"--include-path=" + file.parent_path().string()};
  for (const std::string& dir : plan.include_dirs) folders.push_back("--include-path=" + dir);
  return {kernel, [text, kernel, folders](int architecture, uint32_t block) {
            const ActorSet builtin = builtin_actors();  // for Gyre's own headers
            std::vector<std::string> options = cuda::program_of(builtin, architecture, block).options;
            options.insert(options.end(), folders.begin(), folders.end());
            options.push_back("--ptxas-options=-v");
            return cuda::compile_text(text, kernel, architecture, options, builtin.sources().files);
          }};
}

}  // namespace

LaunchVerdict judge(const Plan& plan) {
  const ActorSet builtin = builtin_actors();
  Options options;
  options.engine = EngineKind::cuda;
  options.device = plan.device;
  options.workers = plan.grid;
  options.block = plan.block;
  cuda::LaunchRequest request = cuda::request_of(builtin, options);
  request.cluster = plan.cluster;
  request.dynamic_shared_bytes = plan.shared.value_or(request.dynamic_shared_bytes);
  LaunchVerdict verdict;
  verdict.engine = EngineKind::cuda;
  cuda::check_launch(plan.actors_file.empty() ? cuda::compiler_of(builtin) : compiler_of_file(plan), request,
                     plan.device, plan.architecture, verdict);
  return verdict;
}

#else

LaunchVerdict judge(const Plan& plan) {
  return check_launch(builtin_actors(),
                      {.engine = EngineKind::cuda, .workers = plan.grid, .block = plan.block},
                      {plan.cluster, plan.shared, plan.architecture});
}

#endif

}  // namespace gyre::tools
