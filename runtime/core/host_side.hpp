// The host's side of a launched region: what all parts of Core work on.
#pragma once

#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/calls/call_table.hpp>
#include <gyre/runtime/core/backoff.hpp>
#include <gyre/runtime/core/deadline.hpp>
#include <gyre/runtime/core/engine.hpp>
#include <gyre/runtime/core/handler_log.hpp>
#include <gyre/runtime/core/host_bridge.hpp>
#include <gyre/runtime/core/stepper.hpp>
#include <gyre/runtime/memory/arena.hpp>
#include <gyre/runtime/memory/copy_threads.hpp>
#include <gyre/runtime/recording/recorder.hpp>

#include <deque>
#include <memory>

namespace gyre::detail {

/// The engine, its region, and the host's ends of everything in it. Its parts are thread-safe, each by
/// itself.
struct HostSide {
  /// Initialises the region for the engine's workers; does not launch them. Throws Error.
  HostSide(ActorSet actors, const Options& options, std::unique_ptr<Engine> engine);

  const RingShape& shape() const { return layout.shape; }
  /// True in a forked child: the workers, and the region, are the parent's, and nothing here touches them.
  bool forked() const noexcept { return fork.forked(); }

  /// Returns nanoseconds of the clock that judges deadlines: the host's steady clock, or a test's.
  int64_t now_ns() const {
    if (stepper != nullptr) [[unlikely]]
      return stepper->now_ns();
    return host_now_ns();
  }
  /// Returns the time of an ask that is sent now.
  SendTime send_time(std::chrono::nanoseconds timeout) const {
    if (stepper != nullptr) [[unlikely]]
      return SendTime::at(stepper->now_ns(), timeout);
    return SendTime::now(timeout);
  }
  /// Pauses a thread that waits for workers, until `until_ns` of now_ns() at most. Where the thread moves the
  /// workers itself, time passes in the second pause in a row in which none can move: in between the thread
  /// sees what they did when they polled.
  void pause(Backoff& backoff, int64_t until_ns) const {
    if (stepper == nullptr) [[likely]]
      return backoff.pause();
    if (stepper->move()) return backoff.reset();
    if (!backoff.begin()) stepper->pass_until(until_ns);
  }
  /// Returns true if a waiting thread should read the clock before it pauses.
  bool should_read_clock(const Backoff& backoff) const {
    return stepper != nullptr || backoff.should_read_clock();
  }

  /// CallTable's functions of these names, which record the outcome first where messages are recorded.
  bool complete_answered(CallId call, uint32_t body_bytes) {
    if (recorder) [[unlikely]]
      recorder->answer(call, calls.place(call) + sizeof(Envelope), body_bytes);
    return calls.complete_answered(call, body_bytes);
  }
  bool complete_in_block(CallId call, const ArenaBlock& block, uint64_t body_bytes) {
    if (recorder) [[unlikely]]
      recorder->answer(call, arena.at(block.reply_offset), body_bytes);
    return calls.complete_in_block(call, block, body_bytes);
  }
  bool complete_failed(CallId call, const Failure& failure) {
    if (recorder) [[unlikely]]
      recorder->outcome(call, failure.status, failure.detail);
    return calls.complete_failed(call, failure);
  }

  const ForkGuard fork;
  const ActorSet actors;
  const Options options;
  const RegionLayout layout;
  const std::unique_ptr<Engine> engine;
  // Null where messages are not recorded. Set before another thread has the Core.
  std::shared_ptr<Recorder> recorder;
  Stepper* const stepper;          // null if the workers run by themselves
  std::deque<HostBridge> bridges;  // one a worker; never moved
  const std::shared_ptr<CopyThreads> copy_threads = CopyThreads::shared();
  HandlerLog handler_log;
  Arena arena;
  CallTable calls;
};

}  // namespace gyre::detail
