#include <gyre/runtime/nats/delivery.hpp>
#include <gyre/runtime/nats/registry.hpp>

#include <string>
#include <string_view>

#include "support/catch.hpp"

using namespace gyre::nats::detail;

TEST_CASE("a namespace's numbers are written as the page says, and read back") {
  const NamespaceConfig config{64, 3000, 500, "my_Counter,my_Sum"};
  CHECK(config.text() == "shards=64 lease_ms=3000 clock_error_ms=500 actors=my_Counter,my_Sum");
  const auto read = NamespaceConfig::read(config.text());
  REQUIRE(read);
  CHECK(read->shards == 64);
  CHECK(read->lease_ms == 3000);
  CHECK(read->clock_error_ms == 500);
  CHECK(read->actors == "my_Counter,my_Sum");
  // In any order, with more that a later Gyre may write.
  const auto other =
      NamespaceConfig::read("later=1 actors=A clock_error_ms=0 lease_ms=4294967295 shards=1024");
  REQUIRE(other);
  CHECK(other->shards == NamespaceConfig::max_shards);
  CHECK(other->lease_ms == 4294967295);
  CHECK(other->clock_error_ms == 0);
  CHECK(other->actors == "A");
}

TEST_CASE("what is no namespace's entry is refused") {
  for (const std::string_view text :
       {"", " ", "=", "shards", "shards=", "shards=64", "shards=64 lease_ms=3000",
        "shards=0 lease_ms=1 clock_error_ms=1", "shards=1025 lease_ms=1 clock_error_ms=1",
        "shards=-1 lease_ms=1 clock_error_ms=1", "shards=64x lease_ms=1 clock_error_ms=1",
        "shards=64 lease_ms=0 clock_error_ms=1", "shards=64 lease_ms=4294967296 clock_error_ms=1",
        "shards=64 lease_ms=1 clock_error_ms=-1", "xshards=64 lease_ms=1 clock_error_ms=1",
        "shards =64 lease_ms=1 clock_error_ms=1", "shards=64,lease_ms=1,clock_error_ms=1", "\n",
        "shards=64\nlease_ms=1\nclock_error_ms=1"}) {
    INFO(text);
    CHECK_FALSE(NamespaceConfig::read(text));
  }
  CHECK_FALSE(NamespaceConfig::read(std::string(1 << 20, ' ')));
  CHECK_FALSE(NamespaceConfig::read(std::string_view("shards=64\0 lease_ms=1 clock_error_ms=1", 38)));
}

TEST_CASE("a node's entry is written as the page says, and read back") {
  for (const auto& [state, name] :
       {std::pair(NodeEntry::State::serving, "serving"), std::pair(NodeEntry::State::leaving, "leaving"),
        std::pair(NodeEntry::State::gone, "gone")}) {
    const NodeEntry entry{0xabc, state};
    CHECK(entry.text() == std::string("life=0000000000000abc state=") + name);
    const auto read = NodeEntry::read(entry.text());
    REQUIRE(read);
    CHECK(read->life == 0xabc);
    CHECK(read->state == state);
  }
  for (const std::string_view text : {"", "life=1", "state=serving", "life=1 state=", "life= state=gone",
                                      "life=x state=gone", "life=-1 state=gone", "life=1 state=servin",
                                      "life=1 state=servings", "life=11111111111111111 state=gone"}) {
    INFO(text);
    CHECK_FALSE(NodeEntry::read(text));
  }
}

TEST_CASE("a shard's entry is written as the page says, and read back") {
  const ShardEntry moving{"node1", 0xf, ShardEntry::State::moving, "node-2", 0xab};
  CHECK(moving.text() == "node=node1 life=000000000000000f state=moving group=00000000000000ab to=node-2");
  const ShardEntry taken{"node1", 1, ShardEntry::State::taken, {}, ~uint64_t(0)};
  CHECK(taken.text() == "node=node1 life=0000000000000001 state=taken group=ffffffffffffffff");
  for (const ShardEntry& entry :
       {moving, taken, ShardEntry{"n", ~uint64_t(0), ShardEntry::State::serving, {}, 1},
        ShardEntry{"n", 0, ShardEntry::State::taken, {}}}) {
    const auto read = ShardEntry::read(entry.text());
    REQUIRE(read);
    CHECK(read->node == entry.node);
    CHECK(read->life == entry.life);
    CHECK(read->state == entry.state);
    CHECK(read->to == entry.to);
    CHECK(read->group == entry.group);
  }
  for (const std::string_view text :
       {"", "node=a", "node=a life=1", "life=1 state=serving", "node= life=1 state=serving",
        "node=a.b life=1 state=serving", "node=> life=1 state=serving", "node=a life=1 state=serving to=*",
        "node=a life=1 state=gone", "node=a life=g state=taken", "node=a life=1 state=taken group=x",
        "node=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa life=1 state=taken"}) {
    INFO(text);
    CHECK_FALSE(ShardEntry::read(text));
  }
}

TEST_CASE(
    "JetStream's reply subjects of 9 tokens and of 12 say which delivery it is and when it was stored") {
  for (const char* const subject :
       {"$JS.ACK.gyre_test_tells.shard_5.3.10.20.1700000000000000000.4",
        "$JS.ACK.hub.ACCOUNT.gyre_test_tells.shard_5.3.10.20.1700000000000000000.4",
        "$JS.ACK._.ACCOUNT.gyre_test_tells.shard_5.3.10.20.1700000000000000000.4.random",
        "$JS.ACK._.ACCOUNT.gyre_test_tells.shard_5.3.10.20.1700000000000000000.4.random.and.more"}) {
    INFO(subject);
    Delivery delivery;
    REQUIRE(Delivery::read(subject, delivery));
    CHECK(delivery.number == 3);
    CHECK(delivery.stored_ns == 1'700'000'000'000'000'000);
  }
}

TEST_CASE("reply subjects that are not JetStream's deliveries are refused") {
  for (const std::string_view subject : {"",
                                         ".",
                                         "........",
                                         "...........",
                                         "_INBOX.abc",
                                         "$JS.ACK",
                                         "$JS.ACK.s.c.1.2.3.4",
                                         "$JS.ACK.s.c.1.2.3.4.5.6",
                                         "$JS.NAK.s.c.1.2.3.4.5",
                                         "$js.ACK.s.c.1.2.3.4.5",
                                         "$JS.ACK.s.c.x.2.3.4.5",
                                         "$JS.ACK.s.c..2.3.4.5",
                                         "$JS.ACK.s.c.1.2.3.x.5",
                                         "$JS.ACK.s.c.1.2.3..5",
                                         "$JS.ACK.s.c.0.2.3.4.5",
                                         "$JS.ACK.s.c.-1.2.3.4.5",
                                         "$JS.ACK.s.c.1.2.3.-4.5",
                                         "$JS.ACK.s.c.18446744073709551616.2.3.4.5",
                                         "$JS.ACK.s.c.1.2.3.9223372036854775808.5",
                                         "$JS.ACK.s.c. 1.2.3.4.5"}) {
    INFO(subject);
    Delivery delivery;
    CHECK_FALSE(Delivery::read(subject, delivery));
  }
  Delivery delivery;
  CHECK_FALSE(Delivery::read(std::string(100'000, '.'), delivery));
}

TEST_CASE("a consumer's info says how many of its messages it has not delivered") {
  CHECK(undelivered_in(R"({"num_ack_pending":5,"num_waiting":1,"num_pending":4})") == 4);
  CHECK(undelivered_in(R"({"num_pending": 4, "num_ack_pending": 5})") == 4);
  CHECK(undelivered_in(R"({"num_ack_pending":5,"num_pending":0})") == 0);
  CHECK_FALSE(is_error(R"({"num_ack_pending":5,"num_pending":0})"));
  CHECK(is_error(
      R"({"type":"io.nats.jetstream.api.v1.consumer_info_response","error":{"code":404,"err_code":10014,"description":"consumer not found"}})"));
}

TEST_CASE("a text that is no consumer's info says that nothing is undelivered") {
  for (const std::string_view text : {"", "4", R"({"error":{"code":404}})", R"({"num_ack_pending":5})",
                                      R"("num_pending":)", R"("num_pending": )", R"("num_pending":-4)",
                                      R"("num_pending":"4")", R"("num_pending":18446744073709551616)"}) {
    INFO(text);
    CHECK(undelivered_in(text) == 0);
  }
}
