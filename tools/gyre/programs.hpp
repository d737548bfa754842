// Other programs: the C++ compiler, the schema compiler, ptxas, and what benchmarks measure.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace gyre::tools {

/// The program of that name: in the folder where this very program is, in `folders`, then on $PATH. Empty
/// where there is none.
std::string find_program(const std::string& name, const std::vector<std::string>& folders = {});

/// How a program is run.
struct ProgramRun {
  std::vector<std::string> command;           ///< its path and its arguments
  std::vector<std::string> environment = {};  ///< "NAME=value": set besides this process's own
  std::string output_file = {};  ///< where its standard output goes; empty: ProgramResult::output
  bool keeps_errors = true;  ///< its standard error goes to ProgramResult::output; false: to this process's
};

/// What a program did.
struct ProgramResult {
  std::chrono::steady_clock::time_point
      started;         ///< just before it was; the clock is the same in all processes
  int exit_code = 0;   ///< 128 + the signal's number where one ended it
  int signal = 0;      ///< that ended it; 0: none
  std::string output;  ///< in the order of its writes
};

/// Runs a program, whose standard input is empty and whose signals are not blocked, and waits for it. Throws
/// Error where it cannot be started.
ProgramResult run_program(const ProgramRun& run);

/// The whole file. Throws Error: `doing` and what is wrong.
std::string read_file(const std::string& path, const std::string& doing);
/// Throws Error; makes the folders that the path needs.
void write_file(const std::string& path, const std::string& text, const std::string& doing);

}  // namespace gyre::tools
