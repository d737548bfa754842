// In place of Gyre's own header of this name: checks that the warp's threads agree where the worker says so.
#pragma once

#include <gyre/bridge/group.hpp>

#include <cstdio>
#include <cstdlib>

namespace gyre {

template <class T>
T* pin_pointer(T* pointer) {
  return pointer;
}
template <class T>
T* pin_shared_address(T* pointer) {
  return pointer;
}
inline uint32_t load_here(const uint32_t* address) { return *address; }
inline uint32_t materialize(bool truth) { return truth; }
inline bool assert_warp_uniform(bool truth) {
  const uint32_t threads = Warp::ballot(truth);
  if (threads != 0 && threads != 0xffffffff) {
    std::fprintf(stderr, "a warp's threads do not see alike what they should: %#x\n", threads);
    std::abort();
  }
  return threads != 0;
}

}  // namespace gyre
