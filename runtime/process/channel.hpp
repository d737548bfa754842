// Control messages between a program and its engine process: Cap'n Proto over a stream socket, with
// descriptors beside them.
#pragma once

#include <capnp/message.h>
#include <gyre/bridge/descriptor.hpp>

#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace gyre::process {

/// Holds one received message, checked only as far as its frame; reading it checks the rest.
class Received {
 public:
  /// @param words  a message in Cap'n Proto's stream format
  Received(std::vector<capnp::word> words, std::vector<Descriptor> descriptors);

  /// Returns the message's root. Throws kj::Exception if the message is malformed.
  template <class Root>
  typename Root::Reader root() {
    return reader_->getRoot<Root>();
  }
  /// Passes the next descriptor that came with the message. Throws Error if there is none.
  Descriptor take_descriptor();

 private:
  std::vector<capnp::word> words_;
  std::unique_ptr<capnp::MessageReader> reader_;
  std::vector<Descriptor> descriptors_;
  size_t taken_ = 0;
};

/// One end of the socket pair. send() is thread-safe; one thread at a time receives.
class Channel {
 public:
  /// The largest message in bytes: the source text of all actors fits.
  static constexpr size_t most_bytes = size_t(256) << 20;
  /// The most descriptors beside one message.
  static constexpr size_t most_descriptors = 4;

  /// Takes a connected stream socket.
  explicit Channel(Descriptor socket) : socket_(std::move(socket)) {}

  int descriptor() const { return socket_.get(); }
  /// Sends a message, and copies of `descriptors` beside it. Blocks while the other side does not read.
  /// @returns false if the other side is gone
  /// @throws Error  if the system refuses
  bool send(capnp::MessageBuilder& message, std::initializer_list<int> descriptors = {});
  /// Receives a message. Blocks until there is one.
  /// @returns nothing if the other side is gone
  /// @throws Error  if what came is no message
  std::optional<Received> receive();

 private:
  size_t read_some(void* to, size_t bytes, std::vector<Descriptor>& descriptors);
  bool read_all(void* to, size_t bytes, std::vector<Descriptor>& descriptors);

  Descriptor socket_;
  std::mutex send_mutex_;
};

}  // namespace gyre::process
