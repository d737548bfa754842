// What a handler knows of the worker that runs it. The header that an actor includes.
#pragma once

#include <gyre/device/actor/check.hpp>
#include <gyre/device/actor/handlers.hpp>
#include <gyre/device/actor/stopwatch.hpp>
#include <gyre/device/buffer.hpp>
#include <gyre/device/platform.hpp>
#include <gyre/device/worker/shared.hpp>

namespace gyre {

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
  /// The worker makes one Context per message, with the whole group as its team.
  GYRE_DEVICE Context(uint64_t key, bool is_ask, WorkerShared& shared)
      : Context(key, is_ask, shared, shared.verdict, Team::whole()) {}
  /// For a part of the group, `team`, and a message with a verdict of its own.
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

GYRE_DEVICE inline Stopwatch::Stopwatch(const Context& ctx) : tick_(ctx.tick()), began_(clock_ticks()) {}

}  // namespace gyre

#include <gyre/device/actor/ending.hpp>  // Context::ok()
