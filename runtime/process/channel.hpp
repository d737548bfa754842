// Control messages between a program and its engine process: Cap'n Proto over a stream socket, with
// descriptors beside them.
#pragma once

#include <capnp/message.h>
#include <kj/exception.h>
#include <gyre/bridge/descriptor.hpp>
#include <gyre/bridge/errors/error.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace gyre::process {

/// Reports what is no control message of this Gyre: whoever sent it is not to be trusted any more.
class MalformedMessage : public Error {
 public:
  explicit MalformedMessage(std::string_view why);
  explicit MalformedMessage(const kj::Exception& why) : MalformedMessage(why.getDescription().cStr()) {}
};

/// Holds one received message, checked only as far as its frame; reading it checks the rest.
class Received {
 public:
  /// @param words  a message in Cap'n Proto's stream format
  /// @param lost   the system had no room for all descriptors that came
  Received(std::vector<uint64_t> words, std::vector<Descriptor> descriptors, bool lost);

  /// Returns the message's root. Throws kj::Exception if the message is malformed.
  template <class Root>
  typename Root::Reader root() {
    return reader_->getRoot<Root>();
  }
  /// Passes the next descriptor that came with the message. Throws MalformedMessage if there is none, Error
  /// if it was lost.
  Descriptor take_descriptor();

 private:
  std::vector<uint64_t> words_;
  std::unique_ptr<capnp::MessageReader> reader_;
  std::vector<Descriptor> descriptors_;
  size_t taken_ = 0;
  bool lost_ = false;
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
  /// @param give_up  asked each tenth of a second while it blocks; the rest is not sent once it says true
  /// @returns false if the other side is gone, or `give_up` said so
  /// @throws Error  if the system refuses
  bool send(capnp::MessageBuilder& message, std::initializer_list<int> descriptors = {},
            const std::function<bool()>& give_up = {});
  /// Receives a message. Blocks until there is one.
  /// @returns nothing if the other side is gone
  /// @throws MalformedMessage  if what came is no message
  std::optional<Received> receive() { return receive_message(0); }
  /// Receives a message if all of it is there, and keeps what is there of one. Does not block.
  /// @returns nothing if more must come, or if the other side is gone: see closed()
  /// @throws MalformedMessage  if what came is no message
  std::optional<Received> receive_if_there();
  /// Returns true once the other side was found gone while receiving.
  bool closed() const { return closed_; }
  /// Makes every send() and receive() find the other side gone, those that block too.
  void shut_down() noexcept;

 private:
  // Before each message. Both sides are of one machine, and one Gyre.
  struct Frame {
    static constexpr uint32_t expected_magic = 0x4779436d;  // "GyCm"
    uint32_t magic = expected_magic;
    uint32_t descriptors = 0;
    uint64_t bytes = 0;  // of the message, a multiple of 8
  };
  // What came of a message so far.
  struct Incoming {
    Frame frame;
    size_t frame_bytes = 0;
    std::vector<uint64_t> words;  // grows with what comes: the frame may claim much
    size_t bytes = 0;             // of the words
    std::vector<Descriptor> descriptors;
    bool lost = false;  // some of them
  };

  static void check(const Frame& frame);
  std::optional<Received> receive_message(int flags);
  bool read_some(void* to, size_t bytes, size_t& done, int flags);

  Descriptor socket_;
  std::mutex send_mutex_;
  Incoming incoming_;
  bool closed_ = false;
};

}  // namespace gyre::process
