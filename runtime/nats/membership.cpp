#include <gyre/runtime/nats/membership.hpp>

#include <fmt/format.h>
#include <gyre/runtime/log.hpp>

#include <algorithm>
#include <random>
#include <utility>

namespace gyre::nats::detail {
namespace {

constexpr uint32_t default_shards = 64;
constexpr uint32_t default_lease_ms = 3000;
constexpr uint32_t default_clock_error_ms = 500;
constexpr std::chrono::milliseconds set_up_timeout{5000};
constexpr int64_t ms = 1'000'000;
// How long the thread waits for an entry before it looks whether something is due.
constexpr int64_t idle_wait_ns = 20 * ms;
constexpr int64_t move_wait_ns = 1 * ms;
// How long a shard that was handed over waits for its new owner to listen, beyond a lease.
constexpr int64_t listen_timeout_ns = 5000 * ms;
// How long is_free() waits for an owner's answer.
constexpr std::chrono::milliseconds answer_timeout{100};
// The actor's name in the subject of that request.
constexpr const char* no_actor = "_";

// Of a life, or of a queue group.
uint64_t new_id() {
  std::random_device random;
  uint64_t id = 0;
  while (id == 0) id = uint64_t(random()) << 32 | random();
  return id;
}

std::string key_of(uint32_t shard) { return fmt::format("shard.{}", shard); }

void note(std::string text) {
  gyre::detail::log(LogLevel::info, [&] { return text; });
}

KeyValueEntry entry_at(kvStore* bucket, const std::string& key, natsStatus& status) {
  kvEntry* entry = nullptr;
  status = kvStore_Get(&entry, bucket, key.c_str());
  return KeyValueEntry(entry);
}

// The actor was not stopped. After any other failure it is gone, or was never there.
bool is_full_or_late(Status status) {
  return status == Status::timed_out || status == Status::ring_full || status == Status::call_table_full;
}

std::string_view value_of(const Message& entry) {
  return {natsMsg_GetData(entry.get()), size_t(natsMsg_GetDataLength(entry.get()))};
}
std::string_view value_of(kvEntry* entry) {
  return {static_cast<const char*>(kvEntry_Value(entry)), size_t(kvEntry_ValueLen(entry))};
}

}  // namespace

// Nothing may be thrown into the library.
void Membership::take(natsConnection*, natsSubscription*, natsMsg* message, void* closure) {
  const Closure& of_shard = *static_cast<const Closure*>(closure);
  try {
    of_shard.requests->take(*of_shard.shard, of_shard.group, Message(message));
  } catch (const std::exception& error) {
    note(fmt::format("a request for shard {} was dropped: {}", of_shard.shard->number, error.what()));
  }
}

Membership::Membership(std::shared_ptr<Context> context, std::shared_ptr<Requests> requests,
                       Listener listener, std::function<EngineHealth()> health)
    : context_(std::move(context)),
      requests_(std::move(requests)),
      listener_(std::move(listener)),
      health_(std::move(health)),
      name_(context_->options.node),
      key_("node." + name_) {
  jet_stream_ = context_->connection.jet_stream(set_up_timeout);
  open_bucket();
  const GatewayOptions& options = context_->options;
  agree_on_config(
      {options.shards, uint32_t(options.lease.count()), uint32_t(options.clock_error.count()), {}});
  // From here on a renewal that gets no answer is tried again before the lease ends.
  bucket_.reset();
  jet_stream_ = context_->connection.jet_stream(request_timeout());
  open_bucket();
  context_->shards = std::vector<Shard>(config_.shards);
  seats_ = std::vector<Seat>(config_.shards);
  for (uint32_t n = 0; n < config_.shards; ++n) context_->shards[n].number = n;
  listener_.prepare();
  join();
}

Membership::~Membership() { stop(); }

void Membership::start() {
  thread_ = std::thread([this] { run(); });
}

void Membership::open_bucket() {
  const std::string name = context_->subjects.bucket();
  kvStore* bucket = nullptr;
  natsStatus status = js_KeyValue(&bucket, jet_stream_.get(), name.c_str());
  if (status == NATS_NOT_FOUND) {
    kvConfig config;
    kvConfig_Init(&config);
    config.Bucket = name.c_str();
    config.History = 1;
    config.Replicas = int(context_->options.replicas);
    status = js_CreateKeyValue(&bucket, jet_stream_.get(), &config);
  }
  require(status,
          fmt::format("opening the bucket {}; the server must run with JetStream (nats-server -js)", name));
  bucket_.reset(bucket);
}

// Returns when the bucket was made, by the server's clock; 0: there is none; -1: the server did not say.
int64_t Membership::bucket_made_ns() const {
  jsStreamInfo* info = nullptr;
  const std::string stream = "KV_" + context_->subjects.bucket();
  const natsStatus status = js_GetStreamInfo(&info, jet_stream_.get(), stream.c_str(), nullptr, nullptr);
  const std::unique_ptr<jsStreamInfo, Destroy<jsStreamInfo_Destroy>> owner(info);
  if (status == NATS_NOT_FOUND) return 0;
  return status == NATS_OK ? info->Created : -1;
}

// Returns an entry as the stream's leader has it; null unless `status` is NATS_OK. kvStore_Get() may ask a
// server that does not have it yet. Call it after bucket_made_ns(): nats-server 2.9 ends if it is asked while
// it makes the stream.
Message Membership::newest_message(const std::string& key, natsStatus& status) const {
  const std::string bucket = context_->subjects.bucket();
  natsMsg* message = nullptr;
  status = js_GetLastMsg(&message, jet_stream_.get(), ("KV_" + bucket).c_str(),
                         fmt::format("$KV.{}.{}", bucket, key).c_str(), nullptr, nullptr);
  return Message(message);
}

// The bucket's own time is not enough: if its only server loses its disk, a cluster makes it again, empty,
// with the old time.
Membership::Bucket Membership::look_at_bucket() const {
  const int64_t made_ns = bucket_made_ns();
  if (made_ns < 0) return Bucket::unknown;
  if (made_ns == 0 || made_ns != bucket_made_ns_) return Bucket::lost;
  if (config_stored_ns_ == 0) return Bucket::kept;
  natsStatus status = NATS_OK;
  const Message config = newest_message("config", status);
  if (status == NATS_NOT_FOUND) return Bucket::lost;
  if (status != NATS_OK) return Bucket::unknown;
  return natsMsg_GetTime(config.get()) == config_stored_ns_ ? Bucket::kept : Bucket::lost;
}

// @param asked  what the namespace must have; 0: whatever it has
void Membership::agree_on_config(const NamespaceConfig& asked) {
  const auto or_default = [](uint32_t value, uint32_t otherwise) { return value != 0 ? value : otherwise; };
  const NamespaceConfig wanted{
      or_default(asked.shards, default_shards), or_default(asked.lease_ms, default_lease_ms),
      or_default(asked.clock_error_ms, default_clock_error_ms), context_->actors.list()};
  uint64_t revision = 0;
  if (kvStore_CreateString(&revision, bucket_.get(), "config", wanted.text().c_str()) == NATS_OK) {
    config_ = wanted;
    return;
  }
  natsStatus status = NATS_OK;
  const KeyValueEntry entry = entry_at(bucket_.get(), "config", status);
  require(status, fmt::format("reading the entry config of the bucket {}", context_->subjects.bucket()));
  const auto there = NamespaceConfig::read(value_of(entry.get()));
  if (!there) {
    throw Error(fmt::format(
        "joining the namespace {}: the entry config of the bucket {} is \"{}\", which is none; "
        "delete the bucket if no node uses it",
        context_->subjects.name(), context_->subjects.bucket(), header_text(value_of(entry.get()), 100)));
  }
  std::string problems;
  const auto wrong = [&](const std::string& problem) {
    problems += (problems.empty() ? "" : "\n") + problem;
  };
  const auto compare = [&](const char* what, uint32_t given, uint32_t has) {
    if (given != 0 && given != has) {
      wrong(fmt::format("{} is {}, but the namespace {} has {}; leave the option out", what, given,
                        context_->subjects.name(), has));
    }
  };
  compare("the number of shards", asked.shards, there->shards);
  compare("the lease in ms", asked.lease_ms, there->lease_ms);
  compare("the clock error in ms", asked.clock_error_ms, there->clock_error_ms);
  if (there->actors != wanted.actors) {
    wrong(fmt::format("this node has the actors {}, but the namespace {} serves {}; use another namespace",
                      wanted.actors, context_->subjects.name(), there->actors));
  }
  if (!problems.empty()) throw BadOptions(problems);
  config_ = *there;
}

// Begins the first life. A node of this name that died is waited for until its lease is over.
void Membership::join() {
  engine_ = health_();
  const int64_t until_ns = lease_clock_ns() + set_up_timeout.count() * ms;
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(20))) {
    bucket_made_ns_ = bucket_made_ns();
    if (bucket_made_ns_ <= 0) {
      if (lease_clock_ns() < until_ns) continue;
      throw Error(fmt::format("asking when the bucket {} was made: the server does not say; look at its log",
                              context_->subjects.bucket()));
    }
    if (try_to_begin_life()) return;
    natsStatus status = NATS_OK;
    entry_at(bucket_.get(), key_, status);
    require(status, fmt::format("reading the entry {} of the bucket {}", key_, context_->subjects.bucket()));
    if (namesake_lives_) {
      throw Error(
          fmt::format("joining the namespace {}: a node named {} is alive; give this one another name",
                      context_->subjects.name(), name_));
    }
  }
}

// Begins a life after another one ended. Servers that have lost their data have lost the bucket: it is made
// again with the numbers that the node has. If it has others by then, the node cannot serve.
void Membership::join_again() {
  const int64_t now = lease_clock_ns();
  if (now - tried_ns_ < int64_t(config_.lease_ms) * ms / 30) return;
  tried_ns_ = now;
  if (!context_->connection.connected()) return;
  const Bucket bucket = bucket_ ? look_at_bucket() : Bucket::lost;
  if (bucket == Bucket::unknown) return;
  if (bucket == Bucket::lost) {
    watcher_.reset();
    bucket_.reset();
    bucket_made_ns_ = 0;  // so that all of it is done again if it is not done to the end
    open_bucket();
    agree_on_config(config_);
    const int64_t made_ns = bucket_made_ns();
    if (made_ns <= 0) return;
    bucket_made_ns_ = made_ns;
    config_stored_ns_ = 0;
    nodes_.clear();  // revisions begin anew
    for (Seat& seat : seats_) {
      seat.entry.reset();
      seat.known = {};
    }
    watch();
  }
  if (try_to_begin_life()) tried_ns_ = 0;
}

// Writes that the life in the node's own entry is over if it is another process's, and was not renewed for as
// long as a lease and the clock error.
void Membership::wait_for_namesake(uint64_t revision) {
  const int64_t now = lease_clock_ns();
  if (revision != namesake_revision_) {
    namesake_lives_ = namesake_revision_ != 0;
    namesake_revision_ = revision;
    namesake_seen_ns_ = now;
  } else if (now - namesake_seen_ns_ > takeover_wait_ns()) {
    const NodeEntry gone;
    put(key_, gone.text(), revision);
  }
}

// Writes an entry in place of `revision` (0: there is none), which becomes the new one. Returns false if it
// was not written, or if that is unknown.
bool Membership::put(std::string_view key, const std::string& text, uint64_t& revision) {
  if (!context_->connection.connected()) return false;
  uint64_t written = 0;
  const std::string name(key);
  const natsStatus status =
      revision == 0 ? kvStore_CreateString(&written, bucket_.get(), name.c_str(), text.c_str())
                    : kvStore_UpdateString(&written, bucket_.get(), name.c_str(), text.c_str(), revision);
  if (status != NATS_OK) return false;
  revision = written;
  return true;
}

bool Membership::put(const Shard& shard, Seat& seat, const ShardEntry& entry) {
  if (!put(key_of(shard.number), entry.text(), seat.known.revision)) {
    doubt(seat.known);
    return false;
  }
  seat.known.doubted = false;
  seat.entry = entry;
  seat.seen_ns = lease_clock_ns();
  return true;
}

// The entry could not be written. A new watcher shows it.
void Membership::doubt(Known& known) {
  known.doubted = true;
  watcher_.reset();
  up_to_date_ = false;
}

// The servers may have lost the newest entries. A new watcher shows what there is.
void Membership::doubt_all() {
  for (auto& [name, node] : nodes_) doubt(node.known);
  for (Seat& seat : seats_) doubt(seat.known);
}

// The watcher has shown all that was there when it began.
void Membership::believe_that_the_rest_is_gone() {
  for (auto& [name, node] : nodes_) node.known.take_as_gone();
  for (Seat& seat : seats_) seat.known.take_as_gone();
}

bool Membership::try_to_begin_life() {
  natsStatus status = NATS_OK;
  const KeyValueEntry there = entry_at(bucket_.get(), key_, status);
  uint64_t revision = 0;
  if (status == NATS_OK) {
    const auto node = NodeEntry::read(value_of(there.get()));
    const bool free = !node || node->state == NodeEntry::State::gone || node->life == last_life_;
    revision = kvEntry_Revision(there.get());
    if (!free) {
      wait_for_namesake(revision);
      return false;
    }
  } else if (status != NATS_NOT_FOUND) {
    return false;
  }
  const int64_t begun_ns = lease_clock_ns();
  const uint64_t disconnects = context_->connection.events().disconnects.load(std::memory_order_relaxed);
  const NodeEntry entry{new_id(), NodeEntry::State::serving};
  last_life_ = entry.life;  // also where the answer is lost: the entry is this process's then
  if (!put(key_, entry.text(), revision)) return false;
  own_revision_ = revision;
  namesake_revision_ = 0;
  nodes_[name_] = {entry, {revision}, begun_ns};
  renewed_ns_ = own_seen_ns_ = begun_ns;
  for (Seat& seat : seats_) {
    if (seat.entry) continue;
    seat.seen_ns = begun_ns;
    seat.asked = false;
  }
  context_->lease.set_life(entry.life);
  context_->lease.confirm(disconnects);
  context_->lease.renew(begun_ns, int64_t(config_.lease_ms) * ms, int64_t(config_.clock_error_ms) * ms);
  note(fmt::format("node {} joins the namespace {} on {}", name_, context_->subjects.name(),
                   context_->connection.server()));
  return true;
}

void Membership::run() {
  while (!stopped_.load(std::memory_order_acquire)) {
    try {
      step();
    } catch (const std::exception& error) {
      note(fmt::format("node {}: {}", name_, error.what()));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

void Membership::step() {
  if (context_->lease.life() != 0 && !context_->lease_is_confirmed()) renew_lease();  // requests wait for it
  const int64_t now = lease_clock_ns();
  const uint64_t reconnects = context_->connection.events().reconnects.load(std::memory_order_acquire);
  // The watcher's consumer may be gone with the server that it was on: it must show each renewal.
  const bool deaf = own_seen_ns_ < renewed_ns_ && now - own_seen_ns_ > int64_t(config_.lease_ms) * ms * 2 / 3;
  if (bucket_ && context_->connection.connected() && (!watcher_ || reconnects != reconnects_seen_ || deaf)) {
    if (reconnects != reconnects_seen_) doubt_all();
    reconnects_seen_ = reconnects;
    watch();
  }
  const bool moving = std::any_of(seats_.begin(), seats_.end(), [](const Seat& seat) {
    return seat.role == Seat::Role::draining || seat.role == Seat::Role::waiting;
  });
  read_entries(now + (moving ? move_wait_ns : idle_wait_ns));
  check_engine();
  bool leaving = false, left = false;
  {
    const std::lock_guard lock(mutex_);
    leaving = leaving_;
    left = left_;
  }
  if (left) return;
  if (context_->lease.life() == 0) {
    if (engine_.serves && !leaving) join_again();
  } else {
    renew_lease();
  }
  if (context_->lease.valid() && context_->lease_is_confirmed() && up_to_date_ && config_stored_ns_ != 0) {
    mark_dead_nodes();
    for (uint32_t n = 0; n < seats_.size(); ++n) {
      if (!context_->lease.valid()) break;
      place(context_->shards[n], seats_[n]);
      // Many shards take long to move: the lease comes first.
      if (lease_clock_ns() - renewed_ns_ > int64_t(config_.lease_ms) * ms / 3) break;
    }
  }
  count_dropped();
  publish_state();
}

void Membership::watch() {
  watcher_.reset();
  up_to_date_ = false;
  kvWatchOptions options;
  kvWatchOptions_Init(&options);
  options.Timeout = request_timeout().count();
  kvWatcher* watcher = nullptr;
  if (kvStore_WatchAll(&watcher, bucket_.get(), &options) != NATS_OK) return;
  watcher_.reset(watcher);
  own_seen_ns_ = lease_clock_ns();
}

// Reads entries until there is none left at `until_ns`.
void Membership::read_entries(int64_t until_ns) {
  if (!watcher_) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::max<int64_t>(until_ns - lease_clock_ns(), 0)));
    return;
  }
  bool waited = false;
  for (;;) {
    const int64_t left_ms = std::max<int64_t>((until_ns - lease_clock_ns()) / ms, 1);
    kvEntry* made = nullptr;
    const natsStatus status = kvWatcher_Next(&made, watcher_.get(), waited ? 1 : left_ms);
    const KeyValueEntry entry(made);
    if (status == NATS_TIMEOUT) return;
    if (status != NATS_OK) {
      watcher_.reset();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    waited = true;  // what came wakes the thread; more may have come with it
    if (!entry) {
      believe_that_the_rest_is_gone();
      continue;
    }
    const bool is_put = kvEntry_Operation(made) == kvOp_Put;
    if (config_stored_ns_ == 0 && is_put && std::string_view(kvEntry_Key(made)) == "config")
      config_stored_ns_ = kvEntry_Created(made);
    apply(kvEntry_Key(made), is_put ? std::optional(value_of(made)) : std::nullopt, kvEntry_Revision(made));
  }
}

void Membership::apply(std::string_view key, std::optional<std::string_view> value, uint64_t revision) {
  constexpr std::string_view node_prefix = "node.", shard_prefix = "shard.";
  if (key.starts_with(node_prefix)) {
    const std::string name(key.substr(node_prefix.size()));
    const auto entry = value ? NodeEntry::read(*value) : std::nullopt;
    Node& node = nodes_[name];
    if (name == name_ && revision >= own_revision_) {
      own_seen_ns_ = lease_clock_ns();
      up_to_date_ = true;  // all older entries came before
    }
    const NodeEntry shown = entry.value_or(NodeEntry{});
    if (node.known.learns(revision, shown == node.entry)) node = {shown, {revision}, lease_clock_ns()};
  } else if (key.starts_with(shard_prefix)) {
    const unsigned long shard =
        std::strtoul(std::string(key.substr(shard_prefix.size())).c_str(), nullptr, 10);
    if (shard >= seats_.size() || key != key_of(uint32_t(shard))) return;
    Seat& seat = seats_[shard];
    const auto shown = value ? ShardEntry::read(*value) : std::nullopt;
    if (!seat.known.learns(revision, shown == seat.entry)) return;
    seat.entry = shown;
    seat.seen_ns = lease_clock_ns();
    seat.asked = false;
  }
}

// An engine that was launched again has lost its actors' state: a new life begins.
void Membership::check_engine() {
  const EngineHealth before = std::exchange(engine_, health_());
  if (context_->lease.life() == 0) return;
  if (!engine_.serves) {
    end_life("its engine does not serve");
  } else if (engine_.restarts != before.restarts) {
    end_life("its engine was launched again");
  }
}

void Membership::renew_lease() {
  const int64_t now = lease_clock_ns(), lease_ns = int64_t(config_.lease_ms) * ms;
  if (!context_->lease.valid()) {
    end_life("its lease ended before it could be renewed");
    return;
  }
  const uint64_t disconnects = context_->connection.events().disconnects.load(std::memory_order_relaxed);
  if (const bool connected = context_->connection.connected();
      !connected || disconnects != disconnects_seen_) {
    disconnects_seen_ = disconnects;
    connected_ns_ = now;
    tried_ns_ = 0;
    if (!connected) return;
  }
  const bool confirmed = context_->lease.is_confirmed(disconnects);
  bool leaving = false;
  {
    const std::lock_guard lock(mutex_);
    leaving = leaving_;
  }
  const NodeEntry entry{context_->lease.life(),
                        leaving ? NodeEntry::State::leaving : NodeEntry::State::serving};
  const bool changed = nodes_[name_].entry.state != entry.state;
  if (!changed && confirmed && now - renewed_ns_ < lease_ns / 3) return;
  if (now - tried_ns_ < lease_ns / 30) return;  // after a failure
  // A bucket that was made again may have an entry of the same revision.
  Bucket bucket = confirmed ? Bucket::kept : look_at_bucket();
  uint64_t revision = own_revision_;
  if (bucket == Bucket::kept && put(key_, entry.text(), revision)) {
    own_revision_ = revision;
    nodes_[name_] = {entry, {revision}, now};
    renewed_ns_ = now;
    context_->lease.renew(now, lease_ns, int64_t(config_.clock_error_ms) * ms);
    if (!confirmed) confirm_lease(disconnects);
    return;
  }
  tried_ns_ = now;
  if (confirmed) bucket = look_at_bucket();
  natsStatus status = NATS_TIMEOUT;
  const Message there = bucket == Bucket::kept ? newest_message(key_, status) : nullptr;
  if (bucket == Bucket::lost || status == NATS_NOT_FOUND) {
    end_life("the servers have lost its entry", true);
    bucket_.reset();
    return;
  }
  if (status != NATS_OK) {
    // No answer, as while the servers elect a leader. Requests do not wait for that.
    if (!confirmed && lease_clock_ns() - connected_ns_ > int64_t(config_.clock_error_ms) * ms)
      confirm_lease(disconnects);
    return;
  }
  const auto node = NodeEntry::read(value_of(there));
  if (!node || node->life != entry.life || node->state == NodeEntry::State::gone) {
    end_life("another node took it for dead", true);
    return;
  }
  if (!confirmed) confirm_lease(disconnects);
  const uint64_t there_revision = natsMsg_GetSequence(there.get());
  if (there_revision == own_revision_) return;
  if (there_revision < own_revision_) doubt_all();
  own_revision_ = there_revision;  // otherwise it was written, and its answer lost
  tried_ns_ = 0;
}

// Lets requests pass that came since the connection was lost.
void Membership::confirm_lease(uint64_t disconnects) {
  context_->lease.confirm(disconnects);
  for (uint32_t n = 0; n < seats_.size(); ++n) {
    if (seats_[n].role == Seat::Role::serving) requests_->resume(context_->shards[n]);
  }
}

// @param is_taken_for_dead  other nodes may have taken its shards already
void Membership::end_life(const char* why, bool is_taken_for_dead) {
  note(fmt::format("node {} begins a new life: {}", name_, why));
  context_->lease.end();
  context_->counts.add(&GatewayBooks::leases_lost);
  context_->lease.set_life(0);
  std::vector<Subscription> ended;
  for (uint32_t n = 0; n < seats_.size(); ++n) {
    if (seats_[n].subscription) ended.push_back(std::move(seats_[n].subscription));
    if (is_taken_for_dead) {
      lose(context_->shards[n], seats_[n]);
    } else {
      give_up(context_->shards[n], seats_[n]);
    }
  }
  drain(std::move(ended));
  // Soon other nodes may get what a subscription still brings.
  for (Shard& shard : context_->shards) requests_->drop(shard, lease_clock_ns());
}

void Membership::mark_dead_nodes() {
  const int64_t now = lease_clock_ns();
  for (auto& [name, node] : nodes_) {
    if (name == name_ || node.entry.state == NodeEntry::State::gone ||
        now - node.seen_ns < takeover_wait_ns())
      continue;
    NodeEntry gone = node.entry;
    gone.state = NodeEntry::State::gone;
    if (put("node." + name, gone.text(), node.known.revision)) {
      node.entry = gone;
      note(fmt::format("node {} is gone: its lease has ended", name));
    } else {
      node.seen_ns = now;  // it lives, or another node was quicker
      doubt(node.known);
    }
  }
}

void Membership::count_dropped() {
  for (Seat& seat : seats_) {
    int64_t dropped = 0;
    if (!seat.subscription || natsSubscription_GetDropped(seat.subscription.get(), &dropped) != NATS_OK)
      continue;
    context_->counts.add(&GatewayBooks::dropped, uint64_t(dropped) - seat.dropped);
    seat.dropped = uint64_t(dropped);
  }
}

bool Membership::lives(const ShardEntry& entry) const {
  const auto node = nodes_.find(entry.node);
  return node != nodes_.end() && node->second.entry.life == entry.life &&
         node->second.entry.state != NodeEntry::State::gone;
}

// Returns true if the life that the entry names is known to be over. The watcher may show the entry before
// the node's, whose older entries are not kept. So the node's entry is believed if it is the later one, or if
// the life named was not renewed for as long as a lease and the clock error.
bool Membership::is_vacant(const Seat& seat) const {
  if (!seat.entry) return true;
  if (lives(*seat.entry)) return false;
  const auto node = nodes_.find(seat.entry->node);
  const bool is_older = node != nodes_.end() && !seat.known.doubted && !seat.known.is_gone() &&
                        seat.known.revision < node->second.known.revision;
  return is_older || lease_clock_ns() - seat.seen_ns > takeover_wait_ns();
}

// Returns true if nobody owns a shard that has no entry. The servers may have lost it: its owner serves on
// until its lease ends.
bool Membership::is_free(const Shard& shard, Seat& seat) {
  if (lease_clock_ns() - seat.seen_ns > takeover_wait_ns()) return true;
  return !std::exchange(seat.asked, true) &&
         !context_->connection.may_have_subscriber(context_->subjects.request(no_actor, shard.number),
                                                   answer_timeout);
}

// Returns a number that is larger for a later revision, also if the servers lost the bucket meanwhile, and
// `config` was written again: a bucket has fewer than a million updates a second.
uint64_t Membership::lease_number(uint64_t revision) const {
  return uint64_t(config_stored_ns_ / 1000) + revision;
}

bool Membership::is_own(const ShardEntry& entry) const {
  return entry.node == name_ && entry.life == context_->lease.life();
}

// Returns the node that is to own the shard; null if no node serves.
const std::string* Membership::best_node(uint32_t shard) const {
  const std::string* best = nullptr;
  uint64_t most = 0;
  for (const auto& [name, node] : nodes_) {
    if (node.entry.state != NodeEntry::State::serving) continue;
    const uint64_t preferred = preference(name, shard);
    if (best == nullptr || preferred > most) {
      best = &name;
      most = preferred;
    }
  }
  return best;
}

void Membership::place(Shard& shard, Seat& seat) {
  const std::string* const best = best_node(shard.number);
  const bool own = seat.entry && is_own(*seat.entry);
  if (seat.role != Seat::Role::none && seat.entry && seat.entry->group != seat.group) lose(shard, seat);
  switch (seat.role) {
    case Seat::Role::none: {
      // What a former service still has with actors ends first.
      if (shard.in_flight.load(std::memory_order_acquire) != 0 && lease_clock_ns() < seat.until_ns) return;
      if (own) {  // handed over to this node, or given up; a node that leaves has no use for it
        if (best != nullptr) begin_to_serve(shard, seat);
        return;
      }
      if (best == nullptr || *best != name_) return;
      if (seat.entry ? !is_vacant(seat) : !is_free(shard, seat)) return;
      // A node that died may still have its subscription in the server, which would give it a part of the
      // requests: it is in another group.
      if (put(shard, seat, {name_, context_->lease.life(), ShardEntry::State::taken, {}, new_id()})) {
        begin_to_serve(shard, seat);
      }
      return;
    }
    case Seat::Role::serving:
      if (!own) {
        give_up(shard, seat);
      } else if (best == nullptr || *best != name_) {
        begin_to_move(shard, seat, best);
      } else if (seat.entry->state == ShardEntry::State::moving || seat.known.is_gone()) {
        // Written, and its answer lost; or the servers have lost the entry.
        put(shard, seat, {name_, context_->lease.life(), ShardEntry::State::serving, {}, seat.group});
      }
      return;
    case Seat::Role::draining:
      if (own) {
        hand_over(shard, seat);
      } else {
        wait_for_owner(seat);  // handed over, and the answer lost
      }
      return;
    case Seat::Role::waiting:
      if (own) {
        begin_to_serve(shard, seat);  // handed back
      } else if (is_vacant(seat)) {
        lose(shard, seat);  // a node that takes it over gets what is sent here too
      } else if (lease_clock_ns() > seat.until_ns) {
        give_up(shard, seat);
      } else if (seat.entry->state != ShardEntry::State::taken) {
        forward(shard, seat);
      }
      return;
  }
}

// Actors that this node had when it owned the shard before begin anew: another node may have had them since.
// Returns false if one could not be stopped, as behind a handler that takes long; it is stopped later then.
bool Membership::stop_former_actors(Shard& shard) {
  uint32_t stopped = 0;
  auto actors = requests_->take_actors(shard);
  while (!actors.empty()) {
    if (++stopped % 64 == 0) renew_lease();
    const auto& [type, key] = *actors.begin();
    // Most often no_such_actor: not every request creates one.
    const auto result =
        context_->client.stop(NamedAddress{context_->actors.type_of(type), key}, request_timeout() / 2);
    if ((!result && is_full_or_late(result.error().status)) || !context_->lease.valid()) {
      requests_->note_actors(shard, std::move(actors));
      return false;
    }
    actors.erase(actors.begin());
  }
  return true;
}

// Requests that come before the entry says so wait.
void Membership::begin_to_serve(Shard& shard, Seat& seat) {
  seat.group = seat.entry->group;
  requests_->hold(shard, seat.group);
  if (!seat.subscription) subscribe(shard, seat);
  const bool ready = seat.role == Seat::Role::draining || stop_former_actors(shard);
  if (!ready || !context_->connection.flush(request_timeout()) ||
      !put(shard, seat, {name_, context_->lease.life(), ShardEntry::State::serving, {}, seat.group})) {
    give_up(shard, seat);
    return;
  }
  seat.role = Seat::Role::serving;
  context_->counts.add(&GatewayBooks::shards_taken);
  requests_->serve(shard, lease_number(seat.known.revision));
  listener_.begin_service(shard);
}

void Membership::subscribe(Shard& shard, Seat& seat) {
  const auto closure =
      closures_.try_emplace({shard.number, seat.group}, Closure{requests_.get(), &shard, seat.group}).first;
  seat.subscription =
      context_->connection.subscribe(context_->subjects.requests_of_shard(shard.number),
                                     Subjects::queue_group(seat.group), take, &closure->second);
  seat.dropped = 0;
}

// Without a node to take the shard, requests are no longer taken from the server, and those in flight end.
void Membership::begin_to_move(Shard& shard, Seat& seat, const std::string* to) {
  const ShardEntry moving{name_, context_->lease.life(), ShardEntry::State::moving,
                          to != nullptr ? *to : std::string(), seat.group};
  if (!put(shard, seat, moving)) return;
  listener_.end_service(shard);
  if (to != nullptr) {
    requests_->hold(shard, seat.group);
  } else {
    unsubscribe(seat);
  }
  seat.role = Seat::Role::draining;
  seat.until_ns = lease_clock_ns() + context_->options.handover_timeout.count() * ms;
}

void Membership::hand_over(Shard& shard, Seat& seat) {
  // Acquire: pairs with the release of the last request; what its reply said came before the new owner's.
  if (shard.in_flight.load(std::memory_order_acquire) != 0 && lease_clock_ns() < seat.until_ns) return;
  const std::string to = seat.entry ? seat.entry->to : std::string();
  const auto node = nodes_.find(to);
  if (to.empty()) {
    give_up(shard, seat);
  } else if (node != nodes_.end() && node->second.entry.state == NodeEntry::State::serving) {
    if (put(shard, seat, {to, node->second.entry.life, ShardEntry::State::taken, {}, seat.group}))
      wait_for_owner(seat);
  } else {
    begin_to_serve(shard, seat);  // the next owner has gone: this node serves on
  }
}

void Membership::wait_for_owner(Seat& seat) {
  context_->counts.add(&GatewayBooks::shards_handed);
  seat.role = Seat::Role::waiting;
  seat.until_ns = lease_clock_ns() + int64_t(config_.lease_ms) * ms + listen_timeout_ns;
}

// The new owner listens. What the server sent here before it knows of the end of the subscription is held
// too.
void Membership::forward(Shard& shard, Seat& seat) {
  unsubscribe(seat);
  requests_->forward(shard);
  seat.role = Seat::Role::none;
  seat.until_ns = lease_clock_ns() + context_->options.handover_timeout.count() * ms;
}

// No other node has got what came for the shard.
void Membership::give_up(Shard& shard, Seat& seat) {
  end_service(shard, seat);
  requests_->refuse(shard);
  unsubscribe(seat);
}

// Another node took the shard over, or may do so, and gets what is sent here too. This thread learns of it
// within the clock error.
void Membership::lose(Shard& shard, Seat& seat) {
  end_service(shard, seat);
  requests_->drop(shard, lease_clock_ns() - int64_t(config_.clock_error_ms) * ms);
  unsubscribe(seat);
}

void Membership::end_service(Shard& shard, Seat& seat) {
  if (seat.role == Seat::Role::serving) listener_.end_service(shard);
  seat.role = Seat::Role::none;
  seat.until_ns = lease_clock_ns() + context_->options.handover_timeout.count() * ms;
}

void Membership::unsubscribe(Seat& seat) {
  std::vector<Subscription> ended;
  if (seat.subscription) ended.push_back(std::move(seat.subscription));
  drain(std::move(ended));
}

// Ends subscriptions once all that the server sent was handled. Blocks for request_timeout() at most.
void Membership::drain(std::vector<Subscription> ended) {
  if (!context_->connection.connected()) return;
  const int64_t timeout_ms = request_timeout().count();
  const int64_t until_ns = lease_clock_ns() + timeout_ms * ms;
  for (const Subscription& subscription : ended) {
    natsSubscription_DrainTimeout(subscription.get(), timeout_ms);
  }
  for (const Subscription& subscription : ended) {
    const int64_t left_ms = std::max<int64_t>((until_ns - lease_clock_ns()) / ms, 1);
    natsSubscription_WaitForDrainCompletion(subscription.get(), left_ms);
  }
}

void Membership::publish_state() {
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) {
    if (node.entry.state == NodeEntry::State::serving) names.push_back(name);
  }
  uint32_t owned = 0;
  bool idle = true;
  for (const Seat& seat : seats_) {
    owned += seat.role == Seat::Role::serving;
    idle = idle && seat.role == Seat::Role::none;
  }
  shards_owned_.store(owned, std::memory_order_relaxed);
  bool leaves = false;
  {
    const std::lock_guard lock(mutex_);
    node_names_ = std::move(names);
    leaves = leaving_ && idle;
  }
  if (!leaves) return;
  if (context_->lease.life() != 0) {
    const NodeEntry gone{context_->lease.life(), NodeEntry::State::gone};
    put(key_, gone.text(), own_revision_);
    context_->lease.set_life(0);
    context_->lease.end();
  }
  const std::lock_guard lock(mutex_);
  left_ = true;
  changed_.notify_all();
}

bool Membership::leave(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  leaving_ = true;
  return changed_.wait_for(lock, timeout, [this] { return left_; });
}

void Membership::stop() {
  if (!thread_.joinable()) return;
  stopped_.store(true, std::memory_order_release);
  thread_.join();
  context_->lease.end();
  for (uint32_t n = 0; n < seats_.size(); ++n) {
    seats_[n].subscription.reset();
    requests_->refuse(context_->shards[n]);
  }
}

std::vector<std::string> Membership::nodes() const {
  const std::lock_guard lock(mutex_);
  return node_names_;
}

}  // namespace gyre::nats::detail
