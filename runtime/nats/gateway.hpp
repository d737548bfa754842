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

/// Counts the requests of one gateway by their outcome. The counts only grow. Ask, tell and durable tell are
/// the three kinds of request of docs/reference/nats.md; shard, lease and life are explained there too.
struct GatewayBooks {
  /// Requests with a reply subject. Each is in flight, or counted once more by one of the next six members.
  uint64_t asks_received = 0;
  uint64_t asks_answered = 0;       ///< with status `ok`
  uint64_t asks_error_replies = 0;  ///< an actor or the engine failed; answered with the status
  /// Not given to an actor; answered with the status, unless the reply subject begins with `$`.
  uint64_t asks_refused = 0;
  uint64_t asks_expired = 0;    ///< timed_out or expired; answered with the status
  uint64_t asks_lost = 0;       ///< the reply was not sent: the connection or the lease was lost
  uint64_t asks_forwarded = 0;  ///< held while their shard moved, then published again for its new owner
  /// Requests without a reply subject. Each is held, while its shard moves or after the connection was lost,
  /// or counted once more by one of the next three members.
  uint64_t tells_received = 0;
  uint64_t tells_accepted = 0;   ///< given to the runtime: its Books have their outcome
  uint64_t tells_refused = 0;    ///< not given to an actor; the sender does not learn of it
  uint64_t tells_forwarded = 0;  ///< held while their shard moved, then published again for its new owner
  /// Deliveries of durable tells by JetStream. Each is in flight, or counted once more by one of the next six
  /// members.
  uint64_t durable_received = 0;
  uint64_t durable_processed = 0;   ///< acknowledged: the handler ended well
  uint64_t durable_failed = 0;      ///< terminated: the handler failed
  uint64_t durable_refused = 0;     ///< terminated: malformed, or no handler takes the message
  uint64_t durable_expired = 0;     ///< terminated: expired before a worker took it
  uint64_t durable_delayed = 0;     ///< to be delivered again: no room, draining, or a failed engine
  uint64_t durable_duplicates = 0;  ///< of an id that the node is handling or has handled
  /// Deliveries after the first of the same tell, by JetStream's own number; part of durable_received.
  /// nats-server 2.9 gives the second delivery number 1 if the client of the first was gone already.
  uint64_t durable_redelivered = 0;
  uint64_t durable_consumers_renewed = 0;  ///< shards' consumers made anew: they had tells and delivered none

  uint64_t dropped = 0;      ///< requests that the NATS library dropped: 65,536 of their shard waited already
  uint64_t disconnects = 0;  ///< connections to a server that were lost
  uint64_t leases_lost = 0;  ///< leases that ended early, also with the engine: each began a new life
  uint64_t shards_taken = 0;   ///< times that this node began to serve a shard
  uint64_t shards_handed = 0;  ///< times that it handed a shard over

  /// Returns the number of asks without an outcome.
  uint64_t asks_in_flight() const {
    return asks_received - asks_answered - asks_error_replies - asks_refused - asks_expired - asks_lost -
           asks_forwarded;
  }
  /// Returns the number of tells that are held.
  uint64_t tells_in_flight() const {
    return tells_received - tells_accepted - tells_refused - tells_forwarded;
  }
  /// Returns the number of durable tells without an outcome.
  uint64_t durable_in_flight() const {
    return durable_received - durable_processed - durable_failed - durable_refused - durable_expired -
           durable_delayed - durable_duplicates;
  }
  /// Returns true if every request has its outcome, and the NATS library dropped none.
  bool balanced() const {
    return asks_in_flight() == 0 && tells_in_flight() == 0 && durable_in_flight() == 0 && dropped == 0;
  }
};

/// Describes one count of GatewayBooks, for statistics.
struct CountField {
  uint64_t GatewayBooks::*count;
  const char* name;  ///< the member's name
  const char* help;  ///< one line
};
/// Lists all counts of GatewayBooks, in their order.
std::span<const CountField> count_fields();

/// Says what a gateway is doing.
struct GatewayState {
  bool connected = false;          ///< to a server
  bool closed = false;             ///< a server refused the credentials twice: the gateway serves no more
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
/// The NATS library's threads give requests to the runtime. They never wait for room: a request that finds
/// none is answered with `ring_full` or a similar status. The runtime's poller thread publishes the replies.
/// Publishing blocks while the server does not read, at most for 2 s; then the gateway connects again. If
/// other callbacks of the runtime must not wait so long, give the gateway a runtime of its own.
///
/// The library calls the callbacks of all NATS connections of a process on one thread. Those of the program's
/// own connections must not block: the gateway would learn too late that its connection was lost.
class Gateway {
 public:
  /// Connects, and joins the namespace or creates it. Blocks until the node has its lease, but not until it
  /// owns shards. If a node of this name died, blocks until that node's lease has ended.
  /// @param runtime  must outlive the gateway
  /// @throws BadOptions  with everything that is wrong, one line each; also if the namespace has another
  ///                     number of shards, lease or clock error, or serves other actor types
  /// @throws Error       if no server can be reached, the server has no JetStream, another node with this
  ///                     name is alive, or an actor type's name in subjects is another's or `durable`
  Gateway(Runtime& runtime, const GatewayOptions& options);
  /// Leaves without handing over: the shards are taken once the lease has ended. Call leave() first.
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  /// Hands the node's shards over to the other nodes, waits for the requests in flight, and gives up the
  /// lease. Without other nodes, only ends service. Blocks at most for the timeout. The gateway cannot join
  /// again afterwards.
  /// @returns true if all shards were handed over and every request has its outcome. After false, destroy the
  ///          gateway: other nodes take its shards once its lease has ended.
  bool leave(std::chrono::milliseconds timeout = std::chrono::seconds(30));

  GatewayBooks books() const;
  GatewayState state() const;

 private:
  class Node;
  std::unique_ptr<Node> node_;
};

}  // namespace gyre::nats
