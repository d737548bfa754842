// What becomes of messages whose deadline has passed, with workers that move when the test says so.
#include <gyre/runtime/core/clock.hpp>

#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

TEST_CASE("an ask that expired before the worker came to it is not handled, and is a dead letter") {
  Stepped s;
  auto late = s.client->ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), 1ms);
  auto early = s.client->ask<ProbeRequest>(probe, asking(Action::ANSWER, 2), 10s);
  pass(3ms);
  s.work();
  const auto reply = late.get();
  REQUIRE_FALSE(reply);
  CHECK(reply.error().status == Status::timed_out);
  CHECK(early.get().value()->getValue() == 5);
  const auto letters = s.core->take_dead_letters();
  REQUIRE(letters.size() == 1);
  INFO(letters[0].text());
  CHECK(letters[0].reason == Status::expired);
  CHECK(letters[0].detail >= 1000);  // us late
  CHECK(letters[0].message_type == "ProbeRequest");
  const Books books = s.core->terminate(5s).books;
  CHECK(books.asks.timed_out == 1);
  CHECK(books.asks.answered == 1);
  CHECK(books.balanced());
}

TEST_CASE("a tell with a deadline is handled before it, and a dead letter with its body after it") {
  Stepped s;
  REQUIRE(s.client->tell<ProbeNote>(probe, noting(7), TellOptions{{}, 10s}));
  s.work();
  REQUIRE(s.client->tell<ProbeNote>(probe, noting(1000), TellOptions{{}, 1ms}));
  REQUIRE(s.client->tell<ProbeNote>(probe, noting(20)));  // no deadline
  pass(3ms);
  s.work();
  auto sum = s.ask(Action::SUM_OF_NOTES, 0);
  s.work();
  CHECK(sum.get().value()->getValue() == 27);
  const auto letters = s.core->take_dead_letters();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].reason == Status::expired);
  SegmentReader message(reinterpret_cast<const capnp::word*>(letters[0].body.data()),
                        letters[0].body.size() / sizeof(capnp::word));
  CHECK(message.getRoot<ProbeNote>().getValue() == 1000);
  const Books books = s.core->terminate(5s).books;
  CHECK(books.tells.processed == 2);
  CHECK(books.tells.dead_letters == 1);
  CHECK(books.balanced());
}

TEST_CASE("an expired message that has its body in the arena gives its block back") {
  Stepped s;
  auto late = s.client->ask<ProbeRequest>(
      Address<Probe>{8},
      [](ProbeRequest::Builder request) {
        request.setAction(Action::ECHO);
        request.initFiller(10'000);
      },
      1ms);
  CHECK(s.core->arena().bytes_in_use() > 0);
  pass(3ms);
  s.work();
  CHECK(late.get().error().status == Status::timed_out);
  CHECK(s.core->arena().bytes_in_use() == 0);
  const auto letters = s.core->take_dead_letters();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].envelope.key == 8);
  CHECK(letters[0].text().find("gyre_test::Probe at key 8, ProbeRequest: expired: ") == 0);
}

TEST_CASE("deadlines too far away to be compared are none") {
  using namespace std::chrono;
  using detail::deadline_us;
  CHECK(deadline_us(0, nanoseconds(hours(2)).count()) == 0);
  CHECK(deadline_us(0, nanoseconds(minutes(1)).count()) == 60'000'000);
  const int64_t late = int64_t(1) << 52;
  CHECK(deadline_us(late - 5'000'000, late) == uint32_t(late / 1000));
  const int64_t zero = (int64_t(1) << 32) * 1000;  // 2^32 us: 0 would say that there is no deadline
  CHECK(deadline_us(zero - 1000, zero) == 1);
}

namespace {

// Workers with a clock of their own, as a GPU's; they are moved when the host asks whether the engine failed,
// until the test holds them.
class OwnClockEngine final : public Engine {
 public:
  explicit OwnClockEngine(const Options& options) : engine_(probe_actors(), options) {}
  bool shares_host_clock() const override { return false; }
  EngineKind kind() const override { return engine_.kind(); }
  TransportKind transport() const override { return engine_.transport(); }
  std::string device_name() const override { return engine_.device_name(); }
  void* region() override { return engine_.region(); }
  BarInbound bar_inbound() const override { return engine_.bar_inbound(); }
  BufferMemory& buffer_memory() override { return engine_.buffer_memory(); }
  double compile_ms() const override { return 0; }
  void launch() override { engine_.launch(); }
  bool finished() override { return engine_.finished(); }
  std::optional<std::string> failure() override {
    if (!held) engine_.step();
    return std::nullopt;
  }
  void leak() override {}

  bool held = false;

 private:
  SteppedEngine engine_;
};

// A runtime with one such worker, held.
struct OwnClock {
  explicit OwnClock(TransportKind transport)
      : options{.transport = transport, .slots = 4, .timeout = 5s}, layout(options.region_layout(2)) {
    auto made = std::make_unique<OwnClockEngine>(options);
    engine = made.get();
    core = detail::make_core(probe_actors(), options, std::move(made));
    engine->held = true;
    client = std::make_unique<Client>(client_of(core));
  }
  ~OwnClock() {
    engine->held = false;
    core->terminate(5s);
  }
  uint32_t said_us() const {
    const BarInbound bar = engine->bar_inbound();
    const CommandLine* const line = bar.address == nullptr
                                        ? Bridge::of(engine->region(), core->layout(), 0).command_line
                                        : bar.of_worker(core->layout(), 0).command_line;
    return CommandLine::host_us_in(Memory::load_acquire(line->command));
  }
  Envelope sent(uint64_t ticket) const {
    std::vector<uint32_t> payload(core->shape().packets() * words_a_packet);
    const Bridge bridge = Bridge::of(engine->region(), core->layout(), 0);
    REQUIRE(receive<Memory>(bridge.h2d, bridge.shape, ticket, payload.data()) == ReceiveOutcome::message);
    return envelope_of(payload.data());
  }
  static uint32_t now_us() { return uint32_t(uint64_t(detail::host_now_ns()) / 1000); }

  Options options;
  RegionLayout layout;
  OwnClockEngine* engine;
  std::shared_ptr<detail::Core> core;
  std::unique_ptr<Client> client;
};

}  // namespace

TEST_CASE("deadlines are by the host's clock, and it says the time before it sends one") {
  const auto transport = GENERATE(TransportKind::automatic, TransportKind::bar);
  OwnClock s(transport);
  CHECK(s.said_us() != 0);  // the launch says it: before that a worker knows nothing of the host's clock
  pass(3ms);
  const uint32_t begin_us = OwnClock::now_us();
  auto ask = s.client->ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), 500ms);
  CHECK(int32_t(s.said_us() - begin_us) >= 0);
  CHECK(int32_t(OwnClock::now_us() - s.said_us()) >= 0);
  CHECK(int32_t(s.sent(0).deadline_us - (begin_us + 500'000)) >= 0);
  CHECK(int32_t(OwnClock::now_us() + 500'000 - s.sent(0).deadline_us) >= 0);
  pass(3ms);
  const uint32_t later_us = OwnClock::now_us();
  REQUIRE(s.client->tell<ProbeNote>(probe, noting(1), TellOptions{{}, 1h}));
  CHECK(s.sent(1).deadline_us == 0);  // too far away
  REQUIRE(s.client->tell<ProbeNote>(probe, noting(1), TellOptions{{}, 20min}));
  CHECK(int32_t(s.said_us() - later_us) >= 0);
  CHECK(s.sent(2).deadline_us - later_us >= 1'200'000'000);
  auto answered = s.client->ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), 60s);
  CHECK(int32_t(s.sent(3).deadline_us - (later_us + 60'000'000)) >= 0);
  s.engine->held = false;
  CHECK(answered.get().value()->getValue() == 3);
}

TEST_CASE("waiting threads publish the time, so that late messages behind a long handler expire") {
  OwnClock s(TransportKind::automatic);
  auto ask = s.client->ask<ProbeRequest>(probe, asking(Action::ANSWER, 1), 20ms);
  const uint32_t before_us = s.said_us();
  CHECK(ask.get().error().status == Status::timed_out);
  CHECK(int32_t(s.said_us() - before_us) > 0);
  s.engine->held = false;
}

TEST_CASE("the age of a heartbeat is known again soon after a GPU's clock has stepped") {
  constexpr int64_t second = 1'000'000'000, begin = 5000 * second;
  for (const int64_t step : {10 * second, -10 * second}) {
    detail::WorkerClock clock;
    int64_t t = begin;
    const auto theirs = [&](int64_t host_ns) { return 7 * second + host_ns; };
    for (; t < begin + 100 * second; t += second) {
      // One in four was delayed by a handler.
      clock.sample(t, theirs(t + (t / second % 4 == 0 ? 2 * second : 40'000)));
      if (t > begin + second) REQUIRE(clock.host_ns(theirs(t)) == t - 40'000);
    }
    for (int n = 0; n < 8; ++n, t += second) clock.sample(t, theirs(t + 40'000) + step);
    CHECK(clock.host_ns(theirs(t) + step) == t - 40'000);
  }
}
