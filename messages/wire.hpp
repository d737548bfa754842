// What lies in a Cap'n Proto message: scalars, pointer words, and the names of the kinds of fields. The
// lowest part of the views; see https://capnproto.org/encoding.html, which the names follow.
#pragma once

#include <gyre/messages/fixed_width.hpp>

#if !defined(__CUDACC_RTC__)
#include <string.h>
#endif

namespace gyre::wire {

template <class T>
inline constexpr bool is_bool = false;
template <>
inline constexpr bool is_bool<bool> = true;

/// An integer, a float or an enum: what lies in a message as its own 1, 2, 4 or 8 bytes. A bool lies there as
/// a bit.
template <class T>
concept Scalar =
    !is_bool<T> && !__is_class(T) && (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

/// Loads and stores that may alias anything, from and to addresses aligned for T. NVRTC needs no memcpy for
/// this: its alias analysis ignores types, and it would turn a memcpy into byte loads.
template <Scalar T>
GYRE_DEVICE inline T load(const void* address) {
#if defined(__CUDACC_RTC__)
  return *static_cast<const T*>(address);
#else
  T value;
  memcpy(&value, address, sizeof(T));
  return value;
#endif
}
template <Scalar T>
GYRE_DEVICE inline void store(void* address, T value) {
#if defined(__CUDACC_RTC__)
  *static_cast<T*>(address) = value;
#else
  memcpy(address, &value, sizeof(T));
#endif
}

/// The bits of `value` with those flipped that are set in `mask`: how a field with a default is stored, and
/// read back.
template <Scalar T>
GYRE_DEVICE inline T exclusive_or(T value, T mask) {
  uint64_t bits = 0, mask_bits = 0;
  memcpy(&bits, &value, sizeof(T));
  memcpy(&mask_bits, &mask, sizeof(T));
  bits ^= mask_bits;
  memcpy(&value, &bits, sizeof(T));
  return value;
}

/// How the elements of a list lie: the three bits of a list pointer.
enum class ElementSize : uint32_t { none, bit, byte, two_bytes, four_bytes, eight_bytes, pointer, composite };

/// Words that `size` elements of `bytes` bytes (1, 2, 4 or 8) take; at most 2^29 elements.
template <uint32_t bytes>
GYRE_DEVICE inline uint32_t words_of(uint32_t size) {
  return (size + (8 / bytes - 1)) / (8 / bytes);
}

/// A pointer word taken apart, and nothing in it checked. Offsets and sizes are in words.
struct Pointer {
  static constexpr uint32_t struct_kind = 0, list_kind = 1;
  static constexpr uint32_t max_list_size = (1u << 29) - 1;  // elements, and words of a composite list

  uint64_t word;

  GYRE_DEVICE bool is_null() const { return word == 0; }
  GYRE_DEVICE uint32_t kind() const { return uint32_t(word) & 3; }
  /// From the end of the pointer to what it points at.
  GYRE_DEVICE int64_t offset() const { return int32_t(uint32_t(word)) >> 2; }
  GYRE_DEVICE uint32_t struct_data_words() const { return uint32_t(word >> 32) & 0xffff; }
  GYRE_DEVICE uint32_t struct_pointers() const { return uint32_t(word >> 48); }
  GYRE_DEVICE ElementSize list_element_size() const { return ElementSize(uint32_t(word >> 32) & 7); }
  GYRE_DEVICE uint32_t list_size() const { return uint32_t(word >> 35); }
  /// Returns true if the pointer leads forward, to a list of elements of this size.
  GYRE_DEVICE bool is_list_ahead(ElementSize size) const {
    constexpr uint32_t sign_and_kind = 0x80000003;
    return ((uint32_t(word) & sign_and_kind) | (uint32_t(word >> 32) & 7) << 2) ==
           (list_kind | uint32_t(size) << 2);
  }
  /// Returns the offset of a pointer that leads forward.
  GYRE_DEVICE uint32_t offset_ahead() const { return uint32_t(word) >> 2; }
  /// Returns the number of elements that the tag of a composite list states. A tag is a struct pointer with
  /// this number in its offset, without the highest bit.
  GYRE_DEVICE uint32_t tag_count() const { return uint32_t(word) >> 2 & max_list_size; }

  /// How elements of `bytes` bytes, 1, 2, 4 or 8, lie.
  GYRE_DEVICE static constexpr ElementSize element_size(uint32_t bytes) {
    return bytes == 1   ? ElementSize::byte
           : bytes == 2 ? ElementSize::two_bytes
           : bytes == 4 ? ElementSize::four_bytes
                        : ElementSize::eight_bytes;
  }
  GYRE_DEVICE static Pointer to_struct(int64_t offset, uint32_t data_words, uint32_t pointers) {
    return {uint64_t(data_words) << 32 | uint64_t(pointers) << 48 | (uint32_t(offset) << 2 | struct_kind)};
  }
  GYRE_DEVICE static Pointer to_list(int64_t offset, ElementSize element_size, uint32_t size) {
    return {uint64_t(element_size) << 32 | uint64_t(size) << 35 | (uint32_t(offset) << 2 | list_kind)};
  }
};

/// Names a field of a schema, for the report of a malformed message: costs nothing until there is one.
struct Field {
  static constexpr uint16_t root = 0xffff;  // not a field: the message's root pointer

  uint64_t type_id = 0;   // Cap'n Proto id of the struct or group
  uint16_t index = root;  // among the struct's fields as its schema lists them
};

/// What is wrong with a pointer of a message.
enum class Malformed : uint8_t {
  none = 0,
  out_of_bounds = 1,   ///< points out of the message
  not_a_struct = 2,    ///< points at something else than a struct, or to another segment
  not_a_list = 3,      ///< points at something else than a list, or to another segment
  wrong_elements = 4,  ///< a list of elements that are not what the schema says, nor a later form of it
  bad_tag = 5,         ///< a list of structs whose elements do not fit it
  bad_text = 6,        ///< a Text without the 0 at its end
  too_deep = 7,        ///< nested more than 64 deep
  traversal = 8,       ///< read over and over: more words than the traversal budget were followed
};

/// Holds three bits for each pointer of a struct, from the lowest on: the ElementSize if the pointer always
/// leads to a list of numbers; 0 if it may lead elsewhere, or has a default. Pointers from `most` on have no
/// bits.
struct NumberLists {
  static constexpr uint32_t most = 21;  ///< pointers that have bits

  uint64_t bits = 0;

  GYRE_DEVICE constexpr ElementSize of(uint32_t pointer) const {
    return pointer < most ? ElementSize(uint32_t(bits >> (3 * pointer)) & 7) : ElementSize::none;
  }
  /// Sets the bits of a pointer; its bits must be 0 before.
  GYRE_DEVICE constexpr void set(uint32_t pointer, ElementSize size) {
    bits |= uint64_t(size) << (3 * pointer);
  }
  /// Returns what a view T says about its struct.
  template <class T>
  GYRE_DEVICE static constexpr NumberLists in() {
    if constexpr (requires { T::number_lists; }) {
      return {T::number_lists};
    } else {
      return {};
    }
  }
};

// The kinds of fields that are behind a pointer, with their views. (A struct's own view is the one generated
// for it.)
template <class T>
class ListReader;
template <class T>
class ListBuilder;
class TextReader;
class TextBuilder;

struct Void {};
struct Text {
  using Reader = TextReader;
  using Builder = TextBuilder;
};
struct Data {
  using Reader = ListReader<uint8_t>;
  using Builder = ListBuilder<uint8_t>;
};
template <class T>
struct List {
  using Element = T;
  using Reader = ListReader<T>;
  using Builder = ListBuilder<T>;
};

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<List<T>> = true;
template <class T, class U>
inline constexpr bool is_same = false;
template <class T>
inline constexpr bool is_same<T, T> = true;

/// The generated view of a struct.
template <class T>
concept Struct = requires {
  T::data_words;
  T::pointers;
};
/// What lies behind a pointer of its own, also as an element of a list.
template <class T>
concept Blob = is_same<T, Text> || is_same<T, Data> || is_list<T>;

}  // namespace gyre::wire
