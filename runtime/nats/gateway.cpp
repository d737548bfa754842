#include <gyre/runtime/nats/gateway.hpp>

#include <fmt/format.h>
#include <gyre/runtime/nats/durable_tells.hpp>
#include <gyre/runtime/nats/membership.hpp>
#include <gyre/runtime/nats/requests.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gyre::nats {
namespace {

// How long leave() waits for a server, which may be gone, to take the last replies.
constexpr std::chrono::milliseconds most_for_last_replies{2000};

void check(const GatewayOptions& options) {
  std::string problems;
  const auto wrong = [&](const std::string& problem) {
    problems += (problems.empty() ? "" : "\n") + problem;
  };
  const auto check_name = [&](const char* what, const std::string& name) {
    if (!is_name(name))
      wrong(fmt::format("{} is \"{}\"; give 1 to 32 letters, digits, _ and -", what, header_text(name, 64)));
  };
  const auto check_within = [&](const char* what, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most)
      wrong(fmt::format("{} is {}; give {} to {}", what, value, least, most));
  };
  check_name("the namespace", options.namespace_name);
  check_name("the node's name", options.node);
  if (options.connection.servers.empty()) wrong("no server is given; give the URL of one");
  if (options.connection.certificate_file.empty() != options.connection.key_file.empty())
    wrong("a certificate and its key go together; give both files or neither");
  check_within("the number of shards", options.shards, 0, detail::NamespaceConfig::max_shards);
  if (options.lease.count() != 0) check_within("the lease in ms", options.lease.count(), 300, 3'600'000);
  if (options.clock_error.count() != 0)
    check_within("the clock error in ms", options.clock_error.count(), 1, 3'600'000);
  check_within("the number of replicas", options.replicas, 1, 5);
  check_within("the number of durable tells in flight", options.durable_in_flight, 1, 1000);
  check_within("the wait for an acknowledgement in ms", options.acknowledge_wait.count(), 1000, 86'400'000);
  check_within("the timeout of a handover in ms", options.handover_timeout.count(), 1, 3'600'000);
  check_within("the number of threads", options.threads, 1, 64);
  if (!problems.empty()) throw BadOptions(problems);
}

detail::EngineHealth health_of(const Runtime& runtime) {
  const Lifecycle state = runtime.state();
  return {state == Lifecycle::active || state == Lifecycle::inactive, runtime.restarts()};
}

// The gauges of a gateway's section, behind the counts.
struct GaugeField {
  const char* name;
  const char* help;
  uint64_t (*value)(const GatewayState&);
};
constexpr std::array gauges{
    GaugeField{"connected", "1 while the node is connected to a server, else 0.",
               [](const GatewayState& state) { return uint64_t(state.connected); }},
    GaugeField{"leased", "1 while the node's lease is valid, else 0.",
               [](const GatewayState& state) { return uint64_t(state.leased); }},
    GaugeField{"shards", "Shards of the namespace.",
               [](const GatewayState& state) { return uint64_t(state.shards); }},
    GaugeField{"shards_owned", "Shards that this node owns.",
               [](const GatewayState& state) { return uint64_t(state.shards_owned); }},
    GaugeField{"asks_in_flight", "Asks given to actors and not yet answered.",
               [](const GatewayState& state) { return uint64_t(state.asks_in_flight); }},
    GaugeField{"nodes", "Nodes of the namespace that serve, as this node last saw them.",
               [](const GatewayState& state) { return uint64_t(state.nodes.size()); }},
};

// Another gateway of the runtime may have the name.
std::string free_section(const Runtime& runtime) {
  const std::vector<CountSection> taken = runtime.stats().program;
  std::string name = "nats";
  for (int n = 2; std::any_of(taken.begin(), taken.end(), [&](const auto& s) { return s.name == name; }); ++n)
    name = fmt::format("nats_{}", n);
  return name;
}

CountSection section_of(std::string name) {
  CountSection section{std::move(name), {}};
  for (const CountField& field : count_fields()) section.counts.push_back({field.name, field.help});
  for (const GaugeField& gauge : gauges) section.counts.push_back({gauge.name, gauge.help, CountKind::gauge});
  return section;
}

void read_section(const GatewayBooks& books, const GatewayState& state, std::span<uint64_t> values) {
  size_t n = 0;
  for (const CountField& field : count_fields()) values[n++] = books.*field.count;
  for (const GaugeField& gauge : gauges) values[n++] = gauge.value(state);
}

}  // namespace

class Gateway::Node {
 public:
  Node(Runtime& runtime, const GatewayOptions& options)
      : context_(std::make_shared<detail::Context>(runtime, options)),
        requests_(std::make_shared<detail::Requests>(context_)),
        membership_(context_, requests_,
                    {[this] {
                       if (context_->options.durable_tells)
                         durable_ = std::make_shared<detail::DurableTells>(context_, requests_);
                     },
                     [this](detail::Shard& shard) {
                       if (durable_) durable_->begin_service(shard);
                     },
                     [this](detail::Shard& shard) {
                       if (durable_) durable_->end_service(shard);
                     }},
                    [&runtime] { return health_of(runtime); }),
        counts_(runtime.add_counts(section_of(free_section(runtime)), [this](std::span<uint64_t> values) {
          read_section(books(), state(), values);
        })) {
    if (durable_) durable_->start();
    membership_.start();
  }
  ~Node() {
    counts_.remove();  // no reader of the stats is in here afterwards
    membership_.stop();
    if (durable_) durable_->stop();
    context_->connection.close();  // no handler of a message runs afterwards
  }

  bool leave(std::chrono::milliseconds timeout) {
    const auto end = std::chrono::steady_clock::now() + timeout;
    const bool left = membership_.leave(timeout);
    // A lease that ended leaves requests with actors.
    while (requests_->in_flight() != 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const auto rest =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    context_->connection.flush(std::clamp(rest, std::chrono::milliseconds(1), most_for_last_replies));
    return left && requests_->in_flight() == 0;
  }
  GatewayBooks books() {
    GatewayBooks books = context_->counts.books();
    books.disconnects = context_->connection.events().disconnects.load(std::memory_order_relaxed);
    return books;
  }
  GatewayState state() const {
    const auto& connection = context_->connection;
    return {connection.connected(),
            connection.closed(),
            connection.server(),
            context_->lease.valid(),
            uint32_t(context_->shards.size()),
            membership_.shards_owned(),
            requests_->in_flight(),
            membership_.nodes()};
  }

 private:
  const std::shared_ptr<detail::Context> context_;
  const std::shared_ptr<detail::Requests> requests_;
  std::shared_ptr<detail::DurableTells> durable_;
  detail::Membership membership_;
  AddedCounts counts_;  // reads what is above
};

Gateway::Gateway(Runtime& runtime, const GatewayOptions& options) {
  check(options);
  node_ = std::make_unique<Node>(runtime, options);
}

Gateway::~Gateway() = default;

bool Gateway::leave(std::chrono::milliseconds timeout) { return node_->leave(timeout); }
GatewayBooks Gateway::books() const { return node_->books(); }
GatewayState Gateway::state() const { return node_->state(); }

}  // namespace gyre::nats
