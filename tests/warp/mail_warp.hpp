// A worker of one warp with mail, lane by lane on a CPU. The test is the host and the other worker.
#pragma once

#include <gyre/device/actor/description.hpp>
#include <gyre/device/worker/worker.hpp>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "support/catch.hpp"

namespace gyre_test {

using namespace gyre;

// Two numbers and a list of numbers.
struct Letter {
  static constexpr uint64_t type_id = 0x1e77e4;
  [[maybe_unused]] static constexpr const char* type_name = "Letter";
  static constexpr uint32_t data_words = 2, pointers = 1;
  struct Reader {
    using Reads = Letter;
    explicit Reader(wire::StructReader reader) : fields(reader) {}
    uint64_t operator[](uint32_t i) const { return fields.get<uint64_t>(i); }
    wire::ListReader<uint64_t> list() const { return fields.get<wire::List<uint64_t>>(0, {type_id, 0}); }
    wire::StructReader fields;
  };
  struct Builder {
    using Builds = Letter;
    explicit Builder(wire::StructBuilder builder) : fields(builder) {}
    wire::StructBuilder fields;
  };
};

/// Element i of a letter's list.
inline uint64_t element(uint64_t key, uint64_t number, uint64_t i) {
  return key * 1'000'000 + number * 1000 + i;
}

/// Worker 0 of two, with room for 16 actors of each of `Actors`. Their handlers take Letters, and answer with
/// Letters.
template <class... Actors>
class MailWarp {
 public:
  /// @param in_gpu_memory  the worker polls as it does where the host's ring lies in the GPU's memory; the
  ///                       ring must lie in one piece
  /// @param spill_chunks   memory for messages that find no room in a queue
  explicit MailWarp(const RingShape& shape, bool in_gpu_memory = false, uint32_t spill_chunks = 8)
      : shape_(shape),
        region_(1 << 18),
        tables_(1 << 14),
        mail_(MailLayout::of(2, shape.slot_bytes, {spill_chunks, body_chunks, body_bytes},
                             rights_of_any<Actors...>())) {
    warp::fibers = {};
    RegionLayout layout;
    layout.workers = 2;
    layout.shape = shape;
    layout.handlers = handlers;
    initialise_region(aligned(region_), layout, {spill_chunks, body_chunks, body_bytes});
    auto* const types =
        reinterpret_cast<HandlerTypes*>(reinterpret_cast<char*>(aligned(region_)) + layout.handler_types());
    constexpr auto description = describe<Actors...>();
    for (uint32_t n = 0; n < handlers; ++n) types[n] = description.handlers[n].types;
    bridge_ = Bridge::of(aligned(region_), layout, 0);
    REQUIRE((!in_gpu_memory || SlotPages::pages(shape) == 0));
    bridge_.inbound_in_region = !in_gpu_memory;
    counts_.resize(2 * (handlers + 1) + mail_.reserved_bytes() / sizeof(HandlerCounts) + 1);
    memory_.actors = reinterpret_cast<uint8_t*>(aligned(tables_));
    memory_.actors_per_worker = 16;
    memory_.counts = counts_.data();
    memory_.counts_per_worker = handlers + 1;
    uint8_t* const begin = MailLayout::begin(memory_, 0, 2);
    mailboxes_ = {
        {reinterpret_cast<Packet*>(begin), reinterpret_cast<uint64_t*>(begin + mail_.tails()), mail_.shape()},
        reinterpret_cast<uint32_t*>(begin + mail_.limits()),
        2,
        MailLayout::allowance};
    reply_rings_ = {reinterpret_cast<Packet*>(begin + mail_.reply_rings()),
                    reinterpret_cast<uint64_t*>(begin + mail_.reply_tails()), mail_.reply_shape()};
    producer_ = {mailboxes_, 1, to_};
    consumer_ = {mailboxes_, 1, from_, owed_, spare_};
    producer_.start(SingleThread{});
    consumer_.start(SingleThread{});
    to_worker_ = RingCursor<Memory>(bridge_.h2d, shape);
    from_worker_ = RingCursor<Memory>(bridge_.d2h, shape);
    under_test_ = this;
    const MessageMemory messages = Tested::message_memory(shape);
    messages_.resize(messages.words() + Tested::staging_layout(shape, 2).words() + 128);
    response_ = aligned(messages_) + messages.request_words();
    for (uint32_t lane = 0; lane < warp::lanes; ++lane) warp::fibers.fiber[lane] = Fiber(run_lane);
    while (bridge_.worker_line->started == 0) let_run(1);
  }
  ~MailWarp() {
    const CommandWord stop = CommandWord{}.next(Command::stop);
    bridge_.command_line->command = CommandLine::both(stop, 0);
    while (!std::all_of(warp::fibers.done.begin(), warp::fibers.done.end() - 1, [](bool d) { return d; })) {
      warp::yield();
    }
  }
  static void let_run(uint32_t turns) {
    for (uint32_t i = 0; i < turns; ++i) warp::yield();
  }
  /// Sends an ask, as the host.
  void ask(uint16_t actor, uint64_t first, uint64_t second, uint64_t key = 0) {
    const std::vector<uint64_t> body = body_of(first, second);
    send({++asked_, uint32_t(body.size() * 8), 0, key, actor, 0, 0, 0, envelope_flags::ask}, body.data());
  }
  /// Stops an actor by an ask, as the host.
  void stop(uint16_t actor, uint64_t key) {
    const uint64_t nothing = 0;
    send({++asked_, 0, 0, key, actor, lifecycle_message::stop, 0, 0, envelope_flags::ask}, &nothing);
  }
  struct Answer {
    uint64_t correlation;
    Status status;
    uint32_t detail;
    uint64_t value;  // the second word
  };
  /// Waits for the next reply, as the host.
  Answer take_answer() {
    Answer answer{};
    while (!try_take_answer(answer)) let_run(1);
    return answer;
  }
  bool try_take_answer(Answer& answer) {
    alignas(16) uint32_t message[2048];
    if (receive<Memory>(bridge_.d2h, shape_, from_worker_.ticket(), message) != ReceiveOutcome::message) {
      return false;
    }
    from_worker_.advance(shape_);
    bridge_.host_line->d2h_credit = from_worker_.ticket();
    answer = answer_in(message);
    return true;
  }
  /// Sends a letter, as the other worker.
  /// @returns whether there was room
  bool tell(uint16_t actor, uint64_t key, uint64_t number, uint32_t size, std::mt19937_64& random,
            uint64_t correlation = 99, uint8_t flags = 0) {
    return send_letter({correlation, 0, 0, key, actor, 0, 0, 0, flags}, key, number, size, random);
  }
  /// Sends a letter under any envelope, as the other worker.
  /// @param first  the letter's first number
  /// @returns whether there was room
  bool send_letter(Envelope envelope, uint64_t first, uint64_t number, uint32_t size,
                   std::mt19937_64& random) {
    if (producer_.room(0, 1) == 0) return false;
    std::vector<uint64_t> body = body_of(first, number, size);
    for (uint32_t i = 0; i < size; ++i) body.push_back(element(first, number, i));
    envelope.body_bytes = uint32_t(body.size() * 8);
    MailHead::mark(envelope, 1, 0);
    publish_slowly(mailboxes_.rings, producer_.claim(0, 1), envelope, body.data(), body.size() * 8, random);
    return true;
  }
  /// The same, with the letter's body in the pool.
  bool tell_large(uint16_t actor, uint64_t key, uint64_t number, uint32_t size, std::mt19937_64& random,
                  uint64_t correlation = 99, uint8_t flags = 0) {
    if (producer_.room(0, 1) == 0) return false;
    const uint32_t chunk = body_pool().take(1);
    if (chunk == BodyPool::no_chunk) return false;
    std::vector<uint64_t> body = body_of(key, number, size);
    for (uint32_t i = 0; i < size; ++i) body.push_back(element(key, number, i));
    uint8_t* const memory = body_pool().at(chunk);
    CHECK(std::all_of(memory, memory + body_bytes, [](uint8_t byte) { return byte == 0; }));
    std::memcpy(memory, body.data(), body.size() * 8);
    const BodyPlace place{chunk, uint32_t(body.size() * 8), 0};
    Envelope envelope{
        correlation, sizeof place, 0, key, actor, 0, 0, 0, uint8_t(flags | envelope_flags::out_of_line)};
    MailHead::mark(envelope, 1, 0);
    publish_slowly(mailboxes_.rings, producer_.claim(0, 1), envelope, &place, sizeof place, random);
    return true;
  }
  /// Takes the body of a message that take() or take_reply() gave out of the pool, and gives its chunk back.
  void take_body(std::vector<uint64_t>& body) {
    BodyPlace place;
    std::memcpy(&place, body.data(), sizeof place);
    REQUIRE(body_pool().has(place));
    uint8_t* const memory = body_pool().at(place.chunk);
    body.resize(place.bytes / 8);
    std::memcpy(body.data(), memory, place.bytes);
    std::memset(memory, 0, place.bytes);
    CHECK(std::all_of(memory, memory + body_bytes, [](uint8_t byte) { return byte == 0; }));
    body_pool().give_clear(place.chunk);
  }
  BodyPool body_pool() const { return {MailLayout::begin(memory_, 0, 2), mail_}; }
  /// Replies to an ask of an actor, as the other worker.
  void reply(uint64_t id, uint64_t value, std::mt19937_64& random) {
    const std::vector<uint64_t> body = body_of(0, value);
    const Envelope envelope{id, uint32_t(body.size() * 8), 0, 0, 0, call_message::reply, 0, 0, 0};
    publish_slowly(reply_rings_, reply_rings_.claim_reply(0), envelope, body.data(), body.size() * 8, random);
  }
  void reply_error(uint64_t id, uint32_t code, std::mt19937_64& random) {
    const ErrorBody error{Status::handler_failed, code, 0};
    const Envelope envelope{id, sizeof error, 0, 0, 0, call_message::reply, 0, 0, envelope_flags::error};
    publish_slowly(reply_rings_, reply_rings_.claim_reply(0), envelope, &error, sizeof error, random);
  }
  /// Takes the next message that was sent to the other worker, and gives its slot back.
  bool take(Envelope& envelope, std::vector<uint64_t>& body) {
    alignas(16) uint32_t message[2048];
    const RingShape& shape = mailboxes_.rings.shape;
    const RingCursor<HostMemory> at(mailboxes_.rings.ring(1), shape, taken_);
    const Packet first = HostMemory::load(at.slot()[0]);
    if (first.stamp != at.stamp()) return false;
    const uint32_t bytes = MailHead::body_bytes(first.data[2]);
    for (uint32_t k = 0; k < packets_for(bytes); ++k) {
      const Packet packet = HostMemory::load(at.slot()[k]);
      if (packet.stamp != at.stamp()) return false;
      unpack(packet, message, k);
    }
    ++taken_;
    std::memcpy(&envelope, message, sizeof envelope);
    CHECK(MailHead::worker_of(envelope.origin) == 0);
    body.resize(bytes / 8);
    std::memcpy(body.data(), message + 8, bytes);
    if (consumer_.take(0, 1)) consumer_.raise(0);
    return true;
  }
  /// Takes the next reply to an ask of the other worker.
  bool take_reply(Answer& answer) {
    alignas(16) uint32_t message[2048];
    if (receive<HostMemory>(reply_rings_.ring(1), reply_rings_.shape, replied_, message) !=
        ReceiveOutcome::message) {
      return false;
    }
    ++replied_;
    answer = answer_in(message);
    return true;
  }
  const WorkerLine& line() const { return *bridge_.worker_line; }
  uint64_t asked() const { return asked_; }

 private:
  using Tested = Worker<Actors...>;
  static constexpr uint32_t handlers = handler_count<Actors...>, body_chunks = 6, body_bytes = 4096;

  static std::vector<uint64_t> body_of(uint64_t first, uint64_t second, uint32_t size = 0) {
    return {uint64_t(2) << 32 | uint64_t(1) << 48, first, second,
            size == 0 ? 0 : 1 | uint64_t(5) << 32 | uint64_t(size) << 35};
  }
  static Answer answer_in(const uint32_t* message) {
    Envelope envelope;
    std::memcpy(&envelope, message, sizeof envelope);
    uint64_t body[3];
    std::memcpy(body, message + 8, sizeof body);
    if ((envelope.flags & envelope_flags::error) == 0) return {envelope.correlation, Status::ok, 0, body[2]};
    ErrorBody error;
    std::memcpy(&error, message + 8, sizeof error);
    return {envelope.correlation, error.status, error.detail, 0};
  }
  // Stores the packets in any order, with pauses.
  static void publish_slowly(const WorkerRings<HostMemory>& rings, uint64_t ticket, const Envelope& envelope,
                             const void* body, size_t bytes, std::mt19937_64& random) {
    alignas(16) uint32_t message[2048] = {};
    std::memcpy(message, &envelope, sizeof envelope);
    std::memcpy(message + 8, body, bytes);
    std::vector<uint32_t> order(packets_for(uint32_t(bytes)));
    for (uint32_t k = 0; k < order.size(); ++k) order[k] = k;
    std::shuffle(order.begin(), order.end(), random);
    for (const uint32_t k : order) {
      const uint32_t* const words = message + 3 * k;
      HostMemory::store(rings.slot(0, ticket)[k],
                        Packet{{words[0], words[1], words[2]}, rings.shape.stamp(ticket)});
      if (random() % 8 == 0) let_run(uint32_t(random() % 40));
    }
  }
  void send(const Envelope& envelope, const void* body) {
    alignas(16) uint32_t message[2048] = {};
    std::memcpy(message, &envelope, sizeof envelope);
    std::memcpy(message + 8, body, envelope.body_bytes);
    publish<Memory>(SingleThread{}, to_worker_, shape_, message, envelope.body_bytes);
    to_worker_.advance(shape_);
  }
  static void run_lane() {
    {
      MailWarp& test = *under_test_;
      detail::worker_shared_of_this_thread = &test.shared_;
      Tested worker(test.bridge_, test.memory_.of_worker(0), aligned(test.messages_), test.response_,
                    test.shared_);
      worker.run([](uint32_t) { warp::yield(); });
    }
    warp::fibers.done[warp::fibers.running] = true;
    warp::yield();
  }
  template <class Buffer>
  static typename Buffer::value_type* aligned(Buffer& buffer) {
    constexpr uintptr_t alignment = 256;
    const uintptr_t address = reinterpret_cast<uintptr_t>(buffer.data());
    return reinterpret_cast<typename Buffer::value_type*>((address + alignment - 1) / alignment * alignment);
  }

  inline static MailWarp* under_test_ = nullptr;
  const RingShape shape_;
  std::vector<uint64_t> region_, tables_;
  const MailLayout mail_;
  std::vector<HandlerCounts> counts_;
  std::vector<uint32_t> messages_;
  uint32_t* response_ = nullptr;
  WorkerShared shared_{};
  Bridge bridge_{};
  EngineMemory memory_{};
  Mailboxes<HostMemory> mailboxes_{};
  WorkerRings<HostMemory> reply_rings_{};
  MailboxProducer<HostMemory>::Peer to_[2] = {};
  MailboxConsumer<HostMemory>::Peer from_[2] = {};
  uint32_t owed_[1] = {}, spare_ = 0;
  MailboxProducer<HostMemory> producer_{mailboxes_, 1, to_};
  MailboxConsumer<HostMemory> consumer_{mailboxes_, 1, from_, owed_, spare_};
  RingCursor<Memory> to_worker_{nullptr, RingShape{}}, from_worker_{nullptr, RingShape{}};
  uint64_t asked_ = 0, taken_ = 0, replied_ = 0;
};

}  // namespace gyre_test
