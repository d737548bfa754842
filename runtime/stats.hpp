// What a runtime has done so far, by worker and by handler, and how long it took.
#pragma once

#include <gyre/bridge/handler_counts.hpp>
#include <gyre/runtime/books.hpp>
#include <gyre/runtime/options.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

/// Names a runtime's state: created → launched → active ⇄ inactive → draining → terminated; failed from
/// any state.
enum class Lifecycle { launched, active, inactive, draining, terminated, failed };
/// Returns the state's name, for example "draining".
std::string_view name(Lifecycle state);

/// Says how long set-up took, in milliseconds.
struct Timings {
  /// Time that the launch waited for the compilation of the actors; 0 if the program has them compiled in.
  double compile_ms = 0;
  double launch_ms = 0;              ///< Runtime::launch without compile_ms
  bool compiled_from_cache = false;  ///< the compiled actors were found on disk
  bool compiled_ahead = false;       ///< the actors were compiled when the program was built
};
/// Returns "compiled ahead", "found compiled" (on disk) or "compiled".
std::string_view how_compiled(const Timings& timings);

/// Counts one handler's messages in one worker.
struct HandlerStats {
  std::string actor;    ///< the actor type's qualified name; empty for messages of no handler, start and stop
  std::string message;  ///< the message's name in its schema; its number ("#1") if the name is unknown
  uint64_t processed = 0;     ///< messages that ended well
  uint64_t failed = 0;        ///< messages that failed at the worker; excludes `expired`
  uint64_t expired = 0;       ///< messages whose deadline had passed when the worker took them
  uint64_t dead_letters = 0;  ///< dead letters as the books count them, including messages left at the end;
                              ///< none of messages between actors
  /// Counts the processed messages by handler time, in the bins of HandlerCounts::processed. The sum is
  /// `processed`.
  std::array<uint64_t, HandlerCounts::bins> times{};
  uint64_t handler_ns = 0;  ///< handler time of all processed messages, in nanoseconds

  /// Returns the number of messages that the worker took.
  uint64_t received() const { return processed + failed + expired; }
  /// Returns an upper bound on the longest handler time in `times`, in nanoseconds; 0 if nothing was
  /// processed.
  uint64_t longest_ns_below() const;
  /// Adds the counts and times of `other`.
  HandlerStats& operator+=(const HandlerStats& other);
};

/// Counts what one worker's actors sent. All 0 in a set whose handlers do not send.
struct MailStats {
  uint64_t sent = 0;       ///< messages that its handlers sent
  uint64_t processed = 0;  ///< messages that one of its handlers took and that ended well
  uint64_t failed = 0;     ///< messages to its actors that failed; nobody is told
  uint64_t refused = 0;    ///< messages that it had no memory to keep: they are lost
  uint64_t spilled = 0;    ///< messages that it moved out of its mailbox, so that others could send to it
  uint64_t depth = 0;      ///< messages in its mailbox, as of the worker's last report
  uint64_t depth_high_water = 0;   ///< the largest depth that it has reported
  uint64_t outbox_high_water = 0;  ///< messages that waited at once for room in others' mailboxes, at most
  uint64_t told = 0;               ///< messages to the host
  uint64_t told_refused = 0;       ///< calls of tell_host() that returned false
  uint64_t timers_set = 0;
  uint64_t timers_done = 0;  ///< timers of send_after() that have sent their message
  uint64_t timers_cancelled = 0;
  /// Chunks of the pool of bodies that it took, and gave back. Over all workers the difference is in use.
  uint64_t bodies_taken = 0, bodies_freed = 0;
  uint64_t bodies_refused = 0;  ///< messages that do not fit a slot, for which no chunk was free
};

/// Counts one worker's actors of one type, and their messages to each other.
struct ActorStats {
  std::string actor;            ///< the type's qualified name
  bool has_state = false;       ///< false: every key is an actor of the type, and none is created or counted
  uint64_t living = 0;          ///< actors that are there
  uint64_t created = 0;         ///< actors that were ever created, those of failed engines included
  uint64_t mail_sent = 0;       ///< messages that they sent to actors, answers to actors' asks included
  uint64_t mail_processed = 0;  ///< messages of actors that they took and that ended well

  /// Adds the counts of `other`.
  ActorStats& operator+=(const ActorStats& other);
};

/// Counts one worker's messages.
struct WorkerStats {
  uint64_t depth = 0;  ///< slots of the worker's ring in use, as of the worker's last report
  /// The largest depth that any read of the stats found; the ring's size once a sender found the ring full.
  uint64_t depth_high_water = 0;
  /// Seconds since the worker's last heartbeat, which it sends each millisecond between messages. A much
  /// larger value means a long handler or a stuck worker. Empty before the first heartbeat and after the
  /// worker stopped.
  std::optional<double> heartbeat_age_s;
  MailStats mail;
  std::vector<ActorStats> actors;  ///< in the actor set's order
  /// In the actor set's order; last, messages of no handler. Messages between actors count too.
  std::vector<HandlerStats> handlers;
};

/// Counts the copies of Buffer::write or Buffer::read.
struct TransferStats {
  uint64_t copies = 0;
  uint64_t bytes = 0;
  uint64_t ns = 0;
};

/// Says how much memory a runtime uses, in bytes, by purpose, and how much the device has.
struct MemoryStats {
  uint64_t region = 0;        ///< rings, counters and arena: host memory, pinned or managed on CUDA
  uint64_t bar = 0;           ///< device memory that the host writes requests into, with the BAR transport
  uint64_t actors = 0;        ///< actor tables and handler counts: device memory on CUDA
  uint64_t modules = 0;       ///< code of the compiled actors that were loaded on the device
  uint64_t buffer_table = 0;  ///< table of buffer handles; on CUDA including the staging block of copies
  std::array<uint64_t, 4> buffers{};        ///< buffers in use, by MemoryKind: Ledger::in_use
  std::array<uint64_t, 4> buffers_freed{};  ///< freed memory kept for later buffers: Ledger::retired
  /// Total and free memory of the device, read at most 100 ms ago. 0 if unknown: on the CPU engine, and
  /// after a device fault.
  uint64_t device_total = 0, device_free = 0;
};

/// Says whether a count only grows (counter) or also falls (gauge).
enum class CountKind { counter, gauge };

/// One count of the program's own.
struct NamedCount {
  /// 1 to 64 characters a-z, 0-9 and _, beginning with a letter; does not end with _total.
  std::string name;
  std::string help;  ///< one line of 1 to 200 printable ASCII characters, for Prometheus
  CountKind kind = CountKind::counter;
  uint64_t value = 0;
};

/// Counts of one part of the program: Runtime::add_counts().
struct CountSection {
  std::string name;                ///< as NamedCount::name
  std::vector<NamedCount> counts;  ///< 1 to 256, with different names
};

/// Says what a runtime has done. Exact after a drain and after termination. While workers run, the counts
/// may be of times up to 32 ms apart: each worker reports every 32 ms, when it is drained, and when it
/// stops.
struct Stats {
  EngineKind engine = EngineKind::automatic;
  TransportKind transport = TransportKind::automatic;
  std::string device;
  Lifecycle state = Lifecycle::launched;
  double uptime_s = 0;
  Timings timings;
  uint32_t slots = 0;      ///< slots per ring
  uint32_t restarts = 0;   ///< relaunches after a failed engine: Runtime::relaunch() and Options::restart
  uint64_t log_lines = 0;  ///< lines that handlers logged (Context::log)
  uint64_t log_lines_dropped = 0;  ///< handlers' lines that found no room or were damaged
  Books books;
  TransferStats writes;
  TransferStats reads;
  MemoryStats memory;
  std::vector<WorkerStats> workers;
  std::vector<CountSection> program;  ///< what Runtime::add_counts() added, in that order

  /// Adds up each handler's stats over all workers, in the order of WorkerStats::handlers.
  std::vector<HandlerStats> handlers() const;
  /// Adds up each actor type's stats over all workers, in the order of WorkerStats::actors.
  std::vector<ActorStats> actors() const;
};

}  // namespace gyre
