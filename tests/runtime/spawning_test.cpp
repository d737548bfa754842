// Actors that create and stop each other, and that learn who told them something, on either engine.
#include <gyre/gyre.hpp>
#include <gyre_family_actors_sources.hpp>
#include <support/actors/family.official.hpp>

#include <chrono>
#include <vector>

#include "support/actors/family.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"
#include "support/type_counts.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_family;

namespace {

// In a set that only sends, and in one that asks too.
ActorSet family(bool asks) {
  if (asks) return ActorSet::of<Credulous, Parent, Child, Middle, Confused>(gyre_family_actors::sources);
  return ActorSet::of<Credulous, Parent, Child>(gyre_family_actors::sources);
}
// On CUDA by one warp, which has paths of its own, and by several.
std::vector<uint32_t> blocks() {
  return engine_under_test == EngineKind::cuda ? std::vector<uint32_t>{32, 128} : std::vector<uint32_t>{32};
}
auto breeding(uint32_t count, uint64_t first, Way way) {
  return [=](Breed::Builder breed) {
    breed.setCount(count);
    breed.setFirst(first);
    breed.setWay(way);
  };
}
struct Family {
  uint64_t done = 0, wrong = 0, numbers = 0, last_child = 0, known = 0;
};
Family report(Client& client, uint64_t parent) {
  const auto reply = client.ask<Report>(Address<Parent>{parent}, [](Report::Builder) {}).get();
  REQUIRE(reply);
  const auto reported = *reply.value();
  return {reported.getDone(), reported.getWrong(), reported.getNumbers(), reported.getLastChild(),
          reported.getKnown()};
}
// Asks until the parent's children have done so much.
Family await(Client& client, uint64_t parent, uint64_t done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  Family family = report(client, parent);
  while (family.done < done && std::chrono::steady_clock::now() < end) family = report(client, parent);
  CHECK(family.done == done);
  CHECK(family.wrong == 0);
  CHECK(family.known == 0);
  return family;
}
MailAccounts mail_at_the_end(Runtime& runtime) {
  REQUIRE(runtime.drain(std::chrono::minutes(1)));
  const Books books = runtime.terminate().books;
  check_types_add_up(runtime.stats());
  CHECK(books.balanced());
  CHECK(books.mail.under_way() == 0);
  CHECK(books.mail.lost == 0);
  CHECK(books.mail.refused == 0);
  return books.mail;
}

}  // namespace

TEST_CASE("an actor creates others with fresh keys, which answer it and stop themselves",
          "[gpu][unified][sending][spawning]") {
  for (const bool asks : {false, true}) {
    for (const uint32_t block : blocks()) {
      INFO("asks " << asks << ", block " << block);
      // Room for fewer children than there are: those that have stopped must be gone.
      Runtime runtime = Runtime::launch(
          family(asks), on_this_engine({.workers = 3, .block = block, .actors_per_worker = 64}));
      Client client = runtime.client();
      uint64_t children = 0, numbers = 0, last_child = 0;
      for (uint32_t round = 0; round < 60; ++round) {
        const uint32_t count = round % (Parent::most + 1);
        REQUIRE(client.tell<Breed>(Address<Parent>{5}, breeding(count, 100 * round, Way::DIRECTLY)));
        children += count;
        for (uint32_t i = 0; i < count; ++i) numbers += 100 * round + i;
        const Family now = await(client, 5, children);
        CHECK(now.numbers == numbers);
        CHECK((count == 0 || now.last_child != last_child));
        last_child = now.last_child;
      }
      CHECK(last_child >> 63 == 1);
      const MailAccounts mail = mail_at_the_end(runtime);
      CHECK(mail.sent == 4 * children);  // created, told, answered, stopped
      CHECK(mail.processed == 4 * children);
      CHECK(mail.failed == 0);
    }
  }
}

TEST_CASE("an actor that its creator stops has started, and is gone", "[gpu][sending][spawning]") {
  for (const uint32_t block : blocks()) {
    Runtime runtime = Runtime::launch(
        family(false), on_this_engine({.workers = 2, .block = block, .actors_per_worker = 16}));
    Client client = runtime.client();
    for (uint32_t round = 0; round < 20; ++round) {
      REQUIRE(client.tell<Breed>(Address<Parent>{1}, breeding(Parent::most, 0, Way::STOPPED_AT_ONCE)));
      CHECK(report(client, 1).known == 0);
    }
    const MailAccounts mail = mail_at_the_end(runtime);
    CHECK(mail.sent == 20 * 2 * Parent::most);
    CHECK(mail.processed == mail.sent);
  }
}

TEST_CASE("a handler that fails creates no actor", "[gpu][sending][spawning]") {
  for (const uint32_t block : blocks()) {
    Runtime runtime = Runtime::launch(family(false), on_this_engine({.workers = 2, .block = block}));
    Client client = runtime.client();
    REQUIRE(client.tell<Breed>(Address<Parent>{1}, breeding(3, 0, Way::FAILED)));
    const uint64_t child = report(client, 1).last_child;
    CHECK(child >> 63 == 1);
    const Result<void> stopped = client.stop(Address<Child>{child});
    CHECK_FALSE(stopped);
    CHECK(stopped.error().status == Status::no_such_actor);
    CHECK(mail_at_the_end(runtime).sent == 0);
  }
}

TEST_CASE("a forwarded message keeps its first sender, and the host is none", "[gpu][sending][spawning]") {
  for (const uint32_t block : blocks()) {
    Runtime runtime = Runtime::launch(family(true), on_this_engine({.workers = 3, .block = block}));
    Client client = runtime.client();
    const auto working = [](Work::Builder work) { work.setNumber(5); };
    REQUIRE(client.tell<Breed>(Address<Parent>{4}, breeding(9, 1000, Way::FORWARDED)));
    CHECK(await(client, 4, 9).numbers == 9 * 1000 + 36);
    // The host's own, to the child and by the middle.
    REQUIRE(client.tell<Work>(Address<Child>{20}, working));
    REQUIRE(client.tell<Work>(Address<Middle>{20}, working));
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    uint64_t orphans = 0;
    while (orphans < 2 && std::chrono::steady_clock::now() < end) {
      const auto looked = client.ask<Look>(Address<Child>{20}, [](Look::Builder) {}).get();
      REQUIRE(looked);
      CHECK(looked.value()->getStarted() == 1);
      orphans = looked.value()->getOrphans();
    }
    CHECK(orphans == 2);
    CHECK(mail_at_the_end(runtime).failed == 0);
  }
}

TEST_CASE("asking for the sender of a message of the host fails it, and so does forwarding another message",
          "[gpu][sending][spawning]") {
  for (const uint32_t block : blocks()) {
    Runtime runtime = Runtime::launch(family(true), on_this_engine({.workers = 2, .block = block}));
    Client client = runtime.client();
    REQUIRE(client.tell<Work>(Address<Credulous>{1}, [](Work::Builder work) { work.setNumber(5); }));
    REQUIRE(client.tell<Breed>(Address<Confused>{1}, breeding(1, 1, Way::DIRECTLY)));
    CHECK(mail_at_the_end(runtime).sent == 0);
    const std::vector<DeadLetter> letters = runtime.take_dead_letters();
    REQUIRE(letters.size() == 2);
    for (const DeadLetter& letter : letters) CHECK(letter.reason == Status::check_failed);
  }
}
