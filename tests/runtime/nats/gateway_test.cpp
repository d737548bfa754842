// Asks and tells by a gateway, beside a real server.
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "runtime/nats/nodes.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_test::nats_nodes;
using gyre::nats::GatewayBooks;

namespace {

constexpr const char* trace_context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

}  // namespace

TEST_CASE("asks by NATS are answered with the handler's response, whatever shard the key belongs to") {
  if (!has_server()) return;
  Node node(options_for(shared_server().url(), "asks"), {.workers = 2});
  node.wait_for_all_shards();
  Sender sender(shared_server().url(), "asks");
  std::set<std::string> leases;
  for (uint64_t key = 0; key < 200; ++key) {
    std::vector<uint64_t> filler(key % 100);
    std::iota(filler.begin(), filler.end(), key);
    const NatsReply reply = sender.ask(key, ask_body(Action::ECHO, 0, filler));
    REQUIRE(reply.status == "ok");
    const Answer answer = answer_in(reply.body);
    CHECK(answer.key == key);
    CHECK(answer.filler == filler);
    CHECK(answer.value == std::accumulate(filler.begin(), filler.end(), uint64_t(0)));
    CHECK(reply.header("Gyre-Id") == "(missing)");
    CHECK(reply.header("traceparent") == "(missing)");
    CHECK(reply.header("Gyre-Reason") == "(missing)");
    leases.insert(reply.header("Gyre-Lease"));
  }
  CHECK(leases.size() == 64);  // a revision of each shard
  CHECK(leases.count("(missing)") == 0);
  const GatewayBooks books = node.balanced_books();
  CHECK(books.asks_received == 200);
  CHECK(books.asks_answered == 200);
  CHECK(books.shards_taken == 64);
  CHECK(books.dropped == 0);
}

TEST_CASE("a reply by NATS repeats id and trace context") {
  if (!has_server()) return;
  Node node(options_for(shared_server().url(), "repeats"));
  node.wait_for_all_shards();
  Sender sender(shared_server().url(), "repeats");
  const std::string longest(64, '~');
  for (const std::string& id : {std::string("!"), longest, std::string("a.b*>c")}) {
    const NatsReply reply =
        sender.ask(5, ask_body(Action::ANSWER, 7), {{"Gyre-Id", id}, {"traceparent", trace_context}});
    CHECK(reply.status == "ok");
    CHECK(answer_in(reply.body).value == 15);
    CHECK(reply.header("Gyre-Id") == id);
    CHECK(reply.header("traceparent") == trace_context);
  }
  const NatsReply failed =
      sender.ask(5, ask_body(Action::FAIL, 12), {{"Gyre-Id", "x"}, {"traceparent", trace_context}});
  CHECK(failed.status == "handler_failed");
  CHECK_THAT(failed.reason, containing("12"));
  CHECK(failed.header("Gyre-Id") == "x");
  CHECK(failed.header("traceparent") == trace_context);
  const GatewayBooks books = node.balanced_books();
  CHECK(books.asks_answered == 3);
  CHECK(books.asks_error_replies == 1);
}

TEST_CASE("tells by NATS are handled once each, and one with a reply subject is answered with a receipt") {
  if (!has_server()) return;
  gyre::Options roomy;
  roomy.slots = 1024;  // for all tells at once: a worker may wait for a processor meanwhile
  Node node(options_for(shared_server().url(), "tells"), roomy);
  node.wait_for_all_shards();
  Sender sender(shared_server().url(), "tells");
  for (uint64_t i = 1; i <= 1000; ++i) REQUIRE(sender.tell(i % 10, i));
  uint64_t sum = 0;
  for (uint64_t key = 0; key < 10; ++key) sum += sender.sum(key);
  CHECK(sum == 1000 * 1001 / 2);
  const NatsReply receipt = sender.client.ask(sender.subject(3), note_body(1'000'000),
                                              Sender::headers(note_type, 3, {{"Gyre-Id", "receipt-1"}}));
  CHECK(receipt.status == "ok");
  CHECK(receipt.body.empty());
  CHECK(receipt.header("Gyre-Id") == "receipt-1");
  CHECK(sender.sum(3) > 1'000'000);  // the handler had ended
  // A message without a body is the empty message.
  CHECK(sender.client.ask(sender.subject(3), "", Sender::headers(note_type, 3)).status == "ok");
  const NatsReply empty = sender.ask(3, "");
  CHECK(empty.status == "ok");
  CHECK(answer_in(empty.body).value == 1);
  const GatewayBooks books = node.balanced_books();
  CHECK(books.tells_received == 1000);
  CHECK(books.tells_accepted == 1000);
  CHECK(books.asks_received == books.asks_answered);
}

TEST_CASE("each header that is missing, repeated or malformed is answered bad_header, with its name") {
  if (!has_server()) return;
  Node node(options_for(shared_server().url(), "headers"));
  node.wait_for_all_shards();
  Sender sender(shared_server().url(), "headers");
  const std::string body = ask_body(Action::ANSWER, 1);
  const auto reply_to = [&](const Headers& headers) {
    return sender.client.ask(sender.subject(5), body, headers);
  };
  uint64_t refused = 0;
  const auto is_refused = [&](const NatsReply& reply, const std::string& reason) {
    ++refused;
    CHECK(reply.status == "bad_header");
    CHECK(reply.reason == reason);
    CHECK(reply.body.empty());
    CHECK(reply.header("Gyre-Lease") != "(missing)");
  };
  is_refused(reply_to({}), "the header Gyre-Type is missing; give the request's type id");
  is_refused(reply_to({{"Gyre-Key", "5"}, {"Gyre-Id", "its-id"}}),
             "the header Gyre-Type is missing; give the request's type id");
  CHECK(reply_to({{"Gyre-Key", "5"}, {"Gyre-Id", "its-id"}}).header("Gyre-Id") == "its-id");
  ++refused;
  is_refused(reply_to({{"Gyre-Type", ask_type}}), "the header Gyre-Key is missing; give the actor's key");
  is_refused(reply_to({{"Gyre-Type", "12"}, {"Gyre-Key", "5"}}),
             "the header Gyre-Type is \"12\"; give the request's type id as 16 hexadecimal digits");
  is_refused(reply_to({{"Gyre-Type", ask_type}, {"Gyre-Key", "-5"}}),
             "the header Gyre-Key is \"-5\"; give a decimal number below 2^64");
  const std::map<std::string, std::string> wanted{{"Gyre-Timeout", "1 to 10^12 microseconds, decimal"},
                                                  {"Gyre-Id", "1 to 64 characters from ! to ~"},
                                                  {"traceparent", "a W3C trace context of version 00"}};
  for (const auto& [name, text] : wanted) {
    is_refused(reply_to(Sender::headers(ask_type, 5, {{name, "a b"}})),
               "the header " + name + " is \"a b\"; give " + text);
  }
  for (const auto& [name, value] : Headers{{"Gyre-Type", ask_type},
                                           {"Gyre-Key", "5"},
                                           {"Gyre-Timeout", "5"},
                                           {"Gyre-Id", "5"},
                                           {"traceparent", trace_context}}) {
    Headers headers = Sender::headers(ask_type, 5, {{name, value}});
    if (name != "Gyre-Type" && name != "Gyre-Key") headers.emplace_back(name, value);
    is_refused(reply_to(headers), "the header " + name + " is repeated; give it once");
  }
  const GatewayBooks books = node.balanced_books();
  CHECK(books.asks_refused == refused);
  CHECK(books.asks_received == refused);
  CHECK(sender.ask(5, body).status == "ok");
}

TEST_CASE(
    "requests for no actor, no handler or the wrong shard, and bodies that are none, are refused by name") {
  if (!has_server()) return;
  Node node(options_for(shared_server().url(), "refusals"), {.arena_bytes = 1 << 16});
  node.wait_for_all_shards();
  Sender sender(shared_server().url(), "refusals");
  const std::string body = ask_body(Action::ANSWER, 1);

  const NatsReply unknown_actor =
      sender.client.ask("gyre.refusals.my_Counter.5", body, Sender::headers(ask_type, 5));
  CHECK(unknown_actor.status == "unknown_actor");
  CHECK(unknown_actor.reason == "no actor type is my_Counter in a subject; there are gyre_test_Probe");

  const NatsReply unknown_message =
      sender.client.ask(sender.subject(5), body, Sender::headers("0000000000000001", 5));
  CHECK(unknown_message.status == "unknown_message");
  CHECK_FALSE(unknown_message.reason.empty());

  const uint32_t right = nats::shard_of(probe_name, 5, 64);
  const uint32_t other = (right + 1) % 64;
  const NatsReply wrong_shard =
      sender.client.ask(sender.subjects.request(probe_name, other), body, Sender::headers(ask_type, 5));
  CHECK(wrong_shard.status == "wrong_shard");
  CHECK(wrong_shard.reason == "gyre_test_Probe with key 5 belongs to shard " + std::to_string(right) +
                                  " of 64, not to " + std::to_string(other));

  uint64_t malformed_bodies = 0;
  for (const std::string& bytes :
       {std::string("x"), std::string(8, '\xff'), std::string(16, '\xff'), body.substr(0, body.size() - 1),
        body.substr(0, 8), std::string(4096, '\0')}) {
    const NatsReply malformed = sender.ask(5, bytes);
    INFO(bytes.size());
    if (malformed.status == "ok") continue;  // zeros are the empty message, with more behind it
    CHECK(malformed.status == "malformed");
    CHECK_FALSE(malformed.reason.empty());
    ++malformed_bodies;
  }
  CHECK(malformed_bodies >= 5);

  const NatsReply too_large = sender.ask(5, ask_body(Action::ECHO, 0, std::vector<uint64_t>(50'000)));
  CHECK(too_large.status == "too_large");
  CHECK_FALSE(too_large.reason.empty());

  CHECK(sender.client.ask("gyre.refusals.gyre_test_Probe.64", body, Sender::headers(ask_type, 5)).status ==
        "no_responders");
  // A refused tell is counted, and nobody is told.
  CHECK(sender.client.tell("gyre.refusals.my_Counter.5", body, {}));
  CHECK(sender.ask(5, body).status == "ok");
  const GatewayBooks books = node.balanced_books();
  CHECK(books.tells_refused == 1);
  CHECK(books.asks_received == books.asks_answered + books.asks_refused + books.asks_error_replies);
}

TEST_CASE("an ask whose reply would go to a subject of the server's own is refused without a reply") {
  if (!has_server()) return;
  Node node(options_for(shared_server().url(), "deputies"));
  node.wait_for_all_shards();
  Sender sender(shared_server().url(), "deputies");
  const std::string config = sender.client.entry("gyre_deputies", "config");
  REQUIRE_FALSE(config.empty());
  for (const std::string reply_subject :
       {"$KV.gyre_deputies.config", "$KV.gyre_deputies.node.node1",
        "$JS.API.STREAM.DELETE.gyre_deputies_tells", "$JS.API.STREAM.PURGE.KV_gyre_deputies"}) {
    // One that the node refuses by an empty reply, and one that an actor would answer.
    REQUIRE(sender.client.send_ask_for(reply_subject, sender.subject(5), "", {}));
    REQUIRE(sender.client.send_ask_for(reply_subject, sender.subject(5), ask_body(Action::ANSWER, 1),
                                       Sender::headers(ask_type, 5)));
  }
  CHECK(sender.ask(5, ask_body(Action::ANSWER, 1)).status == "ok");  // all of the others came before
  CHECK(sender.client.entry("gyre_deputies", "config") == config);
  CHECK(sender.client.messages_in("gyre_deputies_tells") == 0);
  const GatewayBooks books = node.balanced_books();
  CHECK(books.asks_received == 9);
  CHECK(books.asks_refused == 8);
  CHECK(books.asks_answered == 1);
  CHECK(books.leases_lost == 0);
}

TEST_CASE("a reply by NATS that is larger than the server takes fails by name, with the numbers") {
  if (!has_server()) return;
  const NatsServer server("max_payload: 32KB");
  Node node(options_for(server.url(), "large"), {.max_reply_bytes = 1 << 20});
  node.wait_for_all_shards();
  Sender sender(server.url(), "large");
  const NatsReply fits = sender.ask(1, ask_body(Action::GROW, 4000));
  CHECK(fits.status == "ok");
  REQUIRE(fits.body.size() > 32'000);
  CHECK(answer_in(fits.body).filler.size() == 4000);
  // With its headers a reply may be larger, though its body is not.
  for (const uint64_t words : {4090, 5000}) {
    const NatsReply reply = sender.ask(1, ask_body(Action::GROW, words), {{"Gyre-Id", "large-1"}});
    CHECK(reply.status == "reply_too_large");
    CHECK(reply.reason == "publishing a reply of " + std::to_string(fits.body.size() + 8 * (words - 4000)) +
                              " bytes: the server takes 32768, headers included; raise its max_payload");
    CHECK(reply.body.empty());
    CHECK(reply.header("Gyre-Id") == "large-1");
  }
  const GatewayBooks books = node.balanced_books();
  CHECK(books.asks_answered == 1);
  CHECK(books.asks_error_replies == 2);
}

TEST_CASE("an ask whose time is over while its handler runs is answered timed_out") {
  if (!has_server()) return;
  Node node(options_for(shared_server().url(), "timeouts"), {.workers = 1});
  node.wait_for_all_shards();
  Sender sender(shared_server().url(), "timeouts");
  const NatsReply reply = sender.ask(1, ask_body(Action::WORK, 200'000'000), {{"Gyre-Timeout", "20000"}});
  CHECK(reply.status == "timed_out");
  CHECK_FALSE(reply.reason.empty());
  CHECK(reply.header("Gyre-Lease") != "(missing)");
  CHECK(sender.ask(1, ask_body(Action::ANSWER, 3), {{"Gyre-Timeout", "60000000"}}).status == "ok");
  const GatewayBooks books = node.balanced_books();
  CHECK(books.asks_expired == 1);
  CHECK(books.asks_answered == 1);
}

TEST_CASE("an ask by NATS that finds no room in the ring is answered ring_full, and each ask has one reply") {
  if (!has_server()) return;
  Node node(options_for(shared_server().url(), "rings"), {.workers = 1, .slots = 2, .timeout = 60s});
  node.wait_for_all_shards();
  Sender sender(shared_server().url(), "rings");
  std::map<std::string, uint64_t> statuses;
  std::string reason;
  uint64_t sent = 0;
  // A worker that is busy for 20 ms, and asks meanwhile, until one of them came before it was done.
  while (statuses["ring_full"] == 0) {
    REQUIRE(sent < 10'000);
    for (int i = 0; i < 20; ++i, ++sent) {
      sender.client.send_ask(sender.subject(uint64_t(i)), ask_body(Action::WORK, i == 0 ? 20'000'000 : 0),
                             Sender::headers(ask_type, uint64_t(i)));
    }
    for (int i = 0; i < 20; ++i) {
      const auto reply = sender.client.next_reply();
      REQUIRE(reply);
      ++statuses[reply->status];
      if (reply->status == "ring_full") reason = reply->reason;
    }
  }
  CHECK(statuses["ok"] + statuses["ring_full"] == sent);
  CHECK_FALSE(reason.empty());
  const GatewayBooks books = node.balanced_books();
  CHECK(books.asks_received == sent);
  CHECK(books.asks_answered == statuses["ok"]);
  CHECK(books.asks_refused == statuses["ring_full"]);
}

TEST_CASE("a node whose runtime is deactivated answers inactive, and one that drains names it and leaves") {
  if (!has_server()) return;
  Node node(options_for(shared_server().url(), "inactive"));
  node.wait_for_all_shards();
  Sender sender(shared_server().url(), "inactive");
  REQUIRE(node.runtime.deactivate(60s));
  const NatsReply inactive = sender.ask(1, ask_body(Action::ANSWER, 1));
  CHECK(inactive.status == "inactive");
  CHECK_FALSE(inactive.reason.empty());
  REQUIRE(node.runtime.activate(60s));
  CHECK(sender.ask(1, ask_body(Action::ANSWER, 1)).status == "ok");

  REQUIRE(node.runtime.drain(60s));
  std::map<std::string, int> statuses;
  // The node gives its lease up once it finds that its engine does not serve.
  wait_until([&] {
    const NatsReply reply = sender.ask(1, ask_body(Action::ANSWER, 1));
    ++statuses[reply.status];
    if (reply.status == "draining") CHECK_FALSE(reply.reason.empty());
    if (reply.status == "no_such_node") CHECK(reply.header("Gyre-Lease") == "(missing)");
    return reply.status == "no_responders";
  });
  statuses.erase("draining");
  statuses.erase("no_such_node");
  CHECK(statuses == std::map<std::string, int>{{"no_responders", 1}});
  CHECK_FALSE(node.gateway->state().leased);
  const GatewayBooks books = node.balanced_books();
  CHECK(books.leases_lost == 1);
  CHECK(books.asks_error_replies == 1);
}

TEST_CASE("a gateway's state says what it is connected to and what it owns") {
  if (!has_server()) return;
  auto options = options_for(shared_server().url(), "state");
  options.shards = 10;
  const std::string url = options.connection.servers[0];
  options.connection.servers = {"nats://someone:secret@" +
                                url.substr(strlen("nats://"))};  // the server asks for none
  Node node(options);
  node.wait_for_shards(10);
  const nats::GatewayState state = node.gateway->state();
  CHECK(state.connected);
  CHECK(state.server == url);
  CHECK(state.leased);
  CHECK(state.shards == 10);
  CHECK(state.shards_owned == 10);
  CHECK(state.asks_in_flight == 0);
  CHECK(state.nodes == std::vector<std::string>{"node1"});
}

TEST_CASE("each gateway of a runtime has a section in the stats until it ends") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  Node node(options_for(url, "section_one"));
  const auto sections = [&] {
    std::vector<std::string> names;
    for (const CountSection& section : node.runtime.stats().program) names.push_back(section.name);
    return names;
  };
  CHECK(sections() == std::vector<std::string>{"nats"});
  {
    const nats::Gateway second(node.runtime, options_for(url, "section_two"));
    CHECK(sections() == std::vector<std::string>{"nats", "nats_2"});
  }
  CHECK(sections() == std::vector<std::string>{"nats"});
  node.wait_for_all_shards();
  const CountSection section = node.runtime.stats().program.at(0);
  CHECK(section.counts.size() == nats::count_fields().size() + 6);
  for (const NamedCount& count : section.counts) {
    INFO(count.name);
    if (count.name == "shards" || count.name == "shards_owned" || count.name == "shards_taken")
      CHECK(count.value == 64);
    if (count.name == "leased" || count.name == "connected" || count.name == "nodes") CHECK(count.value == 1);
  }
  node.gateway.reset();
  CHECK(sections().empty());
}
