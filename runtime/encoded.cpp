#include <capnp/any.h>
#include <capnp/serialize-packed.h>
#include <capnp/serialize.h>
#include <kj/io.h>
#include <gyre/runtime/encoded.hpp>

#include <algorithm>
#include <cstring>

namespace gyre {

namespace {

kj::ArrayPtr<const kj::byte> as_kj(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

// What the library has to say of bad bytes becomes a Failure: it must not write to the embedder's standard
// error, and a stack trace takes longer than all else.
class Quiet final : public kj::ExceptionCallback {
  void logMessage(kj::LogSeverity, const char*, int, int, kj::String&&) override {}
  StackTraceMode stackTraceMode() override { return StackTraceMode::NONE; }
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

std::vector<std::byte> encode(std::span<const std::byte> body, Encoding encoding) {
  if (encoding == Encoding::body) return {body.begin(), body.end()};
  if (encoding == Encoding::stream) {
    // The table of one segment: the number of segments less one, and the segment's words.
    const uint32_t table[] = {0, uint32_t(body.size() / sizeof(capnp::word))};
    const auto table_bytes = std::as_bytes(std::span(table));
    std::vector<std::byte> stream;
    stream.reserve(table_bytes.size() + body.size());
    stream.insert(stream.end(), table_bytes.begin(), table_bytes.end());
    stream.insert(stream.end(), body.begin(), body.end());
    return stream;
  }
  const kj::ArrayPtr<const capnp::word> segment(reinterpret_cast<const capnp::word*>(body.data()),
                                                body.size() / sizeof(capnp::word));
  kj::VectorOutputStream out;
  capnp::writePackedMessage(out, kj::arrayPtr(&segment, 1));
  const auto bytes = out.getArray().asBytes();
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.begin());
  return {begin, begin + bytes.size()};
}

namespace detail {

namespace {

constexpr uint64_t word_bytes = sizeof(capnp::word);
// Two packed bytes stand for 256 words of zeros at the most.
constexpr uint64_t most_unpacked_per_byte = 1024;
constexpr uint32_t most_segments = 512;  // as the official library has it

// Beside its words: what a message may read more than once, or as elements without a size.
constexpr uint64_t repeated_words = 1024;

}  // namespace

uint64_t most_unpacked_bytes(uint64_t bytes, bool several_segments) {
  return several_segments ? (16 << 10) + 8 * bytes : (48 << 10) + 16 * bytes;
}

Frame::Frame(const Encoded& encoded)
    : encoding_(encoded.encoding),
      bytes_(encoded.bytes),
      packed_bytes_(as_kj(encoded.bytes)),
      packed_(packed_bytes_) {}

Failure Frame::open() {
  if (encoding_ == Encoding::body) {
    segment_words_ = {bytes_.size() / word_bytes};
    total_words_ = segment_words_[0];
    return {};
  }
  const Quiet quiet;
  try {
    // Whole words, as packed streams want it: the number of segments less one and the first one's size, then
    // the sizes of the others, padded.
    uint32_t first[2];
    if (!take(first, sizeof first)) return Failure{Status::malformed};
    const uint32_t further = first[0];
    if (further >= most_segments) return Failure{Status::malformed};
    uint32_t sizes[most_segments];
    const size_t padded = (size_t(further) + 1) / 2 * 2;
    if (!take(sizes, padded * sizeof *sizes)) return Failure{Status::malformed};
    segment_words_.reserve(size_t(further) + 1);
    segment_words_.push_back(first[1]);
    segment_words_.insert(segment_words_.end(), sizes, sizes + further);
    for (const uint64_t words : segment_words_) total_words_ += words;
    if (encoding_ == Encoding::stream) {
      return total_words_ > bytes_.size() / word_bytes ? Failure{Status::malformed} : Failure{};
    }
    if (total_bytes() > most_unpacked_per_byte * bytes_.size()) return Failure{Status::malformed};
    const uint64_t most = most_unpacked_bytes(bytes_.size(), !one_segment());
    return total_bytes() > most
               ? Failure{Status::too_large, Failure::unpacks_to_too_much, total_bytes(), most}
               : Failure{};
  } catch (const kj::Exception&) {
    return Failure{Status::malformed};
  }
}

bool Frame::take(void* to, size_t bytes) {
  if (bytes == 0) return true;
  if (encoding_ == Encoding::packed) return packed_.tryRead(to, bytes, bytes) == bytes;
  if (bytes > bytes_.size()) return false;
  std::memcpy(to, bytes_.data(), bytes);
  bytes_ = bytes_.subspan(bytes);
  return true;
}

bool Frame::take_words(capnp::word* to) {
  const Quiet quiet;
  try {
    return take(to, total_bytes());
  } catch (const kj::Exception&) {
    return false;
  }
}

bool Frame::take_segments(std::vector<kj::ArrayPtr<const capnp::word>>& segments) {
  const auto* at = reinterpret_cast<const capnp::word*>(bytes_.data());
  if (encoding_ == Encoding::packed || reinterpret_cast<uintptr_t>(at) % alignof(capnp::word) != 0) {
    own_words_ = kj::heapArray<capnp::word>(total_words_);
    if (!take_words(own_words_.begin())) return false;
    at = own_words_.begin();
  }
  segments.reserve(segment_words_.size());
  for (const uint64_t words : segment_words_) {
    segments.emplace_back(at, words);
    at += words;
  }
  return true;
}

capnp::ReaderOptions Frame::reading_once() const {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = total_words_ + repeated_words;
  return options;
}

Result<uint32_t> decode(const Encoded& encoded, capnp::word* place, uint64_t capacity,
                        uint64_t& written_bytes) {
  written_bytes = 0;
  const auto too_large = [&](uint64_t bytes) { return Failure{Status::too_large, 0, bytes, capacity}; };
  Frame frame(encoded);
  if (const Failure failure = frame.open(); failure.status != Status::ok) return failure;
  if (frame.one_segment()) {
    if (frame.total_bytes() > capacity) return too_large(frame.total_bytes());
    written_bytes = frame.total_bytes();
    if (!frame.take_words(place)) return Failure{Status::malformed};
    return uint32_t(frame.total_bytes());
  }
  // Flattening may save a far pointer or two a segment; nothing more.
  if (frame.total_bytes() > capacity + capacity / 8) return too_large(frame.total_bytes());
  std::vector<kj::ArrayPtr<const capnp::word>> segments;
  if (!frame.take_segments(segments)) return Failure{Status::malformed};
  const Quiet quiet;
  const capnp::ReaderOptions options = frame.reading_once();
  const uint64_t most_words = std::min(capacity / word_bytes, options.traversalLimitInWords + 1);
  try {
    capnp::SegmentArrayMessageReader message(kj::arrayPtr(segments.data(), segments.size()), options);
    OneSegment flat(place, most_words);
    written_bytes = most_words * word_bytes;
    flat.setRoot(message.getRoot<capnp::AnyPointer>());
    written_bytes = flat.getSegmentsForOutput()[0].asBytes().size();
    return uint32_t(written_bytes);
  } catch (const OneSegment::Full&) {
    return most_words == capacity / word_bytes ? too_large(capacity + 1) : Failure{Status::malformed};
  } catch (const kj::Exception&) {
    return Failure{Status::malformed};
  }
}

}  // namespace detail
}  // namespace gyre
