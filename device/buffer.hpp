// Buffers as handlers see them: from the handle in a message to the elements, and what can be wrong with a
// handle.
#pragma once

#include <gyre/bridge/packet.hpp>
#include <gyre/device/worker/engine_memory.hpp>
#include <gyre/messages/wire.hpp>

namespace gyre {

/// What is wrong with a handle, in the order in which workers check. Values travel in error replies.
enum class BufferFault : uint32_t {
  none = 0,
  foreign = 1,        ///< of another runtime, or never set: asked and there are the runtimes' tags
  no_such_index = 2,  ///< asked: its index; there: how many entries the table has
  stale = 3,          ///< its buffer was freed: asked and there are generations
  wrong_type = 4,     ///< asked: the ElementType that the handler wants; there: the buffer's
  too_short = 5,      ///< asked: elements; there: elements
};

/// A fault with its numbers, as the 12 bytes of ErrorBody::detail and ErrorBody::where. Numbers above 38 bits
/// become the largest that there is.
struct BadHandle {
  BufferFault fault = BufferFault::none;
  uint32_t index = 0;  ///< in the handle; 16 bits
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

/// The elements of a buffer, or of scratch memory. A plain value; refers to memory that lasts as long as the
/// message is handled.
template <class T>
class BufferSpan {
 public:
  BufferSpan() = default;
  /// See Context::buffer and Context::scratch.
  GYRE_DEVICE BufferSpan(T* data, uint64_t size) : data_(data), size_(size) {}

  /// The first element: of a buffer at a multiple of 256 bytes, of scratch memory of 16. Null where the
  /// handle was not good, or the memory not enough.
  GYRE_DEVICE T* data() const { return data_; }
  /// Elements that the handle names, or that were asked for; 0 where data() is null.
  GYRE_DEVICE uint64_t size() const { return size_; }
  /// `i` must be below size(): nothing checks it.
  GYRE_DEVICE T& operator[](uint64_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  uint64_t size_ = 0;
};

namespace detail {

/// T's number in the schema's ElementType, of which `Element` is the view.
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

/// A handle's fields, as they came.
struct HandleFields {
  uint32_t index;
  uint32_t generation;
  uint32_t runtime;
  uint32_t element;
  uint64_t length;
};

/// The address of a good handle's first element; of another 0, and `bad` says why.
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
  // Its last word is written last where a buffer comes and first where it goes; an entry is not used again
  // while a message sent before that is handled.
  const uint64_t* const entry = reinterpret_cast<const uint64_t*>(memory.buffers + handle.index);
  const uint64_t use = Memory::load_acquire(entry[2]);
  const uint32_t generation = uint32_t(use), element_there = uint32_t(use >> 32);
  if (generation != handle.generation || generation == 0)
    return refuse(BufferFault::stale, handle.generation, generation);
  if (element_there != element) return refuse(BufferFault::wrong_type, element, element_there);
  if (handle.element != element) return refuse(BufferFault::wrong_type, element, handle.element);
  const uint64_t length_there = Memory::load_relaxed(entry[1]) / element_bytes;
  if (handle.length > length_there) return refuse(BufferFault::too_short, handle.length, length_there);
  if (handle.length < at_least) return refuse(BufferFault::too_short, at_least, handle.length);
  return Memory::load_relaxed(entry[0]);
}

}  // namespace detail

static_assert(offsetof(BufferEntry, bytes) == 8 && offsetof(BufferEntry, generation) == 16 &&
                  offsetof(BufferEntry, element) == 20,
              "an entry is read by words");

}  // namespace gyre
