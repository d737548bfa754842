#include <fmt/format.h>
#include <gyre/runtime/testing/stepped_engine.hpp>
#include <gyre/runtime/testing/stepped_runtime.hpp>

#include <algorithm>
#include <random>
#include <utility>

namespace gyre::testing {

namespace {

// When virtual time begins: a constant, so that what handlers read of it is the same in each run.
constexpr uint64_t first_time_ns = 1'000'000'000'000;

// In so many passes over the workers one must find something to do. Workers whose messages wait for room at
// each other move what came to their queues in turns: they may need more passes before one of them handles a
// message.
constexpr uint32_t passes = 4, passes_while_waiting = 64;
// Polls of each worker in a pass. Most find something at once. A worker whose messages wait for room at
// others needs a few polls before it moves what came to its queue.
constexpr uint32_t polls_of(uint32_t pass) { return pass < 2 ? 1 : 16; }

std::string problems_of(const ActorSet& actors, const Options& options) {
  std::string problems = options.problems() + actors.problems(options);
  const auto wrong = [&](const std::string& line) { problems += "  " + line + "\n"; };
  if (options.engine == EngineKind::cuda)
    wrong("--engine cuda: a stepped runtime has the CPU engine's workers; use auto or cpu");
  if (options.transport != TransportKind::automatic && options.transport != TransportKind::heap &&
      detail::is_named(options.transport)) {
    wrong(fmt::format("--transport {}: a stepped runtime's only transport is heap", name(options.transport)));
  }
  if (options.publish_stats)
    wrong("publish_stats: a stepped runtime has no thread that writes them; read stats() after a step");
  if (!options.record.empty())
    wrong("record: a stepped runtime has no thread that writes a recording; record a Runtime");
  return problems;
}

const ActorSet& checked(const ActorSet& actors, const Options& options) {
  actors.require_cpu_worker();
  if (const std::string problems = problems_of(actors, options); !problems.empty())
    throw BadOptions("launching a stepped runtime: these options are wrong:\n" + problems);
  return actors;
}

// What a worker took since the launch, by handler; the last: messages that are for none.
std::vector<uint64_t> taken_of(const HandlerCounts* counts, size_t handlers) {
  std::vector<uint64_t> taken(handlers + 1);
  for (size_t n = 0; n <= handlers; ++n) {
    for (const uint64_t processed : counts[n].processed) taken[n] += processed;
    taken[n] += counts[n].failed + counts[n].expired;
  }
  return taken;
}

// Messages between actors that have ended.
uint64_t mail_ended_of(const HostBridge& bridge) {
  const WorkerLine& line = *bridge.bridge().worker_line;
  return Memory::load_relaxed(line.mail_processed) + Memory::load_relaxed(line.mail_failed);
}

// That ended well.
uint64_t processed_of(const HandlerCounts* counts, size_t handlers) {
  uint64_t all = 0;
  for (size_t n = 0; n <= handlers; ++n) {
    for (const uint64_t processed : counts[n].processed) all += processed;
  }
  return all;
}

}  // namespace

std::string Step::text() const {
  std::string text = fmt::format("worker {}: ", worker);
  if (actor.empty()) return text + message;
  text += actor;
  if (key) text += fmt::format(" {}", *key);
  text += ", " + message;
  if (messages > 1) text += fmt::format(" and {} more", messages - 1);
  return text;
}

// What the runtime's engines share: the order, the time, and which of the engines lives. An engine keeps it.
class SteppedRuntime::State final : public detail::Stepper, public std::enable_shared_from_this<State> {
 public:
  State(ActorSet actors, const Options& options, Order order)
      : actors_(std::move(actors)), options_(options), held_(options.workers, false) {
    set_order(order);
  }

  std::unique_ptr<Engine> make_engine();
  std::shared_ptr<detail::Incarnations> launch();

  int64_t now_ns() const override { return int64_t(time_ns_); }
  bool move() override { return step().has_value(); }
  void pass_until(int64_t time_ns) override;
  void set_time(int64_t time_ns) {
    time_ns_ = std::max(time_ns_, uint64_t(std::max<int64_t>(time_ns, 0)));
    do_work_of_threads();
  }

  std::optional<Step> step() {
    for (uint32_t n = 0; n < passes || (n < passes_while_waiting && something_waits()); ++n) {
      if (auto done = pass(polls_of(n))) return done;
    }
    do_work_of_threads();
    return std::nullopt;
  }
  std::optional<Step> step(uint32_t worker) {
    check(worker, "stepping");
    for (uint32_t n = 0; n < passes; ++n) {
      if (auto done = step(worker, polls_of(n))) return done;
    }
    do_work_of_threads();
    return std::nullopt;
  }

  void set_order(Order order) {
    seed_ = order.seed();
    if (seed_) random_.seed(*seed_);
  }
  void hold(uint32_t worker, bool held) {
    check(worker, held ? "holding" : "releasing");
    held_[worker] = held;
  }
  bool is_held(uint32_t worker) const {
    check(worker, "asking for");
    return held_[worker];
  }
  uint64_t waiting(uint32_t worker) const {
    check(worker, "asking for");
    const HostBridge& bridge = core()->host().bridges[worker];
    return bridge.claimed() - bridge.consumed();
  }
  uint32_t workers() const { return options_.workers; }
  void advance(std::chrono::nanoseconds time) {
    if (time.count() < 0) {
      throw Error(
          fmt::format("advancing virtual time by {} ns: it does not go back; give 0 or more", time.count()));
    }
    set_time(detail::after(now_ns(), time));
  }

  void fail_engine(std::string_view cause);
  void fail_engine_at(uint32_t worker, std::string_view cause);
  std::string text_of_workers() const;

 private:
  friend class TestEngine;

  // Lets workers that are not held poll, in the test's order, until one has done a step.
  std::optional<Step> pass(uint32_t polls) {
    std::vector<uint32_t> left;
    for (uint32_t n = 0; n < options_.workers; ++n) {
      const uint32_t worker = (next_ + n) % options_.workers;
      if (!held_[worker]) left.push_back(worker);
    }
    while (!left.empty()) {
      const auto chosen = left.begin() + std::ptrdiff_t(seed_ ? random_() % left.size() : 0);
      const uint32_t worker = *chosen;
      left.erase(chosen);
      if (auto done = step(worker, polls)) {
        next_ = (worker + 1) % options_.workers;
        return done;
      }
    }
    return std::nullopt;
  }
  // Whether messages to other actors wait in a worker that is not held.
  bool something_waits() const;
  void check(uint32_t worker, const char* doing) const {
    if (worker < options_.workers) return;
    throw Error(
        fmt::format("{} worker {}: there are {} workers, numbered from 0", doing, worker, options_.workers));
  }
  // Null once the runtime is gone, whose futures may outlive it.
  std::shared_ptr<detail::Core> core() const {
    const auto incarnations = incarnations_.lock();
    return incarnations ? incarnations->present() : nullptr;
  }
  void do_work_of_threads() {
    if (const auto present = core()) present->do_work_of_threads();
  }
  static TestEngine& engine_of(detail::Core& core);
  std::optional<Step> step(uint32_t worker, uint32_t polls);
  Step describe(detail::Core& core, uint32_t worker, uint64_t first_ticket, uint64_t tickets,
                const std::vector<uint64_t>& taken_before, uint64_t processed_before,
                uint64_t mail_ended_before) const;
  std::string message_name(uint16_t actor_type, uint16_t message_type) const;

  const ActorSet actors_;
  const Options options_;
  uint64_t time_ns_ = first_time_ns;
  std::optional<uint64_t> seed_;
  std::mt19937_64 random_;
  uint32_t next_ = 0;  // the worker whose turn it is
  std::vector<bool> held_;
  std::weak_ptr<detail::Incarnations> incarnations_;
};

namespace {
struct Keeper {
  std::shared_ptr<void> kept;
};
}  // namespace

// Keeps the State, whose time its workers read.
class SteppedRuntime::TestEngine final : private Keeper, public SteppedEngine {
 public:
  explicit TestEngine(std::shared_ptr<State> state)
      : Keeper{state}, SteppedEngine(state->actors_, state->options_, &state->time_ns_), state_(*state) {}
  detail::Stepper* stepper() override { return &state_; }

 private:
  State& state_;
};

SteppedRuntime::TestEngine& SteppedRuntime::State::engine_of(detail::Core& core) {
  return static_cast<TestEngine&>(core.engine());
}

// No worker can move before the next timer is due.
void SteppedRuntime::State::pass_until(int64_t time_ns) {
  const std::shared_ptr<detail::Core> present = core();
  const uint64_t to_timer_ns = present ? engine_of(*present).ns_to_next_timer(held_) : ~uint64_t(0);
  const auto to_timer = std::chrono::nanoseconds(int64_t(std::clamp<uint64_t>(to_timer_ns, 1, INT64_MAX)));
  set_time(std::min(time_ns, detail::after(now_ns(), to_timer)));
}

std::unique_ptr<Engine> SteppedRuntime::State::make_engine() {
  return std::make_unique<TestEngine>(shared_from_this());
}

bool SteppedRuntime::State::something_waits() const {
  const std::shared_ptr<detail::Core> present = core();
  if (!present) return false;
  for (uint32_t worker = 0; worker < options_.workers; ++worker) {
    if (!held_[worker] && engine_of(*present).has_waiting(worker)) return true;
  }
  return false;
}

std::shared_ptr<detail::Incarnations> SteppedRuntime::State::launch() {
  auto core = detail::make_core(actors_, options_, make_engine());
  auto incarnations = std::make_shared<detail::Incarnations>(
      std::move(core), [state = weak_from_this()] { return state.lock()->make_engine(); });
  incarnations_ = incarnations;
  incarnations->listen();
  return incarnations;
}

std::optional<Step> SteppedRuntime::State::step(uint32_t worker, uint32_t polls) {
  const std::shared_ptr<detail::Core> core = this->core();
  if (!core) return std::nullopt;
  TestEngine& engine = engine_of(*core);
  if (engine.failure() || engine.stopped(worker)) return std::nullopt;
  const HostBridge& bridge = core->host().bridges[worker];
  const size_t handlers = actors_.handlers().size();
  const HandlerCounts* const counts = engine.counts(worker);
  const uint64_t first_ticket = bridge.consumed();
  const std::vector<uint64_t> taken = taken_of(counts, handlers);
  const uint64_t processed = processed_of(counts, handlers), mail_ended = mail_ended_of(bridge);
  for (uint32_t poll = 0; poll < polls; ++poll) {
    PollOutcome outcome = PollOutcome::nothing;
    try {
      outcome = engine.step(worker);
    } catch (...) {
      fail_engine(fmt::format("a handler of worker {} threw an exception", worker));
      throw;
    }
    if (outcome != PollOutcome::message) continue;
    Step done =
        describe(*core, worker, first_ticket, bridge.consumed() - first_ticket, taken, processed, mail_ended);
    do_work_of_threads();
    return done;
  }
  return std::nullopt;
}

std::string SteppedRuntime::State::message_name(uint16_t actor_type, uint16_t message_type) const {
  if (message_type == call_message::reply) return "reply";
  const std::string_view name = actors_.message_name(actor_type, message_type);
  return name.empty() ? fmt::format("#{}", message_type) : std::string(name);
}

// A message of the host lies in the ring still. Of one between actors the worker's counts say which handler
// took it, and its last-words record which actor, if the message was processed.
Step SteppedRuntime::State::describe(detail::Core& core, uint32_t worker, uint64_t first_ticket,
                                     uint64_t tickets, const std::vector<uint64_t>& taken_before,
                                     uint64_t processed_before, uint64_t mail_ended_before) const {
  const detail::HostSide& host = core.host();
  const HostBridge& bridge = host.bridges[worker];
  Step step;
  step.worker = worker;
  if (tickets != 0) {
    std::vector<Packet> payload(host.shape().packets());
    bridge.read_back(first_ticket, payload.front().data);
    const Envelope envelope = envelope_of(payload.front().data);
    const bool is_control = (envelope.flags & envelope_flags::control) != 0;
    if (is_control && envelope.message_type != uint16_t(Control::read_state)) {
      step.message = "a control message";
      return step;
    }
    step.actor = host.actors.actor_name(envelope.actor_type);
    step.key = envelope.key;
    step.message = is_control ? "read_state" : message_name(envelope.actor_type, envelope.message_type);
    step.messages = uint32_t(tickets);
    return step;
  }
  const std::vector<Handler>& handlers = actors_.handlers();
  const HandlerCounts* const counts = engine_of(core).counts(worker);
  const std::vector<uint64_t> taken = taken_of(counts, handlers.size());
  const auto changed = std::mismatch(taken.begin(), taken.end(), taken_before.begin()).first;
  if (changed == taken.end()) {
    const Rights rights = actors_.rights();
    const bool is_for_many =
        rights.sends_to_many && (!rights.asks || mail_ended_of(bridge) == mail_ended_before);
    step.message =
        is_for_many ? "a message that it hands to many actors" : "an answer for an ask that it holds";
    return step;
  }
  const Packet last = Memory::load(bridge.bridge().last_words->packet);
  uint16_t actor_type = uint16_t(last.data[2]), message_type = uint16_t(last.data[2] >> 16);
  bool is_last = true;
  if (const auto n = size_t(changed - taken.begin()); n < handlers.size()) {
    is_last = actor_type == handlers[n].actor_type && message_type == handlers[n].message_type;
    actor_type = handlers[n].actor_type;
    message_type = handlers[n].message_type;
  }
  step.actor = host.actors.actor_name(actor_type);
  step.message = message_name(actor_type, message_type);
  const bool processed = processed_of(counts, handlers.size()) != processed_before;
  if (is_last && processed && last.stamp == LastWords::one)
    step.key = uint64_t(last.data[0]) | uint64_t(last.data[1]) << 32;
  return step;
}

void SteppedRuntime::State::fail_engine(std::string_view cause) {
  engine_of(*core()).fail(std::string(cause));
  do_work_of_threads();
}

void SteppedRuntime::State::fail_engine_at(uint32_t worker, std::string_view cause) {
  check(worker, "failing the engine at");
  const detail::HostSide& host = core()->host();
  const HostBridge& bridge = host.bridges[worker];
  std::vector<Packet> payload(host.shape().packets());
  if (waiting(worker) == 0 ||
      bridge.read_back(bridge.consumed(), payload.front().data) != ReceiveOutcome::message) {
    throw Error(fmt::format(
        "failing the engine at a message of worker {}: its ring is empty; send it one first, or use "
        "fail_engine()",
        worker));
  }
  const Envelope envelope = envelope_of(payload.front().data);
  Memory::store(bridge.bridge().last_words->packet,
                Packet{{uint32_t(envelope.key), uint32_t(envelope.key >> 32),
                        uint32_t(envelope.actor_type) | uint32_t(envelope.message_type) << 16},
                       LastWords::one});
  fail_engine(cause);
}

std::string SteppedRuntime::State::text_of_workers() const {
  std::string text;
  TestEngine& engine = engine_of(*core());
  for (uint32_t worker = 0; worker < options_.workers; ++worker) {
    if (!text.empty()) text += ", ";
    text += fmt::format("worker {} ", worker);
    if (engine.failure()) {
      text += "is dead";
    } else if (engine.stopped(worker)) {
      text += "has stopped";
    } else if (held_[worker]) {
      text += fmt::format("is held and has {} messages of the host", waiting(worker));
    } else {
      text += engine.has_waiting(worker) ? "waits for room at another" : "has nothing to do";
    }
  }
  return text;
}

SteppedRuntime::SteppedRuntime(ActorSet actors, const Options& options, Order order) {
  checked(actors, options);
  state_ = std::make_shared<State>(std::move(actors), options, order);
  runtime_.emplace(Runtime(state_->launch()));
}

SteppedRuntime::~SteppedRuntime() = default;

Runtime& SteppedRuntime::runtime() { return *runtime_; }
Client SteppedRuntime::client() const { return runtime_->client(); }
uint32_t SteppedRuntime::workers() const { return state_->workers(); }
std::optional<Step> SteppedRuntime::step() { return state_->step(); }
std::optional<Step> SteppedRuntime::step(uint32_t worker) { return state_->step(worker); }

uint64_t SteppedRuntime::run_until_idle(uint64_t most) {
  uint64_t steps = 0;
  for (; state_->step(); ++steps) {
    if (steps == most) {
      throw Error(fmt::format(
          "running until no worker can move: some still do after {} steps; if actors do send each other "
          "messages without an end, use run_until()",
          most));
    }
  }
  return steps;
}

void SteppedRuntime::set_order(Order order) { state_->set_order(order); }
void SteppedRuntime::hold(uint32_t worker) { state_->hold(worker, true); }
void SteppedRuntime::release(uint32_t worker) { state_->hold(worker, false); }
bool SteppedRuntime::is_held(uint32_t worker) const { return state_->is_held(worker); }
uint64_t SteppedRuntime::waiting(uint32_t worker) const { return state_->waiting(worker); }

std::chrono::nanoseconds SteppedRuntime::now() const {
  return std::chrono::nanoseconds(state_->now_ns() - int64_t(first_time_ns));
}
void SteppedRuntime::advance(std::chrono::nanoseconds time) { state_->advance(time); }

void SteppedRuntime::fail_engine(std::string_view cause) { state_->fail_engine(cause); }
void SteppedRuntime::fail_engine_at(uint32_t worker, std::string_view cause) {
  state_->fail_engine_at(worker, cause);
}

Books SteppedRuntime::books() const { return runtime_->books(); }
Stats SteppedRuntime::stats() const { return runtime_->stats(); }

void SteppedRuntime::fail_to_move(std::string_view awaited) const {
  throw Error(fmt::format(
      "waiting for {}: no worker can move: {}; release() a worker that is held, send what the actors wait "
      "for, or advance() the time",
      awaited, state_->text_of_workers()));
}

}  // namespace gyre::testing
