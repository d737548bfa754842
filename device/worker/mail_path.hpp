// How a worker of a set that sends takes messages of other actors, and sends what its handlers staged.
#pragma once

#include <gyre/device/worker/worker.hpp>

namespace gyre {

// @param types  RequestHead::types() of the message
template <class... Actors>
GYRE_DEVICE auto Worker<Actors...>::make_context(uint64_t key, bool is_ask,
                                                 [[maybe_unused]] uint32_t types) const -> HandlerContext {
  if constexpr (sends()) {
    return HandlerContext(key, is_ask, *shared_, staging(), types & 0xffff);
  } else {
    return HandlerContext(key, is_ask, *shared_);
  }
}

// Takes a message of an actor, if it is its turn; none once the worker is to stop. Polling threads.
template <class... Actors>
GYRE_DEVICE bool Worker<Actors...>::next_mail() {
  take_command();  // which was requested beside the last message
  return !stop_seen_ && command_.command() != Command::stop && mail_.next();
}

// Makes a message of an actor the one in hand, if it is its turn: admit_mail(), handle_message() and
// end_mail() follow. In a group in which all threads poll.
template <class... Actors>
GYRE_DEVICE bool Worker<Actors...>::begin_mail() {
  if constexpr (sends()) {
    if (!assert_warp_uniform(next_mail())) return false;
    requests_.request_command();  // the handler's time begins
    request_ = mail_.message();
    head_ = RequestHead::load(request_);
    return mail_.is_in_hand = true;
  }
  return false;
}
// After the message was handled. Every thread.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::end_mail() {
  if constexpr (sends()) {
    if (!mail_.is_in_hand) return;
    swap_expected();
    mail_.is_in_hand = false;
  }
}

// Says whether the message in hand, which is mail, may take the fast path. Other than with the host's, of
// which packets are compared, each message's root and lists are looked at.
template <class... Actors>
GYRE_DEVICE bool Worker<Actors...>::admit_mail() {
  swap_expected();
  if (fast_path_blockers(head()) != 0 || command_.command() != Command::run) return false;
  const bool same_actor = head().types() == expected_.head.types() && head().key() == expected_.head.key();
  if (!same_actor && !expect_actor()) return false;
  expected_.head = head();
  if (fast_path_mask(ActorList<Actors...>{}, head(), request() + envelope_words,
                     bridge_.shape.body_capacity()) != 0) {
    return true;
  }
  expected_.head.forget_size();
  return false;
}

// The host's messages and those of actors are expected apart.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::swap_expected() {
  const ExpectedMessage other = mail_.other_expected;
  mail_.other_expected = expected_;
  expected_ = other;
}

// The fast path does not write the last-words record, which a message from the other side may have written
// since.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::name_last_words_if_stale() {
  if (mail_.is_named == mail_.is_in_hand) return;
  mail_.is_named = mail_.is_in_hand;
  if (HandlerGroup::rank() == 0) name_last_words(expected_.head.key(), expected_.head.types());
}

// Sends what the handler staged, or discards it where its message ends in an error. After a barrier; every
// thread calls.
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::send_staged(Status status) {
  if (status == Status::ok) {
    if (polls() && assert_warp_uniform(mail_.staged != 0)) mail_.send(mail_.staged);
  } else {  // a thread may have staged more than this one knows
    const Staging all = staging();
    const uint32_t words = all.layout.most_sent * all.layout.message_words;
    for (uint32_t i = HandlerGroup::rank(); i < words; i += HandlerGroup::size()) all.message(0)[i] = 0;
  }
  mail_.staged = 0;
}

template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::count_tell(bool processed) {
  if constexpr (sends()) {
    if (mail_.is_in_hand) return processed ? mail_.count_processed() : mail_.count_failed();
  }
  ++(processed ? report_.tells_processed : report_.tells_failed);
}

}  // namespace gyre
