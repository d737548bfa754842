// The poller: one thread of a runtime. It takes replies that no other thread waits for, and runs callbacks
// when asks are done. docs/how-to/asynchronous.md says what callbacks may do.
#pragma once

#include <gyre/runtime/async/completion_list.hpp>
#include <gyre/runtime/calls/call_table.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace gyre {

/// Counts the exceptions that callbacks threw.
struct CallbackFailures {
  uint64_t count = 0;
  std::string first;  ///< what() of the first exception; empty if there was none
};

namespace detail {

class Core;
struct Continuation;

/// Runs callbacks on one thread, and the handlers of what actors send to the host. The first use starts the
/// thread, and allocates 100 bytes per call slot. While no callback is expected and no actor may tell the
/// host, the thread leaves replies to waiting threads, and sleeps (WaitPolicy::polite) or spins
/// (WaitPolicy::spin). Otherwise it waits for replies as a caller does. Thread-safe. Adding a callback is
/// lock-free after the first one.
class Poller {
 public:
  explicit Poller(Core& core);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  /// Promises one watch() or deliver(); the runtime's end waits for it. Returns false in a forked child,
  /// and after end() was called, except in a callback: nothing is delivered then. Starts the thread if
  /// necessary.
  /// @throws Error           if the thread cannot be started
  /// @throws std::bad_alloc  if there is no memory
  bool expect();
  /// Returns the continuation of a call's slot. The call's owner may use it until watch().
  Continuation& continuation_of(CallId call);
  /// Delivers the call's continuation on the poller's thread once the call is done.
  void watch(CallId call);
  /// Delivers `ready` soon, on the poller's thread.
  void deliver(Deliverable& ready);

  /// Handles what actors send to the host from now on (ToldMessages), until end(). Starts the thread if
  /// necessary. Throws as expect().
  void listen();

  /// Refuses further promises, waits until all promised deliveries are done, and ends the thread. Does not
  /// wait on the poller's own thread. Returns false at `deadline_ns`: a callback does not return, or keeps
  /// sending asks. Repeatable.
  bool end(int64_t deadline_ns);

  /// Delivers what is done, and handles what actors sent to the host, on the calling thread: where a test
  /// steps the workers, there is no other. Does nothing in a callback.
  void deliver_on_this_thread();

  CallbackFailures failures() const;
  /// Returns whether the calling thread is the poller's: a callback or a handler runs.
  bool runs_this_thread() const;

 private:
  void start();
  void run();
  int64_t check_deadlines();
  void sleep_until_expected();
  bool sleep_for_replies(int64_t now_ns, int64_t until_ns);
  bool has_replies(bool& busy) const;
  bool worker_queued() const;
  uint32_t deliver_completed();
  void deliver_one(Deliverable& ready) noexcept;
  uint32_t handle_told() noexcept;
  void note_failure(const char* what) noexcept;
  void due_at(int64_t deadline_ns);

  static constexpr uint64_t closed = uint64_t(1) << 63;

  Core& core_;
  std::unique_ptr<Continuation[]> continuations_;  // one per call slot
  std::atomic<bool> started_{false};
  std::atomic<bool> listening_{false};
  // Deliveries promised and not yet done. The bit `closed` is added when no more are accepted.
  alignas(64) std::atomic<uint64_t> expected_{0};
  std::atomic<int64_t> next_due_ns_{INT64_MAX};  // at most the earliest deadline of the watched calls
  std::atomic<bool> finished_{false};
  std::mutex start_mutex_;  // taken to start and end the thread, never for a message
  std::thread thread_;
  mutable std::mutex failures_mutex_;
  CallbackFailures failures_;
};

}  // namespace detail
}  // namespace gyre
