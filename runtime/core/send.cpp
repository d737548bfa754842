#include <gyre/runtime/core/backoff.hpp>
#include <gyre/runtime/core/send.hpp>

#include <algorithm>
#include <cstring>

namespace gyre::detail {

namespace {

constexpr int64_t never = INT64_MAX;

uint64_t most_body_bytes(const RingShape& shape, uint64_t arena_bytes) {
  if (shape.body_capacity() < sizeof(OutOfLine)) return shape.body_capacity();
  return std::clamp<uint64_t>(arena_bytes, shape.body_capacity(), Scratch::most_capacity());
}

// CallTable::arm's bits of an ask.
constexpr uint64_t call_bits(const AskLimits&) { return 0; }
constexpr uint64_t call_bits(const ReceiptLimits&) { return CallTable::receipt_bit; }
constexpr uint64_t call_bits(const ReadLimits&) { return 0; }

// Its envelope's flags.
constexpr uint8_t ask_flags(const AskLimits&) { return envelope_flags::ask; }
constexpr uint8_t ask_flags(const ReceiptLimits&) { return envelope_flags::ask; }
constexpr uint8_t ask_flags(const ReadLimits&) { return envelope_flags::ask | envelope_flags::control; }

SendTime send_time(const HostSide& host, const AskLimits& limits) { return host.send_time(limits.timeout); }
SendTime send_time(const HostSide& host, const ReadLimits& limits) { return host.send_time(limits.timeout); }
// The coarse clock lags, and a message must not expire early.
SendTime send_time(const HostSide& host, const ReceiptLimits& limits) {
  if (limits.expires_after.count() <= 0) return host.send_time(limits.timeout);
  return SendTime::at(host.now_ns(), limits.timeout);
}

// Records a message that is about to be published, where messages are recorded.
inline void record(const HostSide& host, const Destination& to, uint64_t ticket, CallId call,
                   const Outgoing& message, Recorder::Kind kind, std::chrono::nanoseconds timeout,
                   std::chrono::nanoseconds expires_after) {
  if (!host.recorder) [[likely]]
    return;
  host.recorder->sent(
      {kind, to.worker, ticket, call, to.key, to.actor_type, to.message_type, timeout, expires_after},
      message.root(), message.body() + 1, message.bytes());
}
inline void record(const HostSide& host, const Destination& to, uint64_t ticket, CallId call,
                   const Outgoing& message, const AskLimits& limits) {
  record(host, to, ticket, call, message, Recorder::Kind::ask, limits.timeout, {});
}
inline void record(const HostSide& host, const Destination& to, uint64_t ticket, CallId call,
                   const Outgoing& message, const ReceiptLimits& limits) {
  record(host, to, ticket, call, message, Recorder::Kind::receipt, limits.timeout, limits.expires_after);
}
inline void record(const HostSide&, const Destination&, uint64_t, CallId, const Outgoing&,
                   const ReadLimits&) {}
inline void record(const HostSide& host, const Destination& to, uint64_t ticket, const Outgoing& message,
                   const TellLimits& limits) {
  record(host, to, ticket, 0, message, Recorder::Kind::tell, {}, limits.expires_after);
}

inline bool is_out_of_room(Status status) {
  return status == Status::ring_full || status == Status::call_table_full || status == Status::arena_full;
}

}  // namespace

Sender::Sender(HostSide& host, const State& state, Accounts& accounts, Clock& clock, Receiver& receiver)
    : host_(host),
      calls_(host.calls),
      state_(state),
      accounts_(accounts),
      clock_(clock),
      receiver_(receiver),
      max_body_bytes_(most_body_bytes(host.shape(), host.arena.bytes())) {}

// Repeats `attempt` until it finds room or another reason to fail, or the deadline passes. A deadline that is
// `never` becomes `timeout` from the first attempt that found no room.
template <class Attempt>
[[gnu::always_inline]] inline Status Sender::attempt_until_room(Attempt&& attempt,
                                                                std::chrono::nanoseconds timeout,
                                                                int64_t& deadline_ns, WhenFull when_full) {
  const Status status = attempt();
  if (!is_out_of_room(status)) [[likely]]
    return status;
  return retry_until_room(status, attempt, timeout, deadline_ns, when_full);
}

// Slow path after the first attempt found no room: takes replies to make room, and attempts again. Refuses
// after one more attempt if `when_full` says so. Kept out of line so that the first attempt inlines.
template <class Attempt>
[[gnu::noinline]] Status Sender::retry_until_room(Status status, Attempt& attempt,
                                                  std::chrono::nanoseconds timeout, int64_t& deadline_ns,
                                                  WhenFull when_full) {
  if (when_full == WhenFull::refuse) return receiver_.drain_replies() != 0 ? attempt() : status;
  if (deadline_ns == never) deadline_ns = after(host_.now_ns(), timeout);
  Backoff backoff(host_.options.wait);
  uint32_t busy_turns = 0;
  for (;; status = attempt()) {
    if (!is_out_of_room(status)) return status;
    if (receiver_.drain_replies() != 0) {
      backoff.reset();
      if (++busy_turns % Backoff::busy_turns_per_clock_read == 0 && host_.now_ns() >= deadline_ns)
        return status;
      continue;
    }
    if (host_.should_read_clock(backoff)) {
      const int64_t now = host_.now_ns();
      receiver_.do_due_work(now);
      if (now >= deadline_ns) return status;
    }
    host_.pause(backoff, deadline_ns);
  }
}

// Returns how much of the arena a message needs; fails if an empty arena would be too small.
Result<Sender::ArenaRoom> Sender::arena_room_for(uint32_t body_bytes, uint32_t reply_bytes) const {
  const uint32_t slot = host_.shape().body_capacity();
  ArenaRoom room;
  if (body_bytes > slot) room.request_bytes = body_bytes;
  if (reply_bytes > slot) room.reply_bytes = reply_bytes;
  if (room.reply_bytes != 0 && body_bytes + sizeof(OutOfLine) > slot) room.request_bytes = body_bytes;
  if (!room.any()) return room;
  if (slot < sizeof(OutOfLine) || !host_.arena.could_hold(room.request_bytes, room.reply_bytes)) {
    return Failure{Status::too_large, 0, uint64_t(room.request_bytes) + room.reply_bytes,
                   slot < sizeof(OutOfLine) ? slot : std::max<uint64_t>(slot, host_.arena.bytes())};
  }
  return room;
}

// Allocates a block and copies the request's body there; empty if there is no room now.
std::optional<ArenaBlock> Sender::take_block(const ArenaRoom& room, Outgoing message) {
  auto block = host_.arena.allocate(room.request_bytes, room.reply_bytes);
  if (!block) {
    for (HostBridge& bridge : host_.bridges) {
      bridge.take_tell_blocks([this](BlockId id) { host_.arena.free(id); });
    }
    block = host_.arena.allocate(room.request_bytes, room.reply_bytes);
  }
  if (block && room.request_bytes != 0) {
    Scratch::of_this_thread().copy_body(host_.arena.at(block->request_offset), message.complete(),
                                        room.request_bytes, *host_.copy_threads);
  }
  return block;
}

// Returns the message as its slot holds it: whole, or naming the block that holds it.
inline HostBridge::Message Sender::message_for_slot(const Envelope& envelope, Outgoing message,
                                                    const ArenaRoom& room,
                                                    const std::optional<ArenaBlock>& block) {
  if (block) [[unlikely]]
    return message_naming_block(envelope, message, room, *block);
  return {envelope, message.body(), message.root()};
}

// Writes the OutOfLine right in front of the body: Outgoing keeps room for it there.
HostBridge::Message Sender::message_naming_block(Envelope envelope, Outgoing message, const ArenaRoom& room,
                                                 const ArenaBlock& block) {
  const OutOfLine head{block.id, block.request_offset, block.reply_offset, room.request_bytes,
                       room.reply_bytes};
  auto* const body = reinterpret_cast<std::byte*>(message.complete()) - sizeof head;
  std::memcpy(body, &head, sizeof head);
  envelope.flags |= envelope_flags::out_of_line;
  envelope.body_bytes = uint32_t(sizeof head) + (room.request_bytes != 0 ? 0 : message.bytes());
  Memory::fence();  // pairs with the worker's acquire of the message: it finds the block's bytes
  uint64_t first_word;
  std::memcpy(&first_word, &head, sizeof first_word);
  return {envelope, body, first_word};
}

Status Sender::full_or_closed(const HostBridge& bridge, Status full) const {
  return bridge.closed() ? state_.refusal() : full;
}

Status Sender::status_of(ClaimOutcome outcome) const {
  switch (outcome) {
    case ClaimOutcome::claimed:
      return Status::ok;
    case ClaimOutcome::full:
      return Status::ring_full;
    case ClaimOutcome::closed:
      break;
  }
  return state_.refusal();
}

// Returns the largest reply, in bytes, that an ask makes room for.
uint32_t Sender::reply_bytes_to_reserve(const Destination& to, const AskLimits& limits,
                                        uint32_t request_bytes) const {
  if (limits.max_reply_bytes != 0) return limits.max_reply_bytes;
  if (to.max_reply_bytes != 0) return to.max_reply_bytes;
  return host_.options.max_reply_bytes != 0 ? host_.options.max_reply_bytes : request_bytes;
}

// A handler without a response answers with 0 bytes, which need no room.
uint32_t Sender::reply_bytes_to_reserve(const Destination& to, const ReceiptLimits&,
                                        uint32_t request_bytes) const {
  if (!host_.actors.has_response(to.actor_type, to.message_type)) return 0;
  return reply_bytes_to_reserve(to, AskLimits{{}, 0}, request_bytes);
}

// Returns Envelope::deadline_us of a message that expires by itself, sent at `now_ns`.
inline uint32_t Sender::expiry_us(HostBridge& bridge, int64_t now_ns,
                                  std::chrono::nanoseconds expires_after) {
  if (expires_after.count() <= 0) return 0;
  return clock_.worker_deadline_us(bridge, now_ns, after(now_ns, expires_after));
}

// Returns Envelope::deadline_us of a message that wants an answer.
inline uint32_t Sender::worker_deadline_us(HostBridge& bridge, const SendTime& sent, const AskLimits&) {
  return clock_.worker_deadline_us(bridge, sent.now_ns, sent.deadline_ns());
}
inline uint32_t Sender::worker_deadline_us(HostBridge& bridge, const SendTime& sent,
                                           const ReceiptLimits& limits) {
  return expiry_us(bridge, sent.now_ns, limits.expires_after);
}

template <class Limits>
Result<CallId> Sender::ask(const Destination& to, Outgoing message, const Limits& limits,
                           WhenFull when_full) {
  if (host_.forked()) return Failure{Status::forked};
  ArenaRoom room;
  const uint32_t reply = reply_bytes_to_reserve(to, limits, message.bytes());
  if (std::max(message.bytes(), reply) > host_.shape().body_capacity()) {
    const auto needed = arena_room_for(message.bytes(), reply);
    if (!needed) return needed.error();
    room = needed.value();
  }
  const SendTime sent = send_time(host_, limits);
  int64_t deadline_ns = sent.exact ? sent.deadline_ns() : never;
  const uint64_t timeout_us = microseconds(limits.timeout);
  HostBridge& bridge = host_.bridges[to.worker];
  std::optional<CallId> call;
  std::optional<ArenaBlock> block;
  bool prepaid = false;
  uint64_t ticket = 0;
  const auto collect = [&] { accounts_.collect_before_reuse(to.worker); };
  const Status status = attempt_until_room(
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
    if (prepaid) bridge.cancel_prepaid(1);
    if (call) calls_.release(*call);
    if (block) host_.arena.free(block->id, 0);
    return failure_of(status, when_full == WhenFull::wait ? timeout_us : 0, room);
  }
  accounts_.add(Count::asks_accepted);
  calls_.arm(*call, to.worker, deadline_ns, timeout_us | call_bits(limits));
  record(host_, to, ticket, *call, message, limits);
  bridge.publish(ticket, message_for_slot({*call, message.bytes(), worker_deadline_us(bridge, sent, limits),
                                           to.key, to.actor_type, to.message_type, 0, 0, ask_flags(limits)},
                                          message, room, block));
  // Reads the clock while the message is on its way. Safe: no other thread knows the call yet that could
  // release it.
  if (deadline_ns == never) calls_.set_deadline(*call, after(host_.now_ns(), limits.timeout));
  return *call;
}
template Result<CallId> Sender::ask(const Destination&, Outgoing, const AskLimits&, WhenFull);
template Result<CallId> Sender::ask(const Destination&, Outgoing, const ReceiptLimits&, WhenFull);
template Result<CallId> Sender::ask(const Destination&, Outgoing, const ReadLimits&, WhenFull);

Result<void> Sender::tell(const Destination& to, Outgoing message, const TellLimits& limits,
                          WhenFull when_full) {
  if (host_.forked()) return Failure{Status::forked};
  ArenaRoom room;
  if (message.bytes() > host_.shape().body_capacity()) {
    const auto needed = arena_room_for(message.bytes(), 0);
    if (!needed) return needed.error();
    room = needed.value();
  }
  const int64_t now_ns = limits.expires_after.count() > 0 ? host_.now_ns() : 0;
  int64_t deadline_ns = never;
  HostBridge& bridge = host_.bridges[to.worker];
  std::optional<ArenaBlock> block;
  uint64_t ticket = 0;
  const Status status = attempt_until_room(
      [&] {
        if (room.any() && !block && !(block = take_block(room, message)))
          return full_or_closed(bridge, Status::arena_full);
        return status_of(bridge.try_claim(ticket, [&] { accounts_.collect_before_reuse(to.worker); }));
      },
      limits.timeout, deadline_ns, when_full);
  if (status != Status::ok) {
    if (block) host_.arena.free(block->id, 0);
    return failure_of(status, when_full == WhenFull::wait ? microseconds(limits.timeout) : 0, room);
  }
  accounts_.add(Count::tells_accepted);
  if (block) bridge.keep_tell_block(ticket, block->id, [this](BlockId id) { host_.arena.free(id, 0); });
  const uint32_t deadline_us = expiry_us(bridge, now_ns, limits.expires_after);
  record(host_, to, ticket, message, limits);
  bridge.publish(ticket, message_for_slot({0, message.bytes(), deadline_us, to.key, to.actor_type,
                                           to.message_type, 0, 0, 0},
                                          message, room, block));
  return success();
}

// Returns how many leading messages, at most Scratch::run, share the first one's worker and fit slots; 0: the
// first does not fit.
template <class Fits>
size_t Sender::length_of_run(std::span<const Addressed> messages, Fits&& fits) {
  size_t n = 0;
  while (n < std::min(messages.size(), Scratch::run) && messages[n].to.worker == messages[0].to.worker &&
         fits(messages[n]))
    ++n;
  return n;
}

// Sends runs of messages that fit slots together, and each message between them by itself. `send_one(i)` and
// `send_run(first, count)` return how many they sent.
template <class Fits, class SendOne, class SendRun>
size_t Sender::send_many(std::span<const Addressed> messages, Fits&& fits, SendOne&& send_one,
                         SendRun&& send_run) {
  for (size_t sent = 0; sent < messages.size();) {
    const size_t run = length_of_run(messages.subspan(sent), fits);
    const size_t accepted = run == 0 ? send_one(sent) : send_run(sent, run);
    sent += accepted;
    if (accepted != std::max<size_t>(run, 1)) return sent;
  }
  return messages.size();
}

size_t Sender::ask_many(std::span<const Addressed> messages, const AskLimits& limits, CallId* calls,
                        Failure& failure) {
  const auto fits = [&](const Addressed& message) {
    const uint32_t bytes = message.message.bytes();
    return std::max(bytes, reply_bytes_to_reserve(message.to, limits, bytes)) <=
           host_.shape().body_capacity();
  };
  const auto ask_one = [&](size_t i) -> size_t {
    const auto call = ask(messages[i].to, messages[i].message, limits, WhenFull::wait);
    if (call) {
      calls[i] = call.value();
    } else {
      failure = call.error();
    }
    return call ? 1 : 0;
  };
  return send_many(messages, fits, ask_one, [&](size_t first, size_t count) {
    return ask_run(messages.subspan(first, count), limits, calls + first, failure);
  });
}

size_t Sender::tell_many(std::span<const Addressed> messages, const TellLimits& limits, Failure& failure) {
  const auto fits = [&](const Addressed& message) {
    return message.message.bytes() <= host_.shape().body_capacity();
  };
  const auto tell_one = [&](size_t i) -> size_t {
    const auto told = tell(messages[i].to, messages[i].message, limits, WhenFull::wait);
    if (!told) failure = told.error();
    return told ? 1 : 0;
  };
  return send_many(messages, fits, tell_one, [&](size_t first, size_t count) {
    return tell_run(messages.subspan(first, count), limits, failure);
  });
}

// Sends messages that fit slots to one worker: with one clock read and, where there is room, one prepayment
// and one claim.
size_t Sender::ask_run(std::span<const Addressed> run, const AskLimits& limits, CallId* calls,
                       Failure& failure) {
  if (host_.forked()) {
    failure = Failure{Status::forked};
    return 0;
  }
  const SendTime sent_at = host_.send_time(limits.timeout);
  const uint64_t timeout_us = microseconds(limits.timeout);
  int64_t deadline_ns = sent_at.exact ? sent_at.deadline_ns() : never;
  const uint32_t worker = run.front().to.worker;
  HostBridge& bridge = host_.bridges[worker];
  const uint32_t deadline_us = clock_.worker_deadline_us(bridge, sent_at.now_ns, sent_at.deadline_ns());
  const auto collect = [&] { accounts_.collect_before_reuse(worker); };
  size_t sent = 0;
  while (sent < run.size()) {
    uint32_t acquired = 0, prepaid = 0, claimed = 0;
    uint64_t ticket = 0;
    const Status status = attempt_until_room(
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
    if (prepaid != claimed) bridge.cancel_prepaid(prepaid - claimed);
    for (uint32_t i = claimed; i < acquired; ++i) calls_.release(calls[sent + i]);
    if (status != Status::ok) {
      failure = failure_of(status, timeout_us, ArenaRoom{});
      break;
    }
    accounts_.add(Count::asks_accepted, claimed);
    for (uint32_t i = 0; i < claimed; ++i) {
      calls_.arm(calls[sent + i], run[sent + i].to.worker, deadline_ns, timeout_us);
      record(host_, run[sent + i].to, ticket + i, calls[sent + i], run[sent + i].message, limits);
    }
    bridge.publish_run(ticket, claimed, [&](uint32_t i) {
      const auto& [to, message] = run[sent + i];
      return message_for_slot({calls[sent + i], message.bytes(), deadline_us, to.key, to.actor_type,
                               to.message_type, 0, 0, envelope_flags::ask},
                              message, ArenaRoom{}, std::nullopt);
    });
    sent += claimed;
  }
  if (!sent_at.exact) {
    const int64_t exact_ns = deadline_ns != never ? deadline_ns : after(host_.now_ns(), limits.timeout);
    for (size_t i = 0; i < sent; ++i) calls_.set_deadline(calls[i], exact_ns);
  }
  return sent;
}

size_t Sender::tell_run(std::span<const Addressed> run, const TellLimits& limits, Failure& failure) {
  if (host_.forked()) {
    failure = Failure{Status::forked};
    return 0;
  }
  const uint32_t worker = run.front().to.worker;
  HostBridge& bridge = host_.bridges[worker];
  uint32_t deadline_us = 0;
  if (limits.expires_after.count() > 0) {
    const int64_t now_ns = host_.now_ns();
    deadline_us = clock_.worker_deadline_us(bridge, now_ns, after(now_ns, limits.expires_after));
  }
  int64_t deadline_ns = never;
  const auto collect = [&] { accounts_.collect_before_reuse(worker); };
  size_t sent = 0;
  while (sent < run.size()) {
    uint64_t ticket = 0;
    uint32_t claimed = 0;
    const Status status = attempt_until_room(
        [&] {
          return status_of(bridge.try_claim_run(uint32_t(run.size() - sent), ticket, claimed, collect));
        },
        limits.timeout, deadline_ns, WhenFull::wait);
    if (status != Status::ok) {
      failure = failure_of(status, microseconds(limits.timeout), ArenaRoom{});
      break;
    }
    accounts_.add(Count::tells_accepted, claimed);
    for (uint32_t i = 0; i < claimed && host_.recorder; ++i)
      record(host_, run[sent + i].to, ticket + i, run[sent + i].message, limits);
    bridge.publish_run(ticket, claimed, [&](uint32_t i) {
      const auto& [to, message] = run[sent + i];
      return message_for_slot(
          {0, message.bytes(), deadline_us, to.key, to.actor_type, to.message_type, 0, 0, 0}, message,
          ArenaRoom{}, std::nullopt);
    });
    sent += claimed;
  }
  return sent;
}

Failure Sender::failure_of(Status status, uint64_t waited_us, const ArenaRoom& room) const {
  switch (status) {
    case Status::call_table_full:
      return Failure{status, 0, 0, calls_.calls()};
    case Status::arena_full:
      return Failure{status, 0, uint64_t(room.request_bytes) + room.reply_bytes, host_.arena.bytes()};
    default:
      return Failure{status, 0, waited_us, host_.shape().slots};
  }
}

}  // namespace gyre::detail
