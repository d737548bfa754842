// gyre-nats: a node. Launches a runtime and joins it to a namespace on NATS until it is interrupted.
#include <fmt/format.h>
#include <unistd.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/actors/actor_library.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/nats/gateway.hpp>
#include <gyre/runtime/nats/subject.hpp>

#include <chrono>
#include <iostream>
#include <thread>

#include "command_line.hpp"
#include "common_options.hpp"
#include "server_options.hpp"
#include "watching.hpp"

namespace gyre::tools {
namespace {

struct NodeSettings {
  Options options;
  nats::GatewayOptions gateway;
  std::string json_file, actors;
  bool builtin = false;
  double leave_timeout_s = 30;
};

std::string host_name() {
  char name[33] = "";
  gethostname(name, sizeof name - 1);
  std::string result;
  for (const char* c = name; *c != 0 && *c != '.'; ++c) result += nats::is_name({c, 1}) ? *c : '-';
  return result.empty() ? "node" : result;
}

void add_options(ProgramCommand command, NodeSettings& settings) {
  nats::GatewayOptions& gateway = settings.gateway;
  gateway.node = host_name();
  const std::string actors = "The actors", node = "The node and its namespace";
  const auto add_milliseconds = [&](const char* name, std::chrono::milliseconds& value, const char* text) {
    command
        .add_option(
            name, [&value](int64_t ms) { value = std::chrono::milliseconds(ms); }, text)
        .type_name("MS")
        .group(node);
  };
  add_server_options(command, gateway.connection);
  const auto library =
      command
          .add_option("--actors", settings.actors,
                      "a shared object that exports actors; FILE:NAME if it exports several sets")
          .type_name("FILE")
          .group(actors);
  command
      .add_flag("--builtin", settings.builtin, "gyre::actors::Echo and gyre::actors::VectorAdd (the default)")
      .excludes(library)
      .group(actors);
  command.add_option("--namespace", gateway.namespace_name, "the namespace").show_default().group(node);
  command.add_option("--node,--name", gateway.node, "the node's name").show_default().group(node);
  command.add_option("--shards", gateway.shards, "number of shards; the first node decides (64)").group(node);
  add_milliseconds("--lease", gateway.lease, "lease; the first node decides (3000)");
  add_milliseconds("--clock-error", gateway.clock_error,
                   "how long other nodes wait after a lease; the first node decides (500)");
  command
      .add_option("--replicas", gateway.replicas,
                  "copies that a cluster of servers keeps of the bucket and the stream")
      .show_default()
      .group(node);
  command
      .add_flag(
          "--no-durable", [&gateway] { gateway.durable_tells = false; },
          "leave durable tells of the node's shards in their stream")
      .group(node);
  command
      .add_option("--durable-in-flight", gateway.durable_in_flight,
                  "most durable tells of one shard that actors have at once")
      .show_default()
      .group(node);
  add_milliseconds("--ack-wait", gateway.acknowledge_wait,
                   "after that durable tells of a node that died are delivered again (30000)");
  add_milliseconds("--handover-timeout", gateway.handover_timeout,
                   "how long a shard waits for requests in flight before it moves (10000)");
  command.add_option("--leave-timeout", settings.leave_timeout_s, "seconds to hand over on SIGTERM or SIGINT")
      .show_default()
      .group(node);
  command.add_option("--threads", gateway.threads, "threads that take requests").show_default().group(node);
}

ActorSet actors_of(const NodeSettings& settings) {
  if (settings.actors.empty()) return builtin_actors();
  const size_t colon = settings.actors.rfind(':');
  const std::string file = settings.actors.substr(0, colon);
  return ActorSet::from_library(load_actor_library(
      file, colon == std::string::npos ? std::string() : settings.actors.substr(colon + 1)));
}

Json summary_of(const nats::Gateway& gateway, const Books& books, bool left) {
  Json document;
  const nats::GatewayBooks counted = gateway.books();
  document["left"] = left;
  document["balanced"] = counted.balanced() && books.balanced();
  Json counts;
  for (const nats::CountField& field : nats::count_fields()) counts[field.name] = counted.*field.count;
  document["gateway"] = counts;
  return document;
}

int serve(NodeSettings& settings) {
  catch_interrupts();
  settings.options.publish_stats = true;
  Runtime runtime = Runtime::launch(actors_of(settings), settings.options);
  const auto metrics = serve_metrics(runtime);
  nats::Gateway gateway(runtime, settings.gateway);
  const nats::GatewayState joined = gateway.state();
  std::cerr << fmt::format("gyre-nats: node {} serves {} in the namespace {} ({} shards) on {}\n",
                           settings.gateway.node, runtime.actors().type_list(),
                           settings.gateway.namespace_name, joined.shards, joined.server);
  bool refused = false;
  while (!interrupt_requested()) {
    if (runtime.state() == Lifecycle::failed && settings.options.restart.times == 0) break;
    refused = gateway.state().closed;
    if (refused) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const bool failed = runtime.state() == Lifecycle::failed;
  if (refused) {
    std::cerr << fmt::format(
        "gyre-nats: connecting to NATS again ({}): a server refused this node's credentials twice; start the "
        "node again with credentials that it takes\n",
        joined.server);
  }
  if (failed) std::cerr << fmt::format("gyre-nats: the engine failed: {}\n", runtime.failure());
  const bool left = gateway.leave(std::chrono::milliseconds(int64_t(settings.leave_timeout_s * 1000)));
  runtime.terminate();
  const Books books = runtime.books();
  const Json summary = summary_of(gateway, books, left);
  std::cerr << "gyre-nats: " << summary.text() << "\n";
  write_json(settings.json_file, summary);
  return failed || refused || !left ? case_failed : all_passed;
}

}  // namespace
}  // namespace gyre::tools

int main(int argc, char** argv) {
  using namespace gyre::tools;
  Program program("Joins actors to a NATS server: a node. Ends in order on SIGTERM and SIGINT.", "gyre-nats",
                  Program::Subcommands::none);
  NodeSettings settings;
  add_options(program.command(), settings);
  add_common_options(program.command(), settings.options, settings.json_file);
  if (const auto exit_code = program.parse(argc, argv)) return *exit_code;
  return run_reporting_errors([&settings] { return serve(settings); });
}
