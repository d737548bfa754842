// A worker of one warp whose handlers send to many, lane by lane on a CPU.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "mail_warp.hpp"
#include "support/catch.hpp"
#include "support/rounds.hpp"

namespace {

using namespace gyre;
using namespace gyre_test;

constexpr Topic<Letter> letters_about(uint64_t id) { return {id}; }

// Notes what it gets; or subscribes, or unsubscribes, as in[0] says.
struct Ear {
  static constexpr uint64_t subscribe = 1001, unsubscribe = 1002;
  struct Note {
    uint64_t number;
    uint32_t size;
    bool whole;
    bool operator==(const Note&) const = default;
  };
  inline static std::map<uint64_t, std::vector<Note>> notes;  // by key
  uint64_t unused = 0;

  void on(Sending<1, ToMany>& ctx, Letter::Reader in, Letter::Builder) {
    if (in[0] == subscribe) return ctx.subscribe<Ear>(letters_about(in[1]));
    if (in[0] == unsubscribe) return ctx.unsubscribe(letters_about(in[1]));
    const auto list = in.list();
    if (ctx.rank() != 0) return;
    bool whole = in[0] == 0;
    for (uint32_t i = 0; i < list.size(); ++i) whole = whole && list[i] == element(0, in[1], i);
    notes[ctx.key()].push_back({in[1], list.size(), whole});
  }
};

// How a crier sends its letter with that number, and how large it is.
enum class How : uint32_t { told, broadcast, published };
struct Cry {
  How how;
  uint64_t to;  // the ear's key, or the topic
  uint32_t size;
  static Cry of(uint64_t number) {
    const uint64_t random = (number + 1) * 0x9e3779b97f4a7c15u >> 20;
    return {How(random % 3), random / 3 % 4, uint32_t(random / 12 % 13)};
  }
};
// Sends in[1] letters, numbered from `next` on. In lane in[0] it fails.
struct Crier {
  static constexpr uint64_t well = 100;
  static constexpr uint32_t most = 64;
  uint64_t next = 0;

  void on(Sending<most, ToMany>& ctx, Letter::Reader in, Letter::Builder out) {
    for (uint64_t n = 0; n < in[1]; ++n) {
      const uint64_t number = next + n;
      const Cry cry = Cry::of(number);
      const auto fill = [&](Letter::Builder letter) {
        letter.fields.set<uint64_t>(1, number);
        const auto list = letter.fields.init<wire::List<uint64_t>>(0, cry.size);
        for (uint32_t i = ctx.rank(); i < list.size(); i += ctx.size()) list.set(i, element(0, number, i));
      };
      if (cry.how == How::told) ctx.tell<Letter>(Address<Ear>{cry.to}, fill);
      if (cry.how == How::broadcast) ctx.broadcast<Letter, Ear>(fill);
      if (cry.how == How::published) ctx.publish(letters_about(cry.to), fill);
    }
    if (in[0] == ctx.rank()) ctx.fail(7);
    out.fields.set<uint64_t>(1, next + in[1]);
    ctx.sync();
    if (ctx.rank() == 0 && in[0] == well) next += in[1];
    ctx.sync();
  }
};

constexpr uint16_t crier = 0, ear = 1;

class FanOutWarp : public MailWarp<Crier, Ear> {
 public:
  explicit FanOutWarp(const RingShape& shape) : MailWarp(shape) { Ear::notes.clear(); }
  // As the host. Waits for the answer.
  Status listen(uint64_t key, uint64_t topic, bool ends = false) {
    ask(ear, ends ? Ear::unsubscribe : Ear::subscribe, topic, key);
    return take_answer().status;
  }
  // As the other worker.
  bool send_copy(How how, uint64_t topic, uint64_t number, uint32_t size, std::mt19937_64& random) {
    Envelope envelope{99, 0, 0, 0, ear, 0, 0, fan_out::to_type, 0};
    if (how == How::published) {
      envelope = {99, 0, 0, topic, 0, 0, 0, fan_out::to_topic, 0};
      FanOutHead::set_message_id(envelope, Letter::type_id);
    }
    return send_letter(envelope, 0, number, size, random);
  }
  // Takes, as the other worker, what was sent to it last: checks that it is the letter with that number.
  bool take_cry(uint64_t number) {
    Envelope envelope;
    std::vector<uint64_t> body;
    if (!take(envelope, body)) return false;
    const Cry cry = Cry::of(number);
    CHECK(envelope.body_bytes >> 16 == crier);
    CHECK(body[2] == number);
    CHECK(body.size() - 4 == cry.size);
    for (uint32_t i = 0; i < cry.size; ++i) CHECK(body[4 + i] == element(0, number, i));
    const uint8_t kinds[] = {0, fan_out::to_type, fan_out::to_topic};
    CHECK(envelope.priority == kinds[uint32_t(cry.how)]);
    if (cry.how != How::broadcast) CHECK(envelope.key == cry.to);
    if (cry.how == How::published) {
      CHECK(FanOutHead::message_id(envelope) == Letter::type_id);
    } else {
      CHECK(envelope.actor_type == ear);
    }
    return true;
  }
};

}  // namespace

TEST_CASE("a warp sends letters for one and for many to another worker and to itself, in their order") {
  const uint32_t slot_bytes = GENERATE(512, 1024);
  FanOutWarp worker({16, slot_bytes, 1});
  std::mt19937_64 random(93 + slot_bytes);
  std::set<uint64_t> topics[2];  // of the ears 0 and 2
  for (const uint64_t key : {0, 2}) {
    for (uint64_t topic = 0; topic < 4; ++topic) {
      if (random() % 2 == 0) continue;
      REQUIRE(worker.listen(key, topic) == Status::ok);
      topics[key / 2].insert(topic);
    }
    REQUIRE(worker.listen(key, 77) == Status::ok);
  }
  std::map<uint64_t, std::vector<Ear::Note>> expected;
  std::vector<uint64_t> to_other;
  uint64_t cries = 0, sent = 0, handled = 0, copies = 0;
  size_t taken = 0;
  for (int round = 0; round < rounds(120); ++round) {
    const bool fails = random() % 8 == 0;
    const uint64_t count = random() % 8 == 0 ? Crier::most : random() % 9;
    worker.ask(crier, fails ? random() % 32 : Crier::well, count);
    if (!fails) {
      for (uint64_t number = cries; number < cries + count; ++number) {
        const Cry cry = Cry::of(number);
        const bool for_many = cry.how != How::told;
        sent += for_many ? 2 : 1;
        copies += for_many;
        if (for_many || cry.to % 2 == 1) to_other.push_back(number);
        for (const uint64_t key : {0, 2}) {
          if (cry.how == How::told ? cry.to != key
                                   : cry.how == How::published && topics[key / 2].count(cry.to) == 0) {
            continue;
          }
          expected[key].push_back({number, cry.size, true});
          ++handled;
          sent += for_many;
        }
      }
      cries += count;
    }
    // The other worker is slow now and then, so that letters wait.
    FanOutWarp::Answer answer{};
    for (uint64_t turns = 0; !worker.try_take_answer(answer); ++turns) {
      FanOutWarp::let_run(5);
      if (turns > 200 && taken < to_other.size() && worker.take_cry(to_other[taken])) ++taken;
    }
    CHECK(answer.status == (fails ? Status::handler_failed : Status::ok));
    for (uint64_t n = random() % 12; n != 0 && taken < to_other.size(); --n) {
      if (worker.take_cry(to_other[taken])) ++taken;
      FanOutWarp::let_run(uint32_t(random() % 30));
    }
  }
  while (taken < to_other.size()) {
    if (worker.take_cry(to_other[taken])) ++taken;
    FanOutWarp::let_run(5);
  }
  FanOutWarp::let_run(20'000);
  for (const uint64_t key : {0, 2}) {
    INFO("ear " << key);
    CHECK(Ear::notes[key] == expected[key]);
  }
  CHECK(worker.line().mail_sent == sent);
  CHECK(worker.line().mail_processed == handled + copies);
  CHECK(worker.line().mail_failed == 0);
  CHECK(worker.line().mail_refused == 0);
}

TEST_CASE(
    "a warp hands what another worker sends for many to each of its actors, in order, among other mail") {
  const uint32_t slot_bytes = GENERATE(512, 1024);
  constexpr uint64_t ears = 12, topics = 30;
  FanOutWarp worker({16, slot_bytes, 1});
  std::mt19937_64 random(95 + slot_bytes);
  std::set<uint64_t> subscribers[topics];
  std::map<uint64_t, std::vector<Ear::Note>> expected;
  const uint32_t most = slot_bytes == 512 ? 30 : 70;
  uint64_t handled = 0, copies = 0, number = 0;
  for (uint64_t n = 0; n < ears * topics / 2; ++n) {  // several rows of subscriptions
    const uint64_t key = random() % ears * 2, topic = random() % topics;
    REQUIRE(worker.listen(key, topic) == Status::ok);
    subscribers[topic].insert(key);
  }
  const auto is_there = [&](uint64_t key) {
    return std::any_of(std::begin(subscribers), std::end(subscribers),
                       [&](const auto& one) { return one.count(key) != 0; });
  };
  for (uint64_t key = 0; key < 2 * ears; key += 2) {
    if (!is_there(key)) REQUIRE(worker.listen(key, 99) == Status::ok);
  }
  for (int round = 0; round < rounds(12); ++round) {
    for (int n = 0; n < 30; ++n, ++number) {
      const How how = How(random() % 3);
      const uint64_t to = how == How::told ? random() % ears * 2 : random() % topics;
      const auto size = uint32_t(random() % 4 == 0 ? random() % most : random() % 2);
      while (!(how == How::told ? worker.send_letter({99, 0, 0, to, ear, 0, 0, 0, 0}, 0, number, size, random)
                                : worker.send_copy(how, to, number, size, random))) {
        FanOutWarp::let_run(20);
      }
      copies += how != How::told;
      for (uint64_t key = 0; key < 2 * ears; key += 2) {
        if (how == How::told ? to != key : how == How::published && subscribers[to].count(key) == 0) continue;
        expected[key].push_back({number, size, true});
        ++handled;
      }
    }
    size_t all = 0;
    while (all < handled) {
      FanOutWarp::let_run(50);
      all = 0;
      for (const auto& [key, notes] : Ear::notes) all += notes.size();
    }
    for (int n = 0; n < 10; ++n) {
      const uint64_t key = random() % ears * 2, topic = random() % topics;
      const bool ends = random() % 2 == 0;
      REQUIRE(worker.listen(key, topic, ends) == Status::ok);
      if (ends) {
        subscribers[topic].erase(key);
      } else {
        subscribers[topic].insert(key);
      }
    }
  }
  FanOutWarp::let_run(20'000);
  CHECK(Ear::notes == expected);
  CHECK(worker.line().mail_processed == handled + copies);
  CHECK(worker.line().mail_failed == 0);
}

TEST_CASE("actors that the host stops while a warp hands a letter out do not come back by it") {
  constexpr uint64_t ears = 16;
  FanOutWarp worker({64, 512, 1});
  std::mt19937_64 random(97);
  for (int round = 0; round < rounds(60); ++round) {
    for (uint64_t key = 0; key < 2 * ears; key += 2) REQUIRE(worker.listen(key, random() % 2) == Status::ok);
    const How how = random() % 2 == 0 ? How::broadcast : How::published;
    Ear::notes.clear();
    std::set<uint64_t> stopped;
    uint64_t copies = 0;
    for (int n = 0; n < 14; ++n) {  // letters to all of them come in a row: the host has its turn after 64
      if (random() % 3 != 0) {
        while (!worker.send_copy(how, 0, copies, 2, random)) FanOutWarp::let_run(1);
        ++copies;
      } else if (const uint64_t key = random() % ears * 2; stopped.insert(key).second) {
        worker.stop(ear, key);
      }
    }
    for (size_t n = 0; n < stopped.size(); ++n) REQUIRE(worker.take_answer().status == Status::ok);
    FanOutWarp::let_run(6000);
    for (uint64_t key = 0; key < 2 * ears; key += 2) {
      INFO("round " << round << ", ear " << key);
      const bool lives = stopped.count(key) == 0;
      worker.stop(ear, key);
      CHECK(worker.take_answer().status == (lives ? Status::ok : Status::no_such_actor));
      CHECK(Ear::notes[key].size() <= copies);
      if (how == How::broadcast && lives) CHECK(Ear::notes[key].size() == copies);
    }
  }
}

TEST_CASE("a warp has room for 1,024 subscriptions, and uses their places again") {
  FanOutWarp worker({16, 512, 1});
  for (int round = 0; round < 2; ++round) {
    for (uint64_t topic = 0; topic < Subscriptions::capacity; ++topic)
      REQUIRE(worker.listen(topic % 3 * 2, topic) == Status::ok);
    CHECK(worker.listen(0, 5000) == Status::subscriptions_full);
    for (uint64_t topic = 0; topic < Subscriptions::capacity; ++topic)
      REQUIRE(worker.listen(topic % 3 * 2, topic, true) == Status::ok);
  }
}
