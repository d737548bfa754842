#include <gyre/runtime/core/core.hpp>
#include <gyre/runtime/stats.hpp>

#include <algorithm>
#include <tuple>

namespace gyre {

std::string_view how_compiled(const Timings& timings) {
  if (timings.compiled_ahead) return "compiled ahead";
  return timings.compiled_from_cache ? "found compiled" : "compiled";
}

uint64_t HandlerStats::longest_ns_below() const {
  for (size_t bin = times.size(); bin-- > 0;) {
    if (times[bin] != 0) return uint64_t(2) << bin;
  }
  return 0;
}

HandlerStats& HandlerStats::operator+=(const HandlerStats& other) {
  processed += other.processed;
  failed += other.failed;
  expired += other.expired;
  dead_letters += other.dead_letters;
  handler_ns += other.handler_ns;
  for (size_t bin = 0; bin < times.size(); ++bin) times[bin] += other.times[bin];
  return *this;
}

ActorStats& ActorStats::operator+=(const ActorStats& other) {
  living += other.living;
  created += other.created;
  mail_sent += other.mail_sent;
  mail_processed += other.mail_processed;
  return *this;
}

namespace {

template <class Sum>
std::vector<Sum> sums_of(const std::vector<WorkerStats>& workers, std::vector<Sum> WorkerStats::*list) {
  std::vector<Sum> sums;
  for (const WorkerStats& worker : workers) {
    if (sums.empty()) {
      sums = worker.*list;
    } else {
      for (size_t n = 0; n < sums.size(); ++n) sums[n] += (worker.*list)[n];
    }
  }
  return sums;
}

}  // namespace

std::vector<HandlerStats> Stats::handlers() const { return sums_of(workers, &WorkerStats::handlers); }
std::vector<ActorStats> Stats::actors() const { return sums_of(workers, &WorkerStats::actors); }

namespace detail {

namespace {

static_assert(memory_kinds == std::tuple_size_v<decltype(MemoryStats::buffers)>);

// Relaxed: the worker stores each count by itself, and HandlerStats may mix counts of different times.
HandlerStats read(const HandlerCounts& counts) {
  HandlerStats stats;
  for (size_t bin = 0; bin < stats.times.size(); ++bin) {
    stats.times[bin] = Memory::load_relaxed(counts.processed[bin]);
    stats.processed += stats.times[bin];
  }
  stats.handler_ns = Memory::load_relaxed(counts.processed_ns);
  stats.failed = Memory::load_relaxed(counts.failed);
  stats.expired = Memory::load_relaxed(counts.expired);
  stats.dead_letters = Memory::load_relaxed(counts.dead_letters);
  return stats;
}

// Relaxed, as above. `removed` is read first: whoever was removed was created before.
ActorStats read(const HandlerCounts::Actors& counts) {
  ActorStats stats;
  const uint64_t removed = Memory::load_relaxed(counts.removed);
  stats.created = Memory::load_relaxed(counts.created);
  stats.living = stats.created - std::min(removed, stats.created);
  stats.mail_sent = Memory::load_relaxed(counts.mail_sent);
  stats.mail_processed = Memory::load_relaxed(counts.mail_processed);
  return stats;
}

WorkerStats read(const HostSide& host, const Accounts& accounts, const Clock& clock, uint32_t worker,
                 int64_t now_ns) {
  const Bridge& bridge = host.bridges[worker].bridge();
  // Pairs with the store in Worker::finish(): a stopped worker's counts are final.
  const bool stopped = Memory::load_acquire(bridge.worker_line->stopped) != 0;
  WorkerStats stats;
  const auto [taken, high_water] = host.bridges[worker].sample_depth();
  stats.depth = taken;
  stats.depth_high_water = high_water;
  // Relaxed: a time alone, as WorkerReport::publish_if_due() stores it.
  const uint64_t heartbeat_ns = Memory::load_relaxed(bridge.worker_line->heartbeat_ns);
  if (heartbeat_ns != 0 && !stopped) {
    stats.heartbeat_age_s =
        double(std::max<int64_t>(0, now_ns - clock.host_ns(int64_t(heartbeat_ns)))) * 1e-9;
  }
  // Relaxed: numbers alone, as Mail::publish_counts() stores them.
  const WorkerLine& line = *bridge.worker_line;
  const auto load = [](const uint64_t& count) { return Memory::load_relaxed(count); };
  stats.mail = {.sent = load(line.mail_sent),
                .processed = load(line.mail_processed),
                .failed = load(line.mail_failed),
                .refused = load(line.mail_refused),
                .spilled = load(line.mail_spilled),
                .depth = load(line.mailbox_depth),
                .depth_high_water = load(line.mailbox_most),
                .outbox_high_water = load(line.outbox_most),
                .told = load(line.told_sent),
                .told_refused = load(line.told_refused),
                .timers_set = load(line.timers_set),
                .timers_done = load(line.timers_done),
                .timers_cancelled = load(line.timers_cancelled),
                .bodies_taken = load(line.bodies_taken),
                .bodies_freed = load(line.bodies_freed),
                .bodies_refused = load(line.bodies_refused)};
  const std::vector<Handler>& handlers = host.actors.handlers();
  const std::vector<std::string>& types = host.actors.types();
  for (size_t n = 0; n < types.size(); ++n) {
    // See HandlerCounts: a type without a handler of its own may have no place for its counts.
    ActorStats actors = n < handlers.size() ? read(bridge.counts[n].actors) : ActorStats{};
    actors.actor = types[n];
    actors.has_state = n < host.actors.description().size() && host.actors.description()[n].state_bytes != 0;
    stats.actors.push_back(std::move(actors));
  }
  for (size_t n = 0; n <= handlers.size(); ++n) {
    HandlerStats handler = read(bridge.counts[n]);
    handler.dead_letters += accounts.unprocessed(worker, n);
    if (n < handlers.size()) {
      const auto& [actor_type, message_type] = std::pair(handlers[n].actor_type, handlers[n].message_type);
      handler.actor = host.actors.actor_name(actor_type);
      handler.message = host.actors.message_name(actor_type, message_type);
      if (handler.message.empty()) handler.message.append("#").append(std::to_string(message_type));
    }
    stats.handlers.push_back(std::move(handler));
  }
  return stats;
}

}  // namespace

Stats Core::stats() const {
  refuse_if_forked("reading the stats");
  Stats stats;
  stats.engine = host_.engine->kind();
  stats.transport = host_.engine->transport();
  stats.device = host_.engine->device_name();
  stats.state = state();
  stats.uptime_s = state_.uptime_s();
  stats.timings = timings_;
  stats.slots = shape().slots;
  stats.books = books();
  stats.log_lines = host_.handler_log.logged();
  stats.log_lines_dropped = host_.handler_log.dropped();
  stats.writes = buffers_.transfers(Transfer::write);
  stats.reads = buffers_.transfers(Transfer::read);
  stats.memory = host_.engine->memory();
  stats.memory.region = host_.layout.region_bytes();
  const Ledger ledger = buffers_.ledger();
  for (uint32_t kind = 0; kind < memory_kinds; ++kind) {
    stats.memory.buffers[kind] = ledger.in_use[kind].bytes;
    stats.memory.buffers_freed[kind] = ledger.retired[kind].bytes;
  }
  const int64_t now_ns = host_now_ns();
  for (uint32_t worker = 0; worker < host_.layout.workers; ++worker) {
    stats.workers.push_back(read(host_, accounts_, clock_, worker, now_ns));
  }
  return stats;
}

}  // namespace detail
}  // namespace gyre
