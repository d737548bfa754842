#include <gyre/runtime/cpu/engine.hpp>
#include <gyre/runtime/engine.hpp>
#include <gyre/runtime/errors.hpp>

#if defined(GYRE_WITH_CUDA)
#include <gyre/runtime/cuda/engine.hpp>
#endif

namespace gyre {

namespace {

#if defined(GYRE_WITH_CUDA)
// A forked child that cannot use the parent's CUDA must not take that for a machine without a GPU.
bool cuda_device_present() {
  cuda::Driver::refuse_after_fork();
  return cuda::Driver::device_count() > 0;
}
std::unique_ptr<Engine> make_cuda_engine(const ActorSet& actors, const Options& options) {
  return std::make_unique<cuda::CudaEngine>(actors, options);
}
#else
bool cuda_device_present() { return false; }
std::unique_ptr<Engine> make_cuda_engine(const ActorSet&, const Options&) {
  throw EngineUnavailable(
      "launching on CUDA: this Gyre was built without the CUDA toolkit; install the toolkit (12 or 13) and "
      "build again, "
      "or use --engine cpu");
}
#endif

}  // namespace

EngineKind chosen_engine(const Options& options) {
  if (options.engine != EngineKind::automatic) return options.engine;
  return cuda_device_present() ? EngineKind::cuda : EngineKind::cpu;
}

std::unique_ptr<Engine> make_engine(const ActorSet& actors, const Options& options) {
  const bool on_cuda = chosen_engine(options) == EngineKind::cuda;
  const TransportKind transport = options.transport;
  const bool fits = transport == TransportKind::automatic || (transport == TransportKind::heap) != on_cuda;
  if (!fits) {
    throw BadOptions("launching on the " +
                     std::string(on_cuda ? "CUDA engine: its transports are bar, pinned and unified"
                                         : "CPU engine: its only transport is heap") +
                     ", and --transport says " + std::string(name(transport)));
  }
  if (on_cuda) return make_cuda_engine(actors, options);
  return std::make_unique<CpuEngine>(actors, options);
}

}  // namespace gyre
