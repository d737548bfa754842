// Runs a benchmark of the Savina suite on Gyre, and checks results.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "common_options.hpp"
#include "gyre_run.hpp"
#include "savina/describe.hpp"

namespace gyre::bench::savina {

namespace {

using gyre_savina::Collector;
using namespace gyre_savina::run;
using Clock = std::chrono::steady_clock;

[[noreturn]] void wrong(const Benchmark& benchmark, std::string_view what) {
  throw Error(fmt::format("running Savina's {}: {}; please report it", benchmark.name, what));
}

// How many instances have ended.
uint64_t ended(const Benchmark& benchmark, Client& client) {
  const auto reply =
      client.ask<ProgressRequest>(Address<Collector>{0}, [](ProgressRequest::Builder) {}).get();
  if (!reply) wrong(benchmark, "an ask failed: " + reply.error().message());
  return reply.value()->getDone();
}

// Asks again after a 256th of the time that has passed, so that the end is known to half a percent, and asks
// for progress hardly delay the actors.
void await_end(const Benchmark& benchmark, Client& client, uint64_t instances,
               std::chrono::milliseconds timeout) {
  const auto begin = Clock::now();
  for (;;) {
    const uint64_t done = ended(benchmark, client);
    if (done == instances) return;
    if (done > instances) wrong(benchmark, "an instance ended twice");
    if (tools::interrupt_requested()) throw Interrupted{};
    const auto passed = Clock::now() - begin;
    if (passed > timeout) {
      throw Error(
          fmt::format("running Savina's {}: after --timeout {} ms {} of {} instances have ended; give "
                      "it more time, or less to do by --size-percent",
                      benchmark.name, timeout.count(), done, instances));
    }
    std::this_thread::sleep_for(std::clamp<Clock::duration>(passed / 256, std::chrono::microseconds(20),
                                                            std::chrono::milliseconds(50)));
  }
}

std::vector<uint64_t> values_of(const Benchmark& benchmark, Client& client, uint64_t instances) {
  std::vector<Future<Reply<Value>>> futures(instances);
  client.ask_many<ValueRequest>([](size_t i) { return Address<Collector>{i + 1}; }, futures,
                                [](size_t, ValueRequest::Builder) {});
  std::vector<uint64_t> values;
  for (auto& future : futures) {
    const auto reply = std::move(future).get();
    if (!reply) wrong(benchmark, "an ask failed: " + reply.error().message());
    values.push_back(reply.value()->getValue());
  }
  return values;
}

}  // namespace

Outcome run_on_engine(const Benchmark& benchmark, Size size, uint32_t instances, Options options) {
  Outcome outcome;
  // Keys are numbered without gaps, so each worker has as many but for one or two.
  const uint64_t most =
      std::max<uint64_t>(1, benchmark.actors_of_a_type(size)) * instances / options.workers + 2;
  options.actors_per_worker = uint32_t(std::min<uint64_t>(most, UINT32_MAX));
  if (benchmark.most_waiting != nullptr) {
    // Chunks are not always full.
    const uint64_t bytes = 2 * benchmark.most_waiting(size) * instances * options.slot_bytes;
    options.spill_bytes = std::max(options.spill_bytes, bytes);
  }
  if (benchmark.fit != nullptr) {
    outcome.refused = benchmark.fit(size, instances, options);
    if (!outcome.refused.empty()) return outcome;
  }
  bool launched = false;
  try {
    const Termination end = run_on_gyre(benchmark.actors(), options, benchmark.name, [&](Runtime& runtime) {
      launched = true;
      Client client = runtime.client();
      const auto begin = Clock::now();
      if (const TellManyResult told = benchmark.start(client, instances, size); !told)
        wrong(benchmark, "a first message was refused: " + told.failure.message());
      await_end(benchmark, client, instances, options.timeout);
      outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      outcome.values = values_of(benchmark, client, instances);
      if (const Result<void> drained = runtime.drain(options.timeout); !drained)
        wrong(benchmark, "draining failed: " + drained.error().message());
    });
    const MailAccounts& mail = end.books.mail;
    if (mail.failed != 0 || mail.refused != 0 || mail.lost != 0) {
      wrong(benchmark, fmt::format("of {} messages between actors {} failed, {} were refused, {} lost",
                                   mail.sent, mail.failed, mail.refused, mail.lost));
    }
  } catch (const Error& error) {
    if (launched) throw;
    outcome.refused = error.what();
  }
  return outcome;
}

std::vector<uint64_t> expected_values(const Benchmark& benchmark, const Size& size, uint32_t instances) {
  std::vector<uint64_t> values(instances);
  std::atomic<uint32_t> next = 0;  // the threads claim instances; joining them publishes the values
  std::vector<std::jthread> threads;
  for (uint32_t n = std::min(std::max(1u, std::thread::hardware_concurrency()), instances); n != 0; --n) {
    threads.emplace_back([&] {
      for (uint32_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < instances;)
        values[i] = benchmark.expected(size, i);
    });
  }
  threads.clear();
  return values;
}

void check_values(const Benchmark& benchmark, const std::string& engine,
                  const std::vector<uint64_t>& expected, const std::vector<uint64_t>& values) {
  for (size_t i = 0; i < std::max(expected.size(), values.size()); ++i) {
    if (i >= expected.size() || i >= values.size())
      wrong(benchmark, fmt::format("{} gave {} results, not {}", engine, values.size(), expected.size()));
    if (values[i] != expected[i]) {
      wrong(benchmark, fmt::format("{} gave {} for instance {}, not {}", engine, values[i], i, expected[i]));
    }
  }
}

const std::vector<Benchmark>& benchmarks() {
  static const std::vector<Benchmark> all = {ping_pong(), counting(), fork_join(),  create(),
                                             fib(),       big(),      dictionary(), bank()};
  return all;
}

}  // namespace gyre::bench::savina
