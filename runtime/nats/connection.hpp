// A connection to NATS, owned: the parts of the C library that a gateway uses, with errors as Gyre has them.
// Not for users.
#pragma once

#include <nats/nats.h>
#include <gyre/runtime/errors.hpp>
#include <gyre/runtime/nats/options.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gyre::nats::detail {

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* object) const {
    destroy(object);
  }
};

/// Destroys messages, some at a time: natsMsg_Destroy() leaves each to a thread of the library, and wakes it.
/// A thread that ends destroys those that it kept.
struct DestroyMessage {
  void operator()(natsMsg* message) const;
};

using Message = std::unique_ptr<natsMsg, DestroyMessage>;
using Subscription = std::unique_ptr<natsSubscription, Destroy<natsSubscription_Destroy>>;
using JetStream = std::unique_ptr<jsCtx, Destroy<jsCtx_Destroy>>;
using KeyValue = std::unique_ptr<kvStore, Destroy<kvStore_Destroy>>;
using KeyValueEntry = std::unique_ptr<kvEntry, Destroy<kvEntry_Destroy>>;
using KeyValueWatcher = std::unique_ptr<kvWatcher, Destroy<kvWatcher_Destroy>>;

/// Throws Error unless `status` is NATS_OK: "DOING: what the library says, and the last error of this
/// thread".
void require(natsStatus status, const std::string& doing);

/// Returns the value of a header, the first one if it is repeated; empty if the message has none. Refers to
/// the message.
/// @param repeated  set to true if the message has the header more than once; else left as it is
std::optional<std::string_view> header_of(natsMsg* message, const char* name, bool* repeated = nullptr);
inline std::span<const std::byte> body_of(const natsMsg* message) {
  return {reinterpret_cast<const std::byte*>(natsMsg_GetData(message)),
          size_t(natsMsg_GetDataLength(message))};
}
/// Returns about how many bytes of memory a message has, with its headers.
size_t memory_of(natsMsg* message);
/// Returns the subject that a reply goes to; null if none is wanted.
inline const char* reply_subject_of(const natsMsg* message) { return natsMsg_GetReply(message); }

/// Counts what a connection's callbacks tell.
struct ConnectionEvents {
  /// Counted before the connection is made again, unless a callback blocks the library's one thread for those
  /// of all connections of the process.
  std::atomic<uint64_t> disconnects{0};
  std::atomic<uint64_t> reconnects{0};
};

/// One connection, which reconnects by itself until it is destroyed. Publishing is thread-safe. A message is
/// not kept while the connection is lost: publishing fails then, so that the accounts know of it.
class Connection {
 public:
  /// Connects. Blocks at most for 5 s a server.
  /// @param threads  GatewayOptions::threads
  /// @throws Error   with the servers tried
  Connection(const ConnectionOptions& options, const std::string& name, uint32_t threads);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Ends the connection. Blocks until no handler of a subscription and no callback runs; none runs
  /// afterwards.
  void close();

  natsConnection* get() const { return connection_; }
  bool connected() const { return natsConnection_Status(connection_) == NATS_CONN_STATUS_CONNECTED; }
  /// Returns true if the library has given up: it does so, apart from close(), if a server refuses the
  /// credentials twice when it connects again.
  bool closed() const { return natsConnection_IsClosed(connection_); }
  /// Returns the server's URL without a password; empty if not connected.
  std::string server() const;
  uint64_t max_payload() const { return uint64_t(natsConnection_GetMaxPayload(connection_)); }
  const ConnectionEvents& events() const { return events_; }

  /// Publishes a message. Returns NATS_MAX_PAYLOAD if it is too large for the server, and other errors if it
  /// could not be given to the connection. The library would keep one message of a lost connection, and send
  /// it when that is back.
  natsStatus publish(natsMsg* message) {
    return connected() ? natsConnection_PublishMsg(connection_, message) : NATS_CONNECTION_DISCONNECTED;
  }
  bool publish(const std::string& subject, std::string_view body) {
    return connected() &&
           natsConnection_Publish(connection_, subject.c_str(), body.data(), int(body.size())) == NATS_OK;
  }
  /// Waits until the server has processed all that was sent before. Returns false after the timeout.
  bool flush(std::chrono::milliseconds timeout) {
    return natsConnection_FlushTimeout(connection_, timeout.count()) == NATS_OK;
  }
  /// Returns false if nobody has subscribed to the subject, as far as the server knows. Sends an empty
  /// request there, and waits for a reply at most for `timeout`.
  bool may_have_subscriber(const std::string& subject, std::chrono::milliseconds timeout);
  /// Calls `handler(closure, message)` for each message of a subject; each message is the handler's to
  /// destroy. Messages of one subscription come in order, by one thread.
  /// @param queue   members of one queue group share the messages; empty: no group
  /// @throws Error
  Subscription subscribe(const std::string& subject, const std::string& queue, natsMsgHandler handler,
                         void* closure);
  /// Returns a JetStream context whose requests wait at most for `timeout`. Throws Error.
  JetStream jet_stream(std::chrono::milliseconds timeout);

 private:
  static void count_complete(void* open);

  static void note_closed(natsConnection*, void* open);

  // Counts subscriptions whose handlers may still run, and says whether callbacks may: the library calls them
  // on a thread of its own, the one for the end last.
  struct Open {
    std::mutex mutex;
    std::condition_variable none;
    uint32_t count = 0;
    bool connection = true;
  };
  natsConnection* connection_ = nullptr;
  ConnectionEvents events_;
  Open open_;
};

}  // namespace gyre::nats::detail
