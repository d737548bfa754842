// What a large payload costs at least: the same bytes copied, and nothing computed.
#pragma once

#include <cstdint>

namespace gyre::bench {

#if defined(GYRE_WITH_CUDA)
/// Seconds for `messages` copies of `bytes_in` bytes to the device and as many of `bytes_out` back, each
/// direction on a stream of its own (cuMemcpyAsync), from and to pinned memory; a tenth more warm up. What
/// came back is compared once. No kernel may live on the device. Throws EngineUnavailable, Error.
double measure_device_copies(int device, uint64_t bytes_in, uint64_t bytes_out, uint64_t messages);
#endif

/// The same by memcpy in this thread. Throws Error, std::bad_alloc.
double measure_host_copies(uint64_t bytes_in, uint64_t bytes_out, uint64_t messages);

}  // namespace gyre::bench
