// Where a thread builds its messages: one zeroed segment with room for heads in front of it, reused, grown by
// the page as messages need it.
#pragma once

#include <capnp/any.h>
#include <capnp/message.h>
#include <sys/mman.h>
#include <gyre/messages/envelope.hpp>
#include <gyre/runtime/errors.hpp>

#include <array>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <utility>

namespace gyre::detail {

/// A body about to be sent: 8-aligned words, behind heads_bytes of memory that is the sender's to overwrite,
/// and in front of 8 bytes that it may read (a ring moves whole packets).
struct Outgoing {
  static constexpr size_t heads_bytes = sizeof(Envelope) + sizeof(OutOfLine);
  capnp::word* body;
  uint32_t bytes;
};

/// A thread's building place.
class Scratch {
 public:
  /// The calling thread's own.
  static Scratch& of_this_thread() {
    thread_local Scratch scratch;
    return scratch;
  }
  ~Scratch() { unmap(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// Builds a message of at most `capacity` bytes with `fill(capnp::AnyPointer::Builder)`, which gets its
  /// root, and hands it to `send(Outgoing)`, which returns a Result. Failures of its own: too_large,
  /// nested_fill. What fill throws passes through; nothing is lost by it.
  template <class Fill, class Send>
  auto build_and_send(uint64_t capacity, Fill&& fill, Send&& send) -> decltype(send(Outgoing{})) {
    auto result = place_and_send(
        capacity,
        [&](capnp::word*) -> Result<uint32_t> {
          try {
            prepare(capacity);
            fill(next_->root);
            return next_->bytes();
          } catch (const Overflow& overflow) {
            return Failure{Status::too_large, 0, overflow.needed_bytes, capacity};
          }
        },
        std::forward<Send>(send));
    if (!in_use_) prepare(capacity);  // the next message's, while this one is on its way
    return result;
  }

  /// The most messages that lie built at one time.
  static constexpr size_t run = 16;

  /// Builds `count` messages, message i of at most `capacity` bytes with `fill(size_t i,
  /// capnp::AnyPointer::Builder)`, and hands them on in their order, up to `run` at a time, with `send(size_t
  /// first, std::span<const Outgoing>)`; it says whether it wants more. Only the last of a run may be larger
  /// than `inline_bytes`. A failure of its own, of a message that was not handed on, as were those after it:
  /// too_large, nested_fill; else Status::ok. What fill throws passes through; what was built of its run is
  /// not sent.
  template <class Fill, class Send>
  Failure build_and_send_many(size_t count, uint64_t capacity, uint32_t inline_bytes, Fill&& fill,
                              Send&& send) {
    if (in_use_) return Failure{Status::nested_fill};
    const uint64_t stride = (inline_bytes + Outgoing::heads_bytes + 127) / 64 * 64;
    reserve(run * stride + capacity);
    for (size_t first = 0; first < count;) {
      std::array<Outgoing, run> built;
      size_t n = 0;
      Failure failure;
      Use use(*this, run * stride + capacity);
      char* place = memory_ + body_offset;
      try {
        for (; n < run && first + n < count && (n == 0 || built[n - 1].bytes <= inline_bytes);
             ++n, place += stride) {
          auto* const words = reinterpret_cast<capnp::word*>(place);
          Building building(words, capacity);
          fill(first + n, building.root);
          built[n] = {words, building.bytes()};
        }
        use.all_touched = true;
        use.dirty_bytes = uint64_t(place - memory_) - body_offset + (n != 0 ? built[n - 1].bytes : 0);
      } catch (const Overflow& overflow) {
        failure = Failure{Status::too_large, 0, overflow.needed_bytes, capacity};
      }
      const bool more = n == 0 || send(first, std::span<const Outgoing>(built.data(), n));
      if (failure.status != Status::ok || !more) return failure;
      first += n;
    }
    return {};
  }

  /// As build_and_send, with `place(capnp::word*)` writing the whole body into `capacity` zeroed bytes; it
  /// returns a Result of the body's bytes.
  template <class Place, class Send>
  auto place_and_send(uint64_t capacity, Place&& place, Send&& send) -> decltype(send(Outgoing{})) {
    if (in_use_) return Failure{Status::nested_fill};
    reserve(capacity);
    Use use(*this, capacity);
    const Result<uint32_t> bytes = place(body());
    if (!bytes) return bytes.error();
    use.dirty_bytes = bytes.value();
    use.all_touched = true;
    return send(Outgoing{body(), bytes.value()});
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

  // A builder of one message, with its root.
  struct Building {
    Building(capnp::word* words, uint64_t capacity)
        : capacity(capacity),
          segment(words, capacity / sizeof(capnp::word)),
          root(segment.getRoot<capnp::AnyPointer>()) {}
    uint32_t bytes() { return uint32_t(segment.getSegmentsForOutput()[0].asBytes().size()); }

    uint64_t capacity;
    Segment segment;
    capnp::AnyPointer::Builder root;
  };

  // Marks the scratch as in use, and zeroes it afterwards: Cap'n Proto builds into zeroed memory, once.
  struct Use {
    Use(Scratch& scratch, uint64_t bytes) : scratch(scratch), dirty_bytes(bytes) { scratch.in_use_ = true; }
    ~Use() {
      scratch.next_.reset();
      scratch.clear(dirty_bytes, all_touched);
      scratch.in_use_ = false;
    }
    Use(const Use&) = delete;
    Scratch& scratch;
    uint64_t dirty_bytes;
    bool all_touched = false;  // else these bytes are only where something may have been written
  };

  static constexpr size_t body_offset = 128;  // room for heads in front, and 16-aligned
  static_assert(body_offset >= Outgoing::heads_bytes);

  Scratch() = default;
  capnp::word* body() { return reinterpret_cast<capnp::word*>(memory_ + body_offset); }

  // Address space only: the kernel gives memory, zeroed, page by page, where a message is built.
  void reserve(uint64_t capacity) {
    const size_t bytes = body_offset + capacity;
    if (bytes <= bytes_) return;
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    next_.reset();
    unmap();
    memory_ = static_cast<char*>(memory);
    bytes_ = bytes;
  }
  void prepare(uint64_t capacity) {
    if (!next_ || next_->capacity != capacity) next_.emplace(body(), capacity);
  }
  void clear(uint64_t dirty_bytes, bool all_touched) {
    const uint64_t kept = all_touched ? 16 << 20 : 256 << 10;  // more goes back to the kernel
    if (dirty_bytes <= kept) {
      std::memset(static_cast<void*>(body()), 0, dirty_bytes);
    } else {
      madvise(memory_, body_offset + dirty_bytes, MADV_DONTNEED);
    }
  }
  void unmap() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }

  char* memory_ = nullptr;
  size_t bytes_ = 0;
  bool in_use_ = false;
  std::optional<Building> next_;
};

}  // namespace gyre::detail
