// The gateway: joins a running Runtime to a NATS server. docs/reference/nats.md is the wire format.
#pragma once

#include <gyre/runtime/nats/options.hpp>
#include <gyre/runtime/runtime.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gyre::nats {

/// Counts what became of the requests of one gateway. The counts only grow.
struct GatewayBooks {
  /// Requests with a reply subject. Each received one has one of the five outcomes that follow, was
  /// forwarded, or is in flight.
  uint64_t asks_received = 0;
  uint64_t asks_answered = 0;       ///< with status `ok`
  uint64_t asks_error_replies = 0;  ///< an actor or the engine failed; answered with the status
  uint64_t asks_refused = 0;        ///< not given to an actor; answered with the status
  uint64_t asks_expired = 0;        ///< timed_out or expired; answered with the status
  uint64_t asks_lost = 0;       ///< the outcome was there, but neither the connection nor the lease any more
  uint64_t asks_forwarded = 0;  ///< held while their shard moved, and published again for its new owner
  /// Requests without a reply subject, which are handled at most once.
  uint64_t tells_received = 0;
  uint64_t tells_accepted = 0;   ///< by the runtime, whose Books say what became of them
  uint64_t tells_refused = 0;    ///< nobody is told: the log's first line of a kind says why
  uint64_t tells_forwarded = 0;  ///< as asks_forwarded
  /// Deliveries of durable tells by JetStream. Each has one of the six outcomes that follow, or is in flight.
  uint64_t durable_received = 0;
  uint64_t durable_processed = 0;   ///< acknowledged: the handler ended well
  uint64_t durable_failed = 0;      ///< terminated: the handler failed
  uint64_t durable_refused = 0;     ///< terminated: no handler takes the message
  uint64_t durable_expired = 0;     ///< terminated: expired before a worker took it
  uint64_t durable_delayed = 0;     ///< to be delivered again: no room, draining, or a failed engine
  uint64_t durable_duplicates = 0;  ///< of an id that the node is handling or has handled
  /// Deliveries that JetStream does not number 1; part of durable_received. nats-server 2.9 numbers the next
  /// one 1 again where it also tried to deliver to a client that was gone.
  uint64_t durable_redelivered = 0;

  uint64_t dropped = 0;      ///< requests that the NATS library dropped: more than 65,536 waited for a thread
  uint64_t disconnects = 0;  ///< connections to a server that were lost
  uint64_t leases_lost = 0;  ///< leases that ended or were taken: each began a new life
  uint64_t shards_taken = 0;   ///< shards that this node began to own
  uint64_t shards_handed = 0;  ///< shards that it handed over

  /// Returns the number of asks without an outcome.
  uint64_t asks_in_flight() const {
    return asks_received - asks_answered - asks_error_replies - asks_refused - asks_expired - asks_lost -
           asks_forwarded;
  }
  /// Returns the number of tells, held while their shard moves, without an outcome.
  uint64_t tells_in_flight() const {
    return tells_received - tells_accepted - tells_refused - tells_forwarded;
  }
  /// Returns the number of durable tells without an outcome.
  uint64_t durable_in_flight() const {
    return durable_received - durable_processed - durable_failed - durable_refused - durable_expired -
           durable_delayed - durable_duplicates;
  }
  /// Returns true if every request has its outcome, and none was dropped unread.
  bool balanced() const {
    return asks_in_flight() == 0 && tells_in_flight() == 0 && durable_in_flight() == 0 && dropped == 0;
  }
};

/// Names one of a GatewayBooks' counts for statistics.
struct CountField {
  uint64_t GatewayBooks::*count;
  const char* name;  ///< the member's
  const char* help;  ///< one line
};
/// Lists all counts of GatewayBooks, in their order.
std::span<const CountField> count_fields();

/// Says what a gateway is doing.
struct GatewayState {
  bool connected = false;          ///< to a server
  std::string server;              ///< URL of that server, without a password; empty if not connected
  bool leased = false;             ///< the node's lease is valid
  uint32_t shards = 0;             ///< of the namespace
  uint32_t shards_owned = 0;       ///< by this node
  uint32_t asks_in_flight = 0;     ///< given to actors and not yet answered
  std::vector<std::string> nodes;  ///< names of the nodes that serve, as this node last saw them, sorted
};

/// Serves the actors of a Runtime to any NATS client. Adds its counts and its state to the runtime's stats,
/// as the section `nats` of Stats::program; a second gateway of one runtime as `nats_2`. Takes its share of
/// the namespace's shards, and renews its lease on a thread of its own. Neither copyable nor movable.
/// Thread-safe.
///
/// Requests are given to the runtime by the NATS library's threads, which never wait for room: a request that
/// finds none is answered `ring_full`. Replies are published by the runtime's poller thread. It waits while
/// the server does not read, for 2 s at most; then the connection is given up. If the runtime has other users
/// whose callbacks must not wait, give the gateway a runtime of its own.
class Gateway {
 public:
  /// Connects, joins the namespace, or creates it. Blocks until the node has its lease, not until it owns
  /// shards.
  /// @param runtime  must outlive the gateway
  /// @throws BadOptions  with everything that is wrong, one line each; also if the namespace has other
  ///                     numbers, or serves other actor types
  /// @throws Error       if no server can be reached, the server has no JetStream, another node with this
  ///                     name is alive, or an actor type's name in subjects is another's or `durable`
  Gateway(Runtime& runtime, const GatewayOptions& options);
  /// Leaves without handing over: the shards are taken once the lease has ended. Call leave() first.
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  /// Hands the node's shards over to the other nodes, waits for the requests in flight, and gives up the
  /// lease. Blocks at most for the timeout. The gateway serves nothing afterwards.
  /// @returns true if every request had its outcome and all shards were handed over, or no other node was
  ///          there to take them
  bool leave(std::chrono::milliseconds timeout = std::chrono::seconds(30));

  GatewayBooks books() const;
  GatewayState state() const;

 private:
  class Node;
  std::unique_ptr<Node> node_;
};

}  // namespace gyre::nats
