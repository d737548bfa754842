// PTX, taken apart: its functions, what their instructions are, and what ptxas says of them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gyre::tools {

/// What an instruction does, roughly.
enum class OpcodeClass {
  global,
  local,
  shared,
  parameter,
  atomic,
  floating,
  integer,
  move,
  branch,
  call,
  barrier,
  other
};
inline constexpr size_t opcode_classes = 12;
/// "global memory", "local memory", …
std::string_view name(OpcodeClass kind);
/// Of an instruction, "ld.global.f32" for instance.
OpcodeClass class_of(std::string_view opcode);

/// Instructions by their class.
using OpcodeCounts = std::array<uint64_t, opcode_classes>;

struct PtxFunction {
  std::string name;  ///< mangled
  bool entry = false;
  std::string body;  ///< its lines, without comments
  uint64_t instructions = 0;
  OpcodeCounts counts{};
};

/// The functions that have a body, in their order.
std::vector<PtxFunction> parse_ptx(std::string_view ptx);

/// All counts together.
OpcodeCounts total(const std::vector<PtxFunction>& functions);

/// "my::A::on(gyre::Context&, …)"; what is no mangled name as it is.
std::string demangled(const std::string& name);

/// What ptxas says of one function (-v).
struct FunctionReport {
  uint32_t stack_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0;
};
/// What it says of a kernel, and of the functions that the kernel calls, by their mangled names.
struct PtxasReport {
  uint32_t registers = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t barriers = 0;
  std::map<std::string, FunctionReport> functions;
  /// Of all functions.
  FunctionReport total() const;
};

/// Reads the report in a compiler's or the assembler's log; empty where there is none.
std::optional<PtxasReport> read_ptxas_report(const std::string& log);

/// What assembling PTX by the program ptxas came to.
struct PtxasRun {
  std::string program;  ///< empty: there is none
  std::string version;  ///< its release, "13.0"
  bool accepted = false;
  std::string log;
};

/// Assembles `ptx_file` for `architecture` with ptxas from $CUDA_HOME/bin, or
/// /usr/local/cuda/bin where that is not set, or $PATH.
/// Throws Error where it cannot be started.
PtxasRun run_ptxas(const std::string& ptx_file, int architecture);

}  // namespace gyre::tools
