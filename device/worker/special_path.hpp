// Every message that may not take the fast path: control messages, bodies in the arena, actors that are new
// or not there, refused and malformed messages; and how such a message, or one that failed, is concluded.
#pragma once

#include <gyre/device/worker/worker.hpp>

namespace gyre {

/// Where a message's bodies lie.
template <class... Actors>
struct Worker<Actors...>::Bodies {
  const void* request;
  uint32_t request_bytes;
  void* response;
  uint32_t response_capacity;
  bool response_in_block;
};

// @param response_in_block  set to whether the response lies in a block of the arena or in the pool
// @returns exceptional: the caller concludes the message; or done
template <class... Actors>
GYRE_DEVICE_INLINE Handling Worker<Actors...>::handle_special(bool& response_in_block) {
  const Envelope envelope = *reinterpret_cast<const Envelope*>(request());
  const bool is_control = (envelope.flags & envelope_flags::control) != 0;
  if (is_control && !reads_actors(envelope.message_type)) {
    answer_control(envelope);
    HandlerGroup::sync();
    return Handling::done;
  }
  if (HandlerGroup::rank() == 0) {
    shared_->verdict.exceptional = 1;
    if constexpr (rights().asks && rights().sends_large) {
      if (!is_control && !actor_found_ && take_reply_chunk(envelope)) refuse_or_find_actor(envelope);
    } else {
      if (!is_control && !actor_found_) refuse_or_find_actor(envelope);
    }
  }
  if constexpr (rights().sends) mail_.named = mail_.in_hand();
  if (!actor_found_)
    forget_expected();  // the last-words record may name another actor, and the fast path does not write it
  HandlerGroup::sync();
  Bodies bodies{request() + envelope_words, envelope.body_bytes, response_ + envelope_words,
                bridge_.shape.body_capacity(), false};
  const bool out_of_line = (envelope.flags & envelope_flags::out_of_line) != 0;
  const bool found = !out_of_line || find_bodies(envelope, bodies);
  if constexpr (rights().asks && rights().sends_large) {
    if (const BodyRecord room = mail_.bodies().response(); room.has_chunk()) {
      bodies.response = staging().body_pool().at(room.number());
      bodies.response_capacity = staging().body_pool().body_bytes();
      bodies.response_in_block = true;
    }
  }
  const MessageVerdict& verdict = shared_->verdict;
  const Status refused = verdict.refused;
  uint32_t bytes_to_roll_back = 0;
  if constexpr (any_rolls_back<Actors...>) {
    if (refused == Status::ok && !is_control) {
      bytes_to_roll_back = rollback_bytes(ActorList<Actors...>{}, envelope.actor_type);
      if (verdict.new_actor == 0) save_state(bytes_to_roll_back, verdict.state);
    }
  }

  Handled handled{};
  if (is_control && found) {
    handled = read_actors(ActorList<Actors...>{}, shared_->memory, actors_,
                          *reinterpret_cast<const Envelope*>(request()), shared_->verdict.state,
                          bodies.response, bodies.response_capacity);
    detail::note_failure(shared_->verdict, handled);
  } else if (found && refused == Status::ok) {
    HandlerContext context = make_context(envelope.key, (envelope.flags & envelope_flags::ask) != 0,
                                          uint32_t(envelope.actor_type));
    handled = dispatch(ActorList<Actors...>{}, shared_->verdict, context, envelope.actor_type,
                       envelope.message_type, bodies.request, bodies.request_bytes, bodies.response,
                       bodies.response_capacity);
    detail::note_failure(shared_->verdict, handled);
    if constexpr (rights().sends) note_staged(context);
    if constexpr (rights().asks && rights().sends_large) {
      if (bodies.response_in_block && is_mail())
        detail::raise_in_group(mail_.bodies().response().bytes, handled.response_bytes);
    }
  } else if (HandlerGroup::rank() == 0) {  // the one thread that wrote detail and where
    detail::note_failure(shared_->verdict, {refused != Status::ok ? refused : Status::malformed,
                                            verdict.detail, verdict.where, 0});
  }
  if (HandlerGroup::rank() == 0) {
    shared_->response_bytes = handled.response_bytes;
    if (verdict.new_actor != 0 && !found) shared_->verdict.remove_actor = 1;
  }
  HandlerGroup::sync();
  if constexpr (any_rolls_back<Actors...>) {
    if (bytes_to_roll_back != 0 && verdict.status != Status::ok) roll_back(bytes_to_roll_back);
  }
  response_in_block = bodies.response_in_block;
  return Handling::exceptional;
}

// Decides whether the message gets a handler, and of which actor. One thread.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::refuse_or_find_actor(const Envelope& envelope) {
  MessageVerdict& verdict = shared_->verdict;
  if (rights().asks && (envelope.flags & envelope_flags::to_asker) != 0) {
    // The ask is over: whoever waits for its actor would wait for ever if the reply were refused.
    if (is_mail()) return find_or_create_actor(envelope);
    verdict.refused = Status::unknown_message;  // no host sends one
  } else if (command_.command() == Command::inactive) {
    verdict.refused = Status::inactive;
  } else if (const uint32_t late_us = lateness_us(envelope); late_us != 0) {
    verdict.refused = Status::expired;
    verdict.detail = late_us;
    verdict.where = envelope.key;
  } else {
    find_or_create_actor(envelope);
  }
}
// @returns microseconds past the deadline, at least, by the time that the host last published; 0: in time
// The worker's own clock only triggers the check. The time that the host last wrote is never ahead of the
// host's clock, whatever the GPU's clock does, so no message is refused early; while the host writes nothing,
// a late one may be handled.
template <class... Actors>
GYRE_DEVICE uint32_t Worker<Actors...>::lateness_us(const Envelope& envelope) const {
  if (envelope.deadline_us == 0 || int32_t(now_us() - envelope.deadline_us) <= 0) return 0;
  uint32_t late_us = now_us() - envelope.deadline_us;
  if constexpr (!shares_host_clock) {
    // The host wrote the time before it sent the message. The fence orders this load behind those of the
    // message: the time read is that one or a newer one, and close enough to the deadline for 32 bits.
    Memory::acquire_fence();
    late_us =
        CommandLine::host_us_in(Memory::load_relaxed(bridge_.command_line->command)) - envelope.deadline_us;
  }
  return int32_t(late_us) > 0 ? late_us : 0;
}

// Finds the bodies that the slot's OutOfLine names; false where they do not lie in the arena.
template <class... Actors>
GYRE_DEVICE bool Worker<Actors...>::find_bodies(const Envelope& envelope, Bodies& bodies) {
  if constexpr (rights().sends_large) {
    if (is_mail()) return find_pooled_body(bodies);
  }
  const OutOfLine head = *reinterpret_cast<const OutOfLine*>(request() + envelope_words);
  const auto in_arena = [this](uint64_t offset, uint32_t bytes) {
    return offset % 16 == 0 && offset <= bridge_.arena_bytes && bytes <= bridge_.arena_bytes - offset;
  };
  if (envelope.body_bytes < sizeof(OutOfLine) || !in_arena(head.request_offset, head.request_bytes) ||
      !in_arena(head.reply_offset, head.reply_capacity)) {
    return false;
  }
  if (head.request_bytes != 0) {
    bodies.request = bridge_.arena + head.request_offset;
    bodies.request_bytes = head.request_bytes;
  } else {
    bodies.request = request() + envelope_words + sizeof(OutOfLine) / sizeof(uint32_t);
    bodies.request_bytes = envelope.body_bytes - uint32_t(sizeof(OutOfLine));
  }
  if (head.reply_capacity != 0) {
    bodies.response = bridge_.arena + head.reply_offset;
    bodies.response_capacity = head.reply_capacity;
    bodies.response_in_block = true;
  }
  // By the threads that loaded the packets: the arena's bytes, stored before them, are read after them. Pairs
  // with the host's fence before it publishes the slot.
  if (polls()) Memory::acquire_fence();
  HandlerGroup::sync();
  return true;
}

// find_bodies() of a message of an actor: its body lies in the pool.
template <class... Actors>
GYRE_DEVICE bool Worker<Actors...>::find_pooled_body(Bodies& bodies) {
  const BodyPlace place = BodyPool::place_in(request());
  const BodyPool& pool = staging().body_pool();
  if (!pool.has(place)) return false;
  bodies.request = pool.at(place.chunk);
  bodies.request_bytes = place.bytes;
  // By the threads that loaded the packets. Pairs with the fences of PooledBodies, of begin_conclusion() for
  // a reply, and of answer_call().
  if (polls()) WorkersMemory::acquire_fence();
  HandlerGroup::sync();
  return true;
}

// Copies an actor's state before a message that may end in an error, and back. The copy lies at the front of
// the worker's memory. Call each after a barrier; each ends with one.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::save_state(uint32_t bytes, const void* state) const {
  if (bytes == 0) return;
  copy_by_group(shared_->memory.actors, state, bytes);
  HandlerGroup::sync();
}
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::restore_state(uint32_t bytes, void* state) const {
  if (bytes == 0) return;
  copy_by_group(state, shared_->memory.actors, bytes);
  HandlerGroup::sync();
}
// Undoes what a message that ended in an error did: the state is as before it, and an actor that it created
// is marked for begin_conclusion() to remove. Call after a barrier; ends with one.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::roll_back(uint32_t bytes) const {
  MessageVerdict& verdict = shared_->verdict;
  if (verdict.new_actor == 0) return restore_state(bytes, verdict.state);
  if (HandlerGroup::rank() == 0) verdict.remove_actor = 1;
  HandlerGroup::sync();
}

// Ends a message by its verdict, and resets the verdict. Call after a barrier.
// @param request  the message in hand, or one of its batch
template <class... Actors>
template <typename Worker<Actors...>::Concluded handled>
GYRE_DEVICE_INLINE void Worker<Actors...>::conclude(const uint32_t* request, uint32_t response_bytes,
                                                    bool response_in_block) {
  begin_conclusion(request, response_in_block);
  end_conclusion<handled>(request, response_bytes, response_in_block);
}
// Orders what the handler did before what is sent; counts and removes actors.
template <class... Actors>
GYRE_DEVICE_INLINE void Worker<Actors...>::begin_conclusion(const uint32_t* request, bool response_in_block) {
  const Envelope& envelope = *reinterpret_cast<const Envelope*>(request);
  const MessageVerdict& verdict = shared_->verdict;
  // Orders what any thread wrote to the arena or to buffers, and what it read of the arena, before the
  // packets and the credit that the polling threads store: once the host sees these it may use that memory
  // again.
  if (polls()) {
    if (response_in_block || verdict.buffers_used != 0) {
      Memory::fence();
    } else {
      Memory::fence_after_loads();
    }
  }
  stop_seen_ |= verdict.command_seen == uint32_t(Command::stop);
  if (verdict.remove_actor != 0 || verdict.new_actor != 0) forget_all_expected();
  if (verdict.remove_actor != 0 && HandlerGroup::rank() == 0) {
    if (remove(ActorList<Actors...>{}, shared_->memory, actors_, envelope.actor_type, envelope.key))
      report_.meter().add(envelope.actor_type, &HandlerCounts::Actors::removed, 1);
  }
  if (verdict.new_actor != 0 && HandlerGroup::rank() == 0)
    report_.meter().add(envelope.actor_type, &HandlerCounts::Actors::created, 1);
}
// Counts the message, answers or logs it, and clears what it used.
template <class... Actors>
template <typename Worker<Actors...>::Concluded handled>
GYRE_DEVICE_INLINE void Worker<Actors...>::end_conclusion(const uint32_t* request, uint32_t response_bytes,
                                                          bool response_in_block) {
  constexpr bool alone = handled == Concluded::alone;
  const bool of_actor = alone ? is_mail() : handled == Concluded::with_others_of_actors;
  const Envelope envelope = *reinterpret_cast<const Envelope*>(request);
  const MessageVerdict& verdict = shared_->verdict;
  [[maybe_unused]] const bool is_gone = verdict.remove_actor != 0;
  const Status status = verdict.status;
  // Asks of actors are handled alone.
  const bool is_ask =
      handled != Concluded::with_others_of_actors && (envelope.flags & envelope_flags::ask) != 0;
  if (HandlerGroup::rank() == 0) {
    HandlerCounts* const counts = counts_of(head().types());
    if (status == Status::ok) {
      report_.meter().processed(counts, ticks_since_found(), true);
    } else {
      report_.meter().failed(counts, status, is_ask || of_actor);
    }
  }
  bool answers = is_ask;  // by the response that the handler built
  if constexpr (rights().asks && alone) answers = answers_now(is_ask);
  if (assert_warp_uniform(answers)) {
    if (rights().sends && of_actor) {
      answer_actor(envelope, response_bytes);
    } else {
      answer_host(envelope, response_bytes, response_in_block);
    }
  } else if (rights().asks && is_ask) {
    count_deferred();
  } else {
    count_tell(status == Status::ok);
    if (status != Status::ok && !of_actor && HandlerGroup::rank() == 0) {
      report_.log_failed_tell(verdict, envelope, request, requests_.ticket());
    }
  }
  // Builders write into zeroed memory, so what this message used is cleared: all of it after a failure, since
  // a handler that failed in one thread may have written more than this thread knows.
  uint32_t dirty_bytes = response_in_block ? 0 : response_bytes;
  if (dirty_bytes < sizeof(ErrorBody)) dirty_bytes = sizeof(ErrorBody);
  if (status != Status::ok) dirty_bytes = bridge_.shape.body_capacity();
  HandlerGroup::sync();
  if (HandlerGroup::rank() == 0) shared_->verdict = MessageVerdict{};
  const uint32_t dirty_words = envelope_words + dirty_bytes / sizeof(uint32_t);
  GYRE_ROLLED
  for (uint32_t i = HandlerGroup::rank(); i < dirty_words; i += HandlerGroup::size()) response_[i] = 0;
  HandlerGroup::sync();
  if constexpr (rights().asks) {
    if (is_gone && polls()) mail_.fail_promises_of(envelope.actor_type, envelope.key);
  }
  if constexpr (rights().sets_timers) {
    if (is_gone && polls()) mail_.timers().cancel_of(envelope.actor_type, envelope.key);
  }
  if constexpr (rights().sends_to_many) {
    if (is_gone && polls()) mail_.forget_receiver(envelope.actor_type, envelope.key);
  }
}

template <class... Actors>
GYRE_DEVICE_INLINE void Worker<Actors...>::answer_host(const Envelope& envelope, uint32_t response_bytes,
                                                       bool response_in_block) {
  const MessageVerdict& verdict = shared_->verdict;
  void* const body = response_ + envelope_words;
  const bool ok = verdict.status == Status::ok;
  ++(ok ? report_.answered : report_.error_replies);
  uint8_t flags = 0;
  if (!ok) {
    if (HandlerGroup::rank() == 0) {
      *static_cast<ErrorBody*>(body) = {verdict.status, verdict.detail, verdict.where};
    }
    flags = envelope_flags::error;
    response_bytes = sizeof(ErrorBody);
  } else if (response_in_block) {
    if (HandlerGroup::rank() == 0) *static_cast<OutOfLineReply*>(body) = {response_bytes, 0};
    flags = envelope_flags::reply_in_block;
    response_bytes = sizeof(OutOfLineReply);
  }
  reply(envelope, flags, response_bytes);
}

template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::answer_actor([[maybe_unused]] const Envelope& asked,
                                                 [[maybe_unused]] uint32_t response_bytes) {
  if constexpr (rights().asks) {
    const MessageVerdict& verdict = shared_->verdict;
    const bool ok = verdict.status == Status::ok;
    if (!polls()) return count_tell(ok);
    if (!ok && PollGroup::rank() == 0) {
      *reinterpret_cast<ErrorBody*>(response_ + envelope_words) = {verdict.status, verdict.detail,
                                                                   verdict.where};
    }
    uint8_t flags = ok ? 0 : envelope_flags::error;
    if constexpr (rights().sends_large) {
      if (assert_warp_uniform(ok && mail_.bodies().response().has_chunk())) {
        mail_.bodies().move_response(response_, response_bytes);
        flags = envelope_flags::out_of_line;
        response_bytes = sizeof(BodyPlace);
      }
    }
    mail_.reply(asked.correlation, flags, response_, ok ? response_bytes : uint32_t(sizeof(ErrorBody)));
    // While the reply is under way.
    count_sent(asked.actor_type, 1, PollGroup::rank() == 0);
    count_tell(ok);
  }
}

// Answers a control message. Once the host sees the reply, the counters and failed tells of all messages
// before it are there.
template <class... Actors>
GYRE_DEVICE_INLINE void Worker<Actors...>::answer_control(const Envelope& envelope) {
  if (polls()) report_.publish_counts(*shared_, counted());
  if constexpr (rights().sets_timers) {
    if (polls()) mail_.timers().drain();
  }
  if constexpr (rights().sends) {
    if (polls()) mail_.publish_counts();
  }
  if (HandlerGroup::rank() == 0) report_.publish_credit(requests_.ticket());
  HandlerGroup::sync();
  if (polls()) Memory::fence();
  reply(envelope, envelope_flags::control, 0);
}

// Sends the body in response_ under the envelope of `asked`; the reply to an ask with bodies in the arena has
// the block's number in place of the key. Every thread calls; the polling threads store.
template <class... Actors>
GYRE_DEVICE_INLINE void Worker<Actors...>::reply(const Envelope& asked, uint8_t flags, uint32_t body_bytes) {
  if (!polls()) return;
  Envelope envelope = asked;
  envelope.body_bytes = body_bytes;
  envelope.flags = flags | (asked.flags & envelope_flags::out_of_line);
  if ((asked.flags & envelope_flags::out_of_line) != 0) {
    envelope.key = reinterpret_cast<const OutOfLine*>(request() + envelope_words)->block;
  }
  replies_.store(envelope, response_, body_bytes);
  advance_replies();
}

}  // namespace gyre
