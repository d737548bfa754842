// The region: one block of memory that holds all that host and engine both touch. Offsets only, never
// pointers.
//
//   RegionHeader | HandlerTypes | worker 0: HostLine WorkerLine FailureLog  H2D ring  D2H ring | worker 1: …
//   | … | arena
//
// One writer per cache line. Lines lie 128 bytes apart: x86 prefetches the neighbour of a 64-byte line.
#pragma once

#include <gyre/bridge/packet.hpp>
#include <gyre/bridge/ring.hpp>

namespace gyre {

/// What the host commands a worker, out of band. A worker reads it when idle, when blocked, at least every 50
/// µs while it works, and in Context::should_stop().
enum class Command : uint64_t {
  run = 0,   ///< zeroed memory commands this
  stop = 1,  ///< finish the message in hand, then exit
};

/// Written by the host, read by one worker.
struct alignas(128) HostLine {
  uint64_t d2h_credit;  ///< D2H tickets that the host is done with
  uint64_t command;     ///< Command
};

/// Written by one worker, read by the host. Counters are published with h2d_credit, which is stored last
/// (release).
struct alignas(128) WorkerLine {
  uint64_t h2d_credit;       ///< H2D tickets that the worker is done with
  uint64_t started;          ///< 1 once the worker runs; 2 + n: it does not, its handler n is of other types
  uint64_t stopped;          ///< 1 once the worker has left its loop; the counters are final
  uint64_t answered;         ///< asks answered by a handler
  uint64_t error_replies;    ///< asks answered with an error
  uint64_t tells_processed;  ///< tells that a handler took
  uint64_t tells_failed;     ///< tells that failed: dead letters of this worker
  uint64_t corrupt;          ///< slots that held no message
};

/// A tell that failed, kept by the worker for the dead-letter log: 48 bytes, so four packets.
struct FailedTell {
  Envelope envelope;
  ErrorBody error;
};
inline constexpr uint32_t failed_tells_kept = 16;
inline constexpr uint32_t packets_a_failed_tell = 4;
/// Overwritten in a circle: failure n (from 1) lies at (n - 1) mod 16, and its packets' stamps are n as 32
/// bits.
struct alignas(128) FailureLog {
  Packet packets[failed_tells_kept * packets_a_failed_tell];
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
};
static_assert(sizeof(HostLine) == 128 && sizeof(WorkerLine) == 128 && sizeof(FailureLog) == 1024 &&
                  sizeof(RegionHeader) == 128 && sizeof(RingShape) == 16,
              "the region lies alike on both sides");
static_assert(offsetof(RegionHeader, shape) == 32 && offsetof(WorkerLine, corrupt) == 56 &&
                  offsetof(HostLine, command) == 8,
              "the region's fields lie alike on both sides");

inline constexpr uint64_t region_magic = 0x4779726552656731ull;  // "GyreReg1"
inline constexpr uint32_t region_version = 2;

/// What the host says handler n is for, actor by actor: Cap'n Proto type ids of its request and its response
/// (0: it takes tells only). Each worker holds it against its own handlers before it starts.
struct HandlerTypes {
  uint64_t request;
  uint64_t response;
};

/// Where everything lies, in bytes from the region's start.
struct RegionLayout {
  uint32_t workers = 1;
  RingShape shape;
  uint64_t arena_bytes = 0;  ///< a multiple of 4096, for bodies that do not fit a slot
  uint32_t handlers = 0;     ///< of all actors

  GYRE_DEVICE constexpr uint64_t worker_stride() const {
    return sizeof(HostLine) + sizeof(WorkerLine) + sizeof(FailureLog) + 2 * shape.ring_bytes();
  }
  GYRE_DEVICE constexpr uint64_t handler_types() const { return sizeof(RegionHeader); }
  GYRE_DEVICE constexpr uint64_t host_line(uint32_t worker) const {
    return sizeof(RegionHeader) + (handlers * sizeof(HandlerTypes) + 127) / 128 * 128 +
           worker * worker_stride();
  }
  GYRE_DEVICE constexpr uint64_t worker_line(uint32_t worker) const {
    return host_line(worker) + sizeof(HostLine);
  }
  GYRE_DEVICE constexpr uint64_t failure_log(uint32_t worker) const {
    return worker_line(worker) + sizeof(WorkerLine);
  }
  GYRE_DEVICE constexpr uint64_t h2d_ring(uint32_t worker) const {
    return failure_log(worker) + sizeof(FailureLog);
  }
  GYRE_DEVICE constexpr uint64_t d2h_ring(uint32_t worker) const {
    return h2d_ring(worker) + shape.ring_bytes();
  }
  /// Everything before the arena. The arena needs no initialisation.
  GYRE_DEVICE constexpr uint64_t rings_bytes() const { return host_line(workers); }
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
  FailureLog* failure_log;
  Packet* h2d;
  Packet* d2h;
  uint8_t* arena;  ///< every worker's
  uint64_t arena_bytes;
  const HandlerTypes* handler_types;  ///< every worker's
  uint32_t handlers;

  GYRE_DEVICE static Bridge of(void* region, const RegionLayout& layout, uint32_t worker) {
    char* const base = static_cast<char*>(region);
    return Bridge{layout.shape,
                  reinterpret_cast<HostLine*>(base + layout.host_line(worker)),
                  reinterpret_cast<WorkerLine*>(base + layout.worker_line(worker)),
                  reinterpret_cast<FailureLog*>(base + layout.failure_log(worker)),
                  reinterpret_cast<Packet*>(base + layout.h2d_ring(worker)),
                  reinterpret_cast<Packet*>(base + layout.d2h_ring(worker)),
                  reinterpret_cast<uint8_t*>(base + layout.arena()),
                  layout.arena_bytes,
                  reinterpret_cast<const HandlerTypes*>(base + layout.handler_types()),
                  layout.handlers};
  }
};

#if !defined(__CUDACC_RTC__)
/// Writes the header into a region of layout.region_bytes() bytes, zeroed up to the arena, aligned to 128.
inline void initialise_region(void* region, const RegionLayout& layout) {
  *static_cast<RegionHeader*>(region) =
      RegionHeader{region_magic,           region_version, layout.workers, layout.region_bytes(),
                   layout.worker_stride(), layout.shape,   layout.arena(), layout.arena_bytes};
}
#endif

}  // namespace gyre
