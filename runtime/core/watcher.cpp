#include <fmt/format.h>
#include <pthread.h>
#include <gyre/runtime/core/core.hpp>
#include <gyre/runtime/core/stall_watch.hpp>
#include <gyre/runtime/system/leave_thread.hpp>
#include <gyre/runtime/system/signals_blocked.hpp>

#include <system_error>

namespace gyre::detail {

namespace {
thread_local const Watcher* watcher_of_this_thread = nullptr;
}  // namespace

Watcher::~Watcher() { leave_thread(thread_, core_.forked()); }

// True for one thread, which then sets the phase.
bool Watcher::begin() noexcept {
  Phase none = Phase::none;
  return phase_.compare_exchange_strong(none, Phase::starting, std::memory_order_relaxed);
}

void Watcher::start_thread(std::shared_ptr<Core> core) {
  const SignalsBlocked blocked;
  thread_ = std::thread([self = this, core] { self->run(); });
  pthread_setname_np(thread_.native_handle(), "gyre-watcher");
  // Pairs with the load in end(), which then sees the thread.
  phase_.store(Phase::started, std::memory_order_release);
}

void Watcher::start() {
  if (!begin()) return;
  try {
    start_thread(core_.shared_from_this());
  } catch (const std::system_error& error) {
    phase_.store(Phase::never, std::memory_order_relaxed);
    throw Error(
        fmt::format("starting the thread that watches the engine: {}; end other threads or raise their limit "
                    "(ulimit -u)",
                    error.what()));
  } catch (...) {
    phase_.store(Phase::never, std::memory_order_relaxed);
    throw;
  }
}

void Watcher::start_for_lines() noexcept {
  if (!begin()) return;
  try {
    // Null where only calls keep the Core: its runtime has ended.
    if (auto core = core_.weak_from_this().lock()) return start_thread(std::move(core));
  } catch (const std::exception&) {  // no thread, or no memory for one
  }
  phase_.store(Phase::never, std::memory_order_relaxed);
}

void Watcher::run() {
  watcher_of_this_thread = this;
  std::unique_lock lock(sleep_mutex_);
  // The load pairs with the store in end().
  StallWatch stalls(core_.host());
  while (!wake_.wait_for(lock, interval, [this] { return ending_.load(std::memory_order_acquire); })) {
    if (const auto worker = stalls.find()) {
      core_.engine().end_by_force(fmt::format(
          "worker {} was in one handler for {} ms, and its engine process was killed (Options::stall_after)",
          *worker, core_.options().stall_after.count()));
    }
    core_.engine_failure().check();
    core_.buffers().release_past_imports();
    core_.host().handler_log.take();
    if (core_.state() == Lifecycle::failed) break;
  }
  lock.unlock();
  core_.host().handler_log.take();
  // The load pairs with the store in end().
  if (core_.state() == Lifecycle::failed && !ending_.load(std::memory_order_acquire) && core_.on_failure())
    core_.on_failure()();
  finished_.store(true, std::memory_order_release);  // pairs with the load in end()
}

// Does not take sleep_mutex_, which a suspended thread could hold. A notification that comes just before the
// thread sleeps is therefore lost, and the thread sleeps for one interval more.
bool Watcher::end(int64_t deadline_ns) {
  Backoff backoff(WaitPolicy::polite);
  Phase phase = Phase::none;
  phase_.compare_exchange_strong(phase, Phase::never, std::memory_order_relaxed);  // none starts it any more
  // Pairs with the store in start_thread().
  while ((phase = phase_.load(std::memory_order_acquire)) == Phase::starting) {
    if (host_now_ns() >= deadline_ns) return false;
    backoff.pause();
  }
  if (phase == Phase::never) return true;
  ending_.store(true, std::memory_order_release);  // pairs with the load in run()
  wake_.notify_one();
  if (watcher_of_this_thread == this) return true;
  while (!finished_.load(std::memory_order_acquire)) {  // pairs with the store in run()
    if (host_now_ns() >= deadline_ns) return false;
    backoff.pause();
  }
  const std::unique_lock lock(join_mutex_, std::try_to_lock);
  if (lock && thread_.joinable()) thread_.join();
  return true;
}

}  // namespace gyre::detail
