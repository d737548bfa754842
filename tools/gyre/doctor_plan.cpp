#include <gyre/runtime/builtin_actors.hpp>

#include "actor_file.hpp"
#include "doctor.hpp"

#if defined(GYRE_WITH_CUDA)
#include <gyre/runtime/cuda/verdict.hpp>
#endif

namespace gyre::tools {

namespace {

ActorSet actors_of(const Plan& plan) {
  if (plan.actors_file.empty()) return builtin_actors();
  return read_actors({plan.actors_file, plan.types, plan.include_dirs, plan.schemas}).actors;
}

}  // namespace

#if defined(GYRE_WITH_CUDA)

LaunchVerdict judge(const Plan& plan) {
  const ActorSet actors = actors_of(plan);
  Options options;
  options.engine = EngineKind::cuda;
  options.device = plan.device;
  options.workers = plan.grid;
  options.block = plan.block;
  cuda::LaunchRequest request = cuda::request_of(actors, options);
  request.cluster = plan.cluster;
  request.dynamic_shared_bytes = plan.shared.value_or(request.dynamic_shared_bytes);
  LaunchVerdict verdict;
  verdict.engine = EngineKind::cuda;
  cuda::check_launch(cuda::compiler_of(actors), request, plan.device, plan.architecture, verdict);
  return verdict;
}

#else

LaunchVerdict judge(const Plan& plan) {
  return check_launch(actors_of(plan),
                      {.engine = EngineKind::cuda, .workers = plan.grid, .block = plan.block},
                      {plan.cluster, plan.shared, plan.architecture});
}

#endif

}  // namespace gyre::tools
