#include <fmt/format.h>
#include <gyre/runtime/core/backoff.hpp>
#include <gyre/runtime/core/terminate.hpp>
#include <gyre/runtime/log.hpp>

#include <cstring>
#include <thread>

namespace gyre::detail {

namespace {

bool passed(int64_t deadline_ns) { return host_now_ns() >= deadline_ns; }

// Counts what nobody reported as dead letters that nobody can read: it is not known to be done.
void infer_outcomes(Books& books) {
  const uint64_t asks = books.asks.in_flight(), tells = books.tells.in_flight();
  books.asks.dead_letters += asks;
  books.asks.inferred += asks;
  books.tells.dead_letters += tells;
  books.tells.inferred += tells;
  books.dead_letters_dropped += tells;
}

}  // namespace

Terminator::Terminator(HostSide& host, State& state, Accounts& accounts, Receiver& receiver,
                       EngineFailure& engine_failure, Buffers& buffers)
    : host_(host),
      state_(state),
      accounts_(accounts),
      receiver_(receiver),
      engine_failure_(engine_failure),
      buffers_(buffers),
      read_back_(host.shape().packets()) {}

Termination Terminator::end_workers(std::chrono::nanoseconds timeout, int64_t deadline_ns) {
  if (!state_.begin_terminating()) return wait_for_report(deadline_ns);
  const int64_t begin_ns = host_now_ns();
  Termination report;
  report.uptime_s = state_.uptime_s();
  stop_workers(report, deadline_ns);
  settle(report, deadline_ns);
  bool killed = false;
  if (report.worker_stuck) {
    killed = host_.engine->end_by_force("a worker did not stop");
    if (!killed) host_.engine->leak();
    buffers_.workers_stuck();
  } else {
    report.buffers_stuck = !buffers_.workers_ended(deadline_ns);
  }
  log_report(report, timeout, killed);
  report.terminate_ms = double(host_now_ns() - begin_ns) * 1e-6;
  report_ = report;
  reported_.store(true, std::memory_order_release);  // pairs with the loads of reported_
  state_.change(Lifecycle::terminated);
  return report;
}

Books Terminator::books() const {
  // Pairs with the store after report_ was written.
  return reported_.load(std::memory_order_acquire) ? report_.books : accounts_.books();
}

Termination Terminator::wait_for_report(int64_t deadline_ns) const {
  const int64_t begin_ns = host_now_ns();
  Backoff backoff(host_.options.wait);
  while (!reported_.load(std::memory_order_acquire)) {  // as in books()
    if (const int64_t now_ns = host_now_ns(); now_ns >= deadline_ns) {
      Termination report;
      report.books = accounts_.books();
      report.uptime_s = state_.uptime_s();
      report.terminate_ms = double(now_ns - begin_ns) * 1e-6;
      report.unfinished = true;
      return report;
    }
    backoff.pause();
  }
  return report_;
}

void Terminator::stop_workers(Termination& report, int64_t deadline_ns) {
  for (HostBridge& bridge : host_.bridges) {
    bridge.close();
    bridge.commands().command(Command::stop);
  }
  Backoff backoff(host_.options.wait);
  while (!host_.engine->finished()) {
    if (receiver_.drain_replies() != 0) backoff.reset();
    engine_failure_.ask_engine();
    if (passed(deadline_ns)) {
      report.worker_stuck = true;
      break;
    }
    backoff.pause();
  }
  engine_failure_.ask_engine();
}

// Gives every message its outcome. Waits for threads that have one in hand before it calls anything dead.
void Terminator::settle(Termination& report, int64_t deadline_ns) {
  const auto late = [deadline_ns] { return passed(deadline_ns); };
  for (HostBridge& bridge : host_.bridges) {
    const auto take = [&](const ArrivedReply* reply) { receiver_.take_reply(bridge, reply); };
    if (!bridge.drain_after_others(take, late)) report.reader_stuck = true;
  }
  const bool failed = state_.get() == Lifecycle::failed;
  if (!failed && !report.worker_stuck) {
    for (uint32_t worker = 0; worker < host_.layout.workers; ++worker) {
      if (!dead_letter_unprocessed(worker, deadline_ns)) report.sender_stuck = true;
      host_.bridges[worker].take_tell_blocks([this](BlockId id) { host_.arena.free(id, 0); });
    }
  }
  receiver_.end_calls_in_flight();
  if (!host_.calls.wait_for_begun_outcomes(late)) report.reader_stuck = true;
  accounts_.collect_failed_tells_until(deadline_ns);
  report.books = accounts_.books();
  report.books.mail.lost = report.books.mail.under_way();
  report.books.timers.lost = report.books.timers.pending();
  if (failed || report.worker_stuck || report.sender_stuck || report.reader_stuck)
    infer_outcomes(report.books);
}

// Makes dead letters of the requests that a stopped worker never took. Each was claimed, so each is published
// or will be; false where the deadline passed before one was.
bool Terminator::dead_letter_unprocessed(uint32_t worker, int64_t deadline_ns) {
  const HostBridge& bridge = host_.bridges[worker];
  uint32_t* const payload = read_back_.front().data;
  const uint64_t claimed = bridge.claimed();
  bool all = true;
  for (uint64_t ticket = bridge.consumed(); ticket < claimed; ++ticket) {
    ReceiveOutcome outcome;
    while ((outcome = bridge.read_back(ticket, payload)) == ReceiveOutcome::nothing && !passed(deadline_ns)) {
      std::this_thread::yield();  // its producer is between claim and publish
    }
    if (outcome == ReceiveOutcome::nothing) {
      all = false;
      continue;
    }
    if (outcome == ReceiveOutcome::corrupt) {
      accounts_.add(Count::corrupt_unprocessed);
      continue;
    }
    const Envelope envelope = envelope_of(payload);
    if ((envelope.flags & envelope_flags::control) != 0) continue;
    if ((envelope.flags & envelope_flags::out_of_line) != 0) {
      OutOfLine head;
      std::memcpy(&head, payload + sizeof(Envelope) / sizeof(uint32_t), sizeof head);
      host_.arena.free(head.block, 0);  // the worker never wrote there
    }
    if ((envelope.flags & envelope_flags::ask) == 0) {
      accounts_.add(Count::tells_unprocessed);
      accounts_.add_unprocessed(worker, envelope, payload, Status::terminated);
    } else if (const CallId call = envelope.correlation; host_.calls.begin_outcome(call)) {
      accounts_.add_unprocessed(worker, envelope, payload, Status::terminated);
      accounts_.conclude(Count::asks_dead,
                         [&] { return host_.complete_failed(call, Failure{Status::terminated}); });
    }
  }
  return all;
}

void Terminator::log_report(const Termination& report, std::chrono::nanoseconds timeout, bool killed) const {
  const uint64_t timeout_ms = microseconds(timeout) / 1000;
  if (report.worker_stuck) {
    log(LogLevel::error, [&] {
      if (killed)
        return fmt::format("terminating: a worker did not stop within {} ms; its engine process was killed",
                           timeout_ms);
      return fmt::format(
          "terminating: a worker did not stop within {} ms; {} bytes of the region stay "
          "allocated, for it may still use them",
          timeout_ms, host_.layout.region_bytes());
    });
  }
  if (report.sender_stuck || report.reader_stuck) {
    log(LogLevel::error, [&] {
      return fmt::format(
          "terminating: a thread did not finish {} within {} ms; {} messages have no outcome that is known, "
          "and count as dead letters; was it suspended, or ended in the middle?",
          report.sender_stuck ? "sending" : "taking replies", timeout_ms, report.books.inferred());
    });
  }
  if (report.buffers_stuck) {
    log(LogLevel::error, [&] {
      uint64_t bytes = 0;
      for (const Ledger::Count& count : buffers_.ledger().retired) bytes += count.bytes;
      return fmt::format(
          "terminating: a thread did not finish allocating or freeing a buffer within {} ms; {} bytes of "
          "freed "
          "buffers stay allocated until the last holder of the runtime is gone; was it suspended, or ended "
          "in "
          "the middle?",
          timeout_ms, bytes);
    });
  }
  if (const uint64_t dropped = report.books.dead_letters_dropped; dropped != 0) {
    log(LogLevel::info, [&] {
      return fmt::format(
          "terminating: {} dead letters are counted and not kept; take_dead_letters() more "
          "often, at most {} are kept",
          dropped, DeadLetters::kept);
    });
  }
}

}  // namespace gyre::detail
