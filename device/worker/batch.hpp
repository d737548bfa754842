// Several matching messages, handled side by side, each by an equal part of a warp (HandlesSideBySide).
#pragma once

#include <gyre/device/worker/worker.hpp>

namespace gyre {

// Handles the expected message in hand together with those behind it that match it. Each gets an equal part
// of the warp, of no more threads than loaded its packets.
// @returns false, with nothing done, unless at least two messages match and their replies have room in a row
template <class... Actors>
GYRE_DEVICE bool Worker<Actors...>::handle_batch() {
  const bool is_ask = this->head().flags() != 0;
  uint32_t limit = requests_.batch_size();
  if (limit > message_memory_.replies()) limit = message_memory_.replies();
  if (is_ask && limit > replies_.room()) limit = replies_.room();
  if (is_ask && limit > replies_.left_of_lap()) limit = replies_.left_of_lap();
  if (limit < 2 || replies_.stamps_whole_slot()) return false;
  uint32_t log2_team_size = limit > 16 ? 0 : limit > 8 ? 1 : limit > 4 ? 2 : limit > 2 ? 3 : 4;
  if (log2_team_size > requests_.log_width()) log2_team_size = requests_.log_width();
  const uint32_t team_number = PollGroup::rank() >> log2_team_size;
  const Team team = Team::part(log2_team_size);
  const uint32_t* const request = requests_.request_after(team_number);
  const RequestHead head = RequestHead::load(request);
  const bool late = head.late_bit(now_us()) != 0, same_kind = (head.flags() != 0) == is_ask;
  const uint32_t count = PollGroup::leading((team_number < limit) & !late & same_kind) >> log2_team_size;
  if (count < 2) return false;

  const bool all = count == requests_.polled_messages();
  Prefetch<PollWindow::most_loads> next;
  if (all) next = requests_.prefetch<PollWindow::most_loads>(count);
  if (PollGroup::rank() == 0) shared_->team_log_size = log2_team_size;
  PollGroup::sync();
  uint32_t* const response = batch_response(team_number);
  MessageVerdict& verdict = shared_->batch_verdicts[team_number];
  const bool takes_part = team_number < count;
  uint32_t response_bytes = 0;
  if (takes_part) {
    Context context(expected_.head.key(), is_ask, *shared_, verdict, team);
    dispatch_in_batch(ActorList<Actors...>{}, expected_.head.types(), expected_.state, context, head,
                      request + envelope_words, expected_.head.body_bytes(), response + envelope_words,
                      bridge_.shape.body_capacity(), [&](const Ending& ending) {
                        if (ending.failure_bits() != 0) detail::note_failure(verdict, ending.handled());
                        response_bytes = ending.response_bytes();
                        return Handling::done;
                      });
  }
  PollGroup::sync();
  const bool exceptional = takes_part && verdict.exceptional != 0, done = takes_part && !exceptional;
  if (is_ask)
    store_batch_replies(count, log2_team_size, done ? uint32_t(sizeof(Envelope)) + response_bytes : 0);
  if (done) report_.meter().processed(expected_.counts, ticks_since_found(), team.rank() == 0);
  PollGroup::sync();
  if (done) clear(team, response, response_bytes);
  if (PollGroup::rank() == 0) shared_->team_log_size = log_warp_size;
  const uint32_t exceptional_threads = PollGroup::ballot(exceptional);
  PollGroup::sync();
  if (exceptional_threads == 0) {
    finish_batch_messages(count, is_ask);
    advance(count);
  } else {
    conclude_one_by_one(count, log2_team_size, is_ask, exceptional_threads, response_bytes);
  }
  requests_.finish_batch(all);
  requests_.adopt(next);
  return true;
}

template <class... Actors>
GYRE_DEVICE uint32_t* Worker<Actors...>::batch_response(uint32_t n) const {
  return responses_ + n * message_memory_.reply_stride();
}

// Writes the answers of the first `count` messages into the ring's next slots, by the whole warp, so that its
// stores coalesce. finish_batch_messages() moves the ring on.
// @param bytes  of the calling thread's team's answer, envelope and body; 0: none is sent
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::store_batch_replies(uint32_t count, uint32_t log2_team_size,
                                                        uint32_t bytes) const {
  const uint32_t log_width = requests_.log_width(), width = 1u << log_width;
  for (uint32_t begin = 0; begin < count << log_width; begin += PollGroup::size()) {
    const uint32_t place = begin + PollGroup::rank(), n = place >> log_width;
    const uint32_t bytes_of_n =
        PollGroup::broadcast_from(bytes, (n << log2_team_size) & (PollGroup::size() - 1));
    if (n >= count) continue;
    auto* const slot = replies_.slot() + n * bridge_.shape.packets();
    for (uint32_t k = place & (width - 1); k * data_bytes_a_packet < bytes_of_n; k += width) {
      Memory::store(slot[k], replies_.packet({k, requests_.request_after(n), batch_response(n)},
                                             bytes_of_n - uint32_t(sizeof(Envelope))));
    }
  }
}

template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::finish_batch_messages(uint32_t count, bool is_ask) {
  if (is_ask) {
    report_.answered += count;
    replies_.advance(count);
  } else {
    report_.tells_processed += count;
  }
}

// Concludes a batch of which some messages are exceptional, one message after the other.
// @param exceptional  bits of the threads whose messages are exceptional
template <class... Actors>
GYRE_DEVICE void Worker<Actors...>::conclude_one_by_one(uint32_t count, uint32_t log2_team_size, bool is_ask,
                                                        uint32_t exceptional, uint32_t response_bytes) {
  GYRE_ROLLED
  for (uint32_t k = 0; k < count; ++k) {
    const uint32_t bytes = PollGroup::broadcast_from(response_bytes, k << log2_team_size);
    if ((exceptional >> (k << log2_team_size) & 1) != 0) {
      if (PollGroup::rank() == 0) {
        shared_->verdict = shared_->batch_verdicts[k];
        shared_->batch_verdicts[k] = MessageVerdict{};
      }
      PollGroup::sync();
      response_ = batch_response(k);
      conclude<Concluded::with_others_of_host>(request(), bytes, false);
      response_ = responses_;
    } else {
      finish_batch_messages(1, is_ask);
    }
    advance();
  }
}

}  // namespace gyre
