// Several waiting messages of a kind, for one actor, handled in one call by the whole group: on_batch().
#pragma once

#include <gyre/device/worker/worker.hpp>

namespace gyre {

// Notes, in the calling thread, how each message of a batch ends, and how large its reply is.
template <class... Actors>
struct Worker<Actors...>::BatchEnding {
  MessageVerdict* verdicts;
  uint32_t response_bytes[most_batched];
  GYRE_DEVICE void operator()(const detail::Batch& batch) {
    for (uint32_t n = 0; n < batch.size(); ++n) {
      const Handled handled = batch.handled(n);
      detail::note_failure(verdicts[n], handled);
      response_bytes[n] = handled.response_bytes;
    }
  }
};

// Handles the message in hand, which may take the fast path, together with those behind it that are for the
// same handler of the same actor.
// @returns false, with nothing done, unless there are two at least
template <class... Actors>
GYRE_DEVICE bool Worker<Actors...>::handle_gathered() {
  if constexpr (most_gathered<Actors...> != 0) {
    if (polls()) {
      const uint32_t count = gather();
      if (PollGroup::rank() == 0) shared_->gathered = count;
    }
    HandlerGroup::sync();
    const Gathered gathered{request(),
                            gathered_requests_,
                            message_memory_.request_stride(),
                            responses_,
                            message_memory_.reply_stride(),
                            shared_->gathered};
    if (gathered.count < 2) return false;
    Context context(expected_.head.key(), head().flags() != 0, *shared_);
    BatchEnding ending;
    ending.verdicts = shared_->batch_verdicts;
    dispatch_together(ActorList<Actors...>{}, expected_.head.types(), expected_.state, context, *shared_,
                      gathered, bridge_.shape.body_capacity(), ending);
    conclude_gathered(gathered, ending);
    actor_found_ = false;
    return true;
  }
  return false;
}

// Gathers the messages that one call may take. Polling threads.
// @returns how many there are, the one in hand counted
template <class... Actors>
GYRE_DEVICE uint32_t Worker<Actors...>::gather() const {
  uint32_t most = expected_.most_in_batch;
  if (most > message_memory_.gathered()) most = message_memory_.gathered();
  if (head().flags() != 0 && most > replies_.room()) most = replies_.room();
  if (most < 2) return most;
  const uint32_t stride = message_memory_.request_stride();
  const uint32_t there = requests_.gather(most, gathered_requests_, stride);
  uint32_t count = 1;
  for (; count < there; ++count) {
    const RequestHead other = RequestHead::load(gathered_requests_ + (count - 1) * stride);
    const bool fits = other.types() == head().types() && other.key() == head().key() &&
                      other.flags() == head().flags() && other.late_bit(now_us()) == 0;
    if (!fits) break;
  }
  return count;
}

// Ends the messages of a batch in their order, each as it would end alone.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::conclude_gathered(const Gathered& gathered, const BatchEnding& ending) {
  HandlerGroup::sync();
  uint32_t failed = 0;
  for (uint32_t n = 0; n < gathered.count; ++n) {
    failed |= uint32_t(shared_->batch_verdicts[n].exceptional != 0) << n;
  }
  // What the handler used on behalf of all: see begin_conclusion().
  if (shared_->verdict.buffers_used != 0 && polls()) Memory::fence();
  stop_seen_ |= shared_->verdict.command_seen == uint32_t(Command::stop);
  HandlerGroup::sync();
  if (HandlerGroup::rank() == 0) shared_->verdict = MessageVerdict{};
  for (uint32_t n = 0; n < gathered.count; ++n) {
    const uint32_t bytes = ending.response_bytes[n];
    if ((failed >> n & 1) == 0) {
      conclude_well(gathered.request(n), gathered.reply(n), bytes);
    } else {
      if (HandlerGroup::rank() == 0) {
        shared_->verdict = shared_->batch_verdicts[n];
        shared_->batch_verdicts[n] = MessageVerdict{};
      }
      HandlerGroup::sync();
      response_ = gathered.reply(n);
      conclude<Concluded::with_others_of_host>(gathered.request(n), bytes, false);
      response_ = responses_;
    }
    advance();
  }
  HandlerGroup::sync();
}

// Ends a message that did not fail: counts it, answers it, and clears its reply.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::conclude_well(const uint32_t* request, uint32_t* response,
                                                  uint32_t response_bytes) {
  if (head().flags() != 0) {
    ++report_.answered;
    if (polls()) {
      Envelope envelope = *reinterpret_cast<const Envelope*>(request);
      envelope.body_bytes = response_bytes;
      envelope.flags = 0;
      replies_.store(envelope, response, response_bytes);
      advance_replies();
    }
  } else {
    ++report_.tells_processed;
  }
  report_.meter().processed(expected_.counts, ticks_since_found(), HandlerGroup::rank() == 0);
  if (polls()) {
    clear(PollGroup{}, response, response_bytes);
    PollGroup::sync();
  }
}

}  // namespace gyre
