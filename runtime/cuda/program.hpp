// From the actors' source text to a cubin and the kernel's name in it, by NVRTC or from the disk cache. Works
// on machines without a GPU.
#pragma once

#include <gyre/runtime/actor_set.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gyre::cuda {

/// All that NVRTC is given. Refers to the headers, which must outlive it.
struct Program {
  std::string text;                          ///< the main file: includes and nothing else
  std::vector<std::string> options;          ///< compiler options
  std::string kernel;                        ///< name expression of the kernel
  std::string description = {};              ///< name expression of the actors' description; empty: none
  int architecture = 0;                      ///< compute capability, 90 for 9.0
  std::span<const SourceFile> headers = {};  ///< what #include may find, besides the toolkit's
  /// The version of the CUDA toolkit whose headers #include finds too; empty: none, the text needs none.
  std::string toolkit = {};
};

/// How a program is compiled.
struct CompileOptions {
  bool cache = false;  ///< look in the disk cache first, and keep the result there
  /// A folder to write program and result to, NVRTC's PTX too: it is then compiled in any case. Empty: none.
  std::string keep_program = {};
  bool verbose = false;  ///< log what came of the cache, whatever the log's level
};

struct CompiledKernel {
  std::string cubin;                ///< machine code for one architecture
  std::string lowered_name;         ///< the kernel's mangled name in it
  std::string lowered_description;  ///< the mangled name of the variable that describes the actors
  std::string log;                  ///< the compiler's warnings
  double compile_ms = 0;            ///< that it took, or that it took to find it in the cache
  bool from_cache = false;
  bool ahead = false;  ///< it was compiled when the program was built
};

/// The program that instantiates `actors`' kernel for `block` threads on compute capability `architecture`
/// (90: 9.0). Refers to the sources of `actors`. Where they include headers of the CUDA toolkit that are
/// found, NVRTC is given their folders. Throws EngineUnavailable where they include headers that are not
/// theirs and NVRTC is not installed.
Program program_of(const ActorSet& actors, int architecture, uint32_t block);
/// Returns program_of() without the toolkit's folders, options and version, so that neither NVRTC nor the
/// toolkit is looked for.
Program program_without_toolkit(const ActorSet& actors, int architecture, uint32_t block);

/// Everything that the result of compiling `program` depends on, as one text: what the cache compares.
/// `compiler`: which NVRTC.
std::string inputs_of(const Program& program, std::string_view compiler);

/// Compiles it. Throws EngineUnavailable where NVRTC is not installed (what to install), Error with the
/// compiler's log and the source lines it names where the text does not compile, or where
/// `options.keep_program` cannot be written. What is wrong with the cache is never an error. Any thread;
/// takes tens of milliseconds and more, from the cache a few.
CompiledKernel compile(const Program& program, const CompileOptions& options = {});
CompiledKernel compile(const ActorSet& actors, int architecture, uint32_t block,
                       const CompileOptions& options = {});
/// compile() in two steps. What it finds in the disk cache; nothing where it compiles. Throws
/// EngineUnavailable where NVRTC is not installed. Any thread; takes some milliseconds.
std::optional<CompiledKernel> find_compiled(const Program& program, const CompileOptions& options);
/// And what it does then.
CompiledKernel compile_not_found(const Program& program, const CompileOptions& options);

/// As compile, for any main file and kernel, with only the headers that the program may include: bench's bare
/// kernels.
CompiledKernel compile_text(const std::string& text, const std::string& kernel, int architecture,
                            const std::vector<std::string>& options, std::span<const SourceFile> headers);

/// The lines of source that a compiler's log names, "file:line: text" each, in the log's order, 32 at most:
/// those of `main_text` and of `headers`. Empty if it names none.
std::string source_lines(std::string_view log, std::string_view main_text,
                         std::span<const SourceFile> headers);

/// True where NVRTC can be loaded.
bool nvrtc_available() noexcept;

/// Of the NVRTC that compiles here. Throws EngineUnavailable where there is none, or it is too old.
struct NvrtcVersion {
  int major = 0;
  int minor = 0;
  auto operator<=>(const NvrtcVersion&) const = default;
};
NvrtcVersion nvrtc_version();

}  // namespace gyre::cuda
