// What a cubin, the machine code for one GPU architecture, says of the kernel in it. It is an ELF file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gyre::tools {

/// A function of the kernel's code that was not inlined.
struct CubinFunction {
  std::string name;         ///< mangled
  uint64_t code_bytes = 0;  ///< of its own code
};

/// One kernel, as its cubin describes it.
struct CubinFacts {
  uint32_t registers = 0;        ///< a thread
  uint32_t frame_bytes = 0;      ///< a thread's stack frame: arrays that are indexed, and spilled registers
  uint64_t code_bytes = 0;       ///< of the kernel with the functions that it calls
  uint64_t parameter_bytes = 0;  ///< constant bank 0: the launch's own words and the kernel's parameters
  uint64_t constant_bytes = 0;   ///< the other constant banks, of the whole cubin
  std::vector<CubinFunction> functions;  ///< in the order of their addresses
};

/// Reads what the cubin `file` says of its kernel with the lowered name `kernel`. Throws Error where `file`
/// is no 64-bit ELF file, is damaged, or has no such kernel.
CubinFacts read_cubin(std::string_view file, std::string_view kernel);

/// Reads the initial contents of the variables of the cubin `file` by their mangled names, without those that
/// start as zeros. The contents refer to `file`. Throws as read_cubin.
std::map<std::string, std::span<const std::byte>> cubin_variables(std::string_view file);

}  // namespace gyre::tools
