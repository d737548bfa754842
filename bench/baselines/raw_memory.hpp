// The memory of the raw baselines' rings, and the host's accesses to it.
#pragma once

#include <gyre/bridge/cuda/bar.hpp>
#include <gyre/bridge/cuda/region_memory.hpp>
#include <gyre/bridge/region.hpp>
#include <gyre/runtime/options.hpp>

#include <cstring>
#include <memory>
#include <vector>

#include "baselines/raw_rings.hpp"

namespace gyre::bench {

/// Rings for `workers` workers on one transport. What is written for one ring is one thread's.
class RawMemory {
 public:
  /// `context` must outlive it. `transport`: automatic is BAR where it works, else pinned, as Gyre's.
  /// `packets`: of every message. Throws EngineUnavailable, BadOptions for a transport that the raw baselines
  /// do not have, Error.
  RawMemory(const cuda::Context& context, TransportKind transport, uint32_t workers, const RingShape& shape,
            uint32_t packets);

  /// As the device addresses them.
  const RawRings& on_device() const { return device_; }
  TransportKind transport() const { return transport_; }
  const RingShape& shape() const { return host_.shape; }
  uint32_t packets() const { return packets_; }

  /// Where a kernel chooses its slots' pages: takes what its workers chose, before the first send(). False
  /// while one of them has not said it. Never blocks.
  bool take_slot_pages();
  /// Stores a message's packets: `payload` has 12 bytes for each. Never blocks.
  void send(uint32_t worker, uint64_t ticket, const void* payload) const {
    const auto* const words = static_cast<const uint32_t*>(payload);
    if (!slot_pages_.empty()) {
      const uint32_t body_bytes = packets_ * data_bytes_a_packet - uint32_t(sizeof(Envelope));
      store_lines<Memory>(store_, host_.request(worker, ticket, slot_pages_[worker]),
                          host_.shape.stamps_whole_slot(ticket), host_.shape, body_bytes, [&](uint32_t k) {
                            return packed_line(words, body_bytes, k, host_.shape.stamp(ticket));
                          });
      Memory::store_fence();
      return;
    }
    if (bar_) {
      publish_lines<Memory>(store_, host_.request(worker, 0), host_.shape, ticket, words,
                            packets_ * data_bytes_a_packet - uint32_t(sizeof(Envelope)));
      return;
    }
    Packet* const slot = host_.request(worker, ticket);
    const uint32_t stamp = host_.shape.stamp(ticket);
    for (uint32_t k = 0; k < packets_; ++k) {
      Packet packet{{}, stamp};
      std::memcpy(packet.data, static_cast<const char*>(payload) + k * data_bytes_a_packet,
                  data_bytes_a_packet);
      Memory::store(slot[k], packet);
    }
  }
  /// Takes the reply, all packets or nothing: true once each carries the ticket's stamp. Never blocks.
  bool try_receive(uint32_t worker, uint64_t ticket, void* payload) const {
    const Packet* const slot = host_.reply(worker, ticket);
    const uint32_t stamp = host_.shape.stamp(ticket);
    for (uint32_t k = 0; k < packets_; ++k) {
      const Packet packet = Memory::load(slot[k]);
      if (packet.stamp != stamp) return false;
      std::memcpy(static_cast<char*>(payload) + k * data_bytes_a_packet, packet.data, data_bytes_a_packet);
    }
    return true;
  }
  /// A worker's part as Gyre's host side takes it; what it refers to is this object's.
  Bridge bridge(uint32_t worker) const;
  BarBridge bar_bridge(uint32_t worker) const;
  /// Tells every worker to end.
  void command_stop() const;
  /// Gives the memory up for good: the kernel still runs.
  void leak();

 private:
  TransportKind transport_;
  uint32_t workers_, packets_;
  std::unique_ptr<cuda::RegionMemory> region_;
  std::unique_ptr<cuda::BarMemoryHere> bar_;  // null unless transport_ is bar
  LineStore store_ = LineStore::four_packets;
  std::vector<SlotPages> slot_pages_;  // of each worker; none: the rings are in one piece
  RawRings host_{}, device_{};
};

}  // namespace gyre::bench
