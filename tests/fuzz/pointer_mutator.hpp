// Changes a message body as its structure suggests: pointers lead elsewhere, to something else, to more of
// it.
#pragma once

#include <gyre/messages/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace gyre_fuzz {

/// Changes `size` bytes at `data`, of which there may be `max_size`: whole words and a tail, whose length
/// says how the words are read.
class PointerMutator {
 public:
  PointerMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed)
      : data_(data), words_(size / 8), tail_(size % 8), size_(size), max_size_(max_size), random_(seed) {}

  /// The new size.
  size_t mutate() {
    if (words_ == 0 || chance(4)) return LLVMFuzzerMutate(data_, size_, max_size_);
    for (uint64_t change = 0, changes = 1 + below(3); change < changes && words_ != 0; ++change) change_one();
    return words_ * 8 + tail_;
  }

 private:
  using Pointer = gyre::wire::Pointer;
  using ElementSize = gyre::wire::ElementSize;

  uint64_t below(uint64_t end) { return random_() % end; }
  bool chance(uint64_t of) { return below(of) == 0; }
  Pointer at(size_t place) const { return {gyre::wire::load<uint64_t>(data_ + place * 8)}; }
  void put(size_t place, uint64_t word) { gyre::wire::store(data_ + place * 8, word); }

  int64_t target_of(size_t place) const { return int64_t(place) + 1 + at(place).offset(); }
  bool may_be_pointer(size_t place) const {
    const int64_t target = target_of(place);
    return !at(place).is_null() && at(place).kind() <= 1 && target >= 0 && target <= int64_t(words_);
  }
  size_t some_pointer() {
    for (int attempt = 0; attempt < 16; ++attempt) {
      const size_t place = below(words_);
      if (may_be_pointer(place)) return place;
    }
    return below(words_);
  }
  uint64_t with_offset(uint64_t word, int64_t offset) {
    return (word & ~uint64_t(0xfffffffc)) | uint32_t(uint32_t(offset) << 2);
  }
  // Of a list, a struct, or a tag.
  uint64_t some_size(uint64_t size, uint64_t most) {
    switch (below(8)) {
      case 0:
        return size + 1;
      case 1:
        return size - 1;
      case 2:
        return size * 2;
      case 3:
        return 0;
      case 4:
        return most;
      case 5:
        return words_;
      case 6:
        return below(words_ * 64);
      default:
        return below(6);
    }
  }

  void change_one() {
    const size_t place = chance(4) ? below(words_) : some_pointer();
    const uint64_t word = at(place).word;
    switch (below(16)) {
      case 0:
        return put(place, with_offset(word, at(place).offset() + int64_t(below(5)) - 2));
      case 1:
        return put(place, with_offset(word, int64_t(below(words_ + 1)) - int64_t(place) - 1));
      case 2: {  // to what another leads to, as that does or in its own way
        const size_t other = some_pointer();
        const uint64_t kind = chance(2) ? at(other).word : word;
        return put(place, with_offset(kind, target_of(other) - int64_t(place) - 1));
      }
      case 3:
        return put(place, (word & ~uint64_t(3)) | below(4));
      case 4:
        return put(place, (word & ~(uint64_t(7) << 32)) | below(8) << 32);
      case 5:
      case 6:
        return change_size(place);
      case 7:
        return put(place, 0);
      case 8:
        return change_tag(place);
      case 9:  // a far pointer into the only segment, or to another
        return put(place, 2 | below(2) << 2 | below(words_) << 3 | (chance(4) ? below(3) << 32 : 0));
      case 10:
        return put(place, chance(2) ? below(2) - 1 : random_());
      case 11:
        return append();
      case 12:
        words_ -= below(words_ < 4 ? words_ : 4);
        return;
      case 13:
        tail_ = below(6);
        if (words_ * 8 + tail_ > max_size_) tail_ = 0;
        return;
      case 14:
        return relist(place);
      default:
        return put(place, at(below(words_)).word);
    }
  }

  void change_size(size_t place) {
    const Pointer pointer = at(place);
    if (pointer.kind() == Pointer::list_kind) {
      const uint64_t size = some_size(pointer.list_size(), Pointer::max_list_size) & Pointer::max_list_size;
      return put(place, (pointer.word & ((uint64_t(1) << 35) - 1)) | size << 35);
    }
    const unsigned section = chance(2) ? 32 : 48;
    const uint64_t size = some_size(pointer.word >> section & 0xffff, 0xffff) & 0xffff;
    put(place, (pointer.word & ~(uint64_t(0xffff) << section)) | size << section);
  }

  void change_tag(size_t place) {
    const int64_t target = target_of(place);
    if (at(place).list_element_size() != ElementSize::composite || target < 0 || target >= int64_t(words_))
      return;
    if (chance(2)) return change_size(size_t(target));
    const uint64_t tag = at(size_t(target)).word;
    put(size_t(target), with_offset(tag, int64_t(some_size(uint32_t(tag) >> 2, Pointer::max_list_size))));
  }

  // The words behind a pointer as a list of other elements, of as many as they have room for.
  void relist(size_t place) {
    const int64_t target = target_of(place);
    if (target < 0 || target >= int64_t(words_)) return;
    const uint64_t words = below(words_ - uint64_t(target) + 1);
    const auto element_size = ElementSize(below(8));
    constexpr uint64_t bits[] = {0, 1, 8, 16, 32, 64, 64};
    uint64_t size = words;
    if (element_size != ElementSize::composite) {
      const uint64_t each = bits[uint32_t(element_size)];
      size = each == 0 ? below(100) : words * 64 / each;
    } else if (words != 0) {
      size = words - 1;
      const uint64_t data_words = below(4), pointers = below(4), each = data_words + pointers;
      const uint64_t count = each == 0 ? below(100) : size / each;
      put(size_t(target), Pointer::to_struct(int64_t(count), uint32_t(data_words), uint32_t(pointers)).word);
    }
    put(place, Pointer::to_list(target - int64_t(place) - 1, element_size, uint32_t(size)).word);
  }

  void append() {
    for (uint64_t i = 0, count = 1 + below(4); i < count && (words_ + 1) * 8 + tail_ <= max_size_; ++i) {
      ++words_;
      put(words_ - 1, chance(2) ? 0 : at(below(words_)).word);
    }
    std::memset(data_ + words_ * 8, 0, tail_);
  }

  uint8_t* data_;
  size_t words_;
  size_t tail_;
  size_t size_;
  size_t max_size_;
  std::minstd_rand random_;
};

}  // namespace gyre_fuzz
