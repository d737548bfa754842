// The worker of gyre-bench soak: Gyre's rings, and an echo between them. One text for g++, clang and NVRTC.
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/bridge/ring.hpp>

namespace gyre::bench {

/// Largest slot of a soak, in bytes: 32 packets.
inline constexpr uint32_t most_soak_slot_bytes = 512;
/// Words of a message's payload at most.
inline constexpr uint32_t most_soak_words = most_soak_slot_bytes / 16 * words_a_packet;

/// Takes each message of `h2d` by receive() and puts it into `d2h` by publish() with the same ticket, until
/// `shall_end(empty_polls)`; publishes credits into `credit` as workers do. `payload`: most_soak_words words
/// that the group shares. Ends at once where a slot is corrupt. Collective over `group`.
template <class Memory, class Group, class ShallEnd>
GYRE_DEVICE void soak_echo(Group group, const Packet* h2d, Packet* d2h, typename Memory::Word& credit,
                           const RingShape& shape, uint32_t* payload, ShallEnd&& shall_end) {
  CreditPublisher<Memory> credits(credit, shape.slots);
  uint32_t empty_polls = 0, polled_packets = 4;
  for (uint64_t ticket = 0;;) {
    const ReceiveOutcome outcome = receive<Memory>(group, h2d, shape, ticket, polled_packets, payload);
    if (outcome == ReceiveOutcome::corrupt) return;
    group.sync();
    if (outcome == ReceiveOutcome::nothing) {
      ++empty_polls;
      if (group.rank() == 0 && empty_polls % 8 == 0 && credits.behind(ticket)) credits.publish(ticket);
      if (shall_end(empty_polls)) return;
      continue;
    }
    const uint32_t body_bytes = payload[2];  // Envelope::body_bytes
    publish<Memory>(group, d2h, shape, ticket, payload, body_bytes);
    polled_packets = packets_for(body_bytes);
    group.sync();
    ++ticket;
    empty_polls = 0;
    if (group.rank() == 0 && credits.due(ticket)) credits.publish(ticket);
  }
}

}  // namespace gyre::bench
