// Messages of one size to one handler that resemble each other, but for where their lists lie: each is
// answered by what it says itself, alone and in streams.
#include <gyre/device/builtin/echo.hpp>
#include <gyre/gyre.hpp>
#include <gyre/messages/echo.official.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <deque>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/echo_forms.hpp"
#include "support/engine_under_test.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

void expect_answer(const EchoForm& form, uint64_t number, const Result<Reply<capnp::AnyPointer>>& outcome) {
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
      std::deque<std::pair<EchoForm, Future<Reply<capnp::AnyPointer>>>> asked;
      uint64_t first = number;
      for (int message = 0; message < 3000; ++message) {
        EchoForm form = any_echo_form(random, number++);
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
