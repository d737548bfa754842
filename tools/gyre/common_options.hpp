// The options every Gyre program takes, under the same names.
#pragma once

#include <gyre/runtime/errors.hpp>
#include <gyre/runtime/options.hpp>

#include <functional>
#include <string>

#include "command_line.hpp"
#include "json.hpp"

namespace gyre::tools {

/// Exit codes of every Gyre program.
enum ExitCode { all_passed = 0, case_failed = 1, bad_usage = 2, engine_unavailable = 3, interrupted = 130 };

/// Adds --engine --device --transport --workers --block --slots --slot-bytes --timeout --wait --verbose to
/// `command`, filling `options`, and --json filling `json_file` (`-`: standard output, and text then goes to
/// standard error). Both must outlive the parse.
void add_common_options(ProgramCommand command, Options& options, std::string& json_file);

/// Adds --json alone, for commands that launch nothing.
void add_json_option(ProgramCommand command, std::string& json_file);

/// Whether `text` is digits and nothing else: a process id or a code, and not a name.
bool is_number(const std::string& text);

/// 90 of "sm_90", "compute_90" or "90". Throws BadOptions, which names `option`.
int read_architecture(const std::string& option, const std::string& value);

/// Runs a program's body and turns what set-up throws into a message on standard error and an exit code.
int run_reporting_errors(const std::function<int()>& body);

/// Writes `document` to `json_file`; nothing where that is empty. Throws Error where the file cannot be
/// written.
void write_json(const std::string& json_file, const Json& document);

/// From now on SIGINT and SIGTERM are remembered instead of fatal, the first time; a second one ends the
/// process at once. Call it before any other thread is started.
void catch_interrupts();
/// True once one came.
bool interrupt_requested();

}  // namespace gyre::tools
