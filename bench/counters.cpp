// gyre-bench counters: many counters that the host and other actors increment, and very many actors that
// messages of actors create.
#include <fmt/format.h>
#include <bench/counters/counters.hpp>
#include <bench/counters/counters.official.hpp>
#include <gyre/device/actor/table.hpp>
#include <gyre/gyre.hpp>
#include <gyre_bench_counters_sources.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "common_options.hpp"
#include "gyre_run.hpp"
#include "machine.hpp"
#include "subcommands.hpp"
#include "threads.hpp"

namespace gyre::bench {

namespace {

namespace counting = gyre_counting;
using Clock = std::chrono::steady_clock;

// Four blocks a multiprocessor of an H100 or H200.
constexpr uint32_t workers_on_cuda = 4 * 132;
constexpr uint32_t workers_on_cpu = 2;
// What an actor may take beside its state, rounded up to 16 bytes, and how full the tables must be.
constexpr uint64_t most_overhead = 32;
constexpr double least_used = 0.9;
const std::vector<std::string> names_of_parts = {"host", "actors", "creation"};

struct CountersSettings {
  Options options;
  std::vector<std::string> parts = names_of_parts;
  std::optional<uint32_t> workers;
  uint32_t counters = 1'000'000, threads = 4;
  uint64_t host_increments = 100'000'000, actor_increments = 1'000'000'000;
  uint32_t created = 100'000'000, touches = 1, full_percent = 95;
  std::string json_file;
};

struct Interrupted {};

// A part of the benchmark: increments to counters with keys from 0.
struct Part {
  std::string name;
  uint32_t counters = 0;
  uint64_t increments = 0;
  bool from_host = false;  // else from senders
  bool evenly = false;     // each counter gets as many
  uint32_t full_percent = 100;

  uint64_t counter_of(uint64_t number) const { return counting::counter_of(number, counters, evenly); }
  // Of the fullest worker.
  uint32_t counters_of_worker(uint32_t workers) const { return (counters + workers - 1) / workers; }
  // For how many counters each worker has room: the table is then about full_percent full.
  uint32_t room(uint32_t workers) const {
    return uint32_t(uint64_t(counters_of_worker(workers)) * 100 / full_percent);
  }
};

// What a counter must have in the end. Several threads add: relaxed, joining them publishes the sums.
struct Expected {
  std::atomic<uint32_t> increments{0}, sum{0};
};

struct Measured {
  Part part;
  double expecting_seconds = 0;  // the plain loop
  double seconds = 0;            // from the first message until the last increment was counted
  double checking_seconds = 0;
  double used = 0;           // share of the tables' room
  uint64_t table_bytes = 0;  // of the counters' tables
  uint64_t actor_bytes = 0;  // MemoryStats::actors: mailboxes and spill memory too

  double per_s() const { return double(part.increments) / seconds; }
  double bytes_of_counter() const { return double(table_bytes) / part.counters; }
  static constexpr uint64_t most_bytes() { return detail::state_bytes<counting::Counter>() + most_overhead; }
};

[[noreturn]] void wrong(const Part& part, std::string_view what) {
  throw Error(fmt::format("counting, part {}: {}; please report it", part.name, what));
}

void stop_if_interrupted() {
  if (tools::interrupt_requested()) throw Interrupted{};
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Calls body(first, end) in `threads` threads, which share the numbers below `count`.
template <class Body>
void in_threads(uint32_t threads, uint64_t count, Body&& body) {
  run_together(
      threads, [](uint32_t) {}, [&](uint32_t t) { body(count * t / threads, count * (t + 1) / threads); });
}

// Counts as the counters should: a plain loop over all increments, in as many threads as there are CPUs.
std::vector<Expected> expected_counts(const Part& part) {
  std::vector<Expected> expected(part.counters);
  constexpr uint64_t at_once = 1 << 20;  // between two polls for an interrupt
  in_threads(std::max(1u, std::thread::hardware_concurrency()), part.increments,
             [&](uint64_t first, uint64_t end) {
               for (uint64_t n = first; n < end; ++n) {
                 if (n % at_once == 0) stop_if_interrupted();
                 Expected& counter = expected[part.counter_of(n)];
                 counter.increments.fetch_add(1, std::memory_order_relaxed);
                 counter.sum.fetch_add(counting::amount_of(n), std::memory_order_relaxed);
               }
             });
  return expected;
}

// Numbers of increments, sorted by their counters' workers: tell_many() sends up to 16 messages that go to
// one worker together.
class ByWorker {
 public:
  explicit ByWorker(uint32_t workers) : ends_(workers + 1) {}

  struct Told {
    uint64_t key;
    uint32_t amount;
  };
  const std::vector<Told>& sort(const Part& part, uint64_t first, uint64_t end) {
    const uint64_t workers = ends_.size() - 1;
    std::fill(ends_.begin(), ends_.end(), 0);
    unsorted_.clear();
    for (uint64_t n = first; n < end; ++n) {
      unsorted_.push_back({part.counter_of(n), counting::amount_of(n)});
      ++ends_[unsorted_.back().key % workers + 1];
    }
    for (uint64_t worker = 0; worker < workers; ++worker) ends_[worker + 1] += ends_[worker];
    sorted_.resize(unsorted_.size());
    for (const Told& told : unsorted_) sorted_[ends_[told.key % workers]++] = told;
    return sorted_;
  }

 private:
  std::vector<Told> unsorted_, sorted_;
  std::vector<uint64_t> ends_;  // where each worker's next one goes
};

// Tells all increments, and returns once they are counted: `threads` threads tell, and an ask to each worker
// comes behind their messages.
void increment_from_host(Client& client, const Part& part, const CountersSettings& settings) {
  const uint32_t workers = settings.options.workers;
  in_threads(settings.threads, part.increments, [&](uint64_t first, uint64_t end) {
    Client sender = client;
    ByWorker by_worker(workers);
    const uint64_t at_once = std::max<uint64_t>(1024, 16 * workers);
    for (; first < end; first += std::min(at_once, end - first)) {
      stop_if_interrupted();
      const auto& told = by_worker.sort(part, first, first + std::min(at_once, end - first));
      const TellManyResult sent = sender.tell_many<counting::Increment>(
          [&](size_t i) { return Address<counting::Counter>{told[i].key}; }, told.size(),
          [&](size_t i, counting::Increment::Builder increment) { increment.setAmount(told[i].amount); });
      if (!sent) wrong(part, "an increment was refused: " + sent.failure.message());
    }
  });
  std::vector<Future<Reply<counting::Count>>> futures(std::min(workers, part.counters));
  client.ask_many<counting::CountRequest>([](size_t i) { return Address<counting::Counter>{i}; }, futures,
                                          [](size_t, counting::CountRequest::Builder) {});
  for (auto& future : futures) {
    const auto reply = std::move(future).get();
    if (!reply) wrong(part, "an ask failed: " + reply.error().message());
  }
}

// All messages between actors that it takes.
uint64_t mail_of(const Part& part, uint32_t workers) {
  if (part.from_host) return 0;
  uint64_t messages = part.increments;
  for (uint32_t sender = 0; sender < workers; ++sender) {
    const uint64_t increments = counting::first_of_sender(part.increments, sender + 1, workers) -
                                counting::first_of_sender(part.increments, sender, workers);
    if (increments != 0) messages += (increments - 1) / counting::Sender::at_once;  // a sender's to itself
  }
  return messages;
}

// Starts the senders, one a worker, and returns once the workers have published that all messages between
// actors ended: how many there are is known. It asks again after a 256th of the time that has passed.
void increment_from_actors(Runtime& runtime, Client& client, const Part& part, const Options& options) {
  const uint32_t workers = options.workers;
  const auto sender = [](size_t i) { return Address<counting::Sender>{i}; };
  const auto check = [&](const TellManyResult& told) {
    if (!told) wrong(part, "a first message was refused: " + told.failure.message());
  };
  check(client.tell_many<counting::Among>(sender, workers, [&](size_t, counting::Among::Builder among) {
    among.setCounters(part.counters);
    among.setSenders(uint16_t(workers));
    among.setEvenly(part.evenly);
  }));
  const auto begin = Clock::now();
  check(client.tell_many<counting::Start>(sender, workers, [&](size_t, counting::Start::Builder start) {
    start.setIncrements(part.increments);
  }));
  const uint64_t expected = mail_of(part, options.workers);
  for (;;) {
    const MailAccounts mail = runtime.books().mail;
    if (mail.failed + mail.refused != 0) {
      wrong(part,
            fmt::format("of {} messages between actors {} failed, {} were refused for want of spill memory",
                        mail.sent, mail.failed, mail.refused));
    }
    if (mail.processed > expected) wrong(part, "there were more messages between actors than were sent");
    if (mail.processed == expected) return;
    stop_if_interrupted();
    const auto passed = Clock::now() - begin;
    if (passed > options.timeout) {
      throw Error(fmt::format(
          "counting, part {}: after --timeout {} ms {} of {} messages between actors are processed; give "
          "it more time or fewer increments",
          part.name, options.timeout.count(), mail.processed, expected));
    }
    std::this_thread::sleep_for(std::clamp<Clock::duration>(passed / 256, std::chrono::microseconds(20),
                                                            std::chrono::milliseconds(50)));
  }
}

// Asks every counter. That no other actor was incremented follows: as many increments were processed as the
// counters have.
void check_counters(Client& client, const Part& part, const CountersSettings& settings,
                    const std::vector<Expected>& expected) {
  // Up to 16 counters of one worker, then of the next: ask_many() sends them together.
  constexpr uint64_t together = 16;
  const uint64_t workers = settings.options.workers;
  // A quarter of all calls that the runtime has room for: threads that wait for room hold the calls of their
  // earlier asks, and with too many each would wait for the others.
  const uint64_t room = workers * settings.options.slots / 4;
  const uint64_t at_once = std::clamp<uint64_t>(room / settings.threads, 1, 1024);
  const uint64_t rows = (part.counters_of_worker(settings.options.workers) + together - 1) / together;
  const auto key_at = [&](uint64_t place) {
    const uint64_t row = place / (together * workers), worker = place / together % workers;
    return (row * together + place % together) * workers + worker;
  };
  in_threads(settings.threads, rows * together * workers, [&](uint64_t place, uint64_t end) {
    Client asker = client;
    std::vector<uint64_t> keys;
    std::vector<Future<Reply<counting::Count>>> futures;
    while (place < end) {
      stop_if_interrupted();
      keys.clear();
      for (; place < end && keys.size() < at_once; ++place) {
        if (key_at(place) < part.counters) keys.push_back(key_at(place));
      }
      futures.resize(keys.size());
      asker.ask_many<counting::CountRequest>([&](size_t i) { return Address<counting::Counter>{keys[i]}; },
                                             futures, [](size_t, counting::CountRequest::Builder) {});
      for (size_t i = 0; i < keys.size(); ++i) {
        const auto reply = std::move(futures[i]).get();
        if (!reply) wrong(part, "an ask failed: " + reply.error().message());
        const uint32_t increments = expected[keys[i]].increments.load(std::memory_order_relaxed),
                       sum = expected[keys[i]].sum.load(std::memory_order_relaxed);
        const counting::Count::Reader count = *reply.value();
        if (count.getIncrements() != increments || count.getSum() != sum) {
          wrong(part, fmt::format("counter {} has {} increments and the sum {} modulo 2^32, not {} and {}",
                                  keys[i], count.getIncrements(), count.getSum(), increments, sum));
        }
      }
    }
  });
}

Measured measure(const Part& part, const CountersSettings& settings) {
  Measured measured{.part = part};
  Options options = settings.options;
  options.actors_per_worker = part.room(options.workers);
  const ActorTableLayout table =
      ActorTables<counting::Counter>::first(options.actors_per_worker);  // the counters' alone
  measured.table_bytes = table.bytes() * options.workers;
  measured.used = double(part.counters) / (double(table.capacity) * options.workers);
  auto begin = Clock::now();
  const std::vector<Expected> expected = expected_counts(part);
  measured.expecting_seconds = seconds_since(begin);
  const Termination end =
      run_on_gyre(ActorSet::of<counting::Counter, counting::Sender>(gyre_bench_counters::sources), options,
                  "counters " + part.name, [&](Runtime& runtime) {
                    Client client = runtime.client();
                    begin = Clock::now();
                    if (part.from_host) {
                      increment_from_host(client, part, settings);
                    } else {
                      increment_from_actors(runtime, client, part, options);
                    }
                    measured.seconds = seconds_since(begin);
                    measured.actor_bytes = runtime.stats().memory.actors;
                    begin = Clock::now();
                    check_counters(client, part, settings, expected);
                    measured.checking_seconds = seconds_since(begin);
                  });
  const MailAccounts& mail = end.books.mail;
  const uint64_t sent = mail_of(part, options.workers);
  if (mail.sent != sent || mail.processed != sent) {
    wrong(part, fmt::format("actors sent {} messages to each other, and {} were processed, not {}", mail.sent,
                            mail.processed, sent));
  }
  return measured;
}

std::vector<Part> parts_of(const CountersSettings& settings) {
  const std::vector<Part> all = {
      {.name = "host",
       .counters = settings.counters,
       .increments = settings.host_increments,
       .from_host = true},
      {.name = "actors", .counters = settings.counters, .increments = settings.actor_increments},
      {.name = "creation",
       .counters = settings.created,
       .increments = uint64_t(settings.created) * settings.touches,
       .evenly = true,
       .full_percent = settings.full_percent}};
  std::vector<Part> parts;
  std::copy_if(all.begin(), all.end(), std::back_inserter(parts), [&](const Part& part) {
    return std::find(settings.parts.begin(), settings.parts.end(), part.name) != settings.parts.end();
  });
  return parts;
}

// Returns what is wrong with the tables' size; empty where nothing is.
std::string complaint(const Measured& measured) {
  if (!measured.part.evenly) return {};
  if (measured.used < least_used) {
    return fmt::format("only {:.1f} % of the tables' room is used; --full-percent must give at least {} %\n",
                       100 * measured.used, 100 * least_used);
  }
  if (measured.bytes_of_counter() > double(Measured::most_bytes())) {
    return fmt::format("an actor takes {:.2f} bytes of tables, more than {}\n", measured.bytes_of_counter(),
                       Measured::most_bytes());
  }
  return {};
}

void print(std::FILE* out, const std::vector<Measured>& rows) {
  fmt::print(out, "\n{:<10} {:>11} {:>14} {:>9} {:>16} {:>12}\n", "part", "counters", "increments", "seconds",
             "million a second", "checked in s");
  for (const Measured& row : rows) {
    fmt::print(out, "{:<10} {:>11} {:>14} {:>9.3f} {:>16.3f} {:>12.1f}\n", row.part.name, row.part.counters,
               row.part.increments, row.seconds, row.per_s() * 1e-6, row.checking_seconds);
  }
  for (const Measured& row : rows) {
    if (!row.part.evenly) continue;
    fmt::print(out,
               "\ncreation: {} actors of {} bytes, created by messages of actors in {:.3f} s: {:.3f} million "
               "actors a second\n"
               "tables: {:.1f} MiB, {:.1f} % of their room used; {:.2f} bytes an actor, {} allowed; with "
               "mailboxes, spill memory and counts: {:.1f} MiB\n",
               row.part.counters, sizeof(counting::Counter), row.seconds,
               row.part.counters / row.seconds * 1e-6, double(row.table_bytes) / (1 << 20), 100 * row.used,
               row.bytes_of_counter(), Measured::most_bytes(), double(row.actor_bytes) / (1 << 20));
  }
}

tools::Json to_json(const std::vector<Measured>& rows) {
  tools::Json json = tools::Json::array();
  for (const Measured& row : rows) {
    json.push_back({{"name", row.part.name},
                    {"counters", row.part.counters},
                    {"state_bytes", sizeof(counting::Counter)},
                    {"increments", row.part.increments},
                    {"checked", true},
                    {"seconds", row.seconds},
                    {"increments_per_s", row.per_s()},
                    {"checking_seconds", row.checking_seconds},
                    {"plain_loop_seconds", row.expecting_seconds},
                    {"table_bytes", row.table_bytes},
                    {"actor_bytes", row.actor_bytes},
                    {"room_used", row.used},
                    {"bytes_an_actor", row.bytes_of_counter()}});
    if (!row.part.evenly) continue;
    json.back()["actors_per_s"] = row.part.counters / row.seconds;
    json.back()["most_bytes_an_actor"] = Measured::most_bytes();
  }
  return json;
}

int run_counters(CountersSettings& settings) {
  Options& options = settings.options;
  if (const std::string problems = options.problems(); !problems.empty())
    throw BadOptions("measuring counters: these options are wrong:\n" + problems);
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  Machine machine = machine_of(options);
  options.workers =
      settings.workers.value_or(machine.engine == EngineKind::cuda ? workers_on_cuda : workers_on_cpu);
  options.engine = machine.engine;
  options.transport = machine.transport;
  machine.options.workers = options.workers;
  print(out, machine);
  fmt::print(out,
             "each part launches anew; {} threads of the host; one sender a worker, {} increments a call\n"
             "checked: every counter's increments and sum, by an ask, against a plain loop\n"
             "not measured: launches, which allocate the tables; the plain loop; the end of actors\n",
             settings.threads, counting::Sender::at_once);
  std::vector<Measured> rows;
  bool complete = true;
  try {
    for (const Part& part : parts_of(settings)) rows.push_back(measure(part, settings));
  } catch (const Interrupted&) {
    complete = false;
  }
  print(out, rows);
  tools::write_json(settings.json_file, {{"benchmark", "counters"},
                                         {"machine", to_json(machine)},
                                         {"threads", settings.threads},
                                         {"rows", to_json(rows)}});
  if (!complete) {
    fmt::print(out, "interrupted: not all parts were measured\n");
    return tools::interrupted;
  }
  std::string complaints;
  for (const Measured& row : rows) complaints += complaint(row);
  if (complaints.empty()) return tools::all_passed;
  fmt::print(out, "FAILED: {}", complaints);
  return tools::case_failed;
}

}  // namespace

void add_counters(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<CountersSettings>();
  Options& options = settings->options;
  options.slot_bytes = 64;
  options.timeout = std::chrono::minutes(10);
  const tools::ProgramCommand command = app.add_subcommand(
      "counters", "Counters that the host and other actors increment, and actors created by messages.");
  tools::add_common_options(command, options, settings->json_file);
  command.remove_option("--actors-per-worker");  // each part has what it needs
  command.remove_option("--workers");
  command
      .add_option(
          "--workers", settings->workers,
          fmt::format("workers, a sender each (default: {} on CUDA, four a multiprocessor of an H200; "
                      "{} on the CPU)",
                      workers_on_cuda, workers_on_cpu))
      .range(1u, 65535u)
      .type_name("N");
  command.add_option("--part", settings->parts, "these parts alone: host, actors, creation (default: all)")
      .check([](const std::string& value) {
        const bool known =
            std::find(names_of_parts.begin(), names_of_parts.end(), value) != names_of_parts.end();
        return known ? std::string() : value + " must be one of host, actors, creation";
      })
      .type_name("PART");
  command.add_option("--counters", settings->counters, "counters of the parts host and actors")
      .range(1u, 1'000'000'000u)
      .type_name("N")
      .show_default();
  command
      .add_option("--host-increments", settings->host_increments,
                  "increments that the host tells, each to a pseudo-random counter")
      .range(uint64_t(1), uint64_t(100'000'000'000))
      .type_name("N")
      .show_default();
  command.add_option("--threads", settings->threads, "the host's threads that tell, and that check")
      .range(1u, 1024u)
      .type_name("N")
      .show_default();
  command
      .add_option("--actor-increments", settings->actor_increments,
                  "increments that senders tell, each to a pseudo-random counter")
      .range(uint64_t(1), uint64_t(100'000'000'000))
      .type_name("N")
      .show_default();
  command.add_option("--created", settings->created, "actors that messages of senders create")
      .range(1u, 2'000'000'000u)
      .type_name("N")
      .show_default();
  command.add_option("--touches", settings->touches, "increments of each of them, in a pseudo-random order")
      .range(1u, 1000u)
      .type_name("N")
      .show_default();
  command
      .add_option("--full-percent", settings->full_percent,
                  "share of the room in the tables that the created actors take")
      .range(50u, 100u)
      .type_name("P")
      .show_default();
  command.footer(
      "Checked: every counter's number and sum of increments; that none went elsewhere; that a created actor "
      "takes at most its state and 32 bytes of tables, which are at least 90 % full.\n"
      "Exit: 0 all of that right, 1 something wrong or lost, 2 bad usage, 3 engine not available here, 130 "
      "interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return run_counters(*settings); }; });
}

}  // namespace gyre::bench
