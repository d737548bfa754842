// What a worker needs from the machine it runs on: its clock, its waiting, its handler group. One name a
// concept, one definition a side.
#pragma once

#include <gyre/bridge/group.hpp>
#include <gyre/device/compiler_steering.hpp>
#include <gyre/device/team_group.hpp>
#include <gyre/messages/fixed_width.hpp>

#if !defined(__CUDACC_RTC__)
#include <atomic>
#include <chrono>
#endif

namespace gyre {

#if defined(__CUDACC_RTC__)
#if !defined(GYRE_BLOCK)
#error "define GYRE_BLOCK, the threads a block, when compiling for the GPU"
#endif

/// The threads of a block.
struct Block {
  __device__ static uint32_t rank() { return threadIdx.x; }
  __device__ static constexpr uint32_t size() { return GYRE_BLOCK; }
  __device__ static void sync() {
    if constexpr (size() == 32) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }
};

#if defined(GYRE_GRID)
#if !defined(GYRE_COOPERATIVE_GROUPS)
static __device__ uint64_t grid_arrivals;          // blocks that came to a barrier, in all
static __shared__ uint64_t grid_arrivals_awaited;  // by this block's barrier
#endif

/// The threads of a grid whose blocks are all resident: a cooperative launch's.
struct Grid {
  __device__ static uint32_t rank() { return blockIdx.x * GYRE_BLOCK + threadIdx.x; }
  __device__ static uint32_t size() { return gridDim.x * GYRE_BLOCK; }
#if defined(GYRE_COOPERATIVE_GROUPS)  // theirs, where the actors include them
  __device__ static void initialise() {}
  __device__ static void sync() { cooperative_groups::this_grid().sync(); }
#else
  /// Once, before the first sync.
  __device__ static void initialise() {
    if (threadIdx.x == 0) grid_arrivals_awaited = 0;
  }
  __device__ static void sync() {
    Block::sync();
    if (threadIdx.x == 0) {
      grid_arrivals_awaited += gridDim.x;
      asm volatile("red.release.gpu.global.add.u64 [%0], 1;" : : "l"(&grid_arrivals) : "memory");
      uint64_t arrived;
      for (uint32_t polls = 0;; ++polls) {
        asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(arrived) : "l"(&grid_arrivals) : "memory");
        if (arrived >= grid_arrivals_awaited) break;
        if (polls > 1000) __nanosleep(100);  // most likely no message is there
      }
    }
    Block::sync();
  }
#endif
};
#endif

/// The threads that run a handler together: the block, of GYRE_BLOCK threads, or the whole grid.
#if defined(GYRE_GRID)
struct HandlerGroup : Grid {
  /// Returns true if all threads of the group poll.
  __device__ static constexpr bool all_threads_poll() { return false; }
#else
struct HandlerGroup : Block {
  __device__ static constexpr bool all_threads_poll() { return size() == 32; }
#endif
  /// Sets `word`, in the group's own memory, to `value` if it is 0; true in the one thread that did.
  template <class Word>
  __device__ static bool first_to_set(Word& word, Word value) {
    return atomicCAS(reinterpret_cast<uint32_t*>(&word), 0u, uint32_t(value)) == 0;
  }
};

/// The threads that run one handler: the whole group or, for a batch in a group of one warp, an equal part of
/// the warp. A value.
class Team {
 public:
  __device__ static Team whole() { return {HandlerGroup::rank(), HandlerGroup::size(), 0xffffffffu}; }
  /// The calling thread's, where a warp is divided into parts of 2^log_size threads.
  __device__ static Team part(uint32_t log_size) {
    const uint32_t size = 1u << log_size, rank = threadIdx.x & (size - 1);
    return {rank, size, (size == 32 ? 0xffffffffu : (1u << size) - 1) << (threadIdx.x - rank)};
  }
  __device__ uint32_t rank() const { return rank_; }
  __device__ uint32_t size() const {
    if constexpr (!HandlerGroup::all_threads_poll()) return HandlerGroup::size();
    return size_;
  }
  /// Waits for the team's threads, and makes what each wrote to the group's own memory visible to all.
  /// Collective.
  __device__ void sync() const {
    if constexpr (HandlerGroup::all_threads_poll()) {
      __syncwarp(lanes_);
    } else {
      HandlerGroup::sync();
    }
  }
  /// Returns the team's lanes as bits, for a team of at most one warp.
  __device__ uint32_t lanes() const { return lanes_; }
  /// Returns the team as a group of cooperative groups.
  template <class T = uint32_t>
  __device__ auto group() const {
    return team_group(T(rank_), T(size_), T(lanes_));
  }

 private:
  __device__ Team(uint32_t rank, uint32_t size, uint32_t lanes) : rank_(rank), size_(size), lanes_(lanes) {}

  uint32_t rank_, size_, lanes_;
};

/// True in the threads that poll the ring: the group's first warp.
__device__ inline bool polls() { return HandlerGroup::all_threads_poll() || HandlerGroup::rank() < 32; }

/// `a` / `b`, to a few parts in ten million, without a call. `b` is not 0.
__device__ inline float ratio(uint64_t a, uint64_t b) { return __fdividef(float(a), float(b)); }

/// Nanoseconds of the GPU's global timer (its step is coarse: 32 ns to 1 µs, by model).
__device__ inline uint64_t now_ns() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}
/// now_ns(), which judges deadlines.
__device__ inline uint64_t deadline_clock_ns() { return now_ns(); }
/// now_ns(), by which handlers are timed.
__device__ inline uint64_t steady_ns() { return now_ns(); }

/// Ticks between two samples of the command word, each a bus crossing, and of the global timer: cycles of the
/// multiprocessor's clock, which reads faster than that timer. 28 µs at 2 GHz. The 50 µs promised hold down
/// to 1.3 GHz, a poll of 16 loads over BAR (some 8,000 cycles) included.
inline constexpr uint32_t command_poll_interval = 56'000;
__device__ inline uint64_t clock_ticks() { return uint64_t(clock64()); }
inline constexpr bool samples_command_each_poll = false;
/// True if now_ns() is the host's clock, in which deadlines are given.
inline constexpr bool shares_host_clock = false;
/// Returns clock_ticks(), and is not reordered with accesses to memory.
__device__ inline uint64_t clock_ticks_here() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(value) : : "memory");
  return value;
}

/// Adds to a word of the engine's own memory, to which other threads of the warp may add at the same time; it
/// does not wait for that.
__device__ inline void add_soon(uint64_t& word, uint64_t n) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" : : "l"(&word), "l"(n));
}
/// Calls add_soon() if `condition` holds, without a branch.
__device__ inline void add_soon_if(bool condition, uint64_t& word, uint64_t n) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p red.relaxed.gpu.global.add.u64 [%0], %1; }"
               :
               : "l"(&word), "l"(n), "r"(uint32_t(condition)));
}
/// Returns the word with all earlier additions of this thread, and of threads that it has synchronised with
/// since.
__device__ inline uint64_t load_added(const uint64_t& word) {
  uint64_t value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(&word));
  return value;
}

/// Sets `word`, of the engine's own memory, to `desired` if it is `expected`. Returns what it was.
__device__ inline uint64_t compare_and_swap(uint64_t& word, uint64_t expected, uint64_t desired) {
  return atomicCAS(reinterpret_cast<unsigned long long*>(&word), static_cast<unsigned long long>(expected),
                   static_cast<unsigned long long>(desired));
}

/// True if a poll takes so long that choosing its moment pays (PollDelay).
inline constexpr bool delays_first_poll = true;
__device__ inline void wait_ticks(uint32_t ticks) {
  const uint32_t began = uint32_t(clock64());
  while (uint32_t(clock64()) - began < ticks) {
  }
}

#else

struct HandlerGroup {
  static constexpr uint32_t rank() { return 0; }
  static constexpr uint32_t size() { return 1; }
  static constexpr void sync() {}
  static constexpr bool all_threads_poll() { return true; }
  template <class Word>
  static bool first_to_set(Word& word, Word value) {
    if (uint32_t(word) != 0) return false;
    word = value;
    return true;
  }
};

struct Team : HandlerGroup {
  static constexpr Team whole() { return {}; }
  static constexpr Team part(uint32_t) { return {}; }
  static constexpr auto group() { return team_group(0, 1, 1); }
};

constexpr bool polls() { return true; }

constexpr float ratio(uint64_t a, uint64_t b) { return float(a) / float(b); }

/// Nanoseconds of the steady clock, by which handlers are timed.
inline uint64_t steady_ns() {
  return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(
                      std::chrono::steady_clock::now().time_since_epoch())
                      .count());
}
namespace detail {
/// The time of the worker that this thread steps, where a test moves it (runtime/testing); null: the steady
/// clock's.
inline thread_local uint64_t* virtual_time_ns = nullptr;
}  // namespace detail
/// Nanoseconds of the clock that judges deadlines: the steady clock, or a test's.
inline uint64_t deadline_clock_ns() {
  return detail::virtual_time_ns != nullptr ? *detail::virtual_time_ns : steady_ns();
}
/// deadline_clock_ns() as handlers read it. Each reading moves a test's clock by 1 ns, so that a handler may
/// wait for time to pass.
inline uint64_t now_ns() {
  return detail::virtual_time_ns != nullptr ? ++*detail::virtual_time_ns : steady_ns();
}

/// The time-stamp counter reads faster than the clock: some 20 µs.
inline constexpr uint32_t command_poll_interval = 50'000;
inline uint64_t clock_ticks() { return __builtin_ia32_rdtsc(); }
inline uint64_t clock_ticks_here() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const uint64_t ticks = clock_ticks();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return ticks;
}
/// On the CPU the command word is in the cache.
inline constexpr bool samples_command_each_poll = true;
inline constexpr bool shares_host_clock = true;
inline constexpr bool delays_first_poll = false;
inline void wait_ticks(uint32_t) {}

inline void add_soon(uint64_t& word, uint64_t n) { word += n; }
inline void add_soon_if(bool condition, uint64_t& word, uint64_t n) {
  if (condition) word += n;
}
inline uint64_t load_added(const uint64_t& word) { return word; }
inline uint64_t compare_and_swap(uint64_t& word, uint64_t expected, uint64_t desired) {
  const uint64_t found = word;
  if (found == expected) word = desired;
  return found;
}

#endif

}  // namespace gyre
