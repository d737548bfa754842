// Durable tells, beside a real server: what each becomes, and how often its handler runs.
#include <string>

#include "runtime/nats/nodes.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_test::nats_nodes;
using gyre::nats::GatewayBooks;

TEST_CASE("durable tells are handled once each and removed, also those that were stored before a node came") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  Sender sender(url, "durable");
  {
    Node first(options_for(url, "durable"));  // makes the stream
    first.wait_for_all_shards();
    REQUIRE(first.gateway->leave());
  }
  for (uint64_t i = 1; i <= 300; ++i) REQUIRE(sender.store_note(i % 10, "id-" + std::to_string(i), i).stored);
  CHECK(sender.client.messages_in("gyre_durable_tells") == 300);
  Node node(options_for(url, "durable"), {.workers = 2});
  node.wait_for_all_shards();
  for (uint64_t i = 301; i <= 600; ++i)
    REQUIRE(sender.store_note(i % 10, "id-" + std::to_string(i), i).stored);
  sender.wait_until_stream_is_empty();
  uint64_t sum = 0;
  for (uint64_t key = 0; key < 10; ++key) sum += sender.sum(key);
  CHECK(sum == 600 * 601 / 2);
  const GatewayBooks books = node.balanced_books();
  CHECK(books.durable_processed == 600);
  CHECK(books.durable_received == 600 + books.durable_delayed + books.durable_duplicates);
  CHECK(books.durable_failed + books.durable_refused + books.durable_expired == 0);
}

TEST_CASE("a durable tell whose handler fails is removed and counted, and not handled again") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  Node node(options_for(url, "durable_failed"));
  node.wait_for_all_shards();
  Sender sender(url, "durable_failed");
  REQUIRE(sender.store(1, "fails", ask_type, ask_body(Action::FAIL, 7)).stored);
  sender.wait_until_stream_is_empty();
  wait_until([&] { return node.gateway->books().durable_failed == 1; });
  // A delivery of an id that has failed is terminated too.
  REQUIRE(sender.store(1, "fails", ask_type, ask_body(Action::FAIL, 7)).stored);
  sender.wait_until_stream_is_empty();
  const GatewayBooks books = node.balanced_books();
  CHECK(books.durable_failed == 1);
  CHECK(books.durable_duplicates == 1);
  CHECK(books.durable_received == 2);
  CHECK(node.runtime.books().asks.accepted == 1);
}

TEST_CASE("a durable tell with a response is processed, and its response goes nowhere") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  Node node(options_for(url, "durable_response"));
  node.wait_for_all_shards();
  Sender sender(url, "durable_response");
  REQUIRE(sender.store(1, "answers", ask_type, ask_body(Action::ANSWER, 7)).stored);
  sender.wait_until_stream_is_empty();
  CHECK(node.balanced_books().durable_processed == 1);
}

TEST_CASE(
    "durable tells without id, with bad headers or bodies, for no actor or the wrong shard are removed as "
    "refused") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  Node node(options_for(url, "durable_refused"));
  node.wait_for_all_shards();
  Sender sender(url, "durable_refused");
  const std::string body = note_body(1);
  const auto good = Sender::headers(note_type, 5, {{"Gyre-Id", "a"}});
  REQUIRE(sender.client.store(sender.durable_subject(5), body, Sender::headers(note_type, 5)).stored);
  REQUIRE(sender.client.store(sender.durable_subject(5), body, {}).stored);
  REQUIRE(sender.client
              .store(sender.durable_subject(5), body, Sender::headers(note_type, 5, {{"Gyre-Id", "a b"}}))
              .stored);
  REQUIRE(
      sender.client
          .store(sender.durable_subject(5), body, Sender::headers("0000000000000001", 5, {{"Gyre-Id", "b"}}))
          .stored);
  REQUIRE(sender.client.store(sender.subjects.durable("my_Counter", 5), body, good).stored);
  const uint32_t other = (nats::shard_of(probe_name, 5, 64) + 1) % 64;
  REQUIRE(sender.client.store(sender.subjects.durable(probe_name, other), body, good).stored);
  REQUIRE(sender.client
              .store(sender.durable_subject(5), "garbage", Sender::headers(note_type, 5, {{"Gyre-Id", "c"}}))
              .stored);
  sender.wait_until_stream_is_empty();
  const GatewayBooks books = node.balanced_books();
  CHECK(books.durable_received == 7);
  CHECK(books.durable_refused == 7);
  CHECK(sender.sum(5) == 0);
}

TEST_CASE("a durable tell whose time was over before a node took it is removed as expired, not handled") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  Sender sender(url, "durable_expired");
  {
    Node first(options_for(url, "durable_expired"));
    first.wait_for_all_shards();
    REQUIRE(first.gateway->leave());
  }
  REQUIRE(sender.store_note(5, "late", 1, {{"Gyre-Timeout", "1"}}).stored);
  REQUIRE(sender.store_note(5, "in-time", 2, {{"Gyre-Timeout", "600000000"}}).stored);
  Node node(options_for(url, "durable_expired"));
  node.wait_for_all_shards();
  sender.wait_until_stream_is_empty();
  CHECK(sender.sum(5) == 2);
  const GatewayBooks books = node.balanced_books();
  CHECK(books.durable_expired == 1);
  CHECK(books.durable_processed == 1);
}

TEST_CASE("a durable tell whose handler began in time and ended after the tell's time is processed") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  Node node(options_for(url, "durable_ends_late"), {.workers = 1});
  node.wait_for_all_shards();
  Sender sender(url, "durable_ends_late");
  uint64_t sent = 0;
  GatewayBooks books;
  // Until the worker begins in time, however busy the machine is.
  for (uint64_t lifetime_us = 100'000; books.durable_processed == 0; lifetime_us *= 2) {
    REQUIRE(sender
                .store(1, std::to_string(++sent), ask_type, ask_body(Action::TIME, 2 * lifetime_us * 1000),
                       {{"Gyre-Timeout", std::to_string(lifetime_us)}})
                .stored);
    wait_until([&] { return node.gateway->books().durable_received == sent; });
    books = node.balanced_books();
    REQUIRE(books.durable_processed + books.durable_expired == sent);
  }
  CHECK(books.durable_delayed == 0);
  sender.wait_until_stream_is_empty();
}

TEST_CASE("a durable tell that is published twice is handled once, by Nats-Msg-Id and by Gyre-Id") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  Node node(options_for(url, "durable_twice"));
  node.wait_for_all_shards();
  Sender sender(url, "durable_twice");
  const Stored first = sender.store_note(5, "one", 1, {{"Nats-Msg-Id", "one"}});
  const Stored second = sender.store_note(5, "one", 1, {{"Nats-Msg-Id", "one"}});
  CHECK(first.stored);
  CHECK_FALSE(first.duplicate);
  CHECK(second.stored);
  CHECK(second.duplicate);  // JetStream dropped it
  // The node drops what JetStream did not: while the first is in hand, and when it is done.
  for (int i = 0; i < 20; ++i) REQUIRE(sender.store_note(5, "two", 10).stored);
  sender.wait_until_stream_is_empty();
  REQUIRE(sender.store_note(5, "two", 10).stored);
  sender.wait_until_stream_is_empty();
  CHECK(sender.sum(5) == 11);
  const GatewayBooks books = node.balanced_books();
  CHECK(books.durable_processed == 2);
  CHECK(books.durable_duplicates == 20);
}

TEST_CASE("durable tells that find no room are put off, and each is handled once") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  auto options = options_for(url, "durable_room");
  options.shards = 1;
  Node node(options, {.workers = 1, .slots = 2});
  node.wait_for_all_shards();
  Sender sender(url, "durable_room", 1);
  uint64_t sum = 0, sent = 0;
  while (node.gateway->books().durable_delayed == 0) {
    REQUIRE(sent < 10'000);
    sender.client.send_ask(sender.subject(1), ask_body(Action::WORK, 20'000'000),
                           Sender::headers(ask_type, 1));
    for (int i = 0; i < 30; ++i) {
      sum += ++sent;
      REQUIRE(sender.store_note(1, "id-" + std::to_string(sent), sent).stored);
    }
    REQUIRE(sender.client.next_reply());
  }
  sender.wait_until_stream_is_empty();
  CHECK(sender.sum(1) == sum);
  const GatewayBooks books = node.balanced_books();
  CHECK(books.durable_processed == sent);
  CHECK(books.durable_received == sent + books.durable_delayed);
  CHECK(books.durable_redelivered == books.durable_delayed);
}

TEST_CASE("one durable tell at a time is handled where a gateway has room for one") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  auto options = options_for(url, "durable_one");
  options.shards = 1;
  options.durable_in_flight = 1;
  Node node(options);
  node.wait_for_all_shards();
  Sender sender(url, "durable_one", 1);
  for (uint64_t i = 1; i <= 20; ++i) REQUIRE(sender.store_note(3, std::to_string(i), i).stored);
  sender.wait_until_stream_is_empty();
  CHECK(sender.sum(3) == 210);
  CHECK(node.balanced_books().durable_processed == 20);
}

TEST_CASE("a durable tell that a node died with is delivered again, to the shard's next owner") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  const auto options = with_short_lease(options_for(url, "durable_died", "node1"));
  auto first = std::make_unique<Node>(options, Options{.workers = 1});
  first->wait_for_all_shards();
  Sender sender(url, "durable_died", 8);
  // In hand when the gateway ends without leave(), as its process would.
  REQUIRE(sender.store(1, "works", ask_type, ask_body(Action::WORK, 60'000'000'000)).stored);
  wait_until([&] { return first->gateway->books().durable_received == 1; });
  first->gateway.reset();
  auto other = options;
  other.node = "node2";
  Node second(other);
  second.wait_for_all_shards();
  CHECK(sender.client.messages_in("gyre_durable_died_tells") == 1);
  first.reset();  // the worker that is told to stop ends its handler: what it says reaches nobody
  // nats-server 2.9 may deliver it twice then: the second is known.
  wait_until([&] { return second.gateway->books().durable_received > 0; });
  CHECK(second.gateway->books().durable_in_flight() == 1);  // at work, for a minute
  CHECK(second.runtime.books().asks.accepted == 1);
  CHECK(sender.client.messages_in("gyre_durable_died_tells") == 1);
}

TEST_CASE("a gateway without durable tells leaves them in their stream") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  auto options = options_for(url, "durable_left");
  {
    Node first(options);
    first.wait_for_all_shards();
    REQUIRE(first.gateway->leave());
  }
  Sender sender(url, "durable_left");
  REQUIRE(sender.store_note(5, "stays", 1).stored);
  options.durable_tells = false;
  Node node(options);
  node.wait_for_all_shards();
  CHECK(sender.sum(5) == 0);
  CHECK(sender.client.messages_in("gyre_durable_left_tells") == 1);
  CHECK(node.balanced_books().durable_received == 0);
}

TEST_CASE("a handler that takes longer than JetStream waits is not handled twice") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  Node node(options_for(url, "durable_long"), {.workers = 1});  // JetStream waits for a second
  node.wait_for_all_shards();
  Sender sender(url, "durable_long");
  REQUIRE(sender.store(1, "long", ask_type, ask_body(Action::WORK, 2'500'000'000)).stored);
  sender.wait_until_stream_is_empty();
  CHECK(node.balanced_books().durable_processed == 1);
  CHECK(node.runtime.books().asks.accepted == 1);
}

TEST_CASE("a durable tell in hand while its consumer is deleted and made anew is handled once and removed") {
  if (!has_server()) return;
  const std::string url = shared_server().url();
  auto options = options_for(url, "durable_renewed");
  options.shards = 1;
  options.acknowledge_wait = 60s;  // only the new consumer delivers again
  Node node(options, {.workers = 1});
  node.wait_for_all_shards();
  Sender sender(url, "durable_renewed", 1);
  uint64_t sent = 0;
  // Until the tell is delivered again before its handler ends, however busy the machine is.
  for (uint64_t work_ns = 1'000'000'000; node.gateway->books().durable_duplicates == 0; work_ns *= 2) {
    const uint64_t received = node.gateway->books().durable_received;
    REQUIRE(sender.store(1, std::to_string(++sent), ask_type, ask_body(Action::WORK, work_ns)).stored);
    wait_until([&] { return node.gateway->books().durable_received > received; });
    REQUIRE(sender.client.delete_consumer(sender.subjects.stream(), "shard_0"));
    sender.wait_until_stream_is_empty();
  }
  const GatewayBooks books = node.balanced_books();
  CHECK(books.durable_processed == sent);
  CHECK(books.durable_received == sent + books.durable_duplicates);
  CHECK(node.runtime.books().asks.accepted == sent);
}
