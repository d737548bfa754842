#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/cuda/cubin_cache.hpp>
#include <gyre/runtime/cuda/kept_program.hpp>
#include <gyre/runtime/cuda/nvrtc.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <gyre/runtime/cuda/toolkit.hpp>
#include <gyre/runtime/log.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <mutex>
#include <optional>

namespace gyre::cuda {

namespace {

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
  const detail::ForkDeferred fork_deferred_;  // a child would keep the compiler's handlers
  std::lock_guard<std::mutex> one_at_a_time_;
  static constexpr std::array signals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, signals.size()> actions_;
  sigset_t mask_;
};

// NVRTC's program, with what it is made of as NVRTC wants it: terminated.
class NvrtcProgram {
 public:
  NvrtcProgram(const Nvrtc& nvrtc, const Program& program) : nvrtc_(nvrtc) {
    std::vector<std::string> texts, names;
    for (const SourceFile& header : program.headers) {
      texts.push_back(program.toolkit.empty() ? std::string(header.text) : with_angle_includes(header.text));
      names.emplace_back(header.name);
    }
    std::vector<const char*> text_pointers, name_pointers;
    for (const std::string& text : texts) text_pointers.push_back(text.c_str());
    for (const std::string& name : names) name_pointers.push_back(name.c_str());
    nvrtc_.check(nvrtc_.nvrtcCreateProgram(&program_, program.text.c_str(), "gyre_kernel.cu",
                                           int(texts.size()), text_pointers.data(), name_pointers.data()),
                 "creating the NVRTC program");
  }
  ~NvrtcProgram() {
    const nvrtcResult result = nvrtc_.nvrtcDestroyProgram(&program_);
    if (result == NVRTC_SUCCESS) return;
    detail::log(LogLevel::warning, [&] {
      return fmt::format("ending the NVRTC program (nvrtcDestroyProgram): {}", nvrtc_.explain(result));
    });
  }
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;

  void add_name(const std::string& expression) {
    nvrtc_.check(nvrtc_.nvrtcAddNameExpression(program_, expression.c_str()), "naming " + expression);
  }
  nvrtcResult compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    const KeepSignals keep;
    return nvrtc_.nvrtcCompileProgram(program_, int(pointers.size()), pointers.data());
  }
  std::string lowered_name(const std::string& expression) const {
    const char* lowered = nullptr;
    nvrtc_.check(nvrtc_.nvrtcGetLoweredName(program_, expression.c_str(), &lowered),
                 "reading the lowered name of " + expression);
    return lowered;
  }
  std::string log() const { return text(nvrtc_.nvrtcGetProgramLogSize, nvrtc_.nvrtcGetProgramLog, "log"); }
  std::string ptx() const { return text(nvrtc_.nvrtcGetPTXSize, nvrtc_.nvrtcGetPTX, "PTX"); }
  std::string cubin() const { return bytes(nvrtc_.nvrtcGetCUBINSize, nvrtc_.nvrtcGetCUBIN, "cubin"); }

 private:
  template <class GetSize, class Get>
  std::string bytes(GetSize get_size, Get get, std::string_view what) const {
    size_t size = 0;
    nvrtc_.check(get_size(program_, &size), fmt::format("reading the size of the {}", what));
    std::string result(size, '\0');
    nvrtc_.check(get(program_, result.data()), fmt::format("reading the {}", what));
    return result;
  }
  // Without the 0 at its end.
  template <class GetSize, class Get>
  std::string text(GetSize get_size, Get get, std::string_view what) const {
    std::string result = bytes(get_size, get, what);
    while (!result.empty() && result.back() == '\0') result.pop_back();
    return result;
  }

  const Nvrtc& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began_).count();
  }

 private:
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

void check_architecture(const Nvrtc& nvrtc, int architecture) {
  const std::vector<int> all = nvrtc.architectures();
  if (std::find(all.begin(), all.end(), architecture) != all.end()) return;
  std::string list;
  for (const int known : all) list += fmt::format(" {}.{}", known / 10, known % 10);
  throw Error(
      fmt::format("compiling for compute capability {}.{}: NVRTC {} compiles for{}; install a CUDA toolkit "
                  "whose NVRTC knows this GPU, or use another --device",
                  architecture / 10, architecture % 10, nvrtc.identity, list));
}

// A precompiled header serves the process that made it, and costs the compilation that makes it a third more:
// a process that compiles once makes none.
std::vector<std::string> options_of(const Nvrtc& nvrtc, const Program& program) {
  static std::atomic<uint32_t> compiled_with_toolkit{0};
  std::vector<std::string> options = program.options;
  if (program.toolkit.empty() || compiled_with_toolkit++ == 0 || nvrtc.version < NvrtcVersion{12, 8})
    return options;
  options.insert(options.end(), {"--pch", "--pch-messages=false", "--pch-verbose=false"});
  return options;
}

// How NVRTC's log says that a header is missing.
bool lacks_header(std::string_view log) { return log.find("open source file") != std::string_view::npos; }

CompiledKernel compile_anew(const Nvrtc& nvrtc, const Program& program, const std::string& keep_folder) {
  check_architecture(nvrtc, program.architecture);
  NvrtcProgram compiler(nvrtc, program);
  compiler.add_name(program.kernel);
  if (!program.description.empty()) compiler.add_name(program.description);
  const nvrtcResult result = compiler.compile(options_of(nvrtc, program));

  CompiledKernel compiled;
  compiled.log = compiler.log();
  if (result == NVRTC_SUCCESS) {
    compiled.lowered_name = compiler.lowered_name(program.kernel);
    if (!program.description.empty()) {
      compiled.lowered_description = compiler.lowered_name(program.description);
    }
    compiled.cubin = compiler.cubin();
  }
  if (!keep_folder.empty()) {
    const std::string ptx = result == NVRTC_SUCCESS ? compiler.ptx() : std::string();
    keep({program, nvrtc.identity, compiled.log, ptx, compiled}, keep_folder);
  }
  if (result != NVRTC_SUCCESS) {
    const std::string lines = source_lines(compiled.log, program.text, program.headers);
    throw Error(
        fmt::format("compiling {} for compute capability {}.{} with NVRTC: {}\n{}{}{}{}", program.kernel,
                    program.architecture / 10, program.architecture % 10, nvrtc.nvrtcGetErrorString(result),
                    compiled.log, lines.empty() ? "" : "The source lines it names:\n", lines,
                    lacks_header(compiled.log) ? explain_toolkit_search(nvrtc.version.major) + "\n" : ""));
  }
  return compiled;
}

// Whether a header other than Gyre's own includes what a handler needs to send.
bool may_send(std::span<const SourceFile> headers) {
  return std::any_of(headers.begin(), headers.end(), [](const SourceFile& header) {
    return header.name.substr(0, 5) != "gyre/" &&
           (header.text.find("gyre/device/sending.hpp") != std::string_view::npos ||
            header.text.find("gyre/device/asking.hpp") != std::string_view::npos);
  });
}

// Gives `program`, whose actors include `outside`, the toolkit's headers, where they are found.
void add_toolkit(Program& program, const std::vector<OutsideHeader>& outside) {
  const ToolkitHeaders toolkit = find_toolkit_headers(nvrtc_version().major);
  // What may lead does: NVRTC precompiles the headers before nv_hdrstop.
  std::string leading;
  bool found = false, cooperative_groups = false, standard_library = false;
  for (const auto& [name, leads] : outside) {
    if (!toolkit.has(name)) continue;
    found = true;
    if (leads) leading += fmt::format("#include <{}>\n", name);
    if (name.substr(0, 18) == "cooperative_groups") cooperative_groups = true;
    if (name.substr(0, 5) == "cuda/") standard_library = true;
  }
  if (!found) return;
  program.toolkit = toolkit.version;
  program.text = leading + "#pragma nv_hdrstop\n" + program.text;
  // The toolkit's headers include each other by names relative to their own folders.
  std::erase(program.options, "--no-source-include");
  for (const std::string& folder : toolkit.folders) program.options.push_back("-I" + folder);
  program.options.push_back("-DGYRE_CUDA_TOOLKIT");
  if (!cooperative_groups) return;
  program.options.push_back("-DGYRE_COOPERATIVE_GROUPS");
  // Without libcu++, which takes ten times as long as they; their functions with cuda::atomic need it.
  if (!standard_library) program.options.push_back("-D_CG_LIMIT_INCLUDED_DEPENDENCIES");
}

}  // namespace

Program program_without_toolkit(const ActorSet& actors, int architecture, uint32_t block) {
  Program program;
  program.text = "#include <gyre/device/worker/kernel.hpp>\n#include <gyre/device/actor/description.hpp>\n";
  for (const std::string_view header : actors.sources().actor_headers) {
    program.text += fmt::format("#include <{}>\n", header);
  }
  // Floating point is pinned so that both engines give the same bits. Headers are those that were given, not
  // files that happen to lie in the current folder: the cache could not know of them.
  program.options = {fmt::format("--gpu-architecture=sm_{}", architecture),
                     "--std=c++20",
                     "--no-source-include",
                     "--fmad=false",
                     "--ftz=false",
                     "--prec-div=true",
                     "--prec-sqrt=true",
                     fmt::format("-DGYRE_BLOCK={}", block)};
  if (actors.is_grid_scoped()) program.options.push_back("-DGYRE_GRID");
  if (may_send(actors.sources().files)) program.options.push_back("-DGYRE_SENDS");
  program.kernel = actors.kernel();
  program.description = fmt::format("&gyre::description<{}>", actors.type_list());
  program.architecture = architecture;
  program.headers = actors.sources().files;
  return program;
}

Program program_of(const ActorSet& actors, int architecture, uint32_t block) {
  Program program = program_without_toolkit(actors, architecture, block);
  const std::vector<OutsideHeader> outside = outside_headers(program.text, program.headers);
  if (!outside.empty()) add_toolkit(program, outside);
  return program;
}

// Each piece behind its length, so that no two programs make one text.
std::string inputs_of(const Program& program, std::string_view compiler) {
  std::string inputs;
  const auto add = [&inputs](std::string_view what, std::string_view piece) {
    inputs += fmt::format("{} {}\n", what, piece.size());
    inputs += piece;
    inputs += '\n';
  };
  add("compiler", compiler);
  add("architecture", std::to_string(program.architecture));
  for (const std::string& option : program.options) add("option", option);
  add("kernel", program.kernel);
  add("description", program.description);
  add("text", program.text);
  for (const SourceFile& header : program.headers) {
    add("header", header.name);
    add("of text", header.text);
  }
  if (!program.toolkit.empty()) add("toolkit", program.toolkit);
  return inputs;
}

std::optional<CompiledKernel> find_compiled(const Program& program, const CompileOptions& options) {
  const Stopwatch stopwatch;
  const Nvrtc nvrtc = Nvrtc::load();
  if (!options.cache || !options.keep_program.empty()) return std::nullopt;
  auto kernel = CubinCache(CubinCache::default_folder()).find(inputs_of(program, nvrtc.identity));
  if (kernel) kernel->compile_ms = stopwatch.ms();
  return kernel;
}

CompiledKernel compile_not_found(const Program& program, const CompileOptions& options) {
  const Stopwatch stopwatch;
  const Nvrtc nvrtc = Nvrtc::load();
  std::optional<CubinCache> cache;
  if (options.cache) cache.emplace(CubinCache::default_folder());
  const auto note = [&options](const std::string& what) {
    detail::log(
        LogLevel::info, [&what] { return "compiled programs on disk: " + what; }, options.verbose);
  };
  if (cache && !cache->refusal().empty()) note("not used: " + cache->refusal());
  CompiledKernel kernel = compile_anew(nvrtc, program, options.keep_program);
  if (cache && cache->refusal().empty()) {
    if (const std::string problem = cache->store(inputs_of(program, nvrtc.identity), kernel);
        !problem.empty()) {
      note("this one is not kept: " + problem);
    }
  }
  kernel.compile_ms = stopwatch.ms();
  return kernel;
}

CompiledKernel compile(const Program& program, const CompileOptions& options) {
  if (auto found = find_compiled(program, options)) return *std::move(found);
  return compile_not_found(program, options);
}

CompiledKernel compile(const ActorSet& actors, int architecture, uint32_t block,
                       const CompileOptions& options) {
  return compile(program_of(actors, architecture, block), options);
}

CompiledKernel compile_text(const std::string& text, const std::string& kernel, int architecture,
                            const std::vector<std::string>& options, std::span<const SourceFile> headers) {
  return compile(Program{text, options, kernel, {}, architecture, headers});
}

}  // namespace gyre::cuda
