#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <gyre/bridge/fork.hpp>

namespace gyre::detail {

constinit std::atomic<uint32_t> fork_generation{0};

namespace {

constinit std::atomic<uint32_t> forking{0};     // threads that are in fork()
constinit std::atomic<uint32_t> deferring{0};   // threads that have a ForkDeferred
constinit thread_local uint32_t deferrals = 0;  // this thread's

void nap() {
  constexpr timespec nap{0, 100'000};
  syscall(SYS_nanosleep, &nap, nullptr);  // nanosleep() is a cancellation point
}

// The two seq_cst operations pair with those in ForkDeferred's constructor (Dekker's pattern): its thread
// sees `forking`, or this one sees `deferring`. The load also pairs with the fetch_sub operations on
// `deferring`. The thread's own deferral does not count: the child goes on with it. The wait is limited: a
// thread that never ends its deferral must not keep the program from forking.
void before_fork() {
  constexpr int most_naps = 100'000;
  const uint32_t own = deferrals != 0 ? 1 : 0;
  forking.fetch_add(1, std::memory_order_seq_cst);
  for (int naps = 0; deferring.load(std::memory_order_seq_cst) > own && naps < most_naps; ++naps) nap();
}

// Pairs with the loads of `forking` in ForkDeferred's constructor.
void after_fork_in_parent() { forking.fetch_sub(1, std::memory_order_release); }

// Relaxed: the child has one thread.
void after_fork_in_child() {
  fork_generation.fetch_add(1, std::memory_order_relaxed);
  deferring.store(deferrals != 0 ? 1 : 0, std::memory_order_relaxed);
  forking.store(0, std::memory_order_relaxed);
}

[[maybe_unused]] const int handlers_installed =
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);

}  // namespace

ForkDeferred::ForkDeferred() noexcept {
  if (deferrals++ != 0) return;
  for (;;) {
    deferring.fetch_add(1, std::memory_order_seq_cst);
    if (forking.load(std::memory_order_seq_cst) == 0) return;  // pairs with before_fork()
    deferring.fetch_sub(1, std::memory_order_release);
    while (forking.load(std::memory_order_acquire) != 0) nap();
  }
}

// Pairs with the load in before_fork(): the child finds what this thread did complete.
ForkDeferred::~ForkDeferred() {
  if (--deferrals == 0) deferring.fetch_sub(1, std::memory_order_release);
}

}  // namespace gyre::detail
