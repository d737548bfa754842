// A message for the actor and handler that the worker expects, whose root and lists lie where they lay in the
// last one: nearly every message. No lookup, no check of the root; handler, reply, and the reply's memory
// cleared.
#pragma once

#include <gyre/device/worker/worker.hpp>

namespace gyre {

// 0 where the message in hand may take the fast path. For a worker that does not compare packets.
template <class... Actors>
GYRE_DEVICE uint32_t Worker<Actors...>::expected_mismatch() const {
  const uint32_t stopped = uint32_t(command_.command()) ^ uint32_t(Command::run);
  return fast_path_blockers(head()) | stopped | head().mismatch_bits(expected_.head);
}
// Not 0 where the message is late, has a flag other than `ask` (a control message, or one whose bodies lie in
// the arena), an origin or a priority. Bits, not a bool: a lone warp waits longer for a predicate than for a
// word.
template <class... Actors>
GYRE_DEVICE uint32_t Worker<Actors...>::fast_path_blockers(const RequestHead& head) const {
  return head.late_bit(now_us()) | (head.flags() & ~(uint32_t(envelope_flags::ask) << 24));
}

// Makes the message in hand the expected one, if it may take the fast path: messages that match it may take
// it too. Where it may not, its actor may have been found or created.
template <class... Actors>
GYRE_DEVICE_INLINE bool Worker<Actors...>::admit_to_fast_path() {
  if (fast_path_blockers(head()) != 0 || command_.command() != Command::run) return false;
  const bool same_actor = head().types() == expected_.head.types() && head().key() == expected_.head.key();
  if (!same_actor && !expect_actor()) return false;
  expected_.head = head();
  const uint64_t words = fast_path_mask(ActorList<Actors...>{}, head(), request() + envelope_words,
                                        bridge_.shape.body_capacity());
  if (words != 0) {
    requests_.remember(words);
    return true;
  }
  expected_.head.forget_size();
  requests_.forget();
  return false;
}
// Forgets the expected message: none takes the fast path until one is admitted.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::forget_expected() {
  expected_.head.forget_actor();
  if (!is_mail()) requests_.forget();
}
// After an actor was removed or created.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::forget_all_expected() {
  forget_expected();
  if constexpr (rights().sends) {
    mail_.other_expected.head.forget_actor();
    requests_.forget();
  }
}

// Finds or creates the actor of a message for another actor than the expected one, and expects that actor.
// @returns whether the actor was there already
template <class... Actors>
GYRE_DEVICE_INLINE bool Worker<Actors...>::expect_actor() {
  actor_found_ = true;
  if constexpr (rights().sends) mail_.named = mail_.in_hand();
  if (HandlerGroup::rank() == 0) find_or_create_actor(*reinterpret_cast<const Envelope*>(request()));
  HandlerGroup::sync();
  const MessageVerdict& verdict = shared_->verdict;
  forget_expected();
  expected_.counts = counts_of(head().types());
  expected_.state = verdict.state;
  if constexpr (any_side_by_side<Actors...>) {
    expected_.handles_side_by_side = handles_side_by_side(ActorList<Actors...>{}, head().types() & 0xffff);
  }
  if constexpr (most_gathered<Actors...> != 0) {
    expected_.most_in_batch = most_in_batch(ActorList<Actors...>{}, head().types());
  }
  if constexpr (any_rolls_back<Actors...>) {
    expected_.rollback_bytes = rollback_bytes(ActorList<Actors...>{}, head().types() & 0xffff);
  }
  return verdict.refused == Status::ok && verdict.new_actor == 0;
}
// Finds the message's actor, or creates it, and names it in the last-words record, which a fault report
// reads. One thread.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::find_or_create_actor(const Envelope& envelope) {
  find_or_create(ActorList<Actors...>{}, shared_->memory, actors_, envelope, shared_->verdict);
  name_last_words(envelope.key, uint32_t(envelope.actor_type) | uint32_t(envelope.message_type) << 16);
}
// One thread.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::name_last_words(uint64_t key, uint32_t types) const {
  Memory::store(bridge_.last_words->packet,
                Packet{{uint32_t(key), uint32_t(key >> 32), types}, LastWords::one});
}

// What reply_at_once() found and did.
template <class... Actors>
struct Worker<Actors...>::Vote {
  uint32_t exceptional = 0;  // not 0 if the message did not end well
  bool replied = false;      // the first packets of the reply are stored
};
// How a handler left its message, in the calling thread; of a failure the reason is noted already.
template <class... Actors>
struct Worker<Actors...>::NotedEnding {
  uint32_t failure = 0, bytes = 0;
  uint32_t exceptional = 0;  // Vote::exceptional, once the group has voted
  GYRE_DEVICE uint32_t failure_bits() const { return failure; }
  GYRE_DEVICE uint32_t response_bytes() const { return bytes; }
  GYRE_DEVICE Handled handled() const { return {Status::ok, 0, 0, bytes}; }
};
// Runs after a handler of the fast path, and is compiled once for each. In a set that sends, a conclusion is
// long: there it only notes the ending, and answers the host where nothing else may be due. Elsewhere it
// concludes the message.
template <class... Actors>
struct Worker<Actors...>::FastConclusion {
  Worker& worker;
  const HandlerContext& context;
  NotedEnding& noted;
  template <class EndingType>
  GYRE_DEVICE_INLINE Handling operator()(const EndingType& ending) const {
    if constexpr (rights().sends) {
      if constexpr (EndingType::only_answers) {
        const Vote result = worker.reply_at_once(ending, worker.is_mail());
        noted.exceptional = result.exceptional;
        if (!assert_warp_uniform(!result.replied)) {
          worker.end_reply_at_once(ending.response_bytes());
          worker.finish_fast(ending.response_bytes());
          return Handling::done;
        }
      }
      worker.note_staged(context);
      noted.failure = ending.failure_bits();
      noted.bytes = ending.response_bytes();
      if (noted.failure != 0) detail::note_failure(worker.shared_->verdict, ending.handled());
      return EndingType::only_answers ? Handling::voted : Handling::noted;
    } else {
      return worker.conclude_fast(ending);
    }
  }
};

// In a set that does not send: runs the handler, and answers.
template <class... Actors>
GYRE_DEVICE_INLINE Handling Worker<Actors...>::handle_on_fast_path() {
  NotedEnding noted;
  return call_on_fast_path(noted);
}
// Runs the handler, and FastConclusion. The key, the types and the size are read from the expected message,
// which is in registers before the message arrives.
template <class... Actors>
GYRE_DEVICE_INLINE Handling Worker<Actors...>::call_on_fast_path(NotedEnding& noted) {
  if constexpr (any_rolls_back<Actors...>) save_state(expected_.rollback_bytes, expected_.state);
  HandlerContext context = make_context(expected_.head.key(), is_ask_in_hand(), expected_.head.types());
  return dispatch_fast(ActorList<Actors...>{}, expected_.head.types(), expected_.state, context, head(),
                       request() + envelope_words, expected_.head.body_bytes(), response_ + envelope_words,
                       bridge_.shape.body_capacity(), FastConclusion{*this, context, noted});
}

template <class... Actors>
GYRE_DEVICE_INLINE ReplyPlace Worker<Actors...>::reply_place() const {
  ReplyPlace place(PollGroup::rank(), pin_shared_address(request()), pin_shared_address(response_));
  place.words_0_1 = pin_shared_address(place.words_0_1);
  place.word_2 = pin_shared_address(place.word_2);
  return place;
}

// After the handler. A warp votes whether a thread failed; the reason is computed for exceptional messages
// alone, off the path of replies.
template <class... Actors>
GYRE_DEVICE_INLINE Handling Worker<Actors...>::conclude_fast(const Ending& ending) {
  const Vote result = reply_at_once(ending, 0);
  if (result.replied) {
    end_reply_at_once(ending.response_bytes());
  } else if (result.exceptional != 0) {
    note_exceptional(ending);
    return Handling::exceptional;
  } else {
    count_tell(true);
  }
  finish_fast(ending.response_bytes());
  return Handling::done;
}
// After the handler: the group votes whether the message ended well. If it did, and is an ask, stores the
// first packets of the reply to the host.
// @param more  not 0: stores none, since something may come before the reply
template <class... Actors>
template <class EndingType>
GYRE_DEVICE_INLINE auto Worker<Actors...>::reply_at_once(const EndingType& ending, uint32_t more) -> Vote {
  // Where the reply's words lie is computed before the vote, which waits for the ending.
  const ReplyPlace place = reply_place();
  const uint32_t failed = vote(ending);
  const uint32_t response_bytes = ending.response_bytes();
  const bool is_ask = is_ask_in_hand();
  // What a reply needs is loaded beside what decides whether it is sent; a worker of one warp does not branch
  // before the reply's first packets are stored.
  const Packet first = replies_.packet(place, response_bytes);
  const uint32_t exceptional = load_here(&shared_->verdict.exceptional) | failed, later = exceptional | more;
  if (polls()) {
    const uint32_t bytes = uint32_t(sizeof(Envelope)) + response_bytes, k = PollGroup::rank();
    const uint32_t sends_none = materialize(!(is_ask & (k * data_bytes_a_packet < bytes)));
    Memory::store_if((sends_none | later) == 0, replies_.slot()[k], first);
  }
  const bool replied = (later == 0) & is_ask;
  return {exceptional, replied};
}
// Where reply_at_once() stored packets: stores the rest of the reply.
template <class... Actors>
GYRE_DEVICE_INLINE void Worker<Actors...>::end_reply_at_once(uint32_t response_bytes) {
  if (polls()) {
    replies_.store_rest(request(), response_, response_bytes);
    advance_replies();
  }
  ++report_.answered;
}
// Ends with a barrier. Where threads that do not poll run handlers, too, notes failures in the verdict.
// @returns whether a thread failed, as not 0
template <class... Actors>
template <class EndingType>
GYRE_DEVICE_INLINE uint32_t Worker<Actors...>::vote(const EndingType& ending) {
  const bool ok = ending.failure_bits() == 0;
  uint32_t failed = 0;
  if constexpr (HandlerGroup::all_threads_poll()) {
    failed = PollGroup::ballot(!ok);
  } else if (!ok) {
    detail::note_failure(shared_->verdict, ending.handled());
  }
  HandlerGroup::sync();
  return failed;
}
// Of an exceptional message: completes its verdict, and rolls the actor back if it failed.
template <class... Actors>
template <class EndingType>
GYRE_DEVICE_INLINE void Worker<Actors...>::note_exceptional(const EndingType& ending) {
  if constexpr (HandlerGroup::all_threads_poll()) {
    if (ending.failure_bits() != 0) detail::note_failure(shared_->verdict, ending.handled());
  }
  if (HandlerGroup::rank() == 0) shared_->response_bytes = ending.response_bytes();
  HandlerGroup::sync();
  if constexpr (any_rolls_back<Actors...>) {
    if (shared_->verdict.status != Status::ok) restore_state(expected_.rollback_bytes, expected_.state);
  }
}
// Counts the message as processed and clears its response.
template <class... Actors>
GYRE_DEVICE_INLINE void Worker<Actors...>::finish_fast(uint32_t response_bytes) {
  report_.meter().processed(expected_.counts, ticks_since_found(), HandlerGroup::rank() == 0);
  if (polls()) {
    clear(PollGroup{}, response_, response_bytes);
    PollGroup::sync();
  }
}
// In a set that sends, after what the handler staged was sent: answers a message that ended well.
template <class... Actors>
GYRE_DEVICE_INLINE void Worker<Actors...>::answer_fast(const NotedEnding& noted) {
  const bool is_ask = is_ask_in_hand();
  bool answers_host = is_ask;  // by the response that the handler built
  if constexpr (rights().asks) answers_host = answers_now(is_ask) && !is_mail();
  if (answers_host) {
    if (polls()) {
      const Packet first = replies_.packet(reply_place(), noted.bytes);
      const uint32_t bytes = uint32_t(sizeof(Envelope)) + noted.bytes, k = PollGroup::rank();
      Memory::store_if(k * data_bytes_a_packet < bytes, replies_.slot()[k], first);
      replies_.store_rest(request(), response_, noted.bytes);
      advance_replies();
    }
    ++report_.answered;
  } else if (rights().asks && is_ask) {
    end_ask_without_host_reply(noted.bytes);
  } else {
    count_tell(true);
  }
  finish_fast(noted.bytes);
}

// Of an ask that ended well: answers it if it is an actor's, unless that comes later.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::end_ask_without_host_reply([[maybe_unused]] uint32_t response_bytes) {
  if constexpr (rights().asks) {
    if (answers_now(true)) {
      answer_actor(*reinterpret_cast<const Envelope*>(request()), response_bytes);
    } else {
      count_deferred();
    }
  }
}

// Clears a reply's body, and up to 16 bytes behind it. Collective over `group`.
template <class... Actors>
template <class Group>
GYRE_DEVICE void Worker<Actors...>::clear(const Group& group, uint32_t* response, uint32_t body_bytes) {
  auto* const body = reinterpret_cast<Packet*>(response + envelope_words);
  uint32_t i = group.rank();
  if (i * sizeof(Packet) < body_bytes) body[i] = Packet{};
  if (body_bytes > group.size() * sizeof(Packet)) {
    GYRE_ROLLED
    for (i += group.size(); i * sizeof(Packet) < body_bytes; i += group.size()) body[i] = Packet{};
  }
}

}  // namespace gyre
