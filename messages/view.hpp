// Views: a Cap'n Proto message body read and written where it lies, by one text for g++, clang and NVRTC. The
// typed views that capnpc-gyre generates are thin clothes over the classes here.
//
// A body is one unpacked segment: 8-byte words, little-endian, the root pointer in word 0, its base 16-byte
// aligned. What is read may be hostile: every pointer is checked against the body before it is followed, in
// 64-bit arithmetic, and whatever the bytes are, reading has a defined result. What is written is allocated
// upwards, never moved.
//
// In a worker a whole group of threads runs a handler over one body. Each thread has a Message and a Body of
// its own and makes the same calls, so all compute the same offsets and store the same words. For that to
// hold, nothing is ever zeroed here (the memory comes zeroed), and allocation depends on nothing but the
// sequence of calls.
#pragma once

#include <gyre/messages/fixed_width.hpp>

#if !defined(__CUDACC_RTC__)
#include <string.h>
#endif

namespace gyre::wire {

class Message;
class Body;

template <class T>
inline constexpr bool is_bool = false;
template <>
inline constexpr bool is_bool<bool> = true;

/// An integer, a float or an enum: what lies in a message as its own 1, 2, 4 or 8 bytes. A bool lies there as
/// a bit.
template <class T>
concept Scalar =
    !is_bool<T> && !__is_class(T) && (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

/// Loads and stores that may alias anything, from and to addresses aligned for T. NVRTC reasons about no
/// types when it looks for aliases, but makes byte loads of a memcpy.
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

/// A pointer word taken apart, and nothing in it checked. Offsets and sizes are in words.
struct Pointer {
  static constexpr uint32_t struct_kind = 0, list_kind = 1;
  static constexpr uint32_t max_list_size = (1u << 29) - 1;

  uint64_t word;

  GYRE_DEVICE bool is_null() const { return word == 0; }
  GYRE_DEVICE uint32_t kind() const { return uint32_t(word) & 3; }
  /// From the end of the pointer to what it points at.
  GYRE_DEVICE int64_t offset() const { return int32_t(uint32_t(word)) >> 2; }
  GYRE_DEVICE uint32_t struct_data_words() const { return uint32_t(word >> 32) & 0xffff; }
  GYRE_DEVICE uint32_t struct_pointers() const { return uint32_t(word >> 48); }
  GYRE_DEVICE uint32_t list_element_code() const { return uint32_t(word >> 32) & 7; }
  GYRE_DEVICE uint32_t list_size() const { return uint32_t(word >> 35); }

  /// The code of an element of `bytes` bytes: 2, 3, 4, 5 for 1, 2, 4, 8.
  GYRE_DEVICE static constexpr uint32_t element_code(uint32_t bytes) {
    return bytes == 1 ? 2 : bytes == 2 ? 3 : bytes == 4 ? 4 : 5;
  }
  GYRE_DEVICE static Pointer to_struct(int64_t offset, uint32_t data_words, uint32_t pointers) {
    return {uint64_t(data_words) << 32 | uint64_t(pointers) << 48 | (uint32_t(offset) << 2 | struct_kind)};
  }
  GYRE_DEVICE static Pointer to_list(int64_t offset, uint32_t code, uint32_t size) {
    return {uint64_t(code) << 32 | uint64_t(size) << 35 | (uint32_t(offset) << 2 | list_kind)};
  }
};

/// A list in a received body.
template <class T>
class ListReader {
  static_assert(Scalar<T>, "lists of integers, floats and enums are what can be read");

 public:
  ListReader() = default;
  GYRE_DEVICE ListReader(const T* elements, uint32_t size) : elements_(elements), size_(size) {}

  /// Number of elements.
  GYRE_DEVICE uint32_t size() const { return size_; }
  /// Element i; T{} where there is none.
  GYRE_DEVICE T operator[](uint32_t i) const { return i < size_ ? load<T>(elements_ + i) : T{}; }
  /// The elements, for wide loads: 8-byte aligned; null if the list is empty for want of a valid pointer.
  GYRE_DEVICE const T* data() const { return elements_; }

 private:
  const T* elements_ = nullptr;
  uint32_t size_ = 0;
};

/// A struct in a received body, already checked to lie in it. What it is too short to have reads as the
/// default.
class StructReader {
 public:
  /// The field of type T at `index`, counted in fields of its size; stored xor'ed with its default.
  template <Scalar T>
  GYRE_DEVICE T get(uint32_t index, T default_value = T{}) const {
    if ((uint64_t(index) + 1) * sizeof(T) > data_bytes_) return default_value;
    return exclusive_or(load<T>(data_ + uint64_t(index) * sizeof(T)), default_value);
  }
  /// The Bool field at bit `bit` of the data section.
  GYRE_DEVICE bool get_bool(uint32_t bit, bool default_value = false) const {
    if (bit / 8 >= data_bytes_) return default_value;
    return ((data_[bit / 8] >> (bit % 8) & 1) != 0) != default_value;
  }
  /// The list behind pointer `index`; empty if the pointer is null, and, as a failure of the message, if it
  /// is not a pointer to a list of T that lies in the body.
  template <class T>
  GYRE_DEVICE ListReader<T> get_list(uint32_t index) const;

 private:
  friend class Message;
  GYRE_DEVICE StructReader(Message* message, const uint8_t* data, uint32_t data_bytes, uint32_t first_pointer,
                           uint32_t pointers)
      : message_(message),
        data_(data),
        data_bytes_(data_bytes),
        first_pointer_(first_pointer),
        pointers_(pointers) {}

  Message* message_;
  const uint8_t* data_;
  uint32_t data_bytes_;
  uint32_t first_pointer_;  // word offset in the body
  uint32_t pointers_;
};

/// One received body. Readers point to it: it stays where it is, and outlives them. The only place that
/// follows the pointers of received bytes, and that knows what was wrong with them.
class Message {
 public:
  /// What failed_word() is of a message that has not failed.
  static constexpr uint32_t no_word = 0xffffffff;

  /// `body` is 8-byte aligned; bytes after the last whole word are not looked at.
  GYRE_DEVICE Message(const void* body, uint32_t bytes)
      : body_(static_cast<const uint8_t*>(body)), words_(bytes / 8) {}
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  /// The root struct. Of a body that has none it is an empty struct, all defaults, and the message has
  /// failed.
  GYRE_DEVICE StructReader root() {
    if (words_ != 0) return read_struct(0);
    fail(0);
    return {this, body_, 0, 0, 0};
  }
  /// Whether a pointer followed so far was malformed. Stays true.
  GYRE_DEVICE bool failed() const { return failed_word_ != no_word; }
  /// Word offset in the body of the first malformed pointer.
  GYRE_DEVICE uint32_t failed_word() const { return failed_word_; }

 private:
  friend class StructReader;

  // These two take the word offset of a pointer known to lie in the body.
  GYRE_DEVICE StructReader read_struct(uint32_t at) {
    const Pointer pointer{load<uint64_t>(body_ + uint64_t(at) * 8)};
    const uint32_t data_words = pointer.struct_data_words(), pointers = pointer.struct_pointers();
    const int64_t target = int64_t(at) + 1 + pointer.offset();
    // Of a null pointer this is an empty struct right after it, which is valid.
    const bool valid =
        pointer.kind() == Pointer::struct_kind && in_body(target, uint64_t(data_words) + pointers);
    if (!valid) fail(at);
    const uint32_t first = valid ? uint32_t(target) : 0;
    return {this, body_ + uint64_t(first) * 8, valid ? data_words * 8 : 0, first + data_words,
            valid ? pointers : 0};
  }
  template <class T>
  GYRE_DEVICE ListReader<T> read_list(uint32_t at) {
    const Pointer pointer{load<uint64_t>(body_ + uint64_t(at) * 8)};
    if (pointer.is_null()) return {};
    const uint32_t size = pointer.list_size();
    const int64_t target = int64_t(at) + 1 + pointer.offset();
    if (pointer.kind() != Pointer::list_kind ||
        pointer.list_element_code() != Pointer::element_code(sizeof(T)) ||
        !in_body(target, (uint64_t(size) * sizeof(T) + 7) / 8)) {
      fail(at);
      return {};
    }
    return {reinterpret_cast<const T*>(body_ + target * 8), size};
  }
  GYRE_DEVICE bool in_body(int64_t target, uint64_t words) const {
    return target >= 0 && uint64_t(target) + words <= words_;
  }
  GYRE_DEVICE void fail(uint32_t at) {
    if (!failed()) failed_word_ = at;
  }

  const uint8_t* body_;
  uint32_t words_;
  uint32_t failed_word_ = no_word;
};

template <class T>
GYRE_DEVICE inline ListReader<T> StructReader::get_list(uint32_t index) const {
  return index < pointers_ ? message_->read_list<T>(first_pointer_ + index) : ListReader<T>{};
}

/// A list in a body being written.
template <class T>
class ListBuilder {
  static_assert(Scalar<T>, "lists of integers, floats and enums are what can be written");

 public:
  ListBuilder() = default;
  GYRE_DEVICE ListBuilder(T* elements, uint32_t size) : elements_(elements), size_(size) {}

  /// Number of elements; 0 if the list did not fit the body.
  GYRE_DEVICE uint32_t size() const { return size_; }
  /// Sets element i; does nothing where there is none. Any thread of a group may set any element.
  GYRE_DEVICE void set(uint32_t i, T value) const {
    if (i < size_) store(elements_ + i, value);
  }
  /// The elements, for wide stores: 8-byte aligned; null if the list did not fit the body.
  GYRE_DEVICE T* data() const { return elements_; }

 private:
  T* elements_ = nullptr;
  uint32_t size_ = 0;
};

/// A struct in a body being written. Of one that did not fit, and of fields that it is too short to have, the
/// setters do nothing.
class StructBuilder {
 public:
  /// Sets the field of type T at `index`, counted in fields of its size; stored xor'ed with its default.
  template <Scalar T>
  GYRE_DEVICE void set(uint32_t index, T value, T default_value = T{}) const {
    if ((uint64_t(index) + 1) * sizeof(T) > data_bytes_) return;
    store(data_ + uint64_t(index) * sizeof(T), exclusive_or(value, default_value));
  }
  /// Sets the Bool field at bit `bit` of the data section.
  GYRE_DEVICE void set_bool(uint32_t bit, bool value, bool default_value = false) const {
    if (bit / 8 >= data_bytes_) return;
    uint32_t* const unit = reinterpret_cast<uint32_t*>(data_) + bit / 32;
    const uint32_t mask = 1u << (bit % 32), bits = load<uint32_t>(unit);
    const bool wanted = value != default_value;
    if (((bits & mask) != 0) == wanted) return;
#if defined(__CUDACC_RTC__)
    // Threads of the group may be at different fields of these 32 bits: none may undo what another stored.
    if (wanted)
      atomicOr(unit, mask);
    else
      atomicAnd(unit, ~mask);
#else
    store(unit, bits ^ mask);
#endif
  }
  /// Allocates a list of `size` elements, all 0, behind pointer `index`. The list it had before, if any, is
  /// lost but keeps its bytes. Past the capacity of the body: an empty list, and the body is full.
  template <class T>
  GYRE_DEVICE ListBuilder<T> init_list(uint32_t index, uint32_t size) const;

 private:
  friend class Body;
  GYRE_DEVICE StructBuilder(Body* body, uint8_t* data, uint32_t data_bytes, uint32_t first_pointer,
                            uint32_t pointers)
      : body_(body),
        data_(data),
        data_bytes_(data_bytes),
        first_pointer_(first_pointer),
        pointers_(pointers) {}

  Body* body_;
  uint8_t* data_;
  uint32_t data_bytes_;
  uint32_t first_pointer_;  // word offset in the body
  uint32_t pointers_;
};

/// One body being written. Builders point to it: it stays where it is, and outlives them.
class Body {
 public:
  /// `zeroed` is 8-byte aligned and all 0, and stays so but for what the builders of this body write.
  GYRE_DEVICE Body(void* zeroed, uint32_t capacity_bytes)
      : body_(static_cast<uint8_t*>(zeroed)), capacity_words_(capacity_bytes / 8) {}
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  /// Allocates the root struct; the view's `data_words` and `pointers` say how large.
  GYRE_DEVICE StructBuilder init_root(uint32_t data_words, uint32_t pointers) {
    if (used_words_ == 0) allocate(1);
    return init_struct(0, data_words, pointers);
  }
  /// Bytes from the base that make up the message so far, a multiple of 8.
  GYRE_DEVICE uint32_t used_bytes() const { return used_words_ * 8; }
  /// Whether an object did not fit. Stays true, and nothing is allocated any more: the message is not to be
  /// sent.
  GYRE_DEVICE bool full() const { return full_; }

 private:
  friend class StructBuilder;

  // These two take the word offset of a pointer known to lie in the body.
  GYRE_DEVICE StructBuilder init_struct(uint32_t at, uint32_t data_words, uint32_t pointers) {
    const uint32_t target = used_words_, words = data_words + pointers;
    const bool fits = data_words <= 0xffff && pointers <= 0xffff && allocate(words);
    // A struct of no words is at the pointer itself (offset -1), so that the pointer is not null.
    const int64_t offset = words == 0 ? -1 : int64_t(target) - at - 1;
    if (fits) store(body_ + uint64_t(at) * 8, Pointer::to_struct(offset, data_words, pointers).word);
    return {this, body_ + uint64_t(target) * 8, fits ? data_words * 8 : 0, target + data_words,
            fits ? pointers : 0};
  }
  template <class T>
  GYRE_DEVICE ListBuilder<T> init_list(uint32_t at, uint32_t size) {
    const uint32_t target = used_words_;
    const uint64_t bytes = uint64_t(size) * sizeof(T);
    if (!allocate(size <= Pointer::max_list_size ? (bytes + 7) / 8 : no_room)) return {};
    const int64_t offset = int64_t(target) - at - 1;
    store(body_ + uint64_t(at) * 8, Pointer::to_list(offset, Pointer::element_code(sizeof(T)), size).word);
    return {reinterpret_cast<T*>(body_ + uint64_t(target) * 8), size};
  }
  GYRE_DEVICE bool allocate(uint64_t words) {
    full_ = full_ || words > capacity_words_ - used_words_;
    if (!full_) used_words_ += uint32_t(words);
    return !full_;
  }

  static constexpr uint64_t no_room = ~uint64_t(0);  // words that no body has

  uint8_t* body_;
  uint32_t capacity_words_;
  uint32_t used_words_ = 0;
  bool full_ = false;
};

template <class T>
GYRE_DEVICE inline ListBuilder<T> StructBuilder::init_list(uint32_t index, uint32_t size) const {
  return index < pointers_ ? body_->init_list<T>(first_pointer_ + index, size) : ListBuilder<T>{};
}

}  // namespace gyre::wire
