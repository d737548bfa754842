#include <gyre/runtime/core/backoff.hpp>
#include <gyre/runtime/core/receive.hpp>
#include <gyre/runtime/core/watcher.hpp>
#include <gyre/runtime/system/waited_sleep.hpp>

#include <algorithm>

namespace gyre::detail {

namespace {

constexpr int64_t due_work_interval_ns = 2'000'000;
constexpr int64_t overdue_interval_ns = 16'000'000;  // a search reads the whole call table

}  // namespace

bool Receiver::wait_slow_path(CallId call, int64_t until_ns) {
  if (host_.stepper != nullptr) return wait_by_steps(call, until_ns);
  HostBridge& bridge = host_.bridges[calls_.worker(call)];
  Backoff backoff(host_.options.wait);
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

// Of an engine whose workers move only while a thread waits for them.
bool Receiver::wait_by_steps(CallId call, int64_t until_ns) {
  Backoff backoff(host_.options.wait);
  while (!poll(call)) {
    if (host_.now_ns() >= until_ns) return false;
    host_.pause(backoff, std::min(calls_.deadline_ns(call), until_ns));
  }
  return true;
}

// Sleeps until the call is done or its reply lies in the ring, at `until_ns` the latest; may return early.
void Receiver::sleep_for_reply(CallId call, const HostBridge& bridge, int64_t now_ns, int64_t until_ns) {
  Doorbell* const bell = bridge.bell();
  if (calls_.prepare_sleep(call)) {
    if (bell == nullptr) {
      calls_.sleep(call, until_ns);  // another thread that completes the call ends it
    } else {
      bell->add_sleeper();
      // Pairs with asymmetric_fence_light() between a worker's reply and its load of the bell's sleepers.
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

bool Receiver::poll(CallId call) {
  if (calls_.done(call)) return true;
  drain_replies(host_.bridges[calls_.worker(call)]);
  const int64_t now = host_.now_ns();
  do_due_work(now);
  if (now >= calls_.deadline_ns(call)) expire(call);
  return calls_.done(call);
}

bool Receiver::cancel(CallId call) {
  if (host_.forked() || !calls_.begin_outcome(call)) return false;
  return accounts_.conclude(Count::asks_cancelled,
                            [&] { return host_.complete_failed(call, Failure{Status::cancelled}); });
}

uint32_t Receiver::drain_replies() {
  uint32_t count = 0;
  for (HostBridge& bridge : host_.bridges) count += drain_replies(bridge);
  return count;
}

uint32_t Receiver::drain_replies(HostBridge& bridge, CallId own) {
  return bridge.drain([&](const ArrivedReply* reply) { take_reply(bridge, reply, own); });
}

void Receiver::take_reply(HostBridge& bridge, const ArrivedReply* reply, CallId own) {
  if (reply == nullptr) {
    engine_failure_.fail(
        "reading a reply: a slot of the D2H ring held no message; something wrote over the region");
    return;
  }
  constexpr uint8_t not_plain = envelope_flags::control | envelope_flags::error |
                                envelope_flags::out_of_line | envelope_flags::reply_in_block |
                                envelope_flags::to_host;
  if ((reply->flags() & not_plain) != 0) [[unlikely]]
    return take_special_reply(bridge, *reply);
  const CallId call = reply->correlation();
  bridge.count_reply_taken();
  if (own != no_call && call == own) {
    reply->unpack(calls_.place(call));
    const bool answered = calls_.complete_own(call, reply->body_bytes());
    accounts_.add(answered ? Count::asks_answered : Count::asks_late);
    // This thread alone can give the call back.
    if (host_.recorder && answered) [[unlikely]]
      host_.recorder->answer(call, calls_.place(call) + sizeof(Envelope), reply->body_bytes());
  } else if (calls_.begin_outcome(call)) {
    reply->unpack(calls_.place(call));
    accounts_.conclude_answered([&] { return host_.complete_answered(call, reply->body_bytes()); });
  } else {
    accounts_.add(Count::asks_late);
  }
}

// Takes control replies, messages of actors to the host, errors, and answers in a block.
void Receiver::take_special_reply(HostBridge& bridge, const ArrivedReply& reply) {
  if ((reply.flags() & envelope_flags::to_host) != 0) return take_told(bridge, reply);
  const Envelope envelope = reply.envelope();
  const CallId call = envelope.correlation;
  if ((envelope.flags & envelope_flags::control) != 0) {
    drain_acknowledgements_.fetch_add(1, std::memory_order_release);  // pairs with drain_acknowledgements()
    return;
  }
  bridge.count_reply_taken();
  const bool wanted = calls_.begin_outcome(call);
  if (!wanted) accounts_.add(Count::asks_late);
  // The worker is done with the block, whatever it answered. Pairs with the worker's fence before its reply:
  // what it wrote there comes before what is done there next.
  if ((envelope.flags & envelope_flags::out_of_line) != 0) Memory::fence();
  if ((envelope.flags & envelope_flags::reply_in_block) != 0) {
    take_reply_in_block(envelope, reply.body_as<OutOfLineReply>(), wanted);
    return;
  }
  if ((envelope.flags & envelope_flags::out_of_line) != 0) host_.arena.free(envelope.key);
  ErrorBody error{};
  if ((envelope.flags & envelope_flags::error) != 0) error = reply.body_as<ErrorBody>();
  if (error.status == Status::expired) return take_expired(envelope, error, wanted);
  if (!wanted) return;
  if (error.status == Status::ok) {
    reply.unpack(calls_.place(call));
    accounts_.conclude_answered([&] { return host_.complete_answered(call, reply.body_bytes()); });
  } else if (!accounts_.conclude(Count::asks_error_replies, [&] {
               return host_.complete_failed(call, host_.actors.failure_of(envelope, error));
             })) {
    accounts_.add(Count::asks_late);
  }
}

// Leaves a message of an actor to the host to the poller.
void Receiver::take_told(HostBridge& bridge, const ArrivedReply& message) {
  if (bridge.told().add(message)) {
    calls_.completed().wake();
    return;
  }
  engine_failure_.fail(
      "reading a message of an actor to the host: there are more of them than the worker had room for; "
      "something wrote over the region");
}

// The ask has timed out, here or at the worker, and was not handled: that much is known of it. A receipt's
// sender may still be waiting: it learns that the message expired.
void Receiver::take_expired(const Envelope& envelope, const ErrorBody& error, bool wanted) {
  if (wanted) {
    const CallId call = envelope.correlation;
    accounts_.conclude(Count::asks_timed_out, [&] {
      return calls_.is_receipt(call) ? host_.complete_failed(call, Failure{Status::expired, error.detail})
                                     : complete_timed_out(call);
    });
  }
  // Restores the request's envelope: the worker sent back a part of it.
  Envelope sent = envelope;
  sent.key = error.where;
  sent.flags = envelope_flags::ask;
  sent.body_bytes = 0;
  accounts_.dead_letters().add(sent, error, {});
}

void Receiver::take_reply_in_block(const Envelope& envelope, const OutOfLineReply& reply, bool wanted) {
  const auto block = host_.arena.find(envelope.key);
  if (!block || reply.body_bytes > block->reply_capacity) {
    if (wanted) {
      accounts_.conclude(Count::asks_dead, [&] {
        return host_.complete_failed(envelope.correlation, Failure{Status::engine_failed});
      });
    }
    engine_failure_.fail(
        "reading a reply: it names a block of the arena that its request did not bring; something wrote over "
        "the region");
    return;
  }
  if (wanted) {
    accounts_.conclude_answered(
        [&] { return host_.complete_in_block(envelope.correlation, *block, reply.body_bytes); });
  } else {
    host_.arena.free(block->id, reply.body_bytes);
  }
}

bool Receiver::complete_timed_out(CallId call) {
  const uint64_t timeout_us = calls_.timeout_us(call);
  return host_.complete_failed(call, Failure{Status::timed_out, 0, timeout_us, timeout_us});
}

void Receiver::expire(CallId call) {
  if (calls_.begin_outcome(call)) {
    accounts_.conclude(Count::asks_timed_out, [&] { return complete_timed_out(call); });
  } else {
    // Another thread may be at its outcome, and suspended there.
    calls_.overrule(call, [&] {
      if (host_.recorder) host_.recorder->outcome(call, Status::timed_out, 0);
      accounts_.add(Count::asks_timed_out);
    });
  }
}

void Receiver::do_work_of_threads() {
  drain_replies();
  const int64_t now_ns = host_.now_ns();
  calls_.for_each_in_flight([&](CallId call) {
    if (now_ns >= calls_.deadline_ns(call)) expire(call);
  });
  engine_failure_.check();
  host_.handler_log.take();
}

void Receiver::do_due_work(int64_t now_ns) {
  // Relaxed, as below: the times only choose one thread; what it does is thread-safe by itself.
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
  clock_.publish_time(now_ns);
  clock_.sample(now_ns);
  engine_failure_.check();
  // Not logged here: the program's logger may block.
  if (host_.stepper == nullptr && !watcher_.started() && host_.handler_log.has_lines())
    watcher_.start_for_lines();
}

void Receiver::end_calls_in_flight() {
  const Status reason = state_.refusal();
  calls_.for_each_in_flight([&](CallId call) {
    if (!calls_.begin_outcome(call)) return;
    accounts_.conclude_inferred([&] {
      return host_.complete_failed(call, reason == Status::engine_failed
                                             ? engine_failure_.of_worker(calls_.worker(call))
                                             : Failure{reason});
    });
  });
}

}  // namespace gyre::detail
