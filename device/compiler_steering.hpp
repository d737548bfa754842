// Keeps NVRTC from moving, splitting or repeating what the worker's fast path does in a chosen order. Each
// function returns its argument; on the CPU it does nothing else.
//
// A worker of one warp runs alone on its multiprocessor: nothing hides the latency of what it waits for.
// NVRTC optimises for many warps. It computes an address anew for each access rather than hold a register,
// delays a load until a branch has decided that the value is needed, and turns a truth value into a branch.
// A lone warp waits for each of these. An empty asm statement makes a value opaque to the compiler, which
// then neither moves it nor computes it again. What it gains: docs/decisions/016-a-warp-stays-converged.md.
#pragma once

#include <gyre/messages/fixed_width.hpp>

namespace gyre {

#if defined(__CUDACC_RTC__)

/// Keeps `pointer` in registers, and says that it points to shared memory: what is reached by it is loaded by
/// ld.shared. `pointer`: into the group's own memory.
template <class T>
__device__ inline T* pin_pointer(T* pointer) {
  asm volatile("" : "+l"(pointer));
#if !defined(GYRE_GRID)  // a grid's own memory is global
  __builtin_assume(__isShared(pointer));
#endif
  return pointer;
}
/// Keeps the 32-bit shared address of `pointer` in a register. For a pointer that is used soon, and in one
/// place.
template <class T>
__device__ inline T* pin_shared_address(T* pointer) {
#if defined(GYRE_GRID)
  return pin_pointer(pointer);
#else
  auto address = uint32_t(__cvta_generic_to_shared(pointer));
  asm volatile("" : "+r"(address));
  return static_cast<T*>(__cvta_shared_to_generic(address));
#endif
}

/// Loads the word at `address`, in the group's own memory, at this place: the load is not delayed until a
/// branch has decided whether the word is needed.
__device__ inline uint32_t load_here(const uint32_t* address) {
  uint32_t value;
#if defined(GYRE_GRID)
  asm volatile("ld.u32 %0, [%1];" : "=r"(value) : "l"(address));
#else
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(uint32_t(__cvta_generic_to_shared(address))));
#endif
  return value;
}

/// Computes `truth` at this place, as the word 1 or 0: the compiler neither delays it nor makes branches of
/// it. A lone warp waits longer for a predicate than for a word.
__device__ inline uint32_t materialize(bool truth) {
  auto word = uint32_t(truth);
  asm volatile("" : "+r"(word));
  return word;
}

/// Tells the compiler that all threads of the warp have the same `truth`. Where ptxas proves this of every
/// branch around a kernel's collective functions, it leaves out the instructions that make a warp reconverge;
/// one branch without that proof brings them back everywhere. Collective over each warp.
__device__ inline bool assert_warp_uniform(bool truth) { return __any_sync(0xffffffffu, truth); }

#else

template <class T>
constexpr T* pin_pointer(T* pointer) {
  return pointer;
}
template <class T>
constexpr T* pin_shared_address(T* pointer) {
  return pointer;
}
inline uint32_t load_here(const uint32_t* address) { return *address; }
constexpr uint32_t materialize(bool truth) { return truth; }
constexpr bool assert_warp_uniform(bool truth) { return truth; }

#endif

}  // namespace gyre
