// The membership of a node: its lease, and the shards that it owns. docs/reference/nats.md has the protocol.
#pragma once

#include <gyre/runtime/nats/registry.hpp>
#include <gyre/runtime/nats/requests.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace gyre::nats::detail {

/// Says which life the node's engine is in, and whether it can serve: read before each renewal of the lease.
struct EngineHealth {
  bool serves = false;
  uint32_t restarts = 0;
};

/// Renews the node's lease and moves shards, on a thread of its own. All entries of the bucket that the node
/// writes are written here. Thread-safe.
///
/// An update of an entry names the revision that it replaces, so what this thread believes may be old: the
/// update of a shard's entry fails then, and a new watcher corrects it. The node's own entry is read when its
/// update fails.
class Membership {
 public:
  /// What follows when the node begins or ends to own a shard. Called by the membership's thread.
  struct Listener {
    std::function<void()> prepare;              ///< before the node joins: context->shards is set
    std::function<void(Shard&)> begin_service;  ///< after the shard serves
    std::function<void(Shard&)> end_service;    ///< before the shard is held or refused
  };

  /// Joins the namespace, or creates it. Sets `context->shards`. Blocks for up to a lease if a node of the
  /// same name died.
  /// @throws BadOptions, Error  as Gateway's constructor
  Membership(std::shared_ptr<Context> context, std::shared_ptr<Requests> requests, Listener listener,
             std::function<EngineHealth()> health);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  /// Starts the thread. Call it once.
  void start();
  /// See Gateway::leave().
  bool leave(std::chrono::milliseconds timeout);
  /// Ends the thread; shards are no longer served.
  void stop();

  uint32_t shards_owned() const { return shards_owned_.load(std::memory_order_relaxed); }
  std::vector<std::string> nodes() const;

 private:
  using Clock = std::chrono::steady_clock;

  // What is known of the revision of an entry; 0: there is none.
  struct Known {
    uint64_t revision = 0;
    bool doubted = false;  // it may be an older one, or none, until a watcher shows it

    bool is_gone() const { return revision == 0 && !doubted; }
    // The watcher shows this revision. Returns true if the entry is another one than was known.
    // @param is_same  whether what the entry says is what it said
    bool learns(uint64_t shown, bool is_same) {
      const bool is_news = doubted ? shown != revision || !is_same : shown > revision;
      if (is_news) revision = shown;
      doubted = false;
      return is_news;
    }
    // The watcher has shown all entries.
    void take_as_gone() {
      if (doubted) *this = {};
    }
  };
  // Another node, or this one, as its entry says.
  struct Node {
    NodeEntry entry;
    Known known;
    int64_t seen_ns = 0;  // when this revision was seen first
  };
  // A shard, as its entry says, and what this node does with it.
  struct Seat {
    enum class Role {
      none,      // another's, or nobody's
      serving,   // this node's
      draining,  // this node's: moving; waits for requests in flight
      waiting,   // handed over: waits until the new owner serves
    };
    std::optional<ShardEntry> entry;
    Known known;
    int64_t seen_ns = 0;  // when this revision was seen first; without an entry: since when there is none
    bool asked = false;   // whether somebody serves the shard although it has no entry
    Role role = Role::none;
    int64_t until_ns =
        0;  // of draining and waiting; none: of the requests that a former service has in flight
    Subscription subscription;
    uint64_t group = 0;    // of the subscription
    uint64_t dropped = 0;  // by the subscription, as counted
  };

  // What the servers say of the bucket that this thread knows.
  enum class Bucket { kept, lost, unknown };

  void open_bucket();
  int64_t bucket_made_ns() const;
  Message newest_message(const std::string& key, natsStatus& status) const;
  Bucket look_at_bucket() const;
  void agree_on_config(const NamespaceConfig& asked);
  void join();
  void join_again();
  void wait_for_namesake(uint64_t revision);
  void run();
  void step();
  void watch();
  void read_entries(int64_t until_ns);
  void apply(std::string_view key, std::optional<std::string_view> value, uint64_t revision);
  void check_engine();
  bool try_to_begin_life();
  void renew_lease();
  void confirm_lease(uint64_t disconnects);
  void end_life(const char* why, bool is_taken_for_dead = false);
  void mark_dead_nodes();
  void count_dropped();
  bool lives(const ShardEntry& entry) const;
  bool is_vacant(const Seat& seat) const;
  bool is_free(const Shard& shard, Seat& seat);
  uint64_t lease_number(uint64_t revision) const;
  bool is_own(const ShardEntry& entry) const;
  const std::string* best_node(uint32_t shard) const;
  void place(Shard& shard, Seat& seat);
  void begin_to_serve(Shard& shard, Seat& seat);
  void begin_to_move(Shard& shard, Seat& seat, const std::string* to);
  void hand_over(Shard& shard, Seat& seat);
  void wait_for_owner(Seat& seat);
  void forward(Shard& shard, Seat& seat);
  void give_up(Shard& shard, Seat& seat);
  void lose(Shard& shard, Seat& seat);
  void end_service(Shard& shard, Seat& seat);
  void subscribe(Shard& shard, Seat& seat);
  bool stop_former_actors(Shard& shard);
  void unsubscribe(Seat& seat);
  void drain(std::vector<Subscription> ended);
  bool put(std::string_view key, const std::string& text, uint64_t& revision);
  bool put(const Shard& shard, Seat& seat, const ShardEntry& entry);
  void doubt(Known& known);
  void doubt_all();
  void believe_that_the_rest_is_gone();
  void publish_state();
  static void take(natsConnection*, natsSubscription*, natsMsg* message, void* closure);

  // How long a node waits before it takes another one's shards, from when it saw the last renewal.
  int64_t takeover_wait_ns() const {
    return (int64_t(config_.lease_ms) + config_.clock_error_ms) * 1'000'000;
  }
  // How long a request to the bucket waits for its answer: several fit into a lease.
  std::chrono::milliseconds request_timeout() const {
    return std::chrono::milliseconds(std::max(config_.lease_ms / 6, 50u));
  }

  const std::shared_ptr<Context> context_;
  const std::shared_ptr<Requests> requests_;
  const Listener listener_;
  const std::function<EngineHealth()> health_;

  const std::string name_, key_;  // of the node, of its entry

  // The thread's own.
  NamespaceConfig config_;
  JetStream jet_stream_;
  KeyValue bucket_;
  int64_t bucket_made_ns_ = 0, config_stored_ns_ = 0;  // by the server's clock; of what was agreed on
  KeyValueWatcher watcher_;
  bool up_to_date_ = false;  // the watcher has shown what was written before it began
  uint64_t reconnects_seen_ = 0;
  EngineHealth engine_;
  uint64_t last_life_ = 0;     // this process's, before the present one
  uint64_t own_revision_ = 0;  // of the node's entry
  int64_t renewed_ns_ = 0, tried_ns_ = 0;
  int64_t own_seen_ns_ = 0;  // when the watcher last showed the node's newest entry
  uint64_t disconnects_seen_ = 0;
  int64_t connected_ns_ = 0;  // when the connection was last seen to be lost
  // While the node's entry is of another process's life, which may be over.
  uint64_t namesake_revision_ = 0;
  int64_t namesake_seen_ns_ = 0;  // when this revision was seen first
  bool namesake_lives_ = false;
  std::map<std::string, Node, std::less<>> nodes_;
  std::vector<Seat> seats_;
  // What a subscription's handler is given.
  struct Closure {
    Requests* requests;
    Shard* shard;
    uint64_t group;
  };
  std::map<std::pair<uint32_t, uint64_t>, Closure> closures_;  // by shard and group; kept

  std::atomic<uint32_t> shards_owned_{0};
  mutable std::mutex mutex_;  // of the next three
  std::condition_variable changed_;
  bool leaving_ = false, left_ = false;
  std::vector<std::string> node_names_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace gyre::nats::detail
