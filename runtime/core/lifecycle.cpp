#include <fmt/format.h>
#include <gyre/runtime/core/core.hpp>
#include <gyre/runtime/log.hpp>

#include <time.h>

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

constexpr int64_t clock_interval_ns = 1'000'000'000;
constexpr int clock_samples_at_launch = 8;

// Twice what can be in flight, so that replies may wait unread while as many asks again are under way.
uint32_t calls_for(const RegionLayout& layout) {
  const uint64_t in_flight = uint64_t(layout.workers) * layout.shape.slots;
  return uint32_t(std::clamp<uint64_t>(2 * in_flight, 1024, 65536));
}

uint64_t most_body_bytes(const RingShape& shape, uint64_t arena_bytes) {
  if (shape.body_capacity() < sizeof(OutOfLine)) return shape.body_capacity();
  return std::clamp<uint64_t>(arena_bytes, shape.body_capacity(), Scratch::most_capacity());
}

}  // namespace

int64_t host_now_ns() { return int64_t(gyre::now_ns()); }

int64_t coarse_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

Core::Core(ActorSet actors, const Options& options, std::unique_ptr<Engine> engine)
    : actors_(engine->complete(std::move(actors))),
      options_(options),
      layout_(options.region_layout(actors_.handlers().size())),
      engine_(std::move(engine)),
      buffers_(engine_->buffer_memory(), bridges_),
      arena_(static_cast<char*>(engine_->region()) + layout_.arena(), layout_.arena_bytes),
      max_body_bytes_(most_body_bytes(layout_.shape, arena_.bytes())),
      calls_(calls_for(layout_), layout_.shape.body_capacity(), arena_),
      unprocessed_(size_t(layout_.workers) * layout_.counts_a_worker()),
      dead_letters_(actors_),
      drain_sent_(options.workers, false),
      failed_tells_seen_(options.workers),
      buried_(layout_.shape.packets()) {
  // Actors given as source text are known now.
  if (const std::string problems = actors_.problems(options_); !problems.empty()) {
    throw BadOptions("launching a runtime: these options are wrong:\n" + problems);
  }
  initialise_region(engine_->region(), layout_);
  for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
    bridges_.emplace_back(Bridge::of(engine_->region(), layout_, worker),
                          engine_->bar_inbound().of_worker(layout_, worker), engine_->doorbell(worker));
    if (Doorbell* const bell = bridges_.back().bell()) bell->set_calls(calls_);
  }
  auto* const types =
      reinterpret_cast<HandlerTypes*>(static_cast<char*>(engine_->region()) + layout_.handler_types());
  for (size_t n = 0; n < actors_.handlers().size(); ++n) {
    types[n] = {actors_.handlers()[n].request, actors_.handlers()[n].response};
  }
  engine_->launch();
  try {
    wait_until_started();
    calibrate_clock();
  } catch (...) {
    abandon_launch();
    throw;
  }
  launched_at_ns_ = host_now_ns();
  state_.store(Lifecycle::active, std::memory_order_release);
}

std::shared_ptr<Core> make_core(ActorSet actors, const Options& options, std::unique_ptr<Engine> engine) {
  return {new Core(std::move(actors), options, std::move(engine)), drop_last_share};
}

// Each worker says that it runs, and that its handlers are of the types that the host takes them for.
void Core::wait_until_started() {
  const int64_t deadline_ns = after(host_now_ns(), options_.timeout);
  Backoff backoff(options_.wait);
  for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
    uint64_t started = 0;
    while ((started = Memory::load_acquire(bridges_[worker].bridge().worker_line->started)) == 0) {
      if (backoff.should_read_clock()) {
        if (const auto cause = engine_->failure()) throw Error("launching the workers: " + *cause);
        if (host_now_ns() >= deadline_ns) {
          throw Error(fmt::format(
              "launching the workers: worker {} of {} did not start within {} ms; is something else "
              "running on the device?",
              worker, layout_.workers, options_.timeout.count()));
        }
      }
      backoff.pause();
    }
    if (started >= 2) {
      const Handler& handler =
          actors_.handlers()[std::min<size_t>(started - 2, actors_.handlers().size() - 1)];
      throw Error(
          fmt::format("launching the workers: handler {} of actor {} is for request type {:#018x} and "
                      "response type {:#018x} in "
                      "this program, and for others in the workers; the actors' source that they were "
                      "compiled from is not the one "
                      "that this program was built with: build it again",
                      handler.message_type, handler.actor_type, handler.request, handler.response));
    }
    bridges_[worker].take_slot_pages();
  }
}

void Core::calibrate_clock() {
  if (engine_->shares_host_clock()) {
    for (HostBridge& worker : bridges_) worker.never_publish_time();
    return;
  }
  // A worker compares deadlines with its estimate of the host's clock, which begins with the first time said.
  for (HostBridge& worker : bridges_) worker.publish_time(host_now_ns());
  HostBridge& bridge = bridges_.front();
  const int64_t deadline_ns = after(host_now_ns(), options_.timeout);
  Backoff backoff(WaitPolicy::spin);
  for (int i = 0; i < clock_samples_at_launch; ++i) {
    const int64_t asked_ns = host_now_ns();
    const CommandWord word = bridge.command_again();
    while (!bridge.obeys(word)) {
      backoff.pause();
      if (!backoff.should_read_clock()) continue;
      if (const auto cause = engine_->failure()) throw Error("launching the workers: " + *cause);
      if (host_now_ns() < deadline_ns) continue;
      throw Error(fmt::format("launching the workers: worker 0 did not answer a command within {} ms",
                              options_.timeout.count()));
    }
    clock_.sample(asked_ns, int64_t(Memory::load_relaxed(bridge.bridge().worker_line->clock_ns)));
  }
}

// Now and then, for the age of heartbeats.
void Core::sample_clock(int64_t now_ns) {
  if (engine_->shares_host_clock()) return;
  const std::unique_lock lock(clock_mutex_, std::try_to_lock);
  if (!lock) return;
  HostBridge& bridge = bridges_.front();
  if (clock_asked_ns_ != 0) {
    if (!bridge.obeys(clock_asked_)) return;
    clock_.sample(clock_asked_ns_, int64_t(Memory::load_relaxed(bridge.bridge().worker_line->clock_ns)));
    clock_asked_ns_ = 0;
  } else if (now_ns >= next_clock_ns_) {
    next_clock_ns_ = now_ns + clock_interval_ns;
    clock_asked_ns_ = now_ns;
    clock_asked_ = bridge.command_again();
  }
}

// Stops what did start, for a launch that failed.
void Core::abandon_launch() noexcept {
  for (HostBridge& bridge : bridges_) bridge.command(Command::stop);
  const int64_t deadline_ns = after(host_now_ns(), options_.timeout);
  while (!engine_->finished()) {
    if (host_now_ns() >= deadline_ns) return engine_->leak();
    std::this_thread::yield();
  }
}

// Where a launch fails for lack of memory after the workers started, nobody has terminated it.
Core::~Core() {
  if (!forked() && !terminating_.load(std::memory_order_acquire)) abandon_launch();
  if (const std::string* const failure = failure_.load(std::memory_order_acquire);
      failure != &out_of_memory_) {
    delete failure;
  }
}

void Core::refuse_if_forked(const char* doing) const {
  if (forked()) throw Error(std::string(doing) + ": " + Failure{Status::forked}.message(), Status::forked);
}

// Short texts need no allocation.
std::optional<std::string> Core::engine_failure() noexcept {
  try {
    return engine_->failure();
  } catch (const std::exception&) {
    return "out of memory";
  }
}

double Core::uptime_s() const { return double(host_now_ns() - launched_at_ns_) * 1e-9; }

// What a message is refused for once the rings are closed: whatever closes them says so first.
Status Core::refusal() const {
  const Lifecycle state = state_.load(std::memory_order_acquire);
  if (state == Lifecycle::failed) return Status::engine_failed;
  const bool draining = state == Lifecycle::draining && !terminating_.load(std::memory_order_acquire);
  return draining ? Status::draining : Status::terminated;
}

// False where the runtime has failed or has terminated: nothing follows those.
bool Core::change_state(Lifecycle to) noexcept {
  Lifecycle from = state_.load(std::memory_order_acquire);
  do {
    if (from == Lifecycle::failed || from == Lifecycle::terminated) return false;
  } while (!state_.compare_exchange_weak(from, to, std::memory_order_acq_rel, std::memory_order_acquire));
  return true;
}

void Core::watch_engine() {
  if (engine_->may_die()) watcher_.start();
}

void Core::check_engine() {
  const Lifecycle state = state_.load(std::memory_order_acquire);
  if (state == Lifecycle::failed || state == Lifecycle::terminated) {
    // Calls that were being sent when it ended.
    end_calls_in_flight(refusal());
  } else if (!terminating_.load(std::memory_order_acquire)) {
    if (const auto cause = engine_failure()) fail(*cause);
  }
}

// Each step may be done by several threads at once, and again: one that is suspended here holds nobody up.
void Core::fail(std::string_view cause) noexcept {
  if (const Lifecycle now = state(); now == Lifecycle::failed || now == Lifecycle::terminated) return;
  const bool first = record_failure(cause);
  change_state(Lifecycle::failed);
  for (HostBridge& bridge : bridges_) bridge.close();
  drain_replies();
  end_calls_in_flight(refusal());
  if (first) log(LogLevel::error, [this] { return "the engine failed: " + failure(); });
}

// False where there is one already: the first stays.
bool Core::record_failure(std::string_view cause) noexcept {
  if (failure_.load(std::memory_order_acquire) != nullptr) return false;
  const std::string* text = &out_of_memory_;
  try {
    text = new std::string(std::string(cause) + last_words());
  } catch (const std::exception&) {
  }
  const std::string* none = nullptr;
  if (failure_.compare_exchange_strong(none, text, std::memory_order_acq_rel)) return true;
  if (text != &out_of_memory_) delete text;
  return false;
}

// Of calls whose request or reply nobody has: whether they were handled is not known.
void Core::end_calls_in_flight(Status reason) {
  calls_.for_each_in_flight([&](CallId call) {
    if (!calls_.begin_outcome(call)) return;
    books_.add(Count::asks_inferred);
    const auto complete = [&] {
      return calls_.complete_failed(
          call, reason == Status::engine_failed ? engine_failed(calls_.worker(call)) : Failure{reason});
    };
    if (!conclude(Count::asks_dead, complete)) books_.take_back(Count::asks_inferred);
  });
}

// Of a worker that died with messages in hand: what it was last busy with.
Failure Core::engine_failed(uint32_t worker) const {
  Failure failure{Status::engine_failed};
  const Packet said = Memory::load(bridges_[worker].bridge().last_words->packet);
  if (said.stamp == 0) return failure;
  const uint16_t actor_type = uint16_t(said.data[2]), message_type = uint16_t(said.data[2] >> 16);
  if (const auto actor = actors_.actor_name(actor_type); !actor.empty())
    failure.actor_name = static_text(actor);
  const auto message = actors_.message_name(actor_type, message_type);
  if (!message.empty()) failure.struct_name = static_text(message);
  return failure;
}

// What the workers that have not done all they were sent were last busy with.
std::string Core::last_words() const {
  std::string text;
  for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
    const HostBridge& bridge = bridges_[worker];
    if (bridge.consumed() >= bridge.claimed()) continue;
    const Packet said = Memory::load(bridge.bridge().last_words->packet);
    if (said.stamp == 0) continue;
    const Failure last = engine_failed(worker);
    text += fmt::format("; worker {} was last busy with {}, key {}, message {}", worker,
                        last.actor_name == nullptr ? "an actor of no known type" : last.actor_name,
                        uint64_t(said.data[0]) | uint64_t(said.data[1]) << 32,
                        last.struct_name == nullptr ? "of no known type" : last.struct_name);
  }
  return text;
}

Result<void> Core::set_active(bool active, std::chrono::nanoseconds timeout) {
  if (forked()) return Failure{Status::forked};
  const int64_t deadline_ns = after(host_now_ns(), timeout);
  const Failure late{Status::worker_stuck, 0, 0, microseconds(timeout) / 1000};
  std::vector<CommandWord> words;
  words.reserve(layout_.workers);
  {
    // Two calls that overlap must not leave workers with different commands.
    std::unique_lock lock(active_mutex_, std::defer_lock);
    if (!lock.try_lock_until(steady_time(deadline_ns))) return late;
    if (terminating_.load(std::memory_order_acquire)) return Failure{Status::terminated};
    Lifecycle before = active ? Lifecycle::inactive : Lifecycle::active;
    const Lifecycle now = active ? Lifecycle::active : Lifecycle::inactive;
    if (!state_.compare_exchange_strong(before, now, std::memory_order_acq_rel) && before != now) {
      if (before == Lifecycle::failed) return Failure{Status::engine_failed};
      return Failure{before == Lifecycle::draining ? Status::draining : Status::terminated};
    }
    for (HostBridge& bridge : bridges_)
      words.push_back(bridge.command(active ? Command::run : Command::inactive));
  }
  Backoff backoff(options_.wait);
  for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
    while (!bridges_[worker].obeys(words[worker])) {
      if (drain_replies() != 0) backoff.reset();
      if (backoff.should_read_clock()) {
        const int64_t now_ns = host_now_ns();
        do_due_work(now_ns);
        if (state() == Lifecycle::failed) return Failure{Status::engine_failed};
        if (terminating_.load(std::memory_order_acquire)) return Failure{Status::terminated};
        if (now_ns >= deadline_ns) return late;
      }
      backoff.pause();
    }
  }
  return success();
}

Result<void> Core::drain(std::chrono::nanoseconds timeout) {
  if (forked()) return Failure{Status::forked};
  const int64_t deadline_ns = after(host_now_ns(), timeout);
  if (terminating_.load(std::memory_order_acquire)) return Failure{Status::terminated};
  if (!change_state(Lifecycle::draining)) return Failure{refusal()};
  for (HostBridge& bridge : bridges_) bridge.close();

  Backoff backoff(options_.wait);
  while (drain_acknowledgements_.load(std::memory_order_acquire) != layout_.workers) {
    send_drain_messages();
    if (drain_replies() != 0) backoff.reset();
    if (backoff.should_read_clock()) {
      const int64_t now = host_now_ns();
      do_due_work(now);
      if (state() == Lifecycle::failed) return Failure{Status::engine_failed};
      if (terminating_.load(std::memory_order_acquire)) return Failure{Status::terminated};
      if (now >= deadline_ns) return Failure{Status::worker_stuck, 0, 0, microseconds(timeout) / 1000};
    }
    backoff.pause();
  }
  return success();
}

// To each worker one, as soon as its ring has room.
void Core::send_drain_messages() {
  const std::unique_lock lock(drain_mutex_, std::try_to_lock);
  if (!lock) return;
  for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
    uint64_t ticket = 0;
    if (drain_sent_[worker] ||
        !bridges_[worker].try_claim_closed(ticket, [&] { collect_before_reuse(worker); })) {
      continue;
    }
    const Envelope envelope{0, 0, 0, 0, 0, uint16_t(Control::drain), 0, 0, envelope_flags::control};
    uint32_t payload[packets_for(0) * words_a_packet] = {};
    std::memcpy(payload, &envelope, sizeof envelope);
    bridges_[worker].publish(ticket, {payload, 0});
    drain_sent_[worker] = true;
  }
}

Result<void> Core::wait_for_workers(std::chrono::nanoseconds timeout) {
  if (forked()) return Failure{Status::forked};
  const int64_t deadline_ns = after(host_now_ns(), timeout);
  const Tickets sent = buffers_.sent();
  Backoff backoff(options_.wait);
  while (!buffers_.past(sent)) {
    if (drain_replies() != 0) backoff.reset();
    if (backoff.should_read_clock()) {
      const int64_t now = host_now_ns();
      do_due_work(now);
      if (state() == Lifecycle::failed) return Failure{Status::engine_failed};
      if (now >= deadline_ns) return Failure{Status::worker_stuck, 0, 0, microseconds(timeout) / 1000};
    }
    backoff.pause();
  }
  Memory::fence();
  return success();
}

Termination Core::terminate(std::chrono::nanoseconds timeout) {
  refuse_if_forked("terminating a runtime");
  timeout = std::max<std::chrono::nanoseconds>(timeout, terminate_grace);
  Termination report = end_workers(timeout, after(host_now_ns(), timeout));
  if (report.unfinished) return report;
  const int64_t deadline_ns = after(host_now_ns(), timeout);
  watcher_.end(deadline_ns);
  report.callback_stuck = !poller_.end(deadline_ns);
  return report;
}

// Of a call beside the one that ends the workers.
Termination Core::wait_for_end(int64_t deadline_ns) const {
  const int64_t begin_ns = host_now_ns();
  Backoff backoff(options_.wait);
  while (!ended_.load(std::memory_order_acquire)) {
    if (const int64_t now_ns = host_now_ns(); now_ns >= deadline_ns) {
      Termination report;
      report.books = count_books();
      report.uptime_s = uptime_s();
      report.terminate_ms = double(now_ns - begin_ns) * 1e-6;
      report.unfinished = true;
      return report;
    }
    backoff.pause();
  }
  return termination_;
}

Termination Core::end_workers(std::chrono::nanoseconds timeout, int64_t deadline_ns) {
  if (terminating_.exchange(true, std::memory_order_acq_rel)) return wait_for_end(deadline_ns);
  const int64_t begin_ns = host_now_ns();
  const auto late = [deadline_ns] { return host_now_ns() >= deadline_ns; };
  Termination report;
  report.uptime_s = uptime_s();

  for (HostBridge& bridge : bridges_) {
    bridge.close();
    bridge.command(Command::stop);
  }
  const auto note_failure = [this] {
    if (state() == Lifecycle::failed) return;
    if (const auto cause = engine_failure()) fail(*cause);
  };
  Backoff backoff(options_.wait);
  while (!engine_->finished()) {
    if (drain_replies() != 0) backoff.reset();
    note_failure();
    if (late()) {
      report.worker_stuck = true;
      break;
    }
    backoff.pause();
  }
  note_failure();
  // What another thread has in hand is settled before anything is called dead.
  for (HostBridge& bridge : bridges_) {
    const auto take = [&](const ArrivedReply* reply) { take_reply(bridge, reply, no_call); };
    if (!bridge.drain_after_others(take, late)) report.reader_stuck = true;
  }
  const bool failed = state() == Lifecycle::failed;
  if (!failed && !report.worker_stuck) {
    for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
      if (!bury_unprocessed(worker, Status::terminated, deadline_ns)) report.sender_stuck = true;
      bridges_[worker].take_tell_blocks([this](BlockId id) { arena_.free(id, 0); });
    }
  }
  end_calls_in_flight(refusal());
  if (!calls_.settle(late)) report.reader_stuck = true;
  std::unique_lock lock(failed_tells_mutex_, std::defer_lock);
  if (lock.try_lock_until(steady_time(deadline_ns))) collect_failed_tells();
  report.books = count_books();
  if (failed || report.worker_stuck || report.sender_stuck || report.reader_stuck) infer(report.books);
  if (report.worker_stuck) {
    engine_->leak();
    log(LogLevel::error, [&] {
      return fmt::format(
          "terminating: a worker did not stop within {} ms; {} bytes of the region stay "
          "allocated, for it may still use them",
          microseconds(timeout) / 1000, region_bytes());
    });
  }
  if (report.sender_stuck || report.reader_stuck) {
    log(LogLevel::error, [&] {
      return fmt::format(
          "terminating: a thread did not finish {} within {} ms; {} messages have no outcome that is known, "
          "and count as dead letters; was it suspended, or ended in the middle?",
          report.sender_stuck ? "sending" : "taking replies", microseconds(timeout) / 1000,
          report.books.inferred());
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
  buffers_.workers_ended(report.worker_stuck);
  report.terminate_ms = double(host_now_ns() - begin_ns) * 1e-6;
  termination_ = report;
  ended_.store(true, std::memory_order_release);
  change_state(Lifecycle::terminated);
  return report;
}

// What nobody reported is not known to be done: a dead letter that nobody can read.
void Core::infer(Books& books) {
  const uint64_t asks = books.asks.in_flight(), tells = books.tells.in_flight();
  books.asks.dead_letters += asks;
  books.asks.inferred += asks;
  books.tells.dead_letters += tells;
  books.tells.inferred += tells;
  books.dead_letters_dropped += tells;
}

// The requests that a stopped worker never took. Each was claimed, so each is or will be published; false
// where the deadline passed before one was.
bool Core::bury_unprocessed(uint32_t worker, Status reason, int64_t deadline_ns) {
  const HostBridge& bridge = bridges_[worker];
  uint32_t* const payload = buried_.front().data;
  const uint64_t claimed = bridge.claimed();
  bool all = true;
  for (uint64_t ticket = bridge.consumed(); ticket < claimed; ++ticket) {
    ReceiveOutcome outcome;
    while ((outcome = bridge.read_back(ticket, payload)) == ReceiveOutcome::nothing &&
           host_now_ns() < deadline_ns) {
      std::this_thread::yield();  // its producer is between claim and publish
    }
    if (outcome == ReceiveOutcome::nothing) {
      all = false;
      continue;
    }
    if (outcome == ReceiveOutcome::corrupt) {
      books_.add(Count::corrupt_unprocessed);
      continue;
    }
    const Envelope envelope = envelope_of(payload);
    if ((envelope.flags & envelope_flags::control) != 0) continue;
    if ((envelope.flags & envelope_flags::out_of_line) != 0) {
      OutOfLine head;
      std::memcpy(&head, payload + sizeof(Envelope) / sizeof(uint32_t), sizeof head);
      arena_.free(head.block, 0);  // the worker never saw it
    }
    if ((envelope.flags & envelope_flags::ask) == 0) {
      books_.add(Count::tells_unprocessed);
      count_unprocessed(worker, envelope);
      dead_letters_.add(as_sent(envelope, payload), {reason, 0, 0}, body_in_slot(envelope, payload));
    } else if (calls_.begin_outcome(envelope.correlation)) {
      count_unprocessed(worker, envelope);
      dead_letters_.add(as_sent(envelope, payload), {reason, 0, 0}, body_in_slot(envelope, payload));
      conclude(Count::asks_dead,
               [&] { return calls_.complete_failed(envelope.correlation, Failure{reason}); });
    }
  }
  return all;
}

void Core::count_unprocessed(uint32_t worker, const Envelope& envelope) {
  unprocessed_[worker * layout_.counts_a_worker() + handler_number(envelope)].fetch_add(
      1, std::memory_order_relaxed);
}

// Moves what the workers' logs of failed tells hold to the dead letters. Under failed_tells_mutex_.
void Core::collect_failed_tells() noexcept {
  for (uint32_t worker = 0; worker < layout_.workers; ++worker) collect_failed_tells(worker);
}

void Core::collect_failed_tells(uint32_t worker) noexcept {
  const uint64_t failed = failed_tells(worker);
  dead_letters_.collect(bridges_[worker].bridge(), failed_tells_seen_[worker].load(std::memory_order_relaxed),
                        failed);
  failed_tells_seen_[worker].store(failed, std::memory_order_relaxed);
}

// Of a sender that is about to use slots again that the worker is done with. What their messages left in the
// worker's log is read first: the messages that come after them could overwrite it. Where another thread
// reads a log just now, it is not waited for.
void Core::collect_before_reuse(uint32_t worker) noexcept {
  if (failed_tells(worker) == failed_tells_seen_[worker].load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(failed_tells_mutex_, std::try_to_lock);
  if (lock) collect_failed_tells(worker);
}

uint64_t Core::failed_tells(uint32_t worker) const noexcept {
  const WorkerLine& line = *bridges_[worker].bridge().worker_line;
  (void)Memory::load_acquire(line.h2d_credit);  // count and log were stored before it
  return Memory::load_relaxed(line.tells_failed);
}

std::vector<DeadLetter> Core::take_dead_letters() {
  refuse_if_forked("taking dead letters");
  {
    const std::lock_guard lock(failed_tells_mutex_);
    collect_failed_tells();
  }
  return dead_letters_.take();
}

Books Core::books() const {
  refuse_if_forked("reading the books");
  return ended_.load(std::memory_order_acquire) ? termination_.books : count_books();
}

Books Core::count_books() const {
  Books books;
  books.corrupt_slots = books_.sum(Count::corrupt_unprocessed);
  // Outcomes before acceptances: an ask is counted as accepted first, so in flight is never negative.
  books.asks.answered = books_.sum(Count::asks_answered);
  books.asks.error_replies = books_.sum(Count::asks_error_replies);
  books.asks.timed_out = books_.sum(Count::asks_timed_out);
  books.asks.dead_letters = books_.sum(Count::asks_dead);
  books.asks.inferred = books_.sum(Count::asks_inferred);
  books.asks.cancelled = books_.sum(Count::asks_cancelled);
  books.asks.late_replies = books_.sum(Count::asks_late);
  books.tells.dead_letters = books_.sum(Count::tells_unprocessed);
  for (const HostBridge& bridge : bridges_) {
    const WorkerLine& line = *bridge.bridge().worker_line;
    (void)Memory::load_acquire(line.h2d_credit);  // the counters were stored before it
    books.tells.processed += Memory::load_relaxed(line.tells_processed);
    books.tells.dead_letters += Memory::load_relaxed(line.tells_failed);
    books.corrupt_slots += Memory::load_relaxed(line.corrupt);
  }
  books.asks.accepted = books_.sum(Count::asks_accepted);
  books.tells.accepted = books_.sum(Count::tells_accepted);
  books.dead_letters_dropped = dead_letters_dropped();
  return books;
}

std::string Core::failure() const {
  refuse_if_forked("asking why the engine failed");
  const std::string* const failure = failure_.load(std::memory_order_acquire);
  return failure == nullptr ? std::string() : *failure;
}

}  // namespace detail
}  // namespace gyre
