// The region: one block of memory that holds all that host and engine both touch. Offsets only, never
// pointers.
//
//   RegionHeader | HandlerTypes
//   | worker 0: HostLine WorkerLine LastWords LogEntry… HandlerCounts FailureLog  D2H ring | worker 1: …
//   | inbound part: worker 0: CommandLine  H2D ring | worker 1: … | arena
//
// The inbound part holds what the host sends to workers. A second inbound part may lie in device memory that
// the host only writes (BarInbound): all rings, in pages that their workers chose (SlotPages), then the
// command lines. Workers read that one, and the host reads back its own messages from the one in the region.
//
// One writer per cache line. Lines lie 128 bytes apart: x86 prefetches 64-byte lines in pairs.
#pragma once

#include <gyre/bridge/handler_counts.hpp>
#include <gyre/bridge/packet.hpp>
#include <gyre/bridge/ring.hpp>
#include <gyre/bridge/slot_pages.hpp>

namespace gyre {

/// Commands of the host to a worker, out of band. A worker reads it when idle, when blocked, at least every
/// 50 µs between messages, and in Context::should_stop().
enum class Command : uint32_t {
  run = 0,       ///< zeroed memory commands this
  stop = 1,      ///< finish the message in hand, then exit
  inactive = 2,  ///< take messages and answer Status::inactive
};

/// A command as it lies in CommandLine::command. Commands are numbered, so that a worker can also acknowledge
/// a repeated one.
struct CommandWord {
  uint32_t word = 0;  ///< the number in the high 24 bits, the Command in the low 8

  GYRE_DEVICE constexpr Command command() const { return Command(word & 0xffu); }
  GYRE_DEVICE constexpr CommandWord next(Command command) const {
    return {(word & ~0xffu) + 0x100u + uint32_t(command)};
  }
};

/// Written by the host, read by one worker.
struct alignas(128) HostLine {
  uint64_t d2h_credit;  ///< D2H tickets that the host is done with
  uint64_t log_taken;   ///< lines of the worker's handlers that the host has taken
  uint64_t told_taken;  ///< messages of the worker's handlers to the host that the host is done with
};

/// Written by the host, read by one worker. In the region the H2D ring lies behind it. One word, so that a
/// worker reads both in one access.
struct alignas(128) CommandLine {
  uint64_t command;  ///< low half: CommandWord::word; high half: the host's clock, see host_us_in

  /// Returns the low 32 bits of the host's clock in microseconds, as last published: the time now is that or
  /// later. The host publishes no time to engines that read its clock themselves.
  GYRE_DEVICE static constexpr uint32_t host_us_in(uint64_t command) { return uint32_t(command >> 32); }
  GYRE_DEVICE static constexpr uint64_t both(CommandWord word, uint32_t host_us) {
    return word.word | uint64_t(host_us) << 32;
  }
};

/// Written by one worker, read by the host. Counters are published with h2d_credit, which is stored last
/// (release).
struct alignas(128) WorkerLine {
  uint64_t h2d_credit;       ///< H2D tickets that the worker is done with
  uint64_t started;          ///< 1: the worker runs; 2 + n: it refused, handler n has other types; 0: not yet
  uint64_t stopped;          ///< 1 once the worker has left its loop; the counters are final
  uint64_t answered;         ///< asks answered by a handler
  uint64_t error_replies;    ///< asks answered with an error
  uint64_t tells_processed;  ///< tells that a handler took
  uint64_t tells_failed;     ///< tells that failed: dead letters of this worker
  uint64_t corrupt;          ///< slots that held no message
  uint64_t acknowledged;     ///< the last CommandWord::word the worker obeys
  uint64_t clock_ns;         ///< the worker's clock when it read the command; stored before `acknowledged`
  uint64_t heartbeat_ns;     ///< the worker's clock, stored each ms between messages, 20 asleep; 0: not yet
  uint64_t slot_pages;  ///< SlotPages::second of the H2D ring, where it has pages; stored before `started`
  // Of messages that actors send to each other; stored each 32 ms, when the worker has nothing to do, before
  // it acknowledges a command, and when it stops.
  uint64_t mail_sent;       ///< that its handlers sent
  uint64_t mail_processed;  ///< that a handler took
  uint64_t mail_failed;     ///< that reached no handler, or whose handler failed
  uint64_t mail_refused;    ///< that it had no memory to keep
  uint64_t mail_spilled;    ///< that it moved out of its mailbox, so that others could send
  uint64_t mailbox_depth;   ///< in its mailbox when it stored these
  uint64_t mailbox_most;    ///< the largest mailbox_depth
  uint64_t outbox_most;     ///< that waited at once for room in mailboxes, at most
  // Of messages to the host; stored with those.
  uint64_t told_sent;     ///< that its handlers sent
  uint64_t told_refused;  ///< calls of tell_host() that returned false
  // Of timers; stored with those.
  uint64_t timers_set;        ///< that its handlers set
  uint64_t timers_done;       ///< one-shot timers that have sent their message
  uint64_t timers_cancelled;  ///< by a handler, by a drain, or because their actor is gone
  // Of bodies that do not fit a slot; stored with those.
  uint64_t bodies_taken;    ///< chunks that its handlers, timers and replies took
  uint64_t bodies_freed;    ///< chunks that it gave back
  uint64_t bodies_refused;  ///< messages for whose body there was no chunk
};

/// Returns how many slots of a worker's D2H ring are kept for its handlers' messages to the host, in sets
/// with a handler that tells the host. Asks do not use them.
GYRE_DEVICE constexpr uint32_t told_slots(const RingShape& shape) { return shape.slots / 4; }

/// Names the message that a worker is handling or handled last; the host reads it after a fault. The worker
/// writes it when the actor or the message type changes.
struct alignas(128) LastWords {
  enum : uint32_t { one = 1, several = 2 };
  /// The actor's key (64 bits), actor type and message type (16 each). Stamp 0: nothing; `one`: said;
  /// `several`: messages of that type, to actors of that type, are handled at once, and there is no key.
  Packet packet;
};

/// Keeps the tells that failed in a worker for the dead-letter log. An entry has two packets with the
/// ErrorBody, then the message's own packets. The log is circular, with one entry per slot of the H2D ring:
/// failure n (from 1) lies in entry (n - 1) mod slots, and its packets' stamps are the low 32 bits of n. The
/// host reads the log before it gives credited slots out again (TicketClaim); therefore a worker never
/// overwrites an unread entry.
struct FailureLog {
  static constexpr uint32_t error_packets = 2;

  GYRE_DEVICE static constexpr uint32_t entries(const RingShape& shape) { return shape.slots; }

  GYRE_DEVICE static constexpr uint32_t entry_packets(const RingShape& shape) {
    return error_packets + shape.packets();
  }
  GYRE_DEVICE static constexpr uint64_t bytes(const RingShape& shape) {
    return (uint64_t(entries(shape)) * entry_packets(shape) * sizeof(Packet) + 127) / 128 * 128;
  }
  GYRE_DEVICE static constexpr uint64_t first_packet(const RingShape& shape, uint64_t failure) {
    return ((failure - 1) & (entries(shape) - 1)) * entry_packets(shape);
  }
};

/// What an argument of a logged line is.
enum class LogKind : uint32_t { signed_number = 1, unsigned_number = 2, real = 3, text = 4, boolean = 5 };

/// One line that a handler logged: line n (from 0) of a worker lies in its entry n mod `room`. The first word
/// is n + 1, stored last (release); the host then reads the others and adds to HostLine::log_taken. Words 1
/// to 3: the actor's key; actor type and message type (16 bits each), then 4 bits of LogKind for each
/// argument; the number of arguments, then the bytes of the format. Behind these the arguments, 8 bytes each
/// (a text's: its bytes), then the bytes of the format, then those of the texts.
struct alignas(128) LogEntry {
  static constexpr uint32_t room = 16, words = 32, head_words = 4, most_arguments = 8;
  static constexpr uint32_t payload_bytes = 8 * (words - head_words);
  uint64_t content[words];
};

/// The first bytes of a region.
struct alignas(128) RegionHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t workers;
  uint64_t region_bytes;
  uint64_t worker_stride;  ///< bytes from one worker's part to the next
  RingShape shape;         ///< of every ring
  uint64_t arena_offset;   ///< bytes from the region's start
  uint64_t arena_bytes;
  uint64_t inbound_offset;  ///< bytes from the region's start
  uint64_t inbound_stride;  ///< bytes from one worker's inbound part to the next
  uint64_t spill_chunks;    ///< MailChunks
  uint32_t body_chunks;     ///< MailChunks
  uint32_t body_bytes;      ///< MailChunks
};
static_assert(sizeof(HostLine) == 128 && sizeof(CommandLine) == 128 && sizeof(WorkerLine) == 256 &&
                  sizeof(LastWords) == 128 && sizeof(RegionHeader) == 128 && sizeof(RingShape) == 16 &&
                  sizeof(LogEntry) == 256 && offsetof(HostLine, log_taken) == 8,
              "the region lies alike on both sides");
static_assert(offsetof(RegionHeader, shape) == 32 && offsetof(RegionHeader, inbound_stride) == 72 &&
                  offsetof(WorkerLine, clock_ns) == 72,
              "the region's fields lie alike on both sides");

inline constexpr uint64_t region_magic = 0x4779726552656731ull;  // "GyreReg1"
inline constexpr uint32_t region_version = 10;

/// What the engine's memory has of chunks for messages between actors.
struct MailChunks {
  uint32_t spill = 0;       ///< for messages that wait: see ChunkPool
  uint32_t bodies = 0;      ///< for bodies that do not fit a slot: see BodyPool
  uint32_t body_bytes = 0;  ///< of each such body, at most; a multiple of 128
};

/// The host's view of handler n, actor by actor: the Cap'n Proto type ids of its request and its response (0:
/// it takes tells only). Each worker compares it with its own handlers before it starts.
struct HandlerTypes {
  uint64_t request;
  uint64_t response;
};

/// Where everything lies, in bytes from the region's start; command lines and H2D rings from the inbound
/// part's, which workers read there or elsewhere.
struct RegionLayout {
  uint32_t workers = 1;
  RingShape shape;
  uint64_t arena_bytes = 0;  ///< a multiple of 4096, for bodies that do not fit a slot
  uint32_t handlers = 0;     ///< of all actors

  GYRE_DEVICE constexpr uint64_t worker_stride() const {
    return sizeof(HostLine) + sizeof(WorkerLine) + sizeof(LastWords) + LogEntry::room * sizeof(LogEntry) +
           uint64_t(counts_a_worker()) * sizeof(HandlerCounts) + FailureLog::bytes(shape) +
           shape.ring_bytes();
  }
  /// Returns the number of HandlerCounts per worker: one per handler, and one for messages without a handler.
  GYRE_DEVICE constexpr uint32_t counts_a_worker() const { return handlers + 1; }
  GYRE_DEVICE constexpr uint64_t inbound_stride() const { return sizeof(CommandLine) + shape.ring_bytes(); }
  GYRE_DEVICE constexpr uint64_t handler_types() const { return sizeof(RegionHeader); }
  GYRE_DEVICE constexpr uint64_t host_line(uint32_t worker) const {
    return sizeof(RegionHeader) + (handlers * sizeof(HandlerTypes) + 127) / 128 * 128 +
           worker * worker_stride();
  }
  GYRE_DEVICE constexpr uint64_t worker_line(uint32_t worker) const {
    return host_line(worker) + sizeof(HostLine);
  }
  GYRE_DEVICE constexpr uint64_t last_words(uint32_t worker) const {
    return worker_line(worker) + sizeof(WorkerLine);
  }
  GYRE_DEVICE constexpr uint64_t log(uint32_t worker) const { return last_words(worker) + sizeof(LastWords); }
  GYRE_DEVICE constexpr uint64_t handler_counts(uint32_t worker) const {
    return log(worker) + LogEntry::room * sizeof(LogEntry);
  }
  GYRE_DEVICE constexpr uint64_t failure_log(uint32_t worker) const {
    return handler_counts(worker) + uint64_t(counts_a_worker()) * sizeof(HandlerCounts);
  }
  GYRE_DEVICE constexpr uint64_t d2h_ring(uint32_t worker) const {
    return failure_log(worker) + FailureLog::bytes(shape);
  }
  GYRE_DEVICE constexpr uint64_t inbound() const { return host_line(workers); }
  GYRE_DEVICE constexpr uint64_t inbound_bytes() const { return workers * inbound_stride(); }
  /// From the inbound part's start.
  GYRE_DEVICE constexpr uint64_t command_line(uint32_t worker) const { return worker * inbound_stride(); }
  /// From the inbound part's start.
  GYRE_DEVICE constexpr uint64_t h2d_ring(uint32_t worker) const {
    return command_line(worker) + sizeof(CommandLine);
  }
  /// Returns where a ring lies in an inbound part in device memory, in bytes from that part's start. All
  /// rings, in SlotPages, come first; the command lines follow.
  GYRE_DEVICE constexpr uint64_t inbound_ring_elsewhere(uint32_t worker) const {
    constexpr uint64_t alignment = 2 * SlotPages::page_bytes;
    return worker * ((SlotPages::ring_bytes(shape) + alignment - 1) / alignment * alignment);
  }
  GYRE_DEVICE constexpr uint64_t command_line_elsewhere(uint32_t worker) const {
    return inbound_ring_elsewhere(workers) + worker * sizeof(CommandLine);
  }
  GYRE_DEVICE constexpr uint64_t inbound_bytes_elsewhere() const { return command_line_elsewhere(workers); }
  /// Everything before the arena. The arena needs no initialisation.
  GYRE_DEVICE constexpr uint64_t rings_bytes() const { return inbound() + inbound_bytes(); }
  GYRE_DEVICE constexpr uint64_t arena() const { return (rings_bytes() + 4095) / 4096 * 4096; }
  GYRE_DEVICE constexpr uint64_t region_bytes() const {
    return arena_bytes == 0 ? rings_bytes() : arena() + arena_bytes;
  }
};

/// One worker's part of a mapped region, as the mapping's own pointers. Refers to the region, owns nothing.
struct Bridge {
  RingShape shape;
  HostLine* host_line;
  WorkerLine* worker_line;
  LastWords* last_words;
  LogEntry* log;          ///< LogEntry::room entries
  HandlerCounts* counts;  ///< RegionLayout::counts_a_worker()
  Packet* failure_log;    ///< see FailureLog
  Packet* d2h;
  CommandLine* command_line;
  Packet* h2d;
  uint8_t* arena;  ///< every worker's
  uint64_t arena_bytes;
  const HandlerTypes* handler_types;  ///< every worker's
  uint32_t handlers;
  bool inbound_in_region;  ///< the inbound part lies in the region, so that a GPU's poll of the H2D ring
                           ///< crosses the bus

  /// With the inbound part that lies in the region.
  GYRE_DEVICE static Bridge of(void* region, const RegionLayout& layout, uint32_t worker) {
    return of(region, static_cast<char*>(region) + layout.inbound(), layout, worker);
  }
  /// With the inbound part that lies at `inbound`.
  GYRE_DEVICE static Bridge of(void* region, void* inbound, const RegionLayout& layout, uint32_t worker) {
    char* const base = static_cast<char*>(region);
    char* const sent = static_cast<char*>(inbound);
    const bool in_region = sent == base + layout.inbound();
    const uint64_t command_line =
        in_region ? layout.command_line(worker) : layout.command_line_elsewhere(worker);
    const uint64_t h2d_ring = in_region ? layout.h2d_ring(worker) : layout.inbound_ring_elsewhere(worker);
    return Bridge{layout.shape,
                  reinterpret_cast<HostLine*>(base + layout.host_line(worker)),
                  reinterpret_cast<WorkerLine*>(base + layout.worker_line(worker)),
                  reinterpret_cast<LastWords*>(base + layout.last_words(worker)),
                  reinterpret_cast<LogEntry*>(base + layout.log(worker)),
                  reinterpret_cast<HandlerCounts*>(base + layout.handler_counts(worker)),
                  reinterpret_cast<Packet*>(base + layout.failure_log(worker)),
                  reinterpret_cast<Packet*>(base + layout.d2h_ring(worker)),
                  reinterpret_cast<CommandLine*>(sent + command_line),
                  reinterpret_cast<Packet*>(sent + h2d_ring),
                  reinterpret_cast<uint8_t*>(base + layout.arena()),
                  layout.arena_bytes,
                  reinterpret_cast<const HandlerTypes*>(base + layout.handler_types()),
                  layout.handlers,
                  in_region};
  }

  /// Which of the region's workers this one is.
  struct Place {
    uint32_t worker;
    uint32_t workers;
    MailChunks chunks;
  };
  /// Works it out from the region's header: reads across the bus, once at the start. It is no member, so that
  /// workers who need not know it stay as they are.
  GYRE_DEVICE Place place() const {
    const RegionHeader& header = reinterpret_cast<const RegionHeader*>(handler_types)[-1];
    const uint64_t types_bytes = (handlers * sizeof(HandlerTypes) + 127) / 128 * 128;
    const auto distance = uint64_t(reinterpret_cast<const char*>(host_line) -
                                   (reinterpret_cast<const char*>(handler_types) + types_bytes));
    return {uint32_t(distance / header.worker_stride),
            header.workers,
            {uint32_t(header.spill_chunks), header.body_chunks, header.body_bytes}};
  }
};

#if !defined(__CUDACC_RTC__)
/// A worker's inbound part in device memory. The host only ever writes it, whole lines of the ring at a time.
struct BarBridge {
  CommandLine* command_line = nullptr;  ///< null, like h2d, where workers read the region's
  Packet* h2d = nullptr;
  LineStore store = LineStore::four_packets;
};

/// An inbound part in device memory, which the CPU writes through BAR1 and never reads.
struct BarInbound {
  void* address = nullptr;  ///< for the host; inbound_bytes_elsewhere() zeroed bytes; null: there is none
  LineStore store = LineStore::four_packets;

  BarBridge of_worker(const RegionLayout& layout, uint32_t worker) const {
    if (address == nullptr) return {};
    char* const base = static_cast<char*>(address);
    return {reinterpret_cast<CommandLine*>(base + layout.command_line_elsewhere(worker)),
            reinterpret_cast<Packet*>(base + layout.inbound_ring_elsewhere(worker)), store};
  }
};

/// Writes the header into a region of layout.region_bytes() bytes, zeroed up to the arena, aligned to 128.
/// @param chunks  not of RegionLayout: a kernel has that as its parameter
inline void initialise_region(void* region, const RegionLayout& layout, const MailChunks& chunks = {}) {
  *static_cast<RegionHeader*>(region) = RegionHeader{
      region_magic, region_version, layout.workers,     layout.region_bytes(), layout.worker_stride(),
      layout.shape, layout.arena(), layout.arena_bytes, layout.inbound(),      layout.inbound_stride(),
      chunks.spill, chunks.bodies,  chunks.body_bytes};
}
#endif

}  // namespace gyre
