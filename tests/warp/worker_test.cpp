// The worker of one warp, which else only a GPU runs, lane by lane on a CPU: its looks at the ring, the
// packets held against the last message's, messages handled side by side.
#include <gyre/device/builtin/echo.hpp>
#include <gyre/device/worker/worker.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/echo_forms.hpp"
#include "support/rounds.hpp"

namespace {

using namespace gyre;
using gyre_test::Fiber;
using gyre_test::rounds;
namespace warp = gyre_test::warp;

// Views of structs of numbers alone.
template <uint64_t id, uint32_t words>
struct Numbers {
  static constexpr uint64_t type_id = id;
  [[maybe_unused]] static constexpr const char* type_name = "Numbers";
  static constexpr uint32_t data_words = words, pointers = 0;
  struct Reader {
    using Reads = Numbers;
    explicit Reader(wire::StructReader reader) : fields(reader) {}
    uint64_t operator[](uint32_t i) const { return fields.get<uint64_t>(i); }
    wire::StructReader fields;
  };
  struct Builder {
    using Builds = Numbers;
    explicit Builder(wire::StructBuilder builder) : fields(builder) {}
    void set(uint64_t value) { fields.set<uint64_t>(0, value); }
    wire::StructBuilder fields;
  };
};
using One = Numbers<1, 1>;
using Two = Numbers<2, 2>;

struct Counter {
  uint64_t total = 0;
  void on(Context& ctx, One::Reader in, One::Builder out) {
    if (ctx.rank() == 0) total += in[0];
    ctx.sync();
    out.set(total);
    ctx.sync();
  }
};
struct Second {
  uint64_t asked = 0;
  static constexpr uint64_t by_nobody = 1, by_all = 2, by_first_lane = 3;
  // The first word says in which lanes it fails.
  void on(Context& ctx, Two::Reader in, One::Builder out) {
    if (in[0] == by_all || in[0] == by_first_lane + ctx.rank()) return ctx.fail(uint32_t(in[1]));
    out.set(1'000'000 + in[1]);
  }
};

// Reads a list that no comparison of packets vouches for, and answers with one.
struct Order {
  static constexpr uint64_t type_id = 4;
  static constexpr uint32_t data_words = 2, pointers = 1;
  struct Reader {
    using Reads = Order;
    explicit Reader(wire::StructReader reader) : fields(reader) {}
    uint64_t lane() const { return fields.get<uint64_t>(0); }
    uint64_t size() const { return fields.get<uint64_t>(1); }
    wire::ListReader<uint64_t> list() const { return fields.get<wire::List<uint64_t>>(0, {type_id, 0}); }
    wire::StructReader fields;
  };
};
struct Goods {
  static constexpr uint64_t type_id = 5;
  static constexpr uint32_t data_words = 1, pointers = 2;
  struct Builder {
    using Builds = Goods;
    explicit Builder(wire::StructBuilder builder) : fields(builder) {}
    wire::StructBuilder fields;
  };
};
// What buffers would be.
template <class T>
struct Cloth {
  inline static std::vector<T> a, b, sum;
};
struct Merchant {
  static constexpr bool side_by_side = true;
  static constexpr uint64_t in_all = 1000, adds_one = 1001, adds_one_to_short = 1002, weaves = 1003;
  // One lane, or all, read the list; all write a list of the size that is asked for.
  void on(Context& ctx, Order::Reader in, Goods::Builder out) {
    if (in.lane() == adds_one || in.lane() == adds_one_to_short) return add_one(ctx, in, out);
    if (in.lane() == weaves) {
      weave<uint8_t>(ctx, in.size());
      weave<uint16_t>(ctx, in.size());
      weave<float>(ctx, in.size());
      weave<uint64_t>(ctx, in.size());
    }
    if (in.lane() == in_all || in.lane() % ctx.size() == ctx.rank()) (void)in.list();
    const auto goods = out.fields.init<wire::List<uint64_t>>(0, uint32_t(in.size()));
    for (uint32_t i = ctx.rank(); i < goods.size(); i += ctx.size()) goods.set(i, in.size() * 100 + i);
    out.fields.set<uint64_t>(0, in.size());
  }
  // Adds buffers of `size` elements; then, in place, a shorter one to the first.
  template <class T>
  static void weave(Context& ctx, uint64_t size) {
    using Of = Cloth<T>;
    transform(
        ctx, BufferSpan<T>(Of::sum.data(), size), [](T x, T y) { return T(x + 3 * y); },
        BufferSpan<T>(Of::a.data(), size), BufferSpan<T>(Of::b.data(), size));
    ctx.sync();
    transform(
        ctx, BufferSpan<T>(Of::a.data(), size), [](T x, T y) { return T(x + y); },
        BufferSpan<T>(Of::a.data(), size), BufferSpan<T>(Of::b.data(), size < 2 ? size : size - 2));
  }
  // Each number of the list and one, or one; and nothing to a list behind them.
  static void add_one(Context& ctx, Order::Reader in, Goods::Builder out) {
    const auto sums = out.fields.init<wire::List<uint64_t>>(0, uint32_t(in.size()));
    (void)out.fields.init<wire::List<uint64_t>>(1, 3);
    const auto sum = [](uint64_t x) { return x + 1; };
    const bool part = ctx.size() < warp::lanes;
    if (in.lane() == adds_one || (part && in.size() > ctx.size())) {
      transform(ctx, sums, sum, in.list());
    } else {
      transform_short(ctx, sums, sum, in.list());
    }
  }
};

// Answers the threads that handled the message beside its number; a number that 31 divides is refused.
struct Clerk {
  static constexpr bool side_by_side = true;
  inline static std::vector<uint64_t> handled;           // the numbers, in the order that they came
  inline static uint32_t at_once[warp::lanes + 1] = {};  // so many times that many

  void on(Context& ctx, One::Reader in, One::Builder out) {
    if (ctx.rank() == 0) note(in[0]);
    if (in[0] % 31 == 0) return ctx.fail(uint32_t(in[0]));
    out.set(100 * in[0] + ctx.size());
  }
  static bool handled_once(const std::vector<uint64_t>& numbers) {  // which grow
    std::sort(handled.begin(), handled.end());
    return handled == numbers;
  }
  static void start_anew() {
    handled.clear();
    std::fill(std::begin(at_once), std::end(at_once), 0);
    row = 0;
  }

 private:
  // Between two of the warp's barriers are those that are handled side by side.
  static void note(uint64_t number) {
    const uint64_t barriers = warp::fibers.barriers[warp::lanes].passed;
    if (barriers != last_barriers) row = 0;
    last_barriers = barriers;
    handled.push_back(number);
    ++at_once[++row];
    if (row > 1) --at_once[row - 1];
  }
  inline static uint64_t last_barriers = 0;
  inline static uint32_t row = 0;
};

// Reads the list in one lane, or in all, makes the reply, and asks whether that is well.
struct Careful {
  static constexpr bool side_by_side = true;
  static constexpr uint32_t scratch_bytes = 64, shared_scratch_bytes = 64;
  static constexpr uint64_t fails_in_lane = 3000;
  inline static uint64_t written = 0, disagreements = 0, by_teams = 0;
  inline static bool said[warp::lanes] = {};

  void on(Context& ctx, Order::Reader in, Goods::Builder out) {
    // The team's own, both: beside them others write theirs.
    const auto scratch = ctx.scratch<uint64_t>(8), shared = ctx.scratch<uint64_t, ScratchIn::shared>(8);
    for (uint32_t i = ctx.rank(); i < 8; i += ctx.size()) {
      scratch[i] = in.size() * 100 + i;
      shared[i] = uint64_t(7) - 2 * uint64_t(i);
    }
    const uint32_t first = Warp::rank() - ctx.rank();
    if (in.lane() == Merchant::in_all || in.lane() % ctx.size() == ctx.rank()) (void)in.list();
    if (in.lane() >= fails_in_lane && (in.lane() - fails_in_lane) % ctx.size() == ctx.rank()) ctx.fail(7);
    const auto goods = out.fields.init<wire::List<uint64_t>>(0, uint32_t(in.size()));
    const bool sound = ctx.ok();
    said[Warp::rank()] = sound;
    ctx.sync();
    for (uint32_t i = 0; i < ctx.size(); ++i) disagreements += said[first + i] == sound ? 0 : 1;
    ctx.sync();
    if (!sound) {
      if (ctx.rank() == 0) ctx.log("{} numbers in lane {}", in.size(), in.lane());
      return;
    }
    if (ctx.rank() == 0) {
      ++written;
      if (ctx.size() < warp::lanes) ++by_teams;
    }
    for (uint32_t i = ctx.rank(); i < goods.size(); i += ctx.size()) {
      goods.set(i, i < 8 ? scratch[7 - i] - shared[i] : in.size() * 100 + i);
    }
    out.fields.set<uint64_t>(0, in.size());
  }
};

// Changes its state first, in all lanes, and fails afterwards.
struct Undone {
  static constexpr bool rollback_on_error = true;
  static constexpr uint32_t words = 140;  // 1,120 bytes: more than a warp copies at once

  uint64_t state[words] = {};

  void on(Context& ctx, Order::Reader in, Goods::Builder out) {
    for (uint32_t i = ctx.rank(); i < words; i += ctx.size()) state[i] += in.size() + i;
    ctx.sync();
    uint64_t sum = 0;
    for (const uint64_t word : state) sum = sum * 3 + word;
    out.fields.set<uint64_t>(0, sum);
    ctx.sync();
    if (in.lane() == Merchant::in_all || in.lane() == ctx.rank()) (void)in.list();
    if (in.lane() == Careful::fails_in_lane + ctx.rank()) ctx.fail(7);
    (void)out.fields.init<wire::List<uint64_t>>(0, uint32_t(in.size()));
  }
};

// Takes several at once. The answer is the sum of all numbers so far and, a million times, how many were at
// once; a number that 31 divides is refused.
struct Chorus {
  uint64_t total = 0;
  inline static uint64_t told = 0;
  inline static uint32_t most_told_at_once = 0;

  void on(Context& ctx, One::Reader in, One::Builder out) {
    if (in[0] % 31 == 0) return ctx.fail(uint32_t(in[0]));
    sing(ctx, in, out, 1);
  }
  void on_batch(Context& ctx, Requests<One> requests, Replies<One> replies) {
    for (uint32_t n = 0; n < requests.size(); ++n) {
      if (requests[n][0] % 31 == 0) {
        requests.fail(n, uint32_t(requests[n][0]));
      } else {
        sing(ctx, requests[n], replies[n], requests.size());
      }
    }
  }
  void on(Context& ctx, Two::Reader in) { hear(ctx, in, 1); }
  void on_batch(Context& ctx, Requests<Two> requests) {
    for (uint32_t n = 0; n < requests.size(); ++n) hear(ctx, requests[n], requests.size());
  }
  using Handles = gyre::Handles<One, Two>;

 private:
  void sing(Context& ctx, One::Reader in, One::Builder out, uint32_t at_once) {
    if (ctx.rank() == 0) total += in[0];
    ctx.sync();
    out.set(total + at_once * 1'000'000ull);
    ctx.sync();
  }
  static void hear(Context& ctx, Two::Reader in, uint32_t at_once) {
    if (ctx.rank() != 0) return;
    told += in[1];
    most_told_at_once = std::max(most_told_at_once, at_once);
  }
};

// Has no response, and handles messages side by side.
struct Listener {
  static constexpr bool side_by_side = true;
  inline static uint64_t heard = 0;

  void on(Context& ctx, One::Reader in) {
    if (ctx.rank() == 0) heard += in[0];
    if (in[0] % 31 == 0) ctx.fail(uint32_t(in[0]));
  }
};

constexpr uint16_t echo = 0, counter = 1, second = 2, merchant = 3, clerk = 4, careful = 5, undone = 6,
                   chorus = 7, listener = 8;

using Words = std::vector<uint64_t>;
struct Answer {
  uint64_t correlation;
  Status status;
  uint32_t detail;  // of an error
  Words body;       // of an answer that is no error
};

// The worker's clock steps from now on, until this ends.
class SteppedClock {
 public:
  ~SteppedClock() { worker_clock_ahead_ns = 0; }
  void step(int64_t ms) const { worker_clock_ahead_ns = uint64_t(ms * 1'000'000); }
};

// A worker of a warp with those actors and Echo, and its host, which take turns.
class WarpUnderTest {
 public:
  // Its ring is in the region, or where a GPU's memory would be, in pages that the worker chooses.
  explicit WarpUnderTest(bool elsewhere, const RingShape& shape = {})
      : region_(1 << 20), tables_(1 << 16), in_pages_(elsewhere && SlotPages::pages(shape) != 0) {
    warp::fibers = {};
    RegionLayout layout;
    layout.shape = shape;
    layout.handlers = 10;
    inbound_.resize((layout.inbound_bytes_elsewhere() + alignment) / sizeof(uint64_t) + 1);
    initialise_region(region(), layout);
    auto* const types = reinterpret_cast<HandlerTypes*>(region() + layout.handler_types());
    types[0] = {messages::view::EchoRequest::type_id, messages::view::EchoResponse::type_id};
    types[1] = {One::type_id, One::type_id};
    types[2] = {Two::type_id, One::type_id};
    types[3] = {Order::type_id, Goods::type_id};
    types[4] = {One::type_id, One::type_id};
    types[5] = types[6] = types[3];
    types[7] = types[4];
    types[8] = {Two::type_id, 0};
    types[9] = {One::type_id, 0};
    bridge_ =
        elsewhere ? Bridge::of(region(), aligned(inbound_), layout, 0) : Bridge::of(region(), layout, 0);
    memory_.actors = reinterpret_cast<uint8_t*>(aligned(tables_));
    memory_.actors_per_worker = 16;
    memory_.counts = counts_;
    scratch_.resize(SharedScratch::of<Careful>(true).bytes() / sizeof(uint64_t) + alignment);
    memory_.scratch = reinterpret_cast<uint8_t*>(aligned(scratch_));
    memory_.counts_per_worker = 11;
    to_worker_ = RingCursor<Memory>(bridge_.h2d, bridge_.shape);
    from_worker_ = RingCursor<Memory>(bridge_.d2h, bridge_.shape);
    under_test_ = this;
    const MessageMemory messages = TestedWorker::message_memory(shape);
    messages_.resize(messages.words() + 2 * alignment / sizeof(uint32_t));
    response_ = aligned(messages_) + messages.request_words();
    behind_ = aligned(messages_) + messages.words();
    *behind_ = canary;
    for (uint32_t lane = 0; lane < warp::lanes; ++lane) warp::fibers.fiber[lane] = Fiber(run_lane);
    while (bridge_.worker_line->started == 0) let_run(1);
    if (in_pages_) slot_pages_ = {bridge_.shape, bridge_.worker_line->slot_pages};
    say_time(1'000'000);
  }
  ~WarpUnderTest() {
    command(Command::stop);
    while (!std::all_of(warp::fibers.done.begin(), warp::fibers.done.end() - 1, [](bool d) { return d; })) {
      warp::yield();
    }
    CHECK(*behind_ == canary);
  }

  uint32_t slots() const { return bridge_.shape.slots; }
  uint64_t slot_pages() const { return slot_pages_.second(); }
  // With `in_parts` its packets come in any order, and the worker runs between them. Returns its correlation.
  uint64_t send(uint16_t actor, const Words& body, uint64_t key = 7, uint32_t deadline_us = 0,
                std::mt19937_64* in_parts = nullptr, uint8_t flags = envelope_flags::ask,
                uint16_t message_type = 0) {
    alignas(16) uint32_t message[96] = {};
    const Envelope envelope{++sent_, uint32_t(body.size() * 8), deadline_us, key, actor, message_type, 0, 0,
                            flags};
    std::memcpy(message, &envelope, sizeof envelope);
    std::memcpy(message + 8, body.data(), body.size() * 8);
    put(message, envelope.body_bytes, in_parts);
    return sent_;
  }
  void tell(uint16_t actor, const Words& body) { send(actor, body, 7, 0, nullptr, 0); }
  void tell(uint16_t actor, uint16_t message_type, const Words& body) {
    send(actor, body, 7, 0, nullptr, 0, message_type);
  }
  uint64_t tells_processed() const { return bridge_.worker_line->tells_processed; }
  uint64_t tells_failed() const { return bridge_.worker_line->tells_failed; }
  // What no host sends: an envelope that claims another body than there is.
  void send_corrupt(uint32_t claimed_bytes, uint32_t body_bytes) {
    alignas(16) uint32_t message[96] = {};
    const Envelope envelope{++sent_, claimed_bytes, 0, 7, echo, 0, 0, 0, envelope_flags::ask};
    std::memcpy(message, &envelope, sizeof envelope);
    put(message, body_bytes, nullptr);
  }
  // Whether the worker has said that it is done with what lay in the next slot.
  bool has_room() const { return to_worker_.ticket() - bridge_.worker_line->h2d_credit < slots(); }
  uint64_t corrupt() const { return Memory::load_acquire(bridge_.worker_line->corrupt); }
  Answer take() {
    alignas(16) uint32_t message[96];
    while (receive<Memory>(bridge_.d2h, bridge_.shape, from_worker_.ticket(), message) !=
           ReceiveOutcome::message) {
      let_run(1);
    }
    from_worker_.advance(bridge_.shape);
    bridge_.host_line->d2h_credit = from_worker_.ticket();
    Envelope envelope;
    std::memcpy(&envelope, message, sizeof envelope);
    Answer answer{envelope.correlation, Status::ok, 0, Words(envelope.body_bytes / 8)};
    if (envelope.body_bytes != 0) std::memcpy(answer.body.data(), message + 8, envelope.body_bytes);
    if ((envelope.flags & envelope_flags::error) != 0) {
      ErrorBody error;
      std::memcpy(&error, message + 8, sizeof error);
      answer.status = error.status;
      answer.detail = error.detail;
    }
    return answer;
  }
  Answer ask(uint16_t actor, const Words& body) {
    send(actor, body);
    return take();
  }
  // The lines that handlers logged since the last call, each by its arguments, which are two numbers.
  std::vector<Words> take_lines() {
    std::vector<Words> lines;
    uint64_t& taken = bridge_.host_line->log_taken;
    for (; bridge_.log[taken % LogEntry::room].content[0] == taken + 1; ++taken) {
      const uint64_t* const content = bridge_.log[taken % LogEntry::room].content;
      CHECK(content[1] == 7);  // the key
      CHECK(uint32_t(content[2]) == careful);
      CHECK(uint32_t(content[3]) == 2);
      lines.push_back({content[LogEntry::head_words], content[LogEntry::head_words + 1]});
    }
    return lines;
  }
  uint64_t lines_dropped() const { return counts_[10].log.lines_dropped; }
  // Lets the worker have so many turns of some instructions.
  static void let_run(uint32_t turns) {
    for (uint32_t i = 0; i < turns; ++i) warp::yield();
  }
  // Until the worker has taken up nothing for so long that it looks for short messages again.
  static void let_idle() { let_run(6'000); }
  void say_time(uint32_t host_us) {
    bridge_.command_line->command = CommandLine::both({uint32_t(bridge_.command_line->command)}, host_us);
  }
  void command(Command command) {
    const uint64_t before = bridge_.command_line->command;
    const CommandWord next = CommandWord{uint32_t(before)}.next(command);
    bridge_.command_line->command = CommandLine::both(next, CommandLine::host_us_in(before));
    while (bridge_.worker_line->acknowledged != next.word) let_run(1);
  }

 private:
  void put(const uint32_t* message, uint32_t body_bytes, std::mt19937_64* in_parts) {
    if (!in_pages_ && !in_parts) {
      publish<Memory>(SingleThread{}, to_worker_, bridge_.shape, message, body_bytes);
    } else {
      Packet* const slot = bridge_.h2d + slot_pages_.place(uint32_t(to_worker_.slot() - bridge_.h2d));
      std::vector<uint32_t> order(packets_for(body_bytes));
      std::iota(order.rbegin(), order.rend(), 0);
      if (in_parts) std::shuffle(order.begin(), order.end(), *in_parts);
      for (const uint32_t k : order) {
        const uint32_t* const data = message + k * words_a_packet;
        Memory::store(slot[k], Packet{{data[0], data[1], data[2]}, to_worker_.stamp()});
        if (in_parts) let_run(uint32_t((*in_parts)() % 4 * ((*in_parts)() % 30)));
      }
    }
    to_worker_.advance(bridge_.shape);
  }
  static void run_lane() {
    {
      WarpUnderTest& test = *under_test_;
      TestedWorker worker(test.bridge_, test.memory_, aligned(test.messages_), test.response_, test.shared_);
      worker.run([](uint32_t) { warp::yield(); });
    }
    warp::fibers.done[warp::fibers.running] = true;
    warp::yield();
  }
  template <class Buffer>
  static typename Buffer::value_type* aligned(Buffer& buffer) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(buffer.data());
    return reinterpret_cast<typename Buffer::value_type*>((address + alignment - 1) / alignment * alignment);
  }
  char* region() { return reinterpret_cast<char*>(aligned(region_)); }

  using TestedWorker =
      Worker<actors::Echo, Counter, Second, Merchant, Clerk, Careful, Undone, Chorus, Listener>;
  static constexpr uintptr_t alignment = 256;
  static constexpr uint32_t canary = 0x5ca1ab1e;

  inline static WarpUnderTest* under_test_ = nullptr;
  std::vector<uint64_t> region_, inbound_, tables_, scratch_;
  std::vector<uint32_t> messages_;  // requests, and replies right behind them, as in a kernel
  uint32_t* response_ = nullptr;
  uint32_t* behind_ = nullptr;
  WorkerShared shared_{};
  HandlerCounts counts_[11] = {};
  Bridge bridge_{};
  const bool in_pages_;
  SlotPages slot_pages_;
  EngineMemory memory_{};
  RingCursor<Memory> to_worker_{nullptr, RingShape{}}, from_worker_{nullptr, RingShape{}};
  uint64_t sent_ = 0;
};

constexpr uint64_t root_of(uint64_t data_words, uint64_t pointers = 0) {
  return data_words << 32 | pointers << 48;
}

// What an EchoResponse says.
Words payload_of(const Words& body, uint64_t& sequence) {
  wire::Message message(body.data(), uint32_t(body.size() * 8));
  const messages::view::EchoResponse::Reader response(message.root());
  sequence = response.getSequence();
  Words payload;
  for (uint32_t i = 0; i < response.getPayload().size(); ++i) payload.push_back(response.getPayload()[i]);
  CHECK_FALSE(message.failed());
  return payload;
}

}  // namespace

TEST_CASE(
    "no message is refused before the host says that its deadline is past, whatever the worker's clock") {
  const bool elsewhere = GENERATE(false, true);
  // What a host clock that is slewed at NTP's limit makes of a minute, a step, and a step back.
  const int64_t ahead_ms = GENERATE(20, 10'000, -10'000);
  const SteppedClock clock;
  WarpUnderTest worker(elsewhere);
  constexpr uint32_t now_us = 50'000'000, deadline_us = now_us + 5000;
  uint64_t total = 0;
  const auto send = [&] { worker.send(counter, {root_of(1), 1}, 7, deadline_us); };
  const auto takes = [&] {
    const Answer answer = worker.take();
    CHECK(answer.status == Status::ok);
    CHECK(answer.body == Words{root_of(1), ++total});
  };
  worker.say_time(now_us);
  for (int i = 0; i < 3; ++i) {
    send();
    takes();
  }
  clock.step(ahead_ms);
  for (int burst = 0; burst < 20; ++burst) {
    const int count = burst % 2 == 0 ? 1 : 8;
    for (int i = 0; i < count; ++i) send();
    for (int i = 0; i < count; ++i) takes();
    if (burst % 4 == 3) worker.let_idle();
    if (burst == 10) worker.say_time(deadline_us);
  }
  worker.say_time(deadline_us + 700);
  worker.let_idle();
  for (int i = 0; i < 8; ++i) send();
  for (int i = 0; i < 8; ++i) {
    const Answer answer = worker.take();
    CHECK(answer.status == Status::expired);
    CHECK(answer.detail == 700);  // us late
  }
  worker.send(counter, {root_of(1), 1}, 7, deadline_us + 1000);
  takes();
}

TEST_CASE("each message gets its own answer, alike or not, alone and in streams, late and in time") {
  const bool elsewhere = GENERATE(false, true);
  WarpUnderTest worker(elsewhere);
  CHECK((worker.slot_pages() != 0) == elsewhere);  // of 32 pages of slots some lie in the second of their two
  std::mt19937_64 random(61);
  uint64_t number = 0, first = 1;
  struct Sent {
    gyre_test::EchoForm form;
    uint64_t number;
    bool late;
  };
  std::deque<Sent> sent;
  const auto settle = [&] {
    const Sent message = sent.front();
    sent.pop_front();
    const Answer answer = worker.take();
    INFO("message " << message.number << ", list pointer " << message.form.body[2]);
    REQUIRE(answer.correlation == first++);
    if (message.late) {
      REQUIRE(answer.status == Status::expired);
    } else if (!message.form.payload) {
      REQUIRE(answer.status == Status::malformed);
    } else {
      REQUIRE(answer.status == Status::ok);
      uint64_t sequence = 0;
      REQUIRE(payload_of(answer.body, sequence) == *message.form.payload);
      REQUIRE(sequence == message.number);
    }
  };
  for (int burst = 0; burst < rounds(400); ++burst) {
    // Of usual messages alone, or of all kinds; the worker finds them one by one or several at once.
    const bool usual = random() % 2 == 0;
    const uint64_t count = 1 + random() % (random() % 3 == 0 ? 60 : 4), gap = random() % 3 * 40;
    for (uint64_t k = 0; k < count; ++k) {
      gyre_test::EchoForm form = gyre_test::any_echo_form(random, number);
      while (usual && form.body[2] != (uint64_t(5) << 35 | uint64_t(5) << 32 | 1)) {
        form = gyre_test::any_echo_form(random, number);
      }
      const bool late = !usual && random() % 12 == 0;
      constexpr uint32_t past_us = 1, far_us = 2'000'000'000;
      worker.send(echo, form.body, 7, late ? past_us : random() % 2 * far_us);
      sent.push_back({std::move(form), number++, late});
      worker.let_run(uint32_t(gap));
    }
    const size_t left = random() % 2 == 0 ? 0 : random() % 10;
    while (sent.size() > left) settle();
    if (burst % 40 == 39) worker.let_idle();
  }
  while (!sent.empty()) settle();
}

TEST_CASE("a message that is seen in part is handled once, when it is whole") {
  WarpUnderTest worker(GENERATE(false, true));
  std::mt19937_64 random(63);
  struct Sent {
    uint64_t number;
    std::optional<gyre_test::EchoForm> form;  // none: to Second
  };
  std::deque<Sent> sent;
  uint64_t first = 1;
  const auto settle = [&] {
    const Sent message = sent.front();
    sent.pop_front();
    const Answer answer = worker.take();
    REQUIRE(answer.correlation == first++);
    if (!message.form) {
      REQUIRE(answer.body[1] == 1'000'000 + message.number);
    } else if (!message.form->payload) {
      REQUIRE(answer.status == Status::malformed);
    } else {
      uint64_t sequence = 0;
      REQUIRE(answer.status == Status::ok);
      REQUIRE(payload_of(answer.body, sequence) == *message.form->payload);
      REQUIRE(sequence == message.number);
    }
  };
  for (uint64_t number = 0; number < uint64_t(rounds(2000)); ++number) {
    if (random() % 8 == 0) {  // a shorter one
      worker.send(second, {root_of(2), 1, number}, 7, 0, &random);
      sent.push_back({number, std::nullopt});
    } else {
      gyre_test::EchoForm form = gyre_test::any_echo_form(random, number);
      worker.send(echo, form.body, 7, 0, &random);
      sent.push_back({number, std::move(form)});
    }
    const size_t left = number / 100 % 2 == 0 ? 0 : random() % 20;  // one by one, and several under way
    while (sent.size() > left) settle();
  }
  while (!sent.empty()) settle();
}

TEST_CASE("an envelope that claims more than its slot holds is passed over, and what is behind it handled") {
  const uint32_t slot_bytes = GENERATE(uint32_t(192), uint32_t(320), uint32_t(384), uint32_t(512));
  const RingShape shape{.slots = 256, .slot_bytes = slot_bytes};
  WarpUnderTest worker(GENERATE(false, true), shape);
  uint64_t passed_over = 0, number = 0;
  for (const uint32_t words : {3u, 8u, 11u}) {  // what looks are for
    for (const uint32_t beyond : {8u, 36u, 68u, 100'000u, 0x7fffff00u}) {
      Words body(words);
      body[0] = root_of(2);
      for (int message = 0; message < 3; ++message) {
        body[2] = ++number;
        REQUIRE(worker.ask(second, body).body[1] == 1'000'000 + number);
      }
      worker.send_corrupt(shape.body_capacity() + beyond, words * 8);
      ++passed_over;
      body[2] = ++number;
      worker.send(second, body);
      REQUIRE(worker.take().body[1] == 1'000'000 + number);
    }
  }
  worker.let_idle();
  CHECK(worker.corrupt() == passed_over);
}

TEST_CASE("interleaved and streamed messages each reach their own actor and its state") {
  const bool elsewhere = GENERATE(false, true);
  WarpUnderTest worker(elsewhere);
  std::mt19937_64 random(62);
  uint64_t total[3] = {};
  for (int burst = 0; burst < rounds(600); ++burst) {
    std::deque<uint64_t> expected;
    for (uint64_t left = 1 + random() % (burst % 2 == 0 ? 1 : 30); left > 0; --left) {
      const uint64_t key = random() % 12 < 9 ? uint64_t(burst) / 7 % 3 : random() % 3, n = random() % 100;
      if (random() % 16 == 0) {
        worker.send(second, {root_of(2), Second::by_nobody, n});
        expected.push_back(1'000'000 + n);
      } else {
        worker.send(counter, {root_of(1), n}, key);
        expected.push_back(total[key] += n);
      }
    }
    for (; !expected.empty(); expected.pop_front()) {
      const Answer answer = worker.take();
      REQUIRE(answer.status == Status::ok);
      REQUIRE(answer.body[1] == expected.front());
    }
  }
}

TEST_CASE(
    "a handler that fails in one lane alone, or in all, is answered by its failure; no other, and no tell") {
  WarpUnderTest worker(GENERATE(false, true));
  std::mt19937_64 random(63);
  struct Sent {
    uint64_t correlation;
    bool fails;
    uint64_t n;
  };
  std::deque<Sent> sent;
  uint64_t processed = 0, failed = 0;
  for (int burst = 0; burst < rounds(300); ++burst) {
    for (uint64_t left = 1 + random() % (burst % 2 == 0 ? 1 : 20); left > 0; --left) {
      const uint64_t lanes = random() % 2 == 0 ? Second::by_nobody : Second::by_all + random() % 33;
      const bool fails = lanes != Second::by_nobody;
      const uint64_t n = random() % 1'000;
      if (random() % 4 == 0) {
        worker.tell(second, {root_of(2), lanes, n});
        ++(fails ? failed : processed);
      } else {
        sent.push_back({worker.send(second, {root_of(2), lanes, n}), fails, n});
      }
    }
    for (; !sent.empty(); sent.pop_front()) {
      const Answer answer = worker.take();
      INFO("message " << answer.correlation);
      REQUIRE(answer.correlation == sent.front().correlation);
      REQUIRE(answer.status == (sent.front().fails ? Status::handler_failed : Status::ok));
      if (sent.front().fails) {
        REQUIRE(answer.detail == sent.front().n);
      } else {
        REQUIRE(answer.body[1] == 1'000'000 + sent.front().n);
      }
    }
  }
  worker.let_idle();
  CHECK(worker.tells_processed() == processed);
  CHECK(worker.tells_failed() == failed);
}

TEST_CASE("a worker that was idle when it became inactive handles nothing, whatever it handled last") {
  const bool elsewhere = GENERATE(false, true);
  WarpUnderTest worker(elsewhere);
  uint64_t total = 0;
  for (int round = 0; round < 4; ++round) {
    for (int message = 0; message < 4; ++message) {
      REQUIRE(worker.ask(counter, {root_of(1), 5}).body[1] == (total += 5));
    }
    // The last that was like no other: one of an older revision, whose root is shorter.
    if (round % 2 == 1) REQUIRE(worker.ask(second, {root_of(1), Second::by_nobody}).body[1] == 1'000'000);
    worker.let_idle();
    worker.command(Command::inactive);
    worker.let_idle();
    if (round != 3) {
      for (int message = 0; message < 2; ++message) {
        REQUIRE(worker.ask(counter, {root_of(1), 5}).status == Status::inactive);
      }
    }
    worker.command(Command::run);
    REQUIRE(worker.ask(counter, {root_of(1), 5}).body[1] == (total += 5));
  }
}

TEST_CASE("a list of any length comes back whole, from a warp and from parts of one, alone and in streams") {
  WarpUnderTest worker(GENERATE(false, true));
  std::mt19937_64 random(64);
  uint64_t number = 0;
  // Of 17 numbers the team that a message's 16 packets take has 16 threads; of more than 32 a warp too few.
  for (const uint32_t size : {0u, 1u, 5u, 16u, 17u, 18u, 31u, 32u, 33u, 40u, 41u}) {
    for (const uint32_t count : {1u, 2u, 3u, 30u}) {
      std::deque<Words> sent;
      for (uint32_t message = 0; message < count; ++message) {
        Words body{root_of(1, 1), ++number, gyre_test::list_of(5, 0, size)};
        for (uint32_t i = 0; i < size; ++i) body.push_back(random());
        worker.send(echo, body);
        sent.push_back(std::move(body));
      }
      for (; !sent.empty(); sent.pop_front()) {
        const Answer answer = worker.take();
        INFO(size << " numbers, message " << sent.front()[1]);
        REQUIRE(answer.status == Status::ok);
        uint64_t sequence = 0;
        REQUIRE(payload_of(answer.body, sequence) == Words(sent.front().begin() + 3, sent.front().end()));
        REQUIRE(sequence == sent.front()[1]);
      }
    }
  }
}

TEST_CASE(
    "what goes wrong on the short way, in one lane or in all, is answered by name, and leaves nothing "
    "behind") {
  WarpUnderTest worker(GENERATE(false, true));
  std::mt19937_64 random(65);
  struct Sent {
    uint64_t correlation, size;
    Status status;
  };
  std::deque<Sent> sent;
  uint64_t processed = 0, failed = 0;
  const uint64_t most = RingShape{}.body_capacity() / 8 - 4;  // numbers that a reply has room for
  for (int burst = 0; burst < rounds(400); ++burst) {
    for (uint64_t left = 1 + random() % (burst % 2 == 0 ? 1 : 20); left > 0; --left) {
      const bool broken = random() % 4 == 0, in_all = random() % 2 == 0;
      const uint64_t lane = in_all ? Merchant::in_all : random() % 8;
      const uint64_t size = !broken && random() % 3 == 0 ? most - 2 + random() % 5 : random() % 6;
      // Its list of two words, or one that does not lie in it. Eight packets, and teams of two to eight
      // threads.
      const Words body{root_of(2, 1), lane, size, gyre_test::list_of(5, 0, broken ? 5 : 2), 1, 2, 3, 4};
      const Status status = broken ? Status::malformed : size > most ? Status::reply_too_large : Status::ok;
      if (random() % 4 == 0) {
        worker.tell(merchant, body);
        ++(status == Status::ok ? processed : failed);
      } else {
        sent.push_back({worker.send(merchant, body), size, status});
      }
    }
    for (; !sent.empty(); sent.pop_front()) {
      const Answer answer = worker.take();
      INFO("message " << answer.correlation << ", " << sent.front().size << " numbers");
      REQUIRE(answer.correlation == sent.front().correlation);
      REQUIRE(answer.status == sent.front().status);
      if (answer.status == Status::reply_too_large) REQUIRE(answer.detail == RingShape{}.body_capacity());
      if (answer.status != Status::ok) continue;
      Words expected{root_of(1, 2), sent.front().size, gyre_test::list_of(5, 1, sent.front().size), 0};
      for (uint64_t i = 0; i < sent.front().size; ++i) expected.push_back(sent.front().size * 100 + i);
      REQUIRE(answer.body == expected);
    }
  }
  worker.let_idle();
  CHECK(worker.tells_processed() == processed);
  CHECK(worker.tells_failed() == failed);
}

TEST_CASE("as many messages as are there together are handled side by side, once, each by its team") {
  const RingShape shape{.slots = 256, .slot_bytes = GENERATE(uint32_t(64), uint32_t(512), uint32_t(1024))};
  WarpUnderTest worker(GENERATE(false, true), shape);
  std::mt19937_64 random(66);
  Clerk::start_anew();
  uint64_t number = 0, by_threads[33] = {}, processed = 0, failed = 0;
  std::vector<uint64_t> to_handle;
  struct Sent {
    uint64_t correlation, number;
    bool late;
  };
  std::deque<Sent> sent;
  for (int burst = 0; burst < rounds(45); ++burst) {
    // Asks that are all answered, tells that all are processed, or of all kinds: what is among those that are
    // handled beside it, and behind them.
    const int kind = burst % 3;
    for (uint64_t left = 1 + random() % 200; left > 0; --left) {
      ++number;
      if (kind != 0 && number % 31 == 0) ++number;
      if (kind == 1 || (kind == 0 && random() % 16 == 0)) {
        worker.tell(clerk, {root_of(1), number});
        to_handle.push_back(number);
        ++(number % 31 == 0 ? failed : processed);
        continue;
      }
      const bool late = kind == 0 && random() % 16 == 0;
      if (!late) to_handle.push_back(number);
      sent.push_back({worker.send(clerk, {root_of(1), number}, 7, late ? 1 : 0), number, late});
    }
    for (; !sent.empty(); sent.pop_front()) {
      const Answer answer = worker.take();
      INFO("message " << sent.front().number);
      REQUIRE(answer.correlation == sent.front().correlation);
      if (sent.front().late) {
        REQUIRE(answer.status == Status::expired);
      } else if (sent.front().number % 31 == 0) {
        REQUIRE(answer.status == Status::handler_failed);
        REQUIRE(answer.detail == sent.front().number);
      } else {
        REQUIRE(answer.status == Status::ok);
        REQUIRE(answer.body.size() == 2);
        REQUIRE(answer.body[1] / 100 == sent.front().number);
        REQUIRE(answer.body[1] % 100 <= warp::lanes);
        ++by_threads[answer.body[1] % 100];
      }
    }
    if (kind == 1) worker.let_idle();
  }
  worker.let_idle();
  CHECK(Clerk::handled_once(to_handle));
  CHECK(worker.tells_processed() == processed);
  CHECK(worker.tells_failed() == failed);
  for (const uint32_t threads : {1u, 2u, 4u, 32u}) {
    INFO(threads << " threads");
    CHECK(by_threads[threads] != 0);
  }
  for (const uint32_t together : {1u, 8u, 16u, 24u, 32u}) {
    INFO(together << " at once");
    CHECK(Clerk::at_once[together] > 1);
  }
}

TEST_CASE("in a stream as many are handled at once where a lap of the ring ends as anywhere") {
  const RingShape shape{.slots = GENERATE(uint32_t(64), uint32_t(256)), .slot_bytes = 64};
  WarpUnderTest worker(GENERATE(false, true), shape);
  Clerk::start_anew();
  std::vector<uint64_t> to_handle;
  for (uint64_t number = 0; to_handle.size() < 20 * shape.slots;) {
    for (; worker.has_room(); to_handle.push_back(number)) {
      if (++number % 31 == 0) ++number;
      worker.tell(clerk, {root_of(1), number});
    }
    worker.let_run(1);
  }
  worker.let_idle();
  CHECK(Clerk::handled_once(to_handle));
  CHECK(32 * Clerk::at_once[32] > to_handle.size() * 3 / 4);
}

TEST_CASE("messages wait where there is no room for a reply, and each is handled once when there is") {
  const RingShape shape{.slots = 64, .slot_bytes = 64};
  WarpUnderTest worker(GENERATE(false, true), shape);
  std::mt19937_64 random(67);
  Clerk::start_anew();
  uint64_t number = 0;
  std::vector<uint64_t> to_handle, asked;
  const auto send = [&](uint64_t count, bool tell) {
    for (; count > 0; --count) {
      if (++number % 31 == 0) ++number;
      to_handle.push_back(number);
      if (tell) {
        worker.tell(clerk, {root_of(1), number});
      } else {
        worker.send(clerk, {root_of(1), number});
        asked.push_back(number);
      }
    }
  };
  for (int round = 0; round < rounds(20); ++round) {
    const uint64_t first = 1 + random() % 64;
    send(first, false);
    worker.let_idle();  // their replies are there
    send(64 - first, false);
    send(random() % first, true);  // and after these all room is taken
    worker.let_run(uint32_t(random() % 2 * 6'000));
    for (const uint64_t n : asked) REQUIRE(worker.take().body[1] / 100 == n);
    asked.clear();
    worker.let_idle();
    REQUIRE(Clerk::handled_once(to_handle));
  }
}

namespace {

// Sends `count` orders to add one to `read` numbers, into a list of `written`: `sums` come back, the list
// behind them untouched.
void check_sums(WarpUnderTest& worker, uint32_t count, uint64_t how, uint32_t read, uint32_t written,
                const Words& sums) {
  Words body{root_of(2, 1), how, written, gyre_test::list_of(5, 0, read)};
  for (uint32_t i = 0; i < read; ++i) body.push_back(100 + i);
  Words expected{root_of(1, 2), 0, gyre_test::list_of(5, 1, written),
                 gyre_test::list_of(5, int32_t(written), 3)};
  expected.insert(expected.end(), sums.begin(), sums.end());
  expected.insert(expected.end(), 3, 0);
  for (uint32_t message = 0; message < count; ++message) worker.send(merchant, body);
  for (uint32_t message = 0; message < count; ++message) {
    const Answer answer = worker.take();
    INFO(read << " numbers read, " << written << " written");
    REQUIRE(answer.status == Status::ok);
    REQUIRE(answer.body == expected);
  }
}

}  // namespace

TEST_CASE(
    "a warp and its parts transform lists that are shorter and longer than the result, and touch nothing "
    "else") {
  WarpUnderTest worker(GENERATE(false, true));
  for (const uint32_t count : {1u, 30u}) {
    for (uint32_t read = 0; read <= 16; ++read) {
      for (const uint32_t written : {0u, 1u, 4u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 32u, 33u, 36u}) {
        Words sums;
        for (uint32_t i = 0; i < written; ++i) sums.push_back(i < read ? 101 + i : 1);
        check_sums(worker, count, Merchant::adds_one, read, written, sums);
      }
    }
  }
}

namespace {

// Merchant::weave's buffers, before it and after it: `size` elements and some behind them, which it leaves.
template <class T>
void lay_cloth(uint64_t size) {
  using Of = Cloth<T>;
  Of::sum.assign(size + 40, T(7));
  Of::a.resize(size + 40);
  Of::b.resize(size + 40);
  for (uint64_t i = 0; i < Of::a.size(); ++i) {
    Of::a[i] = T(i % 101);
    Of::b[i] = T(i % 13);
  }
}
template <class T>
bool is_woven(uint64_t size) {
  using Of = Cloth<T>;
  const uint64_t shorter = size < 2 ? size : size - 2;
  for (uint64_t i = 0; i < Of::a.size(); ++i) {
    const T a = T(i % 101), b = T(i % 13);
    if (Of::sum[i] != (i < size ? T(a + 3 * b) : T(7))) return false;
    if (Of::a[i] != (i < shorter ? T(a + b) : a) || Of::b[i] != b) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a warp transforms buffers of any length and of elements of any size, one of them in place") {
  WarpUnderTest worker(false);
  for (const uint64_t size : {0u, 1u, 2u, 15u, 16u, 17u, 511u, 512u, 513u, 2047u, 2048u, 2050u, 9000u}) {
    lay_cloth<uint8_t>(size);
    lay_cloth<uint16_t>(size);
    lay_cloth<float>(size);
    lay_cloth<uint64_t>(size);
    // The answer to the larger sizes does not fit a slot; the buffers were added all the same.
    worker.ask(merchant, {root_of(2, 1), Merchant::weaves, size, gyre_test::list_of(5, 0, 0)});
    INFO(size << " elements");
    CHECK(is_woven<uint8_t>(size));
    CHECK(is_woven<uint16_t>(size));
    CHECK(is_woven<float>(size));
    CHECK(is_woven<uint64_t>(size));
  }
}

TEST_CASE(
    "a warp and its parts transform lists that are known to be short, and of a longer one set an element "
    "each") {
  WarpUnderTest worker(GENERATE(false, true));
  for (const uint32_t count : {1u, 30u}) {
    for (const uint32_t read : {0u, 1u, 2u, 5u, 16u}) {
      for (const uint32_t written : {0u, 1u, 3u, 4u, 31u, 32u, 33u, 36u}) {
        if (count != 1 && written > 4) continue;
        Words sums;
        for (uint32_t i = 0; i < written; ++i) sums.push_back(i >= 32 ? 0 : i < read ? 101 + i : 1);
        check_sums(worker, count, Merchant::adds_one_to_short, read, written, sums);
      }
    }
  }
}

namespace {

// An order that ends as its second says, and how: its list of two words, or one that does not lie in it.
struct AnyOrder {
  Words body;
  uint64_t size;
  Status status;
};
AnyOrder any_order(std::mt19937_64& random) {
  constexpr uint64_t most = 36;  // numbers that a reply has room for
  const uint64_t kind = random() % 8;
  const uint64_t lane = kind == 0   ? Careful::fails_in_lane + random() % warp::lanes
                        : kind == 1 ? Merchant::in_all
                                    : random() % 8;
  const bool broken = kind == 1 || kind == 2;
  const uint64_t size = kind == 3 ? most + 5 + random() % 3 : random() % 12;
  const Status status = kind == 0   ? Status::handler_failed
                        : broken    ? Status::malformed
                        : kind == 3 ? Status::reply_too_large
                                    : Status::ok;
  return {{root_of(2, 1), lane, size, gyre_test::list_of(5, 0, broken ? 5 : 2), 1, 2, 3, 4}, size, status};
}

}  // namespace

TEST_CASE("all threads of a team get one answer from ctx.ok(), and a failure in one of them is answered") {
  WarpUnderTest worker(GENERATE(false, true));
  std::mt19937_64 random(71);
  Careful::written = Careful::disagreements = Careful::by_teams = 0;
  uint64_t well = 0, failed = 0, logged = 0, dropped = 0;
  for (int burst = 0; burst < rounds(200); ++burst) {
    std::vector<Words> failures;  // size and lane
    std::deque<AnyOrder> sent;
    for (uint64_t left = 1 + random() % (burst % 2 == 0 ? 1 : 30); left > 0; --left) {
      sent.push_back(any_order(random));
      worker.send(careful, sent.back().body);
    }
    for (; !sent.empty(); sent.pop_front()) {
      const Answer answer = worker.take();
      INFO("burst " << burst << ", " << sent.front().size << " numbers");
      REQUIRE(answer.status == sent.front().status);
      ++(answer.status == Status::ok ? well : failed);
      if (answer.status != Status::ok) failures.push_back({sent.front().size, sent.front().body[1]});
      if (answer.status != Status::ok) continue;
      Words expected{root_of(1, 2), sent.front().size, gyre_test::list_of(5, 1, sent.front().size), 0};
      for (uint64_t i = 0; i < sent.front().size; ++i) expected.push_back(sent.front().size * 100 + i);
      REQUIRE(answer.body == expected);
    }
    REQUIRE(Careful::written == well);
    // Each failure is a line, in any order where teams fail at once, or counted.
    std::vector<Words> lines = worker.take_lines();
    logged += lines.size();
    dropped += failures.size() - lines.size();
    REQUIRE(worker.lines_dropped() == dropped);
    std::sort(lines.begin(), lines.end());
    std::sort(failures.begin(), failures.end());
    REQUIRE(std::includes(failures.begin(), failures.end(), lines.begin(), lines.end()));
  }
  CHECK(logged != 0);
  CHECK(Careful::disagreements == 0);
  CHECK(Careful::by_teams != 0);
  CHECK(failed != 0);
}

TEST_CASE("a warp restores the whole state if an ask or a tell fails in one lane or in all") {
  WarpUnderTest worker(GENERATE(false, true));
  std::mt19937_64 random(72);
  std::vector<std::optional<Words>> states(40);  // more than the worker has room for
  for (int burst = 0; burst < rounds(300); ++burst) {
    std::deque<std::pair<Status, uint64_t>> expected;
    const uint64_t old_key = random() % 10, failing_key = 10 + random() % 30;
    for (uint64_t left = 1 + random() % (burst % 2 == 0 ? 1 : 20); left > 0; --left) {
      AnyOrder order = any_order(random);
      const uint64_t key = random() % 8 == 0 ? failing_key : old_key;
      while (key == failing_key && order.status == Status::ok) order = any_order(random);
      const bool tell = random() % 3 == 0;
      worker.send(undone, order.body, key, 0, nullptr, tell ? 0 : envelope_flags::ask);
      uint64_t sum = 0;
      if (order.status == Status::ok) {
        if (!states[key]) states[key] = Words(Undone::words);
        for (uint64_t i = 0; i < Undone::words; ++i) {
          (*states[key])[i] += order.size + i;
          sum = sum * 3 + (*states[key])[i];
        }
      }
      if (!tell) expected.emplace_back(order.status, sum);
    }
    for (; !expected.empty(); expected.pop_front()) {
      const Answer answer = worker.take();
      INFO("burst " << burst);
      REQUIRE(answer.status == expected.front().first);
      if (answer.status == Status::ok) REQUIRE(answer.body[1] == expected.front().second);
    }
  }
}

TEST_CASE("a warp hands over the messages that are there for an actor in one call, in their order") {
  const bool elsewhere = GENERATE(false, true);
  const uint32_t slot_bytes = GENERATE(128u, 512u);
  std::mt19937_64 random(61);
  RingShape shape;
  shape.slots = 64;
  shape.slot_bytes = slot_bytes;
  WarpUnderTest worker(elsewhere, shape);
  uint64_t totals[2] = {}, number = 0, told = 0, most = 0;
  Chorus::told = 0;
  Chorus::most_told_at_once = 0;
  const uint64_t told_before = worker.tells_processed();
  uint64_t tells = 0;
  for (int round = 0; round < rounds(40); ++round) {
    struct Sent {
      uint64_t correlation, key, number;
    };
    std::deque<Sent> sent;
    // Less than the replies' ring: the host takes none meanwhile.
    const uint64_t count = 1 + random() % 60;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t kind = random() % 20;
      if (kind == 0) {
        worker.tell(chorus, 1, {root_of(2), 5, i});
        told += i;
        ++tells;
        continue;
      }
      const uint64_t key = kind == 1 ? 1 : 0;
      std::mt19937_64* const in_parts = round % 8 == 7 ? &random : nullptr;
      const uint64_t correlation = worker.send(chorus, {root_of(1), ++number}, 7 + key, 0, in_parts);
      sent.push_back({correlation, key, number});
    }
    for (const Sent& one : sent) {
      const Answer answer = worker.take();
      REQUIRE(answer.correlation == one.correlation);
      if (one.number % 31 == 0) {
        REQUIRE(answer.status == Status::handler_failed);
        REQUIRE(answer.detail == one.number);
        continue;
      }
      totals[one.key] += one.number;
      REQUIRE(answer.status == Status::ok);
      REQUIRE(answer.body.size() == 2);
      REQUIRE(answer.body[1] % 1'000'000 == totals[one.key] % 1'000'000);
      const uint64_t at_once = (answer.body[1] - totals[one.key]) / 1'000'000;
      REQUIRE(at_once >= 1);
      REQUIRE(at_once <= 32);
      most = std::max(most, at_once);
    }
  }
  for (uint64_t i = 0; i < 40; ++i) worker.tell(chorus, 1, {root_of(2), 5, 1});
  tells += 40;
  worker.let_idle();
  (void)worker.ask(chorus, {root_of(1), 0});
  CHECK(most > 16);
  CHECK(Chorus::told == told + 40);
  CHECK(Chorus::most_told_at_once > 8);
  worker.let_idle();
  CHECK(worker.tells_processed() - told_before == tells);
}

TEST_CASE(
    "an ask of a handler without a response is answered with an empty body, alone, in streams and together") {
  const RingShape shape{.slots = 64, .slot_bytes = GENERATE(uint32_t(128), uint32_t(512))};
  WarpUnderTest worker(GENERATE(false, true), shape);
  std::mt19937_64 random(62);
  Chorus::told = Listener::heard = 0;
  uint64_t told = 0, heard = 0, number = 0, tells = 0;
  struct Sent {
    uint64_t correlation, number;
    bool to_listener, late;
  };
  for (int round = 0; round < rounds(60); ++round) {
    std::vector<Sent> sent;
    const int kind = round % 3;  // to one actor, to the other, or to both
    for (uint64_t left = 1 + random() % 60; left > 0; --left) {
      ++number;
      const bool to_listener = kind == 0 || (kind == 2 && random() % 2 == 0);
      const bool late = random() % 16 == 0, is_tell = random() % 8 == 0;
      if (!late || is_tell) (to_listener ? heard : told) += number;
      const Words body = to_listener ? Words{root_of(1), number} : Words{root_of(2), 5, number};
      const uint16_t actor = to_listener ? listener : chorus, message_type = to_listener ? 0 : 1;
      while (!worker.has_room()) worker.let_run(1);
      const uint64_t correlation =
          worker.send(actor, body, 7, late && !is_tell ? 1 : 0, round % 8 == 7 ? &random : nullptr,
                      is_tell ? 0 : envelope_flags::ask, message_type);
      if (!is_tell) sent.push_back({correlation, number, to_listener, late});
      if (is_tell && !(to_listener && number % 31 == 0)) ++tells;
    }
    for (const Sent& one : sent) {
      const Answer answer = worker.take();
      INFO("message " << one.number);
      REQUIRE(answer.correlation == one.correlation);
      if (one.late) {
        REQUIRE(answer.status == Status::expired);
      } else if (one.to_listener && one.number % 31 == 0) {
        REQUIRE(answer.status == Status::handler_failed);
        REQUIRE(answer.detail == one.number);
      } else {
        REQUIRE(answer.status == Status::ok);
        REQUIRE(answer.body.empty());
      }
    }
  }
  worker.let_idle();
  (void)worker.ask(counter, {root_of(1), 0});  // behind the last tells
  CHECK(Chorus::told == told);
  CHECK(Listener::heard == heard);
  worker.let_idle();
  CHECK(worker.tells_processed() == tells);
}

TEST_CASE("a batch is no larger than the room for its replies, and late messages are not in it") {
  RingShape shape;
  shape.slots = 16;
  WarpUnderTest worker(false, shape);
  constexpr uint32_t now_us = 50'000'000;
  worker.say_time(now_us);
  (void)worker.ask(chorus, {root_of(1), 1});
  uint64_t total = 1, number = 1, late = 0;
  std::deque<std::pair<uint64_t, bool>> sent;
  uint64_t taken = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    // As many under way as both rings hold: the replies' is full then.
    while (!worker.has_room() || sent.size() == 24) {
      if (sent.size() >= 20) {
        const auto [n, is_late] = sent.front();
        sent.pop_front();
        const Answer answer = worker.take();
        ++taken;
        if (is_late) {
          REQUIRE(answer.status == Status::expired);
          ++late;
        } else if (n % 31 == 0) {
          REQUIRE(answer.status == Status::handler_failed);
        } else {
          total += n;
          REQUIRE(answer.status == Status::ok);
          REQUIRE(answer.body[1] % 1'000'000 == total % 1'000'000);
        }
      } else {
        worker.let_run(1);
      }
    }
    const bool is_late = i % 9 == 8;
    worker.send(chorus, {root_of(1), ++number}, 7, is_late ? now_us - 1000 : 0);
    sent.emplace_back(number, is_late);
  }
  CHECK(late != 0);
  CHECK(taken >= 370);
  while (!sent.empty()) {
    sent.pop_front();
    (void)worker.take();
  }
}
