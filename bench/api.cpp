// gyre-bench api: what each way to take an outcome costs over asking and waiting for it.
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <gyre/runtime/async/asio.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <atomic>
#include <coroutine>
#include <memory>
#include <optional>

#include "affinity.hpp"
#include "common_options.hpp"
#include "echo_asks.hpp"
#include "gyre_rows.hpp"
#include "gyre_run.hpp"
#include "machine.hpp"
#include "rows.hpp"
#include "subcommands.hpp"

namespace gyre::bench {

namespace {

using messages::EchoRequest;
using messages::EchoResponse;
using EchoOutcome = Result<Reply<EchoResponse>>;

constexpr Address<actors::Echo> echo{};

struct ApiSettings {
  Plan plan;
  uint32_t size = 64;
  uint32_t rounds = 1;
  std::string json_file;
};

auto ask(Client& client, const EchoMessage& message) {
  return client.ask<EchoRequest>(echo, filling(message));
}

/// One outcome, from the thread that brings it to the measuring one, which spins for it.
class Handed {
 public:
  void put(EchoOutcome outcome) {
    outcome_.emplace(std::move(outcome));
    there_.store(true, std::memory_order_release);
  }
  EchoOutcome take() {
    while (!there_.load(std::memory_order_acquire)) __builtin_ia32_pause();
    there_.store(false, std::memory_order_relaxed);
    EchoOutcome outcome = std::move(*outcome_);
    outcome_.reset();
    return outcome;
  }

 private:
  std::optional<EchoOutcome> outcome_;
  std::atomic<bool> there_{false};
};

struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }
  };
};
Detached await_one(Future<Reply<EchoResponse>> future, Handed& handed) {
  handed.put(co_await std::move(future));
}

/// An epoll loop over one descriptor.
class Loop {
 public:
  explicit Loop(int descriptor) : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0)
      throw Error(
          "measuring an epoll loop: the system gives none; raise the limit of descriptors (ulimit -n)");
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() { close(epoll_); }
  void wait() {
    epoll_event event{};
    (void)epoll_wait(epoll_, &event, 1, -1);
  }

 private:
  int epoll_;
};

// A row's name, and what its samples hold.
struct Way {
  const char* name;
  const char* remark;
  bool cancels = false;  // not every ask is answered
};

// Measures `one(client, message)`, each after `before(client, message)` of the message before, which is not
// timed.
template <class Before, class One>
Row measure_way(const Plan& plan, uint32_t size, const Way& way, Before&& before, One&& one) {
  Row row{.name = way.name, .size = size, .remark = way.remark};
  row.wait = name(plan.options.wait);
  row.workers = plan.options.workers;
  EchoMessage message(fmt::format("{} at {} bytes", way.name, size),
                      1 + (size - echo_overhead_bytes) / sizeof(uint64_t));
  const auto body = [&](Runtime& runtime) {
    row.transport = name(runtime.transport());
    Client client = runtime.client();
    const Pinned here(pthread_self(), plan.own_cpu);
    row.record(measure(
        plan,
        [&] {
          before(client, message);
          message.next();
        },
        [&] { one(client, message); }));
  };
  if (!way.cancels) {
    run_on_gyre(builtin_actors(), plan.options, row.name, body);
    return row;
  }
  Runtime runtime = Runtime::launch(builtin_actors(), plan.options);
  body(runtime);
  const Books books = runtime.terminate(plan.options.timeout).books;
  if (!books.balanced() || books.asks.answered + books.asks.cancelled != books.asks.accepted)
    throw Error(
        fmt::format("ending the {} row: {} asks accepted, {} answered, {} cancelled; please report it",
                    row.name, books.asks.accepted, books.asks.answered, books.asks.cancelled));
  return row;
}
template <class One>
Row measure_way(const Plan& plan, uint32_t size, const Way& way, One&& one) {
  return measure_way(
      plan, size, way, [](Client&, const EchoMessage&) {}, std::forward<One>(one));
}

Row measure_bare(const Plan& plan, uint32_t size) {
  return measure_way(plan, size, {"gyre", "ask, get()"}, [](Client& client, const EchoMessage& message) {
    expect_echo(message, ask(client, message).get());
  });
}

Row measure_beside_poller(const Plan& plan, uint32_t size) {
  bool started = false;
  return measure_way(
      plan, size,
      {"beside the poller", "ask, get(), while a poller thread lives that nothing is expected of"},
      [&started](Client& client, const EchoMessage& message) {
        if (std::exchange(started, true)) return;
        Handed handed;
        ask(client, message).then([&handed](EchoOutcome outcome) { handed.put(std::move(outcome)); });
        expect_echo(message, handed.take());
      },
      [](Client& client, const EchoMessage& message) { expect_echo(message, ask(client, message).get()); });
}

Row measure_callback(const Plan& plan, uint32_t size) {
  Handed handed;
  return measure_way(
      plan, size, {"callback", "then(), and a flag that the asker spins on"},
      [&handed](Client& client, const EchoMessage& message) {
        ask(client, message).then([&handed](EchoOutcome outcome) { handed.put(std::move(outcome)); });
        expect_echo(message, handed.take());
      });
}

Row measure_await(const Plan& plan, uint32_t size) {
  Handed handed;
  return measure_way(plan, size, {"co_await", "a coroutine a message, and a flag that the asker spins on"},
                     [&handed](Client& client, const EchoMessage& message) {
                       await_one(ask(client, message), handed);
                       expect_echo(message, handed.take());
                     });
}

Row measure_queue(const Plan& plan, uint32_t size, bool epoll) {
  CompletionQueue queue;
  Loop loop(queue.fd());
  return measure_way(plan, size,
                     epoll ? Way{"queue, epoll", "CompletionQueue; the asker sleeps in epoll_wait"}
                           : Way{"queue, polled", "CompletionQueue; the asker spins on take()"},
                     [&](Client& client, const EchoMessage& message) {
                       queue.watch(ask(client, message), message.sequence());
                       for (;;) {
                         if (epoll) loop.wait();
                         auto completion = queue.take();
                         if (!completion) continue;
                         if (completion->tag != message.sequence())
                           throw Error(message.name() + ": another message's outcome came; please report it");
                         return expect_echo(message, std::move(completion->outcome).as<EchoResponse>().get());
                       }
                     });
}

Row measure_asio_callback(const Plan& plan, uint32_t size) {
  boost::asio::io_context loop;
  return measure_way(plan, size, {"asio callback", "a handler of an io_context that the asker polls"},
                     [&loop](Client& client, const EchoMessage& message) {
                       std::optional<EchoOutcome> got;
                       async_ask<EchoRequest>(client, echo, filling(message),
                                              boost::asio::bind_executor(loop, [&got](EchoOutcome outcome) {
                                                got.emplace(std::move(outcome));
                                              }));
                       loop.restart();
                       while (!got) loop.poll();
                       expect_echo(message, *got);
                     });
}

Row measure_asio_future(const Plan& plan, uint32_t size) {
  return measure_way(
      plan, size, {"asio use_future", "the asker sleeps in std::future::get()"},
      [](Client& client, const EchoMessage& message) {
        expect_echo(message,
                    async_ask<EchoRequest>(client, echo, filling(message), boost::asio::use_future).get());
      });
}

// An ask that is given up at once, until its outcome is there; its late reply comes before the next.
Row measure_cancel(const Plan& plan, uint32_t size) {
  return measure_way(
      plan, size, {"ask, cancel", "given up at once; the late reply is waited for outside the sample", true},
      [](Client& client, const EchoMessage& message) { expect_echo(message, ask(client, message).get()); },
      [](Client& client, const EchoMessage& message) {
        auto future = ask(client, message);
        future.cancel();
        const auto outcome = future.get();
        if (outcome) return expect_echo(message, outcome);
        if (outcome.error().status != Status::cancelled)
          throw Error(message.name() + ": " + outcome.error().message());
      });
}

int api(ApiSettings& settings) {
  Plan& plan = settings.plan;
  std::string problems = plan.options.problems();
  if (settings.size % 8 != 0 || settings.size < echo_overhead_bytes + 8 ||
      (problems.empty() && settings.size > plan.options.ring_shape().body_capacity())) {
    problems +=
        fmt::format("  --size {}: must be a multiple of 8, 32 to what a slot carries\n", settings.size);
  }
  if (!problems.empty())
    throw BadOptions("measuring ways to take an outcome: these options are wrong:\n" + problems);
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  const Machine machine = machine_of(plan.options);
  plan.options.engine = machine.engine;
  plan.options.transport = machine.transport;

  print(out, machine);
  fmt::print(
      out,
      "{} messages a row and round after {} uncounted, one in flight, asked from one thread: from before "
      "the request is written until that thread has checked every word of its reply\n"
      "{} round{} of all rows in turn, each launched anew; a row's figures are its median round's by p50; "
      "ratios are to the first row\n"
      "not measured: several asks in flight, callbacks that ask themselves, starting the poller thread\n",
      plan.messages, plan.warm_up(), settings.rounds, settings.rounds == 1 ? "" : "s");
  const uint32_t size = settings.size;
  const std::vector<std::function<Row()>> cases = {
      [&] { return measure_bare(plan, size); },          [&] { return measure_beside_poller(plan, size); },
      [&] { return measure_callback(plan, size); },      [&] { return measure_await(plan, size); },
      [&] { return measure_queue(plan, size, false); },  [&] { return measure_queue(plan, size, true); },
      [&] { return measure_asio_callback(plan, size); }, [&] { return measure_asio_future(plan, size); },
      [&] { return measure_cancel(plan, size); },
  };
  Rows rows("gyre");
  const bool complete = measure_interleaved(rows, settings.rounds, cases);
  rows.print(out);
  tools::Json about = to_json(machine);
  about["clock_ns"] = clock_cost_ns();
  about["rounds"] = settings.rounds;
  tools::write_json(
      settings.json_file,
      {{"benchmark", "api"}, {"machine", about}, {"reference", rows.reference()}, {"rows", rows.to_json()}});
  if (!complete) {
    fmt::print(out, "interrupted: not all rows were measured\n");
    return tools::interrupted;
  }
  return tools::all_passed;
}

}  // namespace

void add_api(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<ApiSettings>();
  Options& options = settings->plan.options;
  options.wait = WaitPolicy::spin;
  const tools::ProgramCommand command = app.add_subcommand(
      "api", "What callbacks, coroutines, Asio, an eventfd and cancelling cost over ask and get().");
  tools::add_common_options(command, options, settings->json_file);
  command.option("--wait").describe(
      "spin (default here: a core for each thread that waits, and one for the poller) or polite");
  command.add_option("--messages", settings->plan.messages, "messages a row and round; a tenth more warm up")
      .range(uint64_t(1), uint64_t(100'000'000))
      .type_name("N")
      .show_default();
  command.add_option("--size", settings->size, "bytes of body, a multiple of 8, 32 or more")
      .type_name("BYTES")
      .show_default();
  command.add_option("--interleave", settings->rounds, "rounds of all rows in turn")
      .range(1u, 1000u)
      .type_name("R")
      .show_default();
  command.footer(
      "Rows, each a round trip of Echo: gyre (ask and get()); beside the poller (the same while a poller "
      "thread lives); callback; co_await; queue, polled and queue, epoll (CompletionQueue); asio callback; "
      "asio use_future; ask, cancel (no round trip: until the ask is given up).\n"
      "Exit: 0 every reply right, 1 one wrong or lost, 2 bad usage, 3 engine not available here, 130 "
      "interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return api(*settings); }; });
}

}  // namespace gyre::bench
