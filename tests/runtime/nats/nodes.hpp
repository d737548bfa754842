// Nodes of the Probe actor, and what a client sends to them.
#pragma once

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <gyre/runtime/nats/gateway.hpp>
#include <gyre/runtime/nats/headers.hpp>
#include <gyre/runtime/nats/subject.hpp>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/nats_server.hpp"
#include "support/skip.hpp"
#include "support/stepped.hpp"

namespace gyre_test::nats_nodes {

using namespace std::chrono_literals;

inline constexpr const char* probe_name = "gyre_test_Probe";
inline const std::string ask_type = gyre::nats::type_text(view::ProbeRequest::type_id);
inline const std::string note_type = gyre::nats::type_text(view::ProbeNote::type_id);

/// Returns false, and counts the case as skipped, where there is no nats-server.
inline bool has_server() {
  if (!nats_server_path().empty()) return true;
  skip("nats-server is not installed (Debian: nats-server)");
  return false;
}

/// Returns the server that most cases share; each has a namespace of its own.
inline NatsServer& shared_server() {
  static NatsServer server;
  return server;
}

/// Waits until the condition holds. Fails after a minute, with the line of the call.
inline void wait_until(const std::function<bool()>& condition, int line = __builtin_LINE()) {
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until)
      FAIL("what line " << line << " waits for does not come within a minute");
    std::this_thread::sleep_for(2ms);
  }
}

inline gyre::nats::GatewayOptions options_for(const std::string& url, const std::string& namespace_name,
                                              const std::string& node = "node1") {
  gyre::nats::GatewayOptions options;
  options.connection.servers = {url};
  options.namespace_name = namespace_name;
  options.node = node;
  options.acknowledge_wait = 1s;
  return options;
}
/// Of namespaces in which nodes die: a machine that is busy may renew a short lease too late.
inline gyre::nats::GatewayOptions with_short_lease(gyre::nats::GatewayOptions options) {
  options.shards = 8;
  options.lease = 2000ms;
  options.clock_error = 100ms;
  return options;
}

/// A runtime of the Probe actor, and its gateway.
struct Node {
  explicit Node(const gyre::nats::GatewayOptions& options, gyre::Options runtime_options = {},
                gyre::ActorSet actors = probe_actors())
      : runtime(gyre::Runtime::launch(std::move(actors), on_cpu(runtime_options))),
        gateway(std::make_unique<gyre::nats::Gateway>(runtime, options)) {}

  static gyre::Options on_cpu(gyre::Options options) {
    options.engine = gyre::EngineKind::cpu;
    return options;
  }
  void wait_for_shards(uint32_t shards) {
    wait_until([&] { return gateway->state().shards_owned == shards; });
  }
  void wait_for_all_shards() { wait_for_shards(gateway->state().shards); }
  /// Waits until the books are balanced, and returns them.
  gyre::nats::GatewayBooks balanced_books() {
    wait_until([&] { return gateway->books().balanced(); });
    return gateway->books();
  }

  gyre::Runtime runtime;
  std::unique_ptr<gyre::nats::Gateway> gateway;
};

inline std::string stream_of(capnp::MessageBuilder& message) {
  const auto words = capnp::messageToFlatArray(message);
  return {reinterpret_cast<const char*>(words.begin()), words.asBytes().size()};
}
inline std::string ask_body(Action action, uint64_t argument, const std::vector<uint64_t>& filler = {}) {
  capnp::MallocMessageBuilder message;
  auto request = message.initRoot<ProbeRequest>();
  request.setAction(action);
  request.setArgument(argument);
  auto list = request.initFiller(unsigned(filler.size()));
  for (unsigned i = 0; i < filler.size(); ++i) list.set(i, filler[i]);
  return stream_of(message);
}
inline std::string note_body(uint64_t value) {
  capnp::MallocMessageBuilder message;
  message.initRoot<ProbeNote>().setValue(value);
  return stream_of(message);
}

/// What a reply's body says.
struct Answer {
  uint64_t value = 0, key = 0;
  std::vector<uint64_t> filler;
};
inline Answer answer_in(const std::string& body) {
  REQUIRE(body.size() % sizeof(capnp::word) == 0);
  std::vector<capnp::word> words(body.size() / sizeof(capnp::word));
  std::memcpy(words.data(), body.data(), body.size());
  capnp::FlatArrayMessageReader reader(kj::arrayPtr(words.data(), words.size()));
  const auto response = reader.getRoot<ProbeResponse>();
  Answer answer{response.getValue(), response.getKey(), {}};
  for (const uint64_t word : response.getFiller()) answer.filler.push_back(word);
  return answer;
}

/// Sends to the Probe actors of one namespace.
struct Sender {
  Sender(const std::string& url, const std::string& namespace_name, uint32_t shard_count = 64)
      : client(url), subjects(namespace_name), shards(shard_count) {}

  std::string subject(uint64_t key) const {
    return subjects.request(probe_name, gyre::nats::shard_of(probe_name, key, shards));
  }
  std::string durable_subject(uint64_t key) const {
    return subjects.durable(probe_name, gyre::nats::shard_of(probe_name, key, shards));
  }
  static Headers headers(const std::string& type, uint64_t key, const Headers& more = {}) {
    Headers all{{"Gyre-Type", type}, {"Gyre-Key", std::to_string(key)}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  NatsReply ask(uint64_t key, const std::string& body, const Headers& more = {}) {
    return client.ask(subject(key), body, headers(ask_type, key, more));
  }
  /// Returns true if the ask is answered well. While nodes lose and take shards it may get no reply.
  bool is_served(uint64_t key) {
    return client.ask(subject(key), ask_body(Action::ANSWER, 1), headers(ask_type, key), 2s).status == "ok";
  }
  bool tell(uint64_t key, uint64_t value) {
    return client.tell(subject(key), note_body(value), headers(note_type, key));
  }
  /// Publishes a durable tell; `more` are its headers besides type, key and id.
  Stored store(uint64_t key, const std::string& id, const std::string& type, const std::string& body,
               const Headers& more = {}) {
    Headers all = headers(type, key, {{"Gyre-Id", id}});
    all.insert(all.end(), more.begin(), more.end());
    return client.store(durable_subject(key), body, all);
  }
  Stored store_note(uint64_t key, const std::string& id, uint64_t value, const Headers& more = {}) {
    return store(key, id, note_type, note_body(value), more);
  }
  /// Returns the sum of an actor's notes.
  uint64_t sum(uint64_t key) {
    const NatsReply reply = ask(key, ask_body(Action::SUM_OF_NOTES, 0));
    REQUIRE(reply.status == "ok");
    return answer_in(reply.body).value;
  }
  /// Waits until no node has a durable tell to take or in hand.
  void wait_until_stream_is_empty() {
    wait_until([&] { return client.messages_in(subjects.stream()) == 0; });
  }

  NatsClient client;
  gyre::nats::Subjects subjects;
  uint32_t shards;
};

}  // namespace gyre_test::nats_nodes
