// How a node joins a namespace on NATS.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace gyre::nats {

/// Says how to reach and to trust the servers.
struct ConnectionOptions {
  /// URLs of one server or of a cluster's servers: `nats://HOST:PORT` or `tls://HOST:PORT`, with user and
  /// password or a token if the server wants them: `nats://USER:PASSWORD@HOST`.
  std::vector<std::string> servers{"nats://127.0.0.1:4222"};
  std::string credentials_file;  ///< a JWT and its key, as `nsc` writes it; empty: none
  std::string ca_file;           ///< trusted certificates for TLS, PEM; empty: the system's
  std::string certificate_file;  ///< the node's own certificate for TLS, PEM; empty: none
  std::string key_file;          ///< the private key of certificate_file, PEM
};

/// Says what a Gateway serves, and how.
struct GatewayOptions {
  ConnectionOptions connection;
  std::string namespace_name = "default";  ///< 1 to 32 letters, digits, `_` and `-`
  std::string node;  ///< the node's name, unique in its namespace; 1 to 32 letters, digits, `_` and `-`
  /// Number of shards, 1 to 1024. The namespace's first node fixes it. 0: the namespace's, or 64 if this node
  /// is the first.
  uint32_t shards = 0;
  /// How long a node owns its shards without renewing its lease, 300 ms to an hour. The namespace's first
  /// node fixes it. 0: the namespace's, or 3 s if this node is the first. With a cluster of servers, give 10
  /// s: a lease must outlast an election.
  std::chrono::milliseconds lease{0};
  /// How long other nodes wait after a lease before they take the node's shards, 1 ms to an hour. The
  /// namespace's first node fixes it. 0: the namespace's, or 500 ms if this node is the first.
  std::chrono::milliseconds clock_error{0};
  /// Copies that a cluster of servers keeps of the namespace's bucket and stream: 1 to 5. Only the node that
  /// creates them uses it.
  uint32_t replicas = 1;
  bool durable_tells = true;        ///< false: leave durable tells of the node's shards in their stream
  uint32_t durable_in_flight = 32;  ///< most durable tells of one shard that actors have at once, 1 to 1000
  /// How long after the death of a node JetStream delivers its durable tells again, 1 s to a day.
  std::chrono::milliseconds acknowledge_wait{30000};
  /// How long a shard that moves to another node waits for the requests in flight, 1 ms to an hour. Then it
  /// moves all the same.
  std::chrono::milliseconds handover_timeout{10000};
  /// Threads of the NATS library that take messages, 1 to 64. All connections of the process share them: it
  /// has as many as the largest number that any of its gateways gave.
  uint32_t threads = 1;
};

}  // namespace gyre::nats
