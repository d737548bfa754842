// The worker of gyre-bench soak: Gyre's rings, and an echo between them. One text for g++, clang and NVRTC.
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/bridge/ring.hpp>

namespace gyre::bench {

/// Largest slot of a soak, in bytes: 32 packets.
inline constexpr uint32_t most_soak_slot_bytes = 512;
/// Words of a message's payload at most.
inline constexpr uint32_t most_soak_words = most_soak_slot_bytes / 16 * words_a_packet;

/// Looks once for the message at `at` and unpacks it into `payload`, which the whole group then sees: its
/// first `looked` packets by one load of as many threads, what is behind them by others. Collective over
/// `group`.
template <class Memory, class Group>
GYRE_DEVICE ReceiveOutcome receive_together(Group group, const RingCursor<Memory>& at, const RingShape& shape,
                                            uint32_t looked, uint32_t* payload) {
  bool there = false;
  if (group.rank() < looked) {
    const Packet packet = Memory::load(at.slot()[group.rank()]);
    there = packet.stamp == at.stamp();
    if (there) unpack(packet, payload, group.rank());
  }
  const uint32_t found = group.ballot(there);
  group.sync();
  if ((found & 1) == 0) return ReceiveOutcome::nothing;
  const uint32_t body_bytes = body_bytes_in(payload);
  if (body_bytes <= shape.body_capacity() && is_whole(found, packets_for(body_bytes), looked))
    return ReceiveOutcome::message;
  return receive_rest<Memory>(group, at.slot(), at.stamp(), shape, 1, payload);
}

/// Takes each message of `h2d` and publishes it in `d2h` under the same ticket, until
/// `shall_end(empty_polls)`; publishes credits into `credit` as workers do. `payload`: most_soak_words words
/// that the group shares. Ends at once where a slot is corrupt. Collective over `group`.
template <class Memory, class Group, class ShallEnd>
GYRE_DEVICE void soak_echo(Group group, Packet* h2d, Packet* d2h, typename Memory::Word& credit,
                           const RingShape& shape, uint32_t* payload, ShallEnd&& shall_end) {
  CreditPublisher<Memory> credits(credit, shape.slots);
  RingCursor<Memory> requests(h2d, shape), replies(d2h, shape);
  const uint32_t most_looked = group.size() < shape.packets() ? group.size() : shape.packets();
  uint32_t empty_polls = 0, looked = most_looked < 4 ? most_looked : 4;
  for (;;) {
    const ReceiveOutcome outcome = receive_together<Memory>(group, requests, shape, looked, payload);
    if (outcome == ReceiveOutcome::corrupt) return;
    if (outcome == ReceiveOutcome::nothing) {
      group.sync();
      ++empty_polls;
      if (group.rank() == 0 && empty_polls % 8 == 0 && credits.behind(requests.ticket()))
        credits.publish(requests.ticket());
      if (shall_end(empty_polls)) return;
      continue;
    }
    const uint32_t body_bytes = body_bytes_in(payload);
    publish<Memory>(group, replies, shape, payload, body_bytes);
    const uint32_t needed = packets_for(body_bytes);
    looked = needed < most_looked ? needed : most_looked;
    group.sync();
    requests.advance(shape);
    replies.advance(shape);
    empty_polls = 0;
    if (group.rank() == 0 && credits.due(requests.ticket())) credits.publish(requests.ticket());
  }
}

}  // namespace gyre::bench
