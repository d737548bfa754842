// Messages that nobody should send: what a worker makes of them, and that the next good one is answered.
#pragma once

#include <gyre/runtime/client.hpp>

#include <cstdint>
#include <string>

namespace gyre::tools {

/// What became of some bad messages.
struct BadMessages {
  uint64_t sent = 0;
  uint64_t error_replies = 0;  ///< the others were, by chance, messages, and rightly answered
  uint64_t good = 0;           ///< good messages sent between them, and rightly answered
  std::string wrong;           ///< the first thing that was not as it must be; empty if nothing was
};

/// A request cut short after each of its words.
BadMessages send_truncated(Client client);
/// `count` requests with 1 to 8 bits flipped, in a slot or in the arena: each is answered `malformed`, or
/// what is right for the bytes as they are.
BadMessages send_bit_flipped(Client client, uint32_t count, size_t elements);
/// Requests of message types and to actor types that no worker knows.
BadMessages send_unknown(Client client);

}  // namespace gyre::tools
