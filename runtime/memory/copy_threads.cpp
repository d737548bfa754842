#include <pthread.h>
#include <sched.h>
#include <gyre/runtime/core/deadline.hpp>
#include <gyre/runtime/memory/copy_threads.hpp>
#include <gyre/runtime/system/futex.hpp>
#include <gyre/runtime/system/leave_thread.hpp>
#include <gyre/runtime/system/signals_blocked.hpp>

#include <algorithm>
#include <cstring>
#include <system_error>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace gyre::detail {

namespace {

constexpr int64_t helper_spins_ns = 50'000;
constexpr int64_t helper_sleeps_ns = 1'000'000'000;

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Four threads copy at half the speed that the bus has; more than a quarter of the processors are the
// program's.
uint32_t helpers_here() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return 1;
  const int here = CPU_COUNT(&cpus);
  return here < 2 ? 0 : uint32_t(std::clamp(here / 4, 2, 4) - 1);
}

}  // namespace

std::shared_ptr<CopyThreads> CopyThreads::shared() {
  struct Shared {
    std::mutex mutex;
    std::weak_ptr<CopyThreads> threads;
  };
  // Never destroyed: runtimes may end in destructors of static objects.
  static Shared& known = *new Shared;
  const ForkDeferred no_fork;
  const std::lock_guard lock(known.mutex);
  std::shared_ptr<CopyThreads> threads = known.threads.lock();
  if (!threads || threads->fork_.forked())
    known.threads = threads = std::make_shared<CopyThreads>(helpers_here());
  return threads;
}

CopyThreads::~CopyThreads() {
  ending_.store(true, std::memory_order_relaxed);
  jobs_.fetch_add(1, std::memory_order_seq_cst);
  for (size_t i = 0; i < helpers_.size(); ++i) futex_wake(whole(jobs_));
  for (std::thread& helper : helpers_) leave_thread(helper, fork_.forked());
}

namespace {

// Larger blocks are stored past the caches: stored through them, they would push all else out, and the
// processor would read the memory before it writes it. The C library does so with large blocks too, but it
// gets one part of a block at a time.
constexpr size_t largest_cached = size_t(32) << 20;

// As std::memcpy, or where `from` is null std::memset to 0, past the caches.
void stream(char* to, const char* from, size_t bytes) noexcept {
  const auto plainly = [&](size_t begin, size_t end) {
    from != nullptr ? std::memcpy(to + begin, from + begin, end - begin)
                    : std::memset(to + begin, 0, end - begin);
  };
#if defined(__SSE2__)
  const size_t head = std::min<size_t>(-reinterpret_cast<uintptr_t>(to) % sizeof(__m128i), bytes);
  const size_t end = bytes - (bytes - head) % sizeof(__m128i);
  plainly(0, head);
  __m128i value = _mm_setzero_si128();
  for (size_t at = head; at < end; at += sizeof value) {
    if (from != nullptr) value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), value);
  }
  plainly(end, bytes);
  _mm_sfence();  // such stores are ordered by nothing else
#else
  plainly(0, bytes);
#endif
}

}  // namespace

void CopyThreads::Job::work() noexcept {
  for (;;) {
    const size_t first = next.fetch_add(part_bytes, std::memory_order_relaxed);
    if (first >= bytes) return;
    const size_t here = std::min(part_bytes, bytes - first);
    char* const part = to + first;
    const char* const source = from != nullptr ? from + first : nullptr;
    if (bytes > largest_cached) {
      stream(part, source, here);
    } else if (source != nullptr) {
      std::memcpy(part, source, here);
    } else {
      std::memset(part, 0, here);
    }
  }
}

void CopyThreads::copy(void* to, const void* from, size_t bytes) noexcept {
  if (bytes < worth_helping) {
    std::memcpy(to, from, bytes);
  } else {
    run(to, from, bytes);
  }
}

void CopyThreads::zero(void* to, size_t bytes) noexcept {
  if (bytes < worth_helping) {
    std::memset(to, 0, bytes);
  } else {
    run(to, nullptr, bytes);
  }
}

void CopyThreads::run(void* to, const void* from, size_t bytes) noexcept {
  const auto alone = [&] { from != nullptr ? std::memcpy(to, from, bytes) : std::memset(to, 0, bytes); };
  if (most_helpers_ == 0 || fork_.forked()) return void(alone());
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return void(alone());
  start_helpers();
  job_.to = static_cast<char*>(to);
  job_.from = static_cast<const char*>(from);
  job_.bytes = bytes;
  // Several parts a thread: whoever is late takes fewer.
  const size_t part = bytes / (4 * (most_helpers_ + 1)) / 4096 * 4096;
  job_.part_bytes = std::clamp<size_t>(part, 16 << 10, 256 << 10);
  job_.next.store(0, std::memory_order_relaxed);
  open_.store(true, std::memory_order_seq_cst);  // pairs with the load in help(), which then sees the job
  jobs_.fetch_add(1, std::memory_order_seq_cst);
  for (uint32_t n = sleeping_.load(std::memory_order_seq_cst); n != 0; --n) futex_wake(whole(jobs_));
  job_.work();
  open_.store(false, std::memory_order_seq_cst);
  // Pairs with the decrement in help(): the helpers' copies are seen.
  for (uint32_t turns = 0; inside_.load(std::memory_order_seq_cst) != 0; ++turns) {
    if (turns < 10'000) {
      pause();
    } else {
      sched_yield();  // it has lost its processor
    }
  }
}

// With the lock. Fewer where the system has no more threads.
void CopyThreads::start_helpers() noexcept {
  if (!helpers_.empty()) return;
  try {
    helpers_.reserve(most_helpers_);
    const SignalsBlocked blocked;
    while (helpers_.size() < most_helpers_) {
      helpers_.emplace_back([this] { help(); });
      pthread_setname_np(helpers_.back().native_handle(), "gyre-copy");
    }
  } catch (const std::exception&) {
  }
}

void CopyThreads::help() noexcept {
  uint32_t seen = 0;
  int64_t spin_until_ns = host_now_ns() + helper_spins_ns;
  while (!ending_.load(std::memory_order_relaxed)) {
    const uint32_t jobs = jobs_.load(std::memory_order_seq_cst);
    if (jobs != seen) {
      seen = jobs;
      inside_.fetch_add(1, std::memory_order_seq_cst);
      if (open_.load(std::memory_order_seq_cst)) job_.work();
      inside_.fetch_sub(1, std::memory_order_seq_cst);
      spin_until_ns = host_now_ns() + helper_spins_ns;
    } else if (host_now_ns() < spin_until_ns) {
      for (int i = 0; i < 16; ++i) pause();
    } else {
      // Pairs with run(): it finds this one sleeping, or this one finds the job.
      sleeping_.fetch_add(1, std::memory_order_seq_cst);
      if (jobs_.load(std::memory_order_seq_cst) == seen)
        futex_wait(whole(jobs_), seen, host_now_ns() + helper_sleeps_ns);
      sleeping_.fetch_sub(1, std::memory_order_seq_cst);
    }
  }
}

}  // namespace gyre::detail
