// Other programs: the C++ compiler, the schema compiler, ptxas.
#pragma once

#include <string>
#include <vector>

namespace gyre::tools {

/// The program of that name: in the folder where this very program is, in `folders`, then on $PATH. Empty
/// where there is none.
std::string find_program(const std::string& name, const std::vector<std::string>& folders = {});

/// What a program did.
struct ProgramResult {
  int exit_code = 0;   ///< 128 + the signal's number where one ended it
  std::string output;  ///< standard output and standard error together, unless output went to a file
};

/// Runs `command`, a program's path and its arguments, and waits for it. `output_file`: where its standard
/// output goes instead. Throws Error where it cannot be started.
ProgramResult run_program(const std::vector<std::string>& command, const std::string& output_file = {});

/// The whole file. Throws Error: `doing` and what is wrong.
std::string read_file(const std::string& path, const std::string& doing);
/// Throws Error; makes the folders that the path needs.
void write_file(const std::string& path, const std::string& text, const std::string& doing);

}  // namespace gyre::tools
