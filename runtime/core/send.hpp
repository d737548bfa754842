// Sends requests: in a slot if they fit one, and in a block of the arena if not.
#pragma once

#include <gyre/runtime/core/accounts.hpp>
#include <gyre/runtime/core/clock.hpp>
#include <gyre/runtime/core/host_side.hpp>
#include <gyre/runtime/core/receive.hpp>
#include <gyre/runtime/core/state.hpp>
#include <gyre/runtime/memory/scratch.hpp>

#include <optional>
#include <span>

namespace gyre::detail {

/// Where a message goes.
struct Destination {
  uint32_t worker;
  uint16_t actor_type;
  uint16_t message_type;
  uint64_t key;
  uint32_t max_reply_bytes = 0;  // declared by the actor; 0: it declares none
};

/// A message and where it goes.
struct Addressed {
  Destination to;
  Outgoing message;
};

enum class WhenFull { refuse, wait };

/// Limits of one ask.
struct AskLimits {
  std::chrono::nanoseconds timeout;
  uint32_t max_reply_bytes;  // 0: see AskOptions::max_reply_bytes
};

/// Limits of one tell with a receipt.
struct ReceiptLimits {
  std::chrono::nanoseconds timeout;        // limits the wait for room and for the receipt together
  std::chrono::nanoseconds expires_after;  // 0: never
};

/// Limits of one ask that a worker answers itself: see Control::read_state. It is not recorded.
struct ReadLimits {
  std::chrono::nanoseconds timeout;
  uint32_t max_reply_bytes;  // of the reply's body
};

/// Limits of one tell.
struct TellLimits {
  std::chrono::nanoseconds timeout;        // limits the wait for room
  std::chrono::nanoseconds expires_after;  // 0: never
};

/// Sends messages to workers. Thread-safe. A failed send leaves no slot, call or block taken. Takes replies
/// while it waits for room, so that the workers can answer; waits at most for the timeout.
class Sender {
 public:
  /// Every argument must outlive the Sender.
  Sender(HostSide& host, const State& state, Accounts& accounts, Clock& clock, Receiver& receiver);

  /// Returns the largest request body that could be sent, in bytes.
  uint64_t max_body_bytes() const { return max_body_bytes_; }

  /// Sends an ask. With ReceiptLimits the reply is not read: the handler may have a response or none,
  /// and the message expires at the worker by itself, not with the timeout.
  /// @param limits  AskLimits, ReceiptLimits or ReadLimits: each has code of its own, so that asks do not
  /// test for the others
  template <class Limits = AskLimits>
  Result<CallId> ask(const Destination& to, Outgoing message, const Limits& limits, WhenFull when_full);
  Result<void> tell(const Destination& to, Outgoing message, const TellLimits& limits, WhenFull when_full);
  /// Sends requests in their order, adjacent ones for one worker together; waits for room.
  /// @param calls   room for as many calls as messages; gets those of the messages that were sent
  /// @param failure gets the reason why the others were not sent
  /// @returns       how many were sent; they are the first ones
  size_t ask_many(std::span<const Addressed> messages, const AskLimits& limits, CallId* calls,
                  Failure& failure);
  /// As ask_many, for tells.
  size_t tell_many(std::span<const Addressed> messages, const TellLimits& limits, Failure& failure);

 private:
  // The bytes that a message needs in the arena.
  struct ArenaRoom {
    uint32_t request_bytes = 0;  // 0: the body goes in the slot
    uint32_t reply_bytes = 0;    // 0: the reply must fit a slot
    bool any() const { return request_bytes != 0 || reply_bytes != 0; }
  };

  Failure failure_of(Status status, uint64_t waited_us, const ArenaRoom& room) const;
  Result<ArenaRoom> arena_room_for(uint32_t body_bytes, uint32_t reply_bytes) const;
  std::optional<ArenaBlock> take_block(const ArenaRoom& room, Outgoing message);
  static HostBridge::Message message_for_slot(const Envelope& envelope, Outgoing message,
                                              const ArenaRoom& room, const std::optional<ArenaBlock>& block);
  static HostBridge::Message message_naming_block(Envelope envelope, Outgoing message, const ArenaRoom& room,
                                                  const ArenaBlock& block);
  template <class Attempt>
  Status attempt_until_room(Attempt&& attempt, std::chrono::nanoseconds timeout, int64_t& deadline_ns,
                            WhenFull when_full);
  template <class Attempt>
  Status retry_until_room(Status status, Attempt& attempt, std::chrono::nanoseconds timeout,
                          int64_t& deadline_ns, WhenFull when_full);
  size_t ask_run(std::span<const Addressed> run, const AskLimits& limits, CallId* calls, Failure& failure);
  size_t tell_run(std::span<const Addressed> run, const TellLimits& limits, Failure& failure);
  template <class Fits, class SendOne, class SendRun>
  static size_t send_many(std::span<const Addressed> messages, Fits&& fits, SendOne&& send_one,
                          SendRun&& send_run);
  template <class Fits>
  static size_t length_of_run(std::span<const Addressed> messages, Fits&& fits);
  Status status_of(ClaimOutcome outcome) const;
  Status full_or_closed(const HostBridge& bridge, Status full) const;
  uint32_t reply_bytes_to_reserve(const Destination& to, const AskLimits& limits,
                                  uint32_t request_bytes) const;
  uint32_t reply_bytes_to_reserve(const Destination& to, const ReceiptLimits& limits,
                                  uint32_t request_bytes) const;
  uint32_t reply_bytes_to_reserve(const Destination&, const ReadLimits& limits, uint32_t) const {
    return limits.max_reply_bytes;
  }
  uint32_t worker_deadline_us(HostBridge& bridge, const SendTime& sent, const AskLimits& limits);
  uint32_t worker_deadline_us(HostBridge& bridge, const SendTime& sent, const ReceiptLimits& limits);
  // The worker answers at once, whenever it comes to it.
  uint32_t worker_deadline_us(HostBridge&, const SendTime&, const ReadLimits&) { return 0; }
  uint32_t expiry_us(HostBridge& bridge, int64_t now_ns, std::chrono::nanoseconds expires_after);

  HostSide& host_;
  CallTable& calls_;
  const State& state_;
  Accounts& accounts_;
  Clock& clock_;
  Receiver& receiver_;
  const uint64_t max_body_bytes_;
};

}  // namespace gyre::detail
