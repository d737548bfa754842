#include <gyre/runtime/memory/scratch.hpp>

namespace gyre::detail {

constinit thread_local PerThread<Scratch> scratch_of_this_thread;

}  // namespace gyre::detail
