// Integers and the function qualifier that g++, clang and NVRTC share. The lowest header of the project: it
// includes nothing of Gyre, and under NVRTC nothing at all (system headers would cost a second of compile
// time).
#pragma once

#if defined(__CUDACC_RTC__)
// The same types that glibc's <stdint.h> has on x86-64, so that overloads resolve alike on both sides.
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
#if defined(GYRE_CUDA_TOOLKIT)
// Beside headers of the CUDA toolkit: as those declare them under NVRTC.
using int64_t = long long;
using uint64_t = unsigned long long;
#else
using int64_t = long;
using uint64_t = unsigned long;
#endif
using uintptr_t = uint64_t;
using size_t = unsigned long;
#define GYRE_DEVICE __device__
#define GYRE_DEVICE_NOINLINE __device__ __noinline__
#if defined(GYRE_SENDS)
#define GYRE_DEVICE_INLINE __device__ __forceinline__
#else
#define GYRE_DEVICE_INLINE __device__
#endif
#define GYRE_CONSTANT static __device__ const
#define GYRE_ROLLED _Pragma("unroll 1")
#undef offsetof  // libcu++'s is no constant
#define offsetof(type, member) \
  size_t(__INTADDR__(&(((type*)0)->member)))  // what NVRTC's front end has for it
#else
#include <stddef.h>
#include <stdint.h>
/// Marks a function that runs in a worker: on the GPU (compiled by NVRTC) and on the CPU (compiled by g++ or
/// clang).
#define GYRE_DEVICE
#define GYRE_DEVICE_NOINLINE
/// Marks a function on a worker's path, which must be inlined or NVRTC keeps the worker in memory. It would
/// not inline so much by itself in a set whose actors send (GYRE_SENDS); other sets are left to it.
#define GYRE_DEVICE_INLINE
/// Begins the definition of a constant array in a header, for either side.
#define GYRE_CONSTANT inline constexpr
/// Before a loop: it is not unrolled. NVRTC unrolls short loops, also those that seldom run. Kernels grow by
/// it, and values that it computes for such loops ahead take registers on the usual path.
#define GYRE_ROLLED
#endif

static_assert(sizeof(uint16_t) == 2 && sizeof(uint32_t) == 4 && sizeof(uint64_t) == 8 && sizeof(size_t) == 8,
              "Gyre needs a 64-bit platform");

/// A function that a kernel calls instead of having a copy of it wherever it is used.
#if defined(__CUDACC_RTC__)
#define GYRE_CALLED_FUNCTION __device__ __noinline__
#else
#define GYRE_CALLED_FUNCTION
#endif
