// Sends the messages of a recording to actors again, step by step, and compares the outcomes.
#pragma once

#include <gyre/runtime/actor_set.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "against_messages.hpp"
#include "comparison.hpp"
#include "recording.hpp"

namespace gyre::tools {

/// How to replay.
struct ReplayOptions {
  std::optional<uint64_t> seed;             ///< the order in which workers move; empty: one after the other
  size_t most = 10;                         ///< differences that are described
  Tolerance tolerance;                      ///< of floating point numbers
  std::set<std::string> ignored;            ///< names of fields that are not compared
  const MessageSchemas* schemas = nullptr;  ///< of messages whose schemas the actors lack; null: none
};

/// What came of a replay.
struct Replay {
  uint64_t sent = 0;      ///< messages
  uint64_t compared = 0;  ///< outcomes
  uint64_t same = 0;      ///< of those
  /// Outcomes that are not compared, by their recorded status: they came from the run, not from the actors.
  std::map<Status, uint64_t> not_compared;
  uint64_t without_buffers = 0;  ///< messages that name a buffer: these are not recorded
  uint64_t steps = 0;
  std::vector<std::string> differences;  ///< the first ones, a line each

  uint64_t different() const { return compared - same; }
};

/// Replays the recording on a stepped runtime with the recorded number of workers. Replies are compared field
/// by field where their schemas are known, else byte by byte.
/// @throws BadOptions         if a recorded handler is not among `actors`, or the options are wrong
/// @throws EngineUnavailable  if the CPU engine cannot run the actors
Replay replay(const Recording& recording, const ActorSet& actors, const ReplayOptions& options = {});

}  // namespace gyre::tools
