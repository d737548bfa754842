#include <capnp/any.h>
#include <capnp/serialize-packed.h>
#include <capnp/serialize.h>
#include <kj/io.h>
#include <gyre/messages/reader.hpp>
#include <gyre/runtime/encoded.hpp>

#include <algorithm>
#include <cstring>

namespace gyre {

namespace {

kj::ArrayPtr<const kj::byte> as_kj(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

// What the library has to say of bad bytes becomes a Failure; it must not write to the embedder's standard
// error.
class Quiet final : public kj::ExceptionCallback {
  void logMessage(kj::LogSeverity, const char*, int, int, kj::String&&) override {}
};

// One segment or none: the official library asks for a second where the first is full.
class OneSegment final : public capnp::MessageBuilder {
 public:
  OneSegment(capnp::word* words, uint64_t count) : words_(words), count_(count) {}
  kj::ArrayPtr<capnp::word> allocateSegment(uint minimum_words) override {
    if (given_ || minimum_words > count_) throw Full{};
    given_ = true;
    return kj::arrayPtr(words_, count_);
  }
  struct Full {};

 private:
  capnp::word* words_;
  uint64_t count_;
  bool given_ = false;
};

}  // namespace

namespace {

// Bytes of all segments, as the table in front of them claims: their number less one, their sizes in words,
// padded to a whole word. Reads whole words, as packed streams want it. Throws kj::Exception where there is
// no table.
uint64_t claimed_bytes(kj::InputStream& in) {
  constexpr uint32_t most_segments = 512;  // as the official library has it
  uint32_t first[2];
  in.read(first, sizeof first);
  const uint32_t further = first[0];
  KJ_REQUIRE(further < most_segments, "too many segments");
  std::vector<uint32_t> words((further + 1) / 2 * 2);
  if (!words.empty()) in.read(words.data(), words.size() * sizeof(uint32_t));
  uint64_t total = uint64_t(first[1]) * sizeof(capnp::word);
  for (uint32_t i = 0; i < further; ++i) total += uint64_t(words[i]) * sizeof(capnp::word);
  return total;
}
uint64_t claimed_bytes(const Encoded& encoded) {
  kj::ArrayInputStream in(as_kj(encoded.bytes));
  if (encoded.encoding == Encoding::stream) return claimed_bytes(in);
  kj::BufferedInputStreamWrapper buffered(in);
  capnp::_::PackedInputStream packed(buffered);
  return claimed_bytes(packed);
}

}  // namespace

std::vector<std::byte> encode(std::span<const std::byte> body, Encoding encoding) {
  if (encoding == Encoding::body) return {body.begin(), body.end()};
  const kj::ArrayPtr<const capnp::word> segment(reinterpret_cast<const capnp::word*>(body.data()),
                                                body.size() / sizeof(capnp::word));
  kj::VectorOutputStream out;
  const auto segments = kj::arrayPtr(&segment, 1);
  if (encoding == Encoding::stream) {
    capnp::writeMessage(out, segments);
  } else {
    capnp::writePackedMessage(out, segments);
  }
  const auto bytes = out.getArray().asBytes();
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.begin());
  return {begin, begin + bytes.size()};
}

namespace detail {

Result<uint32_t> decode(const Encoded& encoded, capnp::word* place, uint64_t capacity) {
  const auto too_large = [&](uint64_t bytes) { return Failure{Status::too_large, 0, bytes, capacity}; };
  const auto copied = [&](const void* words, uint64_t bytes) -> Result<uint32_t> {
    if (bytes > capacity) return too_large(bytes);
    if (bytes != 0) std::memcpy(static_cast<void*>(place), words, bytes);
    return uint32_t(bytes);
  };
  if (encoded.encoding == Encoding::body) {
    const uint64_t whole_words = encoded.bytes.size() / sizeof(capnp::word) * sizeof(capnp::word);
    return copied(encoded.bytes.data(), whole_words);
  }
  const Quiet quiet;
  try {
    const uint64_t total_bytes = claimed_bytes(encoded);
    // Flattening may save a far pointer or two a segment; nothing more.
    if (total_bytes > capacity + capacity / 8) return too_large(total_bytes);
    // As in a worker: a small message may be read over and over, but not for ever.
    capnp::ReaderOptions options;
    options.traversalLimitInWords = std::min<uint64_t>(
        2 * capacity / sizeof(capnp::word) + 1024,
        wire::Message::default_traversal_words(uint32_t(std::min<uint64_t>(total_bytes, ~0u))));
    kj::ArrayInputStream in(as_kj(encoded.bytes));
    const auto flatten = [&](capnp::MessageReader& message) -> Result<uint32_t> {
      if (message.getSegment(1).begin() == nullptr) {  // absent, not merely empty
        const auto only = message.getSegment(0).asBytes();
        return copied(only.begin(), only.size());
      }
      OneSegment flat(place, capacity / sizeof(capnp::word));
      flat.setRoot(message.getRoot<capnp::AnyPointer>());
      return uint32_t(flat.getSegmentsForOutput()[0].asBytes().size());
    };
    if (encoded.encoding == Encoding::stream) {
      capnp::InputStreamMessageReader message(in, options);
      return flatten(message);
    }
    kj::BufferedInputStreamWrapper buffered(in);
    capnp::PackedMessageReader message(buffered, options);
    return flatten(message);
  } catch (const OneSegment::Full&) {
    return too_large(capacity + 1);
  } catch (const kj::Exception&) {
    return Failure{Status::malformed};
  }
}

}  // namespace detail
}  // namespace gyre
