// Errors that leave no trace: ctx.ok(), rollback_on_error and max_reply_bytes; and scratch memory of
// handlers.
#include <capnp/message.h>
#include <gyre/gyre.hpp>
#include <gyre_ledger_actors_sources.hpp>
#include <support/actors/ledger.official.hpp>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "support/actors/ledger.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_ledgers;

namespace {

Runtime launch_ledgers(Options options = {}) {
  return Runtime::launch(
      ActorSet::of<Careful, Undone, LargeUndone, Careless, Picker, SidePicker>(gyre_ledger_actors::sources),
      on_this_engine(options));
}

// On CUDA by one warp, which has paths of its own, and by several.
std::vector<uint32_t> blocks_under_test() {
  return engine_under_test == EngineKind::cuda ? std::vector<uint32_t>{32, 256} : std::vector<uint32_t>{32};
}

// How an entry is to end, and its body.
struct Sent {
  uint64_t amount = 0, late = 0;
  Status status = Status::ok;
  std::vector<uint64_t> body;
};

constexpr uint32_t data_words = gyre_ledgers::view::Entry::data_words;

Sent entry(uint64_t amount, End end, uint32_t words, std::vector<uint64_t> late = {},
           const std::string& note = {}) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<Entry>();
  root.setAmount(amount);
  root.setEnd(end);
  root.setWords(words);
  auto list = root.initLate(uint32_t(late.size()));
  for (uint32_t i = 0; i < list.size(); ++i) list.set(i, late[i]);
  root.setNote(note);
  const auto segment = message.getSegmentsForOutput()[0];
  const auto* const begin = reinterpret_cast<const uint64_t*>(segment.begin());
  Sent sent{amount, note.size(), Status::ok, {begin, begin + segment.size()}};
  for (const uint64_t number : late) sent.late += number;
  if (end == End::FAIL || end == End::FAIL_IN_ONE_THREAD) sent.status = Status::handler_failed;
  if (end == End::CHECK || end == End::CHECK_IN_ONE_THREAD) sent.status = Status::check_failed;
  return sent;
}

// Mostly well; the others end in every way a handler can, each found out when the reply is nearly done.
Sent any_entry(std::mt19937_64& random) {
  const uint64_t amount = random() >> 40;
  switch (random() % 16) {
    case 0:
      return entry(amount, End::FAIL, 1);
    case 1:
      return entry(amount, End::FAIL_IN_ONE_THREAD, 1);
    case 2:
      return entry(amount, End::CHECK, 1);
    case 3:
      return entry(amount, End::CHECK_IN_ONE_THREAD, 1);
    case 4: {
      Sent sent = entry(amount, End::WELL, 10'000);
      sent.status = Status::reply_too_large;
      return sent;
    }
    case 5:
    case 6: {  // its list, or its text, lies elsewhere
      Sent sent = entry(amount, End::WELL, 1, {1, 2, 3}, "a note");
      sent.body[1 + data_words + random() % 2] += 1000 << 2;
      sent.status = Status::malformed;
      return sent;
    }
    case 7:
    case 8:
      return entry(amount, End::WELL, uint32_t(random() % 8), {random() % 100, 5}, "longer");
    default:
      return entry(amount, End::WELL, 2);
  }
}

// What an actor's state is, by what was well.
struct Model {
  explicit Model(size_t words) : state(words) {}
  void add(const Sent& sent) {
    for (size_t i = 0; i < state.size(); ++i) state[i] += sent.amount + i;
    state[0] += sent.late;
  }
  uint64_t total() const {
    uint64_t sum = 0;
    for (size_t i = 0; i < state.size(); ++i) sum += state[i] * (i + 1);
    return sum;
  }
  std::vector<uint64_t> state;
};

template <class Actor>
Future<Reply<capnp::AnyPointer>> send(Client& client, uint64_t key, const Sent& sent) {
  const MessageNumbers numbers =
      client.numbers_of(type_name<Actor>(), gyre_ledgers::view::Entry::type_id).value();
  return client.ask_by_number(numbers.actor_type, numbers.message_type, key,
                              Encoded{std::as_bytes(std::span(sent.body)), Encoding::body});
}

template <class Actor>
uint64_t total_of(Client& client, uint64_t key) {
  const auto reply = client.ask<Read>(Address<Actor>{key}, [](auto) {}).get();
  REQUIRE(reply);
  return reply.value()->getTotal();
}

// Sends `rounds` batches of any entries to two keys; `total(key)` is what the model says after each entry
// that was well, which `add(key, sent)` tells it of.
template <class Actor, class Add, class Sum>
void send_any(Client& client, std::mt19937_64& random, int rounds, Add add, Sum total) {
  uint64_t well = 0, failed = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Sent> batch;
    std::vector<Future<Reply<capnp::AnyPointer>>> futures;
    const size_t count = round % 2 == 0 ? 1 : 1 + random() % 40;
    const uint64_t key = 1 + random() % 2;
    for (size_t i = 0; i < count; ++i) batch.push_back(any_entry(random));
    for (const Sent& sent : batch) futures.push_back(send<Actor>(client, key, sent));
    for (size_t i = 0; i < count; ++i) {
      INFO("round " << round << ", entry " << i << " of " << count);
      const auto reply = futures[i].get();
      REQUIRE((reply ? Status::ok : reply.error().status) == batch[i].status);
      ++(reply ? well : failed);
      if (!reply) continue;
      add(key, batch[i]);
      REQUIRE((*reply.value()).getAs<Total>().getTotal() == total(key));
    }
    REQUIRE(total_of<Actor>(client, key) == total(key));
  }
  CHECK(well > uint64_t(rounds));
  CHECK(failed > uint64_t(rounds));
}

}  // namespace

TEST_CASE("a handler that asks ctx.ok() first has changed nothing where its message ends in an error",
          "[gpu][unified]") {
  for (const uint32_t block : blocks_under_test()) {
    Runtime runtime = launch_ledgers({.block = block});
    Client client = runtime.client();
    std::mt19937_64 random(81);
    uint64_t totals[3] = {};
    send_any<Careful>(
        client, random, 100, [&](uint64_t key, const Sent& sent) { totals[key] += sent.amount + sent.late; },
        [&](uint64_t key) { return totals[key]; });
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("a message for which ctx.ok() was false ends with its error, whatever the handler does afterwards",
          "[gpu]") {
  for (const uint32_t block : blocks_under_test()) {
    Runtime runtime = launch_ledgers({.block = block});
    Client client = runtime.client();
    CHECK(send<Careful>(client, 1, entry(5, End::GO_ON, 1)).get());
    Sent broken = entry(7, End::GO_ON, 1, {1}, "x");
    broken.body[1 + data_words] += 1000 << 2;
    CHECK(send<Careful>(client, 1, broken).get().error().status == Status::malformed);
    CHECK(send<Careful>(client, 1, entry(1, End::GO_ON, 10'000)).get().error().status ==
          Status::reply_too_large);
    CHECK(total_of<Careful>(client, 1) != 5);  // it went on
  }
}

TEST_CASE("an actor that is rolled back has the state of before each message that ended in an error",
          "[gpu][unified]") {
  for (const uint32_t block : blocks_under_test()) {
    Runtime runtime = launch_ledgers({.block = block});
    Client client = runtime.client();
    std::mt19937_64 random(82);
    const auto check = [&]<class Actor, size_t words>() {
      std::vector<Model> models(3, Model(words));
      for (uint64_t key = 1; key <= 2; ++key) {
        models[key].state[words - 1] = 1000 * key;  // on_start
        REQUIRE(total_of<Actor>(client, key) == models[key].total());
      }
      send_any<Actor>(
          client, random, 60, [&](uint64_t key, const Sent& sent) { models[key].add(sent); },
          [&](uint64_t key) { return models[key].total(); });
    };
    check.operator()<Undone, 8>();
    check.operator()<LargeUndone, 512>();
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("a failed tell is rolled back too, beside tells that are well", "[gpu]") {
  for (const uint32_t block : blocks_under_test()) {
    Runtime runtime = launch_ledgers({.block = block});
    Client client = runtime.client();
    Model model(8);
    model.state[7] = 1000 * 4;
    for (uint64_t n = 0; n < 60; ++n) {
      const bool fails = n % 3 == 1;
      const End end = n % 2 == 0 ? End::CHECK : End::FAIL_IN_ONE_THREAD;
      REQUIRE(client.tell<Entry>(Address<Undone>{4}, [&](Entry::Builder message) {
        message.setAmount(n);
        message.setEnd(fails ? end : End::WELL);
      }));
      Sent sent;
      sent.amount = n;
      if (!fails) model.add(sent);
      if (n % 7 == 0) REQUIRE(total_of<Undone>(client, 4) == model.total());
    }
    CHECK(total_of<Undone>(client, 4) == model.total());
    const Books books = runtime.terminate().books;
    CHECK(books.tells.dead_letters == 20);
    CHECK(books.balanced());
  }
}

TEST_CASE("an actor made by a message that ends in an error is not there afterwards, if it is rolled back",
          "[gpu]") {
  for (const uint32_t block : blocks_under_test()) {
    Runtime runtime = launch_ledgers({.block = block, .actors_per_worker = 2});
    Client client = runtime.client();
    std::mt19937_64 random(83);
    for (uint64_t key = 10; key < 60; ++key) {  // more than there is room for
      Sent sent = any_entry(random);
      while (sent.status == Status::ok) sent = any_entry(random);
      REQUIRE(send<Undone>(client, key, sent).get().error().status == sent.status);
      REQUIRE(client.stop(Address<Undone>{key}).error().status == Status::no_such_actor);
    }
    Model model(8);
    model.state[7] = 1000 * 10;
    CHECK(total_of<Undone>(client, 10) == model.total());  // it begins anew
    // Another actor keeps what the message did, and stays.
    CHECK(send<Careless>(client, 3, entry(9, End::FAIL, 1)).get().error().status == Status::handler_failed);
    CHECK(total_of<Careless>(client, 3) == 9);
    CHECK(client.stop(Address<Careless>{3}));
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("an ask makes as much room for its reply as the handler says it needs, however it is addressed",
          "[gpu][unified]") {
  Runtime runtime = launch_ledgers({.max_reply_bytes = 100});
  Client client = runtime.client();
  const auto fill = [](Entry::Builder message) { message.setWords(500); };
  const auto filled = [](const auto& reply) {
    REQUIRE(reply);
    const auto filler = reply.value()->getFiller();
    REQUIRE(filler.size() == 500);
    for (uint32_t k = 0; k < 500; ++k) REQUIRE(filler[k] == k);
  };
  filled(client.ask<Entry>(Address<Careful>{1}, fill).get());
  filled(client.ask<Entry, Total>(NamedAddress{"gyre_ledgers::Careful", 1}, fill).get());
  std::vector<Future<Reply<Total>>> futures(20);
  REQUIRE(client.ask_many<Entry>(Address<Careful>{1}, futures,
                                 [&](size_t, auto message) { fill(message); }) == 20);
  for (auto& future : futures) filled(future.get());
  const auto by_number = send<Careful>(client, 1, entry(0, End::WELL, 500)).get();
  REQUIRE(by_number);
  CHECK((*by_number.value()).getAs<Total>().getFiller().size() == 500);

  // What the sender says holds; what the handler of another message says does not.
  const AskOptions little{.timeout = {}, .max_reply_bytes = 400};
  CHECK(client.ask<Entry>(Address<Careful>{1}, fill, little).get().error().status == Status::reply_too_large);
  CHECK(client.ask<Read>(Address<Careful>{1}, [](Read::Builder read) { read.setWords(500); })
            .get()
            .error()
            .status == Status::reply_too_large);
  CHECK(client.ask<Entry>(Address<Careful>{1}, [](Entry::Builder message) { message.setWords(600); })
            .get()
            .error()
            .status == Status::reply_too_large);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("a launch whose arena has no room for the replies that a handler says it makes is refused",
          "[gpu]") {
  const auto refusal = [](const Options& options) -> std::string {
    try {
      launch_ledgers(options);
    } catch (const BadOptions& error) {
      return error.what();
    }
    return "it launched";
  };
  for (const std::string& text : {refusal({.arena_bytes = 0}), refusal({.slot_bytes = 64})}) {
    INFO(text);
    CHECK(text.find("actor gyre_ledgers::Careful") != std::string::npos);
    CHECK(text.find("up to 4096 bytes") != std::string::npos);
  }
  CHECK(refusal({.arena_bytes = 4096}) == "it launched");
}

TEST_CASE("scratch memory is shared by a message's threads, and apart from call to call", "[gpu][unified]") {
  for (const uint32_t block : blocks_under_test()) {
    Runtime runtime = launch_ledgers({.workers = 2, .block = block});
    Client client = runtime.client();
    std::mt19937_64 random(84);
    std::vector<std::pair<uint64_t, uint32_t>> asked(120);  // seed and count
    std::vector<Future<Reply<Picked>>> futures(asked.size());
    for (auto& [seed, count] : asked) {
      seed = random();
      count = 1 + uint32_t(random() % 180);
    }
    REQUIRE(client.ask_many<Pick>([](size_t i) { return Address<Picker>{i % 3}; }, futures,
                                  [&](size_t i, Pick::Builder pick) {
                                    pick.setSeed(asked[i].first);
                                    pick.setCount(asked[i].second);
                                    pick.setMore(30);
                                  }) == futures.size());
    for (size_t i = 0; i < asked.size(); ++i) {
      const auto reply = futures[i].get();
      REQUIRE(reply);
      const auto& picked = *reply.value();
      uint64_t least = ~uint64_t(0), sum = 0;
      for (uint64_t k = 0; k < asked[i].second; ++k) {
        least = std::min(least, element(asked[i].first, k));
        sum += element(asked[i].first, k);
      }
      INFO(asked[i].second << " elements");
      REQUIRE(picked.getLeast() == least);
      REQUIRE(picked.getSum() == sum);
      REQUIRE(picked.getMoreSum() == 30 * 29 / 2);
      REQUIRE(picked.getApart() == (asked[i].second + 1) / 2 * 16 + 16);
      REQUIRE(picked.getMisaligned() == 0);
      REQUIRE(picked.getPicks() == i / 3 + 1);
    }
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("more scratch memory than the actor says it needs is refused with the numbers, and leaves no trace",
          "[gpu]") {
  for (const uint32_t block : blocks_under_test()) {
    Runtime runtime = launch_ledgers({.block = block});
    Client client = runtime.client();
    const auto pick = [&](uint32_t count, uint32_t more) {
      return client
          .ask<Pick>(Address<Picker>{7},
                     [&](Pick::Builder message) {
                       message.setCount(count);
                       message.setMore(more);
                     })
          .get();
    };
    REQUIRE(pick(100, 1));
    CHECK(pick(248, 0));  // all 2,000 bytes: 1,984 and 16
    const auto refused = pick(249, 0);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().status == Status::scratch_full);
    CHECK(refused.error().asked == 2000 + 8);
    CHECK(refused.error().limit == 2000);
    CHECK(pick(0xffffffff, 0).error().asked == uint64_t(0xffffffff) * 8);
    CHECK(pick(100, 0xffffffff).error().status == Status::scratch_full);
    const auto last = pick(2, 2);
    REQUIRE(last);
    CHECK(last.value()->getPicks() == 3);  // those that were refused are rolled back
    CHECK(runtime.terminate().books.balanced());
  }
}

TEST_CASE("messages handled side by side have scratch memory of their own", "[gpu][unified]") {
  Runtime runtime = launch_ledgers();
  Client client = runtime.client();
  uint64_t by_a_part = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<Future<Reply<Picked>>> futures(200);
    REQUIRE(client.ask_many<Pick>(Address<SidePicker>{1}, futures, [&](size_t i, Pick::Builder pick) {
      pick.setSeed(1000 * uint64_t(round) + i);
      pick.setCount(i % 50 == 49 ? 9 : 8);
    }) == futures.size());
    for (size_t i = 0; i < futures.size(); ++i) {
      const auto reply = futures[i].get();
      if (i % 50 == 49) {
        REQUIRE(reply.error().status == Status::scratch_full);
        continue;
      }
      REQUIRE(reply);
      uint64_t sum = 0;
      for (uint64_t k = 0; k < 8; ++k) sum += element(1000 * uint64_t(round) + i, k);
      REQUIRE(reply.value()->getSum() == sum);
      by_a_part += reply.value()->getApart() < 32 ? 1 : 0;
    }
  }
  CHECK(by_a_part != 0);  // on the CPU each thread is a team
  CHECK(runtime.terminate().books.balanced());
}
