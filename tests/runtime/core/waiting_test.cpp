// How threads wait: a moment by polling, then asleep, until they are woken.
#include <sys/prctl.h>
#include <gyre/runtime/core/backoff.hpp>
#include <gyre/runtime/cpu/doorbell.hpp>
#include <gyre/runtime/system/futex.hpp>
#include <gyre/runtime/system/waited_sleep.hpp>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;
using detail::WaitedSleep;

namespace {

constexpr uint64_t no_timer = ~uint64_t(0);

// A worker in a region of its own, whose sleep is the test's.
class WorkerThatSleeps final : public WorkerSleep {
 public:
  WorkerThatSleeps()
      : WorkerSleep(true),
        region_(layout_.region_bytes(), layout_.rings_bytes()),
        memory_(actors_, options_) {
    initialise_region(region_.address(), layout_);
    auto* const types =
        reinterpret_cast<HandlerTypes*>(static_cast<char*>(region_.address()) + layout_.handler_types());
    for (size_t n = 0; n < actors_.handlers().size(); ++n)
      types[n] = {actors_.handlers()[n].request, actors_.handlers()[n].response};
    memory_.describe(engine_memory_);
  }

  // Runs the worker until it is commanded to stop.
  void run() {
    const Bridge bridge = Bridge::of(region_.address(), layout_, 0);
    actors_.make_cpu_worker(bridge, engine_memory_.of_worker(0), WaitPolicy::polite)->run(*this);
  }
  void ask(uint64_t correlation) {
    uint32_t payload[packets_for(0) * words_a_packet] = {};
    const Envelope envelope{correlation, 0, 0, 0, 0, 0xffff, 0, 0, envelope_flags::ask};  // no such handler
    std::memcpy(payload, &envelope, sizeof envelope);
    uint64_t ticket = 0;
    REQUIRE(bridge.try_claim(ticket) == ClaimOutcome::claimed);
    bridge.publish(ticket, {payload, 0});
  }
  void sleeps_somebody(bool does) { sleepers_ = does ? 1 : 0; }
  void spin_pays(bool does) { spin_pays_ = does; }
  // Requests whose slots, and whose memory, the worker has given back.
  uint64_t given_back() const {
    return Memory::load_acquire(Bridge::of(region_.address(), layout_, 0).worker_line->h2d_credit);
  }

  void wake(uint64_t correlation) override { woken.push_back(correlation); }
  bool prepare_sleep() override {
    did += "prepare, ";
    return on_prepare();
  }
  bool sleep(uint64_t) override {
    did += "sleep, ";
    return on_sleep();
  }
  void yield() override {
    did += "yield, ";
    on_yield();
  }
  void end_sleep() override { did += "end, "; }

  std::string did;
  std::vector<uint64_t> woken;
  std::function<bool()> on_prepare = [] { return true; };
  std::function<void()> on_yield = [] {};
  std::function<bool()> on_sleep;

 private:
  const ActorSet actors_ = probe_actors();
  const Options options_{.slots = 64};  // so many that a quarter of the ring is more than the tests send
  const RegionLayout layout_ = options_.region_layout(actors_.handlers().size());
  HeapRegion region_;
  ActorMemory memory_;
  EngineMemory engine_memory_{};

 public:
  HostBridge bridge{Bridge::of(region_.address(), layout_, 0)};
};

}  // namespace

TEST_CASE("a worker that finds nothing prepares to sleep, polls once more and sleeps until it is woken") {
  WorkerThatSleeps w;
  w.on_sleep = [&] {
    w.bridge.commands().command(Command::stop);
    return false;
  };
  w.run();
  CHECK(w.did == "prepare, sleep, ");
}

TEST_CASE("a worker gives back the slots of what it handled before it yields or sleeps") {
  WorkerThatSleeps w;
  w.spin_pays(false);
  std::vector<uint64_t> at_yield, at_prepare;
  w.on_yield = [&] { at_yield.push_back(w.given_back()); };
  w.on_prepare = [&] {
    at_prepare.push_back(w.given_back());
    return true;
  };
  int sleeps = 0;
  w.on_sleep = [&] {
    if (++sleeps == 3) {
      w.bridge.commands().command(Command::stop);
    } else {
      w.ask(uint64_t(sleeps));
    }
    return false;
  };
  w.run();
  CHECK(at_yield == std::vector<uint64_t>{1, 2});
  CHECK(at_prepare == std::vector<uint64_t>{0, 1, 2});
}

TEST_CASE("a worker that wakes by itself polls, and sleeps again without preparing anew") {
  WorkerThatSleeps w;
  int sleeps = 0;
  w.on_sleep = [&] {
    if (++sleeps == 3) w.bridge.commands().command(Command::stop);
    return sleeps != 3;
  };
  w.run();
  CHECK(w.did == "prepare, sleep, sleep, sleep, ");
}

TEST_CASE("what comes while a worker prepares to sleep it finds before it sleeps") {
  WorkerThatSleeps w;
  int times = 0;
  w.on_prepare = [&] {
    if (++times == 1) w.ask(7);
    return true;
  };
  w.on_sleep = [&] {
    w.bridge.commands().command(Command::stop);
    return true;
  };
  w.run();
  CHECK(w.did == "prepare, end, prepare, sleep, ");
  CHECK(w.woken.empty());  // nobody sleeps
}

TEST_CASE("a worker wakes the thread that sleeps until its reply, and no thread for a tell") {
  WorkerThatSleeps w;
  int times = 0;
  w.sleeps_somebody(true);
  w.on_sleep = [&] {
    ++times;
    if (times == 1) {
      w.ask(42);
      w.ask(43);
    } else {
      w.bridge.commands().command(Command::stop);
    }
    return false;
  };
  w.run();
  CHECK(w.woken == std::vector<uint64_t>{42, 43});
}

TEST_CASE("where a worker may not sleep it tries again, and takes what comes") {
  WorkerThatSleeps w;
  int times = 0;
  w.on_prepare = [&] {
    if (++times == 2) w.ask(9);
    if (times == 4) w.bridge.commands().command(Command::stop);
    return false;
  };
  w.run();
  CHECK(w.did == "prepare, prepare, prepare, prepare, ");
  CHECK(w.bridge.consumed() == 1);
}

TEST_CASE("a bell that rings ends its worker's sleep, also one that has not begun") {
  Doorbell bell;
  bell.ring();  // for a worker that is awake
  REQUIRE(bell.prepare_sleep());
  bell.ring();
  CHECK_FALSE(bell.sleep(no_timer));  // woken, not at the end of heartbeat_ns
  for (int round = 0; round < 1000; ++round) {
    std::atomic<bool> prepared{false};
    std::thread worker([&] {
      if (!bell.prepare_sleep()) return;
      prepared = true;
      while (bell.sleep(no_timer)) {
      }
    });
    while (!prepared) std::this_thread::yield();
    bell.ring();
    worker.join();
  }
}

namespace {
std::atomic<int64_t> doorbell_clock_ns{0};

// Sleeps, is woken by a message `after_ns` later, and says whether to spin before the next sleep.
bool spin_pays_after(Doorbell& bell, int64_t after_ns) {
  REQUIRE(bell.prepare_sleep());
  doorbell_clock_ns += after_ns;
  bell.ring();
  CHECK_FALSE(bell.sleep(no_timer));
  return bell.spin_pays();
}
}  // namespace

TEST_CASE("a worker whose spin was in vain sleeps at once, until a spin would have met a message") {
  doorbell_clock_ns = 1'000'000'000;
  Doorbell bell([] { return doorbell_clock_ns.load(); });
  constexpr int64_t soon_ns = Doorbell::soon_ns - 1, late_ns = Doorbell::soon_ns;
  CHECK(bell.spin_pays());
  CHECK_FALSE(spin_pays_after(bell, late_ns));
  CHECK_FALSE(spin_pays_after(bell, late_ns));
  CHECK(spin_pays_after(bell, soon_ns));        // it slept at once
  CHECK_FALSE(spin_pays_after(bell, soon_ns));  // it had spun before it slept: the message came later
  REQUIRE(bell.prepare_sleep());
  bell.end_sleep();  // its last poll found a message
  CHECK(bell.spin_pays());
}

TEST_CASE("a worker is waking from when it is woken until it runs, and need not be woken again") {
  Doorbell bell;
  bell.ring();
  CHECK_FALSE(bell.queued());  // it is awake
  REQUIRE(bell.prepare_sleep());
  CHECK_FALSE(bell.queued());
  bell.ring();
  CHECK(bell.queued());
  bell.ring();
  CHECK(bell.queued());
  CHECK_FALSE(bell.sleep(no_timer));
  CHECK_FALSE(bell.queued());
  REQUIRE(bell.prepare_sleep());
  CHECK(bell.sleep(no_timer));  // nothing is left of the second ring
}

TEST_CASE("who yields for its worker still reads the clock, and sleeps in the end") {
  Backoff backoff(WaitPolicy::polite);
  int yields = 0, since_clock_read = 0;
  for (; !backoff.spun(); ++yields) {
    backoff.yield();
    since_clock_read = backoff.should_read_clock() ? 0 : since_clock_read + 1;
    REQUIRE(since_clock_read < 4);
    REQUIRE(yields < 1000);
  }
  CHECK(yields > 10);
}

TEST_CASE("a worker that nobody wakes wakes for its heartbeat, and may sleep on") {
  Doorbell bell;
  REQUIRE(bell.prepare_sleep());
  CHECK(bell.sleep(no_timer));
  CHECK(bell.sleep(no_timer));
}

TEST_CASE("a list wakes who sleeps for it, whenever something is added") {
  detail::CompletionList list;
  list.prepare_sleep();
  detail::Deliverable first;
  list.push(first);
  CHECK_FALSE(list.empty());
  CHECK(list.sleep(INT64_MAX));  // it does not begin
  list.end_sleep();
  REQUIRE(list.take_all() == &first);
  for (int round = 0; round < 1000; ++round) {
    detail::Deliverable added;
    std::thread adder([&] { list.push(added); });
    list.prepare_sleep();
    while (list.empty()) list.sleep(INT64_MAX);
    list.end_sleep();
    CHECK(list.take_all() == &added);
    adder.join();
  }
}

TEST_CASE(
    "where nothing wakes it, a thread sleeps for a tenth of what it has waited, to its deadline at most") {
  constexpr int64_t begin_ns = 1'000'000'000, deadline_ns = begin_ns + 900'000'000;
  WaitedSleep sleep(false);
  CHECK(sleep.end(begin_ns, deadline_ns) == 0);
  CHECK(sleep.end(begin_ns + 49'000, deadline_ns) == 0);  // a sleep would be shorter than it is worth
  CHECK(sleep.end(begin_ns + 50'000, deadline_ns) == begin_ns + 55'000);
  CHECK(sleep.end(begin_ns + 1'000'000, deadline_ns) == begin_ns + 1'100'000);
  CHECK(sleep.end(begin_ns + 800'000'000, deadline_ns) == begin_ns + 802'000'000);
  CHECK(sleep.end(begin_ns + 899'000'000, deadline_ns) == deadline_ns);
}

TEST_CASE("where it is woken, a thread sleeps at once, and looks after the runtime from time to time") {
  WaitedSleep sleep(true);
  CHECK(sleep.end(1000, 2000) == 2000);
  CHECK(sleep.end(1000, INT64_MAX) == 1000 + WaitedSleep::longest_ns);
}

TEST_CASE("a thread that waited has the timer slack that it had before") {
  const int before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  Stepped s;
  CHECK(s.ask(Action::ANSWER, 1, 20ms).get().error().status == Status::timed_out);
  CHECK(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == before);
}

TEST_CASE("wait_for() returns after its time, or with the outcome") {
  Stepped s;
  auto future = s.ask(Action::ANSWER, 3);
  CHECK_FALSE(future.wait_for(1ms));
  s.work();
  CHECK(future.wait_for(1h));
  CHECK(future.get().value()->getValue() == 7);
  CHECK(future.wait_for(1h));  // of no ask
}

TEST_CASE("asks after pauses are answered, each right, by workers and to callers that sleep") {
  Runtime runtime =
      Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .workers = 2, .slots = 8, .timeout = 60s});
  constexpr uint64_t threads = 4, asks = 60;
  std::atomic<uint64_t> right{0};
  std::vector<std::thread> askers;
  for (uint64_t t = 0; t < threads; ++t) {
    askers.emplace_back([&, t] {
      Client client = runtime.client();
      const Address<Probe> to{.key = t};
      for (uint64_t i = 0; i < asks; ++i) {
        // Some take longer than callers spin; most come when the worker sleeps.
        const bool slow = i % 3 == 0;
        const auto request = slow ? asking(Action::WORK, 200'000) : asking(Action::ANSWER, t + i);
        auto future = client.ask<ProbeRequest>(to, request);
        if (i % 5 == 0) std::this_thread::sleep_for(300us);
        const auto reply = future.get();
        right += reply && reply.value()->getValue() == (slow ? 0 : 2 * (t + i) + 1);
        std::this_thread::sleep_for(std::chrono::microseconds(100 * (i % 7)));
      }
    });
  }
  for (std::thread& asker : askers) asker.join();
  CHECK(right == threads * asks);
  const Books books = runtime.terminate().books;
  CHECK(books.asks.answered == threads * asks);
  CHECK(books.balanced());
}

TEST_CASE("callbacks come to a poller that sleeps, whoever takes their replies") {
  Runtime runtime =
      Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .workers = 2, .slots = 8, .timeout = 60s});
  Client client = runtime.client();
  constexpr uint64_t asks = 50;
  std::atomic<uint64_t> called{0};
  for (uint64_t i = 0; i < asks; ++i) {
    const Address<Probe> to{.key = i};
    client.ask<ProbeRequest>(to, asking(Action::WORK, 150'000)).then([&](const auto& outcome) {
      if (outcome && outcome.value()->getValue() == 0) ++called;
      called.notify_one();
    });
    // Every other one is awaited by nobody but the poller.
    if (i % 2 == 0) CHECK(client.ask<ProbeRequest>(to, asking(Action::ANSWER, i)).get());
    for (uint64_t seen = called; seen != i + 1; seen = called) called.wait(seen);
  }
  CHECK(called == asks);
}
