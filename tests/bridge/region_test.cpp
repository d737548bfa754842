#include <gyre/bridge/heap.hpp>
#include <gyre/bridge/region.hpp>

#include <algorithm>
#include <vector>

#include "support/catch.hpp"

using namespace gyre;

TEST_CASE("no two parts of a region overlap, and all lie within it") {
  const RegionLayout layout{3, RingShape{16, 192, 1}, 8192, 5};
  std::vector<std::pair<uint64_t, uint64_t>> parts = {{0, sizeof(RegionHeader)},
                                                      {layout.handler_types(), 128}};  // 5 of 16 bytes
  for (uint32_t w = 0; w < layout.workers; ++w) {
    parts.push_back({layout.host_line(w), sizeof(HostLine)});
    parts.push_back({layout.worker_line(w), sizeof(WorkerLine)});
    parts.push_back({layout.last_words(w), sizeof(LastWords)});
    parts.push_back({layout.log(w), LogEntry::room * sizeof(LogEntry)});
    parts.push_back({layout.handler_counts(w), layout.counts_a_worker() * sizeof(HandlerCounts)});
    parts.push_back({layout.failure_log(w), FailureLog::bytes(layout.shape)});
    parts.push_back({layout.d2h_ring(w), layout.shape.ring_bytes()});
  }
  for (uint32_t w = 0; w < layout.workers; ++w) {
    parts.push_back({layout.inbound() + layout.command_line(w), sizeof(CommandLine)});
    parts.push_back({layout.inbound() + layout.h2d_ring(w), layout.shape.ring_bytes()});
  }
  uint64_t end = 0;
  for (const auto& [offset, bytes] : parts) {
    CHECK(offset == end);
    end = offset + bytes;
  }
  CHECK(end == layout.rings_bytes());
  CHECK(layout.inbound_bytes() == layout.rings_bytes() - layout.inbound());
  CHECK(layout.arena() >= end);
  CHECK(layout.arena() % 4096 == 0);
  CHECK(layout.arena() + layout.arena_bytes == layout.region_bytes());
}

TEST_CASE("lines that different sides write lie 128 bytes apart") {
  for (const uint32_t slot_bytes : {64u, 192u, 512u}) {
    const RegionLayout layout{2, RingShape{2, slot_bytes, 1}};
    for (uint32_t w = 0; w < 2; ++w) {
      CHECK(layout.host_line(w) % 128 == 0);
      CHECK(layout.worker_line(w) % 128 == 0);
      CHECK((layout.inbound() + layout.command_line(w)) % 128 == 0);
      CHECK(layout.command_line(w) % 64 == 0);
      CHECK(layout.h2d_ring(w) % 64 == 0);
      CHECK(layout.d2h_ring(w) % 64 == 0);
    }
  }
}

TEST_CASE("a bridge's inbound part is in the region, or where it is said to be") {
  const RegionLayout layout{3, RingShape{4, 128, 1}};
  HeapRegion region(layout.region_bytes(), layout.rings_bytes());
  HeapRegion elsewhere(layout.inbound_bytes_elsewhere(), layout.inbound_bytes_elsewhere());
  for (uint32_t w = 0; w < layout.workers; ++w) {
    const Bridge here = Bridge::of(region.address(), layout, w);
    const Bridge there = Bridge::of(region.address(), elsewhere.address(), layout, w);
    CHECK(reinterpret_cast<char*>(here.command_line) ==
          static_cast<char*>(region.address()) + layout.inbound() + w * layout.inbound_stride());
    CHECK(reinterpret_cast<char*>(there.command_line) ==
          static_cast<char*>(elsewhere.address()) + layout.command_line_elsewhere(w));
    CHECK(static_cast<void*>(here.h2d) == here.command_line + 1);
    CHECK(reinterpret_cast<char*>(there.h2d) ==
          static_cast<char*>(elsewhere.address()) + layout.inbound_ring_elsewhere(w));
    for (const Bridge& bridge : {here, there}) {
      CHECK(bridge.host_line == here.host_line);
      CHECK(bridge.d2h == here.d2h);
      CHECK(bridge.arena == here.arena);
    }
  }
}

TEST_CASE("elsewhere, rings and command lines lie apart from each other, on lines and pages of their own") {
  for (const RingShape& shape :
       {RingShape{256, 512, 1}, RingShape{4, 128, 1}, RingShape{256, 192, 1}, RingShape{2, 16384, 1}}) {
    const RegionLayout layout{3, shape};
    HeapRegion memory(layout.inbound_bytes_elsewhere(), layout.inbound_bytes_elsewhere());
    std::vector<std::pair<uint64_t, uint64_t>> parts;  // begin and end
    for (uint32_t w = 0; w < layout.workers; ++w) {
      const uint64_t ring = layout.inbound_ring_elsewhere(w), line = layout.command_line_elsewhere(w);
      CHECK(ring % (2 * SlotPages::page_bytes) == 0);
      CHECK(line % alignof(CommandLine) == 0);
      parts.emplace_back(ring, ring + SlotPages::ring_bytes(shape));
      parts.emplace_back(line, line + sizeof(CommandLine));
      const BarBridge bar = BarInbound{memory.address(), LineStore::four_packets}.of_worker(layout, w);
      const char* const base = static_cast<char*>(memory.address());
      CHECK(uint64_t(reinterpret_cast<char*>(bar.h2d) - base) == ring);
      CHECK(uint64_t(reinterpret_cast<char*>(bar.command_line) - base) == line);
    }
    std::sort(parts.begin(), parts.end());
    for (size_t i = 1; i < parts.size(); ++i) CHECK(parts[i - 1].second <= parts[i].first);
    CHECK(parts.back().second == layout.inbound_bytes_elsewhere());
  }
}

TEST_CASE("a region's header says what the region holds, and the rest is zero") {
  const RegionLayout layout{2, RingShape{4, 128, 9}};
  HeapRegion region(layout.region_bytes(), layout.rings_bytes());
  initialise_region(region.address(), layout);
  const auto& header = *static_cast<const RegionHeader*>(region.address());
  CHECK(header.magic == region_magic);
  CHECK(header.version == region_version);
  CHECK(header.workers == 2);
  CHECK(header.region_bytes == layout.region_bytes());
  CHECK(header.worker_stride == layout.worker_stride());
  CHECK(header.inbound_offset == layout.inbound());
  CHECK(header.inbound_stride == layout.inbound_stride());
  CHECK(header.shape.slots == 4);
  CHECK(header.shape.slot_bytes == 128);
  CHECK(header.shape.first_lap == 9);
  const auto* bytes = static_cast<const unsigned char*>(region.address());
  uint64_t other = 0;
  for (uint64_t i = sizeof(RegionHeader); i < layout.region_bytes(); ++i) other += bytes[i] != 0;
  CHECK(other == 0);
}
