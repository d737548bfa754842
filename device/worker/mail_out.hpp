// How a worker sends messages to other actors: by a slot of the receiver's mailbox, or by its outbox, where
// they wait for one.
#pragma once

#include <gyre/device/worker/mail.hpp>

namespace gyre {

// Sends the staged messages from number `first` to `end`, of which none is for several actors.
template <Rights rights>
GYRE_DEVICE_INLINE void Mail<rights>::send_range(uint32_t first, uint32_t end, uint32_t others) {
  GYRE_ROLLED
  for (; first < end; first += PollGroup::size()) {
    const uint32_t left = end - first, n = left < PollGroup::size() ? left : PollGroup::size();
    const bool is_of_row = PollGroup::rank() < n;
    const uint32_t* const mine = staging_.message(first + (is_of_row ? PollGroup::rank() : 0));
    const bool is_for_actor = others == 0 || is_to_actor(mine), has_one = is_of_row && is_for_actor;
    const uint32_t to = worker_of(mine);
    const bool may_go = is_for_actor && to != me_ && !outbox_.has_one_for(to);
    Claims claims{0, 0};
    if (n == 1) {
      if (may_go) claims = send_alone(to, mine);
    } else {
      claims = claim(may_go && is_of_row, to);
      publish(claims, to, n, [&](uint32_t k) { return staging_.message(first + k); });
    }
    const uint32_t to_itself = PollGroup::ballot(has_one && to == me_);
    GYRE_ROLLED
    for (uint32_t left = PollGroup::ballot(has_one) & ~claims.claimed; left != 0; left &= left - 1) {
      const uint32_t k = detail::lowest_bit(left);
      const uint32_t* const message = staging_.message(first + k);
      const uint32_t body_bytes = MailHead::body_bytes(body_bytes_in(message));
      if ((to_itself >> k & 1) == 0) {
        outbox_.push(PollGroup::broadcast_from(to, k), message, body_bytes);
      } else if (!queue_.push(message, body_bytes)) {
        refuse(message);
      }
    }
  }
}

// The packet of a message that the calling thread stores, without its stamp; of a long message the first one.
// Loaded while a slot for the message is claimed, which takes longer.
// @param message  in the group's own memory
template <Rights rights>
GYRE_DEVICE_INLINE Packet Mail<rights>::own_packet(const uint32_t* message, uint32_t needed) const {
  const uint32_t k = PollGroup::rank();
  const uint32_t* const data = message + (k < needed ? k : 0) * words_a_packet;
  return {{load_here(data), load_here(data + 1), load_here(data + 2)}, 0};
}
// gyre::publish() of a message of which each thread holds its packet already.
// @param mine  own_packet()
template <Rights rights>
GYRE_DEVICE_INLINE void Mail<rights>::publish_one(const RingCursor<WorkersMemory>& at, const RingShape& shape,
                                                  Packet mine, const uint32_t* message, uint32_t needed) {
  if (at.stamps_whole_slot()) {
    stamp_rest<WorkersMemory>(PollGroup{}, at, shape, needed);
    PollGroup::sync();
  }
  const uint32_t k = PollGroup::rank();
  mine.stamp = at.stamp();
  WorkersMemory::store_if(k < needed, at.slot()[k], mine);
  if (needed > PollGroup::size())
    store_packets<WorkersMemory>(PollGroup{}, at, message, needed, PollGroup::size());
}
// claim() and publish_one() of a message, the same in all threads.
template <Rights rights>
GYRE_DEVICE_INLINE typename Mail<rights>::Claims Mail<rights>::send_alone(uint32_t to,
                                                                          const uint32_t* message) {
  uint32_t room = 0;
  uint64_t ticket = 0;
  if (PollGroup::rank() == 0) {
    room = producer_.room(to, 1);
    if (room != 0) ticket = producer_.claim(to, 1);
  }
  const uint32_t needed = packets_for(MailHead::body_bytes(body_bytes_in(message)));
  const Packet mine = own_packet(message, needed);
  if (!assert_warp_uniform(PollGroup::broadcast(room) != 0)) return {0, 0};
  const uint32_t low = PollGroup::broadcast(uint32_t(ticket));
  const uint32_t high = PollGroup::broadcast(uint32_t(ticket >> 32));
  PollGroup::sync();  // the stores of every thread come after the first one's loads
  ticket = uint64_t(high) << 32 | low;
  publish_one({mailboxes_.rings.ring(to), shape_, ticket}, shape_, mine, message, needed);
  note_reached(to);
  return {1, ticket};
}

// Sends the first of the next staged messages if it is for several actors.
// @param n  staged messages that are left, at most one a thread; becomes the number of those before the
//           next one that is for several actors
// @returns 1 if the first one was sent; else 0
template <Rights rights>
GYRE_DEVICE_INLINE uint32_t Mail<rights>::send_copies_of_first(uint32_t first, uint32_t& n) {
  const uint32_t rank = PollGroup::rank();
  const uint32_t copies = PollGroup::ballot(rank < n && FanOutHead::is_copy(staging_.message(first + rank)));
  if (copies == 0) return 0;
  n = detail::lowest_bit(copies);
  if (n != 0) return 0;
  const uint32_t* const message = staging_.message(first);
  const uint32_t body_bytes = MailHead::body_bytes(body_bytes_in(message));
  if (!queue_.push(message, body_bytes)) refuse(message);
  if (assert_warp_uniform(layout_.workers != 1)) {
    outbox_.send_to_others(me_, message, body_bytes,
                           [&](bool has_one, uint32_t to, typename OutboxType::MessageOf message_of) {
                             const Claims claims = claim(has_one, to);
                             publish(claims, to, PollGroup::size(), message_of);
                             return claims.claimed;
                           });
  }
  counts_.sent += layout_.workers - 1;
  return 1;
}

// Publishes the messages that slots were claimed for, as gyre::publish() does; several at once if they are
// short. Nothing in it fails or waits.
// @param count    threads that have a message: the first ones
// @param message  as a function of the thread that claimed
template <Rights rights>
template <class MessageOf>
GYRE_DEVICE_INLINE void Mail<rights>::publish(const Claims& claims, uint32_t to, uint32_t count,
                                              MessageOf&& message) {
  if (claims.claimed == 0) return;
  const uint32_t rank = PollGroup::rank();
  const bool claimed = (claims.claimed >> rank & 1) != 0;
  const RingCursor<WorkersMemory> at(mailboxes_.rings.ring(claimed ? to : me_), shape_, claims.ticket);
  const uint32_t packets =
      claimed ? packets_for(MailHead::body_bytes(body_bytes_in(message(rank)))) : uint32_t(0);
  if (PollGroup::any(claimed && at.stamps_whole_slot())) {
    if (claimed && at.stamps_whole_slot()) {
      GYRE_ROLLED
      for (uint32_t p = packets; p < shape_.packets(); ++p)
        WorkersMemory::store(at.slot()[p], Packet{{0, 0, 0}, at.stamp()});
    }
    PollGroup::sync();
  }
  uint32_t log_width = log_least_width;  // threads that store one message
  GYRE_ROLLED
  while (1u << log_width < PollGroup::size() && PollGroup::any(packets > 1u << log_width)) ++log_width;
  const auto slot = reinterpret_cast<uint64_t>(at.slot());
  GYRE_ROLLED
  for (uint32_t first = 0; first < count; first += PollGroup::size() >> log_width) {
    const uint32_t k = first + (rank >> log_width);
    const uint64_t low = PollGroup::broadcast_from(uint32_t(slot), k);
    const uint64_t high = PollGroup::broadcast_from(uint32_t(slot >> 32), k);
    const uint32_t stamp = PollGroup::broadcast_from(at.stamp(), k);
    const uint32_t needed = PollGroup::broadcast_from(packets, k);
    const uint32_t* const words = message(k);
    GYRE_ROLLED
    for (uint32_t p = rank & ((1u << log_width) - 1); p < needed; p += 1u << log_width) {
      const uint32_t* const data = words + p * words_a_packet;
      WorkersMemory::store(reinterpret_cast<Packet*>(low | high << 32)[p],
                           Packet{{data[0], data[1], data[2]}, stamp});
    }
  }
  if (claimed) note_reached(to);
}

// Sends of the outbox what can be sent now; returns how many messages.
template <Rights rights>
GYRE_DEVICE_INLINE uint32_t Mail<rights>::send_waiting() {
  return outbox_.send_each([&](const uint32_t* message) { return worker_of(message); },
                           [&](bool has_one, uint32_t to, typename OutboxType::MessageOf message_of) {
                             const Claims claims = claim(has_one, to);
                             publish(claims, to, PollGroup::size(), message_of);
                             return claims.claimed;
                           });
}

}  // namespace gyre
