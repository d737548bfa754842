// Buffers on either engine.
#include <capnp/message.h>
#include <fmt/format.h>
#include <gyre/runtime/builtin_actors.hpp>

#include <atomic>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "support/abacus.hpp"
#include "support/catch.hpp"
#include "support/engine_under_test.hpp"
#include "support/skip.hpp"

using namespace gyre;
using namespace gyre_test;
using messages::VectorAddRequest;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool sanitized = false;
#endif

constexpr MemoryKind kinds[] = {MemoryKind::device, MemoryKind::pinned, MemoryKind::unified};

Runtime launch(Options options = {}) { return Runtime::launch(abacus_actors(), on_this_engine(options)); }

// 1, 2, … from `first` on.
std::vector<uint64_t> count_from(uint64_t first, size_t size) {
  std::vector<uint64_t> numbers(size);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}
uint64_t sum_of(const std::vector<uint64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), uint64_t(0));
}
template <class T>
std::vector<T> contents(const Buffer<T>& buffer) {
  std::vector<T> all(buffer.size());
  buffer.read(all);
  return all;
}

template <class Fill>
Failure outcome(const Client& client, Fill&& fill) {
  Client sender = client;
  const auto reply = sender.ask<Add>(abacus, fill).get();
  return reply ? Failure{} : reply.error();
}

bool says(const Failure& failure, const std::string& text) {
  UNSCOPED_INFO(failure.message());
  return failure.message().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("what the host writes the handler finds, and what it makes of it the host reads, in every kind",
          "[gpu]") {
  Runtime runtime = launch({.block = 64});
  Client client = runtime.client();
  for (const MemoryKind kind : kinds) {
    if (!runtime.refusal(kind).empty()) {
      WARN("no " << name(kind) << " memory: " << runtime.refusal(kind));
      continue;
    }
    for (const size_t size : {1u, 100u, 300'000u}) {
      INFO(name(kind) << ", " << size << " elements");
      auto buffer = runtime.allocate<uint64_t>(kind, size);
      CHECK(buffer.kind() == kind);
      REQUIRE(buffer.size() == size);
      CHECK(contents(buffer) == std::vector<uint64_t>(size, 0));
      for (uint64_t round = 0; round < 3; ++round) {
        const auto numbers = count_from(1000 * round, size);
        buffer.write(numbers);
        const auto reply = client.ask<Add>(abacus, adding(buffer, 7, size)).get();
        REQUIRE(reply);
        CHECK(reply.value()->getSize() == size);
        CHECK(reply.value()->getSum() == sum_of(numbers) + 7 * size);
        REQUIRE(contents(buffer) == count_from(1000 * round + 7, size));
      }
    }
  }
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("a kind of memory that there is not is refused with its number") {
  Runtime runtime = Runtime::launch(abacus_actors(), {.engine = EngineKind::cpu});
  std::string text = "it was allocated";
  try {
    (void)runtime.allocate<float>(MemoryKind(7), 1);
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK(text == "allocating a buffer of memory kind 7: must be device, pinned or unified (0 to 2)");
}

TEST_CASE("parts of a buffer are written and read by offset, and nothing past its end", "[gpu]") {
  Runtime runtime = launch();
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned}) {
    auto buffer = runtime.allocate<uint16_t>(kind, 10);
    const std::vector<uint16_t> three{7, 8, 9};
    buffer.write(three, 7);
    std::vector<uint16_t> four(4);
    buffer.read(four, 6);
    CHECK(four == std::vector<uint16_t>{0, 7, 8, 9});
    CHECK_THROWS_WITH(buffer.write(three, 8), containing("6 bytes from byte 16 on, and it has 20"));
    CHECK_THROWS_AS(buffer.read(four, ~uint64_t(0) / 2), Error);
    CHECK(contents(buffer) == std::vector<uint16_t>{0, 0, 0, 0, 0, 0, 0, 7, 8, 9});
    buffer.write({}, 10);
  }
}

TEST_CASE("copies that go on by themselves are made in their order, in every kind", "[gpu]") {
  Runtime runtime = launch();
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned}) {
    auto buffer = runtime.allocate<uint64_t>(kind, 100'000);
    const auto first = count_from(1, buffer.size()), second = count_from(7, 50'000);
    std::vector<uint64_t> before(buffer.size()), after(buffer.size());
    Future<void> copies[] = {buffer.write_async(first), buffer.read_async(before),
                             buffer.write_async(second, 50'000), buffer.read_async(after)};
    for (Future<void>& copy : copies) CHECK(copy.get());
    auto expected = first;
    CHECK(before == expected);
    std::copy(second.begin(), second.end(), expected.begin() + 50'000);
    CHECK(after == expected);
    CHECK(contents(buffer) == expected);
  }
}

TEST_CASE("a pinned buffer is used in place from both sides", "[gpu]") {
  Runtime runtime = launch();
  Client client = runtime.client();
  auto buffer = runtime.allocate<uint64_t>(MemoryKind::pinned, 50);
  for (uint64_t round = 0; round < 100; ++round) {
    for (uint64_t& number : buffer.host()) number = round;
    const auto reply = client.ask<Add>(abacus, adding(buffer, 5)).get();
    REQUIRE(reply);
    CHECK(reply.value()->getSum() == 50 * (round + 5));
    for (const uint64_t number : buffer.host()) REQUIRE(number == round + 5);
  }
  CHECK_THROWS_WITH(runtime.allocate<uint64_t>(MemoryKind::device, 1).host(),
                    containing("a device buffer in place: host() is for pinned ones"));
  CHECK_THROWS_WITH(buffer.view(std::chrono::seconds(1)), containing("view() is for unified ones"));
}

TEST_CASE("the view of a unified buffer shows all tells that were sent before it", "[gpu]") {
  Runtime runtime = launch({.workers = 2});
  if (!runtime.refusal(MemoryKind::unified).empty()) {
    return gyre_test::skip(runtime.refusal(MemoryKind::unified));
  }
  Client client = runtime.client();
  auto buffer = runtime.allocate<uint64_t>(MemoryKind::unified, 20);
  for (uint64_t round = 1; round <= 20; ++round) {
    for (int i = 0; i < 10; ++i) REQUIRE(client.tell<Note>(Address<Abacus>{1}, noting(buffer, 3)));
    const auto view = buffer.view(std::chrono::seconds(10));
    REQUIRE(view);
    REQUIRE(view.value().size() == 20);
    for (const uint64_t number : view.value()) REQUIRE(number == 30 * round);
  }
  runtime.terminate();
  CHECK(buffer.view(std::chrono::seconds(0)));
}

TEST_CASE("a handle that is not good is answered by name with its numbers, and good ones between", "[gpu]") {
  Runtime runtime = launch({.block = 96});
  const Client client = runtime.client();
  auto buffer = runtime.allocate<uint64_t>(MemoryKind::device, 10);
  const auto floats = runtime.allocate<float>(MemoryKind::device, 10);
  auto freed = std::make_optional(runtime.allocate<uint64_t>(MemoryKind::device, 10));
  Runtime other = Runtime::launch(abacus_actors(), {.engine = EngineKind::cpu});
  const auto foreign = other.allocate<uint64_t>(MemoryKind::device, 10);

  capnp::MallocMessageBuilder message;
  auto stale = message.initRoot<messages::BufferHandle>();
  freed->set(stale);
  freed.reset();
  const auto with = [&](auto change) {
    return [&, change](Add::Builder add) {
      adding(buffer, 1)(add);
      change(add);
    };
  };
  uint64_t good = 0, bad = 0;
  const auto expect = [&](BufferFault fault, const std::string& text, auto&& fill) {
    const Failure failure = outcome(client, fill);
    ++bad;
    REQUIRE(failure.status == Status::bad_buffer);
    CHECK(BadHandle::fault_of(failure.detail) == fault);
    CHECK(says(failure, text));
    REQUIRE(outcome(client, adding(buffer, 1)).status == Status::ok);
    CHECK(contents(buffer) == std::vector<uint64_t>(10, ++good));
  };

  for (int round = 0; round < 5; ++round) {
    expect(BufferFault::stale,
           fmt::format("is stale: its buffer was freed (generation {}, now 0)", stale.getGeneration()),
           with([&](Add::Builder add) { add.setBuffer(stale); }));
    expect(BufferFault::foreign, "is of another runtime (tag ", adding(foreign, 1));
    expect(BufferFault::foreign, "never set", with([](Add::Builder add) { add.initBuffer(); }));
    expect(BufferFault::foreign, "never set", with([](Add::Builder add) { add.disownBuffer(); }));
    expect(BufferFault::no_such_index, "there may be 1024",
           with([](Add::Builder add) { add.getBuffer().setIndex(70'000); }));
    expect(BufferFault::wrong_type, "is of float32 elements, and the handler wants uint64",
           adding(floats, 1));
    expect(BufferFault::wrong_type, "is of int8 elements, and the handler wants uint64",
           with([](Add::Builder add) { add.getBuffer().setElement(messages::ElementType::INT8); }));
    expect(BufferFault::too_short, "is too short: 11 elements are wanted, and there are 10",
           adding(buffer, 1, 11));
    expect(BufferFault::too_short, "12 elements are wanted, and there are 10",
           with([](Add::Builder add) { add.getBuffer().setLength(12); }));
    expect(BufferFault::too_short, "6 elements are wanted, and there are 5", with([](Add::Builder add) {
             add.getBuffer().setLength(5);
             add.setAtLeast(6);
           }));
    expect(BufferFault::too_short, "274877906943 elements are wanted, and there are 10",
           with([](Add::Builder add) { add.getBuffer().setLength(~uint64_t(0)); }));
    // One thread of the group alone found out.
    expect(BufferFault::too_short, "11 elements are wanted, and there are 10",
           adding(buffer, 1, 11, Way::LAST_THREAD_ALONE));
  }
  const Books books = runtime.terminate().books;
  CHECK(books.asks.error_replies == bad);
  CHECK(books.asks.answered == good);
  CHECK(books.balanced());
}

TEST_CASE("a handle may name the first elements of a buffer only", "[gpu]") {
  Runtime runtime = launch();
  Client client = runtime.client();
  auto buffer = runtime.allocate<uint64_t>(MemoryKind::device, 6);
  const auto reply = client
                         .ask<Add>(abacus,
                                   [&](Add::Builder add) {
                                     adding(buffer, 2)(add);
                                     add.getBuffer().setLength(4);
                                   })
                         .get();
  REQUIRE(reply);
  CHECK(reply.value()->getSize() == 4);
  CHECK(contents(buffer) == std::vector<uint64_t>{2, 2, 2, 2, 0, 0});
}

TEST_CASE("a tell whose handle is not good is a dead letter with the reason", "[gpu]") {
  Runtime runtime = launch();
  Client client = runtime.client();
  auto buffer = std::make_optional(runtime.allocate<uint64_t>(MemoryKind::device, 4));
  capnp::MallocMessageBuilder message;
  auto stale = message.initRoot<messages::BufferHandle>();
  buffer->set(stale);
  buffer.reset();
  REQUIRE(client.tell<Note>(abacus, [&](Note::Builder note) { note.setBuffer(stale); }));
  REQUIRE(runtime.drain());
  const auto letters = runtime.take_dead_letters();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].reason == Status::bad_buffer);
  const BadHandle bad = BadHandle::of(letters[0].detail, letters[0].where);
  CHECK(bad.fault == BufferFault::stale);
  CHECK(bad.index == stale.getIndex());
  CHECK(bad.asked == stale.getGeneration());
  CHECK(bad.there == 0);
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("VectorAdd computes in buffers what it computes in lists, every operation", "[gpu]") {
  Runtime runtime = Runtime::launch(builtin_actors(), on_this_engine({.block = 128}));
  Client client = runtime.client();
  constexpr size_t size = 5000;
  auto a = runtime.allocate<float>(MemoryKind::device, size);
  auto b = runtime.allocate<float>(MemoryKind::pinned, size);
  auto result = runtime.allocate<float>(MemoryKind::device, size + 3);
  std::vector<float> x(size), y(size);
  for (size_t i = 0; i < size; ++i) x[i] = float(i) / 3, y[i] = float(i + 1) / 7;
  a.write(x);
  b.write(y);
  for (uint16_t operation = 0; operation < 4; ++operation) {
    const auto reply = client
                           .ask<VectorAddRequest>(Address<actors::VectorAdd>{},
                                                  [&](VectorAddRequest::Builder request) {
                                                    request.setOperation(messages::Operation(operation));
                                                    request.setLength(size);
                                                    a.set(request.initABuffer());
                                                    b.set(request.initBBuffer());
                                                    result.set(request.initResultBuffer());
                                                  })
                           .get();
    REQUIRE(reply);
    CHECK(reply.value()->getSuccess());
    CHECK(reply.value()->getProcessed() == size);
    CHECK(reply.value()->getResult().size() == 0);
    const auto got = contents(result);
    for (size_t i = 0; i < size; ++i) {
      const float expected = operation == 0   ? x[i] + y[i]
                             : operation == 1 ? x[i] - y[i]
                             : operation == 2 ? x[i] * y[i]
                                              : x[i] / y[i];
      REQUIRE(got[i] == expected);
    }
    for (size_t i = size; i < size + 3; ++i) REQUIRE(got[i] == 0);
  }
}

TEST_CASE("VectorAdd refuses a request of buffers that has a list pointing out of it, and answers the next",
          "[gpu]") {
  Runtime runtime = Runtime::launch(builtin_actors(), on_this_engine());
  Client client = runtime.client();
  constexpr size_t size = 20;
  auto a = runtime.allocate<float>(MemoryKind::device, size);
  auto result = runtime.allocate<float>(MemoryKind::device, size);
  a.write(std::vector<float>(size, 2));
  capnp::MallocMessageBuilder message;
  auto request = message.initRoot<VectorAddRequest>();
  request.setLength(size);
  a.set(request.initABuffer());
  a.set(request.initBBuffer());
  result.set(request.initResultBuffer());
  const auto segment = message.getSegmentsForOutput()[0];
  std::vector<uint64_t> body(segment.size());
  std::memcpy(body.data(), segment.begin(), segment.asBytes().size());
  const auto ask = [&] {
    return client
        .ask<VectorAddRequest>(Address<actors::VectorAdd>{},
                               Encoded{std::as_bytes(std::span(body)), Encoding::body})
        .get();
  };
  const size_t list_a = 1 + messages::view::VectorAddRequest::data_words;
  for (const size_t list : {list_a, list_a + 1}) {
    REQUIRE(body[list] == 0);
    body[list] = 0x0000002400000ffd;  // four elements of 4 bytes, 1,023 words behind the pointer
    const auto refused = ask();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().status == Status::malformed);
    body[list] = 0;
  }
  REQUIRE(ask());
  CHECK(contents(result) == std::vector<float>(size, 4));
  CHECK(runtime.terminate().books.balanced());
}

TEST_CASE("the ledger counts every buffer by kind, and is empty after terminate when they are gone",
          "[gpu]") {
  Runtime runtime = launch();
  CHECK(runtime.ledger().empty());
  {
    const auto device = runtime.allocate<uint64_t>(MemoryKind::device, 100);
    const auto pinned = runtime.allocate<uint8_t>(MemoryKind::pinned, 1);
    auto moved = runtime.allocate<uint8_t>(MemoryKind::pinned, 257);
    moved = runtime.allocate<uint8_t>(MemoryKind::pinned, 600);
    const Buffer<uint8_t> last = std::move(moved);
    const Ledger ledger = runtime.ledger();
    CHECK(ledger.used(MemoryKind::device).buffers == 1);
    CHECK(ledger.used(MemoryKind::device).bytes == 1024);
    CHECK(ledger.used(MemoryKind::pinned).buffers == 2);
    CHECK(ledger.used(MemoryKind::pinned).bytes == 256 + 768);
    CHECK(ledger.freed(MemoryKind::pinned).buffers == 1);
    CHECK(ledger.freed(MemoryKind::pinned).bytes == 512);
    CHECK(ledger.used(MemoryKind::unified).buffers == 0);
    CHECK_FALSE(ledger.empty());
  }
  CHECK(runtime.ledger().used(MemoryKind::device).buffers == 0);
  CHECK(runtime.ledger().freed(MemoryKind::device).bytes == 1024);
  runtime.terminate();
  CHECK(runtime.ledger().empty());
}

TEST_CASE("a buffer may outlive its runtime, and is given back then", "[gpu]") {
  std::optional<Runtime> runtime = launch();
  Client client = runtime->client();
  auto buffer = std::make_optional(runtime->allocate<uint64_t>(MemoryKind::device, 1000));
  auto survivor = runtime->allocate<uint64_t>(MemoryKind::pinned, 10);
  buffer->write(count_from(1, 1000));
  REQUIRE(client.ask<Add>(abacus, adding(*buffer, 1)).get());
  runtime->terminate();
  CHECK(contents(*buffer) == count_from(2, 1000));
  CHECK(runtime->ledger().used(MemoryKind::device).buffers == 1);
  CHECK_THROWS_WITH(runtime->allocate<uint64_t>(MemoryKind::device, 1), containing("has terminated"));
  buffer.reset();
  CHECK(runtime->ledger().used(MemoryKind::device).buffers == 0);
  CHECK(runtime->ledger().freed(MemoryKind::device).buffers == 0);
  runtime.reset();
  survivor.write(count_from(5, 10));
  CHECK(contents(survivor) == count_from(5, 10));
}

TEST_CASE("what cannot be allocated is refused with its numbers, and the next is there", "[gpu]") {
  Runtime runtime = launch({.max_buffers = 2});
  const auto refused = [&](auto&& allocate) {
    try {
      allocate();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("allocated");
  };
  CHECK_THAT(refused([&] { runtime.allocate<float>(MemoryKind::device, 0); }),
             containing("an element at least"));
  CHECK_THAT(refused([&] { runtime.allocate<double>(MemoryKind::device, uint64_t(1) << 62); }),
             containing("4611686018427387904 elements of 8 bytes"));
  if (runtime.refusal(MemoryKind::unified).empty()) {
    CHECK_THAT(refused([&] { runtime.allocate<uint8_t>(MemoryKind::unified, (256u << 20) + 1); }),
               containing("268435457 bytes") && containing("268435456 bytes at most"));
  }
  // All that a process can address: no machine has it. Sanitizers end the process instead.
  if (!sanitized) {
    CHECK_THAT(refused([&] { runtime.allocate<uint8_t>(MemoryKind::device, uint64_t(1) << 47); }),
               containing("allocating") && containing("140737488355328 bytes"));
  }
  const auto first = runtime.allocate<float>(MemoryKind::device, 1);
  const auto second = runtime.allocate<float>(MemoryKind::device, 1);
  CHECK_THAT(refused([&] { runtime.allocate<float>(MemoryKind::device, 1); }),
             containing("all 2 there may be are in use (2)") && containing("max_buffers"));
  CHECK(runtime.ledger().used(MemoryKind::device).buffers == 2);
}

TEST_CASE("four threads allocate, use and free buffers beside each other, and none sees another's", "[gpu]") {
  Runtime runtime = launch({.workers = 2, .slots = 16, .timeout = std::chrono::seconds(60)});
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Client client = runtime.client();
      for (uint64_t i = 0; i < 200; ++i) {
        const MemoryKind kind = i % 2 != 0 ? MemoryKind::device : MemoryKind::pinned;
        const size_t size = 1 + (7 * i + 13 * t) % 500;
        auto buffer = runtime.allocate<uint64_t>(kind, size);
        if (contents(buffer) != std::vector<uint64_t>(size, 0)) ++wrong;
        buffer.write(count_from(1000 * t + i, size));
        const auto reply = client.ask<Add>(Address<Abacus>{i + t}, adding(buffer, t)).get();
        if (!reply || reply.value()->getSize() != size) ++wrong;
        if (contents(buffer) != count_from(1000 * t + i + t, size)) ++wrong;
        // Freed with a tell under way, which may come too late, and must not disturb who has the memory next.
        if (!client.tell<Note>(Address<Abacus>{i + t}, noting(buffer, 1'000'000))) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  REQUIRE(runtime.drain());
  const Books books = runtime.terminate().books;
  CHECK(books.balanced());
  CHECK(books.asks.answered == 800);
  CHECK(books.tells.accepted == 800);
  CHECK(runtime.ledger().empty());
}
