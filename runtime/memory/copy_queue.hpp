// Copies of buffers that go on by themselves: in their order, on threads of the runtime.
#pragma once

#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/async/completion_list.hpp>
#include <gyre/runtime/errors.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace gyre::detail {

class Core;

enum class Transfer { write, read };

/// One copy's outcome, and what is to be called with it. Shared by who asked, the buffer and the thread that
/// copies. Thread-safe.
class CopyState {
 public:
  /// True once the outcome is there, and in a forked child, where the copy's thread is not.
  bool done() const { return done_.load(std::memory_order_acquire) != 0 || fork_.forked(); }
  /// Sleeps until the outcome is there, at most until `until_ns`. Returns done().
  bool wait_until(int64_t until_ns) const noexcept;
  void wait() const noexcept { (void)wait_until(INT64_MAX); }
  /// The outcome; call it once done().
  Result<void> outcome() const;

  /// Sets the outcome, and gives what waits for it to the poller. Once.
  void complete(Failure failure) noexcept;
  /// Has `function` called with the outcome, on the poller's thread, or by this thread where there is none.
  /// Returns false if another function was given before. Throws what Poller::expect() throws; nothing is
  /// changed then.
  bool when_done(Core& core, std::function<void(Result<void>)> function);

 private:
  struct Called;

  const ForkGuard fork_{};
  mutable std::atomic<uint32_t> done_{0};  // pairs: stored with release once failure_ is set
  Failure failure_;
  std::mutex mutex_;  // of what follows, and of setting done_
  Core* core_ = nullptr;
  Called* called_ = nullptr;  // promised to the core's poller
  bool has_function_ = false;
};

/// Two threads, one for each direction; each starts with its first copy. Copies of one direction are made in
/// their order. Thread-safe.
class CopyQueue {
 public:
  ~CopyQueue();

  /// Copies soon.
  /// @param copy    what Buffer::write or read would do; may throw Error
  /// @param before  begins after that copy has its outcome; may be null, and is of an earlier add()
  /// @throws Error  if the thread cannot be started
  std::shared_ptr<CopyState> add(Transfer direction, std::function<void()> copy,
                                 std::shared_ptr<CopyState> before);

 private:
  struct Job {
    std::function<void()> copy;
    std::shared_ptr<CopyState> before, state;
  };
  struct Line {
    std::mutex mutex;  // of what follows
    std::condition_variable more;
    std::deque<Job> jobs;
    bool ending = false;
    std::thread thread;
  };

  static void run(Line& line) noexcept;

  const ForkGuard fork_{};
  Line lines_[2];  // by Transfer
};

}  // namespace gyre::detail
