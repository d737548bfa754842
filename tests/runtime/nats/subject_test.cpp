#include <gyre/runtime/nats/requests.hpp>
#include <gyre/runtime/nats/subject.hpp>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "runtime/nats/same_names.hpp"
#include "support/catch.hpp"

using namespace gyre;
using namespace gyre::nats;

TEST_CASE("the shard of each test vector is the one that the file says") {
  std::ifstream file(GYRE_TEST_SHARDS);
  REQUIRE(file);
  size_t vectors = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string actor;
    uint64_t key = 0, hash = 0;
    uint32_t of_1 = 9, of_7 = 9, of_64 = 99, of_1000 = 9999;
    words >> actor >> key >> std::hex >> hash >> std::dec >> of_1 >> of_7 >> of_64 >> of_1000;
    REQUIRE(words);
    INFO(line);
    CHECK(hash_of(actor, key) == hash);
    CHECK(shard_of(actor, key, 1) == of_1);
    CHECK(shard_of(actor, key, 7) == of_7);
    CHECK(shard_of(actor, key, 64) == of_64);
    CHECK(shard_of(actor, key, 1000) == of_1000);
    ++vectors;
  }
  CHECK(vectors == 50);
}

TEST_CASE("the test vectors of the page are those of the code") {
  std::ifstream page(GYRE_TEST_NATS_PAGE);
  REQUIRE(page);
  size_t vectors = 0;
  for (std::string line; std::getline(page, line);) {
    // | `my_Counter` | 0 | `0c2cec438ba298b8` | 3 |
    for (char& c : line) {
      if (c == '|' || c == '`') c = ' ';
    }
    std::istringstream words(line);
    std::string actor, hash, rest;
    uint64_t key = 0;
    uint32_t shard = 0;
    if (!(words >> actor >> key >> hash >> shard) || words >> rest || hash.size() != 16) continue;
    INFO(line);
    CHECK(hash_of(actor, key) == std::stoull(hash, nullptr, 16));
    CHECK(shard_of(actor, key, 64) == shard);
    ++vectors;
  }
  CHECK(vectors == 5);
}

TEST_CASE(
    "a type's name in a subject has an underscore for each :: and each character that is none of a name") {
  CHECK(name_in_subject("my::Counter") == "my_Counter");
  CHECK(name_in_subject("Counter") == "Counter");
  CHECK(name_in_subject("a::b::c::D_9") == "a_b_c_D_9");
  CHECK(name_in_subject("my::Average<float, 3>") == "my_Average_float__3_");
  CHECK(name_in_subject("a:::b") == "a__b");
  CHECK(name_in_subject("a:b") == "a_b");
  CHECK(name_in_subject("a.b*c>d e\r\n\x01") == "a_b_c_d_e___");
  CHECK(name_in_subject("\xc3\xa4") == "__");
  CHECK(name_in_subject("").empty());
}

TEST_CASE("names of namespaces and nodes have 1 to 32 letters, digits, underscores and hyphens") {
  for (const std::string& name : {std::string("a"), std::string("A-b_9"), std::string(32, 'x')})
    CHECK(is_name(name));
  for (const std::string& name :
       {std::string(), std::string(33, 'x'), std::string("a.b"), std::string("a*"), std::string(">"),
        std::string("a b"), std::string("a\n"), std::string("\0", 1), std::string("\xc3\xa4"),
        std::string("a/b"), std::string("$JS")}) {
    INFO(name);
    CHECK_FALSE(is_name(name));
  }
}

TEST_CASE("subjects, bucket and stream are named after the namespace") {
  const Subjects subjects("shop");
  CHECK(subjects.request("my_Counter", 7) == "gyre.shop.my_Counter.7");
  CHECK(subjects.requests_of_shard(63) == "gyre.shop.*.63");
  CHECK(subjects.durable("my_Counter", 7) == "gyre.shop.durable.my_Counter.7");
  CHECK(subjects.durable_of_shard(7) == "gyre.shop.durable.*.7");
  CHECK(Subjects::queue_group(0x12) == "0000000000000012");
  CHECK(subjects.bucket() == "gyre_shop");
  CHECK(subjects.stream() == "gyre_shop_tells");
}

TEST_CASE("the actor is found in the subjects of its namespace, and in no others") {
  const Subjects subjects("shop");
  CHECK(subjects.actor_in("gyre.shop.my_Counter.7") == "my_Counter");
  CHECK(subjects.actor_in("gyre.shop.durable.my_Counter.7") == "my_Counter");
  CHECK(subjects.actor_in("gyre.shop.durable.7") == "durable");
  CHECK(subjects.actor_in("gyre.shop.*.>") == "*");
  for (const char* const other :
       {"", "gyre", "gyre.shop", "gyre.shop.", "gyre.shop.my_Counter", "gyre.shop..7",
        "gyre.shops.my_Counter.7", "gyre.other.my_Counter.7", "gyre.shop.my_Counter.7.8",
        "gyre.shop.durables.my_Counter.7", "gyre.shop.durable.my_Counter.7.8", "gyre.shop.durable..7",
        "GYRE.shop.my_Counter.7", "."}) {
    INFO(other);
    CHECK(subjects.actor_in(other).empty());
  }
}

TEST_CASE(
    "each of several nodes is preferred for its part of the shards, whatever their names' last letter") {
  std::map<std::string, int> owned;
  for (uint32_t shard = 0; shard < 1000; ++shard) {
    std::string best;
    for (const std::string node : {"node1", "node2", "node3"}) {
      if (best.empty() || preference(node, shard) > preference(best, shard)) best = node;
    }
    ++owned[best];
  }
  for (const auto& [node, shards] : owned) {
    INFO(node);
    CHECK(shards > 250);
  }
  CHECK(owned.size() == 3);
}

TEST_CASE("actor types with one name in subjects are refused by their names") {
  using nats::detail::ActorNames;
  const ActorNames names(ActorSet::of<same_names::Counter>(gyre_test_actors::sources));
  CHECK(names.list() == "same_names_Counter");
  CHECK(names.find("same_names_Counter") != nullptr);
  CHECK(names.find("same_names::Counter") == nullptr);
  CHECK_THROWS_WITH(
      ActorNames(ActorSet::of<same_names::Counter, same_names_Counter>(gyre_test_actors::sources)),
      "joining actors to NATS: same_names::Counter and same_names_Counter are both same_names_Counter in a "
      "subject; "
      "rename one of them");
  CHECK_THROWS_WITH(
      ActorNames(ActorSet::of<durable>(gyre_test_actors::sources)),
      "joining actors to NATS: durable is durable in a subject, which durable tells have; rename it");
}
