// Reads a Cap'n Proto message body in place, in a worker or on the host. The bytes may be hostile: reading
// any bytes has a defined result, touches nothing outside the body, and ends.
//
//   bounds      every pointer is checked against the body, in 64-bit arithmetic, before it is followed
//   depth       64 pointers from the root at most, as in the official library
//   traversal   words followed below the root's own fields count against a budget, and so do, everywhere,
//               elements that take no space (Void, structs without fields): a small message whose pointers
//               all lead to the same object, or that claims a billion of nothing, keeps no handler busy
//
// The message keeps its first failure, with the place and the field. A failed read gives the default, and the
// rest stays readable; the worker discards the handler's reply to a failed message.
//
// Accepted bytes and their meaning are those of the official library (capnp/layout.c++), including upgrades
// of lists: a list of structs reads as a list of their first field, and the reverse. One exception: a message
// here is one segment, so pointers to other segments are refused. tests/fuzz compares the two.
#pragma once

#include <gyre/messages/wire.hpp>

namespace gyre::wire {

class Message;

/// What a null pointer of `message` reads as, and a bad one: an empty Text, Data or List, or a struct of
/// defaults. It refers to the message although it needs nothing of it: were that null in one case and not in
/// the other, a compiler could no longer keep the message in registers, nor know in which memory it lies.
template <class T>
GYRE_DEVICE inline typename T::Reader empty(Message* message);

/// A struct in a received body, already checked to lie in it. What it is too short to have reads as the
/// default. A value; refers to its Message.
class StructReader {
 public:
  /// Makes a struct without fields: everything reads as its default.
  StructReader() = default;

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
  /// Returns true if pointer `index` exists and is not null.
  GYRE_DEVICE bool has(uint32_t index) const { return index < pointers_ && pointer_word(index) != 0; }
  /// Returns this struct if its union holds member `member`, else a struct without fields: another member's
  /// fields must not be read as this one's.
  /// @param index  place of the union's tag, counted in units of 16 bits
  GYRE_DEVICE StructReader holding(uint32_t index, uint16_t member) const {
    if (get<uint16_t>(index) == member) return *this;
    return {message_, data_, 0, 0, depth_, trusted_, copied_root_};
  }
  /// Follows pointer `index` to a T: Text, Data, a List or a struct. A null pointer gives the T in
  /// `default_body`, a whole body that is not checked, or an empty T if there is none. A bad pointer gives an
  /// empty T, and the message fails at `field`.
  template <class T>
  GYRE_DEVICE typename T::Reader get(uint32_t index, Field field,
                                     const uint64_t* default_body = nullptr) const;

 private:
  friend class Message;
  template <class T>
  friend class ListReader;
  GYRE_DEVICE StructReader(Message* message, const uint8_t* data, uint32_t data_bytes, uint32_t pointers,
                           uint32_t depth, bool trusted, bool copied_root = false)
      : message_(message),
        data_(data),
        data_bytes_(data_bytes),
        pointers_(uint16_t(pointers)),
        depth_(uint8_t(depth)),
        trusted_(trusted),
        copied_root_(copied_root) {}

  GYRE_DEVICE uint64_t pointer_word(uint32_t index) const {
    return load<uint64_t>(data_ + data_bytes_ + uint64_t(index) * 8);
  }
  // Where it lies in the message.
  GYRE_DEVICE inline const uint8_t* pointer(uint32_t index) const;

  Message* message_ = nullptr;
  const uint8_t* data_ = nullptr;
  uint32_t data_bytes_ = 0;
  uint16_t pointers_ = 0;
  uint8_t depth_ = 0;         // pointers that may still be followed from here, one after another
  bool trusted_ = false;      // in a default of the schema, not in a received body
  bool copied_root_ = false;  // data_ is a copy of a root that lies right behind its pointer
};

/// One received body, and what was wrong with it. Readers point to it: it stays where it is, and outlives
/// them. The only place that follows the pointers of received bytes. In a group of threads each has its own.
class Message {
 public:
  /// What failed_word() is of a message that has not failed.
  static constexpr uint32_t no_word = 0xffffffff;
  static constexpr uint32_t max_depth = 64;

  /// Words that may be followed below the root's own fields, where an actor does not say otherwise: 64 times
  /// the body, and 64 Ki at least.
  GYRE_DEVICE static constexpr uint64_t default_traversal_words(uint32_t bytes) {
    const uint64_t words = 64 * uint64_t(bytes / 8);
    return words < 65536 ? 65536 : words;
  }

  /// @param body   8-byte aligned; bytes after the last whole word are ignored
  /// @param known  the root's lists for which has_plain_lists() returned true; their pointers are not checked
  /// again
  GYRE_DEVICE Message(const void* body, uint32_t bytes, uint64_t traversal_words, NumberLists known = {})
      : body_(static_cast<const uint8_t*>(body)),
        words_(bytes / 8),
        traversal_words_(traversal_words),
        known_lists_(known) {}
  GYRE_DEVICE Message(const void* body, uint32_t bytes)
      : Message(body, bytes, default_traversal_words(bytes)) {}
  /// The whole body, and its bytes: a multiple of 8.
  GYRE_DEVICE const void* body() const { return body_; }
  GYRE_DEVICE uint32_t body_bytes() const { return words_ * 8; }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  /// The root struct, of the type with this id. Of a body that has none it is an empty struct, all defaults,
  /// and the message has failed.
  GYRE_DEVICE StructReader root(uint64_t type_id = 0) {
    const Slot slot{body_, words_ != 0 ? load<uint64_t>(body_) : 0, max_depth, false, {type_id, Field::root}};
    (void)is(slot, words_ != 0, Malformed::out_of_bounds);
    return read_struct(slot);
  }
  /// Returns true if the root struct of a body of `bytes` bytes has exactly `data_words` and `pointers`,
  /// right behind its pointer. Nearly every root has. `root_word`: the body's first word, if it has one.
  GYRE_DEVICE static bool is_plain_root(uint64_t root_word, uint32_t bytes, uint32_t data_words,
                                        uint32_t pointers) {
    const uint32_t words = data_words + pointers;
    return bytes / 8 > words &&
           root_word == Pointer::to_struct(words == 0 ? -1 : 0, data_words, pointers).word;
  }
  /// Returns root() if is_plain_root() returned true: a struct whose size the compiler knows. `copy`: null,
  /// or a copy of the root's words, from which they are read.
  GYRE_DEVICE StructReader plain_root(uint32_t data_words, uint32_t pointers, const uint64_t* copy) {
    const uint8_t* const data = copy != nullptr ? reinterpret_cast<const uint8_t*>(copy) : body_ + 8;
    return {this, data, data_words * 8, pointers, root_depth, false, copy != nullptr};
  }
  /// Returns true if all `lists` of a body whose root is_plain_root() are null or plain: their elements have
  /// the schema's size, and lie behind their pointers and in the body. Nearly every list is plain.
  GYRE_DEVICE static bool has_plain_lists(const void* body, uint32_t bytes, uint32_t data_words,
                                          uint32_t pointers, NumberLists lists) {
    bool plain = true;
    for (uint32_t index = 0; index < pointers; ++index) {
      const ElementSize element_size = lists.of(index);
      if (element_size == ElementSize::none) continue;
      const uint32_t at = 1 + data_words + index;
      const Pointer pointer{load<uint64_t>(static_cast<const uint8_t*>(body) + uint64_t(at) * 8)};
      const uint64_t words = (uint64_t(pointer.list_size()) * bits_of(element_size) + 63) / 64;
      const bool inside = uint64_t(at) + 1 + pointer.offset_ahead() + words <= bytes / 8;
      plain = plain && (pointer.is_null() || (pointer.is_list_ahead(element_size) && inside));
    }
    return plain;
  }
  /// Returns true once a malformed pointer was followed.
  GYRE_DEVICE bool failed() const { return reason_ != Malformed::none; }
  /// Of the first failure: word offset of the pointer in the body, what was wrong, and the field it belongs
  /// to.
  GYRE_DEVICE uint32_t failed_word() const { return failed_word_; }
  GYRE_DEVICE Malformed reason() const { return reason_; }
  GYRE_DEVICE Field failed_field() const { return failed_field_; }

 private:
  friend class StructReader;
  template <class T>
  friend class ListReader;
  template <class T>
  friend GYRE_DEVICE typename T::Reader empty(Message* message);

  static constexpr uint32_t root_depth = max_depth - 1;

  // A pointer, known to lie in the body or in a default, and what the reader that holds it knows.
  struct Slot {
    const uint8_t* at;
    uint64_t word;  // that lies there
    uint32_t depth;
    bool trusted;
    Field field;
  };
  // What a list pointer leads to. `data_bytes` and `pointers` are each element's.
  struct Elements {
    // Of the elements, in bytes from the body's begin, wherever they are: an address that a called function
    // returns could be one of any memory, and a compiler would no longer know that it is the body's.
    int64_t offset;
    uint32_t size;
    ElementSize element_size;
    uint32_t step_bytes;
    uint32_t data_bytes;
    uint32_t pointers;
    bool valid;
    Malformed reason;        // why it is not valid, unless the pointer is null
    uint64_t charged_words;  // that following it costs
  };

  template <class T>
  GYRE_DEVICE typename T::Reader read(const Slot& slot);
  // What a list of scalars nearly always is: of just these elements, in the body, right below the root and
  // behind its pointer.
  struct PlainList {
    const uint8_t* begin;
    uint32_t size;
    bool valid;
  };
  template <class Element>
  GYRE_DEVICE PlainList plain_list(const Slot& slot) const {
    const Pointer pointer{slot.word};
    const uint32_t size = pointer.list_size();
    const uint32_t words = words_of<sizeof(Element)>(size);
    // Words of a body, offsets and sizes of lists have at most 29 bits: 32 are enough.
    const uint32_t target = uint32_t(uint64_t(slot.at - body_) / 8) + 1 + pointer.offset_ahead();
    const bool below_root = slot.depth == root_depth, received = !slot.trusted;
    const bool of_elements = pointer.is_list_ahead(Pointer::element_size(sizeof(Element)));
    return {body_ + target * 8, size, below_root && received && of_elements && target + words <= words_};
  }

  GYRE_DEVICE static StructReader empty_struct(Message* message) {
    return {message, nullptr, 0, 0, 0, false};
  }
  // One return for all: were there several, NVRTC would no longer keep the Message in registers.
  GYRE_DEVICE StructReader read_struct(const Slot& slot) {
    const Pointer pointer{slot.word};
    const uint32_t data_words = pointer.struct_data_words(), pointers = pointer.struct_pointers();
    const uint8_t* data = nullptr;
    if (!pointer.is_null() && is(slot, pointer.kind() == Pointer::struct_kind, Malformed::not_a_struct) &&
        is(slot, slot.depth != 0, Malformed::too_deep)) {
      data = extent(slot, pointer, uint64_t(data_words) + pointers);
    }
    const bool there = data != nullptr;
    return {this, data, there ? data_words * 8 : 0, there ? pointers : 0, slot.depth - 1, slot.trusted};
  }

  GYRE_DEVICE Elements read_list(const Slot& slot) {
    const Elements list = find_list(body_, words_, traversal_words_, slot.at, slot.depth, slot.trusted);
    if (list.reason != Malformed::none) fail(slot, list.reason);
    traversal_words_ -= list.charged_words;
    return list;
  }
  // Follows any list pointer. A function of values, and called on the GPU: one copy of it serves all lists of
  // a kernel, and the Message stays in registers.
  GYRE_CALLED_FUNCTION static Elements find_list(const uint8_t* body, uint32_t body_words, uint64_t budget,
                                                 const uint8_t* at, uint32_t depth, bool trusted) {
    const Pointer pointer{load<uint64_t>(at)};
    Elements list{0, 0, pointer.list_element_size(), 0, 0, 0, false, Malformed::none, 0};
    const auto malformed = [&list](Malformed reason) {
      list.reason = reason;
      list.charged_words = 0;
      return list;
    };
    if (pointer.is_null()) return list;
    if (pointer.kind() != Pointer::list_kind) return malformed(Malformed::not_a_list);
    if (depth == 0) return malformed(Malformed::too_deep);
    list.size = pointer.list_size();
    const bool composite = list.element_size == ElementSize::composite;
    const uint32_t bits = bits_of(list.element_size);
    const uint64_t words = composite ? uint64_t(list.size) + 1 : (uint64_t(list.size) * bits + 63) / 64;
    if (!in_body(body, body_words, at, pointer, words, trusted)) return malformed(Malformed::out_of_bounds);
    const uint8_t* const begin = target_of(body, at, pointer, words, trusted);
    if (!trusted && depth < root_depth) list.charged_words = words;

    bool elements_are_nothing = bits == 0;
    if (composite) {
      const Pointer tag{load<uint64_t>(begin)};
      const uint32_t element_words = tag.struct_data_words() + tag.struct_pointers();
      const uint32_t size = tag.tag_count();
      if (tag.kind() != Pointer::struct_kind || uint64_t(size) * element_words > list.size) {
        return malformed(Malformed::bad_tag);
      }
      elements_are_nothing = element_words == 0;
      list.size = size;
      list.step_bytes = element_words * 8;
      list.data_bytes = tag.struct_data_words() * 8;
      list.pointers = tag.struct_pointers();
    } else {
      list.step_bytes = bits / 8;
      list.pointers = list.element_size == ElementSize::pointer ? 1 : 0;
      list.data_bytes = list.pointers != 0 ? 0 : bits / 8;
    }
    // A few bytes may claim any number of elements that take no space.
    if (elements_are_nothing && !trusted) list.charged_words += list.size;
    if (list.charged_words > budget) return malformed(Malformed::traversal);
    list.offset = int64_t(reinterpret_cast<uintptr_t>(begin) - reinterpret_cast<uintptr_t>(body));
    if (composite) list.offset += 8;
    list.valid = true;
    return list;
  }
  // Returns the address of the elements; those of a default may lie in other memory than the body.
  GYRE_DEVICE const uint8_t* elements(const Slot& slot, const Elements& list) const {
    if (!slot.trusted) return body_ + list.offset;
    return reinterpret_cast<const uint8_t*>(reinterpret_cast<uintptr_t>(body_) + uint64_t(list.offset));
  }
  // The bytes of a Text, its 0 included, or of a Data.
  struct Bytes {
    const uint8_t* begin;  // null where there are none
    uint32_t size;
  };
  GYRE_DEVICE Bytes read_bytes(const Slot& slot) {
    const Pointer pointer{slot.word};
    const uint32_t size = pointer.list_size();
    if (pointer.is_null() || !is(slot, pointer.kind() == Pointer::list_kind, Malformed::not_a_list) ||
        !is(slot, pointer.list_element_size() == ElementSize::byte, Malformed::wrong_elements)) {
      return {nullptr, 0};
    }
    return {extent(slot, pointer, (uint64_t(size) + 7) / 8), size};
  }

  // The `words` words that the pointer leads to; null, as a failure, where they do not all lie in the body.
  GYRE_DEVICE const uint8_t* extent(const Slot& slot, Pointer pointer, uint64_t words) {
    if (!is(slot, in_body(body_, words_, slot.at, pointer, words, slot.trusted), Malformed::out_of_bounds) ||
        (!slot.trusted && slot.depth < root_depth && !charge(slot, words))) {
      return nullptr;
    }
    return target_of(body_, slot.at, pointer, words, slot.trusted);
  }
  // Whether `words` words from where the pointer at `at` leads lie in the body. Where no words are, anywhere
  // will do.
  GYRE_DEVICE static bool in_body(const uint8_t* body, uint32_t body_words, const uint8_t* at,
                                  Pointer pointer, uint64_t words, bool trusted) {
    const int64_t target = int64_t(uint64_t(at - body) / 8) + 1 + pointer.offset();
    return trusted || words == 0 || (target >= 0 && uint64_t(target) + words <= body_words);
  }
  GYRE_DEVICE static const uint8_t* target_of(const uint8_t* body, const uint8_t* at, Pointer pointer,
                                              uint64_t words, bool trusted) {
    return !trusted && words == 0 ? body : at + 8 + pointer.offset() * 8;
  }
  GYRE_DEVICE bool charge(const Slot& slot, uint64_t words) {
    if (!is(slot, words <= traversal_words_, Malformed::traversal)) return false;
    traversal_words_ -= words;
    return true;
  }
  // `condition`; where it does not hold, the message has failed.
  GYRE_DEVICE bool is(const Slot& slot, bool condition, Malformed reason) {
    if (!condition) fail(slot, reason);
    return condition;
  }
  GYRE_DEVICE void fail(const Slot& slot, Malformed reason) {
    if (failed()) return;
    reason_ = reason;
    failed_word_ = uint32_t(uint64_t(slot.at - body_) / 8);
    failed_field_ = slot.field;
  }
  GYRE_DEVICE static uint32_t bits_of(ElementSize size) {
    switch (size) {
      case ElementSize::none:
        return 0;
      case ElementSize::bit:
        return 1;
      case ElementSize::byte:
        return 8;
      case ElementSize::two_bytes:
        return 16;
      case ElementSize::four_bytes:
        return 32;
      default:
        return 64;
    }
  }

  const uint8_t* body_;
  uint32_t words_;
  uint32_t failed_word_ = no_word;
  uint64_t traversal_words_;
  NumberLists known_lists_;  // of the root
  Field failed_field_;
  Malformed reason_ = Malformed::none;
};

/// A list of integers, floats or enums in a received body; also a Data, as its bytes.
template <class T>
class ListReader {
  static_assert(Scalar<T>, "a list holds integers, floats, enums, Bool, Void, Text, Data, lists or structs");

 public:
  ListReader() = default;
  /// An array as Data, for a builder's setter.
  GYRE_DEVICE ListReader(const T* elements, uint32_t size)
      : elements_(reinterpret_cast<const uint8_t*>(elements)), size_(size) {}

  /// Number of elements.
  GYRE_DEVICE uint32_t size() const { return size_; }
  /// Element i; T{} where there is none.
  GYRE_DEVICE T operator[](uint32_t i) const { return i < size_ ? unchecked(i) : T{}; }
  /// Element i, below size().
  GYRE_DEVICE T unchecked(uint32_t i) const { return load<T>(elements_ + uint64_t(i) * step_bytes_); }
  /// The elements as an array, 8-byte aligned, for wide loads. Null if the list is empty, or if its elements
  /// are larger than T (a later revision of the schema made structs of them).
  GYRE_DEVICE const T* data() const {
    return size_ != 0 && step_bytes_ == sizeof(T) ? reinterpret_cast<const T*>(elements_) : nullptr;
  }

 private:
  friend class Message;
  template <class U>
  friend GYRE_DEVICE typename U::Reader empty(Message* message);
  friend class StructReader;
  GYRE_DEVICE ListReader(const uint8_t* elements, uint32_t size, uint32_t step_bytes)
      : elements_(elements), size_(size), step_bytes_(step_bytes) {}

  const uint8_t* elements_ = nullptr;
  uint32_t size_ = 0;
  uint32_t step_bytes_ = sizeof(T);
};

template <>
class ListReader<bool> {
 public:
  ListReader() = default;
  GYRE_DEVICE uint32_t size() const { return size_; }
  /// Element i; false where there is none.
  GYRE_DEVICE bool operator[](uint32_t i) const { return i < size_ && (bits_[i / 8] >> (i % 8) & 1) != 0; }
  /// The elements, eight a byte, the first in the lowest bit; 8-byte aligned. Null if the list is empty.
  GYRE_DEVICE const uint8_t* data() const { return size_ != 0 ? bits_ : nullptr; }

 private:
  friend class Message;
  GYRE_DEVICE ListReader(const uint8_t* bits, uint32_t size) : bits_(bits), size_(size) {}

  const uint8_t* bits_ = nullptr;
  uint32_t size_ = 0;
};

template <>
class ListReader<Void> {
 public:
  ListReader() = default;
  GYRE_DEVICE uint32_t size() const { return size_; }

 private:
  friend class Message;
  GYRE_DEVICE explicit ListReader(uint32_t size) : size_(size) {}

  uint32_t size_ = 0;
};

/// Text in a received body: bytes, by convention UTF-8 (not checked), with a 0 behind the last.
class TextReader {
 public:
  TextReader() = default;
  /// A literal as Text, for a builder's setter.
  template <size_t n>
  GYRE_DEVICE TextReader(const char (&literal)[n]) : bytes_(literal), size_(n - 1) {}

  /// Bytes, without the 0 at the end.
  GYRE_DEVICE uint32_t size() const { return size_; }
  /// Byte i; 0 where there is none.
  GYRE_DEVICE char operator[](uint32_t i) const { return i < size_ ? bytes_[i] : '\0'; }
  /// size() bytes, and a 0 behind them if size() is not 0; null if there is no text.
  GYRE_DEVICE const char* data() const { return bytes_; }
  /// Returns true if the text equals the literal.
  template <size_t n>
  GYRE_DEVICE bool operator==(const char (&literal)[n]) const {
    if (size_ != n - 1) return false;
    for (uint32_t i = 0; i < n - 1; ++i) {
      if (bytes_[i] != literal[i]) return false;
    }
    return true;
  }

 private:
  friend class Message;
  GYRE_DEVICE TextReader(const uint8_t* bytes, uint32_t size)
      : bytes_(reinterpret_cast<const char*>(bytes)), size_(size) {}

  const char* bytes_ = nullptr;
  uint32_t size_ = 0;
};

/// A list of Text, Data or lists. Each element is a pointer, followed when it is asked for.
template <Blob T>
class ListReader<T> {
 public:
  ListReader() = default;
  GYRE_DEVICE uint32_t size() const { return size_; }
  /// Element i; empty where there is none.
  GYRE_DEVICE typename T::Reader operator[](uint32_t i) const {
    if (i >= size_) return empty<T>(message_);
    const uint8_t* const at = pointers_ + uint64_t(i) * step_bytes_;
    return message_->template read<T>(Message::Slot{at, load<uint64_t>(at), depth_, trusted_, field_});
  }

 private:
  friend class Message;
  template <class U>
  friend GYRE_DEVICE typename U::Reader empty(Message* message);
  GYRE_DEVICE ListReader(Message* message, const uint8_t* pointers, uint32_t size, uint32_t step_bytes,
                         uint32_t depth, bool trusted, Field field)
      : message_(message),
        pointers_(pointers),
        size_(size),
        step_bytes_(step_bytes),
        depth_(depth),
        trusted_(trusted),
        field_(field) {}

  Message* message_ = nullptr;
  const uint8_t* pointers_ = nullptr;
  uint32_t size_ = 0;
  uint32_t step_bytes_ = 0;
  uint32_t depth_ = 0;
  bool trusted_ = false;
  Field field_;
};

/// A list of structs.
template <Struct T>
class ListReader<T> {
 public:
  ListReader() = default;
  GYRE_DEVICE uint32_t size() const { return size_; }
  /// Element i; an empty struct, all defaults, where there is none.
  GYRE_DEVICE typename T::Reader operator[](uint32_t i) const {
    if (i >= size_) return typename T::Reader(StructReader(message_, elements_, 0, 0, 0, false));
    return typename T::Reader(StructReader(message_, elements_ + uint64_t(i) * step_bytes_, data_bytes_,
                                           pointers_, depth_ - 1, trusted_));
  }

 private:
  friend class Message;
  template <class U>
  friend GYRE_DEVICE typename U::Reader empty(Message* message);
  GYRE_DEVICE ListReader(Message* message, const uint8_t* elements, uint32_t size, uint32_t step_bytes,
                         uint32_t data_bytes, uint32_t pointers, uint32_t depth, bool trusted)
      : message_(message),
        elements_(elements),
        size_(size),
        step_bytes_(step_bytes),
        data_bytes_(data_bytes),
        pointers_(uint16_t(pointers)),
        depth_(uint8_t(depth)),
        trusted_(trusted) {}

  Message* message_ = nullptr;
  const uint8_t* elements_ = nullptr;
  uint32_t size_ = 0;
  uint32_t step_bytes_ = 0;
  uint32_t data_bytes_ = 0;
  uint16_t pointers_ = 0;
  uint8_t depth_ = 0;
  bool trusted_ = false;
};

template <class T>
GYRE_DEVICE inline typename T::Reader empty(Message* message) {
  if constexpr (Struct<T>) {
    return typename T::Reader(Message::empty_struct(message));
  } else if constexpr (is_list<T>) {
    if constexpr (Struct<typename T::Element>) {
      return {message, nullptr, 0, 0, 0, 0, 0, false};
    } else if constexpr (Blob<typename T::Element>) {
      return {message, nullptr, 0, 0, 0, false, {}};
    } else if constexpr (Scalar<typename T::Element>) {
      return {message != nullptr ? message->body_ : nullptr, 0, 0};
    } else {
      return {};
    }
  } else {
    return {};
  }
}

template <class T>
GYRE_DEVICE inline typename T::Reader Message::read(const Slot& slot) {
  if constexpr (is_same<T, Text>) {
    const Bytes bytes = read_bytes(slot);
    if (bytes.begin == nullptr) return {};
    if (!is(slot, bytes.size != 0 && bytes.begin[bytes.size - 1] == 0, Malformed::bad_text)) return {};
    return {bytes.begin, bytes.size - 1};
  } else if constexpr (is_same<T, Data>) {
    const Bytes bytes = read_bytes(slot);
    if (bytes.begin == nullptr) return {};
    return {bytes.begin, bytes.size, 1};
  } else if constexpr (is_list<T>) {
    using Element = typename T::Element;
    const Elements list = read_list(slot);
    const uint8_t* const begin = elements(slot, list);
    const uint32_t depth = slot.depth == 0 ? 0 : slot.depth - 1;
    if constexpr (Scalar<Element>) {
      if (!list.valid || !is(slot, list.data_bytes >= sizeof(Element), Malformed::wrong_elements))
        return empty<T>(this);
      return {begin, list.size, list.step_bytes};
    } else if constexpr (is_bool<Element>) {
      // Larger numbers are taken for bits side by side too, as the official library does.
      const bool bits = list.element_size == ElementSize::bit;
      const bool numbers = list.element_size != ElementSize::composite && list.data_bytes != 0;
      if (!list.valid || !is(slot, bits || numbers, Malformed::wrong_elements)) return {};
      return {begin, list.size};
    } else if constexpr (is_same<Element, Void>) {
      const bool bits = list.element_size == ElementSize::bit;  // refused by the official library too
      if (!list.valid || !is(slot, !bits, Malformed::wrong_elements)) return {};
      return typename T::Reader(list.size);
    } else if constexpr (Blob<Element>) {
      if (!list.valid || !is(slot, list.pointers != 0, Malformed::wrong_elements)) return empty<T>(this);
      return {this, begin + list.data_bytes, list.size, list.step_bytes, depth, slot.trusted, slot.field};
    } else {
      const bool fits = list.valid &&
                        is(slot, list.element_size != ElementSize::bit, Malformed::wrong_elements) &&
                        is(slot, depth != 0 || list.size == 0, Malformed::too_deep);
      return {this,          begin, fits ? list.size : 0, list.step_bytes, list.data_bytes,
              list.pointers, depth, slot.trusted};
    }
  } else {
    return typename T::Reader(read_struct(slot));
  }
}

template <class T>
GYRE_DEVICE inline typename T::Reader StructReader::get(uint32_t index, Field field,
                                                        const uint64_t* default_body) const {
  if constexpr (Struct<T>) {
    // One return, for the reason that read_struct has: a reader that is of a message at all is of one.
    if (default_body == nullptr && message_ != nullptr) {
      const bool there = index < pointers_;
      const Message::Slot slot{there ? pointer(index) : message_->body_, there ? pointer_word(index) : 0,
                               depth_, trusted_, field};
      return message_->template read<T>(slot);
    }
  }
  if (index < pointers_) {
    const Message::Slot slot{pointer(index), pointer_word(index), depth_, trusted_, field};
    if constexpr (is_list<T>) {
      using Element = typename T::Element;
      if constexpr (Scalar<Element>) {
        const bool of_root = depth_ == Message::root_depth && !trusted_;
        if (of_root && message_->known_lists_.of(index) == Pointer::element_size(sizeof(Element))) {
          const Pointer known{slot.word};
          return {slot.at + 8 + uint64_t(known.offset_ahead()) * 8, known.list_size(),
                  uint32_t(sizeof(Element))};
        }
        const auto list = message_->template plain_list<Element>(slot);
        if (list.valid) return {list.begin, list.size, uint32_t(sizeof(Element))};
      }
    }
    if (slot.word != 0) return message_->read<T>(slot);
  }
  if (default_body == nullptr) return empty<T>(message_);
  return message_->read<T>(Message::Slot{reinterpret_cast<const uint8_t*>(default_body), default_body[0],
                                         Message::max_depth, true, field});
}

GYRE_DEVICE inline const uint8_t* StructReader::pointer(uint32_t index) const {
  return (copied_root_ ? message_->body_ + 8 : data_) + data_bytes_ + uint64_t(index) * 8;
}

}  // namespace gyre::wire
