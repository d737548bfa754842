// What a C++ programmer would pick for two threads of one process: a pair of Boost.Lockfree queues.
#pragma once

#include "measure.hpp"

namespace gyre::bench {

/// Two threads, one boost::lockfree::spsc_queue each way, messages of `size` bytes (a multiple of 8) pushed
/// and popped whole; both spin. Throws Error.
Row measure_boost_spsc(const Plan& plan, uint32_t size);

}  // namespace gyre::bench
