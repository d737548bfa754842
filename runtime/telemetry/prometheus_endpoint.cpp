#include <fmt/format.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/system/cancellation.hpp>
#include <gyre/runtime/system/signals_blocked.hpp>
#include <gyre/runtime/telemetry/prometheus_endpoint.hpp>

#include <limits>
#include <map>

namespace gyre {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

// Buckets' upper bounds are 2^first_bound ns to 2^last_bound ns, and none.
constexpr size_t first_bound = 6, last_bound = 34;

MetricFamily& add(std::vector<MetricFamily>& families, std::string name, std::string help, MetricType type) {
  return families.emplace_back(MetricFamily{std::move(name), std::move(help), type, {}});
}
void count(MetricFamily& family, uint64_t value, Labels labels = {}) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = double(value);
  family.metric.push_back(std::move(metric));
}
void gauge(MetricFamily& family, double value, Labels labels = {}) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.gauge.value = value;
  family.metric.push_back(std::move(metric));
}

Labels labels_of(const HandlerStats& handler) {
  return {{"actor", handler.actor}, {"message", handler.message}};
}

void add_runtime(std::vector<MetricFamily>& families, const Stats& stats) {
  gauge(add(families, "gyre_runtime_info", "What the runtime runs on; always 1.", MetricType::Gauge), 1,
        {{"engine", std::string(name(stats.engine))},
         {"transport", std::string(name(stats.transport))},
         {"device", stats.device}});
  MetricFamily& states = add(families, "gyre_runtime_state",
                             "1 for the state that the runtime is in, else 0.", MetricType::Gauge);
  for (const Lifecycle state : {Lifecycle::launched, Lifecycle::active, Lifecycle::inactive,
                                Lifecycle::draining, Lifecycle::terminated, Lifecycle::failed}) {
    gauge(states, stats.state == state ? 1 : 0, {{"state", std::string(name(state))}});
  }
  gauge(add(families, "gyre_uptime_seconds", "Time since the launch.", MetricType::Gauge), stats.uptime_s);
  count(add(families, "gyre_restarts_total", "Relaunches after the engine had failed.", MetricType::Counter),
        stats.restarts);
  count(add(families, "gyre_log_lines_total", "Lines that handlers logged.", MetricType::Counter),
        stats.log_lines);
  count(add(families, "gyre_log_lines_dropped_total", "Lines of handlers that found no room.",
            MetricType::Counter),
        stats.log_lines_dropped);
  gauge(add(families, "gyre_compile_seconds",
            "Time that compiling the actors took, or finding them compiled.", MetricType::Gauge),
        stats.timings.compile_ms * 1e-3);
  gauge(add(families, "gyre_launch_seconds", "Time that the rest of the launch took.", MetricType::Gauge),
        stats.timings.launch_ms * 1e-3);
}

void add_books(std::vector<MetricFamily>& families, const Books& books) {
  count(add(families, "gyre_asks_accepted_total", "Asks that were sent.", MetricType::Counter),
        books.asks.accepted);
  MetricFamily& asks = add(families, "gyre_asks_total", "Asks by their outcome.", MetricType::Counter);
  count(asks, books.asks.answered, {{"outcome", "answered"}});
  count(asks, books.asks.error_replies, {{"outcome", "error_reply"}});
  count(asks, books.asks.timed_out, {{"outcome", "timed_out"}});
  count(asks, books.asks.dead_letters, {{"outcome", "dead_letter"}});
  count(asks, books.asks.cancelled, {{"outcome", "cancelled"}});
  count(add(families, "gyre_late_replies_total", "Replies to asks that had another outcome by then.",
            MetricType::Counter),
        books.asks.late_replies);
  count(add(families, "gyre_tells_accepted_total", "Tells that were sent.", MetricType::Counter),
        books.tells.accepted);
  MetricFamily& tells = add(families, "gyre_tells_total", "Tells by their outcome.", MetricType::Counter);
  count(tells, books.tells.processed, {{"outcome", "processed"}});
  count(tells, books.tells.dead_letters, {{"outcome", "dead_letter"}});
  MetricFamily& inferred =
      add(families, "gyre_inferred_dead_letters_total",
          "Dead letters that a worker may or may not have handled.", MetricType::Counter);
  count(inferred, books.asks.inferred, {{"kind", "ask"}});
  count(inferred, books.tells.inferred, {{"kind", "tell"}});
  count(add(families, "gyre_dead_letters_dropped_total", "Dead letters that were counted and not kept.",
            MetricType::Counter),
        books.dead_letters_dropped);
  count(add(families, "gyre_corrupt_slots_total", "Ring slots that held no message.", MetricType::Counter),
        books.corrupt_slots);
}

void add_workers(std::vector<MetricFamily>& families, const Stats& stats) {
  gauge(add(families, "gyre_ring_slots", "Slots of each worker's ring.", MetricType::Gauge), stats.slots);
  MetricFamily depth{
      "gyre_worker_depth", "Slots of the worker's ring that are taken.", MetricType::Gauge, {}};
  MetricFamily most{"gyre_worker_depth_high_water",
                    "Largest depth at any read of the stats; the ring's size once a sender found it full.",
                    MetricType::Gauge,
                    {}};
  MetricFamily heartbeat{"gyre_worker_heartbeat_age_seconds",
                         "Time since the worker last said that it is there.",
                         MetricType::Gauge,
                         {}};
  MetricFamily messages{"gyre_messages_total",
                        "Messages that the worker took, by handler and outcome.",
                        MetricType::Counter,
                        {}};
  MetricFamily dead{
      "gyre_dead_letters_total", "Messages that became dead letters, by handler.", MetricType::Counter, {}};
  for (size_t n = 0; n < stats.workers.size(); ++n) {
    const WorkerStats& worker = stats.workers[n];
    const ClientMetric::Label number{"worker", std::to_string(n)};
    gauge(depth, double(worker.depth), {number});
    gauge(most, double(worker.depth_high_water), {number});
    if (worker.heartbeat_age_s) gauge(heartbeat, *worker.heartbeat_age_s, {number});
    for (const HandlerStats& handler : worker.handlers) {
      Labels labels = labels_of(handler);
      labels.push_back(number);
      count(dead, handler.dead_letters, labels);
      labels.push_back({"outcome", "processed"});
      count(messages, handler.processed, labels);
      labels.back().value = "failed";
      count(messages, handler.failed, labels);
      labels.back().value = "expired";
      count(messages, handler.expired, labels);
    }
  }
  for (MetricFamily* family : {&depth, &most, &heartbeat, &messages, &dead}) {
    families.push_back(std::move(*family));
  }
}

// What actors send: by worker, and what became of what they told the host.
void add_mail(std::vector<MetricFamily>& families, const Stats& stats) {
  struct Family {
    const char* name;
    const char* help;
    MetricType type;
    uint64_t MailStats::*count;
    const char* outcome = nullptr;
  };
  // Outcomes of one family lie one behind another.
  static constexpr Family all[] = {
      {"gyre_mail_sent_total", "Messages that the worker's actors sent to actors.", MetricType::Counter,
       &MailStats::sent},
      {"gyre_mail_total", "Messages between actors that the worker took, by outcome.", MetricType::Counter,
       &MailStats::processed, "processed"},
      {"gyre_mail_total", "", MetricType::Counter, &MailStats::failed, "failed"},
      {"gyre_mail_total", "", MetricType::Counter, &MailStats::refused, "refused"},
      {"gyre_mail_spilled_total", "Messages that the worker moved out of its mailbox.", MetricType::Counter,
       &MailStats::spilled},
      {"gyre_mailbox_depth", "Messages in the worker's mailbox.", MetricType::Gauge, &MailStats::depth},
      {"gyre_mailbox_depth_high_water", "Largest depth of its mailbox that the worker reported.",
       MetricType::Gauge, &MailStats::depth_high_water},
      {"gyre_outbox_high_water", "Most messages that waited at once for room in other workers' mailboxes.",
       MetricType::Gauge, &MailStats::outbox_high_water},
      {"gyre_told_sent_total", "Messages that the worker's actors sent to the host.", MetricType::Counter,
       &MailStats::told},
      {"gyre_told_refused_total", "Messages to the host that found no room.", MetricType::Counter,
       &MailStats::told_refused},
      {"gyre_timers_set_total", "Timers that the worker's actors set.", MetricType::Counter,
       &MailStats::timers_set},
      {"gyre_timers_total", "Timers of the worker that have ended, by outcome.", MetricType::Counter,
       &MailStats::timers_done, "done"},
      {"gyre_timers_total", "", MetricType::Counter, &MailStats::timers_cancelled, "cancelled"},
      {"gyre_bodies_taken_total", "Chunks that the worker took of the pool of bodies.", MetricType::Counter,
       &MailStats::bodies_taken},
      {"gyre_bodies_freed_total", "Chunks that the worker gave back to the pool of bodies.",
       MetricType::Counter, &MailStats::bodies_freed},
      {"gyre_bodies_refused_total", "Messages larger than a slot for which no chunk was free.",
       MetricType::Counter, &MailStats::bodies_refused}};
  for (const Family& family : all) {
    if (families.back().name != family.name) add(families, family.name, family.help, family.type);
    for (size_t n = 0; n < stats.workers.size(); ++n) {
      Labels labels{{"worker", std::to_string(n)}};
      if (family.outcome != nullptr) labels.push_back({"outcome", family.outcome});
      const uint64_t value = stats.workers[n].mail.*family.count;
      if (family.type == MetricType::Counter) {
        count(families.back(), value, labels);
      } else {
        gauge(families.back(), double(value), labels);
      }
    }
  }
  MetricFamily& told = add(families, "gyre_told_total", "Messages of actors that the host took, by outcome.",
                           MetricType::Counter);
  count(told, stats.books.told.handled, {{"outcome", "handled"}});
  count(told, stats.books.told.dropped, {{"outcome", "dropped"}});
}

// What actors are there, and what they send each other: by type and worker.
void add_actors(std::vector<MetricFamily>& families, const Stats& stats) {
  MetricFamily living{"gyre_actors", "Actors that the worker has.", MetricType::Gauge, {}};
  MetricFamily created{
      "gyre_actors_created_total", "Actors that were created on the worker.", MetricType::Counter, {}};
  MetricFamily sent{"gyre_mail_actor_sent_total",
                    "Messages that the worker's actors of the type sent to actors.",
                    MetricType::Counter,
                    {}};
  MetricFamily processed{"gyre_mail_actor_processed_total",
                         "Messages of actors that the worker's actors of the type handled well.",
                         MetricType::Counter,
                         {}};
  for (size_t n = 0; n < stats.workers.size(); ++n) {
    for (const ActorStats& actors : stats.workers[n].actors) {
      const Labels labels{{"actor", actors.actor}, {"worker", std::to_string(n)}};
      if (actors.has_state) {
        gauge(living, double(actors.living), labels);
        count(created, actors.created, labels);
      }
      count(sent, actors.mail_sent, labels);
      count(processed, actors.mail_processed, labels);
    }
  }
  for (MetricFamily* family : {&living, &created, &sent, &processed}) families.push_back(std::move(*family));
}

void add_handlers(std::vector<MetricFamily>& families, const Stats& stats) {
  MetricFamily& family =
      add(families, "gyre_handler_seconds",
          "Time in handlers of the messages that were processed; on the CPU engine with some tens "
          "of nanoseconds around them.",
          MetricType::Histogram);
  for (const HandlerStats& handler : stats.handlers()) {
    ClientMetric metric;
    metric.label = labels_of(handler);
    uint64_t sum = 0;
    for (size_t bin = 0; bin < handler.times.size(); ++bin) {
      sum += handler.times[bin];  // below 2^(bin + 1) ns
      if (bin + 1 < first_bound || bin + 1 > last_bound) continue;
      metric.histogram.bucket.push_back({sum, double(uint64_t(2) << bin) * 1e-9});
    }
    metric.histogram.bucket.push_back({sum, std::numeric_limits<double>::infinity()});
    metric.histogram.sample_count = handler.processed;
    metric.histogram.sample_sum = double(handler.handler_ns) * 1e-9;
    family.metric.push_back(std::move(metric));
  }
}

void add_transfers(std::vector<MetricFamily>& families, const Stats& stats) {
  MetricFamily copies{"gyre_buffer_copies_total", "Copies to and from buffers.", MetricType::Counter, {}};
  MetricFamily bytes{"gyre_buffer_copy_bytes_total", "Bytes that they copied.", MetricType::Counter, {}};
  MetricFamily seconds{"gyre_buffer_copy_seconds_total", "Time that they took.", MetricType::Counter, {}};
  const auto add_kind = [&](const char* kind, const TransferStats& transfers) {
    const Labels labels{{"direction", kind}};
    count(copies, transfers.copies, labels);
    count(bytes, transfers.bytes, labels);
    count(seconds, 0, labels);
    seconds.metric.back().counter.value = double(transfers.ns) * 1e-9;
  };
  add_kind("write", stats.writes);
  add_kind("read", stats.reads);
  for (MetricFamily* family : {&copies, &bytes, &seconds}) families.push_back(std::move(*family));
}

void add_memory(std::vector<MetricFamily>& families, const MemoryStats& memory) {
  MetricFamily& kinds = add(families, "gyre_memory_bytes",
                            "Memory that the runtime has taken, by what it is for.", MetricType::Gauge);
  const auto add_kind = [&kinds](const char* kind, uint64_t bytes) {
    gauge(kinds, double(bytes), {{"kind", kind}});
  };
  add_kind("region", memory.region);
  add_kind("bar", memory.bar);
  add_kind("actors", memory.actors);
  add_kind("modules", memory.modules);
  add_kind("buffer_table", memory.buffer_table);
  add_kind("device_buffers", memory.buffers[0]);
  add_kind("pinned_buffers", memory.buffers[1]);
  add_kind("unified_buffers", memory.buffers[2]);
  add_kind("imported_buffers", memory.buffers[3]);
  add_kind("freed_device_buffers", memory.buffers_freed[0]);
  add_kind("freed_pinned_buffers", memory.buffers_freed[1]);
  add_kind("freed_unified_buffers", memory.buffers_freed[2]);
  add_kind("freed_imported_buffers", memory.buffers_freed[3]);
  if (memory.device_total == 0) return;
  gauge(add(families, "gyre_device_memory_bytes", "Memory that the device has.", MetricType::Gauge),
        double(memory.device_total));
  gauge(add(families, "gyre_device_memory_free_bytes", "Memory that the device has free.", MetricType::Gauge),
        double(memory.device_free));
}

// Sections that name a count alike share its metric. A counter and a gauge do not: only counters end with
// _total.
void add_program(std::vector<MetricFamily>& families, const std::vector<CountSection>& sections) {
  std::map<std::string, MetricFamily> program;
  for (const CountSection& section : sections) {
    const Labels labels{{"section", section.name}};
    for (const NamedCount& of_program : section.counts) {
      const bool is_counter = of_program.kind == CountKind::counter;
      const std::string name = "gyre_program_" + of_program.name + (is_counter ? "_total" : "");
      MetricFamily& family = program[name];
      if (family.metric.empty()) {
        family = {name, of_program.help, is_counter ? MetricType::Counter : MetricType::Gauge, {}};
      }
      if (is_counter) {
        count(family, of_program.value, labels);
      } else {
        gauge(family, double(of_program.value), labels);
      }
    }
  }
  for (auto& [name, family] : program) families.push_back(std::move(family));
}

class Collector final : public prometheus::Collectable {
 public:
  explicit Collector(std::function<Stats()> read) : read_(std::move(read)) {}

  std::vector<MetricFamily> Collect() const override try {
    const Stats stats = read_();
    std::vector<MetricFamily> families;
    families.reserve(64);  // add()'s references stay good
    add_runtime(families, stats);
    add_books(families, stats.books);
    add_workers(families, stats);
    add_mail(families, stats);
    add_actors(families, stats);
    add_handlers(families, stats);
    add_transfers(families, stats);
    add_memory(families, stats.memory);
    add_program(families, stats.program);  // last: it moves the others
    return families;
  } catch (const std::exception& error) {
    detail::log(LogLevel::warning,
                [&] { return fmt::format("answering a scrape: no stats: {}", error.what()); });
    return {};
  }

 private:
  std::function<Stats()> read_;
};

}  // namespace

struct PrometheusEndpoint::Server {
  Server(std::function<Stats()> read, const PrometheusOptions& options)
      : collector(std::make_shared<Collector>(std::move(read))), exposer(options.address, 1) {
    exposer.RegisterCollectable(collector, options.path);
  }
  std::shared_ptr<Collector> collector;  // the exposer does not own it
  prometheus::Exposer exposer;
};

PrometheusEndpoint::PrometheusEndpoint(std::function<Stats()> read, const PrometheusOptions& options) {
  const detail::CancellationDeferred deferred;  // civetweb sleeps and joins
  try {
    const detail::SignalsBlocked blocked;
    server_ = std::make_unique<Server>(std::move(read), options);
  } catch (const std::exception& error) {
    throw Error(fmt::format("serving metrics on {}: {}; is the address this machine's, and the port free?",
                            options.address, error.what()));
  }
  detail::log(LogLevel::info, [this, &options] {
    return fmt::format("metrics are served on {} (port {}), {}", options.address, port(), options.path);
  });
}

PrometheusEndpoint::~PrometheusEndpoint() {
  const detail::CancellationDeferred deferred;
  server_.reset();
}
PrometheusEndpoint::PrometheusEndpoint(PrometheusEndpoint&&) noexcept = default;
PrometheusEndpoint& PrometheusEndpoint::operator=(PrometheusEndpoint&& other) noexcept {
  const detail::CancellationDeferred deferred;
  server_ = std::move(other.server_);
  return *this;
}

int PrometheusEndpoint::port() const { return server_->exposer.GetListeningPorts().front(); }

}  // namespace gyre
