#include <fmt/format.h>
#include <gyre/runtime/core/backoff.hpp>
#include <gyre/runtime/core/lifecycle.hpp>
#include <gyre/runtime/core/told.hpp>

#include <algorithm>
#include <cstring>
#include <thread>

namespace gyre {

std::string_view name(Lifecycle state) {
  switch (state) {
    case Lifecycle::launched:
      return "launched";
    case Lifecycle::active:
      return "active";
    case Lifecycle::inactive:
      return "inactive";
    case Lifecycle::draining:
      return "draining";
    case Lifecycle::terminated:
      return "terminated";
    case Lifecycle::failed:
      return "failed";
  }
  return "?";
}

namespace detail {

namespace {

Failure late(std::chrono::nanoseconds timeout) {
  return Failure{Status::worker_stuck, 0, 0, microseconds(timeout) / 1000};
}

}  // namespace

WorkerControl::WorkerControl(HostSide& host, State& state, Accounts& accounts, Clock& clock,
                             Receiver& receiver)
    : host_(host),
      state_(state),
      accounts_(accounts),
      clock_(clock),
      receiver_(receiver),
      drain_sent_(host.layout.workers, false) {}

void WorkerControl::launch() {
  host_.engine->launch();
  try {
    wait_until_started();
    clock_.calibrate();
  } catch (...) {
    abandon();
    throw;
  }
  state_.launched();
}

// Each worker says that it runs, and that its handlers are of the types that the host takes them for.
void WorkerControl::wait_until_started() {
  const int64_t deadline_ns = after(host_now_ns(), host_.options.timeout);
  Backoff backoff(host_.options.wait);
  for (uint32_t worker = 0; worker < host_.layout.workers; ++worker) {
    uint64_t started = 0;
    // Pairs with the worker's store, before which it stored where its slots lie.
    while ((started = Memory::load_acquire(host_.bridges[worker].bridge().worker_line->started)) == 0) {
      if (backoff.should_read_clock()) {
        if (const auto cause = host_.engine->failure()) throw Error("launching the workers: " + *cause);
        if (host_now_ns() >= deadline_ns) {
          throw Error(fmt::format(
              "launching the workers: worker {} of {} did not start within {} ms; is something else "
              "running on the device?",
              worker, host_.layout.workers, host_.options.timeout.count()));
        }
      }
      backoff.pause();
    }
    if (started >= 2) {
      const std::vector<Handler>& handlers = host_.actors.handlers();
      const Handler& handler = handlers[std::min<size_t>(started - 2, handlers.size() - 1)];
      throw Error(
          fmt::format("launching the workers: handler {} of actor {} is for request type {:#018x} and "
                      "response type {:#018x} in "
                      "this program, and for others in the workers; the actors' source that they were "
                      "compiled from is not the one "
                      "that this program was built with: build it again",
                      handler.message_type, handler.actor_type, handler.request, handler.response));
    }
    host_.bridges[worker].take_slot_pages();
  }
}

void WorkerControl::abandon() noexcept {
  for (HostBridge& bridge : host_.bridges) bridge.commands().command(Command::stop);
  const int64_t deadline_ns = after(host_now_ns(), host_.options.timeout);
  while (!host_.engine->finished()) {
    if (host_now_ns() >= deadline_ns) return host_.engine->leak();
    std::this_thread::yield();
  }
}

// Takes replies and does due work until `done()`, the deadline, or the end of the workers.
template <class Done>
Result<void> WorkerControl::wait_until(Done&& done, int64_t deadline_ns, std::chrono::nanoseconds timeout,
                                       Terminating terminating) {
  Backoff backoff(host_.options.wait);
  while (!done()) {
    if (receiver_.drain_replies() != 0) backoff.reset();
    if (host_.should_read_clock(backoff)) {
      const int64_t now_ns = host_.now_ns();
      receiver_.do_due_work(now_ns);
      if (state_.get() == Lifecycle::failed) return Failure{Status::engine_failed};
      if (terminating == Terminating::ends_the_wait && state_.terminating())
        return Failure{Status::terminated};
      if (now_ns >= deadline_ns) return late(timeout);
    }
    host_.pause(backoff, deadline_ns);
  }
  return success();
}

Result<void> WorkerControl::set_active(bool active, std::chrono::nanoseconds timeout) {
  const int64_t deadline_ns = after(host_.now_ns(), timeout);
  std::vector<CommandWord> words;
  words.reserve(host_.layout.workers);
  {
    // Two calls that overlap must not leave workers with different commands.
    std::unique_lock lock(active_mutex_, std::defer_lock);
    if (!lock.try_lock_until(steady_time(deadline_ns))) return late(timeout);
    if (state_.terminating()) return Failure{Status::terminated};
    Lifecycle before = active ? Lifecycle::inactive : Lifecycle::active;
    if (!state_.change(before, active ? Lifecycle::active : Lifecycle::inactive)) {
      if (before == Lifecycle::failed) return Failure{Status::engine_failed};
      return Failure{before == Lifecycle::draining ? Status::draining : Status::terminated};
    }
    for (HostBridge& bridge : host_.bridges)
      words.push_back(bridge.commands().command(active ? Command::run : Command::inactive));
  }
  return wait_until_obeyed(words, deadline_ns, timeout);
}

Result<void> WorkerControl::wait_until_obeyed(const std::vector<CommandWord>& words, int64_t deadline_ns,
                                              std::chrono::nanoseconds timeout) {
  uint32_t obeying = 0;
  const auto all_obey = [&] {
    while (obeying < host_.layout.workers && host_.bridges[obeying].commands().obeys(words[obeying]))
      ++obeying;
    return obeying == host_.layout.workers;
  };
  return wait_until(all_obey, deadline_ns, timeout, Terminating::ends_the_wait);
}

Result<void> WorkerControl::drain(const ToldMessages* told, std::chrono::nanoseconds timeout) {
  const int64_t deadline_ns = after(host_.now_ns(), timeout);
  if (state_.terminating()) return Failure{Status::terminated};
  if (!state_.change(Lifecycle::draining)) return Failure{state_.refusal()};
  for (HostBridge& bridge : host_.bridges) bridge.close();
  const auto all_drained = [&] {
    if (receiver_.drain_acknowledgements() == host_.layout.workers) return true;
    send_drain_messages();
    return false;
  };
  const auto drained = wait_until(all_drained, deadline_ns, timeout, Terminating::ends_the_wait);
  if (!drained || host_.actors.most_sent() == 0) return drained;
  const auto mail_drained = drain_mail(deadline_ns, timeout);
  if (!mail_drained || told == nullptr || !host_.actors.rights().tells_host) return mail_drained;
  // No handler runs any more, and the workers' counts are there: see drain_mail().
  const auto all_handled = [&] { return told->accounts().under_way() == 0; };
  return wait_until(all_handled, deadline_ns, timeout, Terminating::ends_the_wait);
}

// Waits until no message between actors is under way. Counts that are read one after the other say so where
// as many messages were sent at the end of a wave as had ended at the end of the one before (Mattern,
// "Algorithms for distributed termination detection", Distributed Computing 2, 1987: the four counter
// method). By then the host sends nothing.
Result<void> WorkerControl::drain_mail(int64_t deadline_ns, std::chrono::nanoseconds timeout) {
  std::vector<CommandWord> words(host_.layout.workers);
  for (uint64_t ended = ~uint64_t(0);;) {
    for (uint32_t worker = 0; worker < host_.layout.workers; ++worker) {
      words[worker] = host_.bridges[worker].commands().command_again();
    }
    // A worker publishes its counts before it acknowledges a command.
    if (const auto obeyed = wait_until_obeyed(words, deadline_ns, timeout); !obeyed) return obeyed;
    const MailAccounts mail = accounts_.mail();
    if (mail.sent == ended) return success();
    ended = mail.processed + mail.failed + mail.refused;
    if (host_.now_ns() >= deadline_ns) return late(timeout);
  }
}

// Sends one to each worker, as soon as its ring has room.
void WorkerControl::send_drain_messages() {
  const std::unique_lock lock(drain_mutex_, std::try_to_lock);
  if (!lock) return;
  for (uint32_t worker = 0; worker < host_.layout.workers; ++worker) {
    HostBridge& bridge = host_.bridges[worker];
    uint64_t ticket = 0;
    if (drain_sent_[worker] ||
        !bridge.try_claim_closed(ticket, [&] { accounts_.collect_before_reuse(worker); })) {
      continue;
    }
    const Envelope envelope{0, 0, 0, 0, 0, uint16_t(Control::drain), 0, 0, envelope_flags::control};
    uint32_t payload[packets_for(0) * words_a_packet] = {};
    std::memcpy(payload, &envelope, sizeof envelope);
    bridge.publish(ticket, {payload, 0});
    drain_sent_[worker] = true;
  }
}

Result<void> WorkerControl::wait_for_workers(const Buffers& buffers, std::chrono::nanoseconds timeout) {
  const int64_t deadline_ns = after(host_.now_ns(), timeout);
  const Tickets sent = buffers.sent();
  const auto waited =
      wait_until([&] { return buffers.past(sent); }, deadline_ns, timeout, Terminating::is_ignored);
  if (waited) Memory::fence();  // what workers wrote comes before what the caller does next
  return waited;
}

}  // namespace detail
}  // namespace gyre
