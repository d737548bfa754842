// What a call slot keeps of its call's outcome: a body, in the slot's own place or in a block of the arena,
// or a failure.
#pragma once

#include <capnp/any.h>
#include <capnp/message.h>
#include <gyre/messages/envelope.hpp>
#include <gyre/runtime/core/packing.hpp>
#include <gyre/runtime/errors.hpp>
#include <gyre/runtime/memory/arena.hpp>
#include <gyre/runtime/memory/segment_reader.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

namespace gyre::detail {

/// What the message path reads and writes of an Answer: shares a line with the rest of the slot's hot part.
struct AnswerFields {
  std::byte* place_ = nullptr;
  uint64_t body_bytes_ = 0;
  uint32_t place_bytes_ = 0;
  uint32_t dirty_bytes_ = 0;  // of the place's body: the rest is zero
  bool failed_ = false;       // with Answer::failure_
  bool in_block_ = false;     // the body is in Answer::block_, not in the place
  bool readable_ = false;     // Answer::reader_ and root_ are there, of the place or of this answer's block
};

/// Used by one thread at a time: the one that decides the call, then the one that reads the outcome.
class Answer : AnswerFields {
 public:
  /// `place`: zeroed memory for an envelope and a body, 16-aligned, `bytes` bytes in whole groups of packets.
  void use_place(std::byte* place, uint32_t bytes) {
    place_ = place;
    place_bytes_ = bytes;
  }
  /// Where a reply is unpacked to, envelope and body; up to the next whole 48 bytes may be written.
  std::byte* place() { return place_; }

  /// The slot's next call has no outcome.
  void clear() {
    failed_ = false;
    body_bytes_ = 0;
  }
  /// The body lies in place().
  void keep(uint32_t body_bytes) {
    const uint32_t unpacked = groups_for(body_bytes) * group_bytes - uint32_t(sizeof(Envelope));
    dirty_bytes_ = std::max(dirty_bytes_, unpacked);
    body_bytes_ = body_bytes;
  }
  /// The body is the first `body_bytes` of the reply in `block`, at `words`.
  void keep_in_block(const capnp::word* words, BlockId block, uint64_t body_bytes) {
    readable_ = false;  // the reader is of the place
    in_block_ = true;
    words_in_block_ = words;
    block_ = block;
    body_bytes_ = body_bytes;
  }
  void keep_failure(const Failure& failure) {
    failure_ = failure;
    failed_ = true;
  }

  bool failed() const { return failed_; }
  /// Status::ok where the outcome is no failure.
  Failure failure() const { return failed_ ? failure_ : Failure{}; }
  std::span<const std::byte> body() const {
    return {reinterpret_cast<const std::byte*>(words()), body_bytes_};
  }
  /// Reads the body as a `Response`, an official class; valid until the call is released. A body of 0 bytes,
  /// which handlers without a response answer with, has a null root. Throws kj::Exception where the body is
  /// none.
  template <class Response>
  typename Response::Reader read() {
    if constexpr (capnp::kind<Response>() == capnp::Kind::STRUCT) {
      if (const auto root = plain_root(); root != nullptr) [[likely]]
        return typename Response::Reader(capnp::_::StructReader(root));
      return root_struct().template as<Response>();
    }
    return root().template getAs<Response>();
  }

  bool in_block() const { return in_block_; }
  /// Frees the block of a body that lies in one.
  void free_block(Arena& arena) {
    readable_ = false;  // the reader is of the block
    in_block_ = false;
    arena.free(block_, body_bytes_);
  }

 private:
  const capnp::word* words() const {
    return in_block_ ? words_in_block_ : reinterpret_cast<const capnp::word*>(place_ + sizeof(Envelope));
  }
  kj::ArrayPtr<const capnp::word> plain_root() const;
  const capnp::AnyPointer::Reader& root();
  const capnp::AnyStruct::Reader& root_struct();
  void clear_behind_body();

  const capnp::word* words_in_block_ = nullptr;
  BlockId block_ = 0;
  Failure failure_{};
  capnp::AnyPointer::Reader root_;  // of reader_
  // The last root that was a struct, of the place's reader, and its pointer; 0: there is none. An answer
  // whose root has the same pointer lies where that one lay. Without it a round trip on the CPU takes 4 %
  // longer.
  capnp::AnyStruct::Reader root_struct_;
  uint64_t root_pointer_ = 0;
  // Of the whole place, for this answer and those after it: root() zeroes what an answer does not fill. Or of
  // a body in a block.
  std::optional<SegmentReader> reader_;
};

// Returns the root's words, where it is a struct without pointers right behind the pointer to it: nothing in
// it leads elsewhere. Else null. The encoding specification, capnproto.org/encoding.html: a struct's pointer
// has its offset and kind in the lower half, the words of its data and its number of pointers in the upper
// one.
inline kj::ArrayPtr<const capnp::word> Answer::plain_root() const {
  uint64_t pointer = ~uint64_t(0);
  if (body_bytes_ >= sizeof pointer) std::memcpy(&pointer, words(), sizeof pointer);
  const uint64_t data_words = pointer >> 32;  // where there are no pointers
  if (uint32_t(pointer) != 0 || data_words > 0xffff || (data_words + 1) * sizeof(capnp::word) > body_bytes_)
    return nullptr;
  return {words() + 1, size_t(data_words)};
}

// Cap'n Proto reads whole words of the place, behind the body too: there it must find zeros.
inline void Answer::clear_behind_body() {
  if (dirty_bytes_ <= body_bytes_) return;
  std::memset(place_ + sizeof(Envelope) + body_bytes_, 0, dirty_bytes_ - body_bytes_);
  dirty_bytes_ = uint32_t(body_bytes_);
}

inline const capnp::AnyStruct::Reader& Answer::root_struct() {
  constexpr uint64_t kind_bits = 3;  // 0: a struct
  uint64_t pointer = 0;
  if (!in_block_ && body_bytes_ >= sizeof pointer) std::memcpy(&pointer, words(), sizeof pointer);
  if (pointer != 0 && pointer == root_pointer_) [[likely]] {
    clear_behind_body();
  } else {
    root_pointer_ = 0;
    root_struct_ = root().getAs<capnp::AnyStruct>();
    if ((pointer & kind_bits) == 0) root_pointer_ = pointer;
  }
  return root_struct_;
}

}  // namespace gyre::detail
