// Requests to the actors of a namespace on NATS, as a client sends them. docs/reference/nats.md is the
// format.
#pragma once

#include <gyre/runtime/nats/connection.hpp>
#include <gyre/runtime/nats/subject.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace gyre::tools {

/// A message to one actor.
struct ActorRequest {
  std::string actor;  ///< its type, such as my::Counter
  uint64_t key = 0;
  uint64_t type_id = 0;                              ///< of the body
  std::string body;                                  ///< a stream; empty: the empty message
  std::optional<std::chrono::milliseconds> timeout;  ///< until it expires; none: as the node has it
  std::string id;                                    ///< empty: none
};

/// What became of an ask.
struct ActorReply {
  std::string status;  ///< "ok" or an error's name
  std::string reason;  ///< of an error
  std::string body;    ///< of "ok", a stream; empty: the receipt of a tell
};

/// What JetStream says of a durable tell.
struct StoredTell {
  std::string stream;
  uint64_t sequence = 0;
  bool duplicate = false;  ///< its id had been stored within the last two minutes
};

/// Sends to the actors of one namespace. Not thread-safe.
class NamespaceClient {
 public:
  /// Reads the number of shards. Blocks for 5 s at most.
  /// @param connection  must outlive the client
  /// @throws Error  if no node has created the namespace
  NamespaceClient(nats::detail::Connection& connection, const std::string& name);

  /// Sends a request, and waits for its reply: for the request's timeout, or 5 s, and half a second.
  /// Having no node is the status no_such_node, and no reply is no_reply.
  /// @throws Error  if the request could not be sent
  ActorReply ask(const ActorRequest& request);
  /// Sends a request that nobody answers. Returns once the server has it. Throws Error.
  void tell(const ActorRequest& request);
  /// Has JetStream store a request; its id must not be empty. Returns once it is stored. Throws Error.
  StoredTell tell_durably(const ActorRequest& request);

 private:
  nats::detail::Message message_of(const ActorRequest& request, const std::string& subject) const;
  uint32_t shard_of(const ActorRequest& request) const;
  void require_sent(natsStatus status, const ActorRequest& request) const;

  nats::detail::Connection& connection_;
  nats::Subjects subjects_;
  uint32_t shards_ = 0;
};

}  // namespace gyre::tools
