// The worker: poll, dispatch, reply. One text for both engines; the GPU runs it as a block, the CPU as a
// thread.
//
//   worker.hpp        the turn: poll, choose a path, move on
//   fast_path.hpp     a message like the one before it: handler and reply
//   special_path.hpp  any other message: control, new actors, refusals, errors, bodies in the arena
//   batch.hpp         several similar messages at once, each by a part of a warp
//   gathered.hpp      several messages of a kind in one call of a handler, on_batch()
//   reply_writer.hpp  the ring of replies
//   report.hpp        the worker's counters, credit and heartbeat
//   mail.hpp          messages between actors, in sets with a handler that sends
//   mail_path.hpp     how the worker takes one
//   open_calls.hpp    asks between actors whose reply is still to come
//   timer_table.hpp   messages that actors send later
//   body_pool.hpp     bodies of messages between actors that do not fit a slot, where a handler sends such
//   fan_out.hpp       messages for many actors
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/device/actor/dispatch.hpp>
#include <gyre/device/actor/read_actors.hpp>
#include <gyre/device/actor/table.hpp>
#include <gyre/device/context.hpp>
#include <gyre/device/platform.hpp>
#include <gyre/device/read/request_reader.hpp>
#include <gyre/device/worker/mail.hpp>
#include <gyre/device/worker/reply_writer.hpp>
#include <gyre/device/worker/report.hpp>

namespace gyre {

/// The message that the worker expects next: it is for the actor and handler of the last one that took the
/// fast path, and its root and lists lie in the same places. A message that matches it takes the fast path
/// without a lookup. Of a reply to an actor, the actor and its incarnation are expected alone. `head` may
/// match nothing while `state` and `counts` stay valid.
struct ExpectedMessage {
  RequestHead head = RequestHead::of_none();
  void* state = nullptr;              ///< of the actor; null where its type has none
  HandlerCounts* counts = nullptr;    ///< of the handler
  bool handles_side_by_side = false;  ///< the actor's messages may be handled side by side
  uint32_t most_in_batch = 0;         ///< of such messages one call takes so many; 0: one
  uint32_t rollback_bytes = 0;        ///< of the actor's state, copied before each message
};

namespace detail {

// What the last-words record names. Of the host is 0.
enum class Named : uint32_t {
  of_host,   // a message of the host
  of_actor,  // one of an actor
  several    // several of actors, of one type
};
// What a handler leaves the worker to do.
struct HandlerOutput {
  uint32_t staged = 0;             // messages
  uint32_t staged_to_host = 0;     // those to the host among them
  uint32_t staged_for_timers = 0;  // and those for timers
  uint32_t staged_for_topics = 0;  // and those that say what its actor subscribes to
  uint32_t timers_set = 0;         // timers that it sets
  uint32_t spawned = 0;            // keys that it has taken
  uint32_t opened = 0;             // calls that it wrote
  bool deferred = false;           // it has not answered the ask in hand, which another handler does
};
// What a worker that has mail remembers of the message in hand.
template <Rights rights>
struct MailInHand : Mail<rights> {
  using Mail<rights>::Mail;
  GYRE_DEVICE Named in_hand() const { return is_in_hand ? Named::of_actor : Named::of_host; }
  // 0 where the host's message is expected, and the last-words record names one of the host's.
  GYRE_DEVICE uint32_t last_was_of_actor() const { return uint32_t(named) | uint32_t(expected_of); }
  // The same of a message of an actor.
  GYRE_DEVICE uint32_t last_was_of_host() const {
    return (uint32_t(named) ^ uint32_t(Named::of_actor)) |
           (uint32_t(expected_of) ^ uint32_t(Named::of_actor));
  }
  bool is_in_hand = false;  // the message in hand is of another actor, not of the host
  Named named = Named::of_host;
  uint32_t named_types = 0;            // of several
  HandlerOutput output;                // of the handler in hand
  bool passed_on = false;              // the chunk of the message in hand, with one that was staged
  Named expected_of = Named::of_host;  // the side that the worker's expected message is of
  ExpectedMessage other_expected;      // of the other side
};
// Stands for it in a worker that has none.
struct NoMail {
  GYRE_DEVICE NoMail(const Bridge&, const EngineMemory&, const Staging&) {}
};
template <Rights rights, bool sends, bool asks>
struct Sends {
  using HandlerContext = SendingContext;
  using MailType = MailInHand<rights>;
};
template <Rights rights>
struct Sends<rights, true, true> {
  using HandlerContext = AskingContext;
  using MailType = MailInHand<rights>;
};
template <Rights rights>
struct Sends<rights, false, false> {
  using HandlerContext = Context;
  using MailType = NoMail;
};

}  // namespace detail

/// One persistent worker. On the GPU every thread of the block has its own Worker with equal members; they
/// share only the memory passed to the constructor. Refers to its arguments, owns nothing.
///
/// The polling threads (polls()) read the ring and write replies. Every thread runs handlers. Rank 0 of the
/// HandlerGroup writes WorkerShared; any thread of a handler may write its verdicts. Each function says which
/// threads call it.
template <class... Actors>
class Worker {
 public:
  /// @param memory    `actors`: this worker's, WorkingMemory and ActorTables<Actors…>::bytes bytes, zeroed
  /// @param request   the first part of message_memory(bridge.shape), of the group's own memory, 16-aligned
  /// @param response  the second part and behind it that of staging_layout(bridge.shape, …), zeroed
  GYRE_DEVICE Worker(const Bridge& bridge, const EngineMemory& memory, uint32_t* request, uint32_t* response,
                     WorkerShared& shared)
      : bridge_(bridge),
        actors_(memory.actors + WorkingMemory::of<Actors...>().bytes()),
        requests_(bridge, request),
        gathered_requests_(request + message_memory_.polled_words()),
        responses_(pin_pointer(response)),
        response_(responses_),
        shared_(pin_pointer(&shared)),
        replies_(bridge),
        report_(bridge, memory.counts, handler_count<Actors...> + 1),
        mail_(bridge, memory, staging()) {
    if (HandlerGroup::rank() == 0) {
      shared = WorkerShared{};
      shared.command_line = bridge.command_line;
      shared.memory = memory;
      shared.log = {bridge.host_line, bridge.last_words, bridge.log};
      shared.team_log_size = log_warp_size;
      shared.reports.clocks = HandlerMeter::ClockPair::now();
      shared.tick = report_.meter().tick();
      if constexpr (rights().sends) {
        uint32_t n = 0;
        staging().worker() = mail_.worker();
        staging().host_room() = told_slots(bridge_.shape);
        if constexpr (rights().sends_large) staging().body_pool() = mail_.body_pool();
        ((staging().types()[n++] = detail::type_hash<Actors>()), ...);
        if constexpr (rights().asks) {
          uint64_t* reply = staging().replies();
          n = 0;
          ((reply = list_replies<Actors>(AwaitsOf<Actors>{}, n++, reply)), ...);
        }
      }
    }
    HandlerGroup::sync();
  }

  GYRE_DEVICE static constexpr MessageMemory message_memory(const RingShape& shape) {
    return {shape, compares_packets, any_side_by_side<Actors...>, most_gathered<Actors...>};
  }
  /// Of no words unless a handler sends.
  /// @param workers  of the engine
  GYRE_DEVICE static constexpr StagingLayout staging_layout(const RingShape& shape, uint32_t workers) {
    return StagingLayout::of(shape, workers, uint32_t(sizeof...(Actors)),
                             detail::largest(most_sent<Actors>()...), mail_side_by_side<Actors...>(),
                             rights(), reply_handler_count<Actors...>());
  }

  /// Works until commanded to stop. Calls `pause(n)` after the n-th empty poll in a row.
  ///
  /// Every loop of a worker ends: polling, also for room for a reply, with a message or the command to stop,
  /// which is read at least every 50 µs; a search in an actor table at an empty slot, of which a third of the
  /// slots are kept; the comparison of clocks and a pause after their time. Only loops in a handler have no
  /// bound of Gyre's: Context::should_stop() is for them.
  template <class Pause>
  GYRE_DEVICE_INLINE void run(Pause pause) {
    if (!start()) return;
    while (turn(pause) != PollOutcome::stop) {
    }
    finish();
  }
  /// run() in a set that sends: inlined, or else NVRTC would keep the worker in memory, not in registers.
  template <class Pause>
  GYRE_DEVICE_INLINE void run_with_mail(Pause pause) {
    if (!start()) return;
    while (turn_with_mail(pause) != PollOutcome::stop) {
    }
    finish();
  }

  /// Polls once, and handles a message if one is there. For engines that step their workers; the
  /// group must be one thread.
  GYRE_DEVICE PollOutcome step() {
    return turn([](uint32_t) {});
  }

  /// Publishes the credit of all messages handled so far, if it is not published yet: before a worker that is
  /// a thread yields or sleeps. One thread.
  GYRE_DEVICE void publish_pending_credit() {
    if (report_.credit_is_behind(requests_.ticket())) report_.publish_credit(requests_.ticket());
  }

#if !defined(__CUDACC_RTC__)
  /// Calls `visit(worker)` for each worker that this one has sent messages to since the last call: where it
  /// sleeps, it must be woken. One thread.
  template <class Visit>
  void take_reached(Visit&& visit) {
    if constexpr (rights().sends) mail_.take_reached(visit);
  }
  /// Whether messages wait until other workers take theirs: the worker must not sleep. One thread.
  GYRE_DEVICE bool has_waiting() const {
    if constexpr (rights().sends) return mail_.has_waiting();
    return false;
  }
  /// Nanoseconds until the next timer may be due; ~0 if none is set: how long the worker may sleep. One
  /// thread.
  GYRE_DEVICE uint64_t ns_to_next_timer() {
    if constexpr (rights().sets_timers) {
      if (mail_.timers().any()) return mail_.timers().ns_to_next(deadline_clock_ns());
    }
    return ~uint64_t(0);
  }
  /// Reads clock and command now, however short ago the last reading was: before step(), where a test moves
  /// the clock. One thread.
  void read_clock() {
    requests_.make_sample_due();
    requests_.request_command();
    (void)take_command();
  }
  /// Publishes all counts and the credit of all messages handled so far: after step(), where a test reads
  /// them at any time. One thread.
  void publish() {
    report_.publish_counts_again(*shared_, counted());
    if constexpr (rights().sends) mail_.publish_counts();
    report_.publish_credit(requests_.ticket());
  }
#endif

  /// Replies that the worker has sent. Polling threads.
  GYRE_DEVICE uint64_t replies_sent() const { return replies_.sent(); }

  /// Tells the host that the worker runs.
  /// Also chooses the pages of a ring in the GPU's memory.
  /// @returns false if the handlers differ from the host's list: the worker must not run
  GYRE_DEVICE bool start() {
    const uint32_t mismatch = first_mismatched_handler<Actors...>(bridge_.handler_types, bridge_.handlers);
    const bool agreed = mismatch == bridge_.handlers;
    if constexpr (rights().sends) {
      if (polls()) mail_.start();
    }
    if (agreed && polls() && !bridge_.inbound_in_region && SlotPages::pages(bridge_.shape) != 0) {
      const uint64_t pages = requests_.choose_slot_pages();
      if (PollGroup::rank() == 0) Memory::store_relaxed(bridge_.worker_line->slot_pages, pages);
    }
    if (HandlerGroup::rank() == 0) {
      // Both pair with the host's acquire loads in HostBridge; slot_pages is there once it sees `started`.
      if (!agreed) Memory::store_release(bridge_.worker_line->stopped, 1);
      Memory::store_release(bridge_.worker_line->started, agreed ? 1 : uint64_t(2) + mismatch);
    }
    return agreed;
  }

  /// Stops the actors after the last message; publishes the final counters, the credit and that the worker
  /// has stopped.
  GYRE_DEVICE void finish() {
    for_each_to_stop(ActorList<Actors...>{}, shared_->memory, actors_, StopActor{*this});
    // Also of a worker that handled messages of actors alone.
    if (polls()) report_.publish_counts_again(*shared_, counted());
    if constexpr (rights().sends) {
      if (polls()) mail_.publish_counts();
    }
    if (HandlerGroup::rank() != 0) return;
    report_.publish_credit(requests_.ticket());
    Memory::store_release(bridge_.worker_line->stopped, 1);  // pairs with the host's acquire of stopped
  }

 private:
  using Ending = detail::Ending;
  static constexpr uint32_t envelope_words = sizeof(Envelope) / sizeof(uint32_t);
  GYRE_DEVICE static constexpr Rights rights() { return rights_of_any<Actors...>(); }
  // Lists the replies of one type; returns where the next one's go.
  template <class Actor, class... States>
  GYRE_DEVICE static uint64_t* list_replies(Awaits<States...>, uint32_t actor_type, uint64_t* reply) {
    ((*reply++ =
          detail::reply_hash(detail::type_hash<States>(),
                             detail::ReplyHandlers<Actor, States>::OnReply::Response::type_id, actor_type)),
     ...);
    (void)actor_type;
    return reply;
  }
  // Whether several messages of actors may be in hand at once.
  template <class... Types>
  GYRE_DEVICE static constexpr bool mail_side_by_side() {
    return compares_packets && ((side_by_side<Types>() != SideBySide::none) || ...);
  }
  using SendsType = detail::Sends<rights_of_any<Actors...>(), rights_of_any<Actors...>().sends,
                                  rights_of_any<Actors...>().asks>;
  using HandlerContext = typename SendsType::HandlerContext;
  using MailType = typename SendsType::MailType;

  // Calls an actor's on_stop, whose failure is ignored.
  struct StopActor {
    Worker& worker;
    template <class Actor>
    GYRE_DEVICE void operator()(Actor& actor, uint64_t key, uint32_t actor_type) const {
      if (HandlerGroup::rank() == 0)
        worker.name_last_words(key, actor_type | uint32_t(lifecycle_message::stop) << 16);
      HandlerGroup::sync();
      Context context(key, false, *worker.shared_);
      detail::ContextAccess::begin_hook<Actor>(context);
      actor.on_stop(context);
      HandlerGroup::sync();
      if (HandlerGroup::rank() == 0) worker.shared_->verdict = MessageVerdict{};
      HandlerGroup::sync();
    }
  };

  // ---- The turn

  template <class Pause>
  GYRE_DEVICE_INLINE PollOutcome turn(Pause pause) {
    if constexpr (rights().sends) return turn_with_mail(pause);
    if constexpr (compares_packets) return warp_turn(pause);
    PollOutcome outcome = PollOutcome::nothing;
    if constexpr (HandlerGroup::all_threads_poll()) {
      outcome = poll_requests();
    } else {
      if (polls()) {
        while ((outcome = poll_requests()) == PollOutcome::nothing) pause(requests_.empty_polls());
      }
      outcome = share_outcome(outcome, false);
    }
    if (outcome == PollOutcome::message) handle_message(expected_mismatch() == 0 || admit_to_fast_path());
    if (outcome == PollOutcome::corrupt) skip();
    if (outcome == PollOutcome::nothing) pause(requests_.empty_polls());
    return outcome;
  }

  // The turn of a worker that is one warp of a GPU. A branch costs a lone warp about 20 ns, so one test
  // covers everything that keeps a message from the fast path. After a command other than `run`, poll()
  // reports a mismatch too: take_command() makes the reader forget the expected message.
  template <class Pause>
  GYRE_DEVICE_INLINE PollOutcome warp_turn(Pause pause) {
    if (take_command()) return PollOutcome::stop;
    const uint32_t mismatch = poll_ring();
    Prefetch<1> next;
    bool fast = true;
    if ((mismatch | uint32_t(requests_.in_stream())) != 0) {
      if (mismatch == 0) {
        if (try_batch()) return PollOutcome::message;
        if (!takes_batches()) next = requests_.prefetch<1>(1);  // crosses the bus while the handler runs
      } else {
        const PollOutcome outcome = classify_mismatch();
        if (outcome != PollOutcome::message) return end_turn_without_message(outcome, pause);
        fast = admit_to_fast_path();
      }
    }
    handle_message(fast);
    requests_.adopt(next);
    return PollOutcome::message;
  }
  // Returns what a poll that reported a mismatch found.
  GYRE_DEVICE PollOutcome classify_mismatch() {
    return requests_.size_mismatch() == 0 ? PollOutcome::message : classify_or_publish_credit();
  }
  template <class Pause>
  GYRE_DEVICE PollOutcome end_turn_without_message(PollOutcome outcome, Pause pause) {
    if (outcome == PollOutcome::corrupt) {
      skip();
    } else {
      pause(empty_polls());
    }
    return outcome;
  }
  // Handles the messages that have arrived as a batch, if the actor allows it; returns false if it handled
  // none.
  GYRE_DEVICE bool try_batch() {
    if constexpr (any_side_by_side<Actors...>) {
      return expected_.handles_side_by_side && requests_.window_left() > 1 && handle_batch();
    }
    return false;
  }

  // Whether an on_batch() takes messages like the expected one.
  GYRE_DEVICE bool takes_batches() const {
    if constexpr (most_gathered<Actors...> != 0) return expected_.most_in_batch != 0;
    return false;
  }

  // Polling threads.
  GYRE_DEVICE_INLINE PollOutcome poll_requests() {
    if (!samples_command_each_poll && take_command()) return PollOutcome::stop;
    const PollOutcome outcome = poll_ring() == 0 ? PollOutcome::message : classify_or_publish_credit();
    requests_.request_cached_command();
    // On the CPU the command is in the cache: a message found in the same poll as a stop is not handled.
    if (samples_command_each_poll && take_command()) return PollOutcome::stop;
    return outcome;
  }
  // Polls the ring, and the mailbox beside it.
  GYRE_DEVICE_INLINE uint32_t poll_ring() {
    if constexpr (rights().sends) {
      if (is_mail()) return 0;
      const uint32_t mismatch = requests_.poll(replies_.has_room() && !mail_.is_held(), mail_);
      take_request();
      return mismatch;
    }
    return requests_.poll(replies_.has_room());
  }
  // In a set that sends: makes the request reader's message the one in hand.
  GYRE_DEVICE void take_request() {
    if constexpr (rights().sends && HandlerGroup::all_threads_poll()) {
      request_ = requests_.request();
    }
  }
  // Polls since the last message from anywhere.
  GYRE_DEVICE uint32_t empty_polls() const {
    if constexpr (rights().sends) {
      return requests_.empty_polls() < mail_.empty_polls() ? requests_.empty_polls() : mail_.empty_polls();
    }
    return requests_.empty_polls();
  }
  GYRE_DEVICE PollOutcome classify_or_publish_credit() {
    const PollOutcome outcome = requests_.classify();
    take_request();
    if (outcome == PollOutcome::nothing &&
        requests_.empty_polls() >= RequestReader::empty_polls_before_credit &&
        report_.credit_is_behind(requests_.ticket()) && PollGroup::rank() == 0) {
      report_.publish_credit(requests_.ticket());
    }
    return outcome;
  }

  // Takes the last sample of the command, if any: acknowledges a new command, publishes what is due, and
  // forgets the expected message where the command is not `run`. Polling threads.
  // @returns whether the worker is to stop
  GYRE_DEVICE_INLINE bool take_command() {
    if (requests_.take_command_sample()) {
      const CommandWatch& watch = requests_.command_watch();
      const bool other = command_.word != watch.command().word;
      command_ = watch.command();
      if (command_.command() != Command::run) requests_.forget();
      if constexpr (rights().sends) {
        // All counts are there once the host sees the acknowledgement: a drain is a row of commands.
        if (report_.publish_if_due(*shared_, watch.now_us(), counted(), other)) mail_.publish_counts();
        if (other && PollGroup::rank() == 0) report_.acknowledge_command(command_);
      } else {
        if (other && PollGroup::rank() == 0) report_.acknowledge_command(command_);
        report_.publish_if_due(*shared_, watch.now_us(), counted(), false);
      }
      // Handler time excludes this work.
      if constexpr (samples_command_each_poll) requests_.read_clock_again();
    }
    return stop_seen_ || command_.command() == Command::stop;
  }

  // Grows with every message that is counted: while it stays, no count does.
  GYRE_DEVICE uint64_t counted() const {
    if constexpr (rights().sends) return requests_.ticket() + mail_.taken() + mail_.sent();
    return requests_.ticket();
  }

  // Passes the polling threads' findings to the whole group. Called by every thread.
  // @param outcome    of rank 0; ignored in others
  // @param from_mail  as `outcome`
  GYRE_DEVICE_INLINE PollOutcome share_outcome(PollOutcome outcome, [[maybe_unused]] bool from_mail) {
    if (HandlerGroup::rank() == 0) {
      shared_->outcome = outcome;
      shared_->command = command_.word;
      shared_->now_us = requests_.command_watch().now_us();
      shared_->request = requests_.request();
      if constexpr (rights().sends) {
        if (from_mail) shared_->request = mail_.message();
        staging().from_mail() = from_mail;
      }
    }
    HandlerGroup::sync();
    if constexpr (rights().sends) mail_.is_in_hand = staging().from_mail() != 0;
    command_.word = shared_->command;
    now_us_ = shared_->now_us;
    request_ = shared_->request;
    if (shared_->outcome == PollOutcome::message) head_ = RequestHead::load(request_);
    return shared_->outcome;
  }

  // The message in hand. Called by every thread, as all functions below unless they say otherwise.
  GYRE_DEVICE const uint32_t* request() const {
    if constexpr (HandlerGroup::all_threads_poll() && !rights().sends) return requests_.request();
    return request_;
  }
  GYRE_DEVICE const RequestHead& head() const {
    // Not a choice between two: the compiler would keep both in memory.
    if constexpr (HandlerGroup::all_threads_poll()) return requests_.head();
    return head_;
  }
  // CommandWatch::now_us().
  GYRE_DEVICE uint32_t now_us() const {
    if constexpr (HandlerGroup::all_threads_poll()) return requests_.command_watch().now_us();
    return now_us_;
  }

  // Passes over a slot that holds no message, which happens only where memory was overwritten. An ask that
  // lay there times out, and the slot promised for its reply stays taken: the books say that they do not
  // balance.
  GYRE_DEVICE void skip() {
    ++report_.corrupt;
    HandlerGroup::sync();
    advance();
  }
  GYRE_DEVICE void advance(uint32_t n = 1) {
    if (!polls()) return;
    if constexpr (rights().sends) {
      if (mail_.is_in_hand) return mail_.finish();
    }
    requests_.advance(n);
    take_request();
    // Every thread of a warp stores the same, in one access: a branch for one of them would make the warp
    // diverge.
    if (report_.credit_is_due(requests_.ticket(), n)) report_.publish_credit(requests_.ticket());
  }

  // @param may_be_fast  the message may take the fast path; after all it may still end in the special path
  GYRE_DEVICE_INLINE void handle_message(bool may_be_fast) {
    if (takes_batches() && !is_mail() && may_be_fast && handle_gathered()) return;
    if constexpr (rights().sends) {
      handle_and_send(may_be_fast);
    } else {
      Handling handling = Handling::none;
      bool response_in_block = false;
      if (may_be_fast) handling = handle_on_fast_path();
      if (handling == Handling::none) handling = handle_special(response_in_block);
      if (handling == Handling::exceptional)
        conclude<Concluded::alone>(request(), shared_->response_bytes, response_in_block);
    }
    actor_found_ = false;
    advance();
  }

  // ---- mail_path.hpp
  template <class Pause>
  GYRE_DEVICE_INLINE PollOutcome turn_with_mail(Pause pause);
  template <class Pause>
  GYRE_DEVICE_INLINE PollOutcome warp_turn_with_mail(Pause pause);
  GYRE_DEVICE Staging staging() const {
    return {responses_ + message_memory_.reply_words(),
            staging_layout(bridge_.shape, 0),  // see StagingLayout::workers
            bridge_.shape.body_capacity()};
  }
  GYRE_DEVICE HandlerContext make_context(uint64_t key, bool is_ask, uint32_t types) const;
  GYRE_DEVICE bool is_mail() const {
    if constexpr (rights().sends) return mail_.is_in_hand;
    return false;
  }
  GYRE_DEVICE_INLINE bool next_mail();
  GYRE_DEVICE_INLINE bool next_mail_for_handlers();
  GYRE_DEVICE_INLINE bool take_mail();
  GYRE_DEVICE_INLINE void begin_mail();
  GYRE_DEVICE_INLINE void end_mail();
  GYRE_DEVICE_INLINE bool admit_mail();
  GYRE_DEVICE_INLINE bool expect_asker();
  GYRE_DEVICE_INLINE bool handle_mail_together();
  GYRE_DEVICE_INLINE void expect_of(detail::Named side);
  GYRE_DEVICE void note_host_message();
  GYRE_DEVICE void name_last_words_if_stale();
  GYRE_DEVICE void name_several_if_stale(uint32_t types);
  GYRE_DEVICE void note_staged(const HandlerContext& context);
  GYRE_DEVICE_INLINE void handle_and_send(bool may_be_fast);
  GYRE_DEVICE_INLINE void send_staged(Status status);
  GYRE_DEVICE void open_calls();
  GYRE_DEVICE void update_host_room();
  GYRE_DEVICE void send_staged_to_host();
  GYRE_DEVICE void obey_staged_for_timers();
  GYRE_DEVICE void obey_staged_for_topics();
  GYRE_DEVICE void count_tell(bool processed);
  GYRE_DEVICE void count_sent(uint32_t actor_type, uint64_t n, bool counts_it) const;
  GYRE_DEVICE void count_mail_processed(uint32_t actor_type, uint32_t n);
  GYRE_DEVICE void count_deferred();
  GYRE_DEVICE bool answers_now(bool is_ask) const;
  GYRE_DEVICE bool handle_for_worker();
  GYRE_DEVICE void answer_call(OpenCall& call, uint8_t flags, uint32_t* message, uint32_t body_bytes);
  GYRE_DEVICE uint32_t bring_answer(const KeptAsk& ask, uint32_t* message, uint8_t& flags);
  GYRE_DEVICE bool needs_reply_chunk(uint32_t types, uint32_t flags) const;
  GYRE_DEVICE bool take_reply_chunk(const Envelope& envelope);
  GYRE_DEVICE void settle_bodies(Status status, const uint32_t* request);
  GYRE_DEVICE void end_bodies_in_hand();
  GYRE_DEVICE void end_failing_calls();

  // ---- fast_path.hpp
  struct Vote;
  struct NotedEnding;
  struct FastConclusion;
  GYRE_DEVICE uint32_t expected_mismatch() const;
  GYRE_DEVICE uint32_t fast_path_blockers(const RequestHead& head) const;
  // Whether the message in hand is an ask, of those that take the fast path: replies have flags, too.
  GYRE_DEVICE bool is_ask_in_hand() const {
    if constexpr (rights().asks) return (head().flags() >> 24 & envelope_flags::ask) != 0;
    return head().flags() != 0;
  }
  GYRE_DEVICE_INLINE bool admit_to_fast_path();
  GYRE_DEVICE_INLINE bool expect_actor();
  GYRE_DEVICE void find_or_create_actor(const Envelope& envelope);
  GYRE_DEVICE void name_last_words(uint64_t key, uint32_t types) const;
  GYRE_DEVICE void forget_expected();
  GYRE_DEVICE void forget_all_expected();
  GYRE_DEVICE_INLINE Handling handle_on_fast_path();
  GYRE_DEVICE_INLINE Handling call_on_fast_path(NotedEnding& noted);
  GYRE_DEVICE_INLINE ReplyPlace reply_place() const;
  GYRE_DEVICE_INLINE Handling conclude_fast(const Ending& ending);
  template <class EndingType>
  GYRE_DEVICE_INLINE uint32_t vote(const EndingType& ending);
  template <class EndingType>
  GYRE_DEVICE_INLINE void note_exceptional(const EndingType& ending);
  template <class EndingType>
  GYRE_DEVICE_INLINE Vote reply_at_once(const EndingType& ending, uint32_t more);
  GYRE_DEVICE_INLINE void end_reply_at_once(uint32_t response_bytes);
  GYRE_DEVICE_INLINE void answer_fast(const NotedEnding& noted);
  GYRE_DEVICE_INLINE void finish_fast(uint32_t response_bytes);
  GYRE_DEVICE void end_ask_without_host_reply(uint32_t response_bytes);
  template <class Group>
  GYRE_DEVICE static void clear(const Group& group, uint32_t* response, uint32_t body_bytes);
  GYRE_DEVICE HandlerCounts* counts_of(uint32_t types) const {
    return report_.meter().of(handler_number<Actors...>(types & 0xffff, types >> 16));
  }
  // Returns the ticks since the handler's message was found. Correct in polling threads only.
  GYRE_DEVICE uint64_t ticks_since_found() const {
    return clock_ticks_here() - requests_.command_watch().ticks();
  }
  GYRE_DEVICE void advance_replies() {
    replies_.advance(1);
    PollGroup::sync();
  }

  // ---- special_path.hpp
  struct Bodies;
  // Whether the message that conclude() ends was handled alone, or together with others, by handlers that
  // cannot send.
  enum class Concluded { alone, with_others_of_host, with_others_of_actors };
  GYRE_DEVICE_INLINE Handling handle_special(bool& response_in_block);
  GYRE_DEVICE void refuse_or_find_actor(const Envelope& envelope);
  GYRE_DEVICE uint32_t lateness_us(const Envelope& envelope) const;
  GYRE_DEVICE bool find_bodies(const Envelope& envelope, Bodies& bodies);
  GYRE_DEVICE bool find_pooled_body(Bodies& bodies);
  GYRE_DEVICE void save_state(uint32_t bytes, const void* state) const;
  GYRE_DEVICE void restore_state(uint32_t bytes, void* state) const;
  GYRE_DEVICE void roll_back(uint32_t bytes) const;
  template <Concluded handled>
  GYRE_DEVICE_INLINE void conclude(const uint32_t* request, uint32_t response_bytes, bool response_in_block);
  GYRE_DEVICE_INLINE void begin_conclusion(const uint32_t* request, bool response_in_block);
  template <Concluded handled>
  GYRE_DEVICE_INLINE void end_conclusion(const uint32_t* request, uint32_t response_bytes,
                                         bool response_in_block);
  GYRE_DEVICE_INLINE void answer_host(const Envelope& envelope, uint32_t response_bytes,
                                      bool response_in_block);
  GYRE_DEVICE void answer_actor(const Envelope& asked, uint32_t response_bytes);
  GYRE_DEVICE_INLINE void answer_control(const Envelope& envelope);
  GYRE_DEVICE_INLINE void reply(const Envelope& asked, uint8_t flags, uint32_t body_bytes);

  // ---- batch.hpp
  GYRE_DEVICE bool handle_batch();
  GYRE_DEVICE uint32_t* batch_response(uint32_t n) const;
  GYRE_DEVICE void store_batch_replies(uint32_t count, uint32_t log2_team_size, uint32_t bytes) const;
  GYRE_DEVICE void finish_batch_messages(uint32_t count, bool is_ask);
  GYRE_DEVICE void conclude_one_by_one(uint32_t count, uint32_t log2_team_size, bool is_ask,
                                       uint32_t exceptional, uint32_t response_bytes);

  // ---- gathered.hpp
  struct BatchEnding;
  GYRE_DEVICE bool handle_gathered();
  GYRE_DEVICE uint32_t gather() const;
  GYRE_DEVICE void conclude_gathered(const Gathered& gathered, const BatchEnding& ending);
  GYRE_DEVICE void conclude_well(const uint32_t* request, uint32_t* response, uint32_t response_bytes);

  Bridge bridge_;
  MessageMemory message_memory_ = message_memory(bridge_.shape);
  uint8_t* actors_;              // the worker's tables
  RequestReader requests_;       // used by polling threads
  uint32_t* gathered_requests_;  // the second of a batch for an on_batch(), and those after it
  uint32_t* responses_;
  // Reply memory of the message in hand: responses_, except while messages of a batch are concluded.
  uint32_t* response_;
  WorkerShared* shared_;
  ReplyWriter replies_;  // used by polling threads
  WorkerReport report_;
  CommandWord command_;
  // Copies of the request reader's state of the message in hand, for threads that do not poll.
  const uint32_t* request_ = nullptr;
  RequestHead head_;
  uint32_t now_us_ = 0;
  ExpectedMessage expected_;
  bool stop_seen_ = false;  // a handler saw the stop command: its message was the last
  // The actor of the message in hand was found before the special path: by expect_actor(), since it is
  // another one than expected, or by expect_asker().
  bool actor_found_ = false;
  MailType mail_;
};

}  // namespace gyre

#include <gyre/device/worker/batch.hpp>
#include <gyre/device/worker/fast_path.hpp>
#include <gyre/device/worker/gathered.hpp>
#include <gyre/device/worker/mail_path.hpp>
#include <gyre/device/worker/special_path.hpp>
