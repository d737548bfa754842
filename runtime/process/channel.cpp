#include <capnp/serialize.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <gyre/runtime/process/channel.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace gyre::process {

namespace {

// Each word may be read a few times. Elements of no size count too, so that few bytes are never many
// elements.
capnp::ReaderOptions limits(size_t words) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 8 * uint64_t(words) + 1024;
  return options;
}

constexpr size_t growth_words = size_t(1) << 17;

}  // namespace

MalformedMessage::MalformedMessage(std::string_view why)
    : Error(fmt::format("reading a control message: {}; both sides must come from the same Gyre, and nothing "
                        "else may write there",
                        why)) {}

Received::Received(std::vector<uint64_t> words, std::vector<Descriptor> descriptors, bool lost)
    : words_(std::move(words)),
      reader_(std::make_unique<capnp::FlatArrayMessageReader>(
          kj::ArrayPtr<const capnp::word>(reinterpret_cast<const capnp::word*>(words_.data()), words_.size()),
          limits(words_.size()))),
      descriptors_(std::move(descriptors)),
      lost_(lost) {}

Descriptor Received::take_descriptor() {
  if (taken_ == descriptors_.size() && lost_) {
    throw Error(
        "receiving a descriptor of another process: the system has no room for it; close descriptors, or "
        "raise their limit (ulimit -n)");
  }
  if (taken_ == descriptors_.size())
    throw MalformedMessage(fmt::format("it came with {} descriptors, too few", taken_));
  return std::move(descriptors_[taken_++]);
}

bool Channel::send(capnp::MessageBuilder& message, std::initializer_list<int> descriptors,
                   const std::function<bool()>& give_up) {
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
    const ssize_t sent = sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      pollfd room{socket_.get(), POLLOUT, 0};
      constexpr int tenth_ms = 100;
      if (poll(&room, 1, tenth_ms) == 0 && give_up && give_up()) return false;
      continue;
    }
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

void Channel::shut_down() noexcept { shutdown(socket_.get(), SHUT_RDWR); }

// False where nothing came: the other side is gone (closed_), or nothing is there yet.
bool Channel::read_some(void* to, size_t bytes, size_t& done, int flags) {
  iovec part{static_cast<char*>(to) + done, bytes - done};
  alignas(cmsghdr) char control[CMSG_SPACE(most_descriptors * sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got;
  do {
    got = recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC | flags);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  closed_ = got == 0 || (got < 0 && errno == ECONNRESET);
  if (closed_) return false;
  if (got < 0) throw MalformedMessage(std::generic_category().message(errno));
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= one->cmsg_len; at += sizeof(int)) {
      int number = -1;
      std::memcpy(&number, reinterpret_cast<const char*>(one) + at, sizeof number);
      incoming_.descriptors.emplace_back(number);
    }
  }
  // No room here, or in the system: too few descriptors may be open. The frame says how many there are.
  if ((header.msg_flags & MSG_CTRUNC) != 0) incoming_.lost = true;
  if (incoming_.descriptors.size() > most_descriptors)
    throw MalformedMessage("more descriptors came with it than there is room for");
  done += size_t(got);
  return true;
}

void Channel::check(const Frame& frame) {
  if (frame.magic != Frame::expected_magic) {
    throw MalformedMessage(
        fmt::format("it begins with {:#x} instead of {:#x}", frame.magic, uint32_t(Frame::expected_magic)));
  }
  if (frame.bytes == 0 || frame.bytes > most_bytes || frame.bytes % sizeof(capnp::word) != 0) {
    throw MalformedMessage(
        fmt::format("it claims {} bytes, and there may be 8 to {}", frame.bytes, size_t(most_bytes)));
  }
}

std::optional<Received> Channel::receive_if_there() { return receive_message(MSG_DONTWAIT); }

std::optional<Received> Channel::receive_message(int flags) {
  Frame& frame = incoming_.frame;
  while (incoming_.frame_bytes < sizeof frame) {
    if (!read_some(&frame, sizeof frame, incoming_.frame_bytes, flags)) return std::nullopt;
    if (incoming_.frame_bytes == sizeof frame) check(frame);
  }
  std::vector<uint64_t>& words = incoming_.words;
  while (incoming_.bytes < frame.bytes) {
    if (incoming_.bytes == words.size() * sizeof(capnp::word))
      words.resize(std::min<size_t>(frame.bytes / sizeof(capnp::word), words.size() + growth_words));
    if (!read_some(words.data(), words.size() * sizeof(capnp::word), incoming_.bytes, flags))
      return std::nullopt;
  }
  Incoming message = std::exchange(incoming_, Incoming{});
  const size_t came = message.descriptors.size(), sent = message.frame.descriptors;
  if (message.lost ? came >= sent || sent > most_descriptors : came != sent) {
    throw MalformedMessage(fmt::format("it came with {} descriptors instead of {}", came, sent));
  }
  try {
    return Received(std::move(message.words), std::move(message.descriptors), message.lost);
  } catch (const kj::Exception& error) {
    throw MalformedMessage(error);
  }
}

}  // namespace gyre::process
