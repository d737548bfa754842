// The replies of one worker: the packets they are made of, and the ring they go to.
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/device/platform.hpp>

namespace gyre {

/// Where the words of one packet of an answer lie: the envelope is the request's, but for its size and its
/// flags; the body is what the handler left. Any packet below a group's size may be asked for.
struct ReplyPlace {
  static constexpr uint32_t envelope_words = sizeof(Envelope) / sizeof(uint32_t);

  uint32_t k;
  const uint32_t* words_0_1;
  const uint32_t* word_2;

  GYRE_DEVICE ReplyPlace(uint32_t packet, const uint32_t* request, const uint32_t* response)
      : k(packet),
        words_0_1((k < 3 ? request : response) + k * words_a_packet),
        word_2(k == 2 ? response + envelope_words : words_0_1 + 2) {}
};

/// Writes replies into a worker's device-to-host ring, in order. Refers to the ring. The polling threads'
/// alone.
class ReplyWriter {
 public:
  GYRE_DEVICE explicit ReplyWriter(const Bridge& bridge)
      : shape_(bridge.shape), host_line_(bridge.host_line), next_(bridge.d2h, bridge.shape) {}

  /// Replies that were sent.
  GYRE_DEVICE uint64_t sent() const { return next_.ticket(); }
  /// Whether a reply may be written. True unless the host broke its promise of a slot for each ask; then the
  /// worker takes no message until there is room. Collective.
  GYRE_DEVICE bool has_room() {
    if (room_ != 0) return true;
    // Pairs with the host's release store of d2h_credit, after its last read of those slots.
    const uint32_t credit = PollGroup::broadcast(uint32_t(Memory::load_acquire(host_line_->d2h_credit)));
    room_ = credit + shape_.slots - uint32_t(next_.ticket());
    return room_ != 0;
  }
  /// Replies that fit before has_room() must be called again.
  GYRE_DEVICE uint32_t room() const { return room_; }
  GYRE_DEVICE uint32_t left_of_lap() const { return next_.left_of_lap(); }
  /// See RingCursor::stamps_whole_slot().
  GYRE_DEVICE bool stamps_whole_slot() const { return next_.stamps_whole_slot(); }
  /// The next reply's slot; those of the replies after it follow, up to the end of the lap.
  GYRE_DEVICE Packet* slot() const { return next_.slot(); }

  /// One packet of an answer, with the next slot's stamp.
  GYRE_DEVICE Packet packet(const ReplyPlace& place, uint32_t body_bytes) const {
    Packet packet{{load_here(place.words_0_1), load_here(place.words_0_1 + 1), load_here(place.word_2)},
                  next_.stamp()};
    if (place.k == 2) packet.data[1] &= 0x00ffffff;  // no flags
    if (place.k == 0) packet.data[2] = body_bytes;
    return packet;
  }
  /// Stores the calling thread's packets of an answer after its first, and stamps the rest of a slot that is
  /// stamped whole.
  GYRE_DEVICE void store_rest(const uint32_t* request, const uint32_t* response, uint32_t body_bytes) {
    const uint32_t bytes = uint32_t(sizeof(Envelope)) + body_bytes;
    const bool more = bytes > PollGroup::size() * data_bytes_a_packet, whole = next_.stamps_whole_slot();
    if (!(more | whole)) return;
    uint32_t k = PollGroup::rank();
    GYRE_ROLLED
    for (k += PollGroup::size(); k * data_bytes_a_packet < bytes; k += PollGroup::size()) {
      Memory::store(next_.slot()[k], packet({k, request, response}, body_bytes));
    }
    if (whole) stamp_rest<Memory>(PollGroup{}, next_, shape_, packets_for(body_bytes));
  }
  /// Writes `envelope`, and `body_bytes` bytes of what lies behind its place in `response`. Collective.
  GYRE_DEVICE void store(const Envelope& envelope, uint32_t* response, uint32_t body_bytes) {
    PollGroup::sync();
    if (PollGroup::rank() == 0) *reinterpret_cast<Envelope*>(response) = envelope;
    PollGroup::sync();
    publish<Memory>(PollGroup{}, next_, shape_, response, body_bytes);
  }
  /// Writes a message that is no reply, and moves on. The slots of such messages are counted apart: it takes
  /// none of room(). Collective.
  /// @param message  its envelope and its body
  GYRE_DEVICE void store_told(const uint32_t* message, uint32_t body_bytes) {
    publish<Memory>(PollGroup{}, next_, shape_, message, body_bytes);
    next_.advance(shape_);
  }
  /// Moves on behind `n` replies that were written.
  GYRE_DEVICE void advance(uint32_t n) {
    next_.advance(shape_, n);
    room_ -= n;
  }

 private:
  RingShape shape_;
  const HostLine* host_line_;
  RingCursor<Memory> next_;
  uint32_t room_ = 0;
};

}  // namespace gyre
