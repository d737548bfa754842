// How long what a runtime leaves behind lives: until nobody holds anything of it.

#include <atomic>
#include <barrier>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

// Says when it is gone, and the core with it.
class WatchedEngine final : public Engine {
 public:
  WatchedEngine(const Options& options, std::atomic<int>& gone)
      : engine_(probe_actors(), options), gone_(gone) {}
  ~WatchedEngine() override { ++gone_; }
  EngineKind kind() const override { return engine_.kind(); }
  TransportKind transport() const override { return engine_.transport(); }
  std::string device_name() const override { return engine_.device_name(); }
  void* region() override { return engine_.region(); }
  BufferMemory& buffer_memory() override { return engine_.buffer_memory(); }
  double compile_ms() const override { return 0; }
  void launch() override { engine_.launch(); }
  bool finished() override { return engine_.finished(); }
  std::optional<std::string> failure() override { return std::nullopt; }
  void leak() override {}
  PollOutcome step() { return engine_.step(); }

 private:
  SteppedEngine engine_;
  std::atomic<int>& gone_;
};

using Asked = Future<Reply<ProbeResponse>>;

struct Watched {
  std::atomic<int> gone{0};
  WatchedEngine* engine = nullptr;
  std::shared_ptr<detail::Core> core;

  Watched() {
    const Options options{.slots = 256, .timeout = 5s};
    auto made = std::make_unique<WatchedEngine>(options, gone);
    engine = made.get();
    core = detail::make_core(probe_actors(), options, std::move(made));
  }
  Asked ask_one(uint64_t argument) {
    return client_of(core).ask<ProbeRequest>(probe, asking(Action::ANSWER, argument), 10s);
  }
  void work() {
    for (int nothing = 0; nothing < 4;) nothing = engine->step() == PollOutcome::nothing ? nothing + 1 : 0;
  }
  // Answered, and not taken yet.
  std::vector<Asked> ask(size_t count) {
    std::vector<Asked> asked;
    for (size_t i = 0; i < count; ++i) asked.push_back(ask_one(i));
    work();
    return asked;
  }
  void end() {
    core->terminate(5s);
    core.reset();
  }
};

constexpr size_t many = detail::thread_numbers + 8;  // more threads than have numbers

// So many threads, all of them there from beginning to end: `work(t)` in each.
template <class Work>
void in_many_threads(Work work) {
  std::barrier all{std::ptrdiff_t(many)};
  std::atomic<size_t> unnumbered{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < many; ++t) {
    threads.emplace_back([&, t] {
      unnumbered += detail::thread_number() == detail::thread_numbers;
      all.arrive_and_wait();
      work(t);
      all.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(unnumbered >= 8);
}

}  // namespace

TEST_CASE("a runtime's memory goes with its last share where nobody holds a call") {
  Watched watched;
  for (Asked& asked : watched.ask(3)) CHECK(asked.get().has_value());
  watched.end();
  CHECK(watched.gone == 1);
}

TEST_CASE("replies and futures that are held keep the runtime's memory, and the last of them frees it") {
  Watched watched;
  auto asked = watched.ask(4);
  auto reply = std::make_optional(asked[0].get());
  watched.end();
  CHECK(watched.gone == 0);
  auto late = std::make_optional(asked[1].get());
  REQUIRE(reply->has_value());
  REQUIRE(late->has_value());
  CHECK(reply->value()->getValue() == 1);
  CHECK(late->value()->getValue() == 3);
  asked.clear();
  CHECK(watched.gone == 0);
  reply.reset();
  CHECK(watched.gone == 0);
  CHECK(late->value()->getValue() == 3);
  late.reset();
  CHECK(watched.gone == 1);
}

TEST_CASE("an ask that was given up and never decided does not keep its runtime's memory") {
  Watched watched;
  (void)watched.ask_one(1);  // no step: nobody answers it
  watched.core.reset();      // and nobody terminates, which would decide it
  CHECK(watched.gone == 1);
}

TEST_CASE("what can give up an ask does nothing once its runtime is gone, and harms nothing") {
  Watched watched;
  auto asked = watched.ask(1);
  watched.end();
  const Canceller canceller = asked[0].canceller();
  CHECK_FALSE(canceller.cancel());
  CHECK_FALSE(asked[0].cancel());
  CHECK(asked[0].get().has_value());
  CHECK(watched.gone == 1);
}

TEST_CASE("what is left of a runtime goes with its last future, whichever threads sent and dropped them") {
  Watched watched;
  std::vector<Asked> asked(many);
  std::vector<uint64_t> values(many);
  in_many_threads([&](size_t t) { asked[t] = watched.ask_one(t); });
  watched.work();
  watched.end();
  CHECK(watched.gone == 0);
  in_many_threads([&](size_t t) {
    if (t != 0) values[t] = asked[t].get().value()->getValue();
  });
  for (size_t t = 1; t < many; ++t) CHECK(values[t] == 2 * t + 1);
  CHECK(watched.gone == 0);
  CHECK(asked[0].get().value()->getValue() == 1);
  CHECK(watched.gone == 1);
}

TEST_CASE("threads that give calls back while the last share goes free the memory once, numbered or not") {
  const bool without_membarrier = GENERATE(false, true);
  const bool before = detail::must_fence.load();
  for (int round = 0; round < 10; ++round) {
    Watched watched;
    if (without_membarrier) detail::must_fence = true;
    auto asked = watched.ask(3 * many);
    watched.core->terminate(5s);
    std::atomic<int> wrong{0};
    in_many_threads([&](size_t t) {
      Asked mine[3] = {std::move(asked[3 * t]), std::move(asked[3 * t + 1]), std::move(asked[3 * t + 2])};
      if (t == many / 2) watched.core.reset();
      const auto reply = mine[0].get();
      if (!reply || reply.value()->getValue() != 6 * t + 1) ++wrong;
      mine[1] = Asked();
    });
    CHECK(wrong == 0);
    CHECK(watched.gone == 1);
  }
  detail::must_fence = before;
}

TEST_CASE("the memory stays until every release that began before the last share went has ended") {
  const bool numbered = GENERATE(true, false);
  INFO((numbered ? "a thread with a number" : "a thread without"));
  Watched watched;
  auto asked = watched.ask(3);
  watched.core->terminate(5s);
  detail::Core& core = *watched.core;  // there as long as somebody is at it
  std::atomic<const detail::Teardown*>& mark = detail::release_marks[detail::thread_number()].teardown;
  if (numbered) {
    mark = &core.teardown();
  } else {
    ++core.teardown().unnumbered;
  }
  std::thread dropping([&] { watched.core.reset(); });
  while (!core.teardown().begun) std::this_thread::yield();
  std::vector<std::thread> late;
  for (size_t i = 0; i < 2; ++i) late.emplace_back([&, i] { asked[i] = Asked(); });
  CHECK(watched.gone == 0);
  CHECK_FALSE(core.teardown().counted);
  if (numbered) {
    mark = nullptr;
  } else {
    --core.teardown().unnumbered;
  }
  dropping.join();
  for (std::thread& thread : late) thread.join();
  CHECK(watched.gone == 0);
  CHECK(asked[2].get().value()->getValue() == 5);
  CHECK(watched.gone == 1);
}
