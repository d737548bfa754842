#include <capnp/serialize.h>
#include <fmt/format.h>
#include <kj/exception.h>
#include <sys/socket.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/process/channel.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace gyre::process {

namespace {

// Before each message. Both sides are of one machine, and one Gyre.
struct Frame {
  static constexpr uint32_t expected_magic = 0x4779436d;  // "GyCm"
  uint32_t magic = expected_magic;
  uint32_t descriptors = 0;
  uint64_t bytes = 0;  // of the message, a multiple of 8
};

[[noreturn]] void malformed(const std::string& what) {
  throw Error("reading a control message: " + what +
              "; both sides must come from the same Gyre, and nothing else may write there");
}

capnp::ReaderOptions limits() {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = Channel::most_bytes / sizeof(capnp::word) * 2;
  return options;
}

}  // namespace

Received::Received(std::vector<capnp::word> words, std::vector<Descriptor> descriptors)
    : words_(std::move(words)),
      reader_(std::make_unique<capnp::FlatArrayMessageReader>(
          kj::ArrayPtr<const capnp::word>(words_.data(), words_.size()), limits())),
      descriptors_(std::move(descriptors)) {}

Descriptor Received::take_descriptor() {
  if (taken_ == descriptors_.size()) malformed(fmt::format("it came with {} descriptors, too few", taken_));
  return std::move(descriptors_[taken_++]);
}

bool Channel::send(capnp::MessageBuilder& message, std::initializer_list<int> descriptors) {
  const kj::Array<capnp::word> words = capnp::messageToFlatArray(message);
  Frame frame;
  frame.descriptors = uint32_t(descriptors.size());
  frame.bytes = words.size() * sizeof(capnp::word);
  if (frame.bytes > most_bytes) {
    throw Error(
        fmt::format("sending a control message of {} bytes: at most {} are taken; give the actors "
                    "less source text",
                    frame.bytes, most_bytes));
  }
  iovec parts[] = {{&frame, sizeof frame}, {const_cast<capnp::word*>(words.begin()), size_t(frame.bytes)}};
  alignas(cmsghdr) char control[CMSG_SPACE(most_descriptors * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = parts;
  header.msg_iovlen = 2;
  if (descriptors.size() != 0) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), descriptors.begin(), descriptors.size() * sizeof(int));
  }
  const std::lock_guard lock(send_mutex_);
  while (header.msg_iovlen != 0) {
    const ssize_t sent = sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return false;
    if (sent < 0) {
      throw Error("sending a control message: " + std::generic_category().message(errno) +
                  "; see what limits sockets and descriptors (ulimit -n)");
    }
    header.msg_control = nullptr;  // they went with the first bytes
    header.msg_controllen = 0;
    for (size_t rest = size_t(sent); header.msg_iovlen != 0;) {
      const size_t share = std::min(rest, header.msg_iov->iov_len);
      header.msg_iov->iov_base = static_cast<char*>(header.msg_iov->iov_base) + share;
      header.msg_iov->iov_len -= share;
      rest -= share;
      if (header.msg_iov->iov_len != 0) break;
      ++header.msg_iov;
      --header.msg_iovlen;
    }
  }
  return true;
}

// 0: the other side is gone.
size_t Channel::read_some(void* to, size_t bytes, std::vector<Descriptor>& descriptors) {
  for (;;) {
    iovec part{to, bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(most_descriptors * sizeof(int))];
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ECONNRESET) return 0;
    if (got < 0) malformed(std::generic_category().message(errno));
    for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
      if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
      for (size_t at = CMSG_LEN(0); at + sizeof(int) <= one->cmsg_len; at += sizeof(int)) {
        int number = -1;
        std::memcpy(&number, reinterpret_cast<const char*>(one) + at, sizeof number);
        descriptors.emplace_back(number);
      }
    }
    if ((header.msg_flags & MSG_CTRUNC) != 0)
      malformed("more descriptors came with it than there is room for");
    return size_t(got);
  }
}

bool Channel::read_all(void* to, size_t bytes, std::vector<Descriptor>& descriptors) {
  for (size_t done = 0; done < bytes;) {
    const size_t got = read_some(static_cast<char*>(to) + done, bytes - done, descriptors);
    if (got == 0) return false;
    done += got;
  }
  return true;
}

std::optional<Received> Channel::receive() {
  std::vector<Descriptor> descriptors;
  Frame frame;
  if (!read_all(&frame, sizeof frame, descriptors)) return std::nullopt;
  if (frame.magic != Frame::expected_magic) {
    malformed(fmt::format("it begins with {:#x} instead of {:#x}", frame.magic, Frame::expected_magic));
  }
  if (frame.bytes == 0 || frame.bytes > most_bytes || frame.bytes % sizeof(capnp::word) != 0) {
    malformed(fmt::format("it claims {} bytes, and there may be 8 to {}", frame.bytes, most_bytes));
  }
  std::vector<capnp::word> words(frame.bytes / sizeof(capnp::word));
  if (!read_all(words.data(), frame.bytes, descriptors)) return std::nullopt;
  if (descriptors.size() != frame.descriptors) {
    malformed(
        fmt::format("it came with {} descriptors instead of {}", descriptors.size(), frame.descriptors));
  }
  try {
    return Received(std::move(words), std::move(descriptors));
  } catch (const kj::Exception& error) {
    malformed(error.getDescription().cStr());
  }
}

}  // namespace gyre::process
