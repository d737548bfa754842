// Reads recordings: what programs sent, as Options::record wrote it.
#pragma once

#include <capnp/common.h>
#include <gyre/messages/recording.capnp.h>
#include <kj/array.h>
#include <gyre/messages/status.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace gyre::tools {

/// A handler of the program that recorded.
struct RecordedHandler {
  std::string actor, message;
  uint16_t actor_type, message_type;
  uint64_t request;
};
/// A message that the program sent.
struct RecordedMessage {
  uint64_t number;
  messages::recording::Kind kind;
  uint32_t worker;
  uint64_t ticket;
  uint16_t actor_type, message_type;
  uint64_t key;
  uint64_t time_ns;
  std::span<const std::byte> body;  ///< of Recording::words
};
/// What became of one.
struct RecordedOutcome {
  uint64_t number;
  uint64_t time_ns;
  Status status;
  uint32_t detail;
  std::span<const std::byte> body;  ///< of Recording::words
};
/// The workers began anew.
struct RecordedRelaunch {};

using RecordedEvent = std::variant<RecordedMessage, RecordedOutcome, RecordedRelaunch>;

/// A recording. Movable; refers to its own memory.
struct Recording {
  std::string gyre, device;
  uint32_t workers = 0, slot_bytes = 0, max_reply_bytes = 0, actors_per_worker = 0;
  uint64_t arena_bytes = 0, spill_bytes = 0, body_pool_bytes = 0;
  uint32_t body_bytes = 0;
  std::vector<RecordedHandler> handlers;
  /// In the order in which they were recorded, but for each worker's messages: those are in the order in
  /// which the worker got them.
  std::vector<RecordedEvent> events;
  uint64_t sent = 0, outcomes = 0;
  /// Records that did not find their way to the file; empty if the recording has no end.
  std::optional<uint64_t> dropped;
  kj::Array<capnp::word> words;
};

/// Reads a recording. A last record that is cut off, of a program that was killed, counts as none.
/// @throws BadOptions  if the file cannot be read, is no recording, or is one of another version
Recording read_recording(const std::string& path);

}  // namespace gyre::tools
