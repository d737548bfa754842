// Requests on NATS that are answered by what they carry: by a bare echo, or by a node's Echo.
#pragma once

#include <gyre/runtime/nats/connection.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "echo_message.hpp"
#include "measure.hpp"

namespace gyre::bench {

using NatsConnection = std::unique_ptr<natsConnection, nats::detail::Destroy<natsConnection_Destroy>>;

/// Connects. What is published is written at once, by the thread that publishes it. Throws Error.
NatsConnection connect_to_nats(const std::string& url);

/// Answers requests with what they carry, until the process is killed.
[[noreturn]] void echo_on_nats(const std::string& url);

/// Who answers a request.
enum class Answerer {
  echo,               ///< echo_on_nats
  echo_with_headers,  ///< the same, and the request has the headers that a node wants
  node,               ///< actors::Echo behind the gateway
};
/// Names it, as a row.
const char* name(Answerer answerer);

/// The body of a request: an EchoMessage as an EchoRequest in a Cap'n Proto stream, whose EchoResponse has
/// the same bytes.
class EchoBody {
 public:
  /// @param row   what an error calls the row
  /// @param size  bytes, without the stream's table of 8: a multiple of 8, at least 32
  EchoBody(std::string row, uint32_t size);

  /// Turns into the next message.
  void next();
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(stream_)); }
  /// Throws Error unless the reply is this message, byte for byte, and has the status ok if a node sent it.
  void expect(Answerer answerer, natsMsg* reply) const;

 private:
  EchoMessage message_;
  std::vector<uint64_t> stream_;  // table, root, sequence, list, the list's words
};

/// Makes the requests to the actor with a key.
class RequestMaker {
 public:
  RequestMaker(Answerer answerer, uint64_t key);

  /// @param reply  where the reply goes; null: as the library likes
  nats::detail::Message make(const EchoBody& body, const char* reply) const;

 private:
  const bool headers_;
  const std::string subject_, key_;
};

/// Asks again and again until the first good reply. Throws Error after a minute.
/// @param still_there  called in between; what it throws passes through
void wait_until_answered(natsConnection* connection, Answerer answerer, uint64_t key,
                         const std::function<void()>& still_there);

/// Measures requests one at a time.
Row measure_requests(const Plan& plan, natsConnection* connection, Answerer answerer, uint32_t size);

/// Returns how many requests a second are answered over one connection.
/// @param in_flight  requests that are kept in flight, each to an actor with another key
/// @param messages   counted, after a tenth as many
double measure_rate(natsConnection* connection, Answerer answerer, uint32_t size, uint32_t in_flight,
                    uint64_t messages);

}  // namespace gyre::bench
