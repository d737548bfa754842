// Nodes that join, leave, die and are refused, beside a real server.
#include <gyre/runtime/nats/registry.hpp>

#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "runtime/nats/nodes.hpp"
#include "runtime/nats/same_names.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_test::nats_nodes;
using gyre::nats::GatewayBooks;
using gyre::nats::detail::NodeEntry;
using gyre::nats::detail::ShardEntry;

namespace {

/// Returns what the node's launch says that is refused.
std::string refusal_of_node(const gyre::nats::GatewayOptions& options, ActorSet actors = probe_actors()) {
  try {
    const Node node(options, {}, std::move(actors));
  } catch (const BadOptions& error) {
    return std::string("BadOptions: ") + error.what();
  } catch (const Error& error) {
    return error.what();
  }
  return "it joined";
}

}  // namespace

TEST_CASE(
    "a node that leaves alone gives its lease up, its shards are nobody's, and it may join again at once") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  Sender sender(url, "leaves");
  Node node(options_for(url, "leaves"));
  node.wait_for_all_shards();
  CHECK(sender.client.entry("gyre_leaves", "config") ==
        "shards=64 lease_ms=3000 clock_error_ms=500 actors=gyre_test_Probe");
  CHECK(NodeEntry::read(sender.client.entry("gyre_leaves", "node.node1"))->state ==
        NodeEntry::State::serving);
  const auto shard = ShardEntry::read(sender.client.entry("gyre_leaves", "shard.0"));
  REQUIRE(shard);
  CHECK(shard->node == "node1");
  CHECK(shard->state == ShardEntry::State::serving);
  CHECK(sender.tell(1, 5));
  CHECK(node.gateway->leave(60s));
  CHECK(NodeEntry::read(sender.client.entry("gyre_leaves", "node.node1"))->state == NodeEntry::State::gone);
  CHECK(sender.ask(1, ask_body(Action::ANSWER, 1)).status == "no_responders");
  CHECK_FALSE(node.gateway->state().leased);
  CHECK(node.gateway->state().shards_owned == 0);
  CHECK(node.gateway->leave(60s));  // once more: nothing is left to do
  const GatewayBooks books = node.balanced_books();
  CHECK(books.tells_received == 1);
  CHECK(books.tells_accepted == 1);
  CHECK(books.leases_lost == 0);
  CHECK(books.shards_handed == 0);
  Node again(options_for(url, "leaves"));
  again.wait_for_all_shards();
  CHECK(sender.ask(1, ask_body(Action::ANSWER, 1)).status == "ok");
}

TEST_CASE("a node that joins takes its share and hands it back when it leaves; no ask is lost meanwhile") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  Node first(options_for(url, "shares", "node1"));
  first.wait_for_all_shards();
  std::atomic<bool> ends{false};
  std::map<std::string, uint64_t> statuses;
  std::thread asks([&] {
    Sender sender(url, "shares");
    for (uint64_t key = 0; !ends.load(); ++key) {
      ++statuses[sender.ask(key % 256, ask_body(Action::ANSWER, key)).status];
    }
  });
  uint32_t share = 0;
  for (uint32_t shard = 0; shard < 64; ++shard)
    share += nats::preference("node2", shard) > nats::preference("node1", shard);
  {
    Node second(options_for(url, "shares", "node2"));
    second.wait_for_shards(share);
    first.wait_for_shards(64 - share);
    CHECK(first.gateway->state().nodes == std::vector<std::string>{"node1", "node2"});
    CHECK(second.gateway->state().nodes == std::vector<std::string>{"node1", "node2"});
    CHECK(first.gateway->books().shards_handed == share);
    CHECK(second.gateway->leave(60s));
    CHECK(second.gateway->books().shards_handed == share);
    second.balanced_books();
    CHECK(second.gateway->books().asks_lost == 0);
  }
  first.wait_for_all_shards();
  ends = true;
  asks.join();
  CHECK(statuses.size() == 1);
  CHECK(statuses["ok"] > 0);
  const GatewayBooks books = first.balanced_books();
  CHECK(books.asks_lost == 0);
  CHECK(books.shards_taken == 64 + share);
}

TEST_CASE(
    "the state of actors whose shard moved to another node and back begins anew, that of others stays") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  Node first(options_for(url, "anew", "node1"), {.workers = 2});
  first.wait_for_all_shards();
  Sender sender(url, "anew");
  constexpr uint64_t keys = 100;
  for (uint64_t key = 0; key < keys; ++key) REQUIRE(sender.tell(key, 7));
  for (uint64_t key = 0; key < keys; ++key) CHECK(sender.sum(key) == 7);
  const auto moves = [](uint64_t key) {
    const uint32_t shard = nats::shard_of(probe_name, key, 64);
    return nats::preference("node2", shard) > nats::preference("node1", shard);
  };
  {
    Node second(options_for(url, "anew", "node2"));
    wait_until([&] {
      return first.gateway->state().shards_owned + second.gateway->state().shards_owned == 64 &&
             second.gateway->state().shards_owned > 10;
    });
    for (uint64_t key = 0; key < keys; ++key) {
      INFO(key);
      CHECK(sender.sum(key) == (moves(key) ? 0 : 7));
    }
    CHECK(second.gateway->leave(60s));
  }
  first.wait_for_all_shards();
  for (uint64_t key = 0; key < keys; ++key) {
    INFO(key);
    CHECK(sender.sum(key) == (moves(key) ? 0 : 7));
  }
}

TEST_CASE("a node that died is followed by another, which then owns all shards") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  auto first = std::make_unique<Node>(with_short_lease(options_for(url, "follows", "node1")));
  first->wait_for_all_shards();
  Node second(options_for(url, "follows", "node2"));  // with the namespace's lease
  wait_until([&] { return second.gateway->state().shards_owned > 0; });
  first.reset();  // without leave()
  Sender sender(url, "follows", 8);
  second.wait_for_all_shards();
  CHECK(second.gateway->state().nodes == std::vector<std::string>{"node2"});
  for (uint64_t key = 0; key < 20; ++key) CHECK(sender.ask(key, ask_body(Action::ANSWER, 1)).status == "ok");
  CHECK(NodeEntry::read(sender.client.entry("gyre_follows", "node.node1"))->state == NodeEntry::State::gone);
}

TEST_CASE(
    "a node of the same name waits for the lease of one that died, and is refused beside one that lives") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  auto options = with_short_lease(options_for(url, "same"));
  auto first = std::make_unique<Node>(options);
  first->wait_for_all_shards();
  CHECK(refusal_of_node(options) ==
        "joining the namespace same: a node named node1 is alive; give this one another name");
  CHECK(first->gateway->state().shards_owned == 8);
  first.reset();
  Node second(options);
  second.wait_for_all_shards();
  CHECK(Sender(url, "same", 8).ask(1, ask_body(Action::ANSWER, 1)).status == "ok");
}

TEST_CASE("a node whose entry another process of its name took, and that then died, serves again") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  Node node(with_short_lease(options_for(url, "namesakes")));
  node.wait_for_all_shards();
  Sender sender(url, "namesakes", 8);
  REQUIRE(sender.client.put("gyre_namesakes", "node.node1", "life=0000000000000001 state=serving"));
  wait_until(
      [&] { return node.gateway->books().leases_lost == 1 && node.gateway->state().shards_owned == 0; });
  CHECK(sender.client.entry("gyre_namesakes", "node.node1") == "life=0000000000000001 state=serving");
  node.wait_for_all_shards();
  CHECK(sender.ask(1, ask_body(Action::ANSWER, 1)).status == "ok");
}

TEST_CASE("a node makes its namespace again if the servers have lost it, with the same numbers") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  auto first = std::make_unique<Node>(with_short_lease(options_for(url, "lost")));
  Node second(options_for(url, "lost", "node2"));  // has the numbers from the namespace
  wait_until(
      [&] { return first->gateway->state().shards_owned + second.gateway->state().shards_owned == 8; });
  Sender sender(url, "lost", 8);
  const std::string config = sender.client.entry("gyre_lost", "config");
  const auto lease_number = [&] {
    return std::stoull(sender.ask(7, ask_body(Action::ANSWER, 1)).header("Gyre-Lease"));
  };
  uint64_t highest = lease_number();
  for (uint64_t losses = 1; losses <= 2; ++losses) {
    REQUIRE(sender.client.delete_stream("KV_gyre_lost"));
    REQUIRE(sender.client.delete_stream("gyre_lost_tells"));
    wait_until([&] { return second.gateway->books().leases_lost == losses; });
    if (losses == 1) REQUIRE(first->gateway->leave());
    first.reset();
    for (uint64_t key = 0; key < 20; ++key) wait_until([&] { return sender.is_served(key); });
    CHECK(sender.client.entry("gyre_lost", "config") == config);
    CHECK(lease_number() > highest);  // though revisions began anew
    highest = lease_number();
    wait_until([&] { return sender.store_note(7, "note-" + std::to_string(losses), 5).stored; });
    sender.wait_until_stream_is_empty();
    CHECK(sender.sum(7) == 5);  // the actor began anew
  }
}

TEST_CASE("no request has two owners after the servers have lost the entries of a node that serves") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  auto options = with_short_lease(options_for(url, "owned_once"));
  options.lease = 4000ms;
  Node first(options);
  std::this_thread::sleep_for(options.lease / 6);  // so long after the first one the second renews its lease
  Node second(options_for(url, "owned_once", "node2"));
  const auto shards_owned = [&] {
    return first.gateway->state().shards_owned + second.gateway->state().shards_owned;
  };
  wait_until([&] { return shards_owned() == 8; });
  Sender sender(url, "owned_once", 8);
  uint64_t answered = 0;
  const auto ask_each = [&] {
    for (uint64_t key = 0; key < 20; ++key) answered += sender.is_served(key);
  };
  REQUIRE(sender.client.delete_stream("KV_gyre_owned_once"));
  // The node that renews its lease first makes the bucket again.
  wait_until([&] {
    ask_each();
    return first.gateway->books().leases_lost != 0 && second.gateway->books().leases_lost != 0 &&
           shards_owned() == 8;
  });
  ask_each();
  // A reply may be here before it is counted.
  wait_until([&] {
    return first.gateway->books().asks_in_flight() + second.gateway->books().asks_in_flight() == 0;
  });
  CHECK(first.gateway->books().asks_answered + second.gateway->books().asks_answered == answered);
}

TEST_CASE("a node does not serve a namespace that came back with another number of shards") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  Node node(with_short_lease(options_for(url, "renumbered")));
  node.wait_for_all_shards();
  NatsClient client(url);
  REQUIRE(client.delete_stream("KV_gyre_renumbered"));
  auto other = with_short_lease(options_for(url, "renumbered", "node2"));
  other.shards = 4;
  Node second(other);
  second.wait_for_all_shards();
  wait_until([&] { return node.gateway->books().leases_lost == 1; });
  Sender sender(url, "renumbered", 4);
  for (uint64_t key = 0; key < 20; ++key) wait_until([&] { return sender.is_served(key); });
  CHECK(node.gateway->state().shards_owned == 0);
  CHECK_FALSE(node.gateway->state().leased);
  CHECK(sender.store_note(7, "note", 5).stored);
  sender.wait_until_stream_is_empty();
  CHECK_FALSE(client.store(sender.subjects.durable(probe_name, 7), note_body(5), {}).stored);
  CHECK(second.gateway->state().nodes == std::vector<std::string>{"node2"});
}

TEST_CASE("a node whose numbers or actors are not the namespace's is refused with both") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  auto options = options_for(url, "numbers");
  options.shards = 16;
  options.lease = 2000ms;
  options.clock_error = 300ms;
  Node node(options);
  node.wait_for_shards(16);
  auto other = options_for(url, "numbers", "node2");
  other.shards = 32;
  other.lease = 2001ms;
  other.clock_error = 299ms;
  const std::string numbers =
      "the number of shards is 32, but the namespace numbers has 16; leave the option out\n"
      "the lease in ms is 2001, but the namespace numbers has 2000; leave the option out\n"
      "the clock error in ms is 299, but the namespace numbers has 300; leave the option out";
  const std::string actors =
      "this node has the actors same_names_Counter, but the namespace numbers serves gyre_test_Probe; "
      "use another namespace";
  CHECK(refusal_of_node(other) == "BadOptions: " + numbers);
  const auto counter = ActorSet::of<same_names::Counter>(gyre_test_actors::sources);
  CHECK(refusal_of_node(other, counter) == "BadOptions: " + numbers + "\n" + actors);
  CHECK(refusal_of_node(options_for(url, "numbers", "node2"), counter) == "BadOptions: " + actors);
  other.shards = 16, other.lease = 2000ms, other.clock_error = 300ms;
  Node same(other);
  wait_until([&] { return same.gateway->state().shards_owned > 0; });
}

TEST_CASE("a namespace whose entry is none, and a server without JetStream, are refused by name") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  NatsClient client(url);
  REQUIRE(client.put("gyre_hostile", "config", "shards=0\r\nGyre"));
  CHECK(refusal_of_node(options_for(url, "hostile")) ==
        "joining the namespace hostile: the entry config of the bucket gyre_hostile is \"shards=0  Gyre\", "
        "which is "
        "none; delete the bucket if no node uses it");
  const NatsServer plain("", false);
  CHECK_THAT(refusal_of_node(options_for(plain.url(), "none")), containing("JetStream"));
}

TEST_CASE("entries of the bucket that are none, or another's, do no harm") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  NatsClient client(url);
  auto options = options_for(url, "entries");
  options.shards = 8;
  Node node(options);
  node.wait_for_shards(8);
  for (const std::string value : {"", "x", "node=a life=1 state=serving", "life=zz state=serving"}) {
    REQUIRE(client.put("gyre_entries", "shard.8", value));
    REQUIRE(client.put("gyre_entries", "shard.x", value));
    REQUIRE(client.put("gyre_entries", "shard.03", value));
    REQUIRE(client.put("gyre_entries", "shard.18446744073709551617", value));
    REQUIRE(client.put("gyre_entries", "shard", value));
    REQUIRE(client.put("gyre_entries", "node.other", value));
    REQUIRE(client.put("gyre_entries", "else", value));
    REQUIRE(client.put("gyre_entries", "shard.3", value));  // the node's own
  }
  Sender sender(url, "entries", 8);
  uint64_t key = 0;
  while (nats::shard_of(probe_name, key, 8) != 3) ++key;
  wait_until([&] { return sender.is_served(key); });
  node.wait_for_shards(8);
  CHECK(node.gateway->books().leases_lost == 0);
}
