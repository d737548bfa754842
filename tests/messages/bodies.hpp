// Message bodies for the tests of views: made and read by either side, and by hand.
#pragma once

#include <capnp/dynamic.h>
#include <capnp/message.h>
#include <gyre/messages/official.hpp>
#include <gyre/messages/view.hpp>

#include <cstring>
#include <vector>

#include "support/catch.hpp"
#include "tests/messages/random_message.hpp"

namespace gyre_test {

/// A body of exactly as many bytes as it says, so that the address sanitizer sees a read past it.
using Words = std::vector<uint64_t>;

inline uint32_t size_in_bytes(const Words& words) { return uint32_t(words.size() * 8); }

template <class View>
typename View::Reader view_of(gyre::wire::Message& message) {
  return typename View::Reader(message.root(View::type_id));
}
template <class View>
typename View::Builder new_view(gyre::wire::Body& body) {
  return typename View::Builder(body.init_root(View::data_words, View::pointers));
}

/// What the official builder makes of `fill(builder)`.
template <class Official, class Fill>
Words official_body(Fill fill) {
  capnp::MallocMessageBuilder message(8192);
  fill(message.initRoot<Official>());
  const auto segments = message.getSegmentsForOutput();
  REQUIRE(segments.size() == 1);
  Words words(segments[0].size());
  std::memcpy(words.data(), segments[0].begin(), words.size() * 8);
  return words;
}

/// A message of random content and about `words` words.
template <class Official>
Words random_body(Random& random, int64_t words = 400) {
  return official_body<Official>([&](auto out) { RandomMessage(random, words).fill(out); });
}

/// What the view's builder makes of `fill(builder)`, in a body of `capacity` words.
template <class View, class Fill>
Words view_body(Fill fill, size_t capacity = 8192) {
  Words words(capacity);
  gyre::wire::Body body(words.data(), size_in_bytes(words));
  fill(new_view<View>(body));
  REQUIRE_FALSE(body.full());
  words.resize(body.used_bytes() / 8);
  return words;
}

/// Reads the body with the official reader.
template <class Official, class Use>
void read_officially(const Words& words, Use use) {
  const kj::ArrayPtr<const capnp::word> segment(reinterpret_cast<const capnp::word*>(words.data()),
                                                words.size());
  capnp::SegmentArrayMessageReader message(kj::arrayPtr(&segment, 1));
  use(message.getRoot<Official>());
}

/// Reads the body with the view; it must be well formed.
template <class View, class Use>
void read_by_view(const Words& words, Use use) {
  gyre::wire::Message message(words.data(), size_in_bytes(words));
  use(view_of<View>(message));
  CHECK_FALSE(message.failed());
}

// Pointer words by hand, after Cap'n Proto's encoding page.
constexpr uint64_t struct_pointer(int32_t offset, uint64_t data_words, uint64_t pointers) {
  return uint64_t(uint32_t(offset) << 2) | data_words << 32 | pointers << 48;
}
constexpr uint64_t list_pointer(int32_t offset, uint64_t code, uint64_t size) {
  return uint64_t(uint32_t(offset) << 2 | 1) | code << 32 | size << 35;
}

/// The bits of a value of either side: floats compare by them, enums of the two sides through them.
template <class T>
uint64_t bits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

}  // namespace gyre_test
