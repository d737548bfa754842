// What the fuzzers of control messages share.
#pragma once

#include <gyre/runtime/process/control.capnp.h>
#include <sys/socket.h>
#include <unistd.h>
#include <gyre/bridge/descriptor.hpp>
#include <gyre/runtime/process/channel.hpp>

#include <cstdint>
#include <cstring>
#include <string>

#include "tests/fuzz/walks.hpp"

namespace gyre_fuzz {

using gyre::Descriptor;
using gyre::process::Channel;
using gyre::process::Received;
using gyre::process::control::FromEngine;
using gyre::process::control::ToEngine;

struct Sockets {
  Sockets() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) found("no socket pair");
    first = Descriptor(ends[0]);
    second = Descriptor(ends[1]);
  }
  Descriptor first, second;
};

/// A message's frame, as Channel has it.
inline std::string frame_of(size_t bytes, uint32_t descriptors = 0) {
  const uint32_t head[] = {0x4779436d, descriptors};
  const uint64_t length = bytes;
  std::string frame(16, '\0');
  std::memcpy(frame.data(), head, sizeof head);
  std::memcpy(frame.data() + sizeof head, &length, sizeof length);
  return frame;
}

inline void write_all(int to, const void* bytes, size_t count) {
  if (write(to, bytes, count) != ssize_t(count)) found("a socket takes no ", count, " bytes");
}

/// Takes a fuzzer's input apart.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  template <class Number>
  Number take() {
    Number number = 0;
    const size_t bytes = size_ < sizeof number ? size_ : sizeof number;
    std::memcpy(&number, data_, bytes);
    skip(bytes);
    return number;
  }
  std::string take_bytes(size_t bytes) {
    bytes = bytes < size_ ? bytes : size_;
    std::string taken(reinterpret_cast<const char*>(data_), bytes);
    skip(bytes);
    return taken;
  }

 private:
  void skip(size_t bytes) { data_ += bytes, size_ -= bytes; }

  const uint8_t* data_;
  size_t size_;
};

}  // namespace gyre_fuzz
