// How a worker of a set that sends takes messages of other actors, and sends what its handlers staged.
#pragma once

#include <gyre/device/worker/worker.hpp>

namespace gyre {

// @param types  RequestHead::types() of the message
template <class... Actors>
GYRE_DEVICE auto Worker<Actors...>::make_context(uint64_t key, bool is_ask,
                                                 [[maybe_unused]] uint32_t types) const -> HandlerContext {
  if constexpr (rights().asks) {
    return HandlerContext(key, is_ask, *shared_, staging(), types & 0xffff, is_mail(), request(),
                          mail_.calls());
  } else if constexpr (rights().sends) {
    return HandlerContext(key, is_ask, *shared_, staging(), types & 0xffff, is_mail());
  } else {
    return HandlerContext(key, is_ask, *shared_);
  }
}

// turn() in a set that sends.
template <class... Actors>
template <class Pause>
GYRE_DEVICE_INLINE PollOutcome Worker<Actors...>::turn_with_mail(Pause pause) {
  if constexpr (compares_packets) return warp_turn_with_mail(pause);
  PollOutcome outcome = PollOutcome::nothing;
  if constexpr (HandlerGroup::all_threads_poll()) {
    bool is_mail = next_mail();
    if (!is_mail) {
      outcome = poll_requests();
      if (outcome == PollOutcome::message) note_host_message();
      is_mail = outcome == PollOutcome::nothing && mail_.found() && next_mail();
    }
    if (is_mail) {
      if (handle_for_worker()) return PollOutcome::message;
      begin_mail();
      outcome = PollOutcome::message;
    }
  } else {
    bool from_mail = false;
    if (polls()) {
      while (!(from_mail = next_mail_for_handlers()) && (outcome = poll_requests()) == PollOutcome::nothing) {
        if (!mail_.found() && !mail_.has_waiting()) pause(empty_polls());
      }
      if (from_mail) {
        outcome = PollOutcome::message;
        requests_.request_command();  // the handler's time begins
      } else {
        note_host_message();
      }
      update_host_room();
    }
    outcome = share_outcome(outcome, from_mail);
  }
  if (outcome == PollOutcome::message) {
    if (!is_mail()) expect_of(detail::Named::of_host);
    if constexpr (HandlerGroup::all_threads_poll()) update_host_room();
    bool fast = false;
    if (is_mail()) {
      fast = admit_mail();
    } else {
      fast = expected_mismatch() == 0 || admit_to_fast_path();
      if (fast) name_last_words_if_stale();
    }
    handle_message(fast);
    end_mail();
  }
  if (outcome == PollOutcome::corrupt) skip();
  if (outcome == PollOutcome::nothing) pause(requests_.empty_polls());
  return outcome;
}
// warp_turn() in a set that sends. One test here, too: it says that the host's message may take the fast path
// and that no message of an actor came since the one that it is like. handle_message() is called in one
// place: that is most of the machine code.
template <class... Actors>
template <class Pause>
GYRE_DEVICE_INLINE PollOutcome Worker<Actors...>::warp_turn_with_mail(Pause pause) {
  if (take_command()) return PollOutcome::stop;
  uint32_t mismatch = 0, in_stream = 0, other_than_last = 1;
  bool is_mail = false;
  GYRE_ROLLED  // once more, with the poll, where the poll found mail alone
      for (bool polled = false;; polled = true) {
    is_mail = take_mail();
    if (is_mail) break;
    mismatch = poll_ring();
    in_stream = requests_.in_stream();
    other_than_last = mismatch | in_stream | mail_.last_was_of_actor();
    if (other_than_last == 0) {
      mail_.note_host();
      break;
    }
    // One vote for all of it: mail is there, nothing of the host, and this was the first poll.
    if (!mail_.is_alone(!polled && requests_.begins_none())) break;
    requests_.drop_window();
  }
  Prefetch<1> next;
  uint32_t fast = 1;  // not a bool: a lone warp waits longer for a predicate than for a word
  if (is_mail) {
    if (handle_for_worker()) return PollOutcome::message;
    begin_mail();
    if (handle_mail_together()) return PollOutcome::message;
    fast = admit_mail();
  } else if (other_than_last != 0) {
    expect_of(detail::Named::of_host);
    if (mismatch != 0) {
      const PollOutcome outcome = classify_mismatch();
      if (outcome == PollOutcome::nothing && mail_.has_waiting()) return outcome;
      if (outcome != PollOutcome::message) return end_turn_without_message(outcome, pause);
      fast = admit_to_fast_path();
    }
    if (fast != 0) name_last_words_if_stale();
    note_host_message();
    if (mismatch == 0 && in_stream != 0) {
      if (try_batch()) return PollOutcome::message;
      if (!takes_batches()) next = requests_.prefetch<1>(1);
    }
  }
  update_host_room();
  handle_message(fast != 0);
  end_mail();
  requests_.adopt(next);
  return PollOutcome::message;
}

// Takes a message of an actor, if it is its turn; none once the worker is to stop. Polling threads.
template <class... Actors>
GYRE_DEVICE_INLINE bool Worker<Actors...>::next_mail() {
  take_command();  // which was requested behind the last message
  return !stop_seen_ && command_.command() != Command::stop && take_mail();
}
// next_mail(), of messages that are not the worker's own.
template <class... Actors>
GYRE_DEVICE_INLINE bool Worker<Actors...>::next_mail_for_handlers() {
  bool is_mail = next_mail();
  GYRE_ROLLED
  while (is_mail && handle_for_worker()) is_mail = next_mail();
  return is_mail;
}
// Takes a message of an actor, if it is its turn. Polling threads.
template <class... Actors>
GYRE_DEVICE_INLINE bool Worker<Actors...>::take_mail() {
  if constexpr (rights().asks) {
    if (assert_warp_uniform(mail_.take_failing())) end_failing_calls();
  }
  if constexpr (rights().sets_timers) mail_.send_due([this](uint32_t type) { count_sent(type, 1, true); });
  const bool found = mail_.found();
  if (mail_.is_quiet(found)) {
    mail_.note_quiet();
    return false;
  }
  return assert_warp_uniform(mail_.next(
      found, [](uint32_t types) { return most_sent_by_handler(ActorList<Actors...>{}, types); },
      [this](uint32_t actor_type, uint32_t place, uint64_t& key) {
        return find_actor_at(ActorList<Actors...>{}, shared_->memory, actors_, actor_type, place, key);
      }));
}

// Makes the message of an actor that was taken the one in hand: admit_mail(), handle_message() and end_mail()
// follow. In a group in which all threads poll.
template <class... Actors>
GYRE_DEVICE_INLINE void Worker<Actors...>::begin_mail() {
  request_ = mail_.message();
  requests_.load_head(request_);
  mail_.is_in_hand = true;
  // The handler's time begins. The command is sampled behind the message, unless it has a deadline to judge.
  if (assert_warp_uniform(head().deadline_us() != 0)) {
    requests_.request_command();
  } else {
    requests_.read_clock_again();
  }
}
// After the message was handled. Every thread.
template <class... Actors>
GYRE_DEVICE_INLINE void Worker<Actors...>::end_mail() {
  if (mail_.is_in_hand && polls()) requests_.request_command();
  mail_.is_in_hand = false;
}

// Says whether the message in hand, which is mail, may take the fast path; if so, names it in the last-words
// record. One for the same actor and handler as the last, of its size and with the same pointer to its root,
// may: that its root fits was found with the last. Where lists decide, too, each message is looked at.
template <class... Actors>
GYRE_DEVICE_INLINE bool Worker<Actors...>::admit_mail() {
  if constexpr (rights().asks) {
    if (head().is_for_asker()) return expect_asker();
  }
  const bool is_like_last = (expected_mismatch() | mail_.last_was_of_host()) == 0;
  constexpr bool may_need_chunk = rights().asks && rights().sends_large && any_max_reply_bytes<Actors...>();
  if (!may_need_chunk && is_like_last) return true;
  expect_of(detail::Named::of_actor);
  if (fast_path_blockers(head()) != 0 || command_.command() != Command::run) return false;
  if constexpr (may_need_chunk) {
    if (needs_reply_chunk(head().types(), head().flags() >> 24)) return false;
  }
  const bool same_actor = head().types() == expected_.head.types() && head().key() == expected_.head.key();
  if (!same_actor && !expect_actor()) return false;
  expected_.head = head();
  const uint64_t words = fast_path_mask(ActorList<Actors...>{}, head(), request() + envelope_words,
                                        bridge_.shape.body_capacity());
  if (words == 0) {
    expected_.head.forget_size();
    return false;
  }
  if (words != 1) expected_.head.forget_root();  // other words decide, beside the pointer to the root
  name_last_words_if_stale();
  return true;
}

// admit_mail() of a reply for an actor that asked: most often it is for the same one as the last reply.
template <class... Actors>
GYRE_DEVICE_INLINE bool Worker<Actors...>::expect_asker() {
  expect_of(detail::Named::of_actor);
  if (head().asker_mismatch_bits(expected_.head) != 0 && !expect_actor()) return false;
  expected_.head = head();  // whose size differs from reply to reply
  name_last_words_if_stale();
  if constexpr (rights().sends_large) {
    if ((head().flags() >> 24 & envelope_flags::out_of_line) != 0) {
      // The special path calls on_reply() with it, and with no other reply: see dispatch().
      actor_found_ = true;
      if (HandlerGroup::rank() == 0) shared_->verdict.state = expected_.state;
      return false;
    }
  }
  return true;
}

// Handles the message in hand, which is mail, together with those behind it in the mailbox that are for the
// same handler, each by one thread: of the same actor one at a time, unless its type allows more. By a warp.
// @returns false, with nothing done, if the message is to be handled alone
template <class... Actors>
GYRE_DEVICE_INLINE bool Worker<Actors...>::handle_mail_together() {
  if constexpr (mail_side_by_side<Actors...>()) {
    const uint32_t types = head().types();
    const SideBySide allowed = gyre::mail_side_by_side(ActorList<Actors...>{}, types);
    if (allowed == SideBySide::none || command_.command() != Command::run) return false;
    const uint32_t count = mail_.gather([&](const uint32_t* message) {
      const RequestHead other = RequestHead::load(message);
      // An ask, whose receipt is a reply, is handled alone; so is a message whose deadline is to be judged.
      return other.types() == types && other.deadline_us() == 0 && (!rights().asks || other.flags() == 0) &&
             fast_path_blockers(other) == 0 &&
             fast_path_mask(ActorList<Actors...>{}, other, message + envelope_words,
                            bridge_.shape.body_capacity()) != 0;
    });
    if (count < 2) return false;

    const uint32_t rank = PollGroup::rank();
    const bool has_one = rank < count;
    const uint32_t* const request = mail_.message(has_one ? rank : 0);
    const RequestHead head = RequestHead::load(request);
    MessageVerdict& verdict = shared_->batch_verdicts[rank];
    name_several_if_stale(types);
    void* const state = find_or_create_each(ActorList<Actors...>{}, shared_->memory, actors_, types & 0xffff,
                                            has_one, *reinterpret_cast<const Envelope*>(request), verdict);
    const bool created = has_one && verdict.new_actor != 0;
    const bool refused = has_one && verdict.refused != Status::ok;
    if (refused) detail::note_failure(verdict, {verdict.refused, verdict.detail, verdict.where, 0});
    uint32_t turn = 0;
    if (allowed == SideBySide::distinct_keys) {  // keys that differ in their upper halves alone wait too
      const uint32_t same = PollGroup::match(uint32_t(head.key())) & PollGroup::ballot(has_one);
      turn = detail::count_bits(same & ((1u << rank) - 1));
    }
    if (rank == 0) shared_->team_log_size = 0;
    PollGroup::sync();
    GYRE_ROLLED
    for (uint32_t now = 0; PollGroup::any(has_one && turn >= now); ++now) {
      if (has_one && !refused && turn == now) {
        Context context(head.key(), false, *shared_, verdict, Team::part(0));
        dispatch_mail(ActorList<Actors...>{}, types, state, context, head, request + envelope_words,
                      head.body_bytes(), response_ + envelope_words, bridge_.shape.body_capacity(),
                      [&](const Ending& ending) {
                        if (ending.failure_bits() != 0) detail::note_failure(verdict, ending.handled());
                        return Handling::done;
                      });
      }
      PollGroup::sync();
    }
    if (rank == 0) shared_->team_log_size = log_warp_size;
    const bool done = has_one && verdict.exceptional == 0;
    if (done) {
      report_.meter().processed(counts_of(types), ticks_since_found(), true);
      verdict = MessageVerdict{};
    }
    count_mail_processed(types & 0xffff, detail::count_bits(PollGroup::ballot(done)));
    if (done && created) report_.meter().add(types & 0xffff, &HandlerCounts::Actors::created, 1);
    const bool any_created = PollGroup::any(created);
    const uint32_t exceptional = PollGroup::ballot(has_one && !done);
    GYRE_ROLLED
    for (uint32_t left = exceptional; left != 0; left &= left - 1) {
      const uint32_t n = detail::lowest_bit(left);
      PollGroup::sync();
      if (rank == 0) {
        shared_->verdict = shared_->batch_verdicts[n];
        shared_->batch_verdicts[n] = MessageVerdict{};
      }
      PollGroup::sync();
      conclude<Concluded::with_others_of_actors>(mail_.message(n), 0, false);
    }
    if (any_created) forget_all_expected();
    mail_.finish_gathered(count);
    end_mail();
    return true;
  }
  return false;
}

// The host's messages and those of actors are expected apart: makes what is expected of one side the expected
// message.
template <class... Actors>
GYRE_DEVICE_INLINE void Worker<Actors...>::expect_of(detail::Named side) {
  if (mail_.expected_of == side) return;
  mail_.expected_of = side;
  const ExpectedMessage other = mail_.other_expected;
  mail_.other_expected = expected_;
  expected_ = other;
}

// A message of the host is in hand that was looked at apart from the one test of a warp's turn.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::note_host_message() {
  mail_.load_beside_stream();
  mail_.note_host();
}

// Before the fast path, which does not write the last-words record: a message from the other side may have
// written it since.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::name_last_words_if_stale() {
  if (mail_.named == mail_.in_hand()) return;
  mail_.named = mail_.in_hand();
  if (HandlerGroup::rank() == 0) name_last_words(expected_.head.key(), expected_.head.types());
}
// Messages of one type that are handled at once have one record, which stays while they come.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::name_several_if_stale(uint32_t types) {
  if (mail_.named == detail::Named::several && mail_.named_types == types) return;
  mail_.named = detail::Named::several;
  mail_.named_types = types;
  if (HandlerGroup::rank() == 0)
    Memory::store(bridge_.last_words->packet, Packet{{0, 0, types}, LastWords::several});
}

// After the handler has returned.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::note_staged(const HandlerContext& context) {
  mail_.output.staged = context.staged();
  if constexpr (rights().tells_host) {
    mail_.output.staged_to_host = context.staged_to_host();
    mail_.count_told(0, context.refused_by_host());
  }
  if constexpr (rights().sets_timers) {
    mail_.output.staged_for_timers = context.staged_for_timers();
    mail_.output.timers_set = context.timers_set();
  }
  if constexpr (rights().sends_to_many) mail_.output.staged_for_topics = context.staged_for_topics();
  mail_.output.spawned = context.spawned();
  if constexpr (rights().asks) {
    mail_.output.opened = context.opened();
    mail_.output.deferred = context.is_deferred();
  }
}
// handle_message() behind handle_gathered(), up to advance(). What handlers staged is sent in one place: that
// is much of the machine code.
template <class... Actors>
GYRE_DEVICE_INLINE void Worker<Actors...>::handle_and_send(bool may_be_fast) {
  NotedEnding noted;
  Handling handling = Handling::none;
  mail_.output = {};
  if (may_be_fast) handling = call_on_fast_path(noted);
  if (handling == Handling::done) return;
  // Not for a handler that only answers and ended well: it has voted, and sends nothing.
  if (handling != Handling::voted || assert_warp_uniform(noted.exceptional != 0)) {
    bool exceptional = false, response_in_block = false;
    if (handling == Handling::none) {
      handling = handle_special(response_in_block);
      exceptional = handling == Handling::exceptional;
    } else {
      // A vote alone: what the handler staged is sent before its reply is stored.
      if (handling == Handling::noted) noted.exceptional = reply_at_once(noted, 1).exceptional;
      handling = Handling::voted;
      exceptional = assert_warp_uniform(noted.exceptional != 0);
      if (exceptional) note_exceptional(noted);
    }
    Status status = Status::ok;
    if (exceptional) {
      begin_conclusion(request(), response_in_block);
      status = shared_->verdict.status;
      if constexpr (rights().sends_large) settle_bodies(status, request());
    }
    send_staged(status);
    if (exceptional) {
      end_conclusion<Concluded::alone>(request(), shared_->response_bytes, response_in_block);
      if constexpr (rights().sends_large) end_bodies_in_hand();
    }
    if (exceptional || handling != Handling::voted) return;
  }
  answer_fast(noted);
}
// Sends what the handler staged, or discards it where its message ends in an error. After a barrier; every
// thread calls.
template <class... Actors>
GYRE_DEVICE_INLINE void Worker<Actors...>::send_staged(Status status) {
  // Not before the barrier: other threads of the handler read these numbers.
  if (mail_.output.spawned != 0 && HandlerGroup::rank() == 0) staging().spawned() += mail_.output.spawned;
  if constexpr (rights().sets_timers) {
    if (mail_.output.timers_set != 0 && HandlerGroup::rank() == 0)
      staging().timers_ever() += mail_.output.timers_set;
  }
  if constexpr (rights().asks) {
    if (status != Status::ok) {
      mail_.output.deferred = false;
      if (HandlerGroup::rank() == 0)
        mail_.calls().discard(staging().layout.most_sent + 1);  // also what later() opened
    } else if (mail_.output.deferred) {  // before an answer to it is sent, which may be refused
      open_calls();
    }
  }
  if (status == Status::ok) {
    if (polls() && assert_warp_uniform(mail_.output.staged != 0)) {
      send_staged_to_host();
      obey_staged_for_timers();
      obey_staged_for_topics();
      const uint64_t sent_before = mail_.sent();
      mail_.send(mail_.output.staged, mail_.output.staged_to_host + mail_.output.staged_for_timers +
                                          mail_.output.staged_for_topics);
      if constexpr (rights().asks) open_calls();  // the others, while their asks are under way
      count_sent(head().types() & 0xffff, mail_.sent() - sent_before, PollGroup::rank() == 0);
    }
  } else {  // a thread may have staged more than this one knows
    const Staging all = staging();
    const uint32_t words = all.layout.most_sent * all.layout.message_words;
    GYRE_ROLLED
    for (uint32_t i = HandlerGroup::rank(); i < words; i += HandlerGroup::size()) all.message(0)[i] = 0;
  }
}
// Opens the calls that the handler wrote, unless that is done. Every thread may call it.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::open_calls() {
  if (!polls() || !assert_warp_uniform(mail_.output.opened != 0)) return;
  uint32_t incarnation = 0;
  if (head().is_for_asker()) {
    incarnation = head().asker_incarnation();
  } else if (PollGroup::rank() == 0) {
    incarnation = incarnation_of(ActorList<Actors...>{}, shared_->memory, actors_, head().types() & 0xffff,
                                 head().key());
  }
  mail_.open_calls(mail_.output.opened, incarnation);
  mail_.output.opened = 0;
}
// Sets and cancels timers as the handler asked. Polling threads.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::obey_staged_for_timers() {
  if constexpr (rights().sets_timers) {
    if (!assert_warp_uniform(PollGroup::broadcast(mail_.output.staged_for_timers) != 0)) return;
    const uint32_t staged = PollGroup::broadcast(mail_.output.staged);
    const uint64_t now = TimerTable::now_for_all();
    GYRE_ROLLED
    for (uint32_t n = 0; n < staged; ++n) {
      if (assert_warp_uniform(mail_.is_for_timer(staging().message(n)))) mail_.timers().obey(n, now);
    }
  }
}
// Subscribes to topics as the handler asked. Polling threads.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::obey_staged_for_topics() {
  if constexpr (rights().sends_to_many) {
    if (!assert_warp_uniform(PollGroup::broadcast(mail_.output.staged_for_topics) != 0)) return;
    const uint32_t staged = PollGroup::broadcast(mail_.output.staged);
    GYRE_ROLLED
    for (uint32_t n = 0; n < staged; ++n) {
      const uint32_t* const message = staging().message(n);
      if (assert_warp_uniform(mail_.is_for_topics(message))) mail_.subscriptions().obey(message);
    }
  }
}
// Sends the messages to the host that the handler staged. Polling threads.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::send_staged_to_host() {
  if constexpr (rights().tells_host) {
    const uint32_t told = PollGroup::broadcast(mail_.output.staged_to_host);
    if (!assert_warp_uniform(told != 0)) return;
    const uint32_t staged = PollGroup::broadcast(mail_.output.staged);
    GYRE_ROLLED
    for (uint32_t n = 0; n < staged; ++n) {
      const uint32_t* const message = staging().message(n);
      if (mail_.is_to_host(message))
        replies_.store_told(message, reinterpret_cast<const Envelope*>(message)->body_bytes);
    }
    PollGroup::sync();
    if (PollGroup::rank() == 0) staging().host_room() -= told;
    mail_.count_told(told, 0);
    PollGroup::sync();
  }
}
// Asks the host how many messages it is done with, where the handler of the message in hand might find too
// little room for its own. Polling threads.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::update_host_room() {
  if constexpr (rights().tells_host) {
    const uint32_t room = staging().host_room(), all = told_slots(bridge_.shape);
    // Nothing is under way, or there is enough: no need to read across the bus.
    if (!assert_warp_uniform(room != all && room < staging().layout.most_sent)) return;
    PollGroup::sync();  // every thread has read the room
    // Pairs with the store in ToldQueue::pop(), after the host has read those messages.
    const uint64_t taken = Memory::load_acquire(bridge_.host_line->told_taken);
    if (PollGroup::rank() == 0) staging().host_room() = all - uint32_t(mail_.told_sent() - taken);
    PollGroup::sync();
  }
}

// Whether the message in hand, which ended well, is answered by the response that its handler built.
template <class... Actors>
GYRE_DEVICE bool Worker<Actors...>::answers_now(bool is_ask) const {
  if constexpr (rights().asks) return is_ask && !mail_.output.deferred;
  return is_ask;
}

// The message in hand, an ask, has ended well and is answered later. The host's counts as answered then.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::count_deferred() {
  if constexpr (rights().asks) {
    if (mail_.is_in_hand) count_mail_processed(head().types() & 0xffff, 1);
  }
}

// Handles the mail that was taken if it is for the worker itself: the answer to an ask that it keeps, or a
// message that it is to hand to several actors. Polling threads.
// @returns false, with nothing done, if it is for an actor
template <class... Actors>
GYRE_DEVICE bool Worker<Actors...>::handle_for_worker() {
  if constexpr (rights().sends_to_many) {
    if (assert_warp_uniform(mail_.is_for_many())) {
      requests_.request_command();
      mail_.begin_fan_out([this](uint32_t actor_type) {
        return places_of(ActorList<Actors...>{}, shared_->memory, actors_, actor_type);
      });
      return true;
    }
  }
  if constexpr (rights().asks) {
    uint32_t* const message = mail_.message();
    const Envelope answer = *reinterpret_cast<const Envelope*>(message);
    if (!assert_warp_uniform(answer.message_type == call_message::answer)) return false;
    requests_.request_command();
    OpenCall* const call = mail_.calls().find(answer.correlation);
    // Each reply by the ring was reserved by its ask, and what comes by mail never takes its place.
    const auto kind = mail_.is_reply() ? OpenCall::Kind::forwarded : OpenCall::Kind::promise;
    if (call == nullptr || call->kind != kind) {  // it was answered before
      if constexpr (rights().sends_large) mail_.bodies().end(message);
      mail_.count_failed();
    } else {
      constexpr uint8_t of_answers =
          envelope_flags::error | (rights().sends_large ? envelope_flags::out_of_line : uint8_t(0));
      const uint32_t answering = call->actor_type;
      answer_call(*call, answer.flags & of_answers, message, answer.body_bytes);
      count_mail_processed(answering, 1);
    }
    mail_.finish();
    return true;
  }
  return false;
}
// Answers an ask that the worker kept, and closes the call. Polling threads.
// @param flags    envelope_flags::error, out_of_line, or 0
// @param message  the body, and in front of it room for an envelope
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::answer_call(OpenCall& call, uint8_t flags, uint32_t* message,
                                                uint32_t body_bytes) {
  const KeptAsk ask = *reinterpret_cast<const KeptAsk*>(call.content);
  Envelope envelope = ask.envelope;
  const bool asked_by_actor = call.asked_by_actor != 0;
  const uint32_t actor_type = call.actor_type;
  // What handlers wrote to buffers comes before the answer; so does a body in the pool, which may be another
  // worker's.
  Memory::fence();
  mail_.close(call);
  if (asked_by_actor) {
    count_sent(actor_type, 1, PollGroup::rank() == 0);
    return mail_.reply(envelope.correlation, flags, message, body_bytes);
  }
  if constexpr (rights().sends_large) {
    if (assert_warp_uniform((flags & envelope_flags::out_of_line) != 0)) {
      body_bytes = bring_answer(ask, message, flags);
    }
  }
  envelope.body_bytes = body_bytes;
  envelope.flags = flags | (envelope.flags & envelope_flags::out_of_line);
  (void)replies_.has_room();  // reads the credit: the host has a slot for each ask that is not answered
  replies_.store(envelope, message, body_bytes);
  advance_replies();
  ++((flags & envelope_flags::error) == 0 ? report_.answered : report_.error_replies);
  // No credit is due that would publish the counts.
  if (PollGroup::rank() == 0) report_.publish_credit(requests_.ticket());
}
// Brings the body of an answer from the pool to where the host reads it: the slot, or the block of its ask.
// Polling threads.
// @param message  of the answer; its body becomes what the slot is to have
// @param flags    of the answer; becomes those of the reply
// @returns bytes of that body
template <class... Actors>
GYRE_DEVICE uint32_t Worker<Actors...>::bring_answer(const KeptAsk& ask, uint32_t* message, uint8_t& flags) {
  const BodyPool& pool = staging().body_pool();
  const BodyPlace place = BodyPool::place_in(message);
  uint32_t* const slot_body = message + envelope_words;
  const uint32_t slot_capacity = bridge_.shape.body_capacity();
  PollGroup::sync();                            // every thread has read the place
  if (!assert_warp_uniform(pool.has(place))) {  // memory was overwritten
    flags = envelope_flags::error;
    if (PollGroup::rank() == 0) *reinterpret_cast<ErrorBody*>(slot_body) = {Status::malformed, 0, 0};
    PollGroup::sync();
    return sizeof(ErrorBody);
  }
  const bool fits_slot = place.bytes <= slot_capacity, fits_block = place.bytes <= ask.reply_capacity;
  flags = fits_slot ? 0 : fits_block ? envelope_flags::reply_in_block : envelope_flags::error;
  if (assert_warp_uniform(fits_slot || fits_block)) {
    const auto* const from = reinterpret_cast<const uint64_t*>(pool.at(place.chunk));
    auto* const to = reinterpret_cast<uint64_t*>(fits_slot ? static_cast<void*>(slot_body)
                                                           : bridge_.arena + ask.reply_offset);
    GYRE_ROLLED
    for (uint32_t i = PollGroup::rank(); i < place.bytes / sizeof(uint64_t); i += PollGroup::size()) {
      to[i] = from[i];
    }
    Memory::fence();  // the block comes before the packets: see begin_conclusion()
  }
  if (PollGroup::rank() == 0 && !fits_slot) {
    if (fits_block) {
      *reinterpret_cast<OutOfLineReply*>(slot_body) = {place.bytes, 0};
    } else {
      const uint32_t room = ask.reply_capacity > slot_capacity ? ask.reply_capacity : slot_capacity;
      *reinterpret_cast<ErrorBody*>(slot_body) = {Status::reply_too_large, room, 0};
    }
  }
  PollGroup::sync();  // every thread has read the body
  mail_.bodies().give(place.chunk, place.bytes);
  return fits_slot ? place.bytes : uint32_t(sizeof(ErrorBody));  // as large as an OutOfLineReply
}

// Whether a message with these numbers and flags is an ask of an actor whose response may not fit a slot: its
// request does not, or its handler says so (max_reply_bytes).
template <class... Actors>
GYRE_DEVICE bool Worker<Actors...>::needs_reply_chunk(uint32_t types, uint32_t flags) const {
  if ((flags & envelope_flags::ask) == 0 || staging().body_pool().body_bytes() == 0) return false;
  const ReplyRoom room = reply_room(ActorList<Actors...>{}, types);
  return room.has_response &&
         ((flags & envelope_flags::out_of_line) != 0 || room.max_bytes > bridge_.shape.body_capacity());
}
// Takes a chunk for the response to the message in hand, where one is needed. One thread.
// @returns false if none is free: the message is refused
template <class... Actors>
GYRE_DEVICE bool Worker<Actors...>::take_reply_chunk(const Envelope& envelope) {
  const uint32_t types = envelope.actor_type | uint32_t(envelope.message_type) << 16;
  if (!is_mail() || !needs_reply_chunk(types, envelope.flags)) return true;
  if (mail_.bodies().take_for_response()) return true;
  MessageVerdict& verdict = shared_->verdict;
  verdict.refused = Status::body_pool_full;
  verdict.detail = mail_.worker();
  verdict.where = envelope.key;
  return false;
}
// After a barrier, before send_staged(): see PooledBodies::settle().
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::settle_bodies(Status status, const uint32_t* request) {
  if (polls()) mail_.passed_on = mail_.bodies().settle(status == Status::ok, request);
}
// Ends what the message in hand, which is concluded, has in the pool.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::end_bodies_in_hand() {
  if (!is_mail() || !polls()) return;
  if constexpr (rights().asks) mail_.bodies().end_response();
  if (!assert_warp_uniform(mail_.passed_on)) mail_.bodies().end(request());
}

// Ends the calls that Mail marked, with their errors. Polling threads.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::end_failing_calls() {
  uint32_t* const message = staging().error();
  GYRE_ROLLED
  for (uint32_t first = 0; first < OpenCalls::capacity; first += PollGroup::size()) {
    const OpenCall& mine = mail_.calls().at(first + PollGroup::rank());
    GYRE_ROLLED
    for (uint32_t left = PollGroup::ballot(mine.is_open != 0 && mine.failure != 0); left != 0;
         left &= left - 1) {
      OpenCall& call = mail_.calls().at(first + detail::lowest_bit(left));
      PollGroup::sync();
      if (PollGroup::rank() == 0)
        *reinterpret_cast<ErrorBody*>(message + envelope_words) = {Status(call.failure), mail_.worker(),
                                                                   call.key};
      PollGroup::sync();
      answer_call(call, envelope_flags::error, message, sizeof(ErrorBody));
    }
  }
}

// Messages of actors that the worker's actors of a type have sent. Called by any threads.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::count_sent(uint32_t actor_type, uint64_t n, bool counts_it) const {
  if (counts_it) report_.meter().add(actor_type, &HandlerCounts::Actors::mail_sent, n);
}
// And those that they handled well. Polling threads.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::count_mail_processed([[maybe_unused]] uint32_t actor_type,
                                                         [[maybe_unused]] uint32_t n) {
  if constexpr (rights().sends) {
    mail_.count_processed(n);
    if (polls() && PollGroup::rank() == 0)
      report_.meter().add(actor_type, &HandlerCounts::Actors::mail_processed, n);
  }
}

template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::count_tell(bool processed) {
  if constexpr (rights().sends) {
    if (mail_.is_in_hand)
      return processed ? count_mail_processed(head().types() & 0xffff, 1) : mail_.count_failed();
  }
  ++(processed ? report_.tells_processed : report_.tells_failed);
}

}  // namespace gyre
