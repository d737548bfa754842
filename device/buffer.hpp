// Buffers as handlers see them: how a handle in a message leads to the elements, and what can be wrong
// with a handle.
#pragma once

#include <gyre/bridge/packet.hpp>
#include <gyre/device/worker/engine_memory.hpp>
#include <gyre/messages/wire.hpp>

namespace gyre {

/// Says what is wrong with a handle, in the order in which workers check. Values travel in error replies,
/// with two numbers: BadHandle::asked and BadHandle::there.
enum class BufferFault : uint32_t {
  none = 0,
  foreign = 1,        ///< handle of another runtime, or never set; asked and there: the runtimes' tags
  no_such_index = 2,  ///< asked: the handle's index; there: number of entries in the table
  stale = 3,          ///< the buffer was freed; asked and there: generations
  wrong_type = 4,     ///< asked: the handler's ElementType; there: the buffer's ElementType
  too_short = 5,      ///< asked and there: numbers of elements
  read_only = 6,      ///< the handler wants to write; asked and there: the buffer's ElementType
};

/// Holds a fault with its numbers, and packs it into the 12 bytes of ErrorBody::detail and
/// ErrorBody::where. Numbers above 38 bits become the largest 38-bit number.
struct BadHandle {
  BufferFault fault = BufferFault::none;
  uint32_t index = 0;  ///< the handle's index; 16 bits
  uint64_t asked = 0;
  uint64_t there = 0;

  GYRE_DEVICE static BufferFault fault_of(uint32_t detail) { return BufferFault(detail & 15); }
  GYRE_DEVICE static BadHandle of(uint32_t detail, uint64_t where) {
    return {fault_of(detail), detail >> 4 & 0xffff, where >> 32 | uint64_t(detail >> 20 & 63) << 32,
            (where & 0xffffffff) | uint64_t(detail >> 26) << 32};
  }
  GYRE_DEVICE uint32_t detail() const {
    const uint32_t short_index = index < 0xffff ? index : 0xffff;
    return uint32_t(fault) | short_index << 4 | uint32_t(most(asked) >> 32) << 20 |
           uint32_t(most(there) >> 32) << 26;
  }
  GYRE_DEVICE uint64_t where() const { return most(asked) << 32 | (most(there) & 0xffffffff); }

 private:
  GYRE_DEVICE static uint64_t most(uint64_t number) {
    constexpr uint64_t largest = (uint64_t(1) << 38) - 1;
    return number < largest ? number : largest;
  }
};

/// Refers to the elements of a buffer or of scratch memory. Copyable. Valid while the message is handled.
template <class T>
class BufferSpan {
 public:
  BufferSpan() = default;
  /// Refers to `size` elements at `data`. Handlers call Context::buffer() and Context::scratch().
  GYRE_DEVICE BufferSpan(T* data, uint64_t size) : data_(data), size_(size) {}

  /// Returns the first element, aligned to 256 bytes in a buffer that Gyre allocated, to the element's size
  /// in an imported one, and to 16 bytes in scratch memory. Null if the handle was bad or scratch memory was
  /// short.
  GYRE_DEVICE T* data() const { return data_; }
  /// Returns the number of elements; 0 if data() is null.
  GYRE_DEVICE uint64_t size() const { return size_; }
  /// Returns element `i`, which must be below size(). Not checked.
  GYRE_DEVICE T& operator[](uint64_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  uint64_t size_ = 0;
};

namespace detail {

template <class T>
struct Elements {
  using Type = T;
  static constexpr bool read_only = false;
};
template <class T>
struct Elements<const T> {
  using Type = T;
  static constexpr bool read_only = true;
};

/// Returns the enumerant of T in `Element`, a view of the schema's ElementType.
template <class T, class Element>
GYRE_DEVICE constexpr Element element_of() {
  if constexpr (wire::is_same<T, int8_t>) return Element::INT8;
  if constexpr (wire::is_same<T, uint8_t>) return Element::UINT8;
  if constexpr (wire::is_same<T, int16_t>) return Element::INT16;
  if constexpr (wire::is_same<T, uint16_t>) return Element::UINT16;
  if constexpr (wire::is_same<T, int32_t>) return Element::INT32;
  if constexpr (wire::is_same<T, uint32_t>) return Element::UINT32;
  if constexpr (wire::is_same<T, int64_t>) return Element::INT64;
  if constexpr (wire::is_same<T, uint64_t>) return Element::UINT64;
  if constexpr (wire::is_same<T, float>) return Element::FLOAT32;
  if constexpr (wire::is_same<T, double>) return Element::FLOAT64;
  return Element::NONE;
}

/// Holds a handle's fields as received, unchecked.
struct HandleFields {
  uint32_t index = 0;
  uint32_t generation = 0;
  uint32_t runtime = 0;
  uint32_t element = 0;
  uint64_t length = 0;
};

/// Numbers element types as the schema's ElementType does.
enum class ElementNumber : uint32_t {
  NONE,
  INT8,
  UINT8,
  INT16,
  UINT16,
  INT32,
  UINT32,
  INT64,
  UINT64,
  FLOAT32,
  FLOAT64
};

/// Returns the address of the handle's first element; 0 if the handle is bad, with the reason in `bad`.
/// @tparam reads_only  the handler does not write: read-only buffers will do
template <bool reads_only>
GYRE_DEVICE inline uint64_t find_buffer(const EngineMemory& memory, const HandleFields& handle,
                                        uint32_t element, uint32_t element_bytes, uint64_t at_least,
                                        BadHandle& bad) {
  const auto refuse = [&](BufferFault fault, uint64_t asked, uint64_t there) {
    bad = BadHandle{fault, handle.index, asked, there};
    return uint64_t(0);
  };
  if (handle.runtime != memory.runtime_tag)
    return refuse(BufferFault::foreign, handle.runtime, memory.runtime_tag);
  if (handle.index >= memory.buffer_entries)
    return refuse(BufferFault::no_such_index, handle.index, memory.buffer_entries);
  // The host writes the entry's last word last when a buffer is allocated, and first when it is freed; the
  // acquire pairs with this store. The host reuses an entry only after the messages sent before are
  // handled.
  const uint64_t* const entry = reinterpret_cast<const uint64_t*>(memory.buffers + handle.index);
  const uint64_t use = Memory::load_acquire(entry[2]);
  // Loaded before the tests, so that they are one latency and not two.
  const uint64_t address = Memory::load_relaxed(entry[0]), bytes = Memory::load_relaxed(entry[1]);
  const uint32_t generation = uint32_t(use), element_and_access = uint32_t(use >> 32);
  if (generation != handle.generation || generation == 0)
    return refuse(BufferFault::stale, handle.generation, generation);
  if ((reads_only ? element_and_access & ~BufferEntry::read_only : element_and_access) != element) {
    const uint32_t there = element_and_access & ~BufferEntry::read_only;
    return refuse(there == element ? BufferFault::read_only : BufferFault::wrong_type, element, there);
  }
  if (handle.element != element) return refuse(BufferFault::wrong_type, element, handle.element);
  const uint64_t length_there = bytes / element_bytes;
  if (handle.length > length_there) return refuse(BufferFault::too_short, handle.length, length_there);
  if (handle.length < at_least) return refuse(BufferFault::too_short, at_least, handle.length);
  return address;
}

}  // namespace detail

/// Holds a message's buffer handle in an actor's state, for Context::buffer() in later messages. Trivially
/// copyable. Nothing is checked before Context::buffer(): if the buffer has been freed by then, the message
/// fails with Status::bad_buffer.
class StoredHandle {
 public:
  /// Names no buffer.
  StoredHandle() = default;
  /// Copies a messages::BufferHandle from a request.
  template <class Handle>
  GYRE_DEVICE explicit StoredHandle(const Handle& handle)
      : fields_{handle.getIndex(), handle.getGeneration(), handle.getRuntime(), uint32_t(handle.getElement()),
                handle.getLength()} {}

  /// Returns the handle's fields as received.
  GYRE_DEVICE const detail::HandleFields& fields() const { return fields_; }

 private:
  detail::HandleFields fields_;
};

static_assert(offsetof(BufferEntry, bytes) == 8 && offsetof(BufferEntry, generation) == 16 &&
                  offsetof(BufferEntry, element) == 20,
              "an entry is read by words");

}  // namespace gyre
