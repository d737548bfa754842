#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/telemetry/actor_requests.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gyre {

namespace {

constexpr uint64_t request_magic = 0x3174634165727947;  // "GyreAct1"
constexpr size_t most_keys = 8192, longest_type = 1024, longest_refusal = 4096;
constexpr int silent_client_ms = 100, answer_ms = 10'000;

// One message each: the sockets keep their ends (SOCK_SEQPACKET).
struct ListRequest {
  uint64_t magic = request_magic;
  ActorCursor from;
  uint64_t most = 0;
  // the type's name
};
struct ListAnswer {
  uint64_t magic = request_magic;
  uint32_t refused = 0;  // 1: a text follows instead of keys
  uint32_t goes_on = 0;
  ActorCursor next;
  // keys
};
static_assert(sizeof(ListRequest) == 32 && sizeof(ListAnswer) == 32);

struct Name {
  sockaddr_un address{};
  socklen_t bytes = 0;
};
// Of the socket of a runtime whose stats file that is. One that begins with a 0 is no file.
Name name_of(const struct stat& file) {
  Name name;
  name.address.sun_family = AF_UNIX;
  const std::string text = fmt::format("gyre-actors-{:x}-{:x}", uint64_t(file.st_dev), uint64_t(file.st_ino));
  std::memcpy(name.address.sun_path + 1, text.data(), text.size());
  name.bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return name;
}

// Whether the process at the other end is this user's, or root's.
bool is_users(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         (peer.uid == geteuid() || peer.uid == 0);
}

// Waits until the socket has something to read, or has ended.
bool is_readable(int socket, int timeout_ms) {
  pollfd polled{socket, POLLIN, 0};
  int ready = 0;
  while ((ready = poll(&polled, 1, timeout_ms)) < 0 && errno == EINTR) {
  }
  return ready > 0;
}

// The next message; empty if there is none.
std::string receive(int socket, size_t most_bytes) {
  std::string message(most_bytes, '\0');
  const ssize_t count = recv(socket, message.data(), message.size(), MSG_DONTWAIT);
  message.resize(count < 0 ? 0 : size_t(count));
  return message;
}

template <class Head>
std::string message_of(const Head& head, std::string_view rest) {
  std::string message(reinterpret_cast<const char*>(&head), sizeof head);
  return message.append(rest);
}

// An open socket.
struct Socket {
  int descriptor;
  explicit Socket(int descriptor) : descriptor(descriptor) {}
  ~Socket() {
    if (descriptor >= 0) close(descriptor);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
};

}  // namespace

ActorPage list_published_actors(const std::string& stats_file, std::string_view type, const ActorCursor& from,
                                size_t most) {
  const auto wrong = [&](const std::string& what) -> Error {
    return Error(fmt::format("listing actors of the runtime with the stats file {}: {}", stats_file, what));
  };
  struct stat file {};
  if (stat(stats_file.c_str(), &file) != 0) throw wrong(std::strerror(errno));
  const Name name = name_of(file);
  const Socket socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (socket.descriptor < 0 ||
      connect(socket.descriptor, reinterpret_cast<const sockaddr*>(&name.address), name.bytes) != 0) {
    throw wrong(fmt::format("its process does not listen ({}); is it gone, or in another network namespace?",
                            std::strerror(errno)));
  }
  if (!is_users(socket.descriptor)) throw wrong("a process of another user listens in its place");
  ListRequest request;
  request.from = from;
  request.most = std::min(most, most_keys);
  const std::string sent = message_of(request, type.substr(0, longest_type));
  if (send(socket.descriptor, sent.data(), sent.size(), MSG_NOSIGNAL) != ssize_t(sent.size()))
    throw wrong(std::strerror(errno));
  if (!is_readable(socket.descriptor, answer_ms)) {
    throw wrong(
        fmt::format("no answer came within {} ms; is the process stopped, or a worker busy with one "
                    "handler?",
                    answer_ms));
  }
  const std::string got = receive(socket.descriptor, sizeof(ListAnswer) + most_keys * sizeof(uint64_t));
  ListAnswer answer;
  if (got.size() < sizeof answer) throw wrong("the process ended the connection without an answer");
  std::memcpy(static_cast<void*>(&answer), got.data(), sizeof answer);
  const std::string_view rest = std::string_view(got).substr(sizeof answer);
  if (answer.magic != request_magic)
    throw wrong("its answer is of another version; use the tool of its Gyre");
  if (answer.refused != 0) throw wrong(std::string(rest));
  ActorPage page;
  page.keys.resize(rest.size() / sizeof(uint64_t));
  std::memcpy(page.keys.data(), rest.data(), page.keys.size() * sizeof(uint64_t));
  if (answer.goes_on != 0) page.next = answer.next;
  return page;
}

namespace detail {

ActorRequests::ActorRequests(int stats_file, List list) : list_(std::move(list)) {
  if (!list_) return;
  struct stat file {};
  if (fstat(stats_file, &file) != 0) return;
  const Name name = name_of(file);
  socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ >= 0 && bind(socket_, reinterpret_cast<const sockaddr*>(&name.address), name.bytes) == 0 &&
      listen(socket_, 8) == 0) {
    return;
  }
  log(LogLevel::warning, [] {
    return fmt::format("other processes cannot list this runtime's actors: there is no socket: {}",
                       std::strerror(errno));
  });
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

ActorRequests::~ActorRequests() {
  if (socket_ >= 0) close(socket_);
}

void ActorRequests::answer() const {
  const Socket client(accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (client.descriptor < 0 || !is_users(client.descriptor) ||
      !is_readable(client.descriptor, silent_client_ms)) {
    return;
  }
  const std::string got = receive(client.descriptor, sizeof(ListRequest) + longest_type);
  ListRequest request;
  if (got.size() < sizeof request) return;
  std::memcpy(static_cast<void*>(&request), got.data(), sizeof request);
  if (request.magic != request_magic) return;
  const std::string type = got.substr(sizeof request);
  const auto page = list_(type, request.from, size_t(std::min<uint64_t>(request.most, most_keys)));
  ListAnswer answer;
  std::string sent;
  if (!page) {
    answer.refused = 1;
    sent = message_of(answer, page.error().message().substr(0, longest_refusal));
  } else {
    const std::vector<uint64_t>& keys = page.value().keys;
    if (page.value().next) {
      answer.goes_on = 1;
      answer.next = *page.value().next;
    }
    sent = message_of(answer, {reinterpret_cast<const char*>(keys.data()), keys.size() * sizeof(uint64_t)});
  }
  // A client that reads nothing loses its answer.
  (void)send(client.descriptor, sent.data(), sent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace detail
}  // namespace gyre
