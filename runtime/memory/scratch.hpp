// Where a thread builds its messages: one zeroed segment with room for heads in front of it, reused, grown by
// the page as messages need it.
#pragma once

#include <capnp/any.h>
#include <capnp/message.h>
#include <sys/mman.h>
#include <gyre/messages/envelope.hpp>
#include <gyre/runtime/errors.hpp>
#include <gyre/runtime/memory/copy_threads.hpp>
#include <gyre/runtime/system/per_thread.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <utility>

namespace gyre::detail {

/// A body about to be sent: 8-aligned words, behind heads_bytes of memory that is the sender's to overwrite,
/// and in front of 8 bytes, of anything, that it may read (a ring moves whole packets). Of several, those in
/// front may lie in that memory: whoever writes there begins with the first, and is done with it before it
/// takes the next.
class Outgoing {
 public:
  static constexpr size_t heads_bytes = sizeof(OutOfLine);

  Outgoing() = default;
  /// A body that is there already.
  Outgoing(capnp::word* body, uint32_t bytes) : Outgoing(body, bytes, 0) {
    if (bytes != 0) std::memcpy(&root_, body, sizeof root_);
  }
  /// `root`: its first word, which is not there yet.
  Outgoing(capnp::word* body, uint32_t bytes, uint64_t root) : body_(body), bytes_(bytes), root_(root) {}

  uint32_t bytes() const { return bytes_; }
  /// The body but for its first word, which is root().
  const capnp::word* body() const { return body_; }
  uint64_t root() const { return root_; }
  /// Puts the root in its place, where the end of the body in front may have been; the body.
  capnp::word* complete() const {
    if (bytes_ != 0) std::memcpy(static_cast<void*>(body_), &root_, sizeof root_);
    return body_;
  }

 private:
  capnp::word* body_ = nullptr;
  uint32_t bytes_ = 0;
  uint64_t root_ = 0;
};

/// A thread's building place.
class Scratch {
 public:
  /// The calling thread's own; there until the thread's end, in destructors and atexit functions too.
  static Scratch& of_this_thread();
  ~Scratch() { unmap(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// Builds a message of at most `capacity` bytes with `fill(capnp::AnyPointer::Builder)`, which gets its
  /// root, and hands it to `send(Outgoing)`, which returns a Result. Failures of its own: too_large, which
  /// may show only once fill has returned, and nested_fill. What fill throws passes through; nothing is lost
  /// by it.
  template <class Fill, class Send>
  auto build_and_send(uint64_t capacity, Fill&& fill, Send&& send) -> decltype(send(Outgoing{})) {
    if (in_use_) return Failure{Status::nested_fill};
    auto result = [&]() -> decltype(send(Outgoing{})) {
      const Use use(*this);
      prepare(capacity);
      Outgoing message;
      const Failure failure = build(message, fill);
      if (failure.status != Status::ok) return failure;
      return send(message);
    }();
    prepare(capacity);  // for the next message, while this one is on its way
    return result;
  }

  /// Fewer bytes are copied at once: the slots of all messages are smaller, and threads would not help.
  static constexpr size_t worth_copying_later = 64 << 10;

  /// For bytes of the message that is being built: they stay zero until copy_body() copies them from `from`.
  /// Returns false if the caller has to copy them now.
  bool copy_later(void* place, const void* from, size_t bytes) noexcept {
    auto* const there = static_cast<char*>(place);
    const bool mine = in_use_ && builder_ && there >= memory_ && there + bytes <= memory_ + bytes_;
    if (!mine || bytes < worth_copying_later) return false;
    Later* const end = later_.data() + later_count_;
    Later* const at = std::find_if(later_.data(), end, [&](const Later& one) { return one.place >= there; });
    if (at != end && at->place == there && at->bytes == bytes) {  // it is set again
      at->from = from;
      return true;
    }
    if (later_count_ == later_.size()) return false;
    std::move_backward(at, end, end + 1);
    *at = {there, from, bytes};
    ++later_count_;
    return true;
  }
  /// Copies a message's body, and what copy_later() was given for it, to `to`.
  void copy_body(void* to, const capnp::word* body, size_t bytes, CopyThreads& threads) const noexcept {
    const char* const first = reinterpret_cast<const char*>(body);
    const auto out = [&](const char* place) { return static_cast<char*>(to) + (place - first); };
    for_each_gap(
        first, bytes, [&](const char* gap, size_t length) { threads.copy(out(gap), gap, length); },
        [&](const Later& one) { threads.copy(out(one.place), one.from, one.bytes); });
  }

  /// The most messages that lie built at one time.
  static constexpr size_t run = 16;
  /// The largest capacity there may be, in bytes: of what one segment can address the room for a run is not
  /// for a single message.
  static constexpr uint64_t most_capacity() { return most_words * sizeof(capnp::word) - slack_bytes; }

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
    const Use use(*this);
    for (size_t first = 0; first < count;) {
      prepare(capacity);
      std::array<Outgoing, run> built;
      Failure failure;
      size_t n = 0;
      while (n < run && first + n < count && (n == 0 || built[n - 1].bytes() <= inline_bytes) &&
             builder_->has_room()) {
        failure = build(built[n], [&](capnp::AnyPointer::Builder root) { fill(first + n, root); });
        if (failure.status != Status::ok) break;
        ++n;
      }
      const bool more = n == 0 || send(first, std::span<const Outgoing>(built.data(), n));
      if (failure.status != Status::ok || !more) return failure;
      first += n;
    }
    return {};
  }

  /// Sends a body that `place(capnp::word*, uint64_t& written_bytes)` writes as a whole into `capacity`
  /// zeroed bytes. It returns a Result of the body's bytes, and sets `written_bytes` to those from the start
  /// that may not be zero any more, before it writes them. Fails and throws as build_and_send.
  template <class Place, class Send>
  auto place_and_send(uint64_t capacity, Place&& place, Send&& send) -> decltype(send(Outgoing{})) {
    if (in_use_) return Failure{Status::nested_fill};
    start_over();
    reserve(capacity);
    Placed placed(*this);
    const Result<uint32_t> bytes = place(body(), placed.written_bytes);
    if (!bytes) return bytes.error();
    return send(Outgoing{body(), bytes.value()});
  }

 private:
  friend PerThread<Scratch>;
  struct Overflow {
    size_t bytes;  // that the segment would need
  };

  // Bytes of the message that are copied when it is sent.
  struct Later {
    char* place;
    const void* from;
    size_t bytes;
  };

  // Calls `gap(first, length)` for what lies between the bytes to be copied later, and `later` for those.
  template <class Gap, class OfLater>
  void for_each_gap(const char* first, size_t bytes, Gap&& gap, OfLater&& later) const {
    const char* const end = first + bytes;
    for (size_t i = 0; i < later_count_; ++i) {
      const Later& one = later_[i];
      if (one.place < first || one.place + one.bytes > end) continue;  // of another message
      if (one.place != first) gap(first, size_t(one.place - first));
      later(one);
      first = one.place + one.bytes;
    }
    if (first != end) gap(first, size_t(end - first));
  }

  // One segment or none: what does not fit is an Overflow, not a second segment.
  class Segment final : public capnp::MessageBuilder {
   public:
    Segment(capnp::word* words, size_t count) : words_(words), count_(count) {}
    kj::ArrayPtr<capnp::word> allocateSegment(uint minimum_words) override {
      if (given_ || minimum_words > count_)
        throw Overflow{(given_ ? used_bytes() : 0) + minimum_words * sizeof(capnp::word)};
      given_ = true;
      return kj::arrayPtr(words_, count_);
    }
    size_t used_bytes() { return getSegmentsForOutput()[0].asBytes().size(); }

   private:
    capnp::word* words_;
    size_t count_;
    bool given_ = false;
  };

  // Builds messages one behind the other: each is the root of one and the same Cap'n Proto message, which
  // then forgets it. To make a MessageBuilder takes longer than to build a small message.
  class Builder {
   public:
    // `words`: zeroed, room for one message of `capacity` bytes and for slack_bytes.
    Builder(capnp::word* words, uint64_t capacity)
        : capacity_(capacity),
          words_(words),
          count_((capacity + slack_bytes) / sizeof(capnp::word)),
          segment_(words, count_),
          root_(segment_.getRoot<capnp::AnyPointer>()) {}

    uint64_t capacity() const { return capacity_; }
    uint64_t most_bytes() const { return count_ * sizeof(capnp::word); }
    uint64_t used_bytes() const { return next_ * sizeof(capnp::word); }
    // For a message of `capacity` bytes.
    bool has_room() const { return (count_ - next_) >= capacity_ / sizeof(capnp::word) - 1; }
    // Whether little is left, or what is used should not go from the cache.
    bool well_used() const { return used_bytes() > well_used_bytes || !has_room(); }

    // Throws Overflow, and what fill throws: then it builds no more.
    template <class Fill>
    Outgoing build(Fill&& fill) {
      std::memset(static_cast<void*>(words_), 0, sizeof(capnp::word));
      fill(root_);
      // A message's words lie behind those of the one before it, in front of which its root pointer goes.
      const size_t end = segment_.used_bytes() / sizeof(capnp::word), first = next_ - 1;
      const size_t bytes = (end - first) * sizeof(capnp::word);
      if (bytes > capacity_) throw Overflow{end * sizeof(capnp::word)};
      next_ = end;
      uint64_t root;
      std::memcpy(&root, words_, sizeof root);
      return {words_ + first, uint32_t(bytes), moved(root, uint32_t(first))};
    }
    // Of what an Overflow says, the message's part.
    size_t bytes_of_message(const Overflow& overflow) const {
      return overflow.bytes - (next_ - 1) * sizeof(capnp::word);
    }

   private:
    // A pointer as it is `words` further on, where what it points to stays: the encoding specification,
    // capnproto.org/encoding.html. Structs and lists have an offset; an empty struct points to itself.
    static uint64_t moved(uint64_t pointer, uint32_t words) {
      constexpr uint32_t not_struct_or_list = 2, empty_struct = 0xfffffffc;
      const auto low = uint32_t(pointer);
      if (pointer == 0 || (low & not_struct_or_list) != 0 || low == empty_struct) return pointer;
      return (pointer >> 32 << 32) | (low - (words << 2));
    }

    const uint64_t capacity_;
    capnp::word* const words_;
    const size_t count_;
    size_t next_ = 1;  // word, of those behind the root pointer
    Segment segment_;
    capnp::AnyPointer::Builder root_;
  };

  struct Use {
    explicit Use(Scratch& scratch) : scratch(scratch) { scratch.in_use_ = true; }
    ~Use() { scratch.in_use_ = false; }
    Use(const Use&) = delete;
    Scratch& scratch;
  };
  // The same for a body that is placed, not built, and cleared at once.
  struct Placed : Use {
    explicit Placed(Scratch& scratch) : Use(scratch) {}
    ~Placed() { scratch.clear(written_bytes, true); }
    uint64_t written_bytes = 0;
  };

  static constexpr size_t body_offset = 128;  // room for heads in front
  static_assert(body_offset >= Outgoing::heads_bytes);
  static constexpr uint64_t slack_bytes = run * (16 << 10);  // a run of messages that fit the largest slots
  static constexpr uint64_t well_used_bytes = 4 << 10;
  static constexpr uint64_t most_words = (uint64_t(1) << 29) - 1;  // that a segment may have

  Scratch() = default;
  capnp::word* body() { return reinterpret_cast<capnp::word*>(memory_ + body_offset); }

  // Address space only: the kernel gives memory, zeroed, page by page, where a message is built.
  void reserve(uint64_t capacity) {
    const size_t bytes = body_offset + capacity + slack_bytes + sizeof(capnp::word);  // that may be read
    if (bytes <= bytes_) return;
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    unmap();
    memory_ = static_cast<char*>(memory);
    bytes_ = bytes;
  }
  // A builder with room for a message of `capacity` bytes.
  void prepare(uint64_t capacity) {
    if (builder_ && sound_ && builder_->capacity() == capacity && !builder_->well_used()) [[likely]]
      return;
    start_over();
    reserve(capacity);
    builder_.emplace(body(), capacity);
    sound_ = true;
  }
  template <class Fill>
  Failure build(Outgoing& message, Fill&& fill) {
    sound_ = false;  // until it is known how it ends
    try {
      message = builder_->build(fill);
      sound_ = true;
      return {};
    } catch (const Overflow& overflow) {
      return Failure{Status::too_large, 0, builder_->bytes_of_message(overflow), builder_->capacity()};
    }
  }
  // Zeroes what was built: Cap'n Proto builds into zeroed memory.
  void start_over() {
    if (!builder_) return;
    clear(sound_ ? builder_->used_bytes() : builder_->most_bytes(), sound_);
    builder_.reset();
  }
  void clear(uint64_t dirty_bytes, bool all_touched) {
    const uint64_t kept = all_touched ? 16 << 20 : 256 << 10;  // more goes back to the kernel
    uint64_t written = dirty_bytes;
    for (size_t i = 0; i < later_count_; ++i) written -= std::min<uint64_t>(written, later_[i].bytes);
    if (written <= kept) {
      for_each_gap(
          reinterpret_cast<const char*>(body()), dirty_bytes,
          [](const char* gap, size_t length) { std::memset(const_cast<char*>(gap), 0, length); },
          [](const Later& one) { clear_later(one); });
    } else {
      zero_pages(memory_, body_offset + dirty_bytes);
    }
    later_count_ = 0;
  }
  // Gives the pages back to the kernel. It refuses those that are locked (mlockall).
  static void zero_pages(void* first, size_t bytes) {
    if (madvise(first, bytes, MADV_DONTNEED) != 0) std::memset(first, 0, bytes);
  }
  // These bytes are zero, unless the program has set them though it should not: the next message must not
  // show that. Pages that nobody has touched stay untouched.
  static void clear_later(const Later& one) {
    constexpr uintptr_t page = 4096;
    const auto begin = reinterpret_cast<uintptr_t>(one.place), end = begin + one.bytes;
    const uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
    std::memset(one.place, 0, first - begin);
    zero_pages(one.place + (first - begin), last - first);
    std::memset(one.place + (last - begin), 0, end - last);
  }
  void unmap() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }

  char* memory_ = nullptr;
  size_t bytes_ = 0;
  bool in_use_ = false;
  bool sound_ = true;            // what builder_ built last ended well
  std::array<Later, 16> later_;  // by place; empty between messages, but for the last one's
  size_t later_count_ = 0;
  std::optional<Builder> builder_;
};

extern constinit thread_local PerThread<Scratch> scratch_of_this_thread;
inline Scratch& Scratch::of_this_thread() { return scratch_of_this_thread.get(); }

}  // namespace gyre::detail
