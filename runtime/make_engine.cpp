#include <gyre/runtime/cpu/engine.hpp>
#include <gyre/runtime/engine.hpp>
#include <gyre/runtime/errors.hpp>

#if defined(GYRE_WITH_CUDA)
#include <gyre/runtime/cuda/engine.hpp>
#endif

namespace gyre {

namespace {

#if defined(GYRE_WITH_CUDA)
bool cuda_device_present() { return cuda::Driver::device_count() > 0; }
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
  const TransportKind only = on_cuda ? TransportKind::pinned : TransportKind::heap;
  if (options.transport != TransportKind::automatic && options.transport != only) {
    throw BadOptions("launching on the " + std::string(on_cuda ? "CUDA" : "CPU") +
                     " engine: its only transport is " + std::string(name(only)) + ", and --transport says " +
                     std::string(name(options.transport)));
  }
  if (on_cuda) return make_cuda_engine(actors, options);
  return std::make_unique<CpuEngine>(actors, options);
}

}  // namespace gyre
