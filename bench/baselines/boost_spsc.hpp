// What a C++ programmer would pick for two threads of one process: a pair of Boost.Lockfree queues.
#pragma once

#include "measure.hpp"

namespace gyre::bench {

/// Two threads, one boost::lockfree::spsc_queue each way, messages of `size` bytes (a multiple of 8) pushed
/// and popped whole; both spin. Throws Error.
Row measure_boost_spsc(const Plan& plan, uint32_t size);

/// Two threads, one queue: seconds for `messages` messages of `size` bytes (a multiple of 8) one way, each
/// word checked, after a tenth as many that are not counted. `slots`: messages the queue has room for. Throws
/// Error.
double measure_boost_spsc_one_way(uint32_t size, uint64_t messages, uint32_t slots);

}  // namespace gyre::bench
