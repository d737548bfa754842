#include "baselines/raw_memory.hpp"

#include <fmt/format.h>
#include <gyre/bridge/cuda/pinned.hpp>
#include <gyre/bridge/cuda/unified.hpp>
#include <gyre/bridge/errors/error.hpp>

namespace gyre::bench {

namespace {

// The rings of a region's workers, addressed from `base`.
RawRings rings_in(char* base, const RegionLayout& layout) {
  char* const inbound = base + layout.inbound();
  return {.h2d = inbound + layout.h2d_ring(0),
          .d2h = base + layout.d2h_ring(0),
          .command = inbound + layout.command_line(0) + offsetof(CommandLine, command),
          .worker_line = base + layout.worker_line(0),
          .h2d_stride = layout.inbound_stride(),
          .d2h_stride = layout.worker_stride(),
          .command_stride = layout.inbound_stride(),
          .worker_line_stride = layout.worker_stride(),
          .shape = layout.shape};
}
// The same where what is sent lies elsewhere, at `inbound`: its rings each in one piece.
RawRings rings_in(char* base, char* inbound, const RegionLayout& layout) {
  RawRings rings = rings_in(base, layout);
  rings.h2d = inbound + layout.inbound_ring_elsewhere(0);
  rings.command = inbound + layout.command_line_elsewhere(0) + offsetof(CommandLine, command);
  rings.h2d_stride = layout.inbound_ring_elsewhere(1);
  rings.command_stride = sizeof(CommandLine);
  return rings;
}

}  // namespace

RawMemory::RawMemory(const cuda::Context& context, TransportKind transport, uint32_t workers,
                     const RingShape& shape, uint32_t packets)
    : transport_(transport), workers_(workers), packets_(packets) {
  const RegionLayout layout{workers, shape};
  const size_t bytes = layout.region_bytes();
  if (transport_ == TransportKind::bar || transport_ == TransportKind::automatic) {
    try {
      bar_ = std::make_unique<cuda::BarMemoryHere>(context, layout.inbound_bytes_elsewhere());
      transport_ = TransportKind::bar;
    } catch (const EngineUnavailable&) {
      if (transport_ == TransportKind::bar) throw;
      transport_ = TransportKind::pinned;
    }
  }
  if (transport_ == TransportKind::pinned || transport_ == TransportKind::bar) {
    region_ = std::make_unique<cuda::PinnedRegion>(context, bytes, bytes);
  } else if (transport_ == TransportKind::unified) {
    region_ = std::make_unique<cuda::UnifiedRegion>(context, bytes, bytes);
  } else {
    throw BadOptions(fmt::format(
        "measuring raw over {}: the raw baselines have BAR, pinned and unified memory", name(transport_)));
  }
  char* const host = static_cast<char*>(region_->host_address());
  char* const device = reinterpret_cast<char*>(region_->device_address());
  if (bar_) {
    const BarInbound inbound = bar_->memory.inbound();
    store_ = inbound.store;
    host_ = rings_in(host, static_cast<char*>(inbound.address), layout);
    device_ = rings_in(device, reinterpret_cast<char*>(bar_->mapping.device_address()), layout);
  } else {
    host_ = rings_in(host, layout);
    device_ = rings_in(device, layout);
  }
}

Bridge RawMemory::bridge(uint32_t worker) const {
  return Bridge::of(region_->host_address(), RegionLayout{workers_, host_.shape}, worker);
}

BarBridge RawMemory::bar_bridge(uint32_t worker) const {
  return bar_ ? bar_->memory.inbound().of_worker(RegionLayout{workers_, host_.shape}, worker) : BarBridge{};
}

bool RawMemory::take_slot_pages() {
  std::vector<SlotPages> chosen;
  for (uint32_t worker = 0; worker < workers_; ++worker) {
    const WorkerLine& line = host_.line_of(worker);
    if (Memory::load_acquire(line.started) == 0) return false;
    chosen.emplace_back(host_.shape, Memory::load_relaxed(line.slot_pages));
  }
  slot_pages_ = std::move(chosen);
  return true;
}

void RawMemory::command_stop() const {
  for (uint32_t worker = 0; worker < workers_; ++worker) {
    Memory::store_release(host_.command_word(worker), 1);
  }
  if (bar_) Memory::store_fence();
}

void RawMemory::leak() {
  region_->leak();
  if (bar_) {
    bar_->mapping.leak();
    bar_->memory.leak();
  }
}

}  // namespace gyre::bench
