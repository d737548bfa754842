// Cooperative groups for the CPU engine: what handlers use of them, for groups of one thread. The names are
// those of the CUDA toolkit's <cooperative_groups.h>, which declares nothing for a host's compiler; tiles of
// any size are one thread too. NVRTC never sees this header.
#pragma once

#include <gyre/messages/fixed_width.hpp>

#include <cstring>
#include <utility>

namespace gyre::of_one_thread {

class thread_block {
 public:
  static constexpr void sync() {}
  static constexpr uint32_t thread_rank() { return 0; }
  static constexpr uint32_t num_threads() { return 1; }
  static constexpr uint32_t size() { return 1; }
  static constexpr uint32_t block_rank() { return 0; }
  static constexpr uint32_t num_blocks() { return 1; }
};
using grid_group = thread_block;

class coalesced_group {
 public:
  static constexpr void sync() {}
  static constexpr uint32_t thread_rank() { return 0; }
  static constexpr uint32_t num_threads() { return 1; }
  static constexpr uint32_t size() { return 1; }
  static constexpr uint32_t meta_group_rank() { return 0; }
  static constexpr uint32_t meta_group_size() { return 1; }
  template <class T>
  static constexpr T shfl(T value, uint32_t) {
    return value;
  }
  template <class T>
  static constexpr T shfl_up(T value, uint32_t) {
    return value;
  }
  template <class T>
  static constexpr T shfl_down(T value, uint32_t) {
    return value;
  }
  template <class T>
  static constexpr T shfl_xor(T value, uint32_t) {
    return value;
  }
  static constexpr int any(int condition) { return condition != 0; }
  static constexpr int all(int condition) { return condition != 0; }
  static constexpr uint32_t ballot(int condition) { return condition != 0; }
  template <class T>
  static constexpr uint32_t match_any(T) {
    return 1;
  }
};

template <uint32_t Size, class Parent = void>
class thread_block_tile : public coalesced_group {
  static_assert(Size != 0 && (Size & (Size - 1)) == 0, "a tile's size is a power of two");
};

constexpr thread_block this_thread_block() { return {}; }
constexpr grid_group this_grid() { return {}; }
constexpr coalesced_group coalesced_threads() { return {}; }
constexpr thread_block_tile<1> this_thread() { return {}; }

template <uint32_t Size, class Group>
constexpr thread_block_tile<Size, Group> tiled_partition(const Group&) {
  return {};
}
template <class Group>
constexpr coalesced_group tiled_partition(const Group&, uint32_t) {
  return {};
}
template <class Group>
constexpr coalesced_group binary_partition(const Group&, bool) {
  return {};
}
template <class Group, class Label>
constexpr coalesced_group labeled_partition(const Group&, Label) {
  return {};
}

template <class Group>
constexpr void sync(const Group&) {}
template <class Group, class F, class... Arguments>
constexpr void invoke_one(const Group&, F&& f, Arguments&&... arguments) {
  std::forward<F>(f)(std::forward<Arguments>(arguments)...);
}

template <class T>
struct plus {
  constexpr T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  constexpr T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  constexpr T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  constexpr T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  constexpr T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  constexpr T operator()(T a, T b) const { return a ^ b; }
};

// Of tiles and coalesced groups alone, as in the toolkit.
template <class T, class F>
constexpr T reduce(const coalesced_group&, T value, F&&) {
  return value;
}
template <class T, class F = plus<T> >
constexpr T inclusive_scan(const coalesced_group&, T value, F&& = {}) {
  return value;
}
template <class T, class F = plus<T> >
constexpr T exclusive_scan(const coalesced_group&, T, F&& = {}) {
  return T();
}

template <class Group, class To, class From>
void memcpy_async(const Group&, To* to, const From* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}
template <class Group>
constexpr void wait(const Group&) {}
template <uint32_t Stages, class Group>
constexpr void wait_prior(const Group&) {}

}  // namespace gyre::of_one_thread

#if !defined(__CUDACC__)  // nvcc has the toolkit's own
namespace cooperative_groups {
using namespace gyre::of_one_thread;
}
#endif
