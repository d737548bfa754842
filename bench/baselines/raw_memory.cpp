#include "baselines/raw_memory.hpp"

#include <fmt/format.h>
#include <gyre/bridge/cuda/pinned.hpp>
#include <gyre/bridge/cuda/unified.hpp>
#include <gyre/bridge/error.hpp>

namespace gyre::bench {

namespace {

// The rings of a region's workers, addressed from `base`.
RawRings rings_in(char* base, const RegionLayout& layout) {
  return {.h2d = base + layout.h2d_ring(0),
          .d2h = base + layout.d2h_ring(0),
          .command = base + layout.host_line(0) + offsetof(HostLine, command),
          .credit = base + layout.worker_line(0) + offsetof(WorkerLine, h2d_credit),
          .h2d_stride = layout.worker_stride(),
          .d2h_stride = layout.worker_stride(),
          .line_stride = layout.worker_stride(),
          .shape = layout.shape};
}

}  // namespace

RawMemory::RawMemory(const cuda::Context& context, TransportKind transport, uint32_t workers,
                     const RingShape& shape, uint32_t packets)
    : transport_(transport == TransportKind::automatic ? TransportKind::pinned : transport),
      workers_(workers),
      packets_(packets) {
  const RegionLayout layout{workers, shape};
  const size_t bytes = layout.region_bytes();
  if (transport_ == TransportKind::pinned) {
    region_ = std::make_unique<cuda::PinnedRegion>(context, bytes, bytes);
  } else if (transport_ == TransportKind::unified) {
    region_ = std::make_unique<cuda::UnifiedRegion>(context, bytes, bytes);
  } else {
    throw BadOptions(fmt::format("measuring raw over {}: the raw baselines have pinned and unified memory",
                                 name(transport_)));
  }
  host_ = rings_in(static_cast<char*>(region_->host_address()), layout);
  device_ = rings_in(reinterpret_cast<char*>(region_->device_address()), layout);
}

Bridge RawMemory::bridge(uint32_t worker) const {
  Bridge bridge = Bridge::of(region_->host_address(), RegionLayout{workers_, host_.shape}, worker);
  bridge.h2d = host_.request(worker, 0);
  return bridge;
}

void RawMemory::command_stop() const {
  for (uint32_t worker = 0; worker < workers_; ++worker) {
    Memory::store_release(host_.command_word(worker), 1);
  }
}

}  // namespace gyre::bench
