// Short frames that would cost who believes them much.
#pragma once

#include <gyre/runtime/encoded.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace gyre_test {

struct HostileFrame {
  std::string what;
  gyre::Encoding encoding;
  std::vector<std::byte> bytes;
};

inline std::vector<std::byte> bytes_of_words(const std::vector<uint64_t>& words) {
  std::vector<std::byte> bytes(words.size() * sizeof words[0]);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

/// A stream of two segments of 1 and 65 words: a list of eight pointers to a list of eight pointers, and so
/// on, which are 16 million lists to who follows them all.
inline std::vector<std::byte> repeated_lists() {
  const auto list_of_eight = [](uint32_t words_on) {
    return uint64_t(8) << 35 | uint64_t(6) << 32 | words_on << 2 | 1;
  };
  std::vector<uint64_t> words = {0x0000000100000001, 65, 0x0000000100000002, list_of_eight(0)};
  for (int level = 0; level < 7; ++level) {
    for (uint32_t i = 0; i < 8; ++i) words.push_back(list_of_eight(7 - i));
  }
  words.insert(words.end(), 8, 0);
  return bytes_of_words(words);
}

/// One of each kind.
inline std::vector<HostileFrame> hostile_frames() {
  using gyre::Encoding;
  std::vector<uint64_t> claim(18, 0), empty_segments(257, 0);
  claim[0] = uint64_t(4'000'000) << 32;  // one segment of 32 MB, and 136 bytes of it
  empty_segments[0] = 511;
  // Packed: the table says one segment of 4,000,000 words; then 70 runs of 256 words of zeros.
  std::vector<std::byte> zeros = {std::byte{0x70}, std::byte{0x00}, std::byte{0x09}, std::byte{0x3d}};
  for (int run = 0; run < 70; ++run) zeros.insert(zeros.end(), {std::byte{0x00}, std::byte{0xff}});
  // Packed: the same of 17,920 words, which is what these runs unpack to.
  std::vector<std::byte> whole_zeros = zeros;
  whole_zeros[1] = std::byte{0x00};
  whole_zeros[2] = std::byte{0x46};
  whole_zeros[3] = std::byte{0x00};
  return {{"a stream that claims 32 MB", Encoding::stream, bytes_of_words(claim)},
          {"packed bytes that claim 32 MB", Encoding::packed, zeros},
          {"packed bytes that unpack a thousandfold", Encoding::packed, whole_zeros},
          {"512 empty segments", Encoding::stream, bytes_of_words(empty_segments)},
          {"lists of lists, each eight times", Encoding::stream, repeated_lists()}};
}

}  // namespace gyre_test
