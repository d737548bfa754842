// Where a thread builds its messages: one zeroed segment behind room for the envelope, reused, never
// allocated twice.
#pragma once

#include <capnp/message.h>
#include <gyre/bridge/ring.hpp>
#include <gyre/runtime/errors.hpp>

#include <cstring>
#include <memory>
#include <utility>

namespace gyre::detail {

/// A thread's building place.
class Scratch {
 public:
  /// The calling thread's own.
  static Scratch& of_this_thread() {
    thread_local Scratch scratch;
    return scratch;
  }

  /// Builds a Request with `fill(Request::Builder)` and hands it to `send(uint32_t* payload, uint32_t
  /// body_bytes)`, which returns a Result. Failures of its own: too_large, nested_fill. What fill throws
  /// passes through; nothing is lost by it.
  template <class Request, class Fill, class Send>
  auto build_and_send(const RingShape& shape, Fill&& fill, Send&& send) -> decltype(send(nullptr, 0)) {
    if (in_use_) return Failure{Status::nested_fill};
    reserve(shape);
    Use use(*this, shape.body_capacity());
    uint32_t body_bytes = 0;
    try {
      Segment segment(body(), shape.body_capacity() / sizeof(capnp::word));
      std::forward<Fill>(fill)(segment.initRoot<Request>());
      body_bytes = uint32_t(segment.getSegmentsForOutput()[0].asBytes().size());
    } catch (const Overflow& overflow) {
      return Failure{Status::too_large, 0, overflow.needed_bytes, shape.body_capacity()};
    }
    use.dirty_bytes = body_bytes;
    return send(payload(), body_bytes);
  }

 private:
  struct Overflow {
    size_t needed_bytes;
  };

  // One segment or none: what does not fit is an Overflow, not a second segment.
  class Segment final : public capnp::MessageBuilder {
   public:
    Segment(capnp::word* words, size_t count) : words_(words), count_(count) {}
    kj::ArrayPtr<capnp::word> allocateSegment(uint minimum_words) override {
      if (given_ || minimum_words > count_) {
        const size_t used = given_ ? getSegmentsForOutput()[0].asBytes().size() : 0;
        throw Overflow{used + minimum_words * sizeof(capnp::word)};
      }
      given_ = true;
      return kj::arrayPtr(words_, count_);
    }

   private:
    capnp::word* words_;
    size_t count_;
    bool given_ = false;
  };

  // Marks the scratch as in use and zeroes it afterwards: Cap'n Proto builds into zeroed memory.
  struct Use {
    Use(Scratch& scratch, uint32_t bytes) : scratch(scratch), dirty_bytes(bytes) { scratch.in_use_ = true; }
    ~Use() {
      std::memset(static_cast<void*>(scratch.body()), 0, dirty_bytes);
      scratch.in_use_ = false;
    }
    Use(const Use&) = delete;
    Scratch& scratch;
    uint32_t dirty_bytes;
  };

  uint32_t* payload() { return memory_[0].data; }
  capnp::word* body() {
    return reinterpret_cast<capnp::word*>(payload() + sizeof(Envelope) / sizeof(uint32_t));
  }
  void reserve(const RingShape& shape) {
    if (packets_ >= shape.packets()) return;
    memory_ = std::make_unique<Packet[]>(shape.packets());  // 16 bytes a packet for its 12 of payload; zeroed
    packets_ = shape.packets();
  }

  std::unique_ptr<Packet[]> memory_;
  uint32_t packets_ = 0;
  bool in_use_ = false;
};

}  // namespace gyre::detail
