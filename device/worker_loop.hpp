// The worker: poll, dispatch, reply. One text for both engines; the GPU runs it as a block, the CPU as a
// thread.
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/device/actor_table.hpp>
#include <gyre/device/context.hpp>
#include <gyre/device/dispatch.hpp>
#include <gyre/device/platform.hpp>

namespace gyre {

/// One persistent worker. On the GPU every thread of the block has one, with equal members; only `shared`,
/// `request`, `response` and `memory` are common. Refers to all it is given, owns nothing.
template <class... Actors>
class Worker {
 public:
  /// `memory.actors`: this worker's, ActorTables<Actors…>::bytes bytes, zeroed. `request`, `response`:
  /// bridge.shape.payload_bytes() bytes each, 16-aligned; the response zeroed.
  GYRE_DEVICE Worker(const Bridge& bridge, const EngineMemory& memory, uint32_t* request, uint32_t* response,
                     WorkerShared& shared)
      : bridge_(bridge),
        memory_(memory),
        request_(request),
        response_(response),
        shared_(&shared),
        credits_(bridge.worker_line->h2d_credit, bridge.shape.slots) {}

  /// Works until commanded to stop. `pause(n)` is called after the n-th empty poll in a row.
  template <class Pause>
  GYRE_DEVICE void run(Pause pause) {
    if (!start()) return;
    for (;;) {
      if (polls()) {
        Decision decision = poll();
        while (decision == Decision::nothing) {
          pause(empty_polls_);
          decision = poll();
        }
        decide(decision);
      }
      HandlerGroup::sync();
      const Decision decision = shared_->decision;
      if (decision == Decision::stop) break;
      take(decision);
    }
    finish();
  }

  /// One poll, and the message it found, if any. For engines that step their workers; the group must be one
  /// thread.
  GYRE_DEVICE Decision step() {
    const Decision decision = poll();
    decide(decision);
    if (decision == Decision::message || decision == Decision::corrupt) take(decision);
    return decision;
  }

  /// Says that the worker runs. False, and it is not to run, if its handlers are not those that the host
  /// takes them for.
  GYRE_DEVICE bool start() {
    const uint32_t dispute = first_handler_in_dispute<Actors...>(bridge_.handler_types, bridge_.handlers);
    const bool agreed = dispute == bridge_.handlers;
    if (HandlerGroup::rank() == 0) {
      if (!agreed) Memory::store_release(bridge_.worker_line->stopped, 1);
      Memory::store_release(bridge_.worker_line->started, agreed ? 1 : uint64_t(2) + dispute);
    }
    return agreed;
  }

  /// After the last message: stops the actors and publishes final counters.
  GYRE_DEVICE void finish() {
    for_each_to_stop(ActorList<Actors...>{}, memory_, memory_.actors, 0, Stop{*this});
    if (HandlerGroup::rank() != 0) return;
    publish_credit();
    Memory::store_release(bridge_.worker_line->stopped, 1);
  }

 private:
  static constexpr uint32_t envelope_words = sizeof(Envelope) / sizeof(uint32_t);
  static constexpr uint32_t idle_polled_packets = 4;  // one 64-byte line a poll: idle workers share the bus
  static constexpr uint32_t patience = 200;           // empty polls before a worker counts as idle
  static constexpr uint32_t polls_before_credit = 8;  // empty polls before the ring counts as empty

  // Calls an actor's on_stop, of which nobody hears what it failed with.
  struct Stop {
    Worker& worker;
    template <class Actor>
    GYRE_DEVICE void operator()(Actor& actor, uint32_t actor_type, uint64_t key) const {
      const Envelope envelope{0, 0, 0, key, uint16_t(actor_type), lifecycle_message::stop, 0, 0, 0};
      Context context(envelope, *worker.bridge_.command_line, worker.memory_, *worker.shared_);
      actor.on_stop(context);
      HandlerGroup::sync();
    }
  };

  // Polling threads only.
  GYRE_DEVICE Decision poll() {
    if (stop_seen_) return Decision::stop;
    // The command is asked for before the message and looked at after it: the two reads cross the bus
    // together. A message found beside a stop is not taken.
    const bool looks = command_due();
    const uint64_t command = looks ? Memory::load_relaxed(bridge_.command_line->command) : 0;
    const ReceiveOutcome outcome = reply_room() ? receive<Memory>(PollGroup{}, bridge_.h2d, bridge_.shape,
                                                                  ticket_, polled_packets_, request_)
                                                : ReceiveOutcome::nothing;
    if (looks) {
      const uint32_t word = PollGroup::broadcast(uint32_t(command));
      if (word != command_.word) obey(CommandWord{word});
      if (command_.command() == Command::stop) return Decision::stop;
    }
    if (outcome == ReceiveOutcome::corrupt) return Decision::corrupt;
    if (outcome == ReceiveOutcome::nothing) {
      note_empty_poll();
      return Decision::nothing;
    }
    empty_polls_ = 0;
    PollGroup::sync();
    const uint32_t needed = packets_for(reinterpret_cast<const Envelope*>(request_)->body_bytes);
    polled_packets_ = (needed + 3) / 4 * 4;
    return Decision::message;
  }

  GYRE_DEVICE bool command_due() {
    const uint64_t ticks = clock_ticks();
    if (PollGroup::broadcast(ticks - looked_at_ >= look_interval) == 0) return looks_at_each_poll;
    looked_at_ = ticks;
    now_us_ = uint32_t(now_ns() / 1000);
    return true;
  }

  GYRE_DEVICE void obey(CommandWord word) {
    command_ = word;
    if (PollGroup::rank() != 0) return;
    Memory::store_relaxed(bridge_.worker_line->clock_ns, now_ns());
    Memory::store_release(bridge_.worker_line->acknowledged, word.word);
  }

  GYRE_DEVICE void note_empty_poll() {
    ++empty_polls_;
    if (empty_polls_ == polls_before_credit && credits_.behind(ticket_) && PollGroup::rank() == 0)
      publish_credit();
    if (empty_polls_ == patience) polled_packets_ = idle_polled_packets;
  }

  // Replies are prepaid, so there is room; were the host wrong about that, the worker would wait here, not
  // overwrite.
  GYRE_DEVICE bool reply_room() {
    const uint64_t slots = bridge_.shape.slots;
    if (PollGroup::broadcast(d2h_ticket_ - d2h_credit_seen_ < slots)) return true;
    d2h_credit_seen_ = Memory::load_acquire(bridge_.host_line->d2h_credit);
    return PollGroup::broadcast(d2h_ticket_ - d2h_credit_seen_ < slots);
  }

  GYRE_DEVICE void decide(Decision decision) {
    if (PollGroup::rank() != 0) return;
    *shared_ = WorkerShared{};
    shared_->decision = decision;
    if (decision != Decision::message) return;
    const Envelope& envelope = *reinterpret_cast<const Envelope*>(request_);
    if ((envelope.flags & envelope_flags::control) != 0) return;
    if (command_.command() == Command::inactive) {
      shared_->refused = Status::inactive;
    } else if (envelope.deadline_us != 0 && int32_t(now_us_ - envelope.deadline_us) > 0) {
      shared_->refused = Status::expired;
      shared_->detail = now_us_ - envelope.deadline_us;
      shared_->where = envelope.key;
    } else {
      find_actor(envelope);
    }
  }

  // One thread. The last actor is likely to be the next, too: states do not move.
  GYRE_DEVICE void find_actor(const Envelope& envelope) {
    const uint32_t types = uint32_t(envelope.actor_type) | uint32_t(envelope.message_type) << 16;
    const bool same_actor = ((last_types_ ^ types) & 0xffffu) == 0 && last_key_ == envelope.key;
    if (same_actor && last_state_ != nullptr) {
      shared_->state = last_state_;
    } else {
      locate(ActorList<Actors...>{}, memory_, memory_.actors, envelope.actor_type, envelope, *shared_);
      last_state_ = shared_->created == 0 ? shared_->state : nullptr;  // its on_start may fail
    }
    if (same_actor && last_types_ == types) return;
    last_types_ = types;
    last_key_ = envelope.key;
    Memory::store(bridge_.last_words->packet,
                  Packet{{uint32_t(envelope.key), uint32_t(envelope.key >> 32), types}, 1});
  }

  // The whole group.
  GYRE_DEVICE void take(Decision decision) {
    if (decision == Decision::corrupt) {
      ++corrupt_;
    } else {
      const Envelope envelope = *reinterpret_cast<const Envelope*>(request_);
      if ((envelope.flags & envelope_flags::control) != 0) {
        acknowledge(envelope);
      } else {
        handle(envelope);
      }
    }
    ++ticket_;
    if (HandlerGroup::rank() == 0 && credits_.due(ticket_)) publish_credit();
    HandlerGroup::sync();
  }

  GYRE_DEVICE void handle(const Envelope& envelope) {
    Bodies bodies{request_ + envelope_words, envelope.body_bytes, response_ + envelope_words,
                  bridge_.shape.body_capacity(), false};
    const bool out_of_line = (envelope.flags & envelope_flags::out_of_line) != 0;
    const bool found = !out_of_line || find_bodies(envelope, bodies);
    const Status refused = shared_->refused;

    Handled handled{refused != Status::ok ? refused : Status::malformed, shared_->detail, shared_->where, 0};
    Context context(envelope, *bridge_.command_line, memory_, *shared_);
    if (found && refused == Status::ok) {
      handled =
          dispatch(ActorList<Actors...>{}, *shared_, context, envelope.actor_type, envelope.message_type,
                   bodies.request, bodies.request_bytes, bodies.response, bodies.response_capacity);
    }
    // Any thread may be one that failed: the first to say so is believed, whole.
    if (handled.status != Status::ok && HandlerGroup::first_to_set(shared_->status, handled.status)) {
      shared_->detail = handled.detail;
      shared_->where = handled.where;
    }
    if (HandlerGroup::rank() == 0) shared_->response_bytes = handled.response_bytes;
    HandlerGroup::sync();

    // What any thread wrote there, before the packets and the credit that the polling threads store, whatever
    // became of the message: the host may then use that memory again.
    if ((bodies.response_in_block || shared_->buffers_used != 0) && polls()) Memory::fence();
    stop_seen_ = shared_->command_seen == uint32_t(Command::stop);
    const bool never_started = shared_->created != 0 && !found;
    if ((shared_->gone != 0 || never_started) && HandlerGroup::rank() == 0) {
      remove(ActorList<Actors...>{}, memory_, memory_.actors, envelope.actor_type, envelope.key);
      last_state_ = nullptr;
    }
    if ((envelope.flags & envelope_flags::ask) != 0) {
      answer(envelope, bodies.response_in_block);
    } else {
      ++(shared_->status == Status::ok ? tells_processed_ : tells_failed_);
      if (shared_->status != Status::ok && HandlerGroup::rank() == 0) log_failed_tell(envelope);
    }
    // Builders write into zeroed memory: clear what this message used of the scratch.
    // A handler that failed in one thread alone may have written more than that thread knows of.
    uint32_t dirty_bytes = shared_->response_bytes;
    if (bodies.response_in_block) dirty_bytes = sizeof(ErrorBody);
    if (dirty_bytes < sizeof(ErrorBody)) dirty_bytes = sizeof(ErrorBody);
    if (shared_->status != Status::ok) dirty_bytes = bridge_.shape.body_capacity();
    HandlerGroup::sync();
    const uint32_t dirty_words = envelope_words + dirty_bytes / sizeof(uint32_t);
    for (uint32_t i = HandlerGroup::rank(); i < dirty_words; i += HandlerGroup::size()) response_[i] = 0;
  }

  // Counters and failures of all before it are there when the host sees the reply.
  GYRE_DEVICE void acknowledge(const Envelope& envelope) {
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
    const OutOfLine head = *reinterpret_cast<const OutOfLine*>(request_ + envelope_words);
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
      bodies.request = request_ + envelope_words + sizeof(OutOfLine) / sizeof(uint32_t);
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

  // The whole group, after the handler; what it left is in `shared_`.
  GYRE_DEVICE void answer(const Envelope& envelope, bool response_in_block) {
    const Status status = shared_->status;
    const uint32_t response_bytes = shared_->response_bytes;
    void* const body = response_ + envelope_words;
    if (status != Status::ok) {
      ++error_replies_;
      if (HandlerGroup::rank() == 0) {
        *static_cast<ErrorBody*>(body) = {status, shared_->detail, shared_->where};
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
  GYRE_DEVICE void reply(const Envelope& request, uint8_t flags, uint32_t body_bytes) {
    if (polls()) {
      if (PollGroup::rank() == 0) {
        Envelope envelope = request;
        envelope.body_bytes = body_bytes;
        envelope.flags = flags | (request.flags & envelope_flags::out_of_line);
        if ((request.flags & envelope_flags::out_of_line) != 0) {
          envelope.key = reinterpret_cast<const OutOfLine*>(request_ + envelope_words)->block;
        }
        *reinterpret_cast<Envelope*>(response_) = envelope;
      }
      PollGroup::sync();
      publish<Memory>(PollGroup{}, bridge_.d2h, bridge_.shape, d2h_ticket_, response_, body_bytes);
    }
    ++d2h_ticket_;
  }

  GYRE_DEVICE void log_failed_tell(const Envelope& envelope) {
    const uint32_t stamp = uint32_t(tells_failed_);
    const uint64_t where = shared_->where;
    Packet* entry = bridge_.failure_log + FailureLog::first_packet(bridge_.shape, tells_failed_);
    Memory::store(*entry++, Packet{{uint32_t(shared_->status), shared_->detail, uint32_t(where)}, stamp});
    Memory::store(*entry++, Packet{{uint32_t(where >> 32), 0, 0}, stamp});
    for (uint32_t k = 0; k < packets_for(envelope.body_bytes); ++k) {
      const uint32_t* const words = request_ + k * words_a_packet;
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
    credits_.publish(ticket_);
  }

  Bridge bridge_;
  EngineMemory memory_;
  uint32_t* request_;
  uint32_t* response_;
  WorkerShared* shared_;
  CreditPublisher<Memory> credits_;
  uint64_t ticket_ = 0;      // of the next request
  uint64_t d2h_ticket_ = 0;  // of the next reply
  uint64_t d2h_credit_seen_ = 0;
  uint64_t looked_at_ = 0;  // clock_ticks() of the last look at command and clock
  uint32_t now_us_ = 0;     // the worker's clock then
  CommandWord command_;
  uint32_t last_types_ =
      ~uint32_t(0);  // of the last message, as in LastWords; the one thread's that looks up actors
  uint64_t last_key_ = 0;
  void* last_state_ = nullptr;
  uint64_t answered_ = 0;
  uint64_t error_replies_ = 0;
  uint64_t tells_processed_ = 0;
  uint64_t tells_failed_ = 0;
  uint64_t corrupt_ = 0;
  bool stop_seen_ = false;  // a handler was told to stop: it was the last
  uint32_t empty_polls_ = 0;
  uint32_t polled_packets_ = idle_polled_packets;
};

}  // namespace gyre
