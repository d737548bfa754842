// Messages as bytes: those that come from outside, and replies that go there.
#pragma once

#include <capnp/message.h>
#include <capnp/serialize-packed.h>
#include <kj/io.h>
#include <gyre/runtime/memory/scratch.hpp>

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
/// A message of one segment is taken as it is, and the worker checks what it reads. A message of several
/// segments is flattened by the official library, which checks it. Bytes that are no message are
/// Status::malformed.
///
/// Bytes of any content cost the sending thread at most 64 KiB + 16 × their number of memory, and time in
/// proportion to their number. So a segment table that claims more than the bytes hold is malformed, and so
/// are several segments in which pointers lead to one object again and again: what is read of them is their
/// words once, and 1,024 more. A packed message is Status::too_large where it unpacks to more than 48 KiB +
/// 16 × its bytes, or, of several segments, 16 KiB + 8 × its bytes: longer runs of zeros are sent as a
/// stream.
struct Encoded {
  std::span<const std::byte> bytes;
  Encoding encoding = Encoding::stream;
};

/// `message`, a reply's for instance, as bytes. Throws kj::Exception where a segment is malformed.
std::vector<std::byte> encode(std::span<const std::byte> body, Encoding encoding);

namespace detail {

/// Bytes that `bytes` packed ones may unpack to.
uint64_t most_unpacked_bytes(uint64_t bytes, bool several_segments);

/// An encoded message's segments. Its table is held against the bytes before memory is taken for what it
/// claims. Refers to the bytes. Used by one thread.
class Frame {
 public:
  explicit Frame(const Encoded& encoded);

  /// Reads the segment table, before all else: malformed, too_large, or Status::ok. Never throws
  /// kj::Exception.
  Failure open();
  uint64_t total_bytes() const { return total_words_ * sizeof(capnp::word); }
  bool one_segment() const { return segment_words_.size() == 1; }
  /// Writes all segments, total_bytes(), to `to`. False where the bytes are not what they claim. Once.
  bool take_words(capnp::word* to);
  /// The segments, where they lie, or in memory of the Frame's own. False as take_words. Once.
  bool take_segments(std::vector<kj::ArrayPtr<const capnp::word>>& segments);
  /// Lets a reader follow each word once, and few more.
  capnp::ReaderOptions reading_once() const;

 private:
  bool take(void* to, size_t bytes);

  Encoding encoding_;
  std::span<const std::byte> bytes_;  // of a stream: those not taken yet
  kj::ArrayInputStream packed_bytes_;
  capnp::_::PackedInputStream packed_;
  std::vector<uint64_t> segment_words_;
  uint64_t total_words_ = 0;
  kj::Array<capnp::word> own_words_;
};

/// Writes the message as one segment into `place`, of `capacity` bytes, zeroed: its size in bytes, or a
/// Failure. `written_bytes`: those from the start of `place` that may not be zero afterwards, whatever it
/// returns or throws.
Result<uint32_t> decode(const Encoded& encoded, capnp::word* place, uint64_t capacity,
                        uint64_t& written_bytes);

/// Scratch::build_and_send for a message that is there already.
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
