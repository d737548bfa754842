#include <gyre/runtime/nats/durable_tells.hpp>

#include <fmt/format.h>
#include <gyre/runtime/log.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace gyre::nats::detail {
namespace {

constexpr int64_t ms = 1'000'000;
constexpr int64_t tick_ns = 50 * ms;
constexpr int64_t pull_expires_ns = 5000 * ms;
// Beyond the request's own time: until then its end is on the way.
constexpr int64_t pull_grace_ns = 1000 * ms;
constexpr int64_t retry_ns = 100 * ms;
constexpr int64_t drain_timeout_ms = 2000;
// As long as JetStream drops what is published twice.
constexpr int64_t window_ns = 120'000 * ms;
constexpr size_t most_known = 1'000'000;
// The receipt is waited for as long as the handler takes.
constexpr std::chrono::nanoseconds as_long_as_it_takes = std::chrono::nanoseconds::max();
constexpr std::chrono::milliseconds request_timeout{2000}, making_stream_timeout{10000};

int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Refusals that pass: the message may be handled later.
bool is_passing(Status status) {
  switch (status) {
    case Status::ring_full:
    case Status::call_table_full:
    case Status::arena_full:
    case Status::draining:
    case Status::inactive:
    case Status::terminated:
    case Status::engine_failed:
    case Status::buffer_lost:
    case Status::cancelled:
      return true;
    default:
      return false;
  }
}

}  // namespace

DurableTells::DurableTells(std::shared_ptr<Context> context, std::shared_ptr<Requests> requests)
    : context_(std::move(context)),
      requests_(std::move(requests)),
      jet_stream_(context_->connection.jet_stream(request_timeout)) {
  require(make_stream(), fmt::format("creating the stream {}", context_->subjects.stream()));
}

// What is there stays as it is, but for the subjects: they are of another number of shards if the bucket was
// lost and made again.
natsStatus DurableTells::make_stream() {
  const std::string name = context_->subjects.stream();
  // One for each shard: the server refuses a tell to any other.
  std::vector<std::string> names;
  for (const Shard& shard : context_->shards)
    names.push_back(context_->subjects.durable_of_shard(shard.number));
  std::vector<const char*> subjects;
  for (const std::string& subject : names) subjects.push_back(subject.c_str());
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  jsStreamInfo* info = nullptr;
  const natsStatus found = js_GetStreamInfo(&info, jet_stream_.get(), name.c_str(), nullptr, nullptr);
  const std::unique_ptr<jsStreamInfo, Destroy<jsStreamInfo_Destroy>> owner(info);
  if (found == NATS_OK) {
    config = *info->Config;
    if (std::equal(names.begin(), names.end(), config.Subjects, config.Subjects + config.SubjectsLen))
      return NATS_OK;
  } else if (found == NATS_NOT_FOUND) {
    config.Name = name.c_str();
    config.Retention = js_WorkQueuePolicy;
    config.Replicas = context_->options.replicas;
    config.Duplicates = window_ns;
  } else {
    return found;
  }
  config.Subjects = subjects.data();
  config.SubjectsLen = int(subjects.size());
  jsOptions making;
  jsOptions_Init(&making);
  making.Wait = making_stream_timeout.count();
  return found == NATS_OK ? js_UpdateStream(nullptr, jet_stream_.get(), &config, &making, nullptr)
                          : js_AddStream(nullptr, jet_stream_.get(), &config, &making, nullptr);
}

DurableTells::~DurableTells() { stop(); }

void DurableTells::start() {
  pulls_ = std::vector<Pull>(context_->shards.size());
  for (size_t n = 0; n < pulls_.size(); ++n) {
    pulls_[n].tells = this;
    pulls_[n].shard = &context_->shards[n];
  }
  thread_ = std::thread([this] { run(); });
}

void DurableTells::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    due_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  for (Pull& pull : pulls_) pull.subscription.reset();
  ended_.clear();
}

void DurableTells::begin_service(Shard& shard) {
  Pull& pull = pulls_[shard.number];
  natsInbox* inbox = nullptr;
  require(natsInbox_Create(&inbox), "making an inbox");
  std::string name = inbox;
  natsInbox_Destroy(inbox);
  Subscription subscription = context_->connection.subscribe(name, "", receive, &pull);
  const std::lock_guard lock(mutex_);
  pull.inbox = std::move(name);
  pull.subscription = std::move(subscription);
  pull.wanted = 0;
  pull.not_before_ns = 0;
  due_.notify_all();
}

// A request without a listener ends in the server. What it has sent is delayed by take(): the subscription
// lives until then, since JetStream would wait long for what is dropped.
void DurableTells::end_service(Shard& shard) {
  const std::lock_guard lock(mutex_);
  Subscription ended = std::move(pulls_[shard.number].subscription);
  pulls_[shard.number].wanted = 0;
  if (!ended || !context_->connection.connected()) return;
  if (natsSubscription_DrainTimeout(ended.get(), drain_timeout_ms) == NATS_OK) {
    ended_.push_back(std::move(ended));
  }
}

void DurableTells::receive(natsConnection*, natsSubscription* subscription, natsMsg* message, void* pull) {
  Pull& of_shard = *static_cast<Pull*>(pull);
  try {
    of_shard.tells->take(of_shard, subscription, Message(message));
  } catch (const std::exception& error) {  // it is delivered again
    gyre::detail::log(LogLevel::info,
                      [&] { return fmt::format("a durable tell was dropped: {}", error.what()); });
  }
}

/// A tell that the runtime accepted.
struct DurableTells::Tell {
  std::shared_ptr<DurableTells> tells;
  Shard& shard;
  uint64_t life;
  std::string id;
};

void DurableTells::take(Pull& pull, const natsSubscription* subscription, Message message) {
  const char* const reply = reply_subject_of(message.get());
  Delivery delivery;
  if (reply == nullptr || !Delivery::read(reply, delivery)) {
    const auto code = header_of(message.get(), "Status");
    const std::lock_guard lock(mutex_);
    if (subscription != pull.subscription.get()) return;  // of a former service
    if (!code) {
      // The reply to CONSUMER.INFO.
      const auto body = body_of(message.get());
      const std::string_view info(reinterpret_cast<const char*>(body.data()), body.size());
      if (!is_error(info)) {
        // A delivery may overtake the info that the consumer had it.
        pull.held_back = pull.wanted != 0 && pull.silent && undelivered_in(info) != 0;
        return;
      }
    }
    // The request ended: its time is over (408), JetStream is not there (503), the consumer is gone (409,
    // 404). Or the server has no such consumer: then it answers no request for its messages.
    pull.wanted = 0;
    pull.held_back = pull.held_back && code == "408";
    if (code != "408" || pull.held_back) {
      pull.not_before_ns = lease_clock_ns() + retry_ns;
      pull.has_consumer = false;
    }
    due_.notify_all();
    return;
  }
  context_->counts.add(&GatewayBooks::durable_received);
  if (delivery.number > 1) context_->counts.add(&GatewayBooks::durable_redelivered);
  Shard& shard = *pull.shard;
  {
    const std::lock_guard lock(mutex_);
    if (subscription == pull.subscription.get()) {
      pull.silent = pull.held_back = false;
      if (pull.wanted > 0 && --pull.wanted == 0) due_.notify_all();
    }
  }
  uint64_t life = 0;  // in which the node owns the shard
  {
    const std::lock_guard lock(shard.mutex);
    if (shard.state == Shard::State::serving && context_->lease.valid() && context_->lease_is_confirmed())
      life = context_->lease.life();
    if (life != 0)
      shard.in_flight.fetch_add(1, std::memory_order_relaxed);  // the lock orders it before hold()
  }
  const auto end_here = [&](Verdict verdict) {
    tell_server(reply, verdict);
    count(verdict);
    if (life != 0)
      shard.in_flight.fetch_sub(1, std::memory_order_release);  // pairs with the load of who waits for 0
  };
  if (life == 0) {
    end_here(Verdict::delayed);
    return;
  }
  const ParsedRequest request = parse_request(*context_, shard, message.get());
  if (!request.status.empty() || request.headers.id.empty()) {
    end_here(Verdict::refused);
  } else if (is_known(message.get(), request.headers.id, shard.number, life)) {
    shard.in_flight.fetch_sub(1, std::memory_order_release);  // as in end_here
  } else {
    give_to_actor(pull, request, delivery, life);
  }
}

// Returns true if the id is in hand or was, and sees to the delivery; otherwise the id is in hand from now
// on. What a former life has in hand is not known: its effect ends with that life's actors.
bool DurableTells::is_known(natsMsg* message, std::string_view id, uint32_t shard, uint64_t life) {
  const std::string name(id);
  const char* const reply = reply_subject_of(message);
  const std::lock_guard lock(mutex_);
  if (life != context_->lease.life()) {
    tell_server(reply, Verdict::delayed);
    count(Verdict::delayed);
    return true;
  }
  if (known_life_ != life) {
    known_life_ = life;
    done_.clear();
    done_order_.clear();
  }
  if (const auto done = done_.find(name); done != done_.end()) {
    context_->counts.add(&GatewayBooks::durable_duplicates);
    tell_server(reply, done->second);
    return true;
  }
  InHand& in_hand = in_hand_[name];
  const bool added = in_hand.life != life;
  if (added) {
    in_hand.life = life;
    in_hand.deliveries.clear();
    in_hand.progress_ns = lease_clock_ns() + context_->options.acknowledge_wait.count() * ms / 3;
    ++pulls_[shard].in_hand;
  } else {
    context_->counts.add(&GatewayBooks::durable_duplicates);
  }
  in_hand.deliveries.push_back(reply);
  return !added;
}

void DurableTells::give_to_actor(Pull& pull, const ParsedRequest& request, const Delivery& delivery,
                                 uint64_t life) {
  Shard& shard = *pull.shard;
  const Tell given{shared_from_this(), shard, life, std::string(request.headers.id)};
  ReceiptOptions options{as_long_as_it_takes};
  if (request.headers.timeout_us != 0) {
    const int64_t left_ns = int64_t(request.headers.timeout_us) * 1000 - (unix_ns() - delivery.stored_ns);
    if (left_ns <= 0) {
      conclude(given, Verdict::expired, false);
      return;
    }
    options.expires_after = std::chrono::nanoseconds(left_ns);
  }
  requests_->note_actor(shard, request);
  auto tell = std::make_unique<Tell>(given);
  auto sent = context_->client.send_tell_with_receipt_by_number(
      request.numbers, request.headers.key, request.body, options, gyre::detail::WhenFull::refuse);
  if (!sent) {
    const bool passes = is_passing(sent.error().status);
    conclude(given, passes ? Verdict::delayed : Verdict::refused, passes);
    return;
  }
  std::move(sent.value()).then([tell = std::move(tell)](Result<Receipt> outcome) {
    Verdict verdict = Verdict::processed;
    if (!outcome) {
      const Status status = outcome.error().status;
      verdict = status == Status::expired ? Verdict::expired
                : is_passing(status)      ? Verdict::delayed
                                          : Verdict::failed;
    }
    tell->tells->conclude(*tell, verdict, verdict == Verdict::delayed);
  });
}

// Ends what is_known() began. What ends after its life is delivered again: its effect ended with the life.
// @param forget  the id may be handled again: it was not handled, or nobody knows
void DurableTells::conclude(const Tell& tell, Verdict verdict, bool forget) {
  std::vector<std::string> deliveries;
  {
    const std::lock_guard lock(mutex_);
    const bool lives = tell.life == context_->lease.life() && context_->lease.valid();
    if (!lives) verdict = Verdict::delayed;
    if (const auto in_hand = in_hand_.find(tell.id);
        in_hand != in_hand_.end() && in_hand->second.life == tell.life) {
      deliveries = std::move(in_hand->second.deliveries);
      in_hand_.erase(in_hand);
      if (lives && !forget && done_.emplace(tell.id, verdict).second) {
        done_order_.emplace_back(lease_clock_ns(), tell.id);
      }
    }
    if (--pulls_[tell.shard.number].in_hand == context_->options.durable_in_flight / 2) due_.notify_all();
  }
  for (const std::string& reply : deliveries) tell_server(reply, verdict);
  count(verdict);
  tell.shard.in_flight.fetch_sub(1, std::memory_order_release);  // pairs with the load of who waits for 0
}

// What does not reach the server is delivered again, and known then.
void DurableTells::tell_server(const std::string& reply_subject, Verdict verdict) {
  switch (verdict) {
    case Verdict::processed:
      context_->connection.publish(reply_subject, "+ACK");
      return;
    case Verdict::failed:
    case Verdict::refused:
    case Verdict::expired:
      context_->connection.publish(reply_subject, "+TERM");
      return;
    case Verdict::delayed:
      context_->connection.publish(reply_subject, fmt::format("-NAK {{\"delay\": {}}}", retry_ns));
      return;
  }
}

void DurableTells::count(Verdict verdict) {
  constexpr std::array counts{&GatewayBooks::durable_processed, &GatewayBooks::durable_failed,
                              &GatewayBooks::durable_refused, &GatewayBooks::durable_expired,
                              &GatewayBooks::durable_delayed};
  context_->counts.add(counts[size_t(verdict)]);
}

void DurableTells::run() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    const int64_t now = lease_clock_ns();
    const uint64_t reconnects = context_->connection.events().reconnects.load(std::memory_order_acquire);
    if (reconnects != reconnects_seen_) {  // the server that had the requests may be gone
      reconnects_seen_ = reconnects;
      for (Pull& pull : pulls_) pull.wanted = 0;
    }
    for (Pull& pull : pulls_) {
      if (stopped_ || !pull.subscription || now < pull.not_before_ns) continue;
      if (!pull.has_consumer) {
        const bool renew = std::exchange(pull.held_back, false);
        lock.unlock();
        const bool made = make_consumer(pull, renew);
        lock.lock();
        pull.has_consumer = made;
        if (!made) pull.not_before_ns = lease_clock_ns() + retry_ns;
      }
      if (pull.has_consumer && pull.subscription) pull_more(pull, now);
    }
    std::erase_if(ended_, [](const Subscription& ended) { return !natsSubscription_IsValid(ended.get()); });
    report_progress(now);
    forget_old(now);
    due_.wait_for(lock, std::chrono::nanoseconds(tick_ns));
  }
}

void DurableTells::pull_more(Pull& pull, int64_t now) {
  const uint32_t most = context_->options.durable_in_flight;
  if (pull.wanted != 0 && now < pull.expires_ns + pull_grace_ns) {
    const bool half_over = now >= pull.expires_ns - pull_expires_ns / 2;
    if (half_over && !pull.asked_for_info)
      pull.silent = pull.asked_for_info = ask_jet_stream(pull, "CONSUMER.INFO", {});
    return;
  }
  if (pull.in_hand > most / 2) return;
  pull.wanted = most - pull.in_hand;
  pull.expires_ns = now + pull_expires_ns;
  pull.asked_for_info = pull.silent = pull.held_back = false;
  const std::string request = fmt::format("{{\"batch\": {}, \"expires\": {}}}", pull.wanted, pull_expires_ns);
  if (!ask_jet_stream(pull, "CONSUMER.MSG.NEXT", request)) {
    pull.wanted = 0;
    pull.not_before_ns = now + retry_ns;
  }
}

// Sends a request about the shard's consumer. The reply comes to the pull's inbox.
bool DurableTells::ask_jet_stream(const Pull& pull, std::string_view what, std::string_view request) {
  const std::string subject =
      fmt::format("$JS.API.{}.{}.shard_{}", what, context_->subjects.stream(), pull.shard->number);
  return context_->connection.connected() &&
         natsConnection_PublishRequest(context_->connection.get(), subject.c_str(), pull.inbox.c_str(),
                                       request.data(), int(request.size())) == NATS_OK;
}

// @param renew  delete the consumer first. The new one delivers again all that is in the stream. What is in
//               hand is known then, and an acknowledgement to the old one's reply subject removes its tell.
bool DurableTells::make_consumer(const Pull& pull, bool renew) {
  const std::string name = fmt::format("shard_{}", pull.shard->number);
  const std::string filter = context_->subjects.durable_of_shard(pull.shard->number);
  jsConsumerConfig config;
  jsConsumerConfig_Init(&config);
  config.Durable = name.c_str();
  config.FilterSubject = filter.c_str();
  config.AckPolicy = js_AckExplicit;
  config.AckWait = context_->options.acknowledge_wait.count() * ms;
  config.MaxDeliver = -1;
  config.MaxAckPending = 1000;
  const std::string stream = context_->subjects.stream();
  jsErrCode error = jsErrCode(0);
  if (renew && js_DeleteConsumer(jet_stream_.get(), stream.c_str(), name.c_str(), nullptr, &error) == NATS_OK)
    context_->counts.add(&GatewayBooks::durable_consumers_renewed);
  if (js_AddConsumer(nullptr, jet_stream_.get(), stream.c_str(), &config, nullptr, &error) == NATS_OK)
    return true;
  if (error == JSStreamNotFoundErr) make_stream();  // servers that have lost their data have lost it
  jsConsumerInfo* info = nullptr;
  const natsStatus found =
      js_GetConsumerInfo(&info, jet_stream_.get(), stream.c_str(), name.c_str(), nullptr, nullptr);
  const std::unique_ptr<jsConsumerInfo, Destroy<jsConsumerInfo_Destroy>> owner(info);
  return found == NATS_OK;
}

// A handler may take longer than JetStream waits.
void DurableTells::report_progress(int64_t now) {
  for (auto& [id, in_hand] : in_hand_) {
    if (now < in_hand.progress_ns || in_hand.life != context_->lease.life()) continue;
    in_hand.progress_ns = now + context_->options.acknowledge_wait.count() * ms / 3;
    context_->connection.publish(in_hand.deliveries.back(), "+WPI");
  }
}

void DurableTells::forget_old(int64_t now) {
  while (!done_order_.empty() &&
         (done_order_.front().first + window_ns < now || done_order_.size() > most_known)) {
    done_.erase(done_order_.front().second);
    done_order_.pop_front();
  }
}

}  // namespace gyre::nats::detail
