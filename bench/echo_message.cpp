#include "echo_message.hpp"

#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>

#include <chrono>

namespace gyre::bench {

namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood): for each index a bijection of the sequences.
uint64_t mix(uint64_t sequence, uint64_t index) {
  uint64_t x = sequence + (index + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

EchoMessage::EchoMessage(std::string row, size_t words)
    : row_(std::move(row)),
      words_(words + 1),
      before_first_(
          uint64_t(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1))) {
  words_[0] = before_first_;
}

void EchoMessage::next() {
  ++words_[0];
  for (size_t i = 1; i + 1 < words_.size(); ++i) words_[i] = mix(words_[0], i);
}

std::string EchoMessage::name() const {
  return fmt::format("{}, message {} (sequence {})", row_, sequence() - before_first_, sequence());
}

void EchoMessage::wrong(size_t index, uint64_t got) const {
  throw Error(
      fmt::format("{}: word {} of {} came back as 0x{:016x}, not 0x{:016x}: a stale, torn or misplaced "
                  "reply, so no figure of "
                  "this run counts; please report it",
                  name(), index, words().size(), got, words_[index]));
}

}  // namespace gyre::bench
