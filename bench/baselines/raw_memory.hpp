// The memory of the raw baselines' rings, and the host's accesses to it.
#pragma once

#include <gyre/bridge/cuda/region_memory.hpp>
#include <gyre/bridge/region.hpp>
#include <gyre/runtime/options.hpp>

#include <cstring>
#include <memory>

#include "baselines/raw_rings.hpp"

namespace gyre::bench {

/// Rings for `workers` workers on one transport. What is written for one ring is one thread's.
class RawMemory {
 public:
  /// `context` must outlive it. `packets`: of every message. Throws EngineUnavailable, BadOptions for a
  /// transport that the raw baselines do not have, Error.
  RawMemory(const cuda::Context& context, TransportKind transport, uint32_t workers, const RingShape& shape,
            uint32_t packets);

  /// As the device addresses them.
  const RawRings& on_device() const { return device_; }
  TransportKind transport() const { return transport_; }
  const RingShape& shape() const { return host_.shape; }
  uint32_t packets() const { return packets_; }

  /// Stores a message's packets: `payload` has 12 bytes for each. Never blocks.
  void send(uint32_t worker, uint64_t ticket, const void* payload) const {
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
  /// Tells every worker to end.
  void command_stop() const;
  /// Gives the memory up for good: the kernel still runs.
  void leak() { region_->leak(); }

 private:
  TransportKind transport_;
  uint32_t workers_, packets_;
  std::unique_ptr<cuda::RegionMemory> region_;
  RawRings host_{}, device_{};
};

}  // namespace gyre::bench
