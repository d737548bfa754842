// The dead letters: messages that were accepted and not handled, kept with the reason, the address and the
// content.
#pragma once

#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/errors.hpp>

#include <atomic>
#include <boost/lockfree/queue.hpp>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gyre {

/// Holds a message that was accepted and not handled. Copyable.
struct DeadLetter {
  Envelope envelope;  ///< as sent; the size of the body is 0 for an expired ask, whose size is unknown
  Status reason;
  uint32_t detail;           ///< as in an error reply
  uint64_t where;            ///< as in an error reply
  std::string actor;         ///< the actor type's name; empty for an unknown number
  std::string message_type;  ///< the message's name in its schema; empty if unknown
  /// The body, one Cap'n Proto segment; pass it to encode() to make a stream. Empty if the body was not
  /// kept, as for a body larger than a slot and for an expired ask.
  std::vector<std::byte> body;
  std::string failure;  ///< Failure::message() of the reason

  /// Returns one line of text, for example "gyre_test::Probe at key 7, ProbeNote of 24 bytes:
  /// handler_failed: …".
  std::string text() const;
};

namespace detail {

/// Keeps at most `kept` dead letters; drops later ones, and counts them. Any thread may add and take. Only
/// adding allocates.
class DeadLetters {
 public:
  static constexpr size_t kept = 1024;

  /// `actors` must outlive this.
  explicit DeadLetters(const ActorSet& actors) : actors_(actors), letters_(0) { letters_.reserve(kept); }
  ~DeadLetters() {
    letters_.consume_all([](DeadLetter* letter) { delete letter; });
  }

  /// Adds a dead letter; drops it where there is no memory.
  void add(const Envelope& envelope, const ErrorBody& error, std::span<const std::byte> body) noexcept;
  /// Adds the failures numbered `seen` + 1 to `failed` of a worker's log. Drops entries that the worker
  /// overwrites meanwhile.
  void collect(const Bridge& bridge, uint64_t seen, uint64_t failed) noexcept;
  /// Returns the dead letters since the last call, oldest first. Throws std::bad_alloc, and then has taken
  /// none.
  std::vector<DeadLetter> take();
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  const ActorSet& actors_;
  boost::lockfree::queue<DeadLetter*> letters_;
  std::atomic<uint64_t> dropped_{0};
};

/// Returns the envelope of a message in a slot, with the size of its body also where the body lies in the
/// arena.
Envelope as_sent(const Envelope& envelope, const uint32_t* payload);
/// Returns the part of a slot's payload that is a body of Cap'n Proto; empty where the body lies in the
/// arena.
std::span<const std::byte> body_in_slot(const Envelope& envelope, const uint32_t* payload);

}  // namespace detail
}  // namespace gyre
