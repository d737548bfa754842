// Lists worked on by the group, here of one thread: lists aligned alike and not, shorter ones, and ones whose
// elements a later revision made larger; and an actor's own traversal budget.
#include <gyre/device/actor/dispatch.hpp>
#include <gyre/device/context.hpp>
#include <gyre/device/parallel.hpp>

#include <optional>
#include <vector>

#include "support/catch.hpp"
#include "tests/messages/kinds.view.hpp"

namespace {

using namespace gyre;
namespace wire = gyre::wire;

WorkerShared worker_shared_memory{};

// A list of `size` uint32_t, 1, 2, …, whose first element lies `offset_words` words behind a 16-aligned
// address.
struct Numbers {
  Numbers(uint32_t size, uint32_t offset_words) : words(4 + offset_words + (size + 1) / 2) {
    wire::Body body(words.data(), uint32_t(words.size() * 8));
    const auto root = body.init_root(offset_words, 1);
    list = root.init<wire::List<uint32_t>>(0, size);
    for (uint32_t i = 0; i < size; ++i) list.set(i, i + 1);
  }
  wire::ListReader<uint32_t> read() {
    message.emplace(words.data(), uint32_t(words.size() * 8));
    return message->root().get<wire::List<uint32_t>>(0, {});
  }
  std::vector<uint64_t> words;
  wire::ListBuilder<uint32_t> list;
  std::optional<wire::Message> message;
};

// Reads one row of a request over and over: as many words as its budget is asked to bear.
template <uint64_t budget>
struct Rereads {
  static constexpr uint64_t traversal_words = budget;
  void on(Context&, gyre::test::view::Kinds::Reader in, gyre::test::view::Kinds::Builder) {
    const auto rows = in.getRows();
    for (uint32_t i = 0; i < 10; ++i) read += rows[0].size();
  }
  uint32_t read = 0;
};

template <uint64_t budget>
Handled handle_with_budget() {
  alignas(16) uint64_t request[256] = {}, response[256] = {};
  wire::Body body(request, sizeof request);
  using Kinds = gyre::test::view::Kinds;
  Kinds::Builder(body.init_root(Kinds::data_words, Kinds::pointers))
      .initRows(1)
      .init(0, 8);  // a row of 4 words
  Rereads<budget> actor;
  Context context(0, true, worker_shared_memory);
  return handle<Rereads<budget>, Kinds>(actor, context, request, body.used_bytes(), response,
                                        sizeof response);
}

}  // namespace

TEST_CASE("transform and copy set every element, however the lists lie") {
  const Context ctx(0, true, worker_shared_memory);
  for (const uint32_t size : {0u, 1u, 3u, 4u, 5u, 15u, 16u, 17u, 31u, 64u, 101u}) {
    for (uint32_t offsets = 0; offsets < 8; ++offsets) {
      Numbers a(size, offsets & 1), b(size, offsets >> 1 & 1), out(size, offsets >> 2);
      transform(
          ctx, out.list, [](uint32_t x, uint32_t y) { return 1000 * x + y; }, a.read(), b.read());
      const auto result = out.read();
      REQUIRE(result.size() == size);
      for (uint32_t i = 0; i < size; ++i) CHECK(result[i] == 1001 * (i + 1));
      Numbers copied(size, offsets & 1);
      copy(ctx, result, copied.list);
      for (uint32_t i = 0; i < size; ++i) CHECK(copied.read()[i] == 1001 * (i + 1));
    }
  }
}

TEST_CASE(
    "beyond the end of a shorter list transform gets zeros, and a longer one is not read past the result") {
  const Context ctx(0, true, worker_shared_memory);
  Numbers shorter(5, 0), longer(20, 0), out(12, 0);
  transform(
      ctx, out.list, [](uint32_t x, uint32_t y) { return 100 * x + y; }, shorter.read(), longer.read());
  for (uint32_t i = 0; i < 12; ++i) CHECK(out.read()[i] == (i < 5 ? 100 * (i + 1) : 0) + i + 1);
}

TEST_CASE("of a list that is taken for short each thread sets its element, and no other") {
  const Context ctx(0, true, worker_shared_memory);
  for (const uint32_t size : {0u, 1u, 3u}) {
    Numbers in(2, 0), out(size, 0);
    Numbers before(size, 0);
    transform_short(
        ctx, out.list, [](uint32_t x) { return 100 * x; }, in.read());
    for (uint32_t i = 0; i < size; ++i) CHECK(out.read()[i] == (i == 0 ? 100 : before.read()[i]));
  }
}

TEST_CASE("what a function gives that is wider than the list's elements is stored as one of them") {
  const Context ctx(0, true, worker_shared_memory);
  alignas(8) uint64_t request[8] = {}, response[8] = {};
  wire::Body in(request, sizeof request), out(response, sizeof response);
  const auto from = in.init_root(0, 1).init<wire::List<int16_t>>(0, 1);
  from.set(0, -2);
  const auto results = out.init_root(0, 2);
  const auto narrow = results.init<wire::List<int16_t>>(0, 1);
  const auto floats = results.init<wire::List<float>>(1, 1);
  wire::Message message(request, in.used_bytes());
  const auto list = message.root().get<wire::List<int16_t>>(0, {});
  transform(
      ctx, narrow, [](int16_t x) { return x * 70'000; }, list);
  transform(
      ctx, floats, [](int16_t x) { return x * 0.25; }, list);
  CHECK(narrow.data()[0] == int16_t(-2 * 70'000));
  CHECK(floats.data()[0] == -0.5f);
  for (uint32_t i = 2; i < 8; ++i) CHECK(reinterpret_cast<const uint8_t*>(narrow.data())[i] == 0);
  for (uint32_t i = 4; i < 8; ++i) CHECK(reinterpret_cast<const uint8_t*>(floats.data())[i] == 0);
}

TEST_CASE("transform calls its function once for each element, and for no others") {
  const Context ctx(0, true, worker_shared_memory);
  for (const uint32_t size : {0u, 1u, 2u, 101u}) {
    Numbers in(size, 0), out(size, 0);
    uint32_t calls = 0, sum = 0;
    transform(
        ctx, out.list,
        [&](uint32_t x) {
          ++calls;
          return sum += x;
        },
        in.read());
    CHECK(calls == size);
    CHECK(sum == size * (size + 1) / 2);
  }
}

TEST_CASE("for_each visits each element once, with its index") {
  const Context ctx(0, true, worker_shared_memory);
  for (const uint32_t size : {0u, 1u, 9u, 15u, 16u, 17u, 33u, 100u}) {
    for (const uint32_t offset : {0u, 1u}) {
      Numbers numbers(size, offset);
      std::vector<uint32_t> seen(size);
      for_each(ctx, numbers.read(), [&](uint32_t i, uint32_t value) { seen[i] += value; });
      for (uint32_t i = 0; i < size; ++i) CHECK(seen[i] == i + 1);
    }
  }
}

TEST_CASE("an actor's own traversal_words bounds what it may read, in place of the default") {
  CHECK(handle_with_budget<40>().status == Status::ok);
  const Handled refused = handle_with_budget<39>();
  CHECK(refused.status == Status::malformed);
  CHECK(MalformedField{refused.where}.reason() == uint8_t(wire::Malformed::traversal));
}

TEST_CASE("transform of buffers sets every element as far as the shortest goes, and none behind it") {
  const Context ctx(0, true, worker_shared_memory);
  for (const uint32_t size : {0u, 1u, 3u, 4u, 5u, 16u, 17u, 63u, 100u}) {
    std::vector<Packet> memory_a(32), memory_b(32), memory_out(32);  // 16-aligned
    auto* const a = reinterpret_cast<float*>(memory_a.data());
    auto* const b = reinterpret_cast<float*>(memory_b.data());
    auto* const out = reinterpret_cast<float*>(memory_out.data());
    for (uint32_t i = 0; i < 128; ++i) {
      a[i] = float(i);
      b[i] = float(1000 * i);
      out[i] = -1;
    }
    transform(
        ctx, BufferSpan<float>(out, 120), [](float x, float y) { return x + y; }, BufferSpan<float>(a, size),
        BufferSpan<float>(b, 110));
    for (uint32_t i = 0; i < 128; ++i) CHECK(out[i] == (i < size ? float(1001 * i) : -1.0f));
  }
}
