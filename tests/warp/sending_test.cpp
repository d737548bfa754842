// A worker of one warp whose handlers send, lane by lane on a CPU.
#include <random>
#include <vector>

#include "mail_warp.hpp"
#include "support/catch.hpp"
#include "support/rounds.hpp"

namespace {

using namespace gyre;
using namespace gyre_test;

// Notes what it gets.
struct Taker {
  struct Note {
    uint64_t key, number;
    uint32_t size;
    bool whole;
    bool operator==(const Note&) const = default;
  };
  inline static std::vector<Note> notes;

  void on(Context& ctx, Letter::Reader in) {
    const auto list = in.list();
    if (ctx.rank() != 0) return;
    bool whole = in[0] == ctx.key();
    for (uint32_t i = 0; i < list.size(); ++i) whole = whole && list[i] == element(in[0], in[1], i);
    notes.push_back({ctx.key(), in[1], list.size(), whole});
  }
};

// Sends in[1] letters, number n to the taker n mod 4, with n mod 32 numbers each; in[0] says in which lane it
// fails. If that is `each`, it sends them each by a thread, with n mod 20 numbers.
struct Teller {
  static constexpr uint64_t by_nobody = 100, by_all = 101, each = 102;
  static constexpr uint32_t most = 64;  // letters of one call
  uint64_t asked = 0;

  void on(Sending<most>& ctx, Letter::Reader in, Letter::Builder out) {
    if (in[0] == each) {
      ctx.tell_each<Letter>(
          uint32_t(in[1]), [](uint32_t n) { return Address<Taker>{n % 4}; },
          [](uint32_t n, Letter::Builder letter) {
            letter.fields.set<uint64_t>(0, n % 4);
            letter.fields.set<uint64_t>(1, n);
            const auto list = letter.fields.init<wire::List<uint64_t>>(0, n % 20);
            for (uint32_t i = 0; i < list.size(); ++i) list.set(i, element(n % 4, n, i));
          });
      return out.fields.set<uint64_t>(1, in[1]);
    }
    for (uint64_t n = 0; n < in[1]; ++n) {
      ctx.tell<Letter>(Address<Taker>{n % 4}, [&](Letter::Builder letter) {
        letter.fields.set<uint64_t>(0, n % 4);
        letter.fields.set<uint64_t>(1, n);
        const auto list = letter.fields.init<wire::List<uint64_t>>(0, uint32_t(n) % 32);
        for (uint32_t i = ctx.rank(); i < list.size(); i += ctx.size()) list.set(i, element(n % 4, n, i));
      });
    }
    if (in[0] == by_all || in[0] == ctx.rank()) ctx.fail(7);
    out.fields.set<uint64_t>(1, in[1]);
  }
};

// Handles its messages side by side; fails those with in[0] = 1.
struct Trebler {
  static constexpr bool side_by_side = true;
  void on(Context& ctx, Letter::Reader in, Letter::Builder out) {
    if (in[0] == 1) ctx.fail(uint32_t(in[1]));
    out.fields.set<uint64_t>(1, in[1] * 3);
  }
};

// Notes what it gets, and counts; fails where a list has three numbers.
struct Keeper {
  static constexpr bool keys_side_by_side = true;
  inline static std::vector<Taker::Note> notes;
  inline static uint64_t alone, out_of_turn;  // messages that one thread handled, and those of a wrong count
  inline static uint32_t under_way, most_at_once;  // messages in hand now, and the most ever
  inline static uint32_t pause;                    // turns that each 64th message takes longer
  uint64_t handled = 0;

  void on(Context& ctx, Letter::Reader in) {
    const auto list = in.list();
    if (list.size() == 3) return ctx.fail(3);
    if (ctx.rank() != 0) return;
    const uint64_t before = handled;
    bool whole = in[0] == ctx.key();
    for (uint32_t i = 0; i < list.size(); ++i) whole = whole && list[i] == element(in[0], in[1], i);
    notes.push_back({ctx.key(), in[1], list.size(), whole});
    alone += ctx.size() == 1;
    most_at_once = std::max(most_at_once, ++under_way);
    warp::yield();  // another thread that handled a message of this actor at once would show
    for (uint32_t turn = 0; in[1] % 64 == 0 && turn < pause; ++turn) warp::yield();
    --under_way;
    out_of_turn += handled != before;
    handled = before + 1;
  }
};

// Forwards its letters' numbers to taker 1, which is the other worker's.
struct Forwarder {
  inline static uint64_t handled;

  void on(Sending<1>& ctx, Letter::Reader in) {
    ctx.tell<Letter>(Address<Taker>{1}, [&](Letter::Builder letter) {
      letter.fields.set<uint64_t>(0, 1);
      letter.fields.set<uint64_t>(1, in[1]);
    });
    if (ctx.rank() == 0) ++handled;
  }
};

// Takes several at once, and answers as Trebler does.
struct Singer {
  inline static uint32_t most;
  void on(Context& ctx, Letter::Reader in, Letter::Builder out) {
    if (in[0] == 1) ctx.fail(uint32_t(in[1]));
    out.fields.set<uint64_t>(1, in[1] * 3);
  }
  void on_batch(Context& ctx, Requests<Letter> requests, Replies<Letter> replies) {
    if (ctx.rank() == 0) most = std::max(most, requests.size());
    for (uint32_t n = 0; n < requests.size(); ++n) {
      if (requests[n][0] == 1) requests.fail(n, uint32_t(requests[n][1]));
      replies[n].fields.set<uint64_t>(1, requests[n][1] * 3);
    }
  }
};

constexpr uint16_t teller = 0, taker = 1, trebler = 2, keeper = 3, forwarder = 4, singer = 5;

class SendingWarp : public MailWarp<Teller, Taker, Trebler, Keeper, Forwarder, Singer> {
 public:
  explicit SendingWarp(const RingShape& shape, bool in_gpu_memory = false) : MailWarp(shape, in_gpu_memory) {
    Taker::notes.clear();
    Keeper::notes.clear();
    Keeper::alone = Keeper::out_of_turn = 0;
    Keeper::under_way = Keeper::most_at_once = Keeper::pause = 0;
    Forwarder::handled = 0;
  }
  // The status of the reply.
  Status ask_teller(uint64_t fails, uint64_t letters) {
    ask(teller, fails, letters);
    const Answer answer = take_answer();
    CHECK(answer.correlation == asked());
    return answer.status;
  }
  // As the other worker: whether there was room.
  bool tell_taker(uint64_t key, uint64_t number, uint32_t size, std::mt19937_64& random) {
    return tell(taker, key, number, size, random);
  }
  // Takes, as the other worker, the next letter that was sent to it; and the type of who sent it.
  uint16_t sender = teller;
  bool take(Taker::Note& note) {
    Envelope envelope;
    std::vector<uint64_t> body;
    if (!MailWarp::take(envelope, body)) return false;
    CHECK(envelope.correlation == 0);  // the sender's key
    sender = uint16_t(envelope.body_bytes >> 16);
    CHECK(envelope.actor_type == taker);
    note = {envelope.key, body[2], uint32_t(body.size() - 4), body[1] == envelope.key};
    for (uint32_t i = 0; i < note.size; ++i)
      note.whole = note.whole && body[4 + i] == element(note.key, note.number, i);
    return true;
  }
};

// Waits for the letters that a teller sent to takers of its own worker and of the other.
void check_letters(SendingWarp& worker, const std::vector<Taker::Note>& itself,
                   const std::vector<Taker::Note>& other) {
  for (const Taker::Note& expected : other) {
    Taker::Note note{};
    while (!worker.take(note)) SendingWarp::let_run(10);
    CHECK(worker.sender == teller);
    CHECK(note == expected);
  }
  while (Taker::notes.size() < itself.size()) SendingWarp::let_run(10);
  CHECK(Taker::notes == itself);
  Taker::notes.clear();
}

}  // namespace

TEST_CASE("a warp sends what a handler staged to itself and to another worker, each in order and whole") {
  const uint32_t slot_bytes = GENERATE(512, 1024);  // a message of more packets than lanes, too
  SendingWarp worker({16, slot_bytes, 1});
  std::vector<uint64_t> next(4);
  uint64_t to_itself = 0;
  for (const uint64_t letters : {1, 2, 7, 32, 0, 33, 64, 5}) {
    const uint64_t refused = letters == 7 ? 3 : Teller::by_nobody;
    if (letters == 7) {  // what it staged is sent by nobody
      CHECK(worker.ask_teller(refused, letters) == Status::handler_failed);
      CHECK(worker.ask_teller(Teller::by_all, letters) == Status::handler_failed);
    }
    REQUIRE(worker.ask_teller(Teller::by_nobody, letters) == Status::ok);
    std::vector<Taker::Note> itself, other;
    for (uint64_t n = 0; n < letters; ++n) {
      (n % 2 == 0 ? itself : other).push_back({n % 4, n, uint32_t(n) % 32, true});
    }
    to_itself += itself.size();
    check_letters(worker, itself, other);
  }
  SendingWarp::let_run(5000);
  CHECK(worker.line().mail_processed == to_itself);
  CHECK(worker.line().mail_sent == 1 + 2 + 7 + 32 + 33 + 64 + 5);
  CHECK(worker.line().mail_refused == 0);
}

TEST_CASE("a warp takes mail once it is whole, in order, among the host's messages") {
  const uint32_t slot_bytes = GENERATE(128, 512, 1024);
  // A poll of a ring in the GPU's memory ends early where it finds mail.
  SendingWarp worker({16, slot_bytes, 1}, slot_bytes == 128);
  std::mt19937_64 random(77);
  std::vector<Taker::Note> expected;
  const uint32_t most = slot_bytes == 128 ? 4 : slot_bytes == 512 ? 30 : 70;
  for (uint64_t number = 0; number < uint64_t(rounds(600)); ++number) {
    const uint64_t key = random() % 3 * 2;
    const auto size = uint32_t(random() % 3 == 0 ? random() % most : random() % 2);
    while (!worker.tell_taker(key, number, size, random)) SendingWarp::let_run(20);
    expected.push_back({key, number, size, true});
    if (random() % 10 == 0) REQUIRE(worker.ask_teller(Teller::by_nobody, 0) == Status::ok);
    if (random() % 10 == 0) {
      worker.stop(keeper, 1);  // a message of another size, to an actor that is not there
      REQUIRE(worker.take_answer().status == Status::no_such_actor);
    }
    if (random() % 100 == 0) SendingWarp::let_run(6000);  // until it is idle
  }
  while (Taker::notes.size() < expected.size()) SendingWarp::let_run(10);
  CHECK(Taker::notes == expected);
}

TEST_CASE("mail that keeps coming keeps no message of the host waiting, whatever their sizes") {
  SendingWarp worker({16, 128, 1}, GENERATE(false, true));
  std::mt19937_64 random(79);
  uint64_t letters = 0;
  for (int round = 0; round < rounds(300); ++round) {
    if (random() % 2 == 0) {
      worker.ask(teller, Teller::by_nobody, 0);
    } else {
      worker.stop(keeper, 1);  // there is none: an error
    }
    SendingWarp::Answer answer{};
    uint32_t turns = 0;
    while (!worker.try_take_answer(answer)) {
      while (worker.tell_taker(0, letters, 0, random)) ++letters;
      SendingWarp::let_run(1);
      REQUIRE(++turns < 5000);
    }
    CHECK(answer.correlation == worker.asked());
  }
  while (Taker::notes.size() < letters) SendingWarp::let_run(10);
  for (uint64_t n = 0; n < letters; ++n) CHECK(Taker::notes[n] == Taker::Note{0, n, 0, true});
}

TEST_CASE("a stream of the host's batches keeps mail waiting for 64 batches at most") {
  SendingWarp worker({64, 512, 1});
  std::mt19937_64 random(81);
  uint64_t letters = 0, answered = 0;
  const auto stream = [&] {  // the ring is never empty
    while (worker.asked() - answered < 48) worker.ask(trebler, 0, 1);
    SendingWarp::let_run(1);
    for (SendingWarp::Answer answer{}; worker.try_take_answer(answer); ++answered) CHECK(answer.value == 3);
  };
  for (int round = 0; round < rounds(10); ++round) {
    for (int n = 0; n < 300; ++n) stream();
    REQUIRE(worker.tell_taker(0, letters++, 0, random));
    const uint64_t before = answered;
    while (Taker::notes.size() < letters) {
      stream();
      REQUIRE(answered - before < 64 * 32 + 96);
    }
    CHECK(Taker::notes.back() == Taker::Note{0, letters - 1, 0, true});
  }
}

TEST_CASE(
    "messages handled side by side each get their own answer in a set that sends, with mail between them") {
  SendingWarp worker({64, 512, 1});
  std::mt19937_64 random(78);
  uint64_t letters = 0;
  for (int round = 0; round < rounds(60); ++round) {
    struct Asked {
      bool fails;
      uint64_t value;
    };
    std::vector<Asked> asked(1 + random() % 40);
    for (Asked& one : asked) {
      one = {random() % 8 == 0, random() % 1000};
      worker.ask(trebler, one.fails, one.value);
    }
    if (random() % 2 == 0) letters += worker.tell_taker(0, letters, 0, random);
    const uint64_t first = worker.asked() - asked.size() + 1;
    for (size_t n = 0; n < asked.size(); ++n) {
      const SendingWarp::Answer answer = worker.take_answer();
      INFO("round " << round << ", ask " << n << " of " << asked.size());
      REQUIRE(answer.correlation == first + n);
      REQUIRE(answer.status == (asked[n].fails ? Status::handler_failed : Status::ok));
      REQUIRE((asked[n].fails ? answer.detail : answer.value / 3) == asked[n].value);
    }
  }
  while (Taker::notes.size() < letters) SendingWarp::let_run(10);
}

TEST_CASE("a warp sends what its threads staged each, in the order of their numbers and whole") {
  SendingWarp worker({16, 512, 1});
  for (const uint64_t letters : {32, 0, 1, 33, 64}) {
    REQUIRE(worker.ask_teller(Teller::each, letters) == Status::ok);
    std::vector<Taker::Note> itself, other;
    for (uint64_t n = 0; n < letters; ++n) {
      (n % 2 == 0 ? itself : other).push_back({n % 4, n, uint32_t(n % 20), true});
    }
    check_letters(worker, itself, other);
  }
  CHECK(worker.ask_teller(Teller::each, Teller::most + 1) == Status::check_failed);
}

TEST_CASE("mail for distinct keys is handled side by side, each key's in order and one at a time") {
  const uint32_t slot_bytes = GENERATE(128, 512, 1024);  // also a message of more packets than lanes
  const uint64_t keys = GENERATE(1, 3, 12, 20);          // also more than there is room for
  SendingWarp worker({16, slot_bytes, 1});
  std::mt19937_64 random(79 + keys);
  std::vector<std::vector<Taker::Note>> expected(keys);
  uint64_t told = 0, failed = 0, handled = 0;
  const uint32_t most = slot_bytes == 128 ? 4 : slot_bytes == 512 ? 30 : 70;
  for (uint64_t number = 0; number < uint64_t(rounds(1000)); ++number) {
    const uint64_t key = random() % keys;
    const uint64_t kind = random() % 50;
    const uint32_t size = kind == 0 ? 3 : kind < 3 ? uint32_t(random() % most) : 1;
    const bool to_keeper = random() % 40 != 0;
    while (!(to_keeper ? worker.tell(keeper, key * 2, number, size, random)
                       : worker.tell_taker(key, number, 0, random))) {
      SendingWarp::let_run(3);
    }
    ++told;
    if (to_keeper && size == 3) ++failed;
    if (to_keeper && size != 3) expected[key].push_back({key * 2, number, size, true});
    if (random() % 60 == 0) REQUIRE(worker.ask_teller(Teller::by_nobody, 0) == Status::ok);
    if (random() % 150 == 0) SendingWarp::let_run(6000);  // until it is idle
  }
  SendingWarp::let_run(20'000);
  std::vector<std::vector<Taker::Note>> got(keys);
  for (const Taker::Note& note : Keeper::notes) got.at(note.key / 2).push_back(note);
  constexpr uint64_t room = 16;  // actors of a type
  uint64_t living = 0;
  for (uint64_t key = 0; key < keys; ++key) {
    if (keys > room && got[key].empty()) {
      failed += expected[key].size();
      continue;
    }
    ++living;
    handled += got[key].size();
    CHECK(got[key] == expected[key]);
  }
  if (keys > room) CHECK(living == room);
  CHECK(Keeper::out_of_turn == 0);
  if (slot_bytes != 1024) CHECK(Keeper::alone > handled / 10);
  CHECK(worker.line().mail_failed == failed);
  CHECK(worker.line().mail_processed == told - failed);
}

TEST_CASE("messages for 16 keys are handled side by side if each has up to 32 packets, longer ones alone") {
  const uint32_t size = GENERATE(0, 4, 20, 40, 41);  // 6, 8, 19, 32 packets; 33: more than lanes
  CAPTURE(size);
  constexpr uint64_t keys = 16, told = 600;
  SendingWarp worker({16, 1024, 1});
  Keeper::pause = 5000;  // meanwhile others come into the mailbox
  std::mt19937_64 random(83);
  for (uint64_t number = 0; number < told; ++number) {
    while (!worker.tell(keeper, number % keys, number, size, random)) SendingWarp::let_run(1);
  }
  SendingWarp::let_run(20'000);
  REQUIRE(Keeper::notes.size() == told);
  std::vector<uint64_t> last(keys, 0);
  for (const Taker::Note& note : Keeper::notes) {
    REQUIRE((note.whole && note.size == size));
    REQUIRE(note.number % keys == note.key);
    REQUIRE((note.number < keys || note.number == last[note.key] + keys));
    last[note.key] = note.number;
  }
  CHECK(Keeper::out_of_turn == 0);
  CHECK(Keeper::most_at_once == (size == 41 ? 1 : keys));
}

TEST_CASE(
    "a worker without room for any handler takes mail for those that send little, and does not for ever") {
  constexpr uint64_t letters = 8;  // each needs one slot of the other worker's mailbox: none has a list
  SendingWarp worker({64, 512, 1});
  std::mt19937_64 random(80);
  // Four of each eight letters go to the other worker, which takes none: its outbox has 256 places.
  uint64_t told = 0;
  for (uint64_t asks = 0; told <= MailLayout::outbox_messages - Teller::most; ++asks, told += letters / 2)
    REQUIRE(worker.ask_teller(Teller::by_nobody, letters) == Status::ok);
  worker.ask(teller, Teller::by_nobody, letters);
  uint64_t to_forward = 1000;
  const auto forward = [&](uint64_t most) {
    for (uint64_t n = 0; n < most; ++n) {
      if (to_forward != 0 && worker.tell(forwarder, 0, 0, 0, random)) --to_forward;
      SendingWarp::let_run(10);
    }
  };
  forward(700);
  SendingWarp::Answer answer{};
  CHECK(!worker.try_take_answer(answer));
  CHECK(Forwarder::handled > 0);
  CHECK(Forwarder::handled < Teller::most);  // there was not more room
  // It has room for one of those at a time, but the host's message, which needs more, has its turn.
  uint64_t taken = 0, forwarded = 0;
  Taker::Note note{};
  const auto take = [&] {
    if (!worker.take(note)) return;
    CHECK(note.whole);
    ++(worker.sender == teller ? taken : forwarded);
  };
  while (!worker.try_take_answer(answer)) {
    take();
    forward(4);
  }
  CHECK(answer.status == Status::ok);
  CHECK(Forwarder::handled <= Teller::most);
  told += letters / 2;
  while (taken != told || forwarded != Forwarder::handled) {
    take();
    SendingWarp::let_run(10);
  }
  CHECK(worker.line().mail_refused == 0);
}

TEST_CASE("messages handled together end each by itself among those of handlers that send") {
  const uint32_t slot_bytes = GENERATE(128, 512, 1024);
  SendingWarp worker({64, slot_bytes, 1});
  std::mt19937_64 random(91);

  std::vector<Taker::Note> itself;
  Singer::most = 0;
  for (int round = 0; round < rounds(120); ++round) {
    struct Asked {
      uint16_t actor;
      bool fails;
      uint64_t value;
    };
    std::vector<Asked> asked;
    const int count = int(1 + random() % 40);
    uint16_t actor = trebler;
    for (int i = 0; i < count; ++i) {
      if (random() % 6 == 0) actor = random() % 3 == 0 ? teller : random() % 2 == 0 ? trebler : singer;
      if (actor == teller) {
        const bool fails = random() % 2 == 0;
        asked.push_back({teller, fails, 1});
        worker.ask(teller, fails ? random() % 2 ? Teller::by_all : random() % 32 : Teller::by_nobody, 1);
        if (!fails) itself.push_back({0, 0, 0, true});
      } else {
        asked.push_back({actor, random() % 8 == 0, random() % 1000});
        worker.ask(actor, asked.back().fails, asked.back().value);
      }
    }
    const uint64_t first = worker.asked() - asked.size() + 1;
    for (size_t n = 0; n < asked.size(); ++n) {
      const SendingWarp::Answer answer = worker.take_answer();
      INFO("slots of " << slot_bytes << " bytes, round " << round << ", ask " << n << " of " << asked.size()
                       << ", actor type " << asked[n].actor);
      REQUIRE(answer.correlation == first + n);
      REQUIRE(answer.status == (asked[n].fails ? Status::handler_failed : Status::ok));
      if (asked[n].actor == teller) {
        if (!asked[n].fails) REQUIRE(answer.value == 1);
      } else {
        REQUIRE((asked[n].fails ? answer.detail : answer.value / 3) == asked[n].value);
      }
    }
  }
  while (Taker::notes.size() < itself.size()) SendingWarp::let_run(10);
  SendingWarp::let_run(2000);
  CHECK(Taker::notes == itself);
  CHECK(Singer::most > 8);
  CHECK(worker.line().mail_sent == itself.size());
  CHECK(worker.line().mail_processed == itself.size());
  CHECK(worker.line().mail_failed == 0);
}
