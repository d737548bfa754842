#include <dlfcn.h>
#include <fmt/format.h>
#include <gyre/bridge/errors/catalogue.hpp>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/cuda/nvrtc.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <gyre/runtime/cuda/toolkit.hpp>

#include <filesystem>

namespace gyre::cuda {

namespace {

// NVRTC opens the library of its built-in functions by name alone. The system does not search `folder` for
// it, but it finds a library that is loaded already. If the file is missing, NVRTC reports it when it
// compiles.
void open_builtins(void* nvrtc, const std::string& folder) {
  const auto version = reinterpret_cast<nvrtcResult (*)(int*, int*)>(dlsym(nvrtc, "nvrtcVersion"));
  int major = 0, minor = 0;
  if (version == nullptr || version(&major, &minor) != NVRTC_SUCCESS) return;
  dlopen(fmt::format("{}libnvrtc-builtins.so.{}.{}", folder, major, minor).c_str(), RTLD_NOW | RTLD_LOCAL);
}

void* open_nvrtc() {
  const auto load = [](const std::string& folder) -> void* {
    for (const char* const file : {"libnvrtc.so.13", "libnvrtc.so.12"}) {
      if (void* const library = dlopen((folder + file).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    }
    return nullptr;
  };
  if (void* const library = load("")) return library;
  for (const ToolkitPlace& place : toolkit_places()) {
    for (const std::string& toolkit : place.folders) {
      for (const std::string& folder : {toolkit + "/lib64/", toolkit + "/lib/"}) {
        if (void* const library = load(folder)) {
          open_builtins(library, folder);
          return library;
        }
      }
    }
  }
  return nullptr;
}

// "libnvrtc.so.13.0.88 of 109338064 bytes", of the file that `function` was loaded from.
std::string file_of(const void* function) {
  Dl_info info{};
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return "file unknown";
  std::error_code failed;
  const std::filesystem::path file = std::filesystem::canonical(info.dli_fname, failed);
  if (failed) return info.dli_fname;
  const auto bytes = std::filesystem::file_size(file, failed);
  return fmt::format("{} of {} bytes", file.filename().string(), failed ? 0 : bytes);
}

}  // namespace

void Nvrtc::check(nvrtcResult result, std::string_view doing) const {
  if (result != NVRTC_SUCCESS) throw Error(fmt::format("{}: {}", doing, explain(result)));
}

std::string Nvrtc::explain(nvrtcResult result) const {
  return fmt::format("{} ({}): {}", nvrtcGetErrorString(result), int(result),
                     error_advice(ErrorSource::nvrtc, uint32_t(result)));
}

Nvrtc Nvrtc::load() {
  const detail::ForkDeferred deferred;
  void* const library = open_nvrtc();
  if (library == nullptr) {
    throw EngineUnavailable(
        "loading NVRTC, which compiles the actors for the GPU: neither libnvrtc.so.13 nor libnvrtc.so.12 was "
        "found on "
        "the library path, in lib64 or lib of $CUDA_HOME, of /usr/local/cuda or of a folder of "
        "$GYRE_CUDA_PATH; install NVIDIA's CUDA toolkit 12 or 13 (package cuda-nvrtc), or use --engine cpu");
  }
  Nvrtc nvrtc;
#define GYRE_NVRTC_LOAD(function)                                                                     \
  nvrtc.function = reinterpret_cast<decltype(nvrtc.function)>(dlsym(library, #function));             \
  if (nvrtc.function == nullptr) {                                                                    \
    throw EngineUnavailable("loading NVRTC: it has no " #function "; install CUDA toolkit 12 or 13"); \
  }
  GYRE_NVRTC_FUNCTIONS(GYRE_NVRTC_LOAD)
#undef GYRE_NVRTC_LOAD
  nvrtc.check(nvrtc.nvrtcVersion(&nvrtc.version.major, &nvrtc.version.minor), "reading NVRTC's version");
  const auto [major, minor] = nvrtc.version;
  if (nvrtc.version < NvrtcVersion{12, 3}) {
    throw EngineUnavailable(fmt::format(
        "loading NVRTC: this is version {}.{}, and 16-byte packets need 12.3 (PTX ISA 8.3) or later; install "
        "CUDA toolkit 12.3 or later",
        major, minor));
  }
  nvrtc.identity =
      fmt::format("{}.{}, {}", major, minor, file_of(reinterpret_cast<const void*>(nvrtc.nvrtcVersion)));
  return nvrtc;
}

std::vector<int> Nvrtc::architectures() const {
  int count = 0;
  check(nvrtcGetNumSupportedArchs(&count), "counting the architectures that NVRTC compiles for");
  std::vector<int> all(size_t(count), 0);
  check(nvrtcGetSupportedArchs(all.data()), "reading the architectures that NVRTC compiles for");
  return all;
}

NvrtcVersion nvrtc_version() { return Nvrtc::load().version; }

bool nvrtc_available() noexcept {
  try {
    Nvrtc::load();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace gyre::cuda
