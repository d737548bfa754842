// Durable tells: pulled from JetStream, given to actors, acknowledged once their handler has ended.
#pragma once

#include <gyre/runtime/nats/delivery.hpp>
#include <gyre/runtime/nats/requests.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

namespace gyre::nats::detail {

/// Pulls the durable tells of the shards that the node owns. Thread-safe. Asks in flight keep it alive.
///
/// Each shard has one pull request at a time: for as many tells as it has room for. A request that JetStream
/// does not answer ends with its time.
///
/// A server that was killed may come back with a consumer's state that is older than its stream. The consumer
/// then wants to deliver tells that the stream no longer has. nats-server 2.9 makes one attempt per pull
/// request and per new tell, and an attempt with such a tell delivers nothing: the others may wait forever.
/// So, half-way through a pull request, CONSUMER.INFO asks whether the consumer has tells. If it has, and
/// delivers none until the request ends, it is deleted and created again. The info comes to the pull's inbox:
/// nothing waits for it.
class DurableTells : public std::enable_shared_from_this<DurableTells> {
 public:
  /// Creates the stream unless it is there.
  /// @throws Error
  DurableTells(std::shared_ptr<Context> context, std::shared_ptr<Requests> requests);
  ~DurableTells();

  /// Begins to pull a shard's tells, and ends. Called by the membership's thread.
  void begin_service(Shard& shard);
  void end_service(Shard& shard);
  /// Starts the thread that sends pull requests; ends it. After stop() nothing is pulled.
  void start();
  void stop();

 private:
  // What JetStream is told of a delivery.
  enum class Verdict { processed, failed, refused, expired, delayed };
  struct Pull {
    DurableTells* tells = nullptr;
    Shard* shard = nullptr;
    Subscription subscription;  // of the inbox; null: the shard is not served
    std::string inbox;
    bool has_consumer = false;
    bool asked_for_info = false;  // of the consumer, during this request
    bool silent = false;          // nothing was delivered since the info was asked for
    bool held_back = false;       // the consumer has tells, and has delivered none since it was asked
    uint32_t wanted = 0;          // tells that the request in the server has still to bring
    uint32_t in_hand = 0;         // tells with actors
    int64_t expires_ns = 0;       // of the request
    int64_t not_before_ns = 0;    // of the next request, after a refusal
  };
  struct InHand {
    uint64_t life = 0;
    std::vector<std::string> deliveries;  // their reply subjects
    int64_t progress_ns = 0;              // when JetStream is told next that it is in hand
  };
  struct Tell;

  static void receive(natsConnection*, natsSubscription*, natsMsg* message, void* pull);
  void take(Pull& pull, const natsSubscription* subscription, Message message);
  void give_to_actor(Pull& pull, const ParsedRequest& request, const Delivery& delivery, uint64_t life);
  void conclude(const Tell& tell, Verdict verdict, bool forget);
  void tell_server(const std::string& reply_subject, Verdict verdict);
  void count(Verdict verdict);
  bool is_known(natsMsg* message, std::string_view id, uint32_t shard, uint64_t life);
  void run();
  void pull_more(Pull& pull, int64_t now);
  bool ask_jet_stream(const Pull& pull, std::string_view what, std::string_view request);
  natsStatus make_stream();
  bool make_consumer(const Pull& pull, bool renew);
  void report_progress(int64_t now);
  void forget_old(int64_t now);

  const std::shared_ptr<Context> context_;
  const std::shared_ptr<Requests> requests_;
  JetStream jet_stream_;

  std::mutex mutex_;  // of all below
  std::condition_variable due_;
  std::vector<Pull> pulls_;          // by shard; never resized
  std::vector<Subscription> ended_;  // of former services: their last messages are still on the way
  std::unordered_map<std::string, InHand> in_hand_;
  uint64_t known_life_ = 0;  // the life that the next two are of
  std::unordered_map<std::string, Verdict> done_;
  std::deque<std::pair<int64_t, std::string>> done_order_;  // by when they ended
  uint64_t reconnects_seen_ = 0;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace gyre::nats::detail
