// Writing a Cap'n Proto message body in place, in a worker or on the host. Objects are allocated upwards and
// never moved; what does not fit is not written, and the body is full.
//
// In a worker a whole group of threads runs a handler over one body. Each thread has a Body of its own and
// makes the same calls that allocate (init…), in the same order, so all compute the same offsets and store
// the same words; then any thread may set any element. For that to hold nothing is ever zeroed here (the
// memory comes zeroed), and allocation depends on nothing but the sequence of calls.
#pragma once

#include <gyre/messages/wire.hpp>

namespace gyre::wire {

class Body;

/// Returns a T that does not exist: its setters do nothing. It refers to the body for the reason given at
/// empty().
template <class T>
GYRE_DEVICE inline typename T::Builder absent(Body* body);

/// A struct in a body being written. Setters do nothing if the struct did not fit, or is too short to have
/// the field. A value; refers to its Body.
class StructBuilder {
 public:
  /// Makes a struct that does not exist.
  StructBuilder() = default;

  /// Sets the field of type T at `index`, counted in fields of its size; stored xor'ed with its default.
  template <Scalar T>
  GYRE_DEVICE void set(uint32_t index, T value, T default_value = T{}) const {
    if ((uint64_t(index) + 1) * sizeof(T) > data_bytes_) return;
    store(data_ + uint64_t(index) * sizeof(T), exclusive_or(value, default_value));
  }
  /// Sets the Bool field at bit `bit` of the data section.
  GYRE_DEVICE void set_bool(uint32_t bit, bool value, bool default_value = false) const {
    if (bit / 8 < data_bytes_) store_bit(data_, bit, value != default_value);
  }
  /// Sets a Bool field that has its byte to itself by a plain store: threads may set such fields at the same
  /// time.
  GYRE_DEVICE void set_lone_bool(uint32_t bit, bool value, bool default_value = false) const {
    const uint32_t set = value != default_value ? 1 : 0;
    if (bit / 8 < data_bytes_) store(data_ + bit / 8, uint8_t(set << bit % 8));
  }
  /// Makes a union hold member `member`. Returns true if it held another: the fields of a group may carry
  /// what that member left. If threads may see different results, call ctx.sync() before one thread alone
  /// sets a field of the group.
  /// @param index  place of the union's tag, counted in units of 16 bits
  GYRE_DEVICE bool choose(uint32_t index, uint16_t member) const {
    if ((uint64_t(index) + 1) * 2 > data_bytes_) return false;
    uint8_t* const tag = data_ + uint64_t(index) * 2;
    if (load<uint16_t>(tag) == member) return false;
    store(tag, member);
    return true;
  }
  /// Allocates what is behind pointer `index`, where T is Text, Data, a List (of `size` bytes or elements,
  /// all 0) or, without a size, a struct. What was there before, if anything, is lost but keeps its bytes.
  /// Past the capacity of the body: an empty T, and the body is full.
  template <class T>
  GYRE_DEVICE typename T::Builder init(uint32_t index, uint32_t size = 0) const;
  /// Allocates a Text or Data behind pointer `index` and copies `size` bytes to it; in a group every thread
  /// copies all, so for long ones init() and fill by rank.
  template <class T>
  GYRE_DEVICE void set(uint32_t index, typename T::Reader value) const {
    const typename T::Builder copy = init<T>(index, value.size());
    for (uint32_t i = 0; i < copy.size(); ++i) copy.set(i, value[i]);
  }
  /// Makes pointer `index` null.
  GYRE_DEVICE void clear_pointer(uint32_t index) const {
    if (index < pointers_) store(pointer(index), uint64_t(0));
  }

  /// Sets one bit of a data section or a list of Bool.
  GYRE_DEVICE static void store_bit(uint8_t* bits, uint32_t bit, bool value) {
    uint32_t* const unit = reinterpret_cast<uint32_t*>(bits) + bit / 32;
    const uint32_t mask = 1u << (bit % 32), found = load<uint32_t>(unit);
    if (((found & mask) != 0) == value) return;
#if defined(__CUDACC_RTC__)
    // Threads of the group may be at different fields of these 32 bits: none may undo what another stored.
    if (value)
      atomicOr(unit, mask);
    else
      atomicAnd(unit, ~mask);
#else
    store(unit, found ^ mask);
#endif
  }

 private:
  friend class Body;
  template <class T>
  friend class ListBuilder;
  GYRE_DEVICE StructBuilder(Body* body, uint8_t* data, uint32_t data_bytes, uint32_t pointers)
      : body_(body), data_(data), data_bytes_(data_bytes), pointers_(pointers) {}

  GYRE_DEVICE uint8_t* pointer(uint32_t index) const { return data_ + data_bytes_ + uint64_t(index) * 8; }

  Body* body_ = nullptr;
  uint8_t* data_ = nullptr;
  uint32_t data_bytes_ = 0;
  uint32_t pointers_ = 0;
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
    return init_struct(body_, data_words, pointers);
  }
  /// Allocates the root struct as init_root(). It must be the first allocation, and must fit
  /// `capacity_bytes`.
  GYRE_DEVICE StructBuilder init_plain_root(uint32_t data_words, uint32_t pointers) {
    const uint32_t words = data_words + pointers;
    used_words_ = 1 + words;
    store(body_, Pointer::to_struct(words == 0 ? -1 : 0, data_words, pointers).word);
    return {this, body_ + 8, data_words * 8, pointers};
  }
  /// Bytes from the base that make up the message so far, a multiple of 8.
  GYRE_DEVICE uint32_t used_bytes() const { return used_words_ * 8; }
  /// Returns true once an object did not fit. Nothing is allocated afterwards, and the message must not be
  /// sent.
  GYRE_DEVICE bool full() const { return full_; }

 private:
  friend class StructBuilder;
  template <class T>
  friend class ListBuilder;
  template <class T>
  friend GYRE_DEVICE typename T::Builder absent(Body* body);

  // Elements of a list just allocated; size 0 where they did not fit. `begin` is an address in the body all
  // the same: were it null, a compiler would no longer know in which memory elements lie.
  struct Elements {
    uint8_t* begin;
    uint32_t size;
  };

  // These take the address of a pointer of this body.
  template <class T>
  GYRE_DEVICE typename T::Builder init(uint8_t* at, uint32_t size);

  GYRE_DEVICE static StructBuilder absent_struct(Body* body) { return {body, nullptr, 0, 0}; }
  // One return for all: were there several, NVRTC would no longer keep the Body in registers.
  GYRE_DEVICE StructBuilder init_struct(uint8_t* at, uint32_t data_words, uint32_t pointers) {
    uint8_t* const target = end();
    const uint32_t words = data_words + pointers;
    const bool fits = allocate(data_words <= 0xffff && pointers <= 0xffff ? words : no_room);
    // A struct of no words is at the pointer itself (offset -1), so that the pointer is not null.
    const int64_t offset = words == 0 ? -1 : offset_from(at, target);
    if (fits) store(at, Pointer::to_struct(offset, data_words, pointers).word);
    return {this, target, fits ? data_words * 8 : 0, fits ? pointers : 0};
  }
  // `words`: taken by the elements; ignored if `size` is too large.
  GYRE_DEVICE Elements init_list(uint8_t* at, ElementSize element_size, uint32_t size, uint32_t words) {
    uint8_t* const target = end();
    const bool fits = allocate(size <= Pointer::max_list_size ? words : no_room);
    if (fits) store(at, Pointer::to_list(offset_from(at, target), element_size, size).word);
    return {target, fits ? size : 0};
  }
  GYRE_DEVICE Elements init_composite(uint8_t* at, uint32_t size, uint32_t data_words, uint32_t pointers) {
    uint8_t* const tag = end();
    const uint64_t words = uint64_t(size) * (data_words + pointers);
    const bool possible = size <= Pointer::max_list_size && words <= Pointer::max_list_size;
    if (!allocate(possible ? uint32_t(words) + 1 : no_room)) return {tag, 0};
    store(at, Pointer::to_list(offset_from(at, tag), ElementSize::composite, uint32_t(words)).word);
    store(tag, Pointer::to_struct(int64_t(size), data_words, pointers).word);
    return {tag + 8, size};
  }
  GYRE_DEVICE uint8_t* end() const { return body_ + uint64_t(used_words_) * 8; }
  // A body has less than 2^32 bytes, and what is allocated lies behind what leads to it.
  GYRE_DEVICE static int64_t offset_from(const uint8_t* at, const uint8_t* target) {
    const uint32_t bytes =
        uint32_t(reinterpret_cast<uintptr_t>(target)) - uint32_t(reinterpret_cast<uintptr_t>(at));
    return int64_t(bytes / 8) - 1;
  }
  GYRE_DEVICE bool allocate(uint32_t words) {
    full_ = full_ || words > capacity_words_ - used_words_;
    used_words_ += full_ ? 0 : words;
    return !full_;
  }

  static constexpr uint32_t no_room = 0xffffffff;  // words that no body has

  uint8_t* body_;
  uint32_t capacity_words_;
  uint32_t used_words_ = 0;
  bool full_ = false;
};

/// A list of integers, floats or enums being written; also a Data, as its bytes.
template <class T>
class ListBuilder {
  static_assert(Scalar<T>, "a list holds integers, floats, enums, Bool, Void, Text, Data, lists or structs");

 public:
  ListBuilder() = default;

  /// Number of elements; 0 if the list did not fit the body.
  GYRE_DEVICE uint32_t size() const { return size_; }
  /// Sets element i; does nothing where there is none. Any thread of a group may set any element.
  GYRE_DEVICE void set(uint32_t i, T value) const {
    if (i < size_) set_unchecked(i, value);
  }
  /// Sets element i, which must be below size(): not checked.
  GYRE_DEVICE void set_unchecked(uint32_t i, T value) const { store(elements_ + i, value); }
  /// The elements, for wide stores: 8-byte aligned; null if there are none, or they did not fit the body.
  GYRE_DEVICE T* data() const { return size_ != 0 ? elements_ : nullptr; }

 private:
  friend class Body;
  GYRE_DEVICE ListBuilder(uint8_t* elements, uint32_t size)
      : elements_(reinterpret_cast<T*>(elements)), size_(size) {}

  T* elements_ = nullptr;
  uint32_t size_ = 0;
};

template <>
class ListBuilder<bool> {
 public:
  ListBuilder() = default;
  GYRE_DEVICE uint32_t size() const { return size_; }
  /// Sets element i; does nothing where there is none. Any thread of a group may set any element.
  GYRE_DEVICE void set(uint32_t i, bool value) const {
    if (i < size_) StructBuilder::store_bit(bits_, i, value);
  }
  /// The elements, eight a byte, the first in the lowest bit; 8-byte aligned. Null if there are none, or they
  /// did not fit.
  GYRE_DEVICE uint8_t* data() const { return size_ != 0 ? bits_ : nullptr; }

 private:
  friend class Body;
  GYRE_DEVICE ListBuilder(uint8_t* bits, uint32_t size) : bits_(bits), size_(size) {}

  uint8_t* bits_ = nullptr;
  uint32_t size_ = 0;
};

template <>
class ListBuilder<Void> {
 public:
  ListBuilder() = default;
  GYRE_DEVICE uint32_t size() const { return size_; }

 private:
  friend class Body;
  GYRE_DEVICE explicit ListBuilder(uint32_t size) : size_(size) {}

  uint32_t size_ = 0;
};

/// Text being written: size() bytes, and a 0 behind them that is already there.
class TextBuilder {
 public:
  TextBuilder() = default;

  /// Bytes without the 0 at the end; 0 if the text did not fit the body.
  GYRE_DEVICE uint32_t size() const { return size_; }
  /// Sets byte i; does nothing where there is none. Any thread of a group may set any byte.
  GYRE_DEVICE void set(uint32_t i, char value) const {
    if (i < size_) bytes_[i] = value;
  }
  /// The bytes: 8-byte aligned; null if there are none, or they did not fit the body.
  GYRE_DEVICE char* data() const { return size_ != 0 ? bytes_ : nullptr; }

 private:
  friend class Body;
  GYRE_DEVICE TextBuilder(uint8_t* bytes, uint32_t size)
      : bytes_(reinterpret_cast<char*>(bytes)), size_(size) {}

  char* bytes_ = nullptr;
  uint32_t size_ = 0;
};

/// A list of Text, Data or lists, all of them null until init() makes them. In a group every thread calls
/// init() for every element, in the same order.
template <Blob T>
class ListBuilder<T> {
 public:
  ListBuilder() = default;
  GYRE_DEVICE uint32_t size() const { return size_; }
  /// Allocates element i, of `size` bytes or elements; an empty one, and nothing is allocated, where there is
  /// none.
  GYRE_DEVICE typename T::Builder init(uint32_t i, uint32_t size) const {
    if (i >= size_) return absent<T>(body_);
    return body_->template init<T>(pointers_ + uint64_t(i) * 8, size);
  }

 private:
  friend class Body;
  template <class U>
  friend GYRE_DEVICE typename U::Builder absent(Body* body);
  GYRE_DEVICE ListBuilder(Body* body, uint8_t* pointers, uint32_t size)
      : body_(body), pointers_(pointers), size_(size) {}

  Body* body_ = nullptr;
  uint8_t* pointers_ = nullptr;
  uint32_t size_ = 0;
};

/// A list of structs being written, all of them there, and all 0.
template <Struct T>
class ListBuilder<T> {
 public:
  ListBuilder() = default;
  GYRE_DEVICE uint32_t size() const { return size_; }
  /// Element i; where there is none, a struct whose setters do nothing.
  GYRE_DEVICE typename T::Builder operator[](uint32_t i) const {
    constexpr uint32_t bytes = (uint32_t(T::data_words) + T::pointers) * 8;
    if (i >= size_) return typename T::Builder(StructBuilder(body_, elements_, 0, 0));
    return typename T::Builder(
        StructBuilder(body_, elements_ + uint64_t(i) * bytes, T::data_words * 8, T::pointers));
  }

 private:
  friend class Body;
  template <class U>
  friend GYRE_DEVICE typename U::Builder absent(Body* body);
  GYRE_DEVICE ListBuilder(Body* body, uint8_t* elements, uint32_t size)
      : body_(body), elements_(elements), size_(size) {}

  Body* body_ = nullptr;
  uint8_t* elements_ = nullptr;
  uint32_t size_ = 0;
};

template <class T>
GYRE_DEVICE inline typename T::Builder absent(Body* body) {
  if constexpr (Struct<T>) {
    return typename T::Builder(Body::absent_struct(body));
  } else if constexpr (is_list<T>) {
    if constexpr (Struct<typename T::Element> || Blob<typename T::Element>) {
      return {body, nullptr, 0};
    } else {
      return {};
    }
  } else {
    return {};
  }
}

template <class T>
GYRE_DEVICE inline typename T::Builder Body::init(uint8_t* at, uint32_t size) {
  if constexpr (is_same<T, Text>) {
    // One more than max_list_size wraps to nothing that fits: the size is checked in 64 bits.
    const bool possible = size < Pointer::max_list_size;
    const Elements bytes = init_list(at, ElementSize::byte, possible ? size + 1 : ~0u, words_of<1>(size + 1));
    return {bytes.begin, bytes.size == 0 ? 0 : bytes.size - 1};
  } else if constexpr (is_same<T, Data>) {
    const Elements bytes = init_list(at, ElementSize::byte, size, words_of<1>(size));
    return {bytes.begin, bytes.size};
  } else if constexpr (is_list<T>) {
    using Element = typename T::Element;
    if constexpr (Scalar<Element>) {
      const Elements list =
          init_list(at, Pointer::element_size(sizeof(Element)), size, words_of<sizeof(Element)>(size));
      return {list.begin, list.size};
    } else if constexpr (is_bool<Element>) {
      const Elements list = init_list(at, ElementSize::bit, size, size / 64 + (size % 64 != 0));
      return {list.begin, list.size};
    } else if constexpr (is_same<Element, Void>) {
      return typename T::Builder(init_list(at, ElementSize::none, size, 0).size);
    } else if constexpr (Blob<Element>) {
      const Elements list = init_list(at, ElementSize::pointer, size, size);
      return {this, list.begin, list.size};
    } else {
      const Elements list = init_composite(at, size, Element::data_words, Element::pointers);
      return {this, list.begin, list.size};
    }
  } else {
    return typename T::Builder(init_struct(at, T::data_words, T::pointers));
  }
}

template <class T>
GYRE_DEVICE inline typename T::Builder StructBuilder::init(uint32_t index, uint32_t size) const {
  return index < pointers_ ? body_->init<T>(pointer(index), size) : absent<T>(body_);
}

}  // namespace gyre::wire
