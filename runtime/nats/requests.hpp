// Asks and tells from NATS: from a message to an actor, and from its outcome to a reply.
#pragma once

#include <gyre/runtime/nats/connection.hpp>
#include <gyre/runtime/nats/counts.hpp>
#include <gyre/runtime/nats/headers.hpp>
#include <gyre/runtime/nats/lease.hpp>
#include <gyre/runtime/nats/lone_asks.hpp>
#include <gyre/runtime/nats/subject.hpp>
#include <gyre/runtime/runtime.hpp>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gyre::nats::detail {

/// Finds actor types by their names in subjects.
class ActorNames {
 public:
  /// @throws Error  if two actor types have one name in subjects, or one has the name of durable tells
  explicit ActorNames(const ActorSet& actors);
  /// Returns null if there is none.
  const ActorName* find(std::string_view name_in_subject) const;
  /// Returns the names in subjects, sorted, with commas.
  std::string list() const;
  /// Returns the actor type with the number `actor_type`.
  const ActorName& type_of(uint16_t actor_type) const { return types_[actor_type]; }
  /// Returns true if actors of the type have a state.
  bool has_state(uint16_t actor_type) const { return has_state_[actor_type]; }

 private:
  std::map<std::string, ActorName, std::less<>> names_;
  std::vector<ActorName> types_;  // by their numbers
  std::vector<bool> has_state_;
};

/// A request that waits: see Shard::State::holding.
struct HeldRequest {
  Message message;
  int64_t since_ns;  ///< by lease_clock_ns()
  size_t bytes;      ///< memory_of() the message
};

/// What a node knows of one shard. The message path locks it for each request, the membership seldom.
struct Shard {
  enum class State {
    away,     ///< another node's
    serving,  ///< this node's: requests go to actors
    holding,  ///< requests wait: it moves to another node, or the connection was lost
  };

  uint32_t number = 0;
  std::mutex mutex;  // of the next five
  State state = State::away;
  /// The queue group, as ShardEntry has it, whose requests no other node gets. Empty: there is none.
  std::optional<uint64_t> group;
  uint64_t lease_number = 0;     // Gyre-Lease of replies
  std::deque<HeldRequest> held;  // in their order
  /// Actors with a state that were given requests since the node began to own the shard: type and key.
  std::set<std::pair<uint16_t, uint64_t>> actors;
  /// Requests, durable ones too, with an actor. A request is counted under the lock, so none is added while
  /// the shard is held; the release of the last is seen by the thread that waits for it (acquire).
  std::atomic<uint32_t> in_flight{0};
};

/// Holds what all parts of a gateway share. Asks in flight keep it alive after the gateway has ended.
struct Context {
  /// Connects. Throws as Gateway's constructor.
  Context(const Runtime& runtime, const GatewayOptions& options);
  /// See Lease::is_confirmed().
  bool lease_is_confirmed() const {
    return lease.is_confirmed(connection.events().disconnects.load(std::memory_order_relaxed));
  }

  const GatewayOptions options;
  const Subjects subjects;
  const ActorNames actors;
  Client client;
  Counts counts;
  Lease lease;
  Connection connection;
  std::vector<Shard> shards;  // set once, before the first subscription
};

/// A request whose headers and body are ready for the runtime.
struct ParsedRequest {
  RequestHeaders headers;
  MessageNumbers numbers{};
  Encoded body{};
  std::string_view status{};  ///< why it is refused; empty: it is not
  std::string reason{};
};

/// Reads a request's subject, headers and body, without judging the body's content. The result refers to the
/// message.
ParsedRequest parse_request(const Context& context, const Shard& shard, natsMsg* message);

/// Gives asks and tells to actors, and publishes the replies. Thread-safe.
class Requests : public std::enable_shared_from_this<Requests> {
 public:
  explicit Requests(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  /// Handles a message that came for the shard by a queue group. Never blocks for room. If the node does not
  /// own the shard, answers with no_such_node, or not at all if another node may have got the message too.
  /// Holds the shard if the lease is not confirmed.
  void take(Shard& shard, uint64_t group, Message message);
  /// Handles the held messages and lets later ones pass: the shard is the node's. Holds what is left if the
  /// lease ends meanwhile, or is no longer confirmed.
  void serve(Shard& shard, uint64_t lease_number);
  /// The same, for a shard that was served before and kept its lease number.
  void resume(Shard& shard);
  /// Lets later messages of the queue group wait.
  void hold(Shard& shard, uint64_t group);
  /// Publishes the held messages again, for the shard's new owner, which has subscribed; answers later ones
  /// with no_such_node.
  void forward(Shard& shard);
  /// Answers the held messages with no_such_node, and later ones. Drops them if the lease is not confirmed.
  void refuse(Shard& shard);
  /// Drops the held messages that came since `since_ns`, and later ones: another node may have got them too.
  /// Answers older ones with no_such_node, if the lease is confirmed.
  /// @param since_ns  by lease_clock_ns()
  void drop(Shard& shard, int64_t since_ns);

  /// Notes that an actor is given a request, so that it is stopped before the node owns its shard again.
  void note_actor(Shard& shard, const ParsedRequest& request);
  /// Notes several.
  void note_actors(Shard& shard, std::set<std::pair<uint16_t, uint64_t>> actors);
  /// Returns the actors that were noted, and forgets them.
  std::set<std::pair<uint16_t, uint64_t>> take_actors(Shard& shard);

  /// Returns the number of asks that actors have.
  uint32_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

 private:
  struct Ask;

  // A shard holds at most so many messages, and all together so many bytes; others are refused, so that
  // memory is bounded.
  static constexpr size_t most_held = 65536;
  static constexpr size_t most_held_bytes = size_t(256) << 20;

  void handle(Shard& shard, natsMsg* message, uint64_t lease_number, int64_t held_ns);
  void ask(Shard& shard, const ParsedRequest& request, const char* reply, uint64_t lease_number);
  void tell(const ParsedRequest& request);
  // Answer an ask and count its outcome as `count`, or as lost.
  void conclude(const Ask& ask, const Result<Reply<capnp::AnyPointer>>& outcome);
  void conclude(const Ask& ask, const Failure& failure, uint64_t GatewayBooks::*count);
  natsStatus publish(const Ask& ask, std::string_view status, std::string_view reason,
                     std::span<const std::byte> body);
  void end(const Ask& ask, natsStatus sent, uint64_t GatewayBooks::*count);
  // Counts an ask as `count`, or as lost.
  void refuse_message(natsMsg* message, const RequestHeaders& headers, uint64_t lease_number,
                      std::string_view status, std::string_view reason,
                      uint64_t GatewayBooks::*count = &GatewayBooks::asks_refused);
  void refuse_expired(natsMsg* message, const RequestHeaders& headers, uint64_t lease_number,
                      int64_t held_ns);
  void refuse_no_such_node(natsMsg* message);
  void count_dropped(natsMsg* message);
  std::deque<HeldRequest> end_service(Shard& shard);

  const std::shared_ptr<Context> context_;
  std::atomic<uint32_t> in_flight_{0};
  std::atomic<size_t> held_bytes_{0};  // relaxed: a count
  LoneAsks lone_asks_;
};

}  // namespace gyre::nats::detail
