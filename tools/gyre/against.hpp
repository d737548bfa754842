// gyre validate --against: the same messages to the same actors on two engines, and every reply compared.
#pragma once

#include <gyre/runtime/options.hpp>
#include <gyre/runtime/runtime.hpp>

#include "actor_file.hpp"
#include "against_messages.hpp"
#include "command_line.hpp"
#include "comparison.hpp"

namespace gyre::tools {

/// What the options say.
struct AgainstSettings {
  std::string engine;  ///< --against: the engine to compare with; empty: do not
  ActorFileOptions actors;
  std::string other, other_types;  ///< the actors to compare with; empty: the same
  std::string library;             ///< --build-library: where to make one; empty: do not
  std::vector<int> architectures;  ///< --architecture: for which its actors are compiled ahead
  bool grid_scoped = false;
  Tolerance tolerance;
  std::vector<std::string> ignored;
  MessageSource source;
};

/// Adds the options to `command`, filling `settings`, which must outlive the parse.
void add_against_options(ProgramCommand command, AgainstSettings& settings);

/// What came of it.
struct EngineComparison {
  Comparison comparison;
  uint64_t messages = 0;                   ///< sent to both
  uint64_t same = 0;                       ///< of them, those that were answered alike
  uint64_t error_replies = 0;              ///< of those, the ones that both sides failed in the same way
  std::string first_failure;               ///< what the first of these says
  double tested_us = 0, reference_us = 0;  ///< median round trips
};

/// Sends `messages` to both, one at a time, and compares. `reference_actors` must have the handlers that the
/// messages were made for. Throws BadOptions where they have not. Ends early when interrupted.
EngineComparison compare_engines(Runtime& tested, Runtime& reference, const ActorSet& reference_actors,
                                 const std::vector<TestMessage>& messages, const MessageSchemas& schemas,
                                 const AgainstSettings& settings);

/// The whole command: --build-library, and --against on launched engines. `options`: of the tested engine;
/// `out`: where the text goes. Returns the exit code. Throws as set-up does.
int run_against(const AgainstSettings& settings, const Options& options, const std::string& json_file,
                std::FILE* out);

}  // namespace gyre::tools
