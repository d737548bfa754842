// A worker of one warp whose messages do not fit a slot, lane by lane on a CPU.
#include <random>
#include <vector>

#include "mail_warp.hpp"
#include "support/catch.hpp"
#include "support/rounds.hpp"

namespace {

using namespace gyre;
using namespace gyre_test;

// Notes what it gets.
struct Loader {
  struct Note {
    uint64_t key, number;
    uint32_t size;
    bool whole;
    bool operator==(const Note&) const = default;
  };
  inline static std::vector<Note> notes;
  inline static uint32_t right_lanes = 0;

  void on(Context& ctx, Letter::Reader in) {
    const auto list = in.list();
    if (ctx.rank() == 0) right_lanes = 0;
    ctx.sync();
    bool right = in[0] == ctx.key();
    for (uint32_t i = ctx.rank(); i < list.size(); i += ctx.size())
      right = right && list[i] == element(in[0], in[1], i);
    right_lanes += right ? 1 : 0;
    ctx.sync();
    if (ctx.rank() == 0) notes.push_back({ctx.key(), in[1], list.size(), right_lanes == ctx.size()});
  }
};

// Sends in[1] letters of 100 numbers and more to loader 0 and 1, in turns; in[0] says in which lane it fails.
// If that is `each`, it sends them each by a thread.
struct Lifter {
  static constexpr uint64_t by_nobody = 100, by_all = 101, each = 102, too_large = 103;
  static constexpr uint32_t most = 8;
  GYRE_DEVICE static uint32_t size_of(uint64_t n) { return uint32_t(100 + 37 * n); }

  void on(Sending<most, LargeMessages>& ctx, Letter::Reader in, Letter::Builder out) {
    const auto fill = [](Letter::Builder letter, uint64_t n, uint32_t rank, uint32_t size) {
      letter.fields.set<uint64_t>(0, n % 2);
      letter.fields.set<uint64_t>(1, n);
      const auto list = letter.fields.init<wire::List<uint64_t>>(0, size_of(n));
      for (uint32_t i = rank; i < list.size(); i += size) {
        if (i % 50 == rank % 50) warp::yield();  // lanes build at different times
        list.set(i, element(n % 2, n, i));
      }
    };
    if (in[0] == each) {
      ctx.tell_each<Letter>(
          uint32_t(in[1]), [](uint32_t n) { return Address<Loader>{n % 2}; },
          [&](uint32_t n, Letter::Builder letter) { fill(letter, n, 0, 1); });
    } else {
      for (uint64_t n = 0; n < in[1]; ++n) {
        ctx.tell<Letter>(Address<Loader>{n % 2},
                         [&](Letter::Builder letter) { fill(letter, n, ctx.rank(), ctx.size()); });
      }
    }
    if (in[0] == too_large) {
      ctx.tell<Letter>(Address<Loader>{0}, [](Letter::Builder letter) {
        (void)letter.fields.init<wire::List<uint64_t>>(0, 1000);
      });
    }
    if (in[0] == by_all || in[0] == ctx.rank()) ctx.fail(7);
    out.fields.set<uint64_t>(1, in[1]);
  }
};

constexpr uint16_t lifter = 0, loader = 1;

class LiftingWarp : public MailWarp<Lifter, Loader> {
 public:
  explicit LiftingWarp(const RingShape& shape) : MailWarp(shape) { Loader::notes.clear(); }
  Status ask_lifter(uint64_t how, uint64_t letters) {
    ask(lifter, how, letters);
    return take_answer().status;
  }
  // Takes, as the other worker, the next letter that was sent to it.
  bool take(Loader::Note& note) {
    Envelope envelope;
    std::vector<uint64_t> body;
    if (!MailWarp::take(envelope, body)) return false;
    CHECK((envelope.flags & envelope_flags::out_of_line) != 0);
    take_body(body);
    note = {envelope.key, body[2], uint32_t(body.size() - 4), body[1] == envelope.key};
    for (uint32_t i = 0; i < note.size; ++i)
      note.whole = note.whole && body[4 + i] == element(note.key, note.number, i);
    ++taken;
    return true;
  }
  // Until the worker has published its counts.
  const WorkerLine& counts() {
    let_run(6000);
    return line();
  }
  uint64_t taken = 0;
};

}  // namespace

TEST_CASE("a warp's lanes build a body that does not fit a slot in one chunk, and it arrives whole") {
  const uint32_t slot_bytes = GENERATE(128, 512);
  LiftingWarp worker({16, slot_bytes, 1});
  uint64_t bodies = 0;
  for (int round = 0; round < rounds(20); ++round) {
    for (const uint64_t how : {Lifter::by_nobody, Lifter::each}) {
      for (const uint64_t letters : {1, 2, 4}) {
        REQUIRE(worker.ask_lifter(how, letters) == Status::ok);
        bodies += letters;
        for (uint64_t n = 0; n < letters; ++n) {
          if (n % 2 == 0) continue;
          Loader::Note note{};
          while (!worker.take(note)) LiftingWarp::let_run(10);
          CHECK(note == Loader::Note{1, n, Lifter::size_of(n), true});
        }
        while (Loader::notes.size() < (letters + 1) / 2) LiftingWarp::let_run(10);
        for (uint64_t n = 0; n < Loader::notes.size(); ++n)
          CHECK(Loader::notes[n] == Loader::Note{0, 2 * n, Lifter::size_of(2 * n), true});
        Loader::notes.clear();
      }
      // A handler that fails in one lane or in all, or has a message too large, or too many for the pool.
      CHECK(worker.ask_lifter(uint64_t(round % 32), 4) == Status::handler_failed);
      CHECK(worker.ask_lifter(Lifter::by_all, 3) == Status::handler_failed);
      CHECK(worker.ask_lifter(Lifter::too_large, 2) == Status::check_failed);
      CHECK(worker.ask_lifter(how, 8) == Status::body_pool_full);
      bodies += 4 + 3 + 3 + 6;
    }
  }
  const WorkerLine& line = worker.counts();
  CHECK(line.bodies_taken == bodies);
  CHECK(line.bodies_freed + worker.taken == bodies);
  CHECK(line.bodies_refused == uint64_t(rounds(20)) * 2 * 2);
  CHECK(line.mail_failed == 0);
}

TEST_CASE("a warp reads bodies of another worker in place, and gives their chunks back") {
  LiftingWarp worker({16, 512, 1});
  std::mt19937_64 random(92);
  std::vector<Loader::Note> expected;
  for (uint64_t number = 0; number < uint64_t(rounds(300)); ++number) {
    const uint64_t key = random() % 3 * 2;
    const bool large = random() % 2 == 0;
    const auto size = uint32_t(large ? 60 + random() % 400 : random() % 20);
    while (!(large ? worker.tell_large(loader, key, number, size, random)
                   : worker.tell(loader, key, number, size, random))) {
      LiftingWarp::let_run(20);
    }
    expected.push_back({key, number, size, true});
  }
  while (Loader::notes.size() < expected.size()) LiftingWarp::let_run(10);
  CHECK(Loader::notes == expected);
  const WorkerLine& line = worker.counts();
  CHECK(line.mail_processed == expected.size());
  CHECK(line.bodies_taken == 0);
  CHECK(line.bodies_freed > expected.size() / 3);
}
