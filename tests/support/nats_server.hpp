// A NATS server of a test's own, and a client of it.
#pragma once

#include <nats/nats.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/temporary_folder.hpp"

namespace gyre_test {

/// Returns the path of nats-server; empty if it is not installed.
inline std::string nats_server_path() {
  for (const std::string folder : {"/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"}) {
    const std::string path = folder + "/nats-server";
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

/// Runs nats-server on a port that it chooses, until destroyed.
class NatsServer {
 public:
  /// @param config  more of the server's configuration
  explicit NatsServer(const std::string& config = "", bool jet_stream = true) {
    const std::string path = nats_server_path(), file = (folder_.path() / "server.conf").string();
    write_file(file,
               "listen: \"127.0.0.1:-1\"\nports_file_dir: \"" + folder_.path().string() + "\"\n" +
                   (jet_stream ? "jetstream { store_dir: \"" + folder_.path().string() + "\" }\n" : "") +
                   config + "\n");
    const std::string log = (folder_.path() / "server.log").string();
    process_ = fork();
    if (process_ < 0) throw std::runtime_error("forking for nats-server");
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      execl(path.c_str(), path.c_str(), "-c", file.c_str(), "-l", log.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    const auto ports = folder_.path() / ("nats-server_" + std::to_string(process_) + ".ports");
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (url_.empty()) {
      if (std::chrono::steady_clock::now() > until || waitpid(process_, nullptr, WNOHANG) != 0)
        throw std::runtime_error("nats-server did not start");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (std::filesystem::exists(ports)) url_ = url_in(read_file(ports));
    }
  }
  ~NatsServer() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  const std::string& url() const { return url_; }

 private:
  // {"nats":["nats://127.0.0.1:41234"],…}; empty while the file is being written.
  static std::string url_in(const std::string& ports) {
    const size_t begin = ports.find("nats://");
    const size_t end = begin == ports.npos ? begin : ports.find('"', begin);
    return end == ports.npos ? std::string() : ports.substr(begin, end - begin);
  }

  TemporaryFolder folder_;
  pid_t process_ = -1;
  std::string url_;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

/// A message that came. The status is that of Gyre-Status; `no_responders` where nobody listens.
struct NatsReply {
  std::string status, reason, body;
  std::map<std::string, std::string> headers;

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "(missing)" : found->second;
  }
};

/// What JetStream says of a message that was published to it.
struct Stored {
  bool stored = false, duplicate = false;
};

/// A client that uses none of Gyre's code. For one thread.
class NatsClient {
 public:
  explicit NatsClient(const std::string& url) {
    if (natsConnection_ConnectTo(&connection_, url.c_str()) != NATS_OK)
      throw std::runtime_error("connecting a client to " + url);
    natsInbox* inbox = nullptr;
    natsInbox_Create(&inbox);
    inbox_ = inbox;
    natsInbox_Destroy(inbox);
    natsConnection_SubscribeSync(&replies_, connection_, inbox_.c_str());
    natsConnection_JetStream(&jet_stream_, connection_, nullptr);
  }
  ~NatsClient() {
    jsCtx_Destroy(jet_stream_);
    natsSubscription_Destroy(replies_);
    natsConnection_Destroy(connection_);
  }
  NatsClient(const NatsClient&) = delete;
  NatsClient& operator=(const NatsClient&) = delete;

  /// Waits for the reply.
  NatsReply ask(const std::string& subject, const std::string& body, const Headers& headers,
                std::chrono::milliseconds timeout = std::chrono::minutes(1)) {
    const Owned message = make(subject, "", body, headers);
    natsMsg* reply = nullptr;
    const natsStatus status = natsConnection_RequestMsg(&reply, connection_, message.get(), timeout.count());
    if (status == NATS_NO_RESPONDERS) return {"no_responders", {}, {}, {}};
    if (status != NATS_OK) return {natsStatus_GetText(status), {}, {}, {}};
    return read(Owned(reply));
  }
  /// Sends an ask whose reply next_reply() returns.
  void send_ask(const std::string& subject, const std::string& body, const Headers& headers) {
    natsConnection_PublishMsg(connection_, make(subject, inbox_, body, headers).get());
  }
  /// Sends an ask whose reply is to go to a subject of the caller's choice. Returns once the server has it.
  bool send_ask_for(const std::string& reply_subject, const std::string& subject, const std::string& body,
                    const Headers& headers) {
    const Owned message = make(subject, reply_subject, body, headers);
    return natsConnection_PublishMsg(connection_, message.get()) == NATS_OK &&
           natsConnection_FlushTimeout(connection_, 60'000) == NATS_OK;
  }
  std::optional<NatsReply> next_reply() {
    natsMsg* reply = nullptr;
    if (natsSubscription_NextMsg(&reply, replies_, 60'000) != NATS_OK) return std::nullopt;
    return read(Owned(reply));
  }
  /// Publishes a message that nobody answers. Returns once the server has it.
  bool tell(const std::string& subject, const std::string& body, const Headers& headers) {
    return natsConnection_PublishMsg(connection_, make(subject, "", body, headers).get()) == NATS_OK &&
           natsConnection_FlushTimeout(connection_, 60'000) == NATS_OK;
  }
  Stored store(const std::string& subject, const std::string& body, const Headers& headers) {
    const Owned message = make(subject, "", body, headers);
    jsPubAck* acknowledgement = nullptr;
    if (js_PublishMsg(&acknowledgement, jet_stream_, message.get(), nullptr, nullptr) != NATS_OK) return {};
    const Stored result{true, acknowledgement->Duplicate};
    jsPubAck_Destroy(acknowledgement);
    return result;
  }
  /// Returns the number of messages in a stream; nothing if there is no such stream.
  std::optional<uint64_t> messages_in(const std::string& stream) {
    jsStreamInfo* info = nullptr;
    if (js_GetStreamInfo(&info, jet_stream_, stream.c_str(), nullptr, nullptr) != NATS_OK)
      return std::nullopt;
    const uint64_t messages = info->State.Msgs;
    jsStreamInfo_Destroy(info);
    return messages;
  }
  /// Deletes a stream's consumer. Returns false if there is none.
  bool delete_consumer(const std::string& stream, const std::string& consumer) {
    jsErrCode error = jsErrCode(0);
    const natsStatus status =
        js_DeleteConsumer(jet_stream_, stream.c_str(), consumer.c_str(), nullptr, &error);
    return is_gone(status, error);
  }
  /// Deletes a stream with all that is in it. Returns false if there is none.
  bool delete_stream(const std::string& stream) {
    jsErrCode error = jsErrCode(0);
    const natsStatus status = js_DeleteStream(jet_stream_, stream.c_str(), nullptr, &error);
    return is_gone(status, error);
  }
  /// Returns an entry of a bucket; empty if it is not there.
  std::string entry(const std::string& bucket, const std::string& key) {
    kvStore* store = nullptr;
    kvEntry* entry = nullptr;
    std::string value;
    if (js_KeyValue(&store, jet_stream_, bucket.c_str()) == NATS_OK &&
        kvStore_Get(&entry, store, key.c_str()) == NATS_OK) {
      value.assign(static_cast<const char*>(kvEntry_Value(entry)), size_t(kvEntry_ValueLen(entry)));
    }
    kvEntry_Destroy(entry);
    kvStore_Destroy(store);
    return value;
  }
  /// Writes an entry of a bucket, which is made unless it is there.
  bool put(const std::string& bucket, const std::string& key, const std::string& value) {
    kvStore* store = nullptr;
    kvConfig config;
    kvConfig_Init(&config);
    config.Bucket = bucket.c_str();
    const bool there = js_KeyValue(&store, jet_stream_, bucket.c_str()) == NATS_OK ||
                       js_CreateKeyValue(&store, jet_stream_, &config) == NATS_OK;
    const bool put = there && kvStore_PutString(nullptr, store, key.c_str(), value.c_str()) == NATS_OK;
    kvStore_Destroy(store);
    return put;
  }

 private:
  struct Destroy {
    void operator()(natsMsg* message) const { natsMsg_Destroy(message); }
  };
  using Owned = std::unique_ptr<natsMsg, Destroy>;

  // Whether what was to be deleted was there, and is gone. nats-server reports an error, too, where its files
  // could not all be removed because it was still writing one.
  static bool is_gone(natsStatus status, jsErrCode error) {
    return status == NATS_OK ||
           (error != 0 && error != JSConsumerNotFoundErr && error != JSStreamNotFoundErr);
  }
  static Owned make(const std::string& subject, const std::string& reply, const std::string& body,
                    const Headers& headers) {
    natsMsg* made = nullptr;
    natsMsg_Create(&made, subject.c_str(), reply.empty() ? nullptr : reply.c_str(), body.data(),
                   int(body.size()));
    for (const auto& [name, value] : headers) natsMsgHeader_Add(made, name.c_str(), value.c_str());
    return Owned(made);
  }
  static NatsReply read(const Owned& message) {
    NatsReply reply;
    if (natsMsg_IsNoResponders(message.get())) reply.status = "no_responders";
    const char** names = nullptr;
    int count = 0;
    if (natsMsgHeader_Keys(message.get(), &names, &count) == NATS_OK) {
      for (int i = 0; i < count; ++i) {
        const char* value = nullptr;
        natsMsgHeader_Get(message.get(), names[i], &value);
        reply.headers[names[i]] = value != nullptr ? value : "";
      }
      free(names);
    }
    if (reply.status.empty()) reply.status = reply.header("Gyre-Status");
    if (const auto reason = reply.headers.find("Gyre-Reason"); reason != reply.headers.end())
      reply.reason = reason->second;
    reply.body.assign(natsMsg_GetData(message.get()), size_t(natsMsg_GetDataLength(message.get())));
    return reply;
  }

  natsConnection* connection_ = nullptr;
  natsSubscription* replies_ = nullptr;
  jsCtx* jet_stream_ = nullptr;
  std::string inbox_;
};

}  // namespace gyre_test
