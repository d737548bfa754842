#include "nats/requests.hpp"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <unistd.h>
#include <gyre/device/builtin/echo.hpp>
#include <gyre/messages/echo.official.hpp>
#include <gyre/runtime/nats/headers.hpp>
#include <gyre/runtime/nats/subject.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>
#include <thread>

#include "gyre_rows.hpp"
#include "nats/processes.hpp"

namespace gyre::bench {

namespace {

using Clock = std::chrono::steady_clock;
using nats::detail::Message;
using nats::detail::require;

constexpr int64_t timeout_ms = 10'000;
constexpr const char* echo_subject = "echo";
constexpr const char* actor = "gyre_actors_Echo";
constexpr size_t words_before_payload = 4;  // table, root, sequence, list

void echo(natsConnection* connection, natsSubscription*, natsMsg* message, void*) {
  natsConnection_Publish(connection, natsMsg_GetReply(message), natsMsg_GetData(message),
                         natsMsg_GetDataLength(message));
  natsMsg_Destroy(message);
}

}  // namespace

const char* name(Answerer answerer) {
  return answerer == Answerer::echo ? "bare" : answerer == Answerer::node ? "gateway" : "bare, headers";
}

NatsConnection connect_to_nats(const std::string& url) {
  natsOptions* made = nullptr;
  require(natsOptions_Create(&made), "setting the options of a NATS connection");
  const std::unique_ptr<natsOptions, nats::detail::Destroy<natsOptions_Destroy>> options(made);
  natsOptions_SetURL(made, url.c_str());
  natsOptions_SetSendAsap(made, true);
  natsConnection* connection = nullptr;
  require(natsConnection_Connect(&connection, made), "connecting to " + url);
  return NatsConnection(connection);
}

void echo_on_nats(const std::string& url) {
  const NatsConnection connection = connect_to_nats(url);
  natsSubscription* subscription = nullptr;
  require(natsConnection_Subscribe(&subscription, connection.get(), echo_subject, echo, nullptr),
          "subscribing to the requests to echo");
  for (;;) pause();
}

EchoBody::EchoBody(std::string row, uint32_t size)
    : message_(std::move(row), 1 + (size - echo_overhead_bytes) / sizeof(uint64_t)) {
  capnp::MallocMessageBuilder builder(size / sizeof(capnp::word) + 8);
  builder.initRoot<messages::EchoRequest>().initPayload(uint32_t(message_.words().size() - 1));
  const auto flat = capnp::messageToFlatArray(builder);
  const auto bytes = flat.asBytes();
  stream_.resize(bytes.size() / sizeof(uint64_t));
  std::memcpy(stream_.data(), bytes.begin(), bytes.size());
}

void EchoBody::next() {
  message_.next();
  const std::span<const uint64_t> words = message_.words();
  stream_[2] = words[0];
  std::copy(words.begin() + 1, words.end(), stream_.begin() + words_before_payload);
}

void EchoBody::expect(Answerer answerer, natsMsg* reply) const {
  if (answerer == Answerer::node) {
    const auto status = nats::detail::header_of(reply, nats::header::status);
    if (status != nats::status::ok) {
      throw Error(
          fmt::format("{}: the reply's status is {}: {}", message_.name(), status.value_or("missing"),
                      nats::detail::header_of(reply, nats::header::reason).value_or("no reason is given")));
    }
  }
  const std::span<const std::byte> got = nats::detail::body_of(reply);
  if (got.size() != bytes().size() || std::memcmp(got.data(), bytes().data(), got.size()) != 0) {
    throw Error(fmt::format(
        "{}: a reply of {} bytes is not the request's {} bytes: a stale, torn or misplaced reply, "
        "so no figure of this run counts; please report it",
        message_.name(), got.size(), bytes().size()));
  }
}

RequestMaker::RequestMaker(Answerer answerer, uint64_t key)
    : headers_(answerer != Answerer::echo),
      subject_(answerer == Answerer::node
                   ? nats::Subjects(node_namespace).request(actor, nats::shard_of(actor, key, node_shards))
                   : echo_subject),
      key_(std::to_string(key)) {}

Message RequestMaker::make(const EchoBody& body, const char* reply) const {
  static const std::string type = nats::type_text(capnp::typeId<messages::EchoRequest>());
  const std::span<const std::byte> bytes = body.bytes();
  natsMsg* made = nullptr;
  require(natsMsg_Create(&made, subject_.c_str(), reply, reinterpret_cast<const char*>(bytes.data()),
                         int(bytes.size())),
          "making a request");
  Message message(made);
  if (headers_) {
    natsMsgHeader_Set(made, nats::header::type, type.c_str());
    natsMsgHeader_Set(made, nats::header::key, key_.c_str());
  }
  return message;
}

void wait_until_answered(natsConnection* connection, Answerer answerer, uint64_t key,
                         const std::function<void()>& still_there) {
  const RequestMaker maker(answerer, key);
  EchoBody body("the first request", 64);
  for (const auto until = Clock::now() + std::chrono::minutes(1);;) {
    still_there();
    body.next();
    natsMsg* got = nullptr;
    const natsStatus status =
        natsConnection_RequestMsg(&got, connection, maker.make(body, nullptr).get(), timeout_ms);
    const Message reply(got);
    const bool over = Clock::now() > until;
    if (status == NATS_OK) {
      const bool refused = answerer == Answerer::node &&
                           nats::detail::header_of(got, nats::header::status) == nats::status::no_such_node;
      if (!refused || over) return body.expect(answerer, got);
    } else if (over || status != NATS_NO_RESPONDERS) {
      require(status, fmt::format("asking {} for the first time", name(answerer)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Row measure_requests(const Plan& plan, natsConnection* connection, Answerer answerer, uint32_t size) {
  Row row{.name = name(answerer), .transport = "nats", .size = size, .wait = "library"};
  const RequestMaker maker(answerer, 0);
  EchoBody body(fmt::format("{} at {} bytes", row.name, size), size);
  row.record(measure(
      plan, [&] { body.next(); },
      [&] {
        const Message request = maker.make(body, nullptr);
        natsMsg* got = nullptr;
        const natsStatus status = natsConnection_RequestMsg(&got, connection, request.get(), timeout_ms);
        const Message reply(got);
        if (status != NATS_OK) require(status, "asking for an echo");
        body.expect(answerer, got);
      }));
  return row;
}

namespace {

// Keeps requests in flight: each reply is checked and followed by the slot's next request, by the library's
// thread.
class Stream {
 public:
  Stream(natsConnection* connection, Answerer answerer, uint32_t size, uint32_t in_flight, uint64_t messages)
      : connection_(connection), answerer_(answerer), warm_up_(messages / 10), total_(messages + warm_up_) {
    natsInbox* inbox = nullptr;
    require(natsInbox_Create(&inbox), "making an inbox");
    inbox_ = std::string(inbox) + ".";
    natsInbox_Destroy(inbox);
    for (uint32_t i = 0; i < in_flight; ++i) {
      slots_.push_back({RequestMaker(answerer, i),
                        EchoBody(fmt::format("{}, slot {}", name(answerer), i), size),
                        inbox_ + std::to_string(i)});
    }
    natsSubscription* made = nullptr;
    require(natsConnection_Subscribe(&made, connection, (inbox_ + "*").c_str(), receive, this),
            "subscribing to replies");
    subscription_.reset(made);
    require(natsSubscription_SetOnCompleteCB(made, complete, this), "subscribing to replies");
  }
  ~Stream() {
    subscription_.reset();
    completed_.get_future().wait();  // no thread calls receive() any more
  }

  double run() {
    for (Slot& slot : slots_) send(slot);
    std::unique_lock lock(mutex_);
    ended_.wait_for(lock, std::chrono::minutes(5), [this] { return over_; });
    if (!over_) throw Error(fmt::format("{} at a high rate: replies are missing", name(answerer_)));
    if (!failure_.empty()) throw Error(failure_);
    return double(total_ - warm_up_) / std::chrono::duration<double>(end_ - begin_).count();
  }

 private:
  struct Slot {
    RequestMaker maker;
    EchoBody body;
    std::string reply;
  };

  static void receive(natsConnection*, natsSubscription*, natsMsg* message, void* stream) {
    const Message reply(message);
    static_cast<Stream*>(stream)->take(reply.get());
  }
  static void complete(void* stream) { static_cast<Stream*>(stream)->completed_.set_value(); }
  void take(natsMsg* reply) {
    if (received_ == total_ || !failure_.empty()) return;
    try {
      Slot& slot = slots_.at(std::strtoul(natsMsg_GetSubject(reply) + inbox_.size(), nullptr, 10));
      slot.body.expect(answerer_, reply);
      ++received_;
      if (received_ == warm_up_) begin_ = Clock::now();
      if (received_ == total_) return end({});
      send(slot);
    } catch (const std::exception& error) {
      end(error.what());
    }
  }
  void send(Slot& slot) {
    if (sent_.fetch_add(1, std::memory_order_relaxed) >= total_) return;  // a count, it orders nothing
    slot.body.next();
    const natsStatus status =
        natsConnection_PublishMsg(connection_, slot.maker.make(slot.body, slot.reply.c_str()).get());
    if (status != NATS_OK) require(status, "publishing a request");
  }
  void end(std::string failure) {
    const std::lock_guard lock(mutex_);
    end_ = Clock::now();
    failure_ = std::move(failure);
    over_ = true;
    ended_.notify_one();
  }

  natsConnection* const connection_;
  const Answerer answerer_;
  const uint64_t warm_up_, total_;
  std::string inbox_;
  std::vector<Slot> slots_;
  std::atomic<uint64_t> sent_{0};
  uint64_t received_ = 0;  // the library's thread's
  std::mutex mutex_;       // of the next four, once over
  std::condition_variable ended_;
  Clock::time_point begin_, end_;
  std::string failure_;
  bool over_ = false;
  nats::detail::Subscription subscription_;
  std::promise<void> completed_;
};

}  // namespace

double measure_rate(natsConnection* connection, Answerer answerer, uint32_t size, uint32_t in_flight,
                    uint64_t messages) {
  return Stream(connection, answerer, size, in_flight, messages).run();
}

}  // namespace gyre::bench
