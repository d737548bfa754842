// How a worker takes messages between actors: from its mailbox, from its queue of those that wait, from its
// reply ring, and from what it hands to many.
#pragma once

#include <gyre/device/worker/mail.hpp>

namespace gyre {

// What unpack_mail() does with the packets of a message before it unpacks them.
template <Rights rights>
struct Mail<rights>::KeepPacket {
  GYRE_DEVICE void operator()(Packet&, uint32_t) const {}
};
template <Rights rights>
struct Mail<rights>::UnmarkPacket {
  uint32_t origin = 0;  // of the message, in the thread that has it
  GYRE_DEVICE void operator()(Packet& packet, uint32_t k) {
    const uint32_t word = packet.data[MailHead::origin_word % words_a_packet];
    if (k == MailHead::origin_word / words_a_packet) origin = word & MailHead::origin_mask;
    MailHead::unmark(packet, k);
  }
};
// After a barrier: unpacks a message of `needed` packets into mail(0). Each thread has loaded the packet of
// its rank; those behind them are loaded here.
// @param mine  the packet that the calling thread has loaded
// @returns whether this thread's packets were there
template <Rights rights>
template <class Change>
GYRE_DEVICE_INLINE bool Mail<rights>::unpack_mail(const RingCursor<WorkersMemory>& at, const Packet& mine,
                                                  uint32_t needed, Change&& change) {
  const uint32_t k = PollGroup::rank();
  uint32_t* const message = staging_.mail(0);
  bool whole = k >= needed || mine.stamp == at.stamp();
  Packet packet = mine;
  change(packet, k);
  if (k < needed) unpack(packet, message, k);
  if (needed > PollGroup::size()) {
    GYRE_ROLLED
    for (uint32_t p = k + PollGroup::size(); p < needed; p += PollGroup::size()) {
      packet = WorkersMemory::load(at.slot()[p]);
      whole = whole && packet.stamp == at.stamp();
      change(packet, p);
      unpack(packet, message, p);
    }
  }
  return whole;
}

// Takes the next reply, if it is whole, and begins to load what lies behind it. A reply that on_reply() or
// on_failure() takes becomes a message to the actor that asked; another, to a forwarded ask, is the
// worker's.
template <Rights rights>
GYRE_DEVICE_INLINE bool Mail<rights>::take_reply() {
  uint32_t* const message = staging_.mail(0);
  // Also where the reply is not whole yet.
  if constexpr (rights.sends_to_many) fan_out_.forget_message_in_hand();
  const uint32_t body_bytes = PollGroup::broadcast(body_bytes_in(reply_packet_));
  const bool is_corrupt = body_bytes > reply_rings_.shape.body_capacity();  // memory was overwritten
  PollGroup::sync();
  const bool whole =
      is_corrupt || unpack_mail(replies_.next(), reply_packet_, packets_for(body_bytes), KeepPacket{});
  if (!PollGroup::all(whole)) {
    reply_packet_.stamp = 0;  // the next poll loads it again
    return false;
  }
  PollGroup::sync();
  replies_.advance();
  next_reply_cell_ = cell_of_next_reply();
  load();
  const Envelope reply = *reinterpret_cast<const Envelope*>(message);
  OpenCall* const call = calls_.find(reply.correlation);
  if (is_corrupt || call == nullptr) {  // memory was overwritten
    count_failed();
    if constexpr (rights.sends_large) {
      if (!is_corrupt) bodies().end(message);
    }
    return false;
  }
  const bool is_for_actor = call->kind == OpenCall::Kind::ask;
  CallInHand& in_hand = staging_.call();
  GYRE_ROLLED
  for (uint32_t i = PollGroup::rank(); i < OpenCall::content_words; i += PollGroup::size())
    in_hand.state[i] = call->content[i];
  PollGroup::sync();
  if (PollGroup::rank() == 0) {
    auto& envelope = *reinterpret_cast<Envelope*>(message);
    envelope.message_type = is_for_actor ? call_message::reply : call_message::answer;
    if (is_for_actor) {
      in_hand.state_type = call->state_type;
      envelope.correlation = call->incarnation;
      envelope.key = call->key;
      envelope.actor_type = call->actor_type;
      envelope.flags |= envelope_flags::to_asker;
      calls_.close(*call);
    }
  }
  PollGroup::sync();
  from_ = from_reply_ring;
  note_taken();
  return true;
}

// Takes the message for the next actor that it is for.
template <Rights rights>
template <class MostSent, class Find>
GYRE_DEVICE_INLINE FanOut::Found Mail<rights>::hand_out(bool held, MostSent& most_sent, Find& find) {
  const Envelope copy = fan_out_.envelope();
  const bool is_to_topic = copy.priority == fan_out::to_topic;
  const uint32_t types = copy.actor_type | uint32_t(copy.message_type) << 16;
  const FanOut::Found found = fan_out_.next(
      [&](uint32_t place, FanOut::Receiver& receiver) {
        if (is_to_topic) return fan_out_.find_subscriber(subscriptions_, place, receiver);
        receiver.types = types;
        return find(uint32_t(copy.actor_type), place, receiver.key);
      },
      [&](uint32_t of_receiver) { return !held || may_send(most_sent(of_receiver)); });
  if (found == FanOut::Found::message) {
    if (held) left_while_held_ -= most_sent(types_in(message()));
    ++counts_.sent;  // processed or failed as any message to one actor
    from_ = me_;
    note_taken();
  } else if (found == FanOut::Found::none) {
    count_processed(1);  // the copy
  }
  return found;
}

// Moves up to most_in_a_row messages from the mailbox to the queue, so that others can send. Where there is
// no memory for them they are refused: without that two workers might wait for each other for ever.
template <Rights rights>
GYRE_DEVICE_INLINE void Mail<rights>::empty_mailbox() {
  if constexpr (rights.sends_to_many) fan_out_.forget_message_in_hand();
  GYRE_ROLLED
  for (uint32_t n = 0; n < most_in_a_row && has_mail() && take_from_mailbox(); ++n) {
    const uint32_t body_bytes = body_bytes_in(message());
    PollGroup::sync();
    // take_from_queue() unmarks the message again.
    if (PollGroup::rank() == 0) message()[MailHead::size_word] |= staging_.sender_type() << 16;
    PollGroup::sync();
    if (queue_.push(message(), body_bytes)) {
      ++moved_;
      note(&RareCounts::spilled);
    } else {
      refuse(message());
    }
    finish();
  }
  give_back();
}

template <Rights rights>
GYRE_DEVICE_INLINE void Mail<rights>::take_from_queue() {
  uint32_t* const message = staging_.mail(0);
  const uint32_t* const front = queue_.front();
  PollGroup::sync();
  copy_message(message, front, MailHead::body_bytes(body_bytes_in(front)));
  // Those that were moved have no sender any more.
  if ((message[MailHead::origin_word] & MailHead::origin_mask) == 0) --moved_;
  PollGroup::sync();
  if (PollGroup::rank() == 0) {
    staging_.sender_type() = MailHead::sender_type(message[MailHead::size_word]);
    MailHead::unmark(message);
  }
  PollGroup::sync();
  queue_.pop();
  from_ = me_;
  note_taken();
}

// Takes the message whose begin found() saw, if it is whole, and begins to load the one behind it.
template <Rights rights>
GYRE_DEVICE_INLINE bool Mail<rights>::take_from_mailbox() {
  const uint32_t k = PollGroup::rank();
  const uint32_t size = PollGroup::broadcast(packet_.data[MailHead::size_word]);
  const uint32_t needed = packets_for(MailHead::body_bytes(size));
  if (needed > shape_.packets()) return skip_slot();
  PollGroup::sync();
  staging_.sender_type() = MailHead::sender_type(size);  // all threads store the same: no branch
  UnmarkPacket unmark;
  if (!PollGroup::all(unpack_mail(next_slot_, packet_, needed, unmark))) {
    packet_.stamp = 0;  // the next poll loads it again
    return false;
  }
  const uint32_t origin =
      PollGroup::broadcast_from(unmark.origin, MailHead::origin_word / words_a_packet % PollGroup::size());
  from_ = MailHead::worker_of(origin);
  waited_ = (origin & MailHead::waited) != 0;
  if (from_ >= layout_.workers) return skip_slot();
  follows_ = k == shape_.packets() && packet_.stamp == next_slot_.stamp() && next_slot_.left_of_lap() > 1;
  PollGroup::sync();
  move_on();
  note_taken();
  return true;
}

}  // namespace gyre
