// The message path of Core: what sends, and what takes replies. The rest of Core is in core.cpp.
#include <gyre/runtime/core.hpp>

#include <algorithm>
#include <cstring>

namespace gyre::detail {

namespace {

constexpr int64_t look_interval_ns = 1'000'000;
constexpr uint32_t looks_while_busy =
    16;  // turns with replies for others between looks at one's own deadline

}  // namespace

// Repeats `attempt` until it says something else than full, or the deadline passes. While it waits it drains
// replies: a thread that only sends still lets the workers answer.
template <class Attempt>
Status Core::attempt_until(Attempt&& attempt, int64_t deadline_ns, WhenFull when_full) {
  Backoff backoff(options_.wait);
  uint32_t busy_turns = 0;
  for (;;) {
    const Status status = attempt();
    if (status != Status::ring_full && status != Status::call_table_full && status != Status::arena_full) {
      return status;
    }
    const uint32_t drained = drain_replies();
    if (when_full == WhenFull::refuse) return drained != 0 ? attempt() : status;
    if (drained != 0) {
      backoff.reset();
      if (++busy_turns % looks_while_busy == 0 && host_now_ns() >= deadline_ns) return status;
      continue;
    }
    if (backoff.worth_a_look()) {
      const int64_t now = host_now_ns();
      look_after(now);
      if (now >= deadline_ns) return status;
    }
    backoff.pause();
  }
}

uint64_t Core::max_body_bytes() const {
  if (shape().body_capacity() < sizeof(OutOfLine)) return shape().body_capacity();
  constexpr uint64_t segment =
      ((uint64_t(1) << 29) - 1) * sizeof(capnp::word);  // what Cap'n Proto can address
  return std::clamp<uint64_t>(arena_.bytes(), shape().body_capacity(), segment);
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
    std::memcpy(arena_.at(block->request_offset), message.body, room.request_bytes);
  }
  return block;
}

// The heads go right in front of the body, into the room that the sender has there.
void Core::publish(HostBridge& bridge, uint64_t ticket, Envelope envelope, Outgoing message, const Room& room,
                   const std::optional<ArenaBlock>& block) {
  auto* payload = reinterpret_cast<uint32_t*>(message.body);
  if (block) {
    const OutOfLine head{block->id, block->request_offset, block->reply_offset, room.request_bytes,
                         room.reply_bytes};
    payload -= sizeof head / sizeof *payload;
    std::memcpy(payload, &head, sizeof head);
    envelope.flags |= envelope_flags::out_of_line;
    envelope.body_bytes = uint32_t(sizeof head) + (room.request_bytes != 0 ? 0 : message.bytes);
    Memory::fence();
  }
  payload -= sizeof envelope / sizeof *payload;
  std::memcpy(payload, &envelope, sizeof envelope);
  bridge.publish(ticket, payload, envelope.body_bytes);
}

Result<CallId> Core::ask(const Destination& to, Outgoing message, const AskLimits& limits,
                         WhenFull when_full) {
  if (forked()) return Failure{Status::forked};
  const int64_t now_ns = host_now_ns();
  const int64_t deadline_ns = after(now_ns, limits.timeout);
  const uint64_t timeout_us = microseconds(limits.timeout);
  const auto room = room_for(message.bytes, limits.max_reply_bytes != 0     ? limits.max_reply_bytes
                                            : options_.max_reply_bytes != 0 ? options_.max_reply_bytes
                                                                            : message.bytes);
  if (!room) return room.error();
  HostBridge& bridge = bridges_[to.worker];
  std::optional<CallId> call;
  std::optional<ArenaBlock> block;
  bool prepaid = false;
  uint64_t ticket = 0;
  const Status status = attempt_until(
      [&] {
        if (bridge.closed()) return refusal_.load(std::memory_order_acquire);
        if (room.value().any() && !block && !(block = take_block(room.value(), message)))
          return Status::arena_full;
        if (!call && !(call = calls_.acquire())) return Status::call_table_full;
        if (!prepaid && !(prepaid = bridge.try_prepay_reply())) return Status::ring_full;
        switch (bridge.try_claim(ticket)) {
          case ClaimOutcome::claimed:
            return Status::ok;
          case ClaimOutcome::full:
            return Status::ring_full;
          case ClaimOutcome::closed:
            break;
        }
        return refusal_.load(std::memory_order_acquire);
      },
      deadline_ns, when_full);
  if (status != Status::ok) {
    if (prepaid) bridge.return_reply();
    if (call) calls_.release(*call);
    if (block) arena_.free(block->id, 0);
    return refused(status, when_full == WhenFull::wait ? timeout_us : 0, room.value());
  }
  asks_accepted_.add();
  calls_.arm(*call, to.worker, deadline_ns, timeout_us);
  publish(bridge, ticket,
          {*call, message.bytes, clock_.deadline_us(now_ns, deadline_ns), to.key, to.actor_type,
           to.message_type, 0, 0, envelope_flags::ask},
          message, room.value(), block);
  return *call;
}

Result<void> Core::ask_lifecycle(const Destination& to, std::chrono::nanoseconds timeout) {
  alignas(8) std::byte place[Outgoing::heads_bytes + sizeof(uint64_t)] = {};
  const Outgoing nothing{reinterpret_cast<capnp::word*>(place + Outgoing::heads_bytes), 0};
  const auto call = ask(to, nothing, AskLimits{timeout, 0}, WhenFull::wait);
  if (!call) return call.error();
  wait(call.value());
  const Failure failure = calls_.failure(call.value());
  calls_.release(call.value());
  if (failure.status != Status::ok) return failure;
  return success();
}

Result<void> Core::tell(const Destination& to, Outgoing message, const TellLimits& limits,
                        WhenFull when_full) {
  if (forked()) return Failure{Status::forked};
  const int64_t now_ns = host_now_ns();
  const auto room = room_for(message.bytes, 0);
  if (!room) return room.error();
  HostBridge& bridge = bridges_[to.worker];
  std::optional<ArenaBlock> block;
  uint64_t ticket = 0;
  const Status status = attempt_until(
      [&] {
        if (bridge.closed()) return refusal_.load(std::memory_order_acquire);
        if (room.value().any() && !block && !(block = take_block(room.value(), message)))
          return Status::arena_full;
        switch (bridge.try_claim(ticket)) {
          case ClaimOutcome::claimed:
            return Status::ok;
          case ClaimOutcome::full:
            return Status::ring_full;
          case ClaimOutcome::closed:
            break;
        }
        return refusal_.load(std::memory_order_acquire);
      },
      after(now_ns, limits.timeout), when_full);
  if (status != Status::ok) {
    if (block) arena_.free(block->id, 0);
    return refused(status, when_full == WhenFull::wait ? microseconds(limits.timeout) : 0, room.value());
  }
  tells_accepted_.add();
  if (block) bridge.keep_tell_block(ticket, block->id, [this](BlockId id) { arena_.free(id, 0); });
  const uint32_t deadline_us =
      limits.expires_after.count() <= 0 ? 0 : clock_.deadline_us(now_ns, after(now_ns, limits.expires_after));
  publish(bridge, ticket, {0, message.bytes, deadline_us, to.key, to.actor_type, to.message_type, 0, 0, 0},
          message, room.value(), block);
  return success();
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

void Core::wait(CallId call) {
  HostBridge& bridge = bridges_[calls_.worker(call)];
  Backoff backoff(options_.wait);
  uint32_t busy_turns = 0;
  while (!calls_.done(call)) {
    if (drain_replies(bridge) != 0) {
      backoff.reset();
      if (++busy_turns % looks_while_busy == 0 && host_now_ns() >= calls_.deadline_ns(call)) expire(call);
      continue;
    }
    if (backoff.worth_a_look()) {
      const int64_t now = host_now_ns();
      look_after(now);
      if (now >= calls_.deadline_ns(call)) expire(call);
    }
    backoff.pause();
  }
}

bool Core::poll(CallId call) {
  if (calls_.done(call)) return true;
  drain_replies(bridges_[calls_.worker(call)]);
  const int64_t now = host_now_ns();
  look_after(now);
  if (now >= calls_.deadline_ns(call)) expire(call);
  return calls_.done(call);
}

uint32_t Core::drain_replies() {
  uint32_t count = 0;
  for (HostBridge& bridge : bridges_) count += drain_replies(bridge);
  return count;
}

uint32_t Core::drain_replies(HostBridge& bridge) {
  return bridge.drain([&](const uint32_t* payload) { take_reply(bridge, payload); });
}

void Core::take_reply(HostBridge& bridge, const uint32_t* payload) {
  if (payload == nullptr) {
    fail("reading a reply: a slot of the D2H ring held no message; something wrote over the region");
    return;
  }
  const Envelope envelope = envelope_of(payload);
  if ((envelope.flags & envelope_flags::control) != 0) {
    drain_acknowledgements_.fetch_add(1, std::memory_order_release);
    return;
  }
  bridge.return_reply();
  const bool wanted = calls_.begin_outcome(envelope.correlation);
  if (!wanted) asks_late_.add();
  const uint32_t* const body = payload + sizeof(Envelope) / sizeof(uint32_t);
  // The worker is done with the block, whatever it answered: what it wrote there comes before what is done
  // there next.
  if ((envelope.flags & envelope_flags::out_of_line) != 0) Memory::fence();
  if ((envelope.flags & envelope_flags::reply_in_block) != 0) {
    take_reply_in_block(envelope, body, wanted);
    return;
  }
  if ((envelope.flags & envelope_flags::out_of_line) != 0) arena_.free(envelope.key);
  ErrorBody error{};
  if ((envelope.flags & envelope_flags::error) != 0) std::memcpy(&error, body, sizeof error);
  if (error.status == Status::expired) return take_expired(envelope, error, wanted);
  if (!wanted) return;
  if (error.status == Status::ok) {
    asks_answered_.add();
    calls_.complete_answered(envelope.correlation, body, envelope.body_bytes);
  } else {
    asks_error_replies_.add();
    calls_.complete_failed(envelope.correlation, actors_.failure_of(envelope, error));
  }
}

// The ask has timed out, here or at the worker, and was not handled: that much is known of it.
void Core::take_expired(const Envelope& envelope, const ErrorBody& error, bool wanted) {
  if (wanted) {
    const uint64_t timeout_us = calls_.timeout_us(envelope.correlation);
    asks_timed_out_.add();
    calls_.complete_failed(envelope.correlation, Failure{Status::timed_out, 0, timeout_us, timeout_us});
  }
  // The reply's envelope says of the request what the worker could send back.
  Envelope sent = envelope;
  sent.key = error.where;
  sent.flags = envelope_flags::ask;
  sent.body_bytes = 0;
  dead_letters_.add(sent, error, {});
}

void Core::take_reply_in_block(const Envelope& envelope, const uint32_t* body, bool wanted) {
  OutOfLineReply reply{};
  std::memcpy(&reply, body, sizeof reply);
  const auto block = arena_.find(envelope.key);
  if (!block || reply.body_bytes > block->reply_capacity) {
    if (wanted) {
      asks_dead_.add();
      calls_.complete_failed(envelope.correlation, Failure{Status::engine_failed});
    }
    fail(
        "reading a reply: it names a block of the arena that its request did not bring; something wrote over "
        "the "
        "region");
    return;
  }
  if (wanted) {
    asks_answered_.add();
    calls_.complete_in_block(envelope.correlation, *block, reply.body_bytes);
  } else {
    arena_.free(block->id, reply.body_bytes);
  }
}

void Core::expire(CallId call) {
  const uint64_t timeout_us = calls_.timeout_us(call);
  if (!calls_.begin_outcome(call)) return;
  asks_timed_out_.add();
  calls_.complete_failed(call, Failure{Status::timed_out, 0, timeout_us, timeout_us});
}

// What somebody must do now and then: whoever waits, the first to come each millisecond.
void Core::look_after(int64_t now_ns) {
  int64_t next = next_look_ns_.load(std::memory_order_relaxed);
  if (now_ns < next ||
      !next_look_ns_.compare_exchange_strong(next, now_ns + look_interval_ns, std::memory_order_relaxed)) {
    return;
  }
  drain_replies();
  calls_.for_each_overdue(now_ns, [this](CallId call) { expire(call); });
  sample_clock(now_ns);
  check_engine();
}

}  // namespace gyre::detail
