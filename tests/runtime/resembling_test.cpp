// Messages of one size to one handler that resemble each other, but for where their lists lie: each is
// answered by what it says itself, alone and in streams.
#include <gyre/device/actors/echo.hpp>
#include <gyre/gyre.hpp>
#include <gyre/messages/echo.official.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/engine_under_test.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

using Words = std::vector<uint64_t>;

constexpr uint64_t list_of(uint32_t element_size, int32_t offset, uint64_t size) {
  return size << 35 | uint64_t(element_size) << 32 | (uint32_t(offset) << 2 | 1);
}

struct Form {
  Words body;
  std::optional<Words> payload;  // none: it is malformed
};

// An EchoRequest of 8 words, of which `number` is the sequence, in one of several forms.
Form any_form(std::mt19937_64& random, uint64_t number) {
  constexpr uint64_t root = uint64_t(1) << 48 | uint64_t(1) << 32;
  const uint64_t a = random(), b = random(), c = random(), d = random(), e = random();
  Form form{{root, number, 0, a, b, c, d, e}, Words{}};
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

void expect_answer(const Form& form, uint64_t number, const Result<Reply<capnp::AnyPointer>>& outcome) {
  INFO("message " << number << ", list pointer " << form.body[2]);
  if (!form.payload) {
    REQUIRE_FALSE(outcome);
    REQUIRE(outcome.error().status == Status::malformed);
    return;
  }
  REQUIRE(outcome);
  const auto response = (*outcome.value()).getAs<messages::EchoResponse>();
  REQUIRE(response.getSequence() == number);
  REQUIRE(response.getPayload().size() == form.payload->size());
  for (uint32_t i = 0; i < form.payload->size(); ++i) REQUIRE(response.getPayload()[i] == (*form.payload)[i]);
}

}  // namespace

TEST_CASE("messages alike but for where their lists lie are each answered by what they say",
          "[gpu][unified]") {
  std::mt19937_64 random(51);
  for (const uint32_t block : {32u, 64u}) {
    Runtime runtime = Runtime::launch(builtin_actors(), on_this_engine({.block = block}));
    Client client = runtime.client();
    uint64_t number = 0;
    for (const size_t in_flight : {1u, 3u, 200u}) {
      std::deque<std::pair<Form, Future<Reply<capnp::AnyPointer>>>> asked;
      uint64_t first = number;
      for (int message = 0; message < 3000; ++message) {
        Form form = any_form(random, number++);
        auto future =
            client.ask_by_number(0, 0, 9, Encoded{std::as_bytes(std::span(form.body)), Encoding::body});
        asked.emplace_back(std::move(form), std::move(future));
        if (asked.size() < in_flight) continue;
        expect_answer(asked.front().first, first++, asked.front().second.get());
        asked.pop_front();
      }
      for (auto& [form, future] : asked) expect_answer(form, first++, future.get());
    }
    const Books books = runtime.terminate().books;
    CHECK(books.asks.accepted == 9000);
    CHECK(books.balanced());
  }
}
