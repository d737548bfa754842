// What a handler knows of the worker that runs it.
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/device/buffer.hpp>
#include <gyre/device/platform.hpp>
#include <gyre/device/read/request_reader.hpp>
#include <gyre/device/worker/engine_memory.hpp>
#include <gyre/device/worker/handler_meter.hpp>
#include <gyre/messages/envelope.hpp>

namespace gyre {

/// What became of the message in hand, where that is not simply answered: all 0 between messages.
struct MessageVerdict {
  /// 1 where any of the others is set, but for `state`: the one thing to look at after a handler.
  uint32_t exceptional;
  Status refused;  ///< why the message gets no handler; ok: it gets one
  Status status;   ///< what it ends with
  uint32_t detail;
  uint64_t where;
  void* state;            ///< of the actor it is for; null where its type has none, or nobody looked
  uint32_t command_seen;  ///< the Command that Context::should_stop last read
  uint32_t new_actor;     ///< 1: the actor is new
  uint32_t remove_actor;  ///< 1: the actor is to be removed
  uint32_t buffers_used;  ///< 1 once a thread has asked for a buffer
};

/// Messages that a warp handles side by side at most, of up to 4 packets: each by its smallest team, of one
/// thread.
inline constexpr uint32_t most_side_by_side = 32;
/// log2 of a warp's threads.
inline constexpr uint32_t log_warp_size = 5;

/// An actor that says `static constexpr bool side_by_side = true`: where several short messages to one of its
/// handlers and one key are there together, a worker of one warp may run the handler for all of them at the
/// same time, each by an equal part of the warp: of no more threads than it has packets, rounded up to 4, 8
/// or 16, and of one where 17 and more of up to 4 packets are there. Longer ones are not. Its handlers change
/// state by add_to() alone, and use no other collective functions than Context's.
template <class Actor>
concept HandlesSideBySide = requires {
  requires Actor::side_by_side;
};
template <class... Actors>
inline constexpr bool any_side_by_side = (HandlesSideBySide<Actors> || ...);

/// The memory of its own that a worker unpacks requests into and builds replies in, in words, each part
/// 16-aligned: requests, then replies, which begin zeroed. One of each, but where the worker is one warp of a
/// GPU and has actors whose messages are handled side by side. A plain value, the same on both sides.
class MessageMemory {
 public:
  /// `is_warp`: the worker is one warp of a GPU. `side_by_side`: it has actors of which that is handled so.
  GYRE_DEVICE constexpr MessageMemory(const RingShape& shape, bool is_warp, bool side_by_side)
      : message_words_(message_words(shape)),
        replies_(is_warp && side_by_side && shape.packets() <= most_packets ? most_side_by_side : 1) {}

  /// Replies that are built at the same time.
  GYRE_DEVICE constexpr uint32_t replies() const { return replies_; }
  GYRE_DEVICE constexpr uint32_t request_words() const {
    return replies_ == 1 || message_words_ > side_by_side_words ? message_words_ : side_by_side_words;
  }
  /// From one reply to the next. In most slots eight threads that write 16 bytes to one each, as many as
  /// shared memory takes at once, meet different banks of it.
  GYRE_DEVICE constexpr uint32_t reply_stride() const { return message_words_ + (replies_ == 1 ? 0 : 4); }
  GYRE_DEVICE constexpr uint32_t words() const { return request_words() + replies_ * reply_stride(); }

 private:
  static constexpr uint32_t most_packets = 64;  // a slot: more would take too much shared memory
  // And what is read behind the last message with its head.
  static constexpr uint32_t side_by_side_words = PollWindow::most_loads * 32 * words_a_packet + 4;

  uint32_t message_words_;
  uint32_t replies_;
};

/// What a worker last said of itself, and when, by its own clocks. The polling threads'.
struct WorkerReports {
  uint32_t heartbeat_us;
  uint32_t counts_us;
  uint64_t counts_ticket;  ///< messages that it had taken then
  HandlerMeter::ClockPair clocks;
};

/// Memory that a worker's threads share: shared memory on the GPU, ordinary memory on the CPU.
struct WorkerShared {
  MessageVerdict verdict;
  MessageVerdict batch_verdicts[most_side_by_side];  ///< of messages that are handled side by side
  uint32_t team_log_size;                            ///< of the teams that do; log_warp_size between
  WorkerReports reports;
  TickLength tick;  ///< of the clock that handlers are timed by, as of the last report of counts
  // What the polling threads found, for the rest of a group that has others.
  PollOutcome outcome;
  uint32_t command;  ///< CommandWord::word
  uint32_t now_us;   ///< Lookout::now_us
  uint32_t response_bytes;
  const uint32_t* request;
  const CommandLine* command_line;
  EngineMemory memory;
};

#if defined(__CUDACC_RTC__)
#if defined(GYRE_GRID)
static __device__ WorkerShared the_worker_shared;  // one worker is the whole grid
#else
static __shared__ WorkerShared the_worker_shared;  // one worker a block
#endif
/// The worker's that runs the calling thread.
__device__ inline WorkerShared& worker_shared() { return the_worker_shared; }
#else
namespace detail {
inline thread_local WorkerShared* worker_shared_of_this_thread = nullptr;
}
/// The worker's that runs the calling thread. Only in a handler.
inline WorkerShared& worker_shared() { return *detail::worker_shared_of_this_thread; }
#endif

namespace wire {
class Message;
class Body;
}  // namespace wire

namespace detail {
class ContextAccess;
}

/// Where a handler's scratch memory lies.
enum class ScratchIn : uint32_t {
  device  ///< the GPU's memory, of the worker's own; on the CPU ordinary memory
};

/// A handler's view of its worker: the threads that run it, the message's address, a clock, and how to fail.
/// On the GPU every thread of the team runs the handler with a Context of its own: the worker's whole group,
/// or part of a warp for an actor whose messages are handled side by side (HandlesSideBySide). On the CPU the
/// team is one thread. Write loops as `for (uint32_t i = ctx.rank(); i < n; i += ctx.size())`.
class Context {
 public:
  /// The worker makes one for each message.
  GYRE_DEVICE Context(uint64_t key, bool is_ask, WorkerShared& shared)
      : Context(key, is_ask, shared, shared.verdict, Team::whole()) {}
  /// The same for a part of the group, `team`, and a message with notes of its own.
  GYRE_DEVICE Context(uint64_t key, bool is_ask, WorkerShared& shared, MessageVerdict& verdict,
                      const Team& team)
      : key_(key), shared_(&shared), verdict_(&verdict), team_(team), is_ask_(is_ask) {}

  /// This thread's number in the team, below size().
  GYRE_DEVICE uint32_t rank() const { return team_.rank(); }
  GYRE_DEVICE uint32_t size() const { return team_.size(); }
  /// Barrier of the team: what any thread wrote before it, all see after it. Every thread must call it.
  GYRE_DEVICE void sync() const { team_.sync(); }
  GYRE_DEVICE const Team& team() const { return team_; }
  /// Nanoseconds of the engine's clock. The GPU's steps by 32 ns to 1 µs, and a reading takes tens of
  /// nanoseconds: a piece of a handler is better timed by a Stopwatch.
  GYRE_DEVICE static uint64_t now_ns() { return gyre::now_ns(); }

  /// The key of the actor that the message is addressed to.
  GYRE_DEVICE uint64_t key() const { return key_; }
  GYRE_DEVICE bool is_ask() const { return is_ask_; }

  /// Ends the message with Status::handler_failed and `code`, of the handler's own choosing, in place of a
  /// response. Call it in every thread or in any; then return from the handler. A thread's first failure
  /// stands.
  GYRE_DEVICE void fail(uint32_t code) { end(Status::handler_failed, code, 0); }

  /// The elements of the buffer that a messages::BufferHandle in the request names: T is int8_t … uint64_t,
  /// float or double, and there are `at_least` elements at least. A handle that is not good for that gives an
  /// empty span, and ends the message with Status::bad_buffer and the reason in place of a response: return
  /// from the handler. What the host wrote before it sent the message is there, and the host finds what the
  /// handler writes once it has the reply. Threads call it each for itself; no barrier is in it.
  template <class T, class Handle>
  GYRE_DEVICE BufferSpan<T> buffer(const Handle& handle, uint64_t at_least = 0) {
    using Element = decltype(handle.getElement());
    constexpr Element element = detail::element_of<T, Element>();
    static_assert(element != Element::NONE,
                  "a buffer's elements are integers of 8 to 64 bits, float or double");
    if (!fenced_) {
      fenced_ = true;
      verdict_->buffers_used = 1;
      verdict_->exceptional = 1;
      Memory::fence();
    }
    BadHandle bad;
    const uint64_t length = handle.getLength();
    const uint64_t address = detail::find_buffer(shared_->memory,
                                                 {handle.getIndex(), handle.getGeneration(),
                                                  handle.getRuntime(), uint32_t(handle.getElement()), length},
                                                 uint32_t(element), uint32_t(sizeof(T)), at_least, bad);
    if (bad.fault != BufferFault::none) {
      end(Status::bad_buffer, bad.detail(), bad.where());
      return {};
    }
    return {reinterpret_cast<T*>(address), length};
  }

  /// Whether the message can still end well: all that was read of it so far was sound, the reply so far fits
  /// the room that there is for it, and nothing has failed, in any thread of the team. Where it is false the
  /// message ends in an error, whatever the handler does then: return from it. A handler that reads its whole
  /// request, builds its whole reply, asks this, and changes state after it, never answers an error for what
  /// it has done. A barrier of the team, as sync() is: every thread must call it, and all get the same
  /// answer.
  GYRE_DEVICE inline bool ok();

  /// `n` elements of scratch memory, which the whole team shares: for values that are too many for registers,
  /// or that one thread works out and all use. It holds anything at first, begins at a multiple of 16 bytes,
  /// and is the handler's, or the hook's, until that returns; several calls give memory apart from each
  /// other. `T`: any trivially copyable type. The actor says how many bytes there are for all calls of one
  /// message, each rounded up to 16: `static constexpr uint32_t scratch_bytes`. What does not fit gives an
  /// empty span, and ends the message with Status::scratch_full in place of a response: return from the
  /// handler. Every thread must call it, with the same `n`, in the same order; no barrier is in it.
  template <class T, ScratchIn where = ScratchIn::device>
  GYRE_DEVICE BufferSpan<T> scratch(uint64_t n) {
    static_assert(where == ScratchIn::device, "scratch memory lies in device memory");
    static_assert(__is_trivially_copyable(T) && alignof(T) <= scratch_alignment,
                  "elements of scratch memory are trivially copyable, and aligned to 16 bytes at most");
    if (n > scratch_left_ / sizeof(T)) {
      const uint64_t used = scratch_bytes_ - scratch_left_;
      end(Status::scratch_full, scratch_bytes_,
          n > (~uint64_t(0) - used) / sizeof(T) ? ~uint64_t(0) : used + n * sizeof(T));
      return {};
    }
    const auto bytes =
        (uint32_t(n * sizeof(T)) + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
    uint8_t* const begin = shared_->memory.actors + scratch_begin_ + (scratch_bytes_ - scratch_left_);
    scratch_left_ -= bytes;
    return {reinterpret_cast<T*>(begin), n};
  }

  /// True once the host commands the worker to stop: a long handler should then return. Every thread must
  /// call it (it holds a barrier); all get the same answer. On the GPU it costs a bus crossing, about 1 µs.
  GYRE_DEVICE bool should_stop() const {
    sync();
    if (rank() == 0) {
      const CommandWord word{uint32_t(Memory::load_relaxed(shared_->command_line->command))};
      verdict_->command_seen = uint32_t(word.command());
      verdict_->exceptional = 1;
    }
    sync();
    return verdict_->command_seen == uint32_t(Command::stop);
  }

  /// Of the clock that a Stopwatch reads.
  GYRE_DEVICE TickLength tick() const { return {load_here(&shared_->tick.ns)}; }

  GYRE_DEVICE Status status() const { return status_; }
  GYRE_DEVICE uint32_t detail() const { return detail_; }
  /// See ErrorBody::where.
  GYRE_DEVICE uint64_t where() const { return where_; }

 private:
  GYRE_DEVICE void end(Status status, uint32_t detail, uint64_t where) {
    if (status_ != Status::ok) return;
    status_ = status;
    detail_ = detail;
    where_ = where;
  }

  friend class detail::ContextAccess;
  static constexpr uint32_t scratch_alignment = 16;

  uint64_t key_;
  WorkerShared* shared_;
  MessageVerdict* verdict_;  // of the message
  Team team_;
  bool is_ask_;
  Status status_ = Status::ok;
  uint32_t detail_ = 0;
  uint64_t where_ = 0;
  bool fenced_ = false;  // this thread, for buffers
  // What the handler works on; null in a hook. A compiler drops what no handler asks for.
  const wire::Message* message_ = nullptr;
  const wire::Body* reply_ = nullptr;
  uint32_t reply_capacity_ = 0;
  // Of this message's scratch memory: where it begins in the worker's memory, bytes in all, and left.
  uint64_t scratch_begin_ = 0;
  uint32_t scratch_bytes_ = 0;
  uint32_t scratch_left_ = 0;
};

/// Times a piece of a handler, from its construction on, in the calling thread: by the clock of its
/// multiprocessor or processor, which is read in some cycles and has steps of one. How long a tick is the
/// worker measures each 32 ms: a time is as much off as that clock's frequency has changed since. A value.
class Stopwatch {
 public:
  GYRE_DEVICE explicit Stopwatch(const Context& ctx) : tick_(ctx.tick()), began_(clock_ticks()) {}

  /// Nanoseconds since.
  GYRE_DEVICE uint64_t ns() const { return tick_.ns_of(clock_ticks() - began_); }

 private:
  TickLength tick_;
  uint64_t began_;
};

/// Names a source file in an error reply: FNV-1a (Fowler, Noll, Vo) of what follows the last slash, so that a
/// header has one name on both engines.
GYRE_DEVICE constexpr uint64_t source_name_hash(const char* path) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *path != 0; ++path) {
    hash = *path == '/' ? 0xcbf29ce484222325u : (hash ^ uint8_t(*path)) * 0x100000001b3u;
  }
  return hash;
}

namespace detail {
/// Of the message that the calling thread's team handles.
GYRE_DEVICE inline MessageVerdict& current_verdict() {
  WorkerShared& shared = worker_shared();
#if defined(__CUDACC_RTC__)
  if (shared.team_log_size < log_warp_size) return shared.batch_verdicts[threadIdx.x >> shared.team_log_size];
#endif
  return shared.verdict;
}

template <uint64_t file>
GYRE_DEVICE inline void check_failed(uint32_t line) {
  MessageVerdict& verdict = current_verdict();
  verdict.exceptional = 1;
  if (!HandlerGroup::first_to_set(verdict.status, Status::check_failed)) return;
  verdict.detail = line;
  verdict.where = file;
}
}  // namespace detail

}  // namespace gyre

/// In a handler, or any function that returns nothing and is called by one: where `condition` does not hold,
/// the message ends with Status::check_failed, the file and the line, and the function returns. One thread
/// for which it does not hold is enough; a handler that calls Context::sync() afterwards must check what is
/// the same in all.
#define GYRE_CHECK(condition)                                                     \
  do {                                                                            \
    if (!(condition)) {                                                           \
      ::gyre::detail::check_failed<::gyre::source_name_hash(__FILE__)>(__LINE__); \
      return;                                                                     \
    }                                                                             \
  } while (false)
