// Packets and words: every access to memory that host and engine both touch. The only file that moves 16
// bytes at once, and 64.
//
// A packet carries 12 data bytes and a 4-byte stamp, and is stored and loaded in one 16-byte access, so a
// stamp that matches proves that the 12 bytes beside it are whole. Packets order nothing but themselves: no
// access here is an acquire or a release unless its name says so.
//
// Why one access is single-copy atomic: CUDA C++ programming guide, "naturally aligned accesses of 1, 2, 4,
// 8, 16 bytes to mapped memory are preserved as single accesses"; Intel SDM vol. 3A 9.1.1 and AMD APM vol.
// 2 7.3.2: processors with AVX perform aligned 16-byte SSE/AVX accesses atomically (the runtime refuses a
// processor without AVX).
#pragma once

#include <gyre/messages/fixed_width.hpp>

#if !defined(__CUDACC_RTC__)
#if !defined(__x86_64__)
#error \
    "Gyre's packets need single 16-byte accesses: build for x86-64 (processors with AVX); no other host is supported."
#endif
#include <cpuid.h>
#include <emmintrin.h>

#include <atomic>
#endif

#if defined(__SANITIZE_THREAD__)
#define GYRE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GYRE_THREAD_SANITIZER 1
#endif
#endif

namespace gyre {

/// One packet: 12 bytes of payload and the stamp of the lap they belong to (0: never written).
struct alignas(16) Packet {
  uint32_t data[3];
  uint32_t stamp;
};
static_assert(sizeof(Packet) == 16 && alignof(Packet) == 16, "a packet is one 16-byte access");

/// Four packets: what memory beyond the bus is written in.
struct alignas(64) Line {
  static constexpr uint32_t size = 4;
  Packet packets[size];
};

#if defined(__CUDACC_RTC__)

/// Who else takes part in accesses to some memory.
enum class Scope {
  gpu,     ///< workers of one GPU
  system,  ///< the host too
};

/// The GPU's side. Scalar .b128 accesses (PTX ISA 8.3, sm_70 and up).
template <Scope scope>
struct ScopedDeviceMemory {
  using Cell = Packet;
  using Word = uint64_t;
  using Word32 = uint32_t;

  // One instruction with the scope between `before` and `after`, then its operands.
#define GYRE_SCOPED(before, after, ...)              \
  do {                                               \
    if constexpr (scope == Scope::gpu) {             \
      asm volatile(before ".gpu" after __VA_ARGS__); \
    } else {                                         \
      asm volatile(before ".sys" after __VA_ARGS__); \
    }                                                \
  } while (false)

  __device__ static Packet load(const Cell& cell) {
    uint64_t low, high;
    GYRE_SCOPED("{ .reg .b128 t; ld.relaxed", ".global.b128 t, [%2]; mov.b128 {%0, %1}, t; }",
                : "=l"(low), "=l"(high)
                : "l"(&cell)
                : "memory");
    return Packet{{uint32_t(low), uint32_t(low >> 32), uint32_t(high)}, uint32_t(high >> 32)};
  }
  __device__ static void store(Cell& cell, const Packet& packet) {
    const uint64_t low = packet.data[0] | uint64_t(packet.data[1]) << 32;
    const uint64_t high = packet.data[2] | uint64_t(packet.stamp) << 32;
    GYRE_SCOPED("{ .reg .b128 t; mov.b128 t, {%1, %2}; st.relaxed", ".global.b128 [%0], t; }",
                :
                : "l"(&cell), "l"(low), "l"(high)
                : "memory");
  }
  /// The same where `condition` holds, without a branch.
  __device__ static void store_if(bool condition, Cell& cell, const Packet& packet) {
    const uint64_t low = packet.data[0] | uint64_t(packet.data[1]) << 32;
    const uint64_t high = packet.data[2] | uint64_t(packet.stamp) << 32;
    GYRE_SCOPED("{ .reg .b128 t; .reg .pred p; setp.ne.u32 p, %3, 0; mov.b128 t, {%1, %2}; @p st.relaxed",
                ".global.b128 [%0], t; }",
                :
                : "l"(&cell), "l"(low), "l"(high), "r"(uint32_t(condition))
                : "memory");
  }
  /// Orders the plain accesses to memory that packets announce, before and after the packets: each thread
  /// that stores such a packet calls it first, each that has loaded one calls it then.
  __device__ static void fence() { GYRE_SCOPED("fence.acq_rel", ";", : : : "memory"); }
  /// Orders plain loads behind the packets, and nothing else: each thread that reads announced memory, or
  /// another one of its block before a barrier, calls it. Costs nanoseconds where fence() costs 1 µs, since
  /// it does not wait for stores. PTX has it for compute capability 9.0 and later.
  __device__ static void acquire_fence() {
#if __CUDA_ARCH__ >= 900 && \
    (__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 8))
    GYRE_SCOPED("fence.acquire", ";", : : : "memory");
#else
    fence();
#endif
  }
  /// Orders loads, plain ones and packets, before packets stored and words written later, after a barrier.
  /// Nothing to do: at a barrier a thread has the values that it loaded.
  __device__ static void fence_after_loads() {}
  __device__ static uint64_t load_relaxed(const Word& word) {
    uint64_t value;
    GYRE_SCOPED("ld.relaxed", ".global.u64 %0, [%1];", : "=l"(value) : "l"(&word) : "memory");
    return value;
  }
  __device__ static uint64_t load_acquire(const Word& word) {
    uint64_t value;
    GYRE_SCOPED("ld.acquire", ".global.u64 %0, [%1];", : "=l"(value) : "l"(&word) : "memory");
    return value;
  }
  __device__ static uint32_t load_acquire(const Word32& word) {
    uint32_t value;
    GYRE_SCOPED("ld.acquire", ".global.u32 %0, [%1];", : "=r"(value) : "l"(&word) : "memory");
    return value;
  }
  __device__ static void store_relaxed(Word& word, uint64_t value) {
    GYRE_SCOPED("st.relaxed", ".global.u64 [%0], %1;", : : "l"(&word), "l"(value) : "memory");
  }
  __device__ static void store_release(Word& word, uint64_t value) {
    GYRE_SCOPED("st.release", ".global.u64 [%0], %1;", : : "l"(&word), "l"(value) : "memory");
  }
  __device__ static void store_release(Word32& word, uint32_t value) {
    GYRE_SCOPED("st.release", ".global.u32 [%0], %1;", : : "l"(&word), "r"(value) : "memory");
  }
  /// Adds `n` to a word that gives out tickets, and returns its value before: loads before it come before it,
  /// and it comes before stores to the slots of its tickets, in other threads that claim later too. Relaxed:
  /// a thread claims because of values that it has loaded, and the ticket is the address of what it stores,
  /// so neither can pass the claim on a GPU. Acquire and release, the memory model's words for it, would make
  /// each claim wait for all earlier stores of its thread.
  __device__ static uint64_t fetch_add(Word& word, uint64_t n) {
    uint64_t before;
    GYRE_SCOPED("atom.relaxed", ".global.add.u64 %0, [%1], %2;",
                : "=l"(before)
                : "l"(&word), "l"(n)
                : "memory");
    return before;
  }
  /// On failure `expected` holds the value found.
  __device__ static bool compare_exchange(Word& word, uint64_t& expected, uint64_t desired) {
    const uint64_t wanted = expected;
    GYRE_SCOPED("atom.acq_rel", ".global.cas.b64 %0, [%1], %2, %3;",
                : "=l"(expected)
                : "l"(&word), "l"(wanted), "l"(desired)
                : "memory");
    return expected == wanted;
  }
#undef GYRE_SCOPED
};
using DeviceMemory = ScopedDeviceMemory<Scope::system>;
using Memory = DeviceMemory;
/// Memory that no host touches while workers run.
using WorkersMemory = ScopedDeviceMemory<Scope::gpu>;

#else

/// How the CPU stores a line to memory that it does not cache (write-combining).
enum class LineStore {
  four_packets,  ///< four 16-byte stores, which the processor's buffers combine
  movdir64b,     ///< one 64-byte store, never torn; not every processor has it
};

/// The CPU's side.
struct HostMemory {
  using Cell = Packet;
  using Word = uint64_t;
  using Word32 = uint32_t;

  /// The better of what this processor has. Asks it, which takes microseconds in a virtual machine.
  static LineStore best_line_store() {
    uint32_t a = 0, b = 0, c = 0, d = 0;
    constexpr uint32_t movdir64b_bit = 1u << 28;
    const bool has = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & movdir64b_bit) != 0;
    return has ? LineStore::movdir64b : LineStore::four_packets;
  }
  /// Stores `line` to the four cells at `to`, which is 64-aligned. By packets the first one is the last to be
  /// stored. Ordered after nothing, and before nothing but what comes after store_fence().
  static void store_line(LineStore how, Cell* to, const Line& line) {
    if (how == LineStore::movdir64b) {
      asm volatile("movdir64b %1, %0" : : "r"(to), "m"(line) : "memory");
    } else {
      for (uint32_t k = Line::size; k-- > 0;) store(to[k], line.packets[k]);
    }
  }
  /// Stores before it, to memory of any kind, come before stores after it, and do not linger in the
  /// processor.
  static void store_fence() { asm volatile("sfence" : : : "memory"); }

#if defined(GYRE_THREAD_SANITIZER)
  // The same promise in words that ThreadSanitizer understands: relaxed atomics, stamp written last and read
  // first. x86 keeps stores and loads in program order; relaxed accesses create no happens-before edge, so a
  // race on memory that a packet merely announces is still reported.
  static Packet load(const Cell& cell) {
    Packet packet;
    packet.stamp = __atomic_load_n(&cell.stamp, __ATOMIC_RELAXED);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    for (int i = 0; i < 3; ++i) packet.data[i] = __atomic_load_n(&cell.data[i], __ATOMIC_RELAXED);
    return packet;
  }
  static void store(Cell& cell, const Packet& packet) {
    for (int i = 0; i < 3; ++i) __atomic_store_n(&cell.data[i], packet.data[i], __ATOMIC_RELAXED);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    __atomic_store_n(&cell.stamp, packet.stamp, __ATOMIC_RELAXED);
  }
  static void store_if(bool condition, Cell& cell, const Packet& packet) {
    if (condition) store(cell, packet);
  }
  static __m128i load_vector(const Cell& cell) { return __builtin_bit_cast(__m128i, load(cell)); }
  static void store_vector(Cell& cell, __m128i packet) { store(cell, __builtin_bit_cast(Packet, packet)); }
  // ThreadSanitizer does not know fences: they meet in one word.
  static void fence() {
    static std::atomic<uint32_t> meeting_point{0};
    meeting_point.fetch_add(1, std::memory_order_acq_rel);
  }
  static void acquire_fence() { fence(); }
  static void fence_after_loads() { fence(); }
#else
  static Packet load(const Cell& cell) { return __builtin_bit_cast(Packet, load_vector(cell)); }
  static void store(Cell& cell, const Packet& packet) {
    store_vector(cell, __builtin_bit_cast(__m128i, packet));
  }
  /// A packet as a register holds it, its stamp highest: a Packet goes by way of the stack.
  static __m128i load_vector(const Cell& cell) {
    __m128i value;
    asm volatile("movdqa %1, %0" : "=x"(value) : "m"(cell));
    return value;
  }
  static void store_vector(Cell& cell, __m128i packet) {
    asm volatile("movdqa %1, %0" : "=m"(cell) : "x"(packet));
  }
  static void store_if(bool condition, Cell& cell, const Packet& packet) {
    if (condition) store(cell, packet);
  }
  /// Orders the plain accesses to memory that packets announce, before and after the packets. x86 keeps
  /// stores among stores and loads among loads in order: it is the compiler that must.
  static void fence() { std::atomic_thread_fence(std::memory_order_acq_rel); }
  /// Orders plain loads behind the packets, and nothing else.
  static void acquire_fence() { std::atomic_thread_fence(std::memory_order_acquire); }
  /// Orders loads, plain ones and packets, before packets stored and words written later.
  static void fence_after_loads() { std::atomic_thread_fence(std::memory_order_acq_rel); }
#endif
  static uint64_t load_relaxed(const Word& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }
  static uint64_t load_acquire(const Word& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }
  static uint32_t load_acquire(const Word32& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }
  static void store_relaxed(Word& word, uint64_t value) { __atomic_store_n(&word, value, __ATOMIC_RELAXED); }
  static void store_release(Word& word, uint64_t value) { __atomic_store_n(&word, value, __ATOMIC_RELEASE); }
  static void store_release(Word32& word, uint32_t value) {
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
  }
  /// Adds `n` to a word that gives out tickets, and returns its value before. Accesses before it come before
  /// it, and it comes before accesses after it, in other threads that claim later too.
  static uint64_t fetch_add(Word& word, uint64_t n) { return __atomic_fetch_add(&word, n, __ATOMIC_ACQ_REL); }
  /// On failure `expected` holds the value found.
  static bool compare_exchange(Word& word, uint64_t& expected, uint64_t desired) {
    return __atomic_compare_exchange_n(&word, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  }
  static uint64_t fetch_or(Word& word, uint64_t bits) {
    return __atomic_fetch_or(&word, bits, __ATOMIC_ACQ_REL);
  }
};
using Memory = HostMemory;
using WorkersMemory = HostMemory;

#endif

}  // namespace gyre
