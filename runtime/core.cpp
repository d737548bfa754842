#include <fmt/format.h>
#include <gyre/runtime/core.hpp>

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

constexpr int64_t look_interval_ns = 1'000'000;
constexpr uint32_t looks_while_busy =
    16;  // turns with replies for others between looks at one's own deadline
constexpr int64_t clock_interval_ns = 1'000'000'000;
constexpr int clock_samples_at_launch = 8;

// Twice what can be in flight, so that replies may wait unread while as many asks again are under way.
uint32_t calls_for(const RegionLayout& layout) {
  const uint64_t in_flight = uint64_t(layout.workers) * layout.shape.slots;
  return uint32_t(std::clamp<uint64_t>(2 * in_flight, 1024, 65536));
}

Envelope envelope_of(const uint32_t* payload) {
  Envelope envelope;
  std::memcpy(&envelope, payload, sizeof envelope);
  return envelope;
}

}  // namespace

int64_t host_now_ns() { return int64_t(gyre::now_ns()); }

namespace {
uint64_t microseconds(std::chrono::nanoseconds timeout) {
  return uint64_t(std::max<int64_t>(timeout.count(), 0)) / 1000;
}

// A deadline, however long or short the timeout is.
int64_t after(int64_t now_ns, std::chrono::nanoseconds timeout) {
  constexpr int64_t centuries = int64_t(1) << 62;
  return now_ns + std::clamp<int64_t>(timeout.count(), 0, centuries - now_ns);
}
}  // namespace

Core::Core(ActorSet actors, const Options& options, std::unique_ptr<Engine> engine)
    : actors_(engine->complete(std::move(actors))),
      options_(options),
      layout_(options.region_layout(actors_.handlers().size())),
      engine_(std::move(engine)),
      buffers_(engine_->buffer_memory(), bridges_),
      arena_(static_cast<char*>(engine_->region()) + layout_.arena(), layout_.arena_bytes),
      calls_(calls_for(layout_), layout_.shape.body_capacity(), arena_),
      dead_letters_(actors_),
      drain_sent_(options.workers, false),
      failed_tells_seen_(options.workers, 0),
      buried_(layout_.shape.packets()) {
  initialise_region(engine_->region(), layout_);
  for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
    bridges_.emplace_back(Bridge::of(engine_->region(), layout_, worker),
                          engine_->bar_inbound().of_worker(layout_, worker));
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

// Each worker says that it runs, and that its handlers are of the types that the host takes them for.
void Core::wait_until_started() {
  const int64_t deadline_ns = after(host_now_ns(), options_.timeout);
  Backoff backoff(options_.wait);
  for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
    uint64_t started = 0;
    while ((started = Memory::load_acquire(bridges_[worker].bridge().worker_line->started)) == 0) {
      if (backoff.worth_a_look()) {
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
  }
}

void Core::calibrate_clock() {
  if (engine_->shares_host_clock()) return clock_.set_same();
  HostBridge& bridge = bridges_.front();
  const int64_t deadline_ns = after(host_now_ns(), options_.timeout);
  Backoff backoff(WaitPolicy::spin);
  for (int i = 0; i < clock_samples_at_launch; ++i) {
    const int64_t asked_ns = host_now_ns();
    const CommandWord word = bridge.command_again();
    while (!bridge.obeys(word)) {
      backoff.pause();
      if (!backoff.worth_a_look()) continue;
      if (const auto cause = engine_->failure()) throw Error("launching the workers: " + *cause);
      if (host_now_ns() < deadline_ns) continue;
      throw Error(fmt::format("launching the workers: worker 0 did not answer a command within {} ms",
                              options_.timeout.count()));
    }
    clock_.sample(asked_ns, int64_t(Memory::load_relaxed(bridge.bridge().worker_line->clock_ns)));
  }
}

// Now and then, so that drift does not make deadlines late.
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

Core::~Core() = default;

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

void Core::check_engine() {
  const Lifecycle state = state_.load(std::memory_order_acquire);
  if (state == Lifecycle::failed || state == Lifecycle::terminated) {
    // Calls that were being sent when it ended.
    end_calls_in_flight(refusal_.load(std::memory_order_acquire));
  } else if (!terminating_.load(std::memory_order_acquire)) {
    if (const auto cause = engine_failure()) fail(*cause);
  }
}

void Core::fail(std::string_view cause) noexcept {
  {
    const std::lock_guard lock(failure_mutex_);
    if (!failure_.empty()) return;
    try {
      failure_ = std::string(cause) + last_words();
    } catch (const std::exception&) {
      failure_ = "out of memory";  // short texts need no allocation
    }
  }
  refusal_.store(Status::engine_failed, std::memory_order_release);
  state_.store(Lifecycle::failed, std::memory_order_release);
  for (HostBridge& bridge : bridges_) bridge.close();
  drain_replies();
  end_calls_in_flight(Status::engine_failed);
}

void Core::end_calls_in_flight(Status reason) {
  calls_.for_each_in_flight([&](CallId call) {
    if (!calls_.begin_outcome(call)) return;
    asks_dead_.add();
    calls_.complete_failed(
        call, reason == Status::engine_failed ? engine_failed(calls_.worker(call)) : Failure{reason});
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
  const std::lock_guard lock(lifecycle_mutex_);
  if (termination_) return Failure{Status::terminated};
  Lifecycle before = active ? Lifecycle::inactive : Lifecycle::active;
  const Lifecycle now = active ? Lifecycle::active : Lifecycle::inactive;
  if (!state_.compare_exchange_strong(before, now, std::memory_order_acq_rel) && before != now) {
    if (before == Lifecycle::failed) return Failure{Status::engine_failed};
    return Failure{before == Lifecycle::draining ? Status::draining : Status::terminated};
  }
  std::vector<CommandWord> words;
  for (HostBridge& bridge : bridges_)
    words.push_back(bridge.command(active ? Command::run : Command::inactive));
  Backoff backoff(options_.wait);
  for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
    while (!bridges_[worker].obeys(words[worker])) {
      if (drain_replies() != 0) backoff.reset();
      if (backoff.worth_a_look()) {
        const int64_t now_ns = host_now_ns();
        look_after(now_ns);
        if (state() == Lifecycle::failed) return Failure{Status::engine_failed};
        if (terminating_.load(std::memory_order_acquire)) return Failure{Status::terminated};
        if (now_ns >= deadline_ns) return Failure{Status::worker_stuck, 0, 0, microseconds(timeout) / 1000};
      }
      backoff.pause();
    }
  }
  return success();
}

Result<void> Core::drain(std::chrono::nanoseconds timeout) {
  if (forked()) return Failure{Status::forked};
  const int64_t deadline_ns = after(host_now_ns(), timeout);
  const std::lock_guard lock(lifecycle_mutex_);
  if (termination_) return Failure{Status::terminated};
  if (state() == Lifecycle::failed) return Failure{Status::engine_failed};
  Lifecycle before = state();
  while (before == Lifecycle::active || before == Lifecycle::inactive) {
    if (!state_.compare_exchange_weak(before, Lifecycle::draining, std::memory_order_acq_rel)) continue;
    refusal_.store(Status::draining, std::memory_order_release);
    break;
  }
  if (before == Lifecycle::failed) return Failure{Status::engine_failed};
  for (HostBridge& bridge : bridges_) bridge.close();

  Backoff backoff(options_.wait);
  const auto drained = [this] {
    bool all_sent = true;
    for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
      uint64_t ticket = 0;
      if (!drain_sent_[worker] && bridges_[worker].try_claim_closed(ticket)) {
        const Envelope envelope{0, 0, 0, 0, 0, uint16_t(Control::drain), 0, 0, envelope_flags::control};
        uint32_t payload[packets_for(0) * words_a_packet] = {};
        std::memcpy(payload, &envelope, sizeof envelope);
        bridges_[worker].publish(ticket, payload, 0);
        drain_sent_[worker] = true;
      }
      all_sent = all_sent && drain_sent_[worker];
    }
    return all_sent && drain_acknowledgements_.load(std::memory_order_acquire) == layout_.workers;
  };
  while (!drained()) {
    if (drain_replies() != 0) backoff.reset();
    if (backoff.worth_a_look()) {
      const int64_t now = host_now_ns();
      look_after(now);
      if (state() == Lifecycle::failed) return Failure{Status::engine_failed};
      if (terminating_.load(std::memory_order_acquire)) return Failure{Status::terminated};
      if (now >= deadline_ns) return Failure{Status::worker_stuck, 0, 0, microseconds(timeout) / 1000};
    }
    backoff.pause();
  }
  return success();
}

Result<void> Core::wait_for_workers(std::chrono::nanoseconds timeout) {
  if (forked()) return Failure{Status::forked};
  const int64_t deadline_ns = after(host_now_ns(), timeout);
  const Tickets sent = buffers_.sent();
  Backoff backoff(options_.wait);
  while (!buffers_.past(sent)) {
    if (drain_replies() != 0) backoff.reset();
    if (backoff.worth_a_look()) {
      const int64_t now = host_now_ns();
      look_after(now);
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
  terminating_.store(true, std::memory_order_release);
  const std::lock_guard lock(lifecycle_mutex_);
  if (termination_) return *termination_;
  const int64_t begin_ns = host_now_ns();
  Termination report;
  report.uptime_s = uptime_s();

  bool failed = state() == Lifecycle::failed;
  if (!failed) refusal_.store(Status::terminated, std::memory_order_release);
  for (HostBridge& bridge : bridges_) {
    bridge.close();
    bridge.command(Command::stop);
  }
  Backoff backoff(options_.wait);
  while (!engine_->finished()) {
    if (drain_replies() != 0) backoff.reset();
    if (!failed) {
      if (const auto cause = engine_failure()) {
        fail(*cause);
        failed = true;
      }
    }
    if (host_now_ns() >= after(begin_ns, timeout)) {
      report.worker_stuck = true;
      break;
    }
    backoff.pause();
  }
  if (!failed) {
    if (const auto cause = engine_failure()) fail(*cause);
  }
  failed = state() == Lifecycle::failed;
  // What another thread has in hand must be settled before anything is buried.
  for (HostBridge& bridge : bridges_) {
    while (bridge.draining()) std::this_thread::yield();
    drain_replies(bridge);
  }

  const Status reason = failed ? Status::engine_failed : Status::terminated;
  if (!failed && !report.worker_stuck) {
    for (HostBridge& bridge : bridges_) {
      bury_unprocessed(bridge, reason);
      bridge.take_tell_blocks([this](BlockId id) { arena_.free(id, 0); });
    }
  }
  end_calls_in_flight(reason);
  calls_.settle();
  collect_failed_tells();
  report.books = count_books();
  if (failed || report.worker_stuck) {
    // Workers that died or hang never said what they did last: what they did not report is not known to be
    // done, and is a dead letter that nobody can read.
    const uint64_t unknown = report.books.tells.in_flight();
    report.books.tells.dead_letters += unknown;
    report.books.dead_letters_dropped += unknown;
  }
  if (report.worker_stuck) engine_->leak();
  buffers_.workers_ended(report.worker_stuck);
  report.terminate_ms = double(host_now_ns() - begin_ns) * 1e-6;
  {
    const std::lock_guard report_lock(report_mutex_);
    termination_ = report;
  }
  if (!failed) state_.store(Lifecycle::terminated, std::memory_order_release);
  return report;
}

// The requests that a stopped worker never took: each was claimed, so each is or will be published.
void Core::bury_unprocessed(HostBridge& bridge, Status reason) {
  uint32_t* const payload = buried_.front().data;
  const uint64_t claimed = bridge.claimed();
  for (uint64_t ticket = bridge.consumed(); ticket < claimed; ++ticket) {
    ReceiveOutcome outcome;
    while ((outcome = bridge.read_back(ticket, payload)) == ReceiveOutcome::nothing) {
      std::this_thread::yield();  // its producer is between claim and publish
    }
    if (outcome == ReceiveOutcome::corrupt) {
      corrupt_unprocessed_.add();
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
      tells_unprocessed_.add();
      dead_letters_.add(as_sent(envelope, payload), {reason, 0, 0}, body_in_slot(envelope, payload));
    } else if (calls_.begin_outcome(envelope.correlation)) {
      asks_dead_.add();
      dead_letters_.add(as_sent(envelope, payload), {reason, 0, 0}, body_in_slot(envelope, payload));
      calls_.complete_failed(envelope.correlation, Failure{reason});
    }
  }
}

// Moves what the workers' logs of failed tells hold to the dead letters.
void Core::collect_failed_tells() {
  const std::lock_guard lock(failed_tells_mutex_);
  for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
    const Bridge& bridge = bridges_[worker].bridge();
    (void)Memory::load_acquire(bridge.worker_line->h2d_credit);  // count and log were stored before it
    const uint64_t failed = Memory::load_relaxed(bridge.worker_line->tells_failed);
    dead_letters_.collect(bridge, failed_tells_seen_[worker], failed);
    failed_tells_seen_[worker] = failed;
  }
}

std::vector<DeadLetter> Core::take_dead_letters() {
  refuse_if_forked("taking dead letters");
  collect_failed_tells();
  return dead_letters_.take();
}

Books Core::books() const {
  refuse_if_forked("reading the books");
  const std::lock_guard lock(report_mutex_);
  return termination_ ? termination_->books : count_books();
}

Books Core::count_books() const {
  Books books;
  books.corrupt_slots = corrupt_unprocessed_.get();
  // Outcomes before acceptances: an ask is counted as accepted first, so in flight is never negative.
  books.asks.answered = asks_answered_.get();
  books.asks.error_replies = asks_error_replies_.get();
  books.asks.timed_out = asks_timed_out_.get();
  books.asks.dead_letters = asks_dead_.get();
  books.asks.late_replies = asks_late_.get();
  books.tells.dead_letters = tells_unprocessed_.get();
  for (const HostBridge& bridge : bridges_) {
    const WorkerLine& line = *bridge.bridge().worker_line;
    (void)Memory::load_acquire(line.h2d_credit);  // the counters were stored before it
    books.tells.processed += Memory::load_relaxed(line.tells_processed);
    books.tells.dead_letters += Memory::load_relaxed(line.tells_failed);
    books.corrupt_slots += Memory::load_relaxed(line.corrupt);
  }
  books.asks.accepted = asks_accepted_.get();
  books.tells.accepted = tells_accepted_.get();
  books.dead_letters_dropped = dead_letters_dropped();
  return books;
}

std::string Core::failure() const {
  refuse_if_forked("asking why the engine failed");
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

}  // namespace detail
}  // namespace gyre
