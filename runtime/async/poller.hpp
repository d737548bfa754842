// The poller: one thread of a runtime, which polls where nobody waits, and calls what is to be called when an
// ask is done. docs/async.md says what may be called there.
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

/// Counts what callbacks threw.
struct CallbackFailures {
  uint64_t count = 0;
  std::string first;  ///< what() of the first that was thrown; empty if none was
};

namespace detail {

class Core;
struct Continuation;

/// Costs nothing until it is first used: then a thread, and 100 bytes a call slot. While nothing is expected
/// of it, it leaves replies to those who wait, and sleeps (WaitPolicy::polite) or spins (WaitPolicy::spin);
/// polite, it sleeps as a caller does while it waits for what is expected.
/// Thread-safe; adding to it is lock-free but for the first time.
class Poller {
 public:
  explicit Poller(Core& core);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  /// Promises one watch() or deliver(), which the runtime's end waits for. False once end() has been called,
  /// but in a callback, and in a forked child: nothing is delivered then. Starts the thread; throws Error
  /// where there can be none, std::bad_alloc.
  bool expect();
  /// Returns the continuation of a call's slot. The call's owner may use it until watch().
  Continuation& continuation_of(CallId call);
  /// Delivers the call's continuation on the poller's thread once the call is done.
  void watch(CallId call);
  /// Delivers `ready` on the poller's thread, soon.
  void deliver(Deliverable& ready);

  /// Promises nothing more, waits until all that was promised is delivered, and ends the thread; on the
  /// poller's own thread it does not wait. False if that took beyond `deadline_ns`: a callback does not
  /// return, or goes on asking. Repeatable.
  bool end(int64_t deadline_ns);

  CallbackFailures failures() const;

 private:
  void start();
  void run();
  int64_t check_deadlines();
  void sleep_until_expected();
  bool sleep_for_replies(int64_t now_ns, int64_t until_ns);
  bool has_replies(bool& busy) const;
  uint32_t deliver_completed();
  void deliver_one(Deliverable& ready) noexcept;
  void due_at(int64_t deadline_ns);

  static constexpr uint64_t closed = uint64_t(1) << 63;

  Core& core_;
  std::unique_ptr<Continuation[]> continuations_;  // one a call slot
  std::atomic<bool> started_{false};
  alignas(64) std::atomic<uint64_t> expected_{0};  // promised and not yet delivered; `closed`: no more
  std::atomic<int64_t> next_due_ns_{INT64_MAX};    // no later than the first deadline of what is watched
  std::atomic<bool> finished_{false};
  std::mutex start_mutex_;  // starting and ending, never a message
  std::thread thread_;
  mutable std::mutex failures_mutex_;
  CallbackFailures failures_;
};

}  // namespace detail
}  // namespace gyre
