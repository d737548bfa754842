#include <gyre/runtime/nats/connection.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gyre/runtime/log.hpp>

#include <array>
#include <cstdlib>
#include <cstring>

namespace gyre::nats::detail {
namespace {

constexpr int64_t connect_timeout_ms = 5000;
// A server that answers no ping for so long is taken for gone: three intervals.
constexpr int64_t ping_interval_ms = 1000;
constexpr int max_pings_out = 2;
constexpr int64_t reconnect_wait_ms = 100;
constexpr int64_t write_deadline_ms = 2000;

// Hides the user's part of a URL.
std::string without_password(std::string_view url) {
  const size_t at = url.find('@'), scheme = url.find("://");
  if (at == url.npos) return std::string(url);
  const size_t from = scheme == url.npos ? 0 : scheme + 3;
  return std::string(url.substr(0, from)) + std::string(url.substr(at + 1));
}

std::vector<std::string> without_passwords(const std::vector<std::string>& urls) {
  std::vector<std::string> result;
  for (const std::string& url : urls) result.push_back(without_password(url));
  return result;
}

void count_disconnect(natsConnection*, void* events) {
  static_cast<ConnectionEvents*>(events)->disconnects.fetch_add(1, std::memory_order_relaxed);
}
void count_reconnect(natsConnection*, void* events) {
  // Release: who sees the count finds the connection in its new state.
  static_cast<ConnectionEvents*>(events)->reconnects.fetch_add(1, std::memory_order_release);
}
// In place of the library's own handler, which prints. A slow consumer is counted as `dropped`.
void log_error(natsConnection*, natsSubscription*, natsStatus status, void*) {
  gyre::detail::log(LogLevel::info,
                    [&] { return fmt::format("NATS reports: {}", natsStatus_GetText(status)); });
}

}  // namespace

void require(natsStatus status, const std::string& doing) {
  if (status == NATS_OK) return;
  const char* const last = nats_GetLastError(nullptr);
  throw Error(fmt::format("{}: {}{}{}", doing, natsStatus_GetText(status), last != nullptr ? ": " : "",
                          last != nullptr ? last : ""));
}

void DestroyMessage::operator()(natsMsg* message) const {
  constexpr size_t most_kept = 16, most_bytes_kept = 65536;
  thread_local std::array<std::unique_ptr<natsMsg, Destroy<natsMsg_Destroy>>, most_kept> kept;
  thread_local size_t count = 0;
  const bool large = body_of(message).size() > most_bytes_kept;
  kept[count++].reset(message);
  if (!large && count < most_kept) return;
  while (count != 0) kept[--count].reset();
}

std::optional<std::string_view> header_of(natsMsg* message, const char* name, bool* repeated) {
  const char** values = nullptr;
  int count = 0;
  if (natsMsgHeader_Values(message, name, &values, &count) != NATS_OK) return std::nullopt;
  const std::unique_ptr<const char*, Destroy<free>> list(values);
  if (count > 1 && repeated != nullptr) *repeated = true;
  return values[0] == nullptr ? std::nullopt : std::optional<std::string_view>(values[0]);
}

size_t memory_of(natsMsg* message) {
  constexpr size_t each = 512;
  size_t bytes = each + body_of(message).size();
  const char** names = nullptr;
  int count = 0;
  if (natsMsgHeader_Keys(message, &names, &count) != NATS_OK) return bytes;
  const std::unique_ptr<const char*, Destroy<free>> list(names);
  for (int n = 0; n < count; ++n) {
    const char** values = nullptr;
    int of_name = 0;
    if (natsMsgHeader_Values(message, names[n], &values, &of_name) != NATS_OK) continue;
    const std::unique_ptr<const char*, Destroy<free>> list_of_name(values);
    for (int k = 0; k < of_name; ++k) bytes += values[k] != nullptr ? std::strlen(values[k]) : 0;
  }
  return bytes;
}

Connection::Connection(const ConnectionOptions& options, const std::string& name, uint32_t threads) {
  nats_SetMessageDeliveryPoolSize(int(threads));
  std::unique_ptr<natsOptions, Destroy<natsOptions_Destroy>> nats;
  natsOptions* made = nullptr;
  const auto set = [](natsStatus status) { require(status, "setting the options of a NATS connection"); };
  set(natsOptions_Create(&made));
  nats.reset(made);
  std::vector<const char*> servers;
  for (const std::string& server : options.servers) servers.push_back(server.c_str());
  set(natsOptions_SetServers(made, servers.data(), int(servers.size())));
  set(natsOptions_SetName(made, name.c_str()));
  set(natsOptions_SetTimeout(made, connect_timeout_ms));
  set(natsOptions_SetPingInterval(made, ping_interval_ms));
  set(natsOptions_SetMaxPingsOut(made, max_pings_out));
  set(natsOptions_SetMaxReconnect(made, -1));
  set(natsOptions_SetReconnectWait(made, reconnect_wait_ms));
  set(natsOptions_SetReconnectJitter(made, reconnect_wait_ms, reconnect_wait_ms));
  // What is published while the connection is lost fails, and is counted, instead of being sent much later.
  set(natsOptions_SetReconnectBufSize(made, 1));
  set(natsOptions_SetWriteDeadline(made, write_deadline_ms));
  // A reply is written by the thread that publishes it: the library's own flusher would take a wake-up more.
  set(natsOptions_SetSendAsap(made, true));
  set(natsOptions_UseGlobalMessageDelivery(made, true));
  set(natsOptions_SetFailRequestsOnDisconnect(made, true));
  set(natsOptions_SetDisconnectedCB(made, count_disconnect, &events_));
  set(natsOptions_SetReconnectedCB(made, count_reconnect, &events_));
  set(natsOptions_SetClosedCB(made, note_closed, &open_));
  set(natsOptions_SetErrorHandler(made, log_error, nullptr));
  bool tls = !options.ca_file.empty() || !options.certificate_file.empty();
  for (const std::string& server : options.servers) tls = tls || server.starts_with("tls://");
  if (tls) set(natsOptions_SetSecure(made, true));
  if (!options.ca_file.empty()) {
    require(natsOptions_LoadCATrustedCertificates(made, options.ca_file.c_str()),
            fmt::format("reading the trusted certificates {}", options.ca_file));
  }
  if (!options.certificate_file.empty()) {
    require(
        natsOptions_LoadCertificatesChain(made, options.certificate_file.c_str(), options.key_file.c_str()),
        fmt::format("reading the certificate {} and its key {}", options.certificate_file, options.key_file));
  }
  if (!options.credentials_file.empty()) {
    set(natsOptions_SetUserCredentialsFromFiles(made, options.credentials_file.c_str(), nullptr));
  }
  require(natsConnection_Connect(&connection_, made),
          fmt::format("connecting to NATS ({}); start nats-server there, or give another server",
                      fmt::join(without_passwords(options.servers), ", ")));
}

Connection::~Connection() {
  close();
  natsConnection_Destroy(connection_);
}

void Connection::close() {
  natsConnection_Close(connection_);
  std::unique_lock lock(open_.mutex);
  open_.none.wait(lock, [this] { return open_.count == 0 && !open_.connection; });
}

// The library's thread calls it once no handler of the subscription will run.
void Connection::count_complete(void* open) {
  Open& subscriptions = *static_cast<Open*>(open);
  const std::lock_guard lock(subscriptions.mutex);
  if (--subscriptions.count == 0) subscriptions.none.notify_all();
}

void Connection::note_closed(natsConnection*, void* open) {
  Open& connection = *static_cast<Open*>(open);
  const std::lock_guard lock(connection.mutex);
  connection.connection = false;
  connection.none.notify_all();
}

std::string Connection::server() const {
  char url[256] = "";
  if (natsConnection_GetConnectedUrl(connection_, url, sizeof url) != NATS_OK) return {};
  return without_password(url);
}

Subscription Connection::subscribe(const std::string& subject, const std::string& queue,
                                   natsMsgHandler handler, void* closure) {
  natsSubscription* made = nullptr;
  require(queue.empty() ? natsConnection_Subscribe(&made, connection_, subject.c_str(), handler, closure)
                        : natsConnection_QueueSubscribe(&made, connection_, subject.c_str(), queue.c_str(),
                                                        handler, closure),
          fmt::format("subscribing to {}", subject));
  Subscription subscription(made);
  {
    const std::lock_guard lock(open_.mutex);
    ++open_.count;
  }
  const natsStatus status = natsSubscription_SetOnCompleteCB(made, count_complete, &open_);
  if (status != NATS_OK) count_complete(&open_);
  require(status, fmt::format("subscribing to {}", subject));
  return subscription;
}

bool Connection::may_have_subscriber(const std::string& subject, std::chrono::milliseconds timeout) {
  natsMsg* reply = nullptr;
  const natsStatus status =
      natsConnection_Request(&reply, connection_, subject.c_str(), nullptr, 0, timeout.count());
  const std::unique_ptr<natsMsg, Destroy<natsMsg_Destroy>> owner(reply);
  return status != NATS_NO_RESPONDERS;
}

JetStream Connection::jet_stream(std::chrono::milliseconds timeout) {
  jsOptions options;
  jsOptions_Init(&options);
  options.Wait = timeout.count();
  jsCtx* made = nullptr;
  require(natsConnection_JetStream(&made, connection_, &options), "using JetStream");
  return JetStream(made);
}

}  // namespace gyre::nats::detail
