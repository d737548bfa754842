// A typed block of memory that messages name by a handle.
#pragma once

#include <gyre/messages/buffer.official.hpp>
#include <gyre/runtime/core/core.hpp>

#include <chrono>
#include <memory>
#include <span>

namespace gyre {

namespace detail {

/// Ownership of one buffer, whatever its elements. Move-only; offsets and lengths in bytes.
class BufferOwner {
 public:
  /// Throws Error.
  BufferOwner(std::shared_ptr<Core> core, MemoryKind kind, messages::view::ElementType element,
              uint64_t element_bytes, uint64_t elements);
  BufferOwner(BufferOwner&& other) noexcept = default;
  BufferOwner& operator=(BufferOwner&& other) noexcept;
  ~BufferOwner() { free(); }

  MemoryKind kind() const { return record_.block.kind; }
  uint64_t bytes() const { return record_.bytes; }
  void set(messages::BufferHandle::Builder handle, uint64_t elements) const;
  void copy_in(uint64_t offset, const void* from, uint64_t bytes);
  void copy_out(uint64_t offset, void* to, uint64_t bytes) const;
  /// Of a buffer of kind `kind`; throws Error for another.
  void* host(MemoryKind kind) const;
  Result<void> wait_for_workers(std::chrono::nanoseconds timeout) const;

 private:
  void free();
  void check_range(const char* doing, uint64_t offset, uint64_t bytes) const;

  std::shared_ptr<Core> core_;  // null where it was moved from
  Buffers::Record record_;
};

}  // namespace detail

/// A block of memory of elements of type T: int8_t … uint64_t, float or double. Made by Runtime::allocate;
/// move-only. Actors get at it through a BufferHandle in a message (Context::buffer).
///
/// Its destructor frees it, at any time: handles are stale then, and messages that use it already are not
/// disturbed. It may outlive its Runtime, and keeps the device from another launch until then. One thread at
/// a time, and not while actors write the same elements.
template <class T>
class Buffer {
 public:
  static constexpr auto element = detail::element_of<T, messages::view::ElementType>();
  static_assert(element != messages::view::ElementType::NONE,
                "a buffer's elements are integers of 8 to 64 bits, float or double");

  /// See Runtime::allocate.
  Buffer(std::shared_ptr<detail::Core> core, MemoryKind kind, uint64_t elements)
      : owner_(std::move(core), kind, element, sizeof(T), elements) {}

  MemoryKind kind() const { return owner_.kind(); }
  /// Elements.
  uint64_t size() const { return owner_.bytes() / sizeof(T); }

  /// Fills a message's handle, of the whole buffer; setLength makes it one of its first elements only. What
  /// the host wrote before it is there when the message is handled.
  void set(messages::BufferHandle::Builder handle) const { owner_.set(handle, size()); }

  /// Copies elements in, from element `offset` on, and returns when they are there. Any kind; does not wait
  /// for workers. Throws Error: past the end, or the engine failed.
  void write(std::span<const T> from, uint64_t offset = 0) {
    owner_.copy_in(offset * sizeof(T), from.data(), from.size_bytes());
  }
  /// Copies elements out, from element `offset` on. What a handler wrote is there once its reply is. Any
  /// kind; does not wait for workers. Throws Error: past the end, or the engine failed.
  void read(std::span<T> to, uint64_t offset = 0) const {
    owner_.copy_out(offset * sizeof(T), to.data(), to.size_bytes());
  }

  /// The elements of a pinned buffer, in place. Call it again after each reply: what the handler wrote is
  /// seen through the new span. Throws Error for the other kinds.
  std::span<T> host() { return {static_cast<T*>(owner_.host(MemoryKind::pinned)), size()}; }

  /// The elements of a unified buffer, in place, once every worker is past all that was sent before the call;
  /// good until a message with the buffer's handle is sent. Blocks up to the timeout. Failures: worker_stuck,
  /// engine_failed. Throws Error for the other kinds.
  Result<std::span<T>> view(std::chrono::nanoseconds timeout) {
    T* const elements = static_cast<T*>(owner_.host(MemoryKind::unified));
    if (const auto waited = owner_.wait_for_workers(timeout); !waited) return waited.error();
    return std::span<T>(elements, size());
  }

 private:
  detail::BufferOwner owner_;
};

}  // namespace gyre
