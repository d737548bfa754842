#include <fmt/format.h>
#include <pthread.h>
#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/core/deadline.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/memory/release_later.hpp>
#include <gyre/runtime/system/futex.hpp>
#include <gyre/runtime/system/signals_blocked.hpp>

#include <atomic>
#include <climits>
#include <mutex>
#include <thread>

namespace gyre::detail {

// The objects of this process that wait to be destroyed, and their thread. Its lock is never held during
// fork().
class ReleaseQueue {
 public:
  void add(std::unique_ptr<ReleasedLater> object) noexcept {
    std::string problem;
    {
      const ForkDeferred no_fork;
      const std::lock_guard lock(mutex_);
      forget_parents();
      *last_ = object.release();
      last_ = &(*last_)->next_;
      ++added_;
      if (running_) return;
      try {
        const SignalsBlocked blocked;
        std::thread([this] { run(); }).detach();
        running_ = true;
      } catch (const std::exception& error) {
        problem = error.what();
      }
    }
    if (problem.empty()) return;
    log(LogLevel::warning, [&] {
      return fmt::format(
          "starting the thread that releases exports of buffers: {}; end other threads or raise their limit "
          "(ulimit -u); the memory is kept until the next export is released",
          problem);
    });
  }

  bool wait(int64_t until_ns) noexcept {
    const uint32_t awaited = added();
    for (;;) {
      const uint32_t destroyed = destroyed_.load(std::memory_order_acquire);  // pairs with the add in run()
      if (int32_t(destroyed - awaited) >= 0) return true;
      if (host_now_ns() >= until_ns) return false;
      futex_wait(whole(destroyed_), destroyed, until_ns);
    }
  }

 private:
  uint32_t added() noexcept {
    const ForkDeferred no_fork;
    const std::lock_guard lock(mutex_);
    forget_parents();
    return added_;
  }

  // With the lock. A child of fork() has neither the thread nor the objects, which are its parent's.
  void forget_parents() noexcept {
    if (!fork_.forked()) return;
    fork_ = ForkGuard();
    first_ = nullptr;
    last_ = &first_;
    running_ = false;
    destroyed_.store(added_, std::memory_order_relaxed);
  }

  void run() noexcept {
    pthread_setname_np(pthread_self(), "gyre-releases");
    while (ReleasedLater* const object = take()) {
      delete object;
      destroyed_.fetch_add(1, std::memory_order_release);  // pairs with the load in wait()
      futex_wake(whole(destroyed_), INT_MAX);
    }
  }

  // Null: there is none, and the thread is to end.
  ReleasedLater* take() noexcept {
    const ForkDeferred no_fork;
    const std::lock_guard lock(mutex_);
    ReleasedLater* const object = first_;
    if (object == nullptr) {
      running_ = false;
      return nullptr;
    }
    first_ = object->next_;
    if (first_ == nullptr) last_ = &first_;
    return object;
  }

  std::mutex mutex_;  // of what follows, up to added_
  ForkGuard fork_;
  ReleasedLater* first_ = nullptr;
  ReleasedLater** last_ = &first_;
  bool running_ = false;  // the thread
  uint32_t added_ = 0;
  std::atomic<uint32_t> destroyed_{0};
};

namespace {
// Never destroyed: exports may be released by destructors of static objects. Made when the library is loaded,
// since a child of fork() would wait for ever for a function's static that another thread was making.
ReleaseQueue& releases = *new ReleaseQueue;
}  // namespace

void release_later(std::unique_ptr<ReleasedLater> object) noexcept { releases.add(std::move(object)); }

bool wait_for_releases(int64_t until_ns) noexcept { return releases.wait(until_ns); }

}  // namespace gyre::detail
