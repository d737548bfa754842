#include <gyre/runtime/elements.hpp>

namespace gyre::detail {

constinit thread_local PerThread<Scratch> scratch_of_this_thread;

void copy_elements(void* to, const void* from, size_t bytes) {
  if (bytes < CopyThreads::worth_helping) {
    std::memcpy(to, from, bytes);
  } else {
    CopyThreads::shared()->copy(to, from, bytes);
  }
}

}  // namespace gyre::detail
