// EchoRequests of one size that resemble each other, but for where their lists lie.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace gyre_test {

using Words = std::vector<uint64_t>;

constexpr uint64_t list_of(uint32_t element_size, int32_t offset, uint64_t size) {
  return size << 35 | uint64_t(element_size) << 32 | (uint32_t(offset) << 2 | 1);
}

/// A request's body, and what it is answered with.
struct EchoForm {
  Words body;
  std::optional<Words> payload;  // none: it is malformed
};

/// An EchoRequest of 8 words, of which `number` is the sequence, in one of several forms.
inline EchoForm any_echo_form(std::mt19937_64& random, uint64_t number) {
  constexpr uint64_t root = uint64_t(1) << 48 | uint64_t(1) << 32;
  const uint64_t a = random(), b = random(), c = random(), d = random(), e = random();
  EchoForm form{{root, number, 0, a, b, c, d, e}, Words{}};
  const auto with = [&](uint64_t pointer, std::optional<Words> payload) {
    form.body[2] = pointer;
    form.payload = std::move(payload);
    return form;
  };
  switch (random() % 16) {
    case 0:
      return with(list_of(5, 1, 4), Words{b, c, d, e});
    case 1:
      return with(list_of(5, 0, 3), Words{a, b, c});
    case 2:
      return with(0, Words{});
    case 3:
      return with(list_of(5, 5, 0), Words{});
    case 4:
      return with(list_of(5, -2, 1), Words{number});
    case 5:
      return with(list_of(5, 0, 6), std::nullopt);
    case 6:
      return with(list_of(5, 1 << 20, 1), std::nullopt);
    case 7:
      return with(list_of(4, 0, 5), std::nullopt);
    case 8:
      return with(uint64_t(1) << 32, std::nullopt);  // a struct
    case 9:  // a list of structs of two words, whose first fields they are
      form.body[3] = uint64_t(2) << 32 | 2 << 2;
      return with(list_of(7, 0, 4), Words{b, d});
    case 10:
      form.body[0] = uint64_t(1) << 48 | uint64_t(1) << 32 | 1 << 2;  // the root a word further on
      form.body = {form.body[0], a, number, list_of(5, 0, 4), b, c, d, e};
      form.payload = Words{b, c, d, e};
      return form;
    default:
      return with(list_of(5, 0, 5), Words{a, b, c, d, e});
  }
}

}  // namespace gyre_test
