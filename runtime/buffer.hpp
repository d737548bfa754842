// Typed blocks of memory that messages name by a handle.
#pragma once

#include <gyre/messages/buffer.official.hpp>
#include <gyre/runtime/async/copy_future.hpp>
#include <gyre/runtime/core/core.hpp>
#include <gyre/runtime/memory/release_later.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace gyre {

namespace detail {

/// Holds memory of a buffer that code outside Gyre uses. The buffer and its exports share it; once the last
/// of them is gone, the block returns to its runtime.
class ExportedBuffer final : public ReleasedLater {
 public:
  /// Exports the block. Throws Error. The last share of the result waits for nothing: where the end of a
  /// mapping may wait for the device, a thread of the runtime makes it. The device's work may wait for a
  /// thread that waits for a lock which the program's thread holds, such as Python's.
  static std::shared_ptr<ExportedBuffer> make(const std::shared_ptr<Core>& core, const MemoryBlock& block);
  /// May wait for the program's work on the device.
  ~ExportedBuffer() override;

  void* elements() const { return elements_; }
  /// The buffer was freed, and no worker takes its handles.
  void withdrawn() { withdrawn_ = true; }

 private:
  ExportedBuffer(const std::shared_ptr<Core>& core, const MemoryBlock& block);

  const ForkGuard fork_;
  // One of these two is set: core_ keeps the engine, weak_core_ is for memory that outlives the engine.
  std::shared_ptr<Core> core_;
  std::weak_ptr<Core> weak_core_;
  const MemoryBlock block_;
  void* elements_ = nullptr;
  std::shared_ptr<void> mapping_;
  bool withdrawn_ = false;  // written before the buffer lets go of its share
};

/// Owns one buffer of any element type. Move-only. Offsets and lengths are in bytes.
class BufferOwner {
 public:
  /// Allocates the buffer; throws Error.
  BufferOwner(std::shared_ptr<Core> core, MemoryKind kind, messages::view::ElementType element,
              uint64_t element_bytes, uint64_t elements);
  /// Imports memory of the program; throws Error.
  BufferOwner(std::shared_ptr<Core> core, const void* elements_there, messages::view::ElementType element,
              uint64_t element_bytes, uint64_t elements, std::shared_ptr<void> owner, BufferAccess access,
              int64_t stream = -1);
  BufferOwner(BufferOwner&& other) noexcept = default;
  BufferOwner& operator=(BufferOwner&& other) noexcept;
  ~BufferOwner() { free(); }

  MemoryKind kind() const { return record_.block.kind; }
  BufferAccess access() const { return record_.access; }
  uint64_t bytes() const { return record_.bytes; }
  void set(messages::BufferHandle::Builder handle, uint64_t elements) const;
  void copy_in(uint64_t offset, const void* from, uint64_t bytes);
  void copy_out(uint64_t offset, void* to, uint64_t bytes) const;
  Future<void> begin_copy_in(uint64_t offset, const void* from, uint64_t bytes);
  Future<void> begin_copy_out(uint64_t offset, void* to, uint64_t bytes);
  /// Returns the host's address of a buffer of kind `kind`. Throws Error if the buffer is of another kind.
  void* host(MemoryKind kind) const;
  Result<void> wait_for_workers(std::chrono::nanoseconds timeout) const;
  /// See Buffer::export_memory().
  std::shared_ptr<void> export_memory();
  /// Returns the ordinal of the CUDA device that has the memory; nothing if it is host memory.
  std::optional<int> device() const;

 private:
  void free();
  void check_range(const char* doing, uint64_t offset, uint64_t bytes) const;
  void check_writing(uint64_t offset, uint64_t bytes) const;
  void check_reading(uint64_t offset, uint64_t bytes) const;
  void finish_copies() const;
  Future<void> begin_copy(Transfer direction, uint64_t bytes, std::function<void()> copy);

  std::shared_ptr<Core> core_;  // null after a move
  Buffers::Record record_;
  std::shared_ptr<ExportedBuffer> exported_;  // once it was exported
  std::shared_ptr<CopyState> last_copy_;      // the last one begun; it may still be under way
};

}  // namespace detail

/// Owns a block of memory with elements of type T: int8_t … uint64_t, float or double. Runtime::allocate
/// makes it. Move-only. Actors access it through a BufferHandle in a message (Context::buffer).
///
/// Destroying a Buffer is safe at any time: its handles become stale, and messages in use of the memory
/// are not disturbed. It blocks until copies that write_async() and read_async() began are done. A Buffer may
/// outlive its Runtime, and keeps its engine process. Used by one thread at a time, and not while actors
/// write the same elements.
template <class T>
class Buffer {
 public:
  static constexpr auto element = detail::element_of<T, messages::view::ElementType>();
  static_assert(element != messages::view::ElementType::NONE,
                "a buffer's elements are integers of 8 to 64 bits, float or double");

  /// Allocates the buffer; programs call Runtime::allocate().
  Buffer(std::shared_ptr<detail::Core> core, MemoryKind kind, uint64_t elements)
      : owner_(std::move(core), kind, element, sizeof(T), elements) {}

  /// Imports memory of the program; programs call Runtime::import_memory().
  Buffer(std::shared_ptr<detail::Core> core, const T* elements_there, uint64_t elements,
         std::shared_ptr<void> owner, BufferAccess access)
      : owner_(std::move(core), elements_there, element, sizeof(T), elements, std::move(owner), access) {}

  MemoryKind kind() const { return owner_.kind(); }
  /// Returns whether handlers, and write(), may change the elements.
  BufferAccess access() const { return owner_.access(); }
  /// Returns the number of elements.
  uint64_t size() const { return owner_.bytes() / sizeof(T); }

  /// Fills a message's handle so that it names the whole buffer. Call setLength() on the handle to name
  /// only the first elements. The handler sees everything that the host wrote before the message was sent.
  void set(messages::BufferHandle::Builder handle) const { owner_.set(handle, size()); }

  /// Copies elements into the buffer and blocks until they are there. Works for every MemoryKind. Does not
  /// wait for workers.
  /// @param offset  the first element to write
  /// @throws Error  if the range exceeds the buffer, the buffer is read-only, or the engine failed
  void write(std::span<const T> from, uint64_t offset = 0) {
    owner_.copy_in(offset * sizeof(T), from.data(), from.size_bytes());
  }
  /// Copies elements out of the buffer. What a handler wrote is visible once its reply has arrived. Works
  /// for every MemoryKind. Does not wait for workers.
  /// @param offset  the first element to read
  /// @throws Error  if the range exceeds the buffer, or the engine failed
  void read(std::span<T> to, uint64_t offset = 0) const {
    owner_.copy_out(offset * sizeof(T), to.data(), to.size_bytes());
  }

  /// Begins to copy elements into the buffer, and returns before they are there. Copies of one buffer, by
  /// write() and read() too, are made in the order of the calls. Two threads of the runtime copy, one into
  /// buffers and one out of them; each starts with its first copy.
  /// @param from    must stay, unchanged, until the future has its outcome
  /// @param offset  the first element to write
  /// @returns       the copy's outcome to come. Send messages with the buffer's handle once it is there.
  /// @throws Error  as write(), or if a thread cannot be started; if the engine fails the future says so
  Future<void> write_async(std::span<const T> from, uint64_t offset = 0) {
    return owner_.begin_copy_in(offset * sizeof(T), from.data(), from.size_bytes());
  }
  /// Begins to copy elements out of the buffer, and returns before they are there. Order, threads and errors
  /// are those of write_async().
  /// @param to  must stay until the future has its outcome; its elements are undefined before
  Future<void> read_async(std::span<T> to, uint64_t offset = 0) {
    return owner_.begin_copy_out(offset * sizeof(T), to.data(), to.size_bytes());
  }

  /// Returns the elements of a pinned buffer in place. Call it again after each reply: the new span shows
  /// what the handler wrote.
  /// @throws Error  if the buffer is not pinned
  std::span<T> host() { return {static_cast<T*>(owner_.host(MemoryKind::pinned)), size()}; }

  /// Returns the elements of a unified buffer in place. Blocks until every worker is past all messages
  /// sent before the call, at most for the timeout. The span is valid until a message with the buffer's
  /// handle is sent.
  /// @returns       the span, worker_stuck or engine_failed
  /// @throws Error  if the buffer is not unified
  Result<std::span<T>> view(std::chrono::nanoseconds timeout) {
    T* const elements = static_cast<T*>(owner_.host(MemoryKind::unified));
    if (const auto waited = owner_.wait_for_workers(timeout); !waited) return waited.error();
    return std::span<T>(elements, size());
  }

  /// Returns the first element's address for code of the program: CUDA code if the memory is on a device,
  /// else code of the host. The first time, and for device memory of an engine process, makes CUDA calls in
  /// this thread: in its current context, or in the primary one that the program has made. Creates no
  /// context.
  ///
  /// The memory stays until the last copy of the result is gone, even if the buffer is freed or the engine
  /// process ends before. In process, and for host memory, the result keeps the engine. No destructor blocks:
  /// once buffer and last copy are gone, a thread of the runtime waits until the context's work on the device
  /// is done, and then gives the memory back; in process with Options::context primary or given it does not
  /// wait. Work on the elements is not ordered: wait for replies before a stream uses them, and for the
  /// stream before a message is sent.
  /// @throws Error  with what to do: the program has no CUDA context on the device, the memory is unified or
  ///                imported, or the engine is lost
  std::shared_ptr<T> export_memory() {
    auto exported = owner_.export_memory();
    T* const elements = static_cast<T*>(exported.get());
    return {std::move(exported), elements};
  }
  /// Returns the ordinal of the CUDA device that has the memory; nothing if it is host memory: on the CPU
  /// engine, or pinned.
  std::optional<int> device() const { return owner_.device(); }

 private:
  detail::BufferOwner owner_;
};

}  // namespace gyre
