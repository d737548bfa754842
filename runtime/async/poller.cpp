#include <fmt/format.h>
#include <pthread.h>
#include <gyre/runtime/async/continuation.hpp>
#include <gyre/runtime/system/assert.hpp>
#include <gyre/runtime/system/leave_thread.hpp>
#include <gyre/runtime/system/signals_blocked.hpp>
#include <gyre/runtime/system/waited_sleep.hpp>

#include <optional>
#include <system_error>
#include <utility>

namespace gyre::detail {

namespace {

thread_local const Poller* this_threads = nullptr;

}  // namespace

Poller::Poller(Core& core) : core_(core) {}

Poller::~Poller() { leave_thread(thread_, core_.forked()); }

void Poller::start() {
  const std::lock_guard lock(start_mutex_);
  if (started_.load(std::memory_order_relaxed)) return;  // start_mutex_ orders it after the store below
  // Also after the runtime has ended: completion queues hold outcomes there.
  if (!continuations_) continuations_ = std::make_unique<Continuation[]>(core_.calls().calls());
  // Needs no order: it saves a thread that would end at once. expect() decides.
  if (expected_.load(std::memory_order_relaxed) >= closed) return;
  if (core_.host().stepper != nullptr) {              // deliver_on_this_thread() is for the thread
    started_.store(true, std::memory_order_release);  // as below
    return;
  }
  try {
    const SignalsBlocked blocked;
    thread_ = std::thread([core = core_.shared_from_this()] { core->poller().run(); });
  } catch (const std::system_error& error) {
    throw Error(
        fmt::format("starting the thread that callbacks run on: {}; end other threads or raise their limit "
                    "(ulimit -u), or use Future::get()",
                    error.what()));
  }
  pthread_setname_np(thread_.native_handle(), "gyre-poller");
  started_.store(true, std::memory_order_release);  // pairs with the loads in expect() and end()
}

bool Poller::runs_this_thread() const { return this_threads == this; }

bool Poller::expect() {
  if (core_.forked()) return false;
  if (!started_.load(std::memory_order_acquire)) start();  // pairs with the store in start()
  if (this_threads == this) {
    // In a callback: its own promise keeps the thread from ending. Only this thread reads the count then, so
    // that no order is needed.
    expected_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  // The load keeps the count from rising again and again after the end, so that it reaches zero. It pairs
  // with the fetch_or in end().
  if (expected_.load(std::memory_order_acquire) >= closed) return false;
  // Pairs with the fetch_or in end(): the promise is counted before `closed`, or refused. Pairs with the load
  // in sleep_until_expected(): the poller sees the promise, or wake() sees the poller asleep.
  if (expected_.fetch_add(1, std::memory_order_seq_cst) >= closed) {
    expected_.fetch_sub(1, std::memory_order_relaxed);  // needs no order: nothing was promised
    return false;
  }
  core_.calls().completed().wake();
  return true;
}

void Poller::listen() {
  // Pairs with the load in run(), as the wake below: the thread may sleep already.
  listening_.store(true, std::memory_order_seq_cst);
  if (!started_.load(std::memory_order_acquire)) start();  // pairs with the store in start()
  core_.calls().completed().wake();
}

Continuation& Poller::continuation_of(CallId call) {
  GYRE_ASSERT(continuations_ && CallTable::index_of(call) < core_.calls().calls());
  return continuations_[CallTable::index_of(call)];
}

void Poller::watch(CallId call) {
  due_at(core_.calls().deadline_ns(call));
  core_.calls().watch(call, continuation_of(call));
  // The reply may have arrived before the watch, and this call may be the first that is due.
  core_.calls().completed().wake();
}

void Poller::deliver(Deliverable& ready) { core_.calls().completed().push(ready); }

void Poller::due_at(int64_t deadline_ns) {
  int64_t next = next_due_ns_.load(std::memory_order_relaxed);  // a guess, which the exchange checks
  while (deadline_ns < next &&
         // Pairs with the store in check_deadlines(): its search sees the call, or this deadline stays.
         !next_due_ns_.compare_exchange_weak(next, deadline_ns, std::memory_order_seq_cst)) {
  }
}

void Poller::sleep_until_expected() {
  CompletionList& completed = core_.calls().completed();
  for (;;) {
    completed.prepare_sleep();
    // Pairs with the fetch_add in expect(), the fetch_or in end(), and the store in listen(). The first is
    // nonzero also if closed.
    if (expected_.load(std::memory_order_seq_cst) != 0 || listening_.load(std::memory_order_seq_cst)) break;
    completed.sleep(INT64_MAX);
  }
  completed.end_sleep();
}

// Returns true if a ring that no thread drains has a reply. Sets `busy` if a thread drains a ring.
bool Poller::has_replies(bool& busy) const {
  busy = false;
  for (const HostBridge& bridge : core_.host().bridges) {
    if (bridge.draining()) {
      busy = true;
    } else if (bridge.has_reply()) {
      return true;
    }
  }
  return false;
}

// Returns true if a worker waits for a processor, maybe for this thread's. A hint.
bool Poller::worker_queued() const {
  for (const HostBridge& bridge : core_.host().bridges) {
    const Doorbell* const bell = bridge.bell();
    if (bell != nullptr && bell->queued()) return true;
  }
  return false;
}

// Sleeps until there is a reply, a delivery or a new promise, at most until `until_ns`. Returns true if
// woken.
bool Poller::sleep_for_replies(int64_t now_ns, int64_t until_ns) {
  CompletionList& completed = core_.calls().completed();
  const bool bells = core_.host().bridges.front().bell() != nullptr;
  completed.prepare_sleep();
  bool sleeps = true;
  if (bells) {
    for (const HostBridge& bridge : core_.host().bridges) bridge.bell()->add_sleeper();
    const bool fenced = asymmetric_fence_heavy();
    bool busy = false;
    sleeps = !has_replies(busy);
    if (busy || !fenced) until_ns = std::min(until_ns, now_ns + Doorbell::unfenced_ns);
  }
  // The load pairs with the fetch_or in end(): the poller sees `closed`, or wake() sees the poller asleep.
  sleeps = sleeps && completed.empty() && !core_.told().any() &&
           expected_.load(std::memory_order_seq_cst) < closed;
  const bool woken = !sleeps || completed.sleep(until_ns);
  completed.end_sleep();
  if (bells) {
    for (const HostBridge& bridge : core_.host().bridges) bridge.bell()->remove_sleeper();
  }
  return woken;
}

void Poller::run() {
  this_threads = this;
  Backoff backoff(core_.options().wait);
  std::optional<WaitedSleep> sleep;  // empty after work was found
  uint32_t busy_turns = 0;
  for (;;) {
    const uint64_t expected = expected_.load(std::memory_order_acquire);  // pairs with expect() and end()
    const bool ending = expected >= closed;
    const bool idle = (expected & ~closed) == 0;
    if (idle && ending) {
      // The workers have ended: this is what arrived last. A handler may promise a delivery.
      if (handle_told() == 0) break;
      continue;
    }
    if (idle && !listening_.load(std::memory_order_acquire)) {  // pairs with the store in listen()
      if (backoff.spun()) {
        sleep_until_expected();
        backoff.reset();
      } else {
        backoff.pause();
      }
      continue;
    }
    if (core_.receiver().drain_replies() + deliver_completed() + handle_told() != 0) {
      backoff.reset();
      sleep.reset();
      if (++busy_turns % Backoff::busy_turns_per_clock_read == 0) check_deadlines();
      continue;
    }
    // Calls that were being sent when the runtime ended get no reply.
    if (ending) core_.receiver().end_calls_in_flight();
    if (backoff.should_read_clock()) {
      const int64_t now_ns = check_deadlines();
      // Reads next_due_ns_ without order: after lowering it, watch() wakes the poller.
      if (!sleep) sleep.emplace(core_.host().bridges.front().bell() != nullptr);
      const int64_t end_ns = sleep->end(now_ns, next_due_ns_.load(std::memory_order_relaxed));
      if (backoff.spun()) {
        if (end_ns == 0) {
          __builtin_ia32_pause();
        } else if (sleep_for_replies(now_ns, end_ns)) {
          backoff.reset();
        }
        continue;
      }
    }
    if (worker_queued()) {
      backoff.yield();
    } else {
      backoff.pause();
    }
  }
  finished_.store(true, std::memory_order_release);  // pairs with the load in end()
}

// Reads the clock, does the due work, and times out watched calls whose deadline has passed. Returns the
// time.
int64_t Poller::check_deadlines() {
  const int64_t now_ns = core_.host().now_ns();
  core_.receiver().do_due_work(now_ns);
  // Needs no order: a deadline that is missed here is found in the next turn.
  if (now_ns < next_due_ns_.load(std::memory_order_relaxed)) return now_ns;
  next_due_ns_.store(INT64_MAX, std::memory_order_seq_cst);  // pairs with the exchange in due_at()
  core_.calls().for_each_in_flight([&](CallId call) {
    const int64_t deadline_ns = core_.calls().deadline_ns(call);
    if (deadline_ns <= now_ns) {
      core_.receiver().expire(call);
    } else {
      due_at(deadline_ns);
    }
  });
  return now_ns;
}

void Poller::deliver_on_this_thread() {
  if (!started_.load(std::memory_order_acquire) || this_threads == this) return;  // pairs with start()
  const Poller* const before = std::exchange(this_threads, this);
  while (deliver_completed() + handle_told() != 0) core_.receiver().drain_replies();
  this_threads = before;
}

uint32_t Poller::deliver_completed() {
  uint32_t count = 0;
  for (Deliverable* ready = core_.calls().completed().take_all(); ready != nullptr; ++count) {
    Deliverable* const next = ready->next;
    deliver_one(*ready);
    ready = next;
  }
  return count;
}

uint32_t Poller::handle_told() noexcept {
  if (!listening_.load(std::memory_order_acquire)) return 0;  // pairs with the store in listen()
  return core_.told().handle([this](const char* what) { note_failure(what); });
}

void Poller::note_failure(const char* what) noexcept {
  const std::lock_guard lock(failures_mutex_);
  if (failures_.count++ != 0) return;
  try {
    failures_.first = what;
  } catch (const std::bad_alloc&) {
    failures_.first = "out of memory";
  }
}

void Poller::deliver_one(Deliverable& ready) noexcept {
  try {
    ready.deliver(ready);
  } catch (const std::exception& error) {
    note_failure(error.what());
  } catch (...) {
    note_failure("what is no std::exception");
  }
  // Pairs with the load in run() and with the other deliveries: what they did is done before the thread ends.
  [[maybe_unused]] const uint64_t before = expected_.fetch_sub(1, std::memory_order_acq_rel);
  GYRE_ASSERT((before & ~closed) != 0);  // each delivery was promised by expect()
}

bool Poller::end(int64_t deadline_ns) {
  // Pairs with the operations on expected_ in expect(), run() and both sleeps.
  expected_.fetch_or(closed, std::memory_order_seq_cst);
  // Pairs with the store in start(). expect() starts the thread before it promises: no thread, no promise.
  if (!started_.load(std::memory_order_acquire)) return true;
  core_.calls().completed().wake();
  if (runs_this_thread()) {
    core_.told().end();
    return true;
  }
  if (core_.host().stepper != nullptr) {
    if (!finished_.load(std::memory_order_relaxed)) run();
    this_threads = nullptr;
    return true;
  }
  Backoff backoff(WaitPolicy::polite);
  while (!finished_.load(std::memory_order_acquire)) {  // pairs with the store in run()
    if (backoff.should_read_clock() && host_now_ns() >= deadline_ns) {
      core_.told().end();
      return false;
    }
    backoff.pause();
  }
  const std::unique_lock lock(start_mutex_, std::try_to_lock);
  if (lock && thread_.joinable()) thread_.join();
  return true;
}

CallbackFailures Poller::failures() const {
  const std::lock_guard lock(failures_mutex_);
  return failures_;
}

}  // namespace gyre::detail
