// Messages as bytes: from outside, in each of the encodings, whole and broken; and replies to outside.
#include <capnp/serialize-packed.h>
#include <capnp/serialize.h>
#include <kj/io.h>
#include <gyre/runtime/encoded.hpp>

#include <cstring>
#include <vector>

#include "support/catch.hpp"
#include "support/hostile_frames.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

// A ProbeRequest with `words` of filler, in segments of `segment_words` at least.
void build(capnp::MessageBuilder& message, uint32_t words) {
  auto request = message.initRoot<ProbeRequest>();
  request.setAction(Action::ECHO);
  request.setArgument(words);
  auto filler = request.initFiller(words);
  for (uint32_t i = 0; i < words; ++i) filler.set(i, i * 3);
}

std::vector<std::byte> bytes_of(kj::ArrayPtr<const kj::byte> bytes) {
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.begin());
  return {begin, begin + bytes.size()};
}
std::vector<std::byte> stream_of(capnp::MessageBuilder& message) {
  return bytes_of(capnp::messageToFlatArray(message).asBytes());
}
std::vector<std::byte> packed_of(capnp::MessageBuilder& message) {
  kj::VectorOutputStream out;
  capnp::writePackedMessage(out, message);
  return bytes_of(out.getArray());
}

// What a worker makes of the message.
void check_answered(Stepped& s, const Encoded& encoded, uint32_t words) {
  auto future = s.client->ask<ProbeRequest>(probe, encoded);
  s.work();
  const auto reply = future.get();
  REQUIRE(reply);
  REQUIRE(reply.value()->getFiller().size() == words);
  for (uint32_t i = 0; i < words; ++i) REQUIRE(reply.value()->getFiller()[i] == i * 3);
}

Failure outcome(Stepped& s, const Encoded& encoded) {
  auto future = s.client->ask<ProbeRequest>(probe, encoded);
  s.work();
  const auto reply = future.get();
  return reply ? Failure{} : reply.error();
}

}  // namespace

TEST_CASE("a message from outside is answered, in each encoding, of one segment and of several") {
  Stepped s;
  for (const uint32_t words : {0u, 1u, 20u, 5000u}) {
    for (const uint32_t first_segment : {1u, 8192u}) {  // one word: everything else goes to further segments
      capnp::MallocMessageBuilder message(first_segment, capnp::AllocationStrategy::FIXED_SIZE);
      build(message, words);
      if (first_segment == 1) REQUIRE(message.getSegmentsForOutput().size() > 1);
      check_answered(s, {stream_of(message), Encoding::stream}, words);
      check_answered(s, {packed_of(message), Encoding::packed}, words);
      if (first_segment != 1) {
        check_answered(s, {bytes_of(message.getSegmentsForOutput()[0].asBytes()), Encoding::body}, words);
      }
    }
  }
  CHECK(s.core->arena().bytes_in_use() == 0);
}

TEST_CASE("bytes need no alignment") {
  Stepped s;
  capnp::MallocMessageBuilder message;
  build(message, 20);
  std::vector<std::byte> bytes = stream_of(message);
  bytes.insert(bytes.begin(), std::byte{0});
  check_answered(s, {std::span(bytes).subspan(1), Encoding::stream}, 20);
}

TEST_CASE("a root in another segment, and longer than this revision knows, is read") {
  Stepped s;
  // ProbeRequest has 2 data words and 1 pointer; here the root has 3 and 2.
  const uint64_t words[] = {
      0x0000000200000001,  // two segments, the first of 2 words
      0x0000000000000006,  // the second of 6
      0x0000000100000002,  // far pointer: segment 1, landing pad at word 0
      0,
      0x0002000300000000,  // landing pad: a struct of 3 data words and 2 pointers behind it
      0,                   // answer
      77,
      0xdddddddddddddddd,  // what a later revision added
      0,
      0};
  auto future =
      s.client->ask<ProbeRequest>(probe, Encoded{std::as_bytes(std::span(words)), Encoding::stream});
  s.work();
  const auto reply = future.get();
  REQUIRE(reply);
  CHECK(reply.value()->getValue() == 2 * 77 + 1);
}

TEST_CASE("a message with an empty segment in its middle is one of several all the same") {
  Stepped s;
  const uint64_t words[] = {0x0000000100000002,  // three segments: of 1 word,
                            0x0000000400000000,  // of none, of 4
                            0x0000000200000002,  // far pointer: segment 2, landing pad at word 0
                            0x0001000200000000,  // landing pad: a ProbeRequest behind it
                            0,
                            21,
                            0};
  auto future =
      s.client->ask<ProbeRequest>(probe, Encoded{std::as_bytes(std::span(words)), Encoding::stream});
  s.work();
  const auto reply = future.get();
  REQUIRE(reply);
  CHECK(reply.value()->getValue() == 43);
}

TEST_CASE("a message many times too large is too large, not malformed, in both encodings") {
  Stepped s({.slots = 4, .arena_bytes = 0});
  capnp::MallocMessageBuilder message(16384);
  build(message, 10'000);
  for (const Failure& failure : {outcome(s, {stream_of(message), Encoding::stream}),
                                 outcome(s, {packed_of(message), Encoding::packed})}) {
    CHECK(failure.status == Status::too_large);
    CHECK(failure.asked > 80'000);
    CHECK(failure.limit == s.client->body_capacity());
  }
}

TEST_CASE("what is no message is malformed before it is sent, and the next message is answered") {
  Stepped s;
  capnp::MallocMessageBuilder message(1, capnp::AllocationStrategy::FIXED_SIZE);
  build(message, 20);
  const std::vector<std::byte> whole = stream_of(message), packed = packed_of(message);
  for (size_t cut = 0; cut < whole.size(); cut += 3) {
    CHECK(outcome(s, {std::span(whole).first(cut), Encoding::stream}).status == Status::malformed);
  }
  for (size_t cut = 0; cut < packed.size(); cut += 3) {
    CHECK(outcome(s, {std::span(packed).first(cut), Encoding::packed}).status == Status::malformed);
  }
  CHECK(s.core->books().asks.accepted == 0);
  check_answered(s, {whole, Encoding::stream}, 20);
}

TEST_CASE("a body is taken as it is: the worker says what is wrong with it") {
  Stepped s;
  const uint64_t beyond_the_end[] = {0x0000000500000000};
  CHECK(outcome(s, {std::as_bytes(std::span(beyond_the_end)), Encoding::body}).status == Status::malformed);
  CHECK(outcome(s, {{}, Encoding::body}).status == Status::malformed);
  CHECK(s.core->books().asks.accepted == 2);
}

TEST_CASE("a table that claims more than the bytes hold is malformed, whatever there is room for") {
  Stepped s;
  capnp::MallocMessageBuilder message;
  build(message, 12);
  std::vector<std::byte> stream = stream_of(message), packed = packed_of(message);
  const uint32_t claims[] = {uint32_t(stream.size() / 8), 4'000'000, 0xffffffff};
  for (const uint32_t words : claims) {
    std::memcpy(stream.data() + 4, &words, sizeof words);
    CHECK(outcome(s, {stream, Encoding::stream}).status == Status::malformed);
  }
  // Two packed bytes stand for 256 words at the most: these cannot be a segment of 536,870,911.
  const std::vector<std::byte> bomb = {std::byte{0xf0}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                       std::byte{0x1f}, std::byte{0x00}, std::byte{0xff}};
  CHECK(outcome(s, {bomb, Encoding::packed}).status == Status::malformed);
  CHECK(s.core->books().asks.accepted == 0);
}

TEST_CASE(
    "packed zeros are unpacked up to a bound, and beyond it are too large, with both numbers and a remedy") {
  Stepped s;
  const auto zeros = [](uint32_t words, uint32_t first_segment) {
    capnp::MallocMessageBuilder message(first_segment, capnp::AllocationStrategy::FIXED_SIZE);
    auto request = message.initRoot<ProbeRequest>();
    request.setAction(Action::ECHO);
    request.initFiller(words);
    return std::pair(packed_of(message), stream_of(message));
  };
  const auto answered = [&](const Encoded& encoded, uint32_t words) {
    auto future = s.client->ask<ProbeRequest>(probe, encoded);
    s.work();
    const auto reply = future.get();
    return reply && reply.value()->getFiller().size() == words;
  };
  CHECK(answered({zeros(6000, 8192).first, Encoding::packed}, 6000));
  CHECK(answered({zeros(2000, 1).first, Encoding::packed}, 2000));  // of several segments
  for (const uint32_t first_segment : {8192u, 1u}) {
    const auto [packed, stream] = zeros(8000, first_segment);
    REQUIRE(packed.size() < 200);
    const Failure failure = outcome(s, {packed, Encoding::packed});
    CHECK(failure.status == Status::too_large);
    CHECK(failure.asked > 64'000);
    CHECK(failure.limit == detail::most_unpacked_bytes(packed.size(), first_segment == 1));
    CHECK_THAT(failure.message(), containing("send it unpacked, as a stream"));
    CHECK(answered({stream, Encoding::stream}, 8000));
  }
}

TEST_CASE("of several segments, pointers that lead to one object again and again are malformed") {
  Stepped s;
  const std::vector<std::byte> bytes = repeated_lists();
  CHECK(outcome(s, {bytes, Encoding::stream}).status == Status::malformed);
  CHECK(s.core->books().asks.accepted == 0);
}

TEST_CASE("a message larger than the arena is too large, with both numbers") {
  Stepped s({.slots = 4, .arena_bytes = 64 << 10});
  capnp::MallocMessageBuilder one(16384), several(1, capnp::AllocationStrategy::FIXED_SIZE);
  for (capnp::MessageBuilder* message :
       {static_cast<capnp::MessageBuilder*>(&one), static_cast<capnp::MessageBuilder*>(&several)}) {
    build(*message, 9000);
    const Failure failure = outcome(s, {stream_of(*message), Encoding::stream});
    CHECK(failure.status == Status::too_large);
    CHECK(failure.limit == 64 << 10);
    CHECK(failure.asked > 64 << 10);
  }
}

TEST_CASE("a reply goes outside as a stream and packed, and reads there as it does here") {
  Stepped s;
  auto future = s.client->ask<ProbeRequest>(probe, [](auto request) {
    request.setAction(Action::ECHO);
    auto filler = request.initFiller(30);
    for (uint32_t i = 0; i < 30; ++i) filler.set(i, i);
  });
  s.work();
  const auto reply = future.get();
  REQUIRE(reply);
  const auto check = [](capnp::MessageReader& message) {
    const auto response = message.getRoot<ProbeResponse>();
    REQUIRE(response.getFiller().size() == 30);
    for (uint32_t i = 0; i < 30; ++i) CHECK(response.getFiller()[i] == i);
  };
  const auto stream = encode(reply.value().body(), Encoding::stream);
  kj::ArrayInputStream stream_in({reinterpret_cast<const kj::byte*>(stream.data()), stream.size()});
  capnp::InputStreamMessageReader stream_message(stream_in);
  check(stream_message);
  const auto packed = encode(reply.value().body(), Encoding::packed);
  CHECK(packed.size() < stream.size());
  kj::ArrayInputStream packed_in({reinterpret_cast<const kj::byte*>(packed.data()), packed.size()});
  capnp::PackedMessageReader packed_message(packed_in);
  check(packed_message);
  const auto body = encode(reply.value().body(), Encoding::body);
  CHECK(std::equal(body.begin(), body.end(), reply.value().body().begin(), reply.value().body().end()));
}
