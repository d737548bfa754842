// Messages as bytes: messages that come from outside, and replies that go there.
#pragma once

#include <capnp/message.h>
#include <capnp/serialize-packed.h>
#include <kj/io.h>
#include <gyre/runtime/memory/scratch.hpp>

#include <span>
#include <vector>

namespace gyre {

/// Selects how a message is laid out in bytes.
enum class Encoding {
  body,    ///< one unpacked segment without a frame, as workers read it
  stream,  ///< Cap'n Proto's standard framing: `capnp encode`, writeMessage
  packed,  ///< Cap'n Proto's packed framing: `capnp encode --packed`, writePackedMessage
};

/// Refers to a message that came from outside as bytes; pass it to a Client in place of a fill function. A
/// message of one segment is sent as it is, and the worker checks what it reads. The official library
/// flattens and checks a message of several segments. Bytes that are no message fail with
/// Status::malformed.
///
/// Untrusted bytes have a bounded cost. For n bytes the sending thread uses at most 64 KiB + 16 n bytes of
/// memory, and time proportional to n. Three limits ensure this:
/// - A segment table that claims more than the bytes hold is malformed.
/// - In several segments each word may be read once, and 1,024 words more. Pointers that lead to one
///   object again and again are malformed.
/// - A packed message of n bytes is Status::too_large if it unpacks to more than 48 KiB + 16 n bytes (one
///   segment) or 16 KiB + 8 n bytes (several). Send messages with longer runs of zeros as a stream.
struct Encoded {
  std::span<const std::byte> bytes;  ///< of any alignment; must live until the sending function returns
  Encoding encoding = Encoding::stream;
};

/// Encodes a body, for example Reply::body(), as bytes.
/// @param body            one unpacked segment
/// @throws kj::Exception  if the segment is malformed
std::vector<std::byte> encode(std::span<const std::byte> body, Encoding encoding);

namespace detail {

/// Returns the limit in bytes of what `bytes` packed bytes may unpack to.
uint64_t most_unpacked_bytes(uint64_t bytes, bool several_segments);

/// Reads an encoded message's segments. Compares the segment table with the bytes before allocating memory
/// for what the table claims. Refers to the bytes. Used by one thread.
class Frame {
 public:
  explicit Frame(const Encoded& encoded);

  /// Reads the segment table; call it first. Returns malformed, too_large, or Status::ok. Never throws
  /// kj::Exception.
  Failure open();
  uint64_t total_bytes() const { return total_words_ * sizeof(capnp::word); }
  bool one_segment() const { return segment_words_.size() == 1; }
  /// Writes all segments, total_bytes() bytes, to `to`. Returns false if the bytes contradict the table.
  /// Call it once.
  bool take_words(capnp::word* to);
  /// Returns the segments in place, or in the Frame's own memory. Returns false if the bytes contradict
  /// the table. Call it once.
  bool take_segments(std::vector<kj::ArrayPtr<const capnp::word>>& segments);
  /// Returns options that let a reader follow each word once, and few words more.
  capnp::ReaderOptions reading_once() const;

 private:
  bool take(void* to, size_t bytes);

  Encoding encoding_;
  std::span<const std::byte> bytes_;  // of a stream: the bytes not taken yet
  kj::ArrayInputStream packed_bytes_;
  capnp::_::PackedInputStream packed_;
  std::vector<uint64_t> segment_words_;
  uint64_t total_words_ = 0;
  kj::Array<capnp::word> own_words_;
};

/// Writes the message as one segment.
/// @param place          zeroed memory of `capacity` bytes
/// @param written_bytes  receives how many bytes from the start of `place` may be nonzero afterwards, even
///                       if the function fails or throws
/// @returns              the segment's size in bytes, or a Failure
Result<uint32_t> decode(const Encoded& encoded, capnp::word* place, uint64_t capacity,
                        uint64_t& written_bytes);

/// Sends an encoded message through Scratch, like Scratch::build_and_send.
template <class Send>
auto send_encoded(const Encoded& encoded, uint64_t capacity, Send&& send) -> decltype(send(Outgoing{})) {
  return Scratch::of_this_thread().place_and_send(
      capacity,
      [&](capnp::word* place, uint64_t& written_bytes) {
        return decode(encoded, place, capacity, written_bytes);
      },
      std::forward<Send>(send));
}

}  // namespace detail
}  // namespace gyre
