#include "bad_messages.hpp"

#include <capnp/message.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <kj/exception.h>
#include <gyre/runtime/builtin_actors.hpp>

#include <deque>
#include <random>
#include <vector>

#include "common_options.hpp"
#include "vectors.hpp"

namespace gyre::tools {

namespace {

using messages::Operation;
using messages::VectorAddRequest;
using messages::VectorAddResponse;
using Words = std::vector<uint64_t>;

Words body_of(const Vectors& vectors) {
  capnp::MallocMessageBuilder message(uint32_t(request_bytes(vectors.a.size()) / 8));
  fill(vectors, message.initRoot<VectorAddRequest>());
  const auto segment = message.getSegmentsForOutput()[0];
  const auto* const words = reinterpret_cast<const uint64_t*>(segment.begin());
  return {words, words + segment.size()};
}

Encoded encoded(const Words& body) { return {std::as_bytes(std::span(body)), Encoding::body}; }

/// The numbers under which workers know VectorAdd and its request.
const Handler& vector_add_handler() {
  static const ActorSet actors = builtin_actors();
  return *actors.find(actor_id<actors::VectorAdd>, ViewOf<VectorAddRequest>::type::type_id);
}

class Sender {
 public:
  explicit Sender(Client client) : client_(std::move(client)) {}

  /// Sends a body, which must be answered `expected`; or, if that is `ok`, rightly, with `malformed`, or with
  /// `bad_buffer`.
  void send(uint16_t actor_type, uint16_t message_type, Words body, Status expected) {
    const bool large = body.size() * 8 > client_.body_capacity();
    auto future =
        client_.ask_by_number(actor_type, message_type, 0, encoded(body), room_for(body.size() * 8));
    in_flight_.push_back({std::move(body), expected, std::move(future)});
    ++result_.sent;
    // Replies keep their room in the arena until they are settled.
    if (in_flight_.size() == (large ? 1 : 8)) settle();
  }
  /// A good message, which must be answered rightly.
  void send_good() {
    while (!in_flight_.empty()) settle();
    const Vectors good = ramp(5, float(++result_.good), Operation::ADD);
    const auto reply =
        client_
            .ask<VectorAddRequest>(
                Address<actors::VectorAdd>{}, [&](VectorAddRequest::Builder request) { fill(good, request); },
                room_for(request_bytes(good.a.size())))
            .get();
    const std::string problem = reply ? check(good, *reply.value()) : reply.error().message();
    if (!problem.empty()) wrong("a good message after bad ones: " + problem);
  }
  bool goes_on() const { return result_.wrong.empty() && !interrupt_requested(); }
  BadMessages finish() {
    send_good();
    return result_;
  }

 private:
  // Both lists of a damaged request may be all of it: no reply is larger than this.
  AskOptions room_for(size_t request_bytes) const {
    const bool has_arena = client_.max_body_bytes() > client_.body_capacity();
    return {{}, has_arena ? uint32_t(2 * request_bytes + 64) : 1};
  }

  struct InFlight {
    Words body;
    Status expected;
    Future<Reply<capnp::AnyPointer>> future;
  };

  void settle() {
    InFlight oldest = std::move(in_flight_.front());
    in_flight_.pop_front();
    const auto reply = oldest.future.get();
    if (!reply) {
      const Status status = reply.error().status;
      ++result_.error_replies;
      const bool damaged = status == Status::malformed || status == Status::bad_buffer;
      if (status != oldest.expected && (oldest.expected != Status::ok || !damaged)) {
        wrong(reply.error().message());
      }
    } else if (oldest.expected != Status::ok) {
      wrong(fmt::format("a message that must be answered {} was answered as if it were good",
                        name(oldest.expected)));
    } else {
      check_reply(oldest.body, *reply.value());
    }
  }

  void check_reply(const Words& body, capnp::AnyPointer::Reader reply) {
    try {
      SegmentReader sent(reinterpret_cast<const capnp::word*>(body.data()), body.size());
      const std::string problem =
          check_any(sent.getRoot<VectorAddRequest>(), reply.getAs<VectorAddResponse>());
      if (!problem.empty()) wrong("a damaged message: " + problem);
    } catch (const kj::Exception& error) {
      wrong(
          fmt::format("a damaged message was answered as if it were good: {}; its first words: {:016x}",
                      error.getDescription().cStr(),
                      fmt::join(body.begin(), body.begin() + std::min<ptrdiff_t>(8, std::ssize(body)), " ")));
    }
  }

  void wrong(const std::string& what) {
    if (result_.wrong.empty()) result_.wrong = what;
  }

  Client client_;
  std::deque<InFlight> in_flight_;
  BadMessages result_;
};

}  // namespace

BadMessages send_truncated(Client client) {
  const Handler& handler = vector_add_handler();
  Sender sender(std::move(client));
  const Words whole = body_of(ramp(25, 3, Operation::ADD));
  // The second list ends the body: any cut takes something of it.
  for (size_t words = 0; words < whole.size() && sender.goes_on(); ++words) {
    sender.send(handler.actor_type, handler.message_type, {whole.begin(), whole.begin() + ptrdiff_t(words)},
                Status::malformed);
    sender.send_good();
  }
  return sender.finish();
}

BadMessages send_bit_flipped(Client client, uint32_t count, size_t elements) {
  const Handler& handler = vector_add_handler();
  Sender sender(std::move(client));
  std::mt19937 random(11);
  for (uint32_t i = 0; i < count && sender.goes_on(); ++i) {
    Words body = body_of(ramp(elements, float(i), Operation(random() % 4)));
    // Most flips among the pointers, where they do most harm.
    const size_t reach = random() % 4 == 0 ? body.size() : std::min<size_t>(body.size(), 8);
    for (uint32_t flips = 1 + random() % 8; flips > 0; --flips) {
      body[random() % reach] ^= uint64_t(1) << random() % 64;
    }
    sender.send(handler.actor_type, handler.message_type, std::move(body), Status::ok);
    if (i % 16 == 15) sender.send_good();
  }
  return sender.finish();
}

BadMessages send_unknown(Client client) {
  const Handler& handler = vector_add_handler();
  Sender sender(std::move(client));
  const Words body = body_of(ramp(5, 2, Operation::ADD));
  for (const uint16_t beyond : {1, 2, 1000, 60000}) {
    sender.send(handler.actor_type, uint16_t(handler.message_type + beyond), body, Status::unknown_message);
    sender.send_good();
    sender.send(uint16_t(handler.actor_type + beyond), handler.message_type, body, Status::unknown_actor);
    sender.send_good();
  }
  return sender.finish();
}

}  // namespace gyre::tools
