// The Context: what a handler can use of the worker that runs it. Actors include this header.
#pragma once

#include <gyre/device/actor/check.hpp>
#include <gyre/device/actor/handlers.hpp>
#include <gyre/device/actor/stopwatch.hpp>
#include <gyre/device/buffer.hpp>
#include <gyre/device/platform.hpp>
#include <gyre/device/worker/handler_log.hpp>
#include <gyre/device/worker/shared.hpp>

namespace gyre {

namespace wire {
class Message;
class Body;
}  // namespace wire

namespace detail {
class ContextAccess;
}

/// Selects where a handler's scratch memory lies.
enum class ScratchIn : uint32_t {
  device,  ///< the worker's part of device memory; ordinary memory on the CPU
  shared   ///< the block's shared memory; ordinary memory on the CPU
};

/// Gives a handler access to its worker: the threads that run the handler, the message's address, a clock,
/// buffers, scratch memory, and a way to fail.
///
/// A team of threads runs a handler; each thread has its own Context. On the GPU the team is the worker's
/// whole group, or part of a warp for an actor whose messages are handled side by side
/// (HandlesSideBySide). On the CPU the team is one thread. Write loops as
/// `for (uint32_t i = ctx.rank(); i < n; i += ctx.size())`.
class Context {
 public:
  /// Makes the Context of a message whose team is the whole group. Only the worker calls it.
  GYRE_DEVICE Context(uint64_t key, bool is_ask, WorkerShared& shared)
      : Context(key, is_ask, shared, shared.verdict, Team::whole()) {}
  /// Makes the Context of a message whose team is a part of the group. Only the worker calls it.
  GYRE_DEVICE Context(uint64_t key, bool is_ask, WorkerShared& shared, MessageVerdict& verdict,
                      const Team& team)
      : key_(key), shared_(&shared), verdict_(&verdict), team_(team), is_ask_(is_ask) {}

  /// Returns this thread's number in the team, below size().
  GYRE_DEVICE uint32_t rank() const { return team_.rank(); }
  /// Returns the number of threads in the team.
  GYRE_DEVICE uint32_t size() const { return team_.size(); }
  /// Waits for all threads of the team, and makes what each wrote before visible to all. Every thread must
  /// call it.
  GYRE_DEVICE void sync() const { team_.sync(); }
  /// Returns the team that runs the handler.
  GYRE_DEVICE const Team& team() const { return team_; }
  /// Returns the team as a group of CUDA's cooperative groups: a thread_block, or the grid_group of a
  /// grid-scoped actor. On the GPU a header of the actors must include <cooperative_groups.h>; on the CPU
  /// engine it is a group of one thread with the same interface. In a batch of messages
  /// (HandlesSideBySide) its rank, size and barrier are the team's.
  template <class T = Team>
  GYRE_DEVICE auto group() const {
    return static_cast<const T&>(team_).group();
  }
  /// Returns the engine's clock in nanoseconds. The GPU's clock steps by 32 ns to 1 µs, and a reading
  /// takes tens of nanoseconds; use a Stopwatch to time parts of a handler.
  GYRE_DEVICE static uint64_t now_ns() { return gyre::now_ns(); }

  /// Returns the key of the actor that the message is addressed to.
  GYRE_DEVICE uint64_t key() const { return key_; }
  /// Returns true if the message is an ask.
  GYRE_DEVICE bool is_ask() const { return is_ask_; }

  /// Fails the message with Status::handler_failed instead of a response. Return from the handler
  /// afterwards. One thread or several may call it; a thread's first failure counts.
  /// @param code  chosen by the handler; the sender receives it
  GYRE_DEVICE void fail(uint32_t code) { end(Status::handler_failed, code, 0); }

  /// Logs a line to the program's log, with worker, actor type and key. Each thread that calls it logs one.
  /// Never waits: a worker has room for 16 lines that the host has not taken, and a line without room is
  /// dropped and counted (Stats::log_lines_dropped). The host takes lines within 5 ms on CUDA; on the CPU
  /// engine while a thread waits for a reply, and at the end. On a GPU a line costs two reads across the bus,
  /// about 2 µs. Has no barrier.
  /// @param format     a literal. The host replaces each {}, or format such as {:.3f}, by an argument. The
  ///                   format, and 8 bytes for each argument, take 224 bytes at most
  /// @param arguments  8 at most: integers, floats, enums, texts (a literal or a Text of the request). Texts
  ///                   share what is left of the 224 bytes, and are cut there
  template <uint32_t size, class... Arguments>
  GYRE_DEVICE void log(const char (&format)[size], const Arguments&... arguments) const {
    constexpr uint32_t count = sizeof...(Arguments);
    static_assert(count <= LogEntry::most_arguments, "ctx.log() takes 8 arguments at most");
    static_assert(size - 1 + 8 * count <= LogEntry::payload_bytes,
                  "ctx.log(): the format and 8 bytes an argument take 224 bytes at most");
    const detail::LogValue values[count + 1] = {detail::log_value(arguments)..., {}};
    detail::log_line_of_handler(*shared_, key_, format, size - 1, values, count);
  }

  /// Finds the elements of the buffer that a messages::BufferHandle in the request names. The handler sees
  /// what the host wrote before sending the message; the host sees what the handler writes once it has the
  /// reply. Each thread calls it for itself; it has no barrier. While the host frees the buffer, some threads
  /// may find it and others not: call ok() before the next barrier.
  /// @tparam T        the buffer's element type: int8_t … uint64_t, float or double; const, if the handler
  ///                  only reads: a read-only buffer is refused otherwise
  /// @param at_least  the number of elements that the handler needs
  /// @returns         the elements. If the handle is bad, an empty span: the message fails with
  ///                  Status::bad_buffer and the reason; return from the handler.
  template <class T, class Handle>
  GYRE_DEVICE BufferSpan<T> buffer(const Handle& handle, uint64_t at_least = 0) {
    return buffer<T>(StoredHandle(handle), at_least);
  }
  /// Finds the elements of the buffer that a handle in the actor's state names. Has the contract of
  /// buffer() for a handle of the request.
  template <class T>
  GYRE_DEVICE BufferSpan<T> buffer(const StoredHandle& handle, uint64_t at_least = 0) {
    using Elements = detail::Elements<T>;
    constexpr auto element = detail::element_of<typename Elements::Type, detail::ElementNumber>();
    static_assert(element != detail::ElementNumber::NONE,
                  "a buffer's elements are integers of 8 to 64 bits, float or double");
    if (!fenced_) {
      fenced_ = true;
      // Orders the message before the reads of the buffer. Pairs with the host's fence in BufferOwner.
      Memory::acquire_fence();
    }
    if constexpr (!Elements::read_only) {
      verdict_->buffers_used = 1;
      verdict_->exceptional = 1;
    }
    BadHandle bad;
    const detail::HandleFields& fields = handle.fields();
    const uint64_t address = detail::find_buffer<Elements::read_only>(
        shared_->memory, fields, uint32_t(element), uint32_t(sizeof(T)), at_least, bad);
    if (bad.fault != BufferFault::none) {
      end(Status::bad_buffer, bad.detail(), bad.where());
      return {};
    }
    return {reinterpret_cast<T*>(address), fields.length};
  }

  /// Returns true if the message can still succeed: in every thread of the team, everything read so far
  /// was valid, the reply so far fits its room, and nothing failed. If false, the message ends with an
  /// error in any case: return from the handler. To make a handler all-or-nothing, read the whole request,
  /// build the whole reply, call ok(), and change state only afterwards. Contains a barrier: every thread
  /// must call it, and all threads get one answer.
  GYRE_DEVICE inline bool ok();

  /// Allocates uninitialized scratch memory that the whole team shares, aligned to 16 bytes. It is valid
  /// until the handler or hook returns. Memory of several calls does not overlap. The actor declares the
  /// bytes for all calls of one message, each rounded up to 16: `static constexpr uint32_t scratch_bytes`,
  /// for ScratchIn::shared `shared_scratch_bytes`. Every thread must call it, with equal `n`, in the same
  /// order; it has no barrier. In a grid-scoped actor each block has shared memory of its own, of `n`
  /// elements.
  /// @tparam T      any trivially copyable type
  /// @tparam where  device memory, or shared memory, which is faster and smaller. A launch whose actors
  ///                declare more shared memory than the device has is refused
  /// @param n       number of elements
  /// @returns       the memory. If there is not enough, an empty span: the message fails with
  ///                Status::scratch_full; return from the handler.
  template <class T, ScratchIn where = ScratchIn::device>
  GYRE_DEVICE BufferSpan<T> scratch(uint64_t n) {
    static_assert(where == ScratchIn::device || where == ScratchIn::shared, "device or shared memory");
    static_assert(__is_trivially_copyable(T) && alignof(T) <= scratch_alignment,
                  "elements of scratch memory are trivially copyable, and aligned to 16 bytes at most");
    Scratch& memory = where == ScratchIn::shared ? shared_scratch_ : device_scratch_;
    if (n > memory.left / sizeof(T)) {
      const uint64_t used = memory.bytes - memory.left;
      end(Status::scratch_full, memory.bytes,
          n > (~uint64_t(0) - used) / sizeof(T) ? ~uint64_t(0) : used + n * sizeof(T));
      return {};
    }
    const auto bytes =
        (uint32_t(n * sizeof(T)) + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
    uint8_t* const begin = scratch_memory<where>() + memory.begin + (memory.bytes - memory.left);
    memory.left -= bytes;
    return {reinterpret_cast<T*>(begin), n};
  }

  /// Returns true once the host has commanded the worker to stop; a long handler should return then.
  /// Contains a barrier: every thread must call it, and all threads get one answer. On the GPU it costs a
  /// bus crossing, about 1 µs.
  GYRE_DEVICE bool should_stop() const {
    sync();
    if (rank() == 0) {
      // Relaxed: the command is its own content. Stored by CommandSender::store_line().
      const CommandWord word{uint32_t(Memory::load_relaxed(shared_->command_line->command))};
      verdict_->command_seen = uint32_t(word.command());
      verdict_->exceptional = 1;
    }
    sync();
    return verdict_->command_seen == uint32_t(Command::stop);
  }

  /// Returns the tick length of the clock that a Stopwatch reads.
  GYRE_DEVICE TickLength tick() const { return {load_here(&shared_->tick.ns)}; }

  /// Returns this thread's first failure; Status::ok if there is none.
  GYRE_DEVICE Status status() const { return status_; }
  /// Returns the detail of this thread's first failure: see ErrorBody::detail.
  GYRE_DEVICE uint32_t detail() const { return detail_; }
  /// Returns the place of this thread's first failure: see ErrorBody::where.
  GYRE_DEVICE uint64_t where() const { return where_; }

 protected:
  /// Has the worker conclude the message apart from its fast path.
  GYRE_DEVICE void note_exceptional() { verdict_->exceptional = 1; }
  /// Notes the failure of a message's handler; the first one of the calling thread counts.
  GYRE_DEVICE void end(Status status, uint32_t detail, uint64_t where) {
    if (status_ != Status::ok) return;
    status_ = status;
    detail_ = detail;
    where_ = where;
  }
  /// Returns the body of the message in hand.
  GYRE_DEVICE inline const void* body_in_hand() const;
  /// Returns its bytes.
  GYRE_DEVICE inline uint32_t body_in_hand_bytes() const;

 private:
  // This message's scratch memory of one kind.
  struct Scratch {
    uint64_t begin = 0;  // offset in scratch_memory()
    uint32_t bytes = 0;
    uint32_t left = 0;
  };
  template <ScratchIn where>
  GYRE_DEVICE uint8_t* scratch_memory() const {
    if constexpr (where == ScratchIn::device) {
      return shared_->memory.actors;
    } else {
#if defined(__CUDACC_RTC__)
      return reinterpret_cast<uint8_t*>(dynamic_shared_memory);
#else
      return shared_->memory.scratch;
#endif
    }
  }

  friend class detail::ContextAccess;
  static constexpr uint32_t scratch_alignment = 16;

  uint64_t key_;
  WorkerShared* shared_;
  MessageVerdict* verdict_;  // the message's verdict, which the team shares
  Team team_;
  bool is_ask_;
  Status status_ = Status::ok;
  uint32_t detail_ = 0;
  uint64_t where_ = 0;
  bool fenced_ = false;  // this thread has fenced before using a buffer
  // The handler's message and reply; null in a hook. The compiler removes them if no handler calls ok().
  const wire::Message* message_ = nullptr;
  const wire::Body* reply_ = nullptr;
  uint32_t reply_capacity_ = 0;
  Scratch device_scratch_, shared_scratch_;
};

GYRE_DEVICE inline Stopwatch::Stopwatch(const Context& ctx) : tick_(ctx.tick()), began_(clock_ticks()) {}

}  // namespace gyre

#include <gyre/device/actor/ending.hpp>  // Context::ok(), Requests, Replies
