// Messages as bytes: those that come from outside, and replies that go there.
#pragma once

#include <capnp/message.h>
#include <gyre/runtime/scratch.hpp>

#include <span>
#include <vector>

namespace gyre {

/// How a message lies in bytes.
enum class Encoding {
  body,    ///< one unpacked segment and nothing else, as workers read it
  stream,  ///< Cap'n Proto's standard framing: `capnp encode`, writeMessage
  packed,  ///< the same, packed: `capnp encode --packed`, writePackedMessage
};

/// A message that came from outside. Refers to the bytes, of any alignment. Sent instead of a fill function.
/// A message of one segment is taken as it is, and the worker checks what it reads; one of several is
/// flattened by the official library, which checks it. What is no such message at all is Status::malformed.
struct Encoded {
  std::span<const std::byte> bytes;
  Encoding encoding = Encoding::stream;
};

/// `message`, a reply's for instance, as bytes. Throws kj::Exception where a segment is malformed.
std::vector<std::byte> encode(std::span<const std::byte> body, Encoding encoding);

namespace detail {

/// Writes the message as one segment into `place`, of `capacity` bytes, zeroed: its size in bytes, or a
/// Failure.
Result<uint32_t> decode(const Encoded& encoded, capnp::word* place, uint64_t capacity);

/// Scratch::build_and_send for a message that is there already.
template <class Send>
auto send_encoded(const Encoded& encoded, uint64_t capacity, Send&& send) -> decltype(send(Outgoing{})) {
  return Scratch::of_this_thread().place_and_send(
      capacity, [&](capnp::word* place) { return decode(encoded, place, capacity); },
      std::forward<Send>(send));
}

}  // namespace detail
}  // namespace gyre
