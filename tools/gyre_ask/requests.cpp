#include "requests.hpp"

#include <fmt/format.h>
#include <gyre/runtime/nats/headers.hpp>
#include <gyre/runtime/nats/registry.hpp>

namespace gyre::tools {
namespace {

using namespace nats::detail;

constexpr std::chrono::milliseconds set_up_timeout{5000}, default_timeout{5000};
// A client waits longer than the node, so that the node's own timed_out comes first.
constexpr std::chrono::milliseconds longer{500};

std::string text_of(std::optional<std::string_view> header) { return std::string(header.value_or("")); }

uint32_t read_shards(Connection& connection, const nats::Subjects& subjects) {
  const std::string doing = fmt::format("reading the entry config of the bucket {}", subjects.bucket());
  const JetStream jet_stream = connection.jet_stream(set_up_timeout);
  kvStore* store = nullptr;
  natsStatus status = js_KeyValue(&store, jet_stream.get(), subjects.bucket().c_str());
  const KeyValue bucket(store);
  kvEntry* read = nullptr;
  if (status == NATS_OK) status = kvStore_Get(&read, store, "config");
  const KeyValueEntry entry(read);
  if (status == NATS_NOT_FOUND) {
    throw Error(fmt::format("{}: there is none; give the nodes' --namespace, or start a node in {}", doing,
                            subjects.name()));
  }
  require(status, doing);
  const std::string_view text(static_cast<const char*>(kvEntry_Value(read)), size_t(kvEntry_ValueLen(read)));
  const auto config = NamespaceConfig::read(text);
  if (!config) throw Error(fmt::format("{}: it holds {}", doing, text));
  return config->shards;
}

}  // namespace

NamespaceClient::NamespaceClient(Connection& connection, const std::string& name)
    : connection_(connection), subjects_(name), shards_(read_shards(connection, subjects_)) {}

uint32_t NamespaceClient::shard_of(const ActorRequest& request) const {
  return nats::shard_of(nats::name_in_subject(request.actor), request.key, shards_);
}

Message NamespaceClient::message_of(const ActorRequest& request, const std::string& subject) const {
  const auto made = [](natsStatus status) { require(status, "making a NATS message"); };
  natsMsg* message = nullptr;
  made(natsMsg_Create(&message, subject.c_str(), nullptr, request.body.data(), int(request.body.size())));
  Message owner(message);
  const auto set = [&](const char* name, const std::string& value) {
    made(natsMsgHeader_Set(message, name, value.c_str()));
  };
  set(nats::header::type, nats::type_text(request.type_id));
  set(nats::header::key, std::to_string(request.key));
  if (request.timeout) set(nats::header::timeout, std::to_string(request.timeout->count() * 1000));
  if (!request.id.empty()) set(nats::header::id, request.id);
  return owner;
}

void NamespaceClient::require_sent(natsStatus status, const ActorRequest& request) const {
  if (status == NATS_MAX_PAYLOAD || request.body.size() > connection_.max_payload()) {
    throw Error(
        fmt::format("sending a body of {} bytes to {}: the server takes {} bytes; raise its max_payload",
                    request.body.size(), request.actor, connection_.max_payload()));
  }
  require(status, fmt::format("sending to {} at key {}", request.actor, request.key));
}

ActorReply NamespaceClient::ask(const ActorRequest& request) {
  const uint32_t shard = shard_of(request);
  const Message message = message_of(request, subjects_.request(nats::name_in_subject(request.actor), shard));
  const std::chrono::milliseconds wait = request.timeout.value_or(default_timeout) + longer;
  natsMsg* received = nullptr;
  const natsStatus status =
      natsConnection_RequestMsg(&received, connection_.get(), message.get(), wait.count());
  const Message reply(received);
  if (status == NATS_NO_RESPONDERS) {
    return {nats::status::no_such_node, fmt::format("no node owns shard {} now", shard), {}};
  }
  if (status == NATS_TIMEOUT) return {"no_reply", fmt::format("nothing came within {} ms", wait.count()), {}};
  require_sent(status, request);
  const auto body = body_of(reply.get());
  return {text_of(header_of(reply.get(), nats::header::status)),
          text_of(header_of(reply.get(), nats::header::reason)),
          std::string(reinterpret_cast<const char*>(body.data()), body.size())};
}

void NamespaceClient::tell(const ActorRequest& request) {
  const std::string subject = subjects_.request(nats::name_in_subject(request.actor), shard_of(request));
  const Message message = message_of(request, subject);
  require_sent(natsConnection_PublishMsg(connection_.get(), message.get()), request);
  require_sent(natsConnection_FlushTimeout(connection_.get(), set_up_timeout.count()), request);
}

StoredTell NamespaceClient::tell_durably(const ActorRequest& request) {
  const std::string subject = subjects_.durable(nats::name_in_subject(request.actor), shard_of(request));
  const Message message = message_of(request, subject);
  require(natsMsgHeader_Set(message.get(), nats::header::message_id, request.id.c_str()),
          "making a NATS message");
  const JetStream jet_stream = connection_.jet_stream(set_up_timeout);
  jsPubAck* stored = nullptr;
  const natsStatus status = js_PublishMsg(&stored, jet_stream.get(), message.get(), nullptr, nullptr);
  const std::unique_ptr<jsPubAck, Destroy<jsPubAck_Destroy>> owner(stored);
  if (status == NATS_NO_RESPONDERS) {
    throw Error(fmt::format("storing a durable tell: no stream takes {}; a node makes the stream {}", subject,
                            subjects_.stream()));
  }
  require_sent(status, request);
  return {stored->Stream, stored->Sequence, stored->Duplicate};
}

}  // namespace gyre::tools
