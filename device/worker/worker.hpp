// The worker: poll, dispatch, reply. One text for both engines; the GPU runs it as a block, the CPU as a
// thread.
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/device/actor/dispatch.hpp>
#include <gyre/device/actor/table.hpp>
#include <gyre/device/context.hpp>
#include <gyre/device/platform.hpp>
#include <gyre/device/read/request_reader.hpp>

namespace gyre {

/// One persistent worker. On the GPU every thread of the block has one, with equal members; only `shared`,
/// `request`, `response` and `memory` are common. Refers to all it is given, owns nothing.
template <class... Actors>
class Worker {
 public:
  /// `memory.actors`: this worker's, WorkingMemory and ActorTables<Actors…>::bytes bytes, zeroed. `request`,
  /// `response`: the two parts of message_memory(bridge.shape), of the group's own memory, 16-aligned;
  /// responses zeroed.
  GYRE_DEVICE Worker(const Bridge& bridge, const EngineMemory& memory, uint32_t* request, uint32_t* response,
                     WorkerShared& shared)
      : bridge_(bridge),
        actors_(memory.actors + WorkingMemory::of<Actors...>().bytes()),
        requests_(bridge, request),
        responses_(pin_pointer(response)),
        response_(responses_),
        shared_(pin_pointer(&shared)),
        replies_(bridge.d2h, bridge.shape),
        credits_(bridge.worker_line->h2d_credit, bridge.shape.slots),
        meter_(memory.counts, handler_count<Actors...> + 1) {
    if (HandlerGroup::rank() == 0) {
      shared = WorkerShared{};
      shared.command_line = bridge.command_line;
      shared.memory = memory;
      shared.team_log_size = log_warp_size;
      shared.reports.clocks = HandlerMeter::ClockPair::now();
      shared.tick = meter_.tick();
    }
    HandlerGroup::sync();
  }

  GYRE_DEVICE static constexpr MessageMemory message_memory(const RingShape& shape) {
    return {shape, compares_packets, any_side_by_side<Actors...>};
  }

  /// Works until commanded to stop. `pause(n)` is called after the n-th empty poll in a row.
  template <class Pause>
  GYRE_DEVICE void run(Pause pause) {
    if (!start()) return;
    while (turn(pause) != PollOutcome::stop) {
    }
    finish();
  }

  /// One poll, and the message it found, if any. For engines that step their workers; the group must be one
  /// thread.
  GYRE_DEVICE PollOutcome step() {
    return turn([](uint32_t) {});
  }

  /// Publishes the credit of all messages handled so far, if it is not published yet: before a worker that is
  /// a thread yields or sleeps. One thread.
  GYRE_DEVICE void publish_pending_credit() {
    if (credits_.behind(requests_.ticket())) publish_credit();
  }

  /// Messages that it has sent to the host. Polling threads' alone.
  GYRE_DEVICE uint64_t replies_sent() const { return replies_.ticket(); }

  /// Says that the worker runs. False, and it is not to run, if its handlers are not those that the host
  /// takes them for.
  GYRE_DEVICE bool start() {
    const uint32_t mismatch = first_mismatched_handler<Actors...>(bridge_.handler_types, bridge_.handlers);
    const bool agreed = mismatch == bridge_.handlers;
    if (agreed && polls() && !bridge_.inbound_in_region && SlotPages::pages(bridge_.shape) != 0) {
      const uint64_t pages = requests_.choose_slot_pages();
      if (PollGroup::rank() == 0) Memory::store_relaxed(bridge_.worker_line->slot_pages, pages);
    }
    if (HandlerGroup::rank() == 0) {
      if (!agreed) Memory::store_release(bridge_.worker_line->stopped, 1);
      Memory::store_release(bridge_.worker_line->started, agreed ? 1 : uint64_t(2) + mismatch);
    }
    return agreed;
  }

  /// After the last message: stops the actors and publishes final counters.
  GYRE_DEVICE void finish() {
    for_each_to_stop(ActorList<Actors...>{}, shared_->memory, actors_, 0, Stop{*this});
    if (polls()) publish_counts();
    if (HandlerGroup::rank() != 0) return;
    publish_credit();
    Memory::store_release(bridge_.worker_line->stopped, 1);
  }

 private:
  using Ending = detail::Ending;
  static constexpr uint32_t envelope_words = sizeof(Envelope) / sizeof(uint32_t);
  static constexpr uint32_t heartbeat_interval_us = 1000;
  static constexpr uint32_t counts_interval_us = 32'000;

  // Calls an actor's on_stop, of which nobody hears what it failed with.
  struct Stop {
    Worker& worker;
    template <class Actor>
    GYRE_DEVICE void operator()(Actor& actor, uint32_t, uint64_t key) const {
      Context context(key, false, *worker.shared_);
      detail::ContextAccess::begin_hook<Actor>(context);
      actor.on_stop(context);
      HandlerGroup::sync();
      if (HandlerGroup::rank() == 0) worker.shared_->verdict = MessageVerdict{};  // the next one's ctx.ok()
      HandlerGroup::sync();
    }
  };

  template <class Pause>
  GYRE_DEVICE PollOutcome turn(Pause pause) {
    if constexpr (compares_packets) return warp_turn(pause);
    PollOutcome outcome = PollOutcome::nothing;
    if constexpr (HandlerGroup::only_polls()) {
      outcome = poll();
    } else {
      if (polls()) {
        while ((outcome = poll()) == PollOutcome::nothing) pause(requests_.empty_polls());
      }
      outcome = share_outcome(outcome);
    }
    if (outcome == PollOutcome::message) handle_message(mismatch_bits() == 0 || admit_to_fast_path());
    if (outcome == PollOutcome::corrupt) skip();
    if (outcome == PollOutcome::nothing) pause(requests_.empty_polls());
    return outcome;
  }

  // The same by one warp of a GPU, where a branch takes as long as ten additions: one question leads to the
  // handler, where all is as usual.
  template <class Pause>
  GYRE_DEVICE PollOutcome warp_turn(Pause pause) {
    if (stop_requested()) return PollOutcome::stop;
    const uint32_t unusual = requests_.poll(reply_room());
    Prefetch<1> next;
    bool plain = true;
    if ((unusual | uint32_t(requests_.in_stream())) != 0) {
      if (unusual == 0) {
        if constexpr (any_side_by_side<Actors...>) {
          if (last_in_batches_ && requests_.window_left() > 1 && handle_batch()) return PollOutcome::message;
        }
        next = requests_.prefetch<1>(1);
      } else {
        const PollOutcome outcome = requests_.size_mismatch() == 0 ? PollOutcome::message : classify();
        if (outcome != PollOutcome::message) {
          if (outcome == PollOutcome::corrupt) {
            skip();
          } else {
            pause(requests_.empty_polls());
          }
          return outcome;
        }
        plain = admit_to_fast_path();
      }
    }
    handle_message(plain);
    requests_.adopt(next);
    return PollOutcome::message;
  }

  // Polling threads only.
  GYRE_DEVICE PollOutcome poll() {
    if (!samples_command_each_poll && stop_requested()) return PollOutcome::stop;
    const PollOutcome outcome = requests_.poll(reply_room()) == 0 ? PollOutcome::message : classify();
    requests_.request_cached_command();
    // On the CPU the answer is in the cache: a message found beside a stop is not taken.
    if (samples_command_each_poll && stop_requested()) return PollOutcome::stop;
    return outcome;
  }
  GYRE_DEVICE PollOutcome classify() {
    const PollOutcome outcome = requests_.classify();
    if (outcome == PollOutcome::nothing &&
        requests_.empty_polls() >= RequestReader::empty_polls_before_credit &&
        credits_.behind(requests_.ticket()) && PollGroup::rank() == 0) {
      publish_credit();
    }
    return outcome;
  }

  // What the last look found of the host's command; true if the worker is to stop.
  GYRE_DEVICE bool stop_requested() {
    if (requests_.take_command_sample()) {
      const bool other = command_.word != requests_.command_watch().command().word;
      command_ = requests_.command_watch().command();
      if (command_.command() != Command::run) requests_.forget();
      if (other && PollGroup::rank() == 0) acknowledge_command();
      report();
      // Of that the handler's time holds nothing.
      if constexpr (samples_command_each_poll) requests_.read_clock_again();
    }
    return stop_seen_ || command_.command() == Command::stop;
  }

  // Now and then: that the worker is there, and what it counted.
  GYRE_DEVICE void report() {
    WorkerReports& reports = shared_->reports;
    const uint32_t now_us = requests_.command_watch().now_us();
    if (now_us - reports.heartbeat_us < heartbeat_interval_us) return;
    const auto clocks = HandlerMeter::ClockPair::now();
    const bool counts_due = now_us - reports.counts_us >= counts_interval_us;
    if (counts_due) meter_.compare(reports.clocks, clocks);
    PollGroup::sync();
    if (PollGroup::rank() == 0) {
      Memory::store_relaxed(bridge_.worker_line->heartbeat_ns, clocks.ns);
      reports.heartbeat_us = now_us;
      if (counts_due) {
        reports.counts_us = now_us;
        reports.clocks = clocks;
        shared_->tick = meter_.tick();
      }
    }
    if (assert_warp_uniform(counts_due)) publish_counts();
    PollGroup::sync();
  }

  // Polling threads.
  GYRE_DEVICE void publish_counts() {
    if (shared_->reports.counts_ticket == requests_.ticket()) return;
    meter_.publish(bridge_.counts);
    if (PollGroup::rank() == 0) shared_->reports.counts_ticket = requests_.ticket();
    PollGroup::sync();
  }

  GYRE_DEVICE void acknowledge_command() {
    Memory::store_relaxed(bridge_.worker_line->clock_ns, now_ns());
    Memory::store_release(bridge_.worker_line->acknowledged, command_.word);
  }

  // Replies are prepaid, so there is room; were the host wrong about that, the worker would wait here, not
  // overwrite.
  GYRE_DEVICE bool reply_room() {
    if (replies_left_ != 0) return true;
    const uint32_t credit =
        PollGroup::broadcast(uint32_t(Memory::load_acquire(bridge_.host_line->d2h_credit)));
    replies_left_ = credit + bridge_.shape.slots - uint32_t(replies_.ticket());
    return replies_left_ != 0;
  }

  // What the polling threads found is the whole group's, with what they know besides.
  GYRE_DEVICE PollOutcome share_outcome(PollOutcome outcome) {
    if (HandlerGroup::rank() == 0) {
      shared_->outcome = outcome;
      shared_->command = command_.word;
      shared_->now_us = requests_.command_watch().now_us();
      shared_->request = requests_.request();
    }
    HandlerGroup::sync();
    command_.word = shared_->command;
    now_us_ = shared_->now_us;
    request_ = shared_->request;
    if (shared_->outcome == PollOutcome::message) head_ = RequestHead::load(request_);
    return shared_->outcome;
  }

  // Of the message in hand.
  GYRE_DEVICE const uint32_t* request() const {
    if constexpr (HandlerGroup::only_polls()) return requests_.request();
    return request_;
  }
  GYRE_DEVICE const RequestHead& head() const {
    if constexpr (HandlerGroup::only_polls()) return requests_.head();
    return head_;
  }
  // Lookout::now_us.
  GYRE_DEVICE uint32_t now_us() const {
    if constexpr (HandlerGroup::only_polls()) return requests_.command_watch().now_us();
    return now_us_;
  }

  // From here on the whole group.
  GYRE_DEVICE void skip() {
    ++corrupt_;
    HandlerGroup::sync();
    advance();
  }
  GYRE_DEVICE void advance(uint32_t n = 1) {
    if (!polls()) return;
    requests_.advance(n);
    // All of a warp store the same, in one access: a branch for one of them would keep them apart.
    if (credits_.due(requests_.ticket(), n)) publish_credit();
  }

  // `plain`: whether it may go the short way.
  GYRE_DEVICE void handle_message(bool plain) {
    Handling taken = Handling::no;
    if (plain) taken = handle_on_fast_path();
    if (taken == Handling::no) handle_special();
    if (taken == Handling::exceptional) {
      if constexpr (any_rolls_back<Actors...>) {
        if (shared_->verdict.status != Status::ok) restore_state(last_rollback_bytes_, last_state_);
      }
      conclude(shared_->response_bytes, false);
    }
    looked_up_ = false;
    advance();
  }

  // 0 where the message in hand may go the short way, because the one before it did, which it resembles.
  // Where packets are compared the inbox says that. This and the next are bits, not truths: a lone warp waits
  // longer for a predicate than for a word.
  GYRE_DEVICE uint32_t mismatch_bits() const {
    const uint32_t stopped = uint32_t(command_.command()) ^ uint32_t(Command::run);
    return fast_path_blockers(head()) | stopped | head().mismatch_bits(last_);
  }
  // Not 0 where it is late, or more than an ask or a tell whose bodies are in their slots.
  GYRE_DEVICE uint32_t fast_path_blockers(const RequestHead& head) const {
    return head.lateness(now_us()) | (head.flags() & ~(uint32_t(envelope_flags::ask) << 24));
  }

  // After a usual message was found: it and those like it that the same look found, side by side; false, and
  // nothing done, where there are none. Each gets an equal part of the warp, of no more threads than loaded
  // its packets.
  GYRE_DEVICE bool handle_batch() {
    const bool is_ask = this->head().flags() != 0;
    uint32_t most = requests_.batch_size();
    if (most > message_memory_.replies()) most = message_memory_.replies();
    if (is_ask && most > replies_left_) most = replies_left_;
    if (is_ask && most > replies_.left_of_lap()) most = replies_.left_of_lap();
    if (most < 2 || replies_.stamps_whole_slot()) return false;
    uint32_t log_size = most > 16 ? 0 : most > 8 ? 1 : most > 4 ? 2 : most > 2 ? 3 : 4;
    if (log_size > requests_.log_width()) log_size = requests_.log_width();
    const uint32_t team_number = PollGroup::rank() >> log_size;
    const Team team = Team::part(log_size);
    const uint32_t* const request = requests_.request_after(team_number);
    const RequestHead head = RequestHead::load(request);
    const bool late = head.lateness(now_us()) != 0, same_way = (head.flags() != 0) == is_ask;
    const uint32_t count = PollGroup::leading((team_number < most) & !late & same_way) >> log_size;
    if (count < 2) return false;

    const bool all = count == requests_.polled_messages();
    Prefetch<PollWindow::most_loads> next;
    if (all) next = requests_.prefetch<PollWindow::most_loads>(count);
    if (PollGroup::rank() == 0) shared_->team_log_size = log_size;
    PollGroup::sync();
    uint32_t* const response = batch_response(team_number);
    MessageVerdict& verdict = shared_->batch_verdicts[team_number];
    const bool takes_part = team_number < count;
    uint32_t response_bytes = 0;
    if (takes_part) {
      Context context(last_.key(), is_ask, *shared_, verdict, team);
      dispatch_in_batch(ActorList<Actors...>{}, 0, last_.types(), last_state_, context, head,
                        request + envelope_words, last_.body_bytes(), response + envelope_words,
                        bridge_.shape.body_capacity(), [&](const Ending& ending) {
                          if (ending.failure_bits() != 0) detail::note_failure(verdict, ending.handled());
                          response_bytes = ending.response_bytes();
                          return Handling::done;
                        });
    }
    PollGroup::sync();
    const bool exceptional = takes_part && verdict.exceptional != 0, done = takes_part && !exceptional;
    if (is_ask) send_batch_replies(count, log_size, done ? uint32_t(sizeof(Envelope)) + response_bytes : 0);
    if (done) meter_.processed(last_counts_, ticks_since_found(), team.rank() == 0);
    PollGroup::sync();
    if (done) clear(team, response, response_bytes);
    if (PollGroup::rank() == 0) shared_->team_log_size = log_warp_size;
    const uint32_t exceptional_threads = PollGroup::ballot(exceptional);
    PollGroup::sync();
    if (exceptional_threads == 0) {
      count_batch_answers(count, is_ask);
      advance(count);
    } else {
      conclude_one_by_one(count, log_size, is_ask, exceptional_threads, response_bytes);
    }
    requests_.finish_batch(all);
    requests_.adopt(next);
    return true;
  }
  GYRE_DEVICE uint32_t* batch_response(uint32_t n) const {
    return responses_ + n * message_memory_.reply_stride();
  }
  GYRE_DEVICE void count_batch_answers(uint32_t count, bool is_ask) {
    if (is_ask) {
      answered_ += count;
      replies_.advance(bridge_.shape, count);
      replies_left_ -= count;
    } else {
      tells_processed_ += count;
    }
  }
  // Where some end in another way than by the reply that was sent: those one after the other. `noted`: bits
  // of the threads whose messages they are.
  GYRE_DEVICE void conclude_one_by_one(uint32_t count, uint32_t log_size, bool is_ask, uint32_t exceptional,
                                       uint32_t response_bytes) {
    for (uint32_t k = 0; k < count; ++k) {
      const uint32_t bytes = PollGroup::broadcast_from(response_bytes, k << log_size);
      if ((exceptional >> (k << log_size) & 1) != 0) {
        if (PollGroup::rank() == 0) {
          shared_->verdict = shared_->batch_verdicts[k];
          shared_->batch_verdicts[k] = MessageVerdict{};
        }
        PollGroup::sync();
        response_ = batch_response(k);
        conclude(bytes, false);
        response_ = responses_;
      } else {
        count_batch_answers(1, is_ask);
      }
      advance();
    }
  }
  // The answers of `count` messages that are handled side by side, in the ring's next slots, by the whole
  // warp: what it stores at once lies together. `bytes`: of the calling thread's team's, envelope and body;
  // 0: none is sent.
  GYRE_DEVICE void send_batch_replies(uint32_t count, uint32_t log_size, uint32_t bytes) const {
    const uint32_t log_width = requests_.log_width(), width = 1u << log_width;
    for (uint32_t begin = 0; begin < count << log_width; begin += PollGroup::size()) {
      const uint32_t place = begin + PollGroup::rank(), n = place >> log_width;
      const uint32_t bytes_of_n = PollGroup::broadcast_from(bytes, (n << log_size) & (PollGroup::size() - 1));
      if (n >= count) continue;
      auto* const slot = replies_.slot() + n * bridge_.shape.packets();
      for (uint32_t k = place & (width - 1); k * data_bytes_a_packet < bytes_of_n; k += width) {
        Memory::store(slot[k], reply_packet({k, requests_.request_after(n), batch_response(n)},
                                            bytes_of_n - uint32_t(sizeof(Envelope))));
      }
    }
  }

  // The short way of a message that is in time, for a handler of an actor that is there, and whose root and
  // lists lie as they usually do. What it has in common with last_ is taken from there: it is known sooner.
  GYRE_DEVICE Handling handle_on_fast_path() {
    if constexpr (any_rolls_back<Actors...>) save_state(last_rollback_bytes_, last_state_);
    Context context(last_.key(), head().flags() != 0, *shared_);
    return dispatch_fast(ActorList<Actors...>{}, 0, last_.types(), last_state_, context, head(),
                         request() + envelope_words, last_.body_bytes(), response_ + envelope_words,
                         bridge_.shape.body_capacity(), ConcludeFast{*this});
  }

  // Whether another message than the usual may go the short way: the next that resembles it then may too.
  // Where not, nothing was done but perhaps to look for the actor.
  GYRE_DEVICE bool admit_to_fast_path() {
    if (fast_path_blockers(head()) != 0 || command_.command() != Command::run) return false;
    const bool same_actor = head().types() == last_.types() && head().key() == last_.key();
    if (!same_actor && !look_up_actor()) return false;
    last_ = head();
    const uint64_t words = fast_path_words(ActorList<Actors...>{}, 0, head(), request() + envelope_words,
                                           bridge_.shape.body_capacity());
    if (words != 0) {
      requests_.remember(words);
      return true;
    }
    last_.forget_size();
    requests_.forget();
    return false;
  }
  GYRE_DEVICE void forget_last_actor() {
    last_.forget_actor();
    requests_.forget();
  }

  // For another actor than the last one: whether it is there.
  GYRE_DEVICE bool look_up_actor() {
    looked_up_ = true;
    if (HandlerGroup::rank() == 0) find_actor(*reinterpret_cast<const Envelope*>(request()));
    HandlerGroup::sync();
    const MessageVerdict& verdict = shared_->verdict;
    forget_last_actor();
    last_counts_ = counts_of(head().types());
    last_state_ = verdict.state;
    if constexpr (any_side_by_side<Actors...>) {
      last_in_batches_ = is_batched(ActorList<Actors...>{}, head().types() & 0xffff);
    }
    if constexpr (any_rolls_back<Actors...>) {
      last_rollback_bytes_ = rollback_bytes(ActorList<Actors...>{}, head().types() & 0xffff);
    }
    return verdict.refused == Status::ok && verdict.new_actor == 0;
  }

  GYRE_DEVICE HandlerCounts* counts_of(uint32_t types) const {
    return meter_.of(handler_number<Actors...>(types & 0xffff, types >> 16));
  }

  // After a handler on the short way.
  struct ConcludeFast {
    Worker& worker;
    GYRE_DEVICE Handling operator()(const Ending& ending) const { return worker.conclude_fast(ending); }
  };
  // Whether the handler failed in this thread is, in a worker of one warp, a vote until it is known that the
  // message does not simply end well: a branch for it would stand before every reply.
  GYRE_DEVICE Handling conclude_fast(const Ending& ending) {
    const bool ok = ending.failure_bits() == 0;
    // Where the reply's words lie is worked out before the vote, which waits for `ok`.
    ReplyPlace place(PollGroup::rank(), pin_shared_address(request()), pin_shared_address(response_));
    place.first_two = pin_shared_address(place.first_two);
    place.third = pin_shared_address(place.third);
    uint32_t failed = 0;
    if constexpr (HandlerGroup::only_polls()) {
      failed = PollGroup::ballot(!ok);
    } else if (!ok) {
      detail::note_failure(shared_->verdict, ending.handled());
    }
    HandlerGroup::sync();
    const uint32_t response_bytes = ending.response_bytes();
    const bool is_ask = head().flags() != 0;
    // What a reply needs is loaded beside what decides whether it is sent, and a worker of one warp does not
    // branch before it is.
    const Packet first = reply_packet(place, response_bytes);
    const uint32_t exceptional_or_failed = load_here(&shared_->verdict.exceptional) | failed;
    const bool exceptional = exceptional_or_failed != 0;
    if (polls()) {
      const uint32_t bytes = uint32_t(sizeof(Envelope)) + response_bytes, k = PollGroup::rank();
      const uint32_t sends_none = materialize(!(is_ask & (k * data_bytes_a_packet < bytes)));
      Memory::store_if((sends_none | exceptional_or_failed) == 0, replies_.slot()[k], first);
    }
    if ((!exceptional) & is_ask) {
      if (polls()) {
        reply_rest(response_bytes);
        reply_sent();
      }
      ++answered_;
    } else if (exceptional) {
      if constexpr (HandlerGroup::only_polls()) {
        if (!ok) detail::note_failure(shared_->verdict, ending.handled());
      }
      if (HandlerGroup::rank() == 0) shared_->response_bytes = response_bytes;
      HandlerGroup::sync();
      return Handling::exceptional;
    } else {
      ++tells_processed_;
    }
    meter_.processed(last_counts_, ticks_since_found(), HandlerGroup::rank() == 0);
    if (polls()) {
      clear(PollGroup{}, response_, response_bytes);
      PollGroup::sync();
    }
    return Handling::done;
  }

  // Of a handler's time: since its message was found. Polling threads' alone; of others any number.
  GYRE_DEVICE uint64_t ticks_since_found() const {
    return clock_ticks_here() - requests_.command_watch().ticks();
  }

  // One thread.
  GYRE_DEVICE void find_actor(const Envelope& envelope) {
    locate(ActorList<Actors...>{}, shared_->memory, actors_, envelope.actor_type, envelope, shared_->verdict);
    const uint32_t types = uint32_t(envelope.actor_type) | uint32_t(envelope.message_type) << 16;
    Memory::store(bridge_.last_words->packet,
                  Packet{{uint32_t(envelope.key), uint32_t(envelope.key >> 32), types}, 1});
  }

  // Copies an actor's state before a message is handled that may end in an error, and back. The copy lies at
  // the front of the worker's memory. The whole group, behind a barrier; one is at the end.
  GYRE_DEVICE void save_state(uint32_t bytes, const void* state) const {
    if (bytes == 0) return;
    copy_by_group(shared_->memory.actors, state, bytes);
    HandlerGroup::sync();
  }
  GYRE_DEVICE void restore_state(uint32_t bytes, void* state) const {
    if (bytes == 0) return;
    copy_by_group(state, shared_->memory.actors, bytes);
    HandlerGroup::sync();
  }

  // Control messages, those with bodies out of line, for actors that are new or not there, refused or
  // malformed ones.
  GYRE_DEVICE void handle_special() {
    const Envelope envelope = *reinterpret_cast<const Envelope*>(request());
    if ((envelope.flags & envelope_flags::control) != 0) {
      acknowledge(envelope);
      HandlerGroup::sync();
      return;
    }
    if (HandlerGroup::rank() == 0) {
      shared_->verdict.exceptional = 1;
      if (!looked_up_) admit(envelope);
    }
    if (!looked_up_) forget_last_actor();  // the last words are of another now
    HandlerGroup::sync();
    Bodies bodies{request() + envelope_words, envelope.body_bytes, response_ + envelope_words,
                  bridge_.shape.body_capacity(), false};
    const bool out_of_line = (envelope.flags & envelope_flags::out_of_line) != 0;
    const bool found = !out_of_line || find_bodies(envelope, bodies);
    const MessageVerdict& verdict = shared_->verdict;
    const Status refused = verdict.refused;
    uint32_t rollback_bytes_of_actor = 0;  // bytes
    if constexpr (any_rolls_back<Actors...>) {
      if (refused == Status::ok) {
        rollback_bytes_of_actor = rollback_bytes(ActorList<Actors...>{}, envelope.actor_type);
        if (verdict.new_actor == 0) save_state(rollback_bytes_of_actor, verdict.state);
      }
    }

    Handled handled{};
    if (found && refused == Status::ok) {
      Context context(envelope.key, (envelope.flags & envelope_flags::ask) != 0, *shared_);
      handled = dispatch(ActorList<Actors...>{}, shared_->verdict, context, envelope.actor_type,
                         envelope.message_type, bodies.request, bodies.request_bytes, bodies.response,
                         bodies.response_capacity);
      detail::note_failure(shared_->verdict, handled);
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
      if (rollback_bytes_of_actor != 0 && verdict.status != Status::ok) roll_back(rollback_bytes_of_actor);
    }
    conclude(shared_->response_bytes, bodies.response_in_block);
  }

  // Of a message in the worker's notes that ended in an error: the state is as it was, and an actor that it
  // made is not there. The whole group, behind a barrier; one is at the end.
  GYRE_DEVICE void roll_back(uint32_t bytes) const {
    MessageVerdict& verdict = shared_->verdict;
    if (verdict.new_actor == 0) return restore_state(bytes, verdict.state);
    if (HandlerGroup::rank() == 0) verdict.remove_actor = 1;
    HandlerGroup::sync();
  }

  // One thread: whether the message gets a handler, and of which actor.
  GYRE_DEVICE void admit(const Envelope& envelope) {
    MessageVerdict& verdict = shared_->verdict;
    if (command_.command() == Command::inactive) {
      verdict.refused = Status::inactive;
    } else if (const uint32_t late_us = lateness_us(envelope); late_us != 0) {
      verdict.refused = Status::expired;
      verdict.detail = late_us;
      verdict.where = envelope.key;
    } else {
      find_actor(envelope);
    }
  }
  // How late the message is by the host's clock, at least; 0: it is in time. The worker's own clock only
  // raises the suspicion. What the host last said is no later than the host's clock, whatever the GPU's does,
  // so no message is refused early; while the host says nothing, one may be handled late.
  GYRE_DEVICE uint32_t lateness_us(const Envelope& envelope) const {
    if (envelope.deadline_us == 0 || int32_t(now_us() - envelope.deadline_us) <= 0) return 0;
    uint32_t late_us = now_us() - envelope.deadline_us;
    if constexpr (!shares_host_clock) {
      // Before it sent the message the host said the time: no older one is read than that, and the two are
      // near enough to compare.
      Memory::fence();
      late_us =
          CommandLine::host_us_in(Memory::load_relaxed(bridge_.command_line->command)) - envelope.deadline_us;
    }
    return int32_t(late_us) > 0 ? late_us : 0;
  }

  // After the handler, where there was one, and a barrier: what becomes of a message that is not simply
  // answered.
  GYRE_DEVICE void conclude(uint32_t response_bytes, bool response_in_block) {
    const Envelope envelope = *reinterpret_cast<const Envelope*>(request());
    const MessageVerdict& verdict = shared_->verdict;
    // What any thread wrote there, before the packets and the credit that the polling threads store, whatever
    // became of the message: the host may then use that memory again.
    if ((response_in_block || verdict.buffers_used != 0) && polls()) Memory::fence();
    stop_seen_ |= verdict.command_seen == uint32_t(Command::stop);
    if (verdict.remove_actor != 0 || verdict.new_actor != 0) forget_last_actor();
    if (verdict.remove_actor != 0 && HandlerGroup::rank() == 0) {
      remove(ActorList<Actors...>{}, shared_->memory, actors_, envelope.actor_type, envelope.key);
    }
    const Status status = verdict.status;
    const bool is_ask = (envelope.flags & envelope_flags::ask) != 0;
    if (HandlerGroup::rank() == 0) {
      HandlerCounts* const counts = counts_of(head().types());
      if (status == Status::ok) {
        meter_.processed(counts, ticks_since_found(), true);
      } else {
        meter_.failed(counts, status, is_ask);
      }
    }
    if (assert_warp_uniform(is_ask)) {
      answer(envelope, response_bytes, response_in_block);
    } else {
      ++(status == Status::ok ? tells_processed_ : tells_failed_);
      if (status != Status::ok && HandlerGroup::rank() == 0) log_failed_tell(envelope);
    }
    // Builders write into zeroed memory: clear what this message used of the scratch.
    // A handler that failed in one thread alone may have written more than that thread knows of.
    uint32_t dirty_bytes = response_in_block ? 0 : response_bytes;
    if (dirty_bytes < sizeof(ErrorBody)) dirty_bytes = sizeof(ErrorBody);
    if (status != Status::ok) dirty_bytes = bridge_.shape.body_capacity();
    HandlerGroup::sync();
    if (HandlerGroup::rank() == 0) shared_->verdict = MessageVerdict{};
    const uint32_t dirty_words = envelope_words + dirty_bytes / sizeof(uint32_t);
    for (uint32_t i = HandlerGroup::rank(); i < dirty_words; i += HandlerGroup::size()) response_[i] = 0;
    HandlerGroup::sync();
  }

  // Counters and failures of all before it are there when the host sees the reply.
  GYRE_DEVICE void acknowledge(const Envelope& envelope) {
    if (polls()) publish_counts();
    if (HandlerGroup::rank() == 0) publish_credit();
    HandlerGroup::sync();
    if (polls()) Memory::fence();
    reply(envelope, envelope_flags::control, 0);
  }

  // Where a message's bodies are.
  struct Bodies {
    const void* request;
    uint32_t request_bytes;
    void* response;
    uint32_t response_capacity;
    bool response_in_block;
  };

  // From the OutOfLine in the slot; false if it names memory outside the arena.
  GYRE_DEVICE bool find_bodies(const Envelope& envelope, Bodies& bodies) {
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
    if (polls()) Memory::fence();  // those that loaded the packets
    HandlerGroup::sync();
    return true;
  }

  GYRE_DEVICE void answer(const Envelope& envelope, uint32_t response_bytes, bool response_in_block) {
    const MessageVerdict& verdict = shared_->verdict;
    void* const body = response_ + envelope_words;
    if (verdict.status != Status::ok) {
      ++error_replies_;
      if (HandlerGroup::rank() == 0) {
        *static_cast<ErrorBody*>(body) = {verdict.status, verdict.detail, verdict.where};
      }
      reply(envelope, envelope_flags::error, sizeof(ErrorBody));
    } else if (response_in_block) {
      ++answered_;
      if (HandlerGroup::rank() == 0) *static_cast<OutOfLineReply*>(body) = {response_bytes, 0};
      reply(envelope, envelope_flags::reply_in_block, sizeof(OutOfLineReply));
    } else {
      ++answered_;
      reply(envelope, 0, response_bytes);
    }
  }

  // The whole group calls; the polling threads store.
  GYRE_DEVICE void reply(const Envelope& asked, uint8_t flags, uint32_t body_bytes) {
    if (!polls()) return;
    Envelope envelope = asked;
    envelope.body_bytes = body_bytes;
    envelope.flags = flags | (asked.flags & envelope_flags::out_of_line);
    if ((asked.flags & envelope_flags::out_of_line) != 0) {
      envelope.key = reinterpret_cast<const OutOfLine*>(request() + envelope_words)->block;
    }
    PollGroup::sync();
    if (PollGroup::rank() == 0) *reinterpret_cast<Envelope*>(response_) = envelope;
    PollGroup::sync();
    publish<Memory>(PollGroup{}, replies_, bridge_.shape, response_, body_bytes);
    reply_sent();
  }

  // Where the words of packet k of an answer lie: in the request, whose envelope it has but for the size and
  // the flags, and in what the handler left. Any k below a group's size may be asked for.
  struct ReplyPlace {
    uint32_t k;
    const uint32_t* first_two;
    const uint32_t* third;

    GYRE_DEVICE ReplyPlace(uint32_t packet, const uint32_t* request, const uint32_t* response)
        : k(packet),
          first_two((k < 3 ? request : response) + k * words_a_packet),
          third(k == 2 ? response + envelope_words : first_two + 2) {}
  };
  GYRE_DEVICE Packet reply_packet(const ReplyPlace& place, uint32_t body_bytes) const {
    const uint32_t k = place.k;
    Packet packet{{load_here(place.first_two), load_here(place.first_two + 1), load_here(place.third)},
                  replies_.stamp()};
    if (k == 2) packet.data[1] &= 0x00ffffff;
    if (k == 0) packet.data[2] = body_bytes;
    return packet;
  }
  // What a thread has behind its first packet, and where the slot is stamped whole.
  GYRE_DEVICE void reply_rest(uint32_t body_bytes) {
    const uint32_t bytes = uint32_t(sizeof(Envelope)) + body_bytes;
    const bool more = bytes > PollGroup::size() * data_bytes_a_packet, whole = replies_.stamps_whole_slot();
    if (!(more | whole)) return;
    uint32_t k = PollGroup::rank();
    for (k += PollGroup::size(); k * data_bytes_a_packet < bytes; k += PollGroup::size()) {
      Memory::store(replies_.slot()[k], reply_packet({k, request(), response_}, body_bytes));
    }
    if (whole) stamp_rest<Memory>(PollGroup{}, replies_, bridge_.shape, packets_for(body_bytes));
  }
  GYRE_DEVICE void reply_sent() {
    replies_.advance(bridge_.shape);
    --replies_left_;
    PollGroup::sync();
  }
  // What is behind the body, up to 16 bytes, is cleared too. Collective over `group`.
  template <class Group>
  GYRE_DEVICE static void clear(const Group& group, uint32_t* response, uint32_t body_bytes) {
    Packet* const body = reinterpret_cast<Packet*>(response + envelope_words);
    uint32_t i = group.rank();
    if (i * sizeof(Packet) < body_bytes) body[i] = Packet{};
    if (body_bytes > group.size() * sizeof(Packet)) {
      for (i += group.size(); i * sizeof(Packet) < body_bytes; i += group.size()) body[i] = Packet{};
    }
  }

  GYRE_DEVICE void log_failed_tell(const Envelope& envelope) {
    const uint32_t stamp = uint32_t(tells_failed_);
    const uint64_t where = shared_->verdict.where;
    Packet* entry = bridge_.failure_log + FailureLog::first_packet(bridge_.shape, tells_failed_);
    Memory::store(
        *entry++,
        Packet{{uint32_t(shared_->verdict.status), shared_->verdict.detail, uint32_t(where)}, stamp});
    Memory::store(*entry++, Packet{{uint32_t(where >> 32), 0, 0}, stamp});
    for (uint32_t k = 0; k < packets_for(envelope.body_bytes); ++k) {
      const uint32_t* const words = request() + k * words_a_packet;
      Memory::store(entry[k], Packet{{words[0], words[1], words[2]}, stamp});
    }
    publish_credit();
  }

  GYRE_DEVICE void publish_credit() {
    WorkerLine& line = *bridge_.worker_line;
    Memory::store_relaxed(line.answered, answered_);
    Memory::store_relaxed(line.error_replies, error_replies_);
    Memory::store_relaxed(line.tells_processed, tells_processed_);
    Memory::store_relaxed(line.tells_failed, tells_failed_);
    Memory::store_relaxed(line.corrupt, corrupt_);
    credits_.publish(requests_.ticket());
  }

  Bridge bridge_;
  uint8_t* actors_;         // the worker's tables
  RequestReader requests_;  // polling threads'
  uint32_t* responses_;
  MessageMemory message_memory_ = message_memory(bridge_.shape);
  uint32_t* response_;  // of the message in hand: the first, but where one of several ends unlike the others
  WorkerShared* shared_;
  RingCursor<Memory> replies_;  // polling threads'
  uint32_t replies_left_ = 0;   // that there is room for, for all the worker knows
  CreditPublisher<Memory> credits_;
  HandlerMeter meter_;
  CommandWord command_;
  // What the inbox knows of the message in hand, for a group that has other threads than those that poll.
  const uint32_t* request_ = nullptr;
  RequestHead head_;
  uint32_t now_us_ = 0;
  // Of the last message that went the short way, if its actor is there to be used again.
  RequestHead last_ = RequestHead::of_none();
  void* last_state_ = nullptr;
  HandlerCounts* last_counts_ = nullptr;
  bool last_in_batches_ = false;      // its actor's messages may be handled side by side
  uint32_t last_rollback_bytes_ = 0;  // of its actor's state
  uint64_t answered_ = 0;
  uint64_t error_replies_ = 0;
  uint64_t tells_processed_ = 0;
  uint64_t tells_failed_ = 0;
  uint64_t corrupt_ = 0;
  bool stop_seen_ = false;  // a handler was told to stop: it was the last
  bool looked_up_ = false;  // the message in hand is not for the last actor, and its own was looked up
};

}  // namespace gyre
