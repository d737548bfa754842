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
  std::string credentials_file;  ///< of a JWT and its key (`nsc`); empty: none
  std::string ca_file;           ///< trusted certificates for TLS, PEM; empty: the system's
  std::string certificate_file;  ///< the node's own certificate for TLS, PEM; empty: none
  std::string key_file;          ///< the key of certificate_file, PEM
};

/// Says what a Gateway serves, and how.
struct GatewayOptions {
  ConnectionOptions connection;
  std::string namespace_name = "default";  ///< 1 to 32 letters, digits, `_` and `-`
  std::string node;                        ///< the node's name, unique in its namespace; as namespace_name
  /// Number of shards; fixed for a namespace by its first node. 0: as the namespace has, or 64.
  uint32_t shards = 0;
  /// How long a node owns its shards without renewing its lease; fixed by the first node. 0: as the
  /// namespace has, or 3 s. In a cluster of servers choose more than an election takes, 10 s.
  std::chrono::milliseconds lease{0};
  /// What other nodes wait beyond a lease; fixed by the first node. 0: as the namespace has, or 500 ms.
  std::chrono::milliseconds clock_error{0};
  /// Copies of the bucket and the stream that a cluster of servers keeps: 1 to 5. Used by the node that
  /// creates them.
  uint32_t replicas = 1;
  bool durable_tells = true;        ///< serve durable tells; false: leave them in their stream
  uint32_t durable_in_flight = 32;  ///< most durable tells of a shard in handlers, 1 to 1000
  std::chrono::milliseconds acknowledge_wait{30000};  ///< JetStream delivers again after it; at least 1 s
  /// How long a shard waits for the requests in flight when it moves to another node.
  std::chrono::milliseconds handover_timeout{10000};
  /// Threads of the NATS library that take messages, 1 to 64. They are the process's: the largest number that
  /// any part of the program gave counts.
  uint32_t threads = 1;
};

}  // namespace gyre::nats
