// Any bytes as a message from outside, in each encoding: decoding them writes only where it may, takes memory
// in proportion to their number, and what comes out says what the official library reads in the bytes.
//
// An input is the capacity in units of 8 words (of 64 Ki words, where the encoding's byte is 128 or more),
// the encoding, and the message.
#include <capnp/serialize-packed.h>
#include <capnp/serialize.h>
#include <kj/io.h>
#include <sanitizer/allocator_interface.h>
#include <gyre/runtime/encoded.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "tests/fuzz/walks.hpp"

using namespace gyre_fuzz;
using gyre::Encoded;
using gyre::Encoding;

namespace {

// More than anything decoded may follow: a few bytes may say that there are many elements of nothing.
constexpr uint64_t traversal_words = 1 << 14;

/// What the official library reads in the encoded message itself.
Opinion opinion_of(const Encoded& encoded) {
  Opinion opinion;
  capnp::ReaderOptions options;
  options.traversalLimitInWords = traversal_words;
  kj::ArrayInputStream in({reinterpret_cast<const kj::byte*>(encoded.bytes.data()), encoded.bytes.size()});
  try {
    if (encoded.encoding == Encoding::stream) {
      capnp::InputStreamMessageReader message(in, options);
      return official_opinion<gyre::test::Kinds>(message);
    }
    kj::BufferedInputStreamWrapper buffered(in);
    capnp::PackedMessageReader message(buffered, options);
    return official_opinion<gyre::test::Kinds>(message);
  } catch (const kj::Exception& exception) {
    opinion.refused = true;
    opinion.why = exception.getDescription().cStr();
  }
  return opinion;
}

// What is allocated, while it counts: libFuzzer has one thread.
bool counting = false;
int64_t live_bytes = 0, peak_bytes = 0;

void count_malloc(const volatile void*, size_t bytes) {
  if (!counting) return;
  live_bytes += int64_t(bytes);
  peak_bytes = std::max(peak_bytes, live_bytes);
}
void count_free(const volatile void* memory) {
  if (counting && memory != nullptr) live_bytes -= int64_t(__sanitizer_get_allocated_size(memory));
}

void check(const Encoded& encoded, size_t capacity_words) {
  static const bool hooked = __sanitizer_install_malloc_and_free_hooks(count_malloc, count_free) != 0;
  if (!hooked) found("the allocator takes no hooks");
  const std::unique_ptr<capnp::word[]> place(new capnp::word[capacity_words]());  // no byte more
  uint64_t written_bytes = 0;
  live_bytes = peak_bytes = 0;
  counting = true;
  const auto decoded = gyre::detail::decode(encoded, place.get(), capacity_words * 8, written_bytes);
  counting = false;
  const uint64_t memory = uint64_t(peak_bytes) + written_bytes;
  if (memory > (64 << 10) + 16 * encoded.bytes.size())
    found(memory, " bytes of memory for ", encoded.bytes.size(), " bytes");
  for (uint64_t at = written_bytes; at < capacity_words * 8; ++at) {
    if (reinterpret_cast<const char*>(place.get())[at] != 0)
      found("written behind ", written_bytes, " bytes");
  }
  if (!decoded) {
    const gyre::Status status = decoded.error().status;
    if (status != gyre::Status::malformed && status != gyre::Status::too_large) found("status ", int(status));
    return;
  }
  const size_t bytes = decoded.value();
  if (bytes > capacity_words * 8 || bytes % 8 != 0)
    found(bytes, " bytes decoded to ", capacity_words, " words");
  const auto* const end = reinterpret_cast<const char*>(place.get() + capacity_words);
  for (const char* at = reinterpret_cast<const char*>(place.get()) + bytes; at != end; ++at) {
    if (*at != 0) found("written behind the ", bytes, " bytes that were decoded");
  }
  if (encoded.encoding == Encoding::body) return;
  const Opinion before = opinion_of(encoded);
  if (before.refused) return;  // the worker is told of it, when it reads that
  const Opinion after = official_opinion<gyre::test::Kinds>(place.get(), bytes / 8, traversal_words);
  if (after.refused) found("refused after decoding: ", after.why);
  if (before.text != after.text)
    found("decoded to another: ", gyre_test::difference(before.text, after.text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WithoutTraces without_traces;
  if (size < 2) return 0;
  const std::unique_ptr<std::byte[]> bytes(new std::byte[size - 2]);
  std::memcpy(bytes.get(), data + 2, size - 2);
  constexpr Encoding encodings[] = {Encoding::body, Encoding::stream, Encoding::packed};
  check({{bytes.get(), size - 2}, encodings[data[1] % 3]}, size_t(data[0]) * 8);
  return 0;
}
