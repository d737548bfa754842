// Reads a Cap'n Proto message where it lies.
#pragma once

#include <capnp/message.h>

#include <cstddef>

namespace gyre {

/// Reads one Cap'n Proto segment in place. Refers to the bytes, owns nothing.
class SegmentReader final : public capnp::MessageReader {
 public:
  SegmentReader(const capnp::word* words, size_t count)
      : capnp::MessageReader(unlimited_reading()), words_(words, count) {}
  kj::ArrayPtr<const capnp::word> getSegment(uint id) override { return id == 0 ? words_ : nullptr; }

 private:
  // A reply may be read as often as its holder likes: its own worker made it, and nesting stays limited.
  static capnp::ReaderOptions unlimited_reading() {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = ~uint64_t(0);
    return options;
  }
  kj::ArrayPtr<const capnp::word> words_;
};

}  // namespace gyre
