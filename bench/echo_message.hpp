// What the rows of a benchmark send and must get back: numbers that no other message of the run has.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gyre::bench {

/// The message that a row sends next: a sequence number, and words made from it and their place, so that a
/// stale or misplaced reply cannot pass for the right one. One thread's.
class EchoMessage {
 public:
  /// `row`: what an error calls the row. `words`: 64-bit words a message, the sequence included; at least 1.
  /// Sequences start at the steady clock's nanoseconds, so no two rows of a process share one.
  EchoMessage(std::string row, size_t words);

  /// Turns into the next message.
  void next();

  uint64_t sequence() const { return words_[0]; }
  /// The whole message; the first word is the sequence. Behind the last lie 8 bytes of zeros.
  std::span<const uint64_t> words() const { return {words_.data(), words_.size() - 1}; }

  /// Throws Error, which names row, message and word, unless `got` is word `index` of this message.
  void expect(size_t index, uint64_t got) const {
    if (got != words_[index]) [[unlikely]]
      wrong(index, got);
  }
  /// The same for the whole message; `got` has as many words.
  void expect(std::span<const uint64_t> got) const {
    for (size_t i = 0; i + 1 < words_.size(); ++i) expect(i, got[i]);
  }

  /// "gyre at 64 bytes, message 12 (sequence 34)".
  std::string name() const;

 private:
  [[noreturn]] void wrong(size_t index, uint64_t got) const;

  std::string row_;
  std::vector<uint64_t> words_;  // one more than the message has: packets of 12 bytes are cut past its end
  uint64_t before_first_;
};

}  // namespace gyre::bench
