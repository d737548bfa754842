// Functions that divide a list among the threads that run a handler. Each thread takes elements by its
// rank, in 16-byte accesses if the lists are aligned alike. Every thread of the team must call them with
// the same lists. Only sum() contains a barrier.
#pragma once

#include <gyre/device/context.hpp>
#include <gyre/messages/view.hpp>

namespace gyre {

namespace detail {

/// Holds `bytes` bytes of elements, which are loaded and stored by one access.
template <class T, uint32_t bytes>
struct Chunk {
  static constexpr uint32_t size = bytes / sizeof(T);
  T elements[size];

  GYRE_DEVICE static Chunk load(const T* address) {
#if defined(__CUDACC_RTC__)
    if constexpr (bytes == 16) {
      return __builtin_bit_cast(Chunk, *reinterpret_cast<const ulonglong2*>(address));
    } else {
      return __builtin_bit_cast(Chunk, *reinterpret_cast<const uint64_t*>(address));
    }
#else
    Chunk chunk;
    memcpy(&chunk, address, bytes);
    return chunk;
#endif
  }
  GYRE_DEVICE void store(T* address) const {
#if defined(__CUDACC_RTC__)
    if constexpr (bytes == 16) {
      *reinterpret_cast<ulonglong2*>(address) = __builtin_bit_cast(ulonglong2, *this);
    } else {
      *reinterpret_cast<uint64_t*>(address) = __builtin_bit_cast(uint64_t, *this);
    }
#else
    memcpy(address, this, bytes);
#endif
  }
};

template <uint32_t bytes, class Out, class F, class... In>
GYRE_DEVICE Chunk<Out, bytes> chunk_of(uint64_t first, F& f, const In*... in) {
  Chunk<Out, bytes> result;
  [&](const Chunk<In, bytes>&... chunks) {
    for (uint32_t k = 0; k < Chunk<Out, bytes>::size; ++k) result.elements[k] = f(chunks.elements[k]...);
  }(Chunk<In, bytes>::load(in + first)...);
  return result;
}

/// Holds chunks of `bytes` bytes that lie `step` chunks apart. All are loaded before the first is used:
/// memory across the bus has a long latency, and a thread needs several loads in flight.
template <class T, uint32_t bytes>
struct FarChunks {
  static constexpr uint32_t count = 64 / bytes;
  static constexpr uint32_t size = Chunk<T, bytes>::size;
  Chunk<T, bytes> chunks[count];

  /// Loads chunks of `address` from chunk `first` on.
  template <class Index>
  GYRE_DEVICE static FarChunks load(const T* address, Index first, Index step) {
    FarChunks loaded;
    for (uint32_t i = 0; i < count; ++i)
      loaded.chunks[i] = Chunk<T, bytes>::load(address + (first + i * step) * size);
    return loaded;
  }
};

/// Sets the chunks of `out` at the positions of the input chunks.
template <uint32_t bytes, class Out, class Index, class F, class... In>
GYRE_DEVICE void transform_far_chunks(Out* out, Index first, Index step, F& f,
                                      const FarChunks<In, bytes>&... in) {
  using Far = FarChunks<Out, bytes>;
  for (uint32_t i = 0; i < Far::count; ++i) {
    Chunk<Out, bytes> result;
    for (uint32_t k = 0; k < Far::size; ++k) result.elements[k] = f(in.chunks[i].elements[k]...);
    result.store(out + (first + i * step) * Far::size);
  }
}

/// Sets the elements of `out` that fill whole chunks of `bytes` bytes; returns their number, at most
/// `count`. An index is of 32 bits for lists, which costs a GPU less.
template <uint32_t bytes, class Out, class Index, class F, class... In>
GYRE_DEVICE Index transform_chunks(const Context& ctx, Out* out, Index count, F& f, const In*... in) {
  constexpr uint32_t size = bytes / sizeof(Out), far = FarChunks<Out, bytes>::count;
  const Index chunks = count / size, step = ctx.size();
  Index c = ctx.rank();
  for (; c + (far - 1) * step < chunks; c += far * step) {
    transform_far_chunks<bytes, Out>(out, c, step, f, FarChunks<In, bytes>::load(in, c, step)...);
  }
  for (; c < chunks; c += step) chunk_of<bytes, Out>(c * size, f, in...).store(out + c * size);
  return chunks * size;
}

/// Implements transform() for a list with more elements than the team has threads.
template <class Out, class F, class... In>
GYRE_DEVICE void transform_long(const Context& ctx, const wire::ListBuilder<Out>& out, F& f,
                                const wire::ListReader<In>&... in) {
  uint32_t done = 0;
  if constexpr (((sizeof(In) == sizeof(Out)) && ...)) {
    uint32_t count = out.size();
    ((count = in.size() < count ? in.size() : count), ...);
    // Lists begin at multiples of 8.
    const uintptr_t addresses =
        (reinterpret_cast<uintptr_t>(out.data()) | ... | reinterpret_cast<uintptr_t>(in.data()));
    if (!((in.data() == nullptr) || ...)) {
      done = addresses % 16 == 0 ? transform_chunks<16>(ctx, out.data(), count, f, in.data()...)
                                 : transform_chunks<8>(ctx, out.data(), count, f, in.data()...);
    }
  }
  for (uint32_t i = done + ctx.rank(); i < out.size(); i += ctx.size()) out.set(i, f(in[i]...));
}

/// Calls f(i, list[i]) for the elements that fill whole chunks of `bytes` bytes; returns their number.
template <uint32_t bytes, class T, class F>
GYRE_DEVICE uint32_t visit_far_chunks(const Context& ctx, const T* elements, uint32_t count, F& f) {
  using Far = FarChunks<T, bytes>;
  const uint32_t step = ctx.size(), chunks = count / Far::size / (Far::count * step) * (Far::count * step);
  for (uint32_t c = ctx.rank(); c < chunks; c += Far::count * step) {
    const Far loaded = Far::load(elements, c, step);
    for (uint32_t i = 0; i < Far::count; ++i) {
      for (uint32_t k = 0; k < Far::size; ++k)
        f((c + i * step) * Far::size + k, loaded.chunks[i].elements[k]);
    }
  }
  return chunks * Far::size;
}

}  // namespace detail

/// Calls f(i, list[i]) for this thread's part of the elements. Of a long list of numbers a thread keeps 64
/// bytes of loads in flight.
template <class T, class F>
GYRE_DEVICE void for_each(const Context& ctx, const wire::ListReader<T>& list, F f) {
  uint32_t done = 0;
  if constexpr (wire::Scalar<T>) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(list.data());
    if (list.size() >= 64 / sizeof(T) * ctx.size() && address != 0) {
      done = address % 16 == 0 ? detail::visit_far_chunks<16>(ctx, list.data(), list.size(), f)
                               : detail::visit_far_chunks<8>(ctx, list.data(), list.size(), f);
    }
  }
  for (uint32_t i = done + ctx.rank(); i < list.size(); i += ctx.size()) f(i, list[i]);
}

/// Sets out[i] to f(in[i]...) for this thread's part of the elements of `out`. Lists of integers, floats
/// and enums.
/// @param f   called once per element, in no particular order
/// @param in  input lists; beyond the end of a shorter list `f` gets T{}
template <class Out, class F, class... In>
GYRE_DEVICE void transform(const Context& ctx, const wire::ListBuilder<Out>& out, F f,
                           const wire::ListReader<In>&... in) {
  static_assert(wire::Scalar<Out> && (wire::Scalar<In> && ...),
                "lists of integers, floats and enums: a Bool is a bit, and the others are behind pointers");
  const uint32_t i = ctx.rank();
  const bool is_short = out.size() <= ctx.size();  // at most one element per thread
  const bool has_one = materialize(is_short & (i < out.size())) != 0;
  // Load first, so that the tests of the size overlap the loads of a short list; at most one store
  // follows. A long list does not use these loads.
  [&](In... values) {
    if (!is_short) detail::transform_long(ctx, out, f, in...);
    if (has_one) out.set_unchecked(i, f(values...));
  }(in[i]...);
}

/// Sets out[i] to f(in[i]...) for short lists: one element per thread. Elements of `out` beyond the number
/// of threads are not set. See transform().
template <class Out, class F, class... In>
GYRE_DEVICE void transform_short(const Context& ctx, const wire::ListBuilder<Out>& out, F f,
                                 const wire::ListReader<In>&... in) {
  const uint32_t i = ctx.rank();
  const bool has_one = materialize(i < out.size()) != 0;
  // Load first, also in threads without an element; at most one store follows.
  [&](In... values) {
    if (has_one) out.set_unchecked(i, f(values...));
  }(in[i]...);
}

/// Sets out[i] to f(in[i]...) for buffers, up to the length of the shortest; each thread does its part. If
/// all elements have one size, a thread keeps four 16-byte loads per input in flight.
template <class Out, class F, class... In>
GYRE_DEVICE void transform(const Context& ctx, const BufferSpan<Out>& out, F f, const BufferSpan<In>&... in) {
  uint64_t count = out.size();
  ((count = in.size() < count ? in.size() : count), ...);
  uint64_t done = 0;
  // Imported buffers begin at any multiple of an element's size.
  const uintptr_t addresses =
      (reinterpret_cast<uintptr_t>(out.data()) | ... | reinterpret_cast<uintptr_t>(in.data()));
  if constexpr (((sizeof(In) == sizeof(Out)) && ...)) {
    if (addresses % 16 == 0) done = detail::transform_chunks<16>(ctx, out.data(), count, f, in.data()...);
  }
  for (uint64_t i = done + ctx.rank(); i < count; i += ctx.size()) out[i] = f(in[i]...);
}

/// Copies this thread's part of `in` to `out`. Elements of `out` beyond the end of `in` become T{}.
template <class T>
GYRE_DEVICE void copy(const Context& ctx, const wire::ListReader<T>& in, const wire::ListBuilder<T>& out) {
  transform(
      ctx, out, [](T value) { return value; }, in);
}

/// Adds `n` to an integer of the actor's state. Other threads, and handlers of other messages
/// (HandlesSideBySide), may add at the same time. A later message that is not handled in parallel finds
/// the sum.
/// @param state  an integer of 4 or 8 bytes
template <class T>
GYRE_DEVICE void add_to(T& state, T n) {
  static_assert(T(1) / 2 == T(0) && (sizeof(T) == 4 || sizeof(T) == 8), "an integer of 32 or 64 bits");
#if defined(__CUDACC_RTC__)
  if constexpr (sizeof(T) == 4) {
    atomicAdd(reinterpret_cast<unsigned int*>(&state), static_cast<unsigned int>(n));
  } else {
    atomicAdd(reinterpret_cast<unsigned long long*>(&state), static_cast<unsigned long long>(n));
  }
#else
  state += n;
#endif
}

#if defined(__CUDACC_RTC__)
namespace detail {

static __shared__ uint64_t warp_partials[32];
#if defined(GYRE_GRID)
inline constexpr uint32_t max_grid_blocks = 4096;
static __device__ uint64_t block_partials[max_grid_blocks];
#endif

template <class T>
__device__ T sum_of_lanes(T value, uint32_t lanes, uint32_t count) {
  for (uint32_t lane = count / 2; lane != 0; lane /= 2) {
    value += __shfl_xor_sync(lanes, value, int(lane));
  }
  return value;
}
template <class T>
__device__ T sum_of_warp(T value) {
  return sum_of_lanes(value, 0xffffffffu, 32);
}

template <class T>
__device__ T sum_of_block(T value) {
  T* const partials = reinterpret_cast<T*>(warp_partials);
  value = sum_of_warp(value);
  if (threadIdx.x % 32 == 0) partials[threadIdx.x / 32] = value;
  Block::sync();
  value = sum_of_warp(threadIdx.x % 32 < Block::size() / 32 ? partials[threadIdx.x % 32] : T(0));
  Block::sync();
  return value;
}

}  // namespace detail
#endif

/// Adds up `value` over all threads of the team and returns the sum in every thread. Contains a barrier:
/// every thread must call it. The order of addition depends only on the size of the team, so teams of one
/// size get bitwise equal sums of equal values.
/// @param value  a number of at most 8 bytes
template <class T>
GYRE_DEVICE T sum(Context& ctx, T value) {
  static_assert(sizeof(T) <= 8);
#if defined(__CUDACC_RTC__)
  if constexpr (HandlerGroup::all_threads_poll()) {
    value = detail::sum_of_lanes(value, ctx.team().lanes(), ctx.size());
  } else {
    value = detail::sum_of_block(value);
  }
#if defined(GYRE_GRID)
  T* const partials = reinterpret_cast<T*>(detail::block_partials);
  if (threadIdx.x == 0) partials[blockIdx.x] = value;
  ctx.sync();
  value = T(0);
  for (uint32_t i = threadIdx.x; i < gridDim.x; i += Block::size()) value += partials[i];
  value = detail::sum_of_block(value);
  ctx.sync();
#endif
#endif
  (void)ctx;
  return value;
}

}  // namespace gyre
