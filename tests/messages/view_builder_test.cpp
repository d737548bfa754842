// Views that build in too little room, or ask for too much.
#include <gyre/messages/echo.official.hpp>

#include "tests/messages/bodies.hpp"
#include "tests/messages/kinds.official.hpp"
#include "tests/messages/kinds_text.hpp"

using namespace gyre_test;
using gyre::wire::Body;
using gyre::wire::Message;

namespace official = gyre::test;
namespace messages = gyre::messages;

TEST_CASE("A body too small for what is built is full, and nothing is written past it") {
  Random random(9);
  for (int round = 0; round < 8; ++round) {
    const Words request = random_body<official::Kinds>(random, 100 * round);
    Message whole(request.data(), size_in_bytes(request), ~uint64_t(0));
    const auto in = view_of<kinds::Kinds>(whole);
    const size_t needed = view_body<kinds::Kinds>([&](auto out) { Copy{}(in, out); }).size();
    for (size_t capacity = 0; capacity <= needed + 1; ++capacity) {
      Words words(capacity);  // the address sanitizer watches its end
      Body body(words.data(), size_in_bytes(words));
      Copy{}(in, new_view<kinds::Kinds>(body));
      CHECK(body.full() == (capacity < needed));
      CHECK(body.used_bytes() <= size_in_bytes(words));
      Message message(words.data(), body.used_bytes());
      view_text(view_of<kinds::Kinds>(message));
      CHECK(message.failed() == (capacity == 0));  // what was allocated is well formed all the same
    }
  }
}

TEST_CASE("A list, text or data of any size either fits or makes the body full") {
  const auto check = [](auto init) {
    for (uint32_t size : {4000u, 0x0fffffffu, 0x1ffffffeu, 0x1fffffffu, 0x20000000u, 0x20000001u, 0x3fffffffu,
                          0x40000000u, 0xfffffffeu, 0xffffffffu}) {
      Words words(200);
      Body body(words.data(), size_in_bytes(words));
      auto out = new_view<kinds::Kinds>(body);
      const uint32_t used = body.used_bytes();
      CHECK(init(out, size) == 0);
      CHECK(body.full());
      CHECK(body.used_bytes() == used);
      CHECK(init(out, 0) == 0);
      CHECK(body.full());
      CHECK_FALSE(out.initTree().initLeft().initChildren(1).size() != 0);
    }
  };
  using Out = kinds::Kinds::Builder;
  check([](Out& out, uint32_t size) {
    const auto list = out.initU64s(size);
    list.set(0, 1);
    list.set(size - 1, 1);
    if (size != 0) CHECK(list.data() == nullptr);
    return list.size();
  });
  check([](Out& out, uint32_t size) {
    const auto text = out.initText(size);
    text.set(0, 'x');
    text.set(size - 1, 'x');
    return text.size();
  });
  check([](Out& out, uint32_t size) { return out.initData(size).size(); });
  check([](Out& out, uint32_t size) {
    const auto texts = out.initTexts(size);
    texts.init(0, 3).set(1, 'x');
    return texts.size();
  });
  check([](Out& out, uint32_t size) {
    const auto rows = out.initRows(size);
    rows.init(0, 3).set(1, 1.0f);
    rows.init(size - 1, size);
    return rows.size();
  });
  check([](Out& out, uint32_t size) {
    const auto points = out.initPoints(size);
    points[0].setX(1);
    points[size - 1].setLabel("far away");
    return points.size();
  });
  check([](Out& out, uint32_t size) { return out.initPointCubes(size).init(0, size).init(0, size).size(); });
}

TEST_CASE("A list of Bool or of Void takes as little as it needs, and no more than a pointer can say") {
  Words words(200);
  Body body(words.data(), size_in_bytes(words));
  auto out = new_view<kinds::Kinds>(body);
  const uint32_t used = body.used_bytes();
  CHECK(out.initVoids(0x1fffffff).size() == 0x1fffffff);
  CHECK(body.used_bytes() == used);
  CHECK(out.initBits(65).size() == 65);
  CHECK(body.used_bytes() == used + 16);
  CHECK_FALSE(body.full());
  CHECK(out.initVoids(0x20000000).size() == 0);
  CHECK(body.full());
}

TEST_CASE("A list has at most 2^29 - 1 elements, and a text one byte fewer, however large the body") {
  Words words(3);
  for (const bool text : {false, true}) {
    const uint32_t most = text ? 0x1ffffffe : 0x1fffffff;
    Body body(words.data(), 0xffffffff);  // more than there is: no element is set
    const auto root = body.init_root(0, 1);
    const auto init = [&](uint32_t size) {
      return text ? root.init<wire::Text>(0, size).size() : root.init<wire::List<uint8_t>>(0, size).size();
    };
    CHECK(init(most) == most);
    CHECK_FALSE(body.full());
    CHECK(init(most + 1) == 0);
    CHECK(body.full());
    words.assign(3, 0);
  }
}

TEST_CASE("Exactly what fits fits") {
  Words words(16);
  Body body(words.data(), size_in_bytes(words));
  CHECK(new_view<messages::view::EchoResponse>(body).initPayload(13).size() == 13);
  CHECK(body.used_bytes() == 128);
  CHECK_FALSE(body.full());
}
