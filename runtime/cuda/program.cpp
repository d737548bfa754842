#include <dlfcn.h>
#include <fmt/format.h>
#include <nvrtc.h>
#include <gyre/bridge/error.hpp>
#include <gyre/bridge/error_catalogue.hpp>
#include <gyre/runtime/cuda/program.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <mutex>

namespace gyre::cuda {

namespace {

#define GYRE_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion)               \
  X(nvrtcGetErrorString)        \
  X(nvrtcCreateProgram)         \
  X(nvrtcDestroyProgram)        \
  X(nvrtcCompileProgram)        \
  X(nvrtcAddNameExpression)     \
  X(nvrtcGetLoweredName) X(nvrtcGetCUBINSize) X(nvrtcGetCUBIN) X(nvrtcGetProgramLogSize) X(nvrtcGetProgramLog)

struct Nvrtc {
#define GYRE_NVRTC_MEMBER(name) decltype(&::name) name = nullptr;
  GYRE_NVRTC_FUNCTIONS(GYRE_NVRTC_MEMBER)
#undef GYRE_NVRTC_MEMBER

  static Nvrtc load();
  void check(nvrtcResult result, std::string_view doing) const {
    if (result != NVRTC_SUCCESS) {
      throw Error(fmt::format("{}: {} ({}): {}", doing, nvrtcGetErrorString(result), int(result),
                              error_advice(ErrorSource::nvrtc, uint32_t(result))));
    }
  }
};

void* open_nvrtc() {
  std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12"};
  const char* const home = std::getenv("CUDA_HOME");
  for (const std::string& folder : {home != nullptr ? std::string(home) + "/lib64/" : std::string(),
                                    std::string("/usr/local/cuda/lib64/")}) {
    if (folder.empty()) continue;
    names.push_back(folder + "libnvrtc.so.13");
    names.push_back(folder + "libnvrtc.so.12");
  }
  for (const std::string& name : names) {
    if (void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

Nvrtc Nvrtc::load() {
  void* const library = open_nvrtc();
  if (library == nullptr) {
    throw EngineUnavailable(
        "loading NVRTC, which compiles the actors for the GPU: neither libnvrtc.so.13 nor libnvrtc.so.12 was "
        "found on "
        "the library path, in $CUDA_HOME/lib64 or in /usr/local/cuda/lib64; install NVIDIA's CUDA toolkit 12 "
        "or 13 "
        "(package cuda-nvrtc), or use --engine cpu");
  }
  Nvrtc nvrtc;
#define GYRE_NVRTC_LOAD(function)                                                                     \
  nvrtc.function = reinterpret_cast<decltype(nvrtc.function)>(dlsym(library, #function));             \
  if (nvrtc.function == nullptr) {                                                                    \
    throw EngineUnavailable("loading NVRTC: it has no " #function "; install CUDA toolkit 12 or 13"); \
  }
  GYRE_NVRTC_FUNCTIONS(GYRE_NVRTC_LOAD)
#undef GYRE_NVRTC_LOAD
  int major = 0, minor = 0;
  nvrtc.check(nvrtc.nvrtcVersion(&major, &minor), "reading NVRTC's version");
  if (major < 12 || (major == 12 && minor < 3)) {
    throw EngineUnavailable(fmt::format(
        "loading NVRTC: this is version {}.{}, and 16-byte packets need 12.3 (PTX ISA 8.3) or later; install "
        "CUDA toolkit 12.3 or later",
        major, minor));
  }
  return nvrtc;
}

// NVRTC's front end takes over these signals while it compiles, and ends the process with exit code 4 when
// one comes. The process's own handlers must get them: they wait until the compiler is done, and its handlers
// are undone.
class KeepSignals {
 public:
  KeepSignals() : one_at_a_time_(mutex()) {
    sigset_t blocked;
    sigemptyset(&blocked);
    for (size_t i = 0; i < signals.size(); ++i) {
      sigaddset(&blocked, signals[i]);
      sigaction(signals[i], nullptr, &actions_[i]);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &mask_);
  }
  ~KeepSignals() {
    for (size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &actions_[i], nullptr);
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  KeepSignals(const KeepSignals&) = delete;
  KeepSignals& operator=(const KeepSignals&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  std::lock_guard<std::mutex> one_at_a_time_;
  static constexpr std::array signals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, signals.size()> actions_;
  sigset_t mask_;
};

}  // namespace

bool nvrtc_available() noexcept {
  try {
    Nvrtc::load();
    return true;
  } catch (const Error&) {
    return false;
  }
}

NvrtcVersion nvrtc_version() {
  const Nvrtc nvrtc = Nvrtc::load();
  NvrtcVersion version;
  nvrtc.check(nvrtc.nvrtcVersion(&version.major, &version.minor), "reading NVRTC's version");
  return version;
}

Program program_of(const ActorSet& actors, int architecture, uint32_t block) {
  Program program;
  program.text = "#include <gyre/device/kernel.hpp>\n";
  for (const std::string_view header : actors.sources().actor_headers) {
    program.text += fmt::format("#include <{}>\n", header);
  }
  // Floating point is pinned so that both engines give the same bits.
  program.options = {fmt::format("--gpu-architecture=sm_{}", architecture),
                     "--std=c++20",
                     "--fmad=false",
                     "--ftz=false",
                     "--prec-div=true",
                     "--prec-sqrt=true",
                     fmt::format("-DGYRE_BLOCK={}", block)};
  if (actors.is_grid_scoped()) program.options.push_back("-DGYRE_GRID");
  return program;
}

CompiledKernel compile(const ActorSet& actors, int architecture, uint32_t block) {
  const Program program = program_of(actors, architecture, block);
  return compile_text(program.text, actors.kernel(), architecture, program.options, actors.sources().files);
}

CompiledKernel compile_text(const std::string& text, const std::string& kernel, int architecture,
                            const std::vector<std::string>& options, std::span<const SourceFile> headers) {
  const Nvrtc nvrtc = Nvrtc::load();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> texts, names;  // NVRTC wants them terminated
  for (const SourceFile& header : headers) {
    texts.emplace_back(header.text);
    names.emplace_back(header.name);
  }
  std::vector<const char*> text_pointers, name_pointers, option_pointers;
  for (const std::string& header : texts) text_pointers.push_back(header.c_str());
  for (const std::string& header : names) name_pointers.push_back(header.c_str());
  for (const std::string& option : options) option_pointers.push_back(option.c_str());

  nvrtcProgram program = nullptr;
  nvrtc.check(nvrtc.nvrtcCreateProgram(&program, text.c_str(), "gyre_kernel.cu", int(texts.size()),
                                       text_pointers.data(), name_pointers.data()),
              "creating the NVRTC program");
  struct Destroy {
    const Nvrtc& nvrtc;
    nvrtcProgram program;
    ~Destroy() { nvrtc.nvrtcDestroyProgram(&program); }
  } const destroy{nvrtc, program};

  nvrtc.check(nvrtc.nvrtcAddNameExpression(program, kernel.c_str()), "naming the kernel " + kernel);
  const nvrtcResult result = [&] {
    const KeepSignals keep;
    return nvrtc.nvrtcCompileProgram(program, int(option_pointers.size()), option_pointers.data());
  }();
  CompiledKernel compiled;
  size_t size = 0;
  if (nvrtc.nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 1) {
    compiled.log.resize(size);
    nvrtc.nvrtcGetProgramLog(program, compiled.log.data());
    compiled.log.resize(size - 1);
  }
  if (result != NVRTC_SUCCESS) {
    throw Error(fmt::format("compiling {} for compute capability {}.{} with NVRTC: {}\n{}", kernel,
                            architecture / 10, architecture % 10, nvrtc.nvrtcGetErrorString(result),
                            compiled.log));
  }
  const char* lowered = nullptr;
  nvrtc.check(nvrtc.nvrtcGetLoweredName(program, kernel.c_str(), &lowered),
              "reading the lowered name of " + kernel);
  compiled.lowered_name = lowered;
  nvrtc.check(nvrtc.nvrtcGetCUBINSize(program, &size), "reading the cubin's size");
  compiled.cubin.resize(size);
  nvrtc.check(nvrtc.nvrtcGetCUBIN(program, compiled.cubin.data()), "reading the cubin");
  compiled.compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return compiled;
}

}  // namespace gyre::cuda
