// gyre stat: what the runtimes of other processes have done.
#include <fmt/format.h>
#include <unistd.h>
#include <gyre/runtime/telemetry/stats_file.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <numeric>
#include <thread>

#include "common_options.hpp"
#include "published.hpp"
#include "subcommands.hpp"

namespace gyre::tools {

namespace {

struct StatSettings {
  std::string which;  // a process's number, or a file; empty: all
  bool list = false, watch = false, workers = false;
  double interval_s = 1;
  std::string json_file;
};

std::string time_text(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.1f} us", ns * 1e-3);
  if (ns < 1e9) return fmt::format("{:.1f} ms", ns * 1e-6);
  return fmt::format("{:.1f} s", ns * 1e-9);
}

// The time that so much of the messages stayed below, by the histogram: a power of two.
uint64_t below_ns(const HandlerStats& handler, double part) {
  uint64_t sum = 0;
  for (size_t bin = 0; bin < handler.times.size(); ++bin) {
    sum += handler.times[bin];
    if (sum != 0 && double(sum) >= part * double(handler.processed)) return uint64_t(2) << bin;
  }
  return 0;
}

std::string handler_name(const HandlerStats& handler) {
  return handler.actor.empty() ? "(no handler)" : handler.actor + " " + handler.message;
}

void print_handlers(const std::string& who, const std::vector<HandlerStats>& handlers) {
  for (const HandlerStats& handler : handlers) {
    if (handler.actor.empty() && handler.received() + handler.dead_letters == 0) continue;
    std::string times;
    if (handler.processed != 0) {
      times = fmt::format("{:>10} {:>10} {:>10}",
                          time_text(double(handler.handler_ns) / double(handler.processed)),
                          time_text(double(below_ns(handler, 0.99))).insert(0, 1, '<'),
                          time_text(double(handler.longest_ns_below())).insert(0, 1, '<'));
    }
    std::cout << fmt::format("  {:<6} {:<44} {:>12} {:>12} {:>9} {:>9} {:>9} {}\n", who,
                             handler_name(handler), handler.received(), handler.processed, handler.failed,
                             handler.expired, handler.dead_letters, times);
  }
}

std::string memory_line(const MemoryStats& memory) {
  const auto mib = [](uint64_t bytes) { return fmt::format("{:.1f} MiB", double(bytes) / (1 << 20)); };
  const auto sum = [](const auto& bytes) { return std::accumulate(bytes.begin(), bytes.end(), uint64_t(0)); };
  std::string line = fmt::format(
      "  memory region {}, BAR {}, actors {}, modules {}, buffers {} (and {} freed, {} for their table)",
      mib(memory.region), mib(memory.bar), mib(memory.actors), mib(memory.modules), mib(sum(memory.buffers)),
      mib(sum(memory.buffers_freed)), mib(memory.buffer_table));
  if (memory.device_total != 0) {
    line += fmt::format("; the device has {} free of {}", mib(memory.device_free), mib(memory.device_total));
  }
  return line + "\n";
}

void print_program(const std::vector<CountSection>& sections) {
  for (const CountSection& section : sections) {
    std::cout << fmt::format("  {}\n", section.name);
    for (const NamedCount& count : section.counts)
      std::cout << fmt::format("    {:<36} {:>20}\n", count.name, count.value);
  }
}

void print_mail(const std::vector<WorkerStats>& workers) {
  std::cout << fmt::format("  {:<6} {:>12} {:>12} {:>9} {:>9} {:>9} {:>8} {:>10} {:>10}\n", "worker",
                           "mail sent", "processed", "failed", "refused", "spilled", "depth", "most so far",
                           "outbox most");
  for (size_t n = 0; n < workers.size(); ++n) {
    const MailStats& mail = workers[n].mail;
    std::cout << fmt::format("  {:<6} {:>12} {:>12} {:>9} {:>9} {:>9} {:>8} {:>10} {:>10}\n", n, mail.sent,
                             mail.processed, mail.failed, mail.refused, mail.spilled, mail.depth,
                             mail.depth_high_water, mail.outbox_high_water);
  }
}

bool is_used(const ActorStats& actors) {
  return actors.created + actors.mail_sent + actors.mail_processed != 0;
}
bool has_actors(const WorkerStats& worker) {
  return std::any_of(worker.actors.begin(), worker.actors.end(), is_used);
}
// Types that have actors or sent messages to actors.
void print_actors(const std::string& who, const std::vector<ActorStats>& types) {
  for (const ActorStats& actors : types) {
    if (!is_used(actors)) continue;
    std::cout << fmt::format("  {:<6} {:<44} {:>12} {:>12} {:>12} {:>12}\n", who, actors.actor,
                             actors.has_state ? std::to_string(actors.living) : "-", actors.created,
                             actors.mail_sent, actors.mail_processed);
  }
}

void print(const std::string& path, const PublishedStats& published, bool workers) {
  const Stats& stats = published.stats;
  std::cout << fmt::format("process {}, {} on {}, transport {}, {} worker{}, up {:.1f} s ({})\n",
                           published.pid, name(stats.state), stats.device, name(stats.transport),
                           stats.workers.size(), stats.workers.size() == 1 ? "" : "s", stats.uptime_s, path);
  if (!published.process_there) {
    std::cout << fmt::format(
        "  the process is gone: this is what it last said, {:.1f} s ago; remove the file\n", published.age_s);
  } else if (published.stale()) {
    std::cout << fmt::format(
        "  nothing was written for {:.1f} s, and {} ms apart was promised: is it stopped?\n", published.age_s,
        published.interval_ms);
  }
  const Books& books = stats.books;
  std::cout << fmt::format(
      "  actors {} in {:.1f} ms, the rest of the launch {:.1f} ms\n"
      "  asks   {} accepted, {} answered, {} error replies, {} timed out, {} dead letters, {} cancelled, {} "
      "in "
      "flight\n"
      "  tells  {} accepted, {} processed, {} dead letters, {} in flight\n",
      how_compiled(stats.timings), stats.timings.compile_ms, stats.timings.launch_ms, books.asks.accepted,
      books.asks.answered, books.asks.error_replies, books.asks.timed_out, books.asks.dead_letters,
      books.asks.cancelled, books.asks.in_flight(), books.tells.accepted, books.tells.processed,
      books.tells.dead_letters, books.tells.in_flight());
  if (books.mail.sent != 0) {
    std::cout << fmt::format("  mail   {} sent, {} processed, {} failed, {} refused, {} lost, {} under way\n",
                             books.mail.sent, books.mail.processed, books.mail.failed, books.mail.refused,
                             books.mail.lost, books.mail.under_way());
  }
  if (books.told.sent + books.told.refused != 0) {
    std::cout << fmt::format(
        "  told   {} sent to the host, {} handled, {} dropped, {} under way; {} refused\n", books.told.sent,
        books.told.handled, books.told.dropped, books.told.under_way(), books.told.refused);
  }
  if (books.timers.set != 0) {
    std::cout << fmt::format("  timers {} set, {} done, {} cancelled, {} lost, {} pending\n",
                             books.timers.set, books.timers.done, books.timers.cancelled, books.timers.lost,
                             books.timers.pending());
  }
  if (books.inferred() != 0) {
    std::cout << fmt::format(
        "  inferred: {} asks and {} tells of the dead letters; whether they were handled is not known\n",
        books.asks.inferred, books.tells.inferred);
  }
  if (stats.restarts != 0)
    std::cout << fmt::format("  restarts: {}, each after the engine had failed\n", stats.restarts);
  const auto transfer = [](const char* what, const TransferStats& transfers) {
    if (transfers.copies == 0) return;
    std::cout << fmt::format("  {} {} copies, {} bytes, {} in all\n", what, transfers.copies, transfers.bytes,
                             time_text(double(transfers.ns)));
  };
  transfer("writes", stats.writes);
  transfer("reads ", stats.reads);
  std::cout << memory_line(stats.memory);
  if (workers) {
    std::cout << fmt::format("  {:<6} {:>8} {:>10} {:>12}   (of {} slots)\n", "worker", "depth",
                             "most so far", "heartbeat", stats.slots);
    for (size_t n = 0; n < stats.workers.size(); ++n) {
      const WorkerStats& worker = stats.workers[n];
      std::cout << fmt::format(
          "  {:<6} {:>8} {:>10} {:>12}\n", n, worker.depth, worker.depth_high_water,
          worker.heartbeat_age_s ? time_text(*worker.heartbeat_age_s * 1e9) + " ago" : std::string("-"));
    }
    if (books.mail.sent != 0) print_mail(stats.workers);
  } else {
    uint64_t depth = 0, most = 0;
    double heartbeat_s = -1;
    for (const WorkerStats& worker : stats.workers) {
      depth += worker.depth;
      most = std::max(most, worker.depth_high_water);
      heartbeat_s = std::max(heartbeat_s, worker.heartbeat_age_s.value_or(-1));
    }
    std::cout << fmt::format("  rings  {} slots taken, at most {} of {} in one so far; oldest heartbeat {}\n",
                             depth, most, stats.slots,
                             heartbeat_s < 0 ? "-" : time_text(heartbeat_s * 1e9) + " ago");
  }
  if (std::any_of(stats.workers.begin(), stats.workers.end(), has_actors)) {
    std::cout << fmt::format("  {:<6} {:<44} {:>12} {:>12} {:>12} {:>12}\n", "worker", "actor", "living",
                             "created", "mail sent", "processed");
    if (workers) {
      for (size_t n = 0; n < stats.workers.size(); ++n)
        print_actors(std::to_string(n), stats.workers[n].actors);
    } else {
      print_actors("all", stats.actors());
    }
  }
  std::cout << fmt::format("  {:<6} {:<44} {:>12} {:>12} {:>9} {:>9} {:>9} {:>10} {:>10} {:>10}\n", "worker",
                           "handler", "received", "processed", "failed", "expired", "dead", "mean", "p99",
                           "max");
  if (workers) {
    for (size_t n = 0; n < stats.workers.size(); ++n) {
      print_handlers(std::to_string(n), stats.workers[n].handlers);
    }
  } else {
    print_handlers("all", stats.handlers());
  }
  print_program(stats.program);
}

Json json_of(const TransferStats& transfers) {
  return {{"copies", transfers.copies}, {"bytes", transfers.bytes}, {"ns", transfers.ns}};
}

Json json_of(const MemoryStats& memory) {
  Json json = {{"region", memory.region},
               {"bar", memory.bar},
               {"actors", memory.actors},
               {"modules", memory.modules},
               {"buffer_table", memory.buffer_table},
               {"buffers", memory.buffers},
               {"buffers_freed", memory.buffers_freed},
               {"device_total", nullptr},
               {"device_free", nullptr}};
  if (memory.device_total != 0) {
    json["device_total"] = memory.device_total;
    json["device_free"] = memory.device_free;
  }
  return json;
}

Json json_of(const std::vector<CountSection>& sections) {
  Json json = Json::parse("{}");  // an object where there is no section, too
  for (const CountSection& section : sections) {
    for (const NamedCount& count : section.counts) json[section.name][count.name] = count.value;
  }
  return json;
}

Json json_of(const std::string& path, const PublishedStats& published) {
  const Stats& stats = published.stats;
  Json workers = Json::array();
  for (const WorkerStats& worker : stats.workers) {
    Json handlers = Json::array();
    for (const HandlerStats& handler : worker.handlers) {
      handlers.push_back({{"actor", handler.actor},
                          {"message", handler.message},
                          {"received", handler.received()},
                          {"processed", handler.processed},
                          {"failed", handler.failed},
                          {"expired", handler.expired},
                          {"dead_letters", handler.dead_letters},
                          {"handler_ns", handler.handler_ns},
                          {"times_log2_ns", handler.times}});
    }
    Json actors = Json::array();
    for (const ActorStats& of_type : worker.actors) {
      actors.push_back({{"actor", of_type.actor},
                        {"living", of_type.has_state ? Json(of_type.living) : Json()},
                        {"created", of_type.created},
                        {"mail_sent", of_type.mail_sent},
                        {"mail_processed", of_type.mail_processed}});
    }
    workers.push_back({{"depth", worker.depth},
                       {"depth_high_water", worker.depth_high_water},
                       {"heartbeat_age_s", worker.heartbeat_age_s ? Json(*worker.heartbeat_age_s) : Json()},
                       {"mail",
                        {{"sent", worker.mail.sent},
                         {"processed", worker.mail.processed},
                         {"failed", worker.mail.failed},
                         {"refused", worker.mail.refused},
                         {"spilled", worker.mail.spilled},
                         {"depth", worker.mail.depth},
                         {"depth_high_water", worker.mail.depth_high_water},
                         {"outbox_high_water", worker.mail.outbox_high_water},
                         {"told", worker.mail.told},
                         {"told_refused", worker.mail.told_refused},
                         {"timers_set", worker.mail.timers_set},
                         {"timers_done", worker.mail.timers_done},
                         {"timers_cancelled", worker.mail.timers_cancelled},
                         {"bodies_taken", worker.mail.bodies_taken},
                         {"bodies_freed", worker.mail.bodies_freed},
                         {"bodies_refused", worker.mail.bodies_refused}}},
                       {"actors", actors},
                       {"handlers", handlers}});
  }
  const Books& books = stats.books;
  return {{"file", path},
          {"pid", published.pid},
          {"process_there", published.process_there},
          {"stale", published.stale()},
          {"age_s", published.age_s},
          {"interval_ms", published.interval_ms},
          {"engine", name(stats.engine)},
          {"transport", name(stats.transport)},
          {"device", stats.device},
          {"state", name(stats.state)},
          {"uptime_s", stats.uptime_s},
          {"restarts", stats.restarts},
          {"log_lines", stats.log_lines},
          {"log_lines_dropped", stats.log_lines_dropped},
          {"slots", stats.slots},
          {"timings",
           {{"compile_ms", stats.timings.compile_ms},
            {"compiled_from_cache", stats.timings.compiled_from_cache},
            {"compiled_ahead", stats.timings.compiled_ahead},
            {"launch_ms", stats.timings.launch_ms}}},
          {"asks",
           {{"accepted", books.asks.accepted},
            {"answered", books.asks.answered},
            {"error_replies", books.asks.error_replies},
            {"timed_out", books.asks.timed_out},
            {"dead_letters", books.asks.dead_letters},
            {"inferred", books.asks.inferred},
            {"cancelled", books.asks.cancelled},
            {"in_flight", books.asks.in_flight()},
            {"late_replies", books.asks.late_replies}}},
          {"tells",
           {{"accepted", books.tells.accepted},
            {"processed", books.tells.processed},
            {"dead_letters", books.tells.dead_letters},
            {"inferred", books.tells.inferred}}},
          {"mail",
           {{"sent", books.mail.sent},
            {"processed", books.mail.processed},
            {"failed", books.mail.failed},
            {"refused", books.mail.refused},
            {"lost", books.mail.lost}}},
          {"told",
           {{"sent", books.told.sent},
            {"handled", books.told.handled},
            {"dropped", books.told.dropped},
            {"refused", books.told.refused}}},
          {"timers",
           {{"set", books.timers.set},
            {"done", books.timers.done},
            {"cancelled", books.timers.cancelled},
            {"lost", books.timers.lost}}},
          {"dead_letters_dropped", books.dead_letters_dropped},
          {"corrupt_slots", books.corrupt_slots},
          {"memory", json_of(stats.memory)},
          {"writes", json_of(stats.writes)},
          {"reads", json_of(stats.reads)},
          {"program", json_of(stats.program)},
          {"workers", workers}};
}

// What was there to show.
size_t show(const StatSettings& settings) {
  Json document = Json::array();
  const size_t shown = for_each_published(settings.which, [&](const std::string& file,
                                                              const PublishedStats& published) {
    if (!settings.json_file.empty()) {
      document.push_back(json_of(file, published));
    } else if (settings.list) {
      std::cout << fmt::format("{} {} {} on {}, up {:.1f} s{}\n", published.pid, file,
                               name(published.stats.state), published.stats.device, published.stats.uptime_s,
                               !published.process_there ? " (gone)"
                               : published.stale()      ? " (stale)"
                                                        : "");
    } else {
      print(file, published, settings.workers);
    }
  });
  write_json(settings.json_file, document);
  return shown;
}

int run(const StatSettings& settings) {
  const bool on_terminal = isatty(STDOUT_FILENO) != 0;
  do {
    if (settings.watch && on_terminal) std::cout << "\x1b[H\x1b[2J";
    const size_t shown = show(settings);
    std::cout << std::flush;
    if (shown == 0) {
      report_none_published(settings.which);
      return case_failed;
    }
    if (settings.watch) std::this_thread::sleep_for(std::chrono::duration<double>(settings.interval_s));
  } while (settings.watch);
  return all_passed;
}

}  // namespace

void add_stat(ProgramCommand app, std::function<int()>& chosen) {
  const ProgramCommand command = app.add_subcommand(
      "stat",
      "Show what runtimes of this user's processes have done: those that publish their stats (--stats, "
      "Options::publish_stats) in $GYRE_STATS_DIR, else $XDG_RUNTIME_DIR/gyre, else /tmp/gyre-UID.");
  auto settings = std::make_shared<StatSettings>();
  command.add_option("which", settings->which, "a process's number, or a stats file (default: all there are)")
      .type_name("PID|FILE");
  command.add_flag("--list", settings->list, "a line a runtime");
  command.add_flag("--workers", settings->workers, "each worker by itself, instead of all together");
  command.add_flag("--watch", settings->watch, "repeat until interrupted, or until no runtime is left");
  command.add_option("--interval", settings->interval_s, "seconds between two reports of --watch")
      .range(0.01, 3600.0)
      .show_default();
  add_json_option(command, settings->json_file);
  command.when_chosen([settings, &chosen] { chosen = [settings] { return run(*settings); }; });
}

}  // namespace gyre::tools
