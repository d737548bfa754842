// The message path of Core: what sends, and what takes replies. The rest of Core is in core.cpp.
#include <gyre/runtime/core/core.hpp>
#include <gyre/runtime/system/waited_sleep.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace gyre::detail {

namespace {

constexpr int64_t due_work_interval_ns = 2'000'000;
constexpr int64_t overdue_interval_ns = 16'000'000;  // a search reads the whole call table
constexpr int64_t never = INT64_MAX;

inline bool for_lack_of_room(Status status) {
  return status == Status::ring_full || status == Status::call_table_full || status == Status::arena_full;
}

}  // namespace

// Repeats `attempt` until it says something else than full, or the deadline passes; that may be `never`, and
// is `timeout` from now then. While it waits it drains replies: a thread that only sends still lets the
// workers answer.
template <class Attempt>
[[gnu::always_inline]] inline Status Core::attempt_until(Attempt&& attempt, std::chrono::nanoseconds timeout,
                                                         int64_t& deadline_ns, WhenFull when_full) {
  const Status status = attempt();
  if (!for_lack_of_room(status)) [[likely]]
    return status;
  return keep_attempting(status, attempt, timeout, deadline_ns, when_full);
}

// After a first attempt, which is a part of who attempts then.
template <class Attempt>
[[gnu::noinline]] Status Core::keep_attempting(Status status, Attempt& attempt,
                                               std::chrono::nanoseconds timeout, int64_t& deadline_ns,
                                               WhenFull when_full) {
  if (when_full == WhenFull::refuse) return drain_replies() != 0 ? attempt() : status;
  if (deadline_ns == never) deadline_ns = after(host_now_ns(), timeout);
  Backoff backoff(options_.wait);
  uint32_t busy_turns = 0;
  for (;; status = attempt()) {
    if (!for_lack_of_room(status)) return status;
    if (drain_replies() != 0) {
      backoff.reset();
      if (++busy_turns % Backoff::busy_turns_per_clock_read == 0 && host_now_ns() >= deadline_ns) return status;
      continue;
    }
    if (backoff.should_read_clock()) {
      const int64_t now = host_now_ns();
      do_due_work(now);
      if (now >= deadline_ns) return status;
    }
    backoff.pause();
  }
}

// Where the bodies of a message go, and that an empty arena would have room for them.
Result<Core::Room> Core::room_for(uint32_t body_bytes, uint32_t reply_bytes) const {
  const uint32_t slot = shape().body_capacity();
  Room room;
  if (body_bytes > slot) room.request_bytes = body_bytes;
  if (reply_bytes > slot) room.reply_bytes = reply_bytes;
  if (room.reply_bytes != 0 && body_bytes + sizeof(OutOfLine) > slot) room.request_bytes = body_bytes;
  if (!room.any()) return room;
  if (slot < sizeof(OutOfLine) || !arena_.could_hold(room.request_bytes, room.reply_bytes)) {
    return Failure{Status::too_large, 0, uint64_t(room.request_bytes) + room.reply_bytes,
                   slot < sizeof(OutOfLine) ? slot : std::max<uint64_t>(slot, arena_.bytes())};
  }
  return room;
}

// A block with the request's body in it; empty if there is no room now.
std::optional<ArenaBlock> Core::take_block(const Room& room, Outgoing message) {
  auto block = arena_.allocate(room.request_bytes, room.reply_bytes);
  if (!block) {
    for (HostBridge& bridge : bridges_) {
      bridge.take_tell_blocks([this](BlockId id) { arena_.free(id); });
    }
    block = arena_.allocate(room.request_bytes, room.reply_bytes);
  }
  if (block && room.request_bytes != 0) {
    std::memcpy(arena_.at(block->request_offset), message.complete(), room.request_bytes);
  }
  return block;
}

inline HostBridge::Message Core::with_heads(const Envelope& envelope, Outgoing message, const Room& room,
                                            const std::optional<ArenaBlock>& block) {
  if (block) [[unlikely]]
    return with_block_heads(envelope, message, room, *block);
  return {envelope, message.body(), message.root()};
}

// The block's head goes right in front of the body, into the room that the sender has there.
HostBridge::Message Core::with_block_heads(Envelope envelope, Outgoing message, const Room& room,
                                           const ArenaBlock& block) {
  const OutOfLine head{block.id, block.request_offset, block.reply_offset, room.request_bytes,
                       room.reply_bytes};
  auto* const body = reinterpret_cast<std::byte*>(message.complete()) - sizeof head;
  std::memcpy(body, &head, sizeof head);
  envelope.flags |= envelope_flags::out_of_line;
  envelope.body_bytes = uint32_t(sizeof head) + (room.request_bytes != 0 ? 0 : message.bytes());
  Memory::fence();
  uint64_t first_word;
  std::memcpy(&first_word, &head, sizeof first_word);
  return {envelope, body, first_word};
}

Status Core::full_or_closed(const HostBridge& bridge, Status full) const {
  return bridge.closed() ? refusal() : full;
}

Status Core::status_of(ClaimOutcome outcome) const {
  switch (outcome) {
    case ClaimOutcome::claimed:
      return Status::ok;
    case ClaimOutcome::full:
      return Status::ring_full;
    case ClaimOutcome::closed:
      break;
  }
  return refusal();
}

uint32_t Core::reply_bytes(const Destination& to, const AskLimits& limits, uint32_t request_bytes) const {
  if (limits.max_reply_bytes != 0) return limits.max_reply_bytes;
  if (to.max_reply_bytes != 0) return to.max_reply_bytes;
  return options_.max_reply_bytes != 0 ? options_.max_reply_bytes : request_bytes;
}

Result<CallId> Core::ask(const Destination& to, Outgoing message, const AskLimits& limits,
                         WhenFull when_full) {
  if (forked()) return Failure{Status::forked};
  Room room;
  const uint32_t reply = reply_bytes(to, limits, message.bytes());
  if (std::max(message.bytes(), reply) > shape().body_capacity()) {
    const auto needed = room_for(message.bytes(), reply);
    if (!needed) return needed.error();
    room = needed.value();
  }
  const SendTime sent = SendTime::now(limits.timeout);
  int64_t deadline_ns = sent.exact() ? sent.deadline_ns() : never;
  const uint64_t timeout_us = microseconds(limits.timeout);
  HostBridge& bridge = bridges_[to.worker];
  std::optional<CallId> call;
  std::optional<ArenaBlock> block;
  bool prepaid = false;
  uint64_t ticket = 0;
  const auto collect = [&] { collect_before_reuse(to.worker); };
  const Status status = attempt_until(
      [&]() __attribute__((always_inline)) {
        if (room.any() && !block && !(block = take_block(room, message))) [[unlikely]]
          return full_or_closed(bridge, Status::arena_full);
        if (!call && !(call = calls_.acquire())) return full_or_closed(bridge, Status::call_table_full);
        if (!prepaid && !(prepaid = bridge.try_prepay_replies(1) != 0))
          return full_or_closed(bridge, Status::ring_full);
        return status_of(bridge.try_claim(ticket, collect));
      },
      limits.timeout, deadline_ns, when_full);
  if (status != Status::ok) {
    if (prepaid) bridge.return_prepaid(1);
    if (call) calls_.release(*call);
    if (block) arena_.free(block->id, 0);
    return refused(status, when_full == WhenFull::wait ? timeout_us : 0, room);
  }
  books_.add(Count::asks_accepted);
  calls_.arm(*call, to.worker, deadline_ns, timeout_us);
  bridge.publish(
      ticket, with_heads({*call, message.bytes(), worker_deadline_us(bridge, sent.now_ns, sent.deadline_ns()),
                          to.key, to.actor_type, to.message_type, 0, 0, envelope_flags::ask},
                         message, room, block));
  // The clock is read while the message is on its way. Nobody else gives the call back.
  if (deadline_ns == never) calls_.set_deadline(*call, after(host_now_ns(), limits.timeout));
  return *call;
}

Result<void> Core::ask_lifecycle(const Destination& to, std::chrono::nanoseconds timeout) {
  alignas(8) std::byte place[Outgoing::heads_bytes + sizeof(uint64_t)] = {};
  const Outgoing nothing{reinterpret_cast<capnp::word*>(place + Outgoing::heads_bytes), 0};
  const auto call = ask(to, nothing, AskLimits{timeout, 0}, WhenFull::wait);
  if (!call) return call.error();
  wait(call.value());
  const Failure failure = calls_.failure(call.value());
  calls_.abandon(call.value());
  if (failure.status != Status::ok) return failure;
  return success();
}

Result<void> Core::tell(const Destination& to, Outgoing message, const TellLimits& limits,
                        WhenFull when_full) {
  if (forked()) return Failure{Status::forked};
  Room room;
  if (message.bytes() > shape().body_capacity()) {
    const auto needed = room_for(message.bytes(), 0);
    if (!needed) return needed.error();
    room = needed.value();
  }
  const int64_t now_ns = limits.expires_after.count() > 0 ? host_now_ns() : 0;
  int64_t deadline_ns = never;
  HostBridge& bridge = bridges_[to.worker];
  std::optional<ArenaBlock> block;
  uint64_t ticket = 0;
  const Status status = attempt_until(
      [&] {
        if (room.any() && !block && !(block = take_block(room, message)))
          return full_or_closed(bridge, Status::arena_full);
        return status_of(bridge.try_claim(ticket, [&] { collect_before_reuse(to.worker); }));
      },
      limits.timeout, deadline_ns, when_full);
  if (status != Status::ok) {
    if (block) arena_.free(block->id, 0);
    return refused(status, when_full == WhenFull::wait ? microseconds(limits.timeout) : 0, room);
  }
  books_.add(Count::tells_accepted);
  if (block) bridge.keep_tell_block(ticket, block->id, [this](BlockId id) { arena_.free(id, 0); });
  const uint32_t deadline_us = limits.expires_after.count() <= 0
                                   ? 0
                                   : worker_deadline_us(bridge, now_ns, after(now_ns, limits.expires_after));
  bridge.publish(
      ticket, with_heads({0, message.bytes(), deadline_us, to.key, to.actor_type, to.message_type, 0, 0, 0},
                         message, room, block));
  return success();
}

// How many messages from the first on, Scratch::run at the most, go to its worker and fit slots; 0: the first
// does not.
template <class Fits>
size_t Core::run_of(std::span<const Addressed> messages, Fits&& fits) {
  size_t n = 0;
  while (n < std::min(messages.size(), Scratch::run) && messages[n].to.worker == messages[0].to.worker &&
         fits(messages[n]))
    ++n;
  return n;
}

size_t Core::ask_many(std::span<const Addressed> messages, const AskLimits& limits, CallId* calls,
                      Failure& refused) {
  const auto fits = [&](const Addressed& message) {
    const uint32_t bytes = message.message.bytes();
    return std::max(bytes, reply_bytes(message.to, limits, bytes)) <= shape().body_capacity();
  };
  for (size_t sent = 0; sent < messages.size();) {
    const size_t run = run_of(messages.subspan(sent), fits);
    if (run == 0) {
      const auto call = ask(messages[sent].to, messages[sent].message, limits, WhenFull::wait);
      if (!call) {
        refused = call.error();
        return sent;
      }
      calls[sent++] = call.value();
      continue;
    }
    const size_t of_run = ask_run(messages.subspan(sent, run), limits, calls + sent, refused);
    sent += of_run;
    if (of_run != run) return sent;
  }
  return messages.size();
}

// One clock reading, and where there is room one prepayment and one claim, for messages to one worker that
// fit slots.
size_t Core::ask_run(std::span<const Addressed> run, const AskLimits& limits, CallId* calls,
                     Failure& refused) {
  if (forked()) {
    refused = Failure{Status::forked};
    return 0;
  }
  const SendTime sent_at = SendTime::now(limits.timeout);
  const uint64_t timeout_us = microseconds(limits.timeout);
  int64_t deadline_ns = sent_at.exact() ? sent_at.deadline_ns() : never;
  const uint32_t worker = run.front().to.worker;
  HostBridge& bridge = bridges_[worker];
  const uint32_t deadline_us = worker_deadline_us(bridge, sent_at.now_ns, sent_at.deadline_ns());
  const auto collect = [&] { collect_before_reuse(worker); };
  size_t sent = 0;
  while (sent < run.size()) {
    uint32_t acquired = 0, prepaid = 0, claimed = 0;
    uint64_t ticket = 0;
    const Status status = attempt_until(
        [&] {
          for (; sent + acquired < run.size(); ++acquired) {
            const auto call = calls_.acquire();
            if (!call) break;
            calls[sent + acquired] = *call;
          }
          if (acquired == 0) return full_or_closed(bridge, Status::call_table_full);
          if (prepaid == 0) prepaid = bridge.try_prepay_replies(acquired);
          if (prepaid == 0) return full_or_closed(bridge, Status::ring_full);
          return status_of(bridge.try_claim_run(prepaid, ticket, claimed, collect));
        },
        limits.timeout, deadline_ns, WhenFull::wait);
    if (prepaid != claimed) bridge.return_prepaid(prepaid - claimed);
    for (uint32_t i = claimed; i < acquired; ++i) calls_.release(calls[sent + i]);
    if (status != Status::ok) {
      refused = this->refused(status, timeout_us, Room{});
      break;
    }
    books_.add(Count::asks_accepted, claimed);
    for (uint32_t i = 0; i < claimed; ++i) {
      calls_.arm(calls[sent + i], run[sent + i].to.worker, deadline_ns, timeout_us);
    }
    bridge.publish_run(ticket, claimed, [&](uint32_t i) {
      const auto& [to, message] = run[sent + i];
      return with_heads({calls[sent + i], message.bytes(), deadline_us, to.key, to.actor_type,
                         to.message_type, 0, 0, envelope_flags::ask},
                        message, Room{}, std::nullopt);
    });
    sent += claimed;
  }
  if (!sent_at.exact()) {
    const int64_t exact_ns = deadline_ns != never ? deadline_ns : after(host_now_ns(), limits.timeout);
    for (size_t i = 0; i < sent; ++i) calls_.set_deadline(calls[i], exact_ns);
  }
  return sent;
}

size_t Core::tell_many(std::span<const Addressed> messages, const TellLimits& limits, Failure& refused) {
  const auto fits = [&](const Addressed& message) {
    return message.message.bytes() <= shape().body_capacity();
  };
  for (size_t sent = 0; sent < messages.size();) {
    const size_t run = run_of(messages.subspan(sent), fits);
    if (run == 0) {
      const auto told = tell(messages[sent].to, messages[sent].message, limits, WhenFull::wait);
      if (!told) {
        refused = told.error();
        return sent;
      }
      ++sent;
      continue;
    }
    const size_t of_run = tell_run(messages.subspan(sent, run), limits, refused);
    sent += of_run;
    if (of_run != run) return sent;
  }
  return messages.size();
}

size_t Core::tell_run(std::span<const Addressed> run, const TellLimits& limits, Failure& refused) {
  if (forked()) {
    refused = Failure{Status::forked};
    return 0;
  }
  const uint32_t worker = run.front().to.worker;
  HostBridge& bridge = bridges_[worker];
  uint32_t deadline_us = 0;
  if (limits.expires_after.count() > 0) {
    const int64_t now_ns = host_now_ns();
    deadline_us = worker_deadline_us(bridge, now_ns, after(now_ns, limits.expires_after));
  }
  int64_t deadline_ns = never;
  const auto collect = [&] { collect_before_reuse(worker); };
  size_t sent = 0;
  while (sent < run.size()) {
    uint64_t ticket = 0;
    uint32_t claimed = 0;
    const Status status = attempt_until(
        [&] {
          return status_of(bridge.try_claim_run(uint32_t(run.size() - sent), ticket, claimed, collect));
        },
        limits.timeout, deadline_ns, WhenFull::wait);
    if (status != Status::ok) {
      refused = this->refused(status, microseconds(limits.timeout), Room{});
      break;
    }
    books_.add(Count::tells_accepted, claimed);
    bridge.publish_run(ticket, claimed, [&](uint32_t i) {
      const auto& [to, message] = run[sent + i];
      return with_heads({0, message.bytes(), deadline_us, to.key, to.actor_type, to.message_type, 0, 0, 0},
                        message, Room{}, std::nullopt);
    });
    sent += claimed;
  }
  return sent;
}

Failure Core::refused(Status status, uint64_t waited_us, const Room& room) const {
  switch (status) {
    case Status::call_table_full:
      return Failure{status, 0, 0, calls_.calls()};
    case Status::arena_full:
      return Failure{status, 0, uint64_t(room.request_bytes) + room.reply_bytes, arena_.bytes()};
    default:
      return Failure{status, 0, waited_us, shape().slots};
  }
}

bool Core::wait_longer(CallId call, int64_t until_ns) {
  HostBridge& bridge = bridges_[calls_.worker(call)];
  Backoff backoff(options_.wait);
  const Doorbell* const bell = bridge.bell();
  bool queued = bell != nullptr && bell->queued();
  WaitedSleep sleep(bell != nullptr);
  uint32_t busy_turns = 0;
  do {
    const bool progress = drain_replies(bridge, call) != 0;
    if (progress) backoff.reset();
    if (progress ? ++busy_turns % Backoff::busy_turns_per_clock_read == 0 : backoff.should_read_clock()) {
      const int64_t now = host_now_ns();
      if (!progress) do_due_work(now);
      const int64_t deadline_ns = calls_.deadline_ns(call);
      const int64_t end_ns = sleep.end(now, std::min(deadline_ns, until_ns));
      if (now >= deadline_ns) {
        expire(call);
      } else if (now >= until_ns) {
        return calls_.done(call);
      } else if (!progress && backoff.spun()) {
        if (end_ns != 0) {
          sleep_for_reply(call, bridge, now, end_ns);
        } else {
          __builtin_ia32_pause();
        }
        continue;
      }
    }
    if (progress) continue;
    if (queued) {
      backoff.yield();
      queued = bell->queued();
    } else {
      backoff.pause();
    }
  } while (!calls_.done(call));
  return true;
}

// Sleeps until the call is done or its reply lies in the ring, at `until_ns` the latest; may return early.
void Core::sleep_for_reply(CallId call, const HostBridge& bridge, int64_t now_ns, int64_t until_ns) {
  Doorbell* const bell = bridge.bell();
  if (calls_.prepare_sleep(call)) {
    if (bell == nullptr) {
      calls_.sleep(call, until_ns);  // another thread that completes the call ends it
    } else {
      bell->add_sleeper();
      const bool fenced = asymmetric_fence_heavy();
      // A thread that drains now may have polled before the reply was there.
      const bool busy = bridge.draining();
      if (busy || !fenced) until_ns = std::min(until_ns, now_ns + Doorbell::unfenced_ns);
      if (busy || !bridge.has_reply()) calls_.sleep(call, until_ns);
      bell->remove_sleeper();
    }
  }
  calls_.end_sleep(call);
}

bool Core::poll(CallId call) {
  if (calls_.done(call)) return true;
  drain_replies(bridges_[calls_.worker(call)]);
  const int64_t now = host_now_ns();
  do_due_work(now);
  if (now >= calls_.deadline_ns(call)) expire(call);
  return calls_.done(call);
}

bool Core::cancel(CallId call) {
  if (forked() || !calls_.begin_outcome(call)) return false;
  return conclude(Count::asks_cancelled,
                  [&] { return calls_.complete_failed(call, Failure{Status::cancelled}); });
}

uint32_t Core::drain_replies() {
  uint32_t count = 0;
  for (HostBridge& bridge : bridges_) count += drain_replies(bridge);
  return count;
}

uint32_t Core::drain_replies(HostBridge& bridge, CallId own) {
  return bridge.drain([&](const ArrivedReply* reply) { take_reply(bridge, reply, own); });
}

// `own`: the call that this thread owns and waits for, if any.
void Core::take_reply(HostBridge& bridge, const ArrivedReply* reply, CallId own) {
  if (reply == nullptr) {
    fail("reading a reply: a slot of the D2H ring held no message; something wrote over the region");
    return;
  }
  constexpr uint8_t not_plain = envelope_flags::control | envelope_flags::error |
                                envelope_flags::out_of_line | envelope_flags::reply_in_block;
  if ((reply->flags() & not_plain) != 0) [[unlikely]]
    return take_special_reply(bridge, *reply);
  const CallId call = reply->correlation();
  bridge.return_reply();
  if (own != no_call && call == own) {
    reply->unpack(calls_.place(call));
    books_.add(calls_.complete_own(call, reply->body_bytes()) ? Count::asks_answered : Count::asks_late);
  } else if (calls_.begin_outcome(call)) {
    reply->unpack(calls_.place(call));
    conclude_answered([&] { return calls_.complete_answered(call, reply->body_bytes()); });
  } else {
    books_.add(Count::asks_late);
  }
}

// Anything but an answer in its slot.
void Core::take_special_reply(HostBridge& bridge, const ArrivedReply& reply) {
  const Envelope envelope = reply.envelope();
  const CallId call = envelope.correlation;
  if ((envelope.flags & envelope_flags::control) != 0) {
    drain_acknowledgements_.fetch_add(1, std::memory_order_release);
    return;
  }
  bridge.return_reply();
  const bool wanted = calls_.begin_outcome(call);
  if (!wanted) books_.add(Count::asks_late);
  // The worker is done with the block, whatever it answered: what it wrote there comes before what is done
  // there next.
  if ((envelope.flags & envelope_flags::out_of_line) != 0) Memory::fence();
  if ((envelope.flags & envelope_flags::reply_in_block) != 0) {
    take_reply_in_block(envelope, reply.body_as<OutOfLineReply>(), wanted);
    return;
  }
  if ((envelope.flags & envelope_flags::out_of_line) != 0) arena_.free(envelope.key);
  ErrorBody error{};
  if ((envelope.flags & envelope_flags::error) != 0) error = reply.body_as<ErrorBody>();
  if (error.status == Status::expired) return take_expired(envelope, error, wanted);
  if (!wanted) return;
  if (error.status == Status::ok) {
    reply.unpack(calls_.place(call));
    conclude_answered([&] { return calls_.complete_answered(call, reply.body_bytes()); });
  } else if (!conclude(Count::asks_error_replies,
                       [&] { return calls_.complete_failed(call, actors_.failure_of(envelope, error)); })) {
    books_.add(Count::asks_late);
  }
}

// The ask has timed out, here or at the worker, and was not handled: that much is known of it.
void Core::take_expired(const Envelope& envelope, const ErrorBody& error, bool wanted) {
  if (wanted) {
    const uint64_t timeout_us = calls_.timeout_us(envelope.correlation);
    conclude(Count::asks_timed_out, [&] {
      return calls_.complete_failed(envelope.correlation,
                                    Failure{Status::timed_out, 0, timeout_us, timeout_us});
    });
  }
  // The reply's envelope says of the request what the worker could send back.
  Envelope sent = envelope;
  sent.key = error.where;
  sent.flags = envelope_flags::ask;
  sent.body_bytes = 0;
  dead_letters_.add(sent, error, {});
}

void Core::take_reply_in_block(const Envelope& envelope, const OutOfLineReply& reply, bool wanted) {
  const auto block = arena_.find(envelope.key);
  if (!block || reply.body_bytes > block->reply_capacity) {
    if (wanted) {
      conclude(Count::asks_dead,
               [&] { return calls_.complete_failed(envelope.correlation, Failure{Status::engine_failed}); });
    }
    fail(
        "reading a reply: it names a block of the arena that its request did not bring; something wrote over "
        "the "
        "region");
    return;
  }
  if (wanted) {
    conclude_answered(
        [&] { return calls_.complete_in_block(envelope.correlation, *block, reply.body_bytes); });
  } else {
    arena_.free(block->id, reply.body_bytes);
  }
}

void Core::expire(CallId call) {
  const uint64_t timeout_us = calls_.timeout_us(call);
  if (calls_.begin_outcome(call)) {
    conclude(Count::asks_timed_out, [&] {
      return calls_.complete_failed(call, Failure{Status::timed_out, 0, timeout_us, timeout_us});
    });
  } else {
    // Another thread may be at its outcome, and suspended there.
    calls_.overrule(call, [this] { books_.add(Count::asks_timed_out); });
  }
}

// Publishes the time to the worker, then returns Envelope::deadline_us. Returns 0, no deadline, where the
// last published time is so old that the worker could take a distant deadline for one that has passed.
uint32_t Core::publish_time_first(HostBridge& bridge, int64_t now_ns, int64_t deadline_ns) {
  constexpr int64_t comparable_ns = 60'000'000'000;
  bridge.publish_time(now_ns);
  return now_ns - bridge.published_time_ns() > comparable_ns ? 0 : deadline_us(now_ns, deadline_ns);
}

// Publishes the time to workers that may have work.
void Core::publish_time(int64_t now_ns) {
  if (engine_->shares_host_clock()) return;
  for (HostBridge& bridge : bridges_) {
    if (bridge.may_have_work()) bridge.publish_time(now_ns);
  }
}

// Does what some waiting thread must do every due_work_interval_ns; the first thread to come does it.
void Core::do_due_work(int64_t now_ns) {
  int64_t next = next_due_work_ns_.load(std::memory_order_relaxed);
  if (now_ns < next || !next_due_work_ns_.compare_exchange_strong(next, now_ns + due_work_interval_ns,
                                                                  std::memory_order_relaxed)) {
    return;
  }
  drain_replies();
  if (int64_t due = next_overdue_ns_.load(std::memory_order_relaxed);
      now_ns >= due && next_overdue_ns_.compare_exchange_strong(due, now_ns + overdue_interval_ns,
                                                                std::memory_order_relaxed)) {
    calls_.for_each_overdue(now_ns, [this](CallId call) { expire(call); });
  }
  publish_time(now_ns);
  sample_clock(now_ns);
  check_engine();
}

}  // namespace gyre::detail
