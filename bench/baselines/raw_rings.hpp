// Where the rings of the raw baselines lie. One text for the host and NVRTC.
#pragma once

#include <gyre/bridge/group.hpp>
#include <gyre/bridge/region.hpp>

namespace gyre::bench {

/// The rings of all workers, as one side addresses them: worker w's lie w strides on. The two directions may
/// be in different memories. A plain value.
struct RawRings {
  char* h2d;
  char* d2h;
  char* command;      ///< a word: 0 while the kernel shall run
  char* worker_line;  ///< a WorkerLine: for soak its credits, for raw near pages what the worker chose
  uint64_t h2d_stride, d2h_stride, command_stride,
      worker_line_stride;  ///< bytes from one worker's to the next
  RingShape shape;

  GYRE_DEVICE Packet* request(uint32_t worker, uint64_t ticket, const SlotPages& pages = {}) const {
    return reinterpret_cast<Packet*>(h2d + worker * h2d_stride) +
           pages.place(uint32_t(shape.first_packet(ticket)));
  }
  GYRE_DEVICE Packet* reply(uint32_t worker, uint64_t ticket) const {
    return reinterpret_cast<Packet*>(d2h + worker * d2h_stride) + shape.first_packet(ticket);
  }
  GYRE_DEVICE Memory::Word& command_word(uint32_t worker) const {
    return *reinterpret_cast<Memory::Word*>(command + worker * command_stride);
  }
  GYRE_DEVICE WorkerLine& line_of(uint32_t worker) const {
    return *reinterpret_cast<WorkerLine*>(worker_line + worker * worker_line_stride);
  }
};
static_assert(sizeof(RawRings) == 80, "it is a kernel's parameter");

}  // namespace gyre::bench
