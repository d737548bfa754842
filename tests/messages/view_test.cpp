// Views against the official Cap'n Proto classes, over the same bytes, both ways.
#include <gyre/messages/echo.official.hpp>
#include <gyre/messages/vector_add.official.hpp>

#include <type_traits>

#include "tests/messages/bodies.hpp"
#include "tests/messages/kinds.official.hpp"
#include "tests/messages/kinds_text.hpp"

using namespace gyre_test;

namespace {

namespace messages = gyre::messages;
namespace official = gyre::test;

std::string official_text_of(const Words& words) {
  std::string text;
  read_officially<official::Kinds>(words, [&](auto in) { text = official_text(in); });
  return text;
}
std::string view_text_of(const Words& words) {
  std::string text;
  read_by_view<kinds::Kinds>(words, [&](auto in) { text = view_text(in); });
  return text;
}

/// The Kinds in `words`, copied by the views.
Words copied_by_views(const Words& words, Copy copy = {}) {
  Words copied;
  read_by_view<kinds::Kinds>(words, [&](auto in) {
    copied = view_body<kinds::Kinds>([&](auto out) { copy(in, out); }, 2 * words.size() + 8);
  });
  return copied;
}

}  // namespace

TEST_CASE("What the official library wrote, of every kind of field, reads the same through the view",
          "[random]") {
  Random random(1);
  for (int round = 0, rounds = random_messages(); round < rounds; ++round) {
    const Words words = random_body<official::Kinds>(random, int64_t(random() % 400));
    const std::string different = difference(view_text_of(words), official_text_of(words));
    if (different != "") REQUIRE(different == "");
  }
}

TEST_CASE("What a view wrote, of every kind of field, reads the same through the official class and a view",
          "[random]") {
  Random random(2);
  for (int round = 0, rounds = random_messages(); round < rounds; ++round) {
    const Words words = random_body<official::Kinds>(random, int64_t(random() % 400));
    const Words copied = copied_by_views(words);
    const std::string expected = official_text_of(words);
    const std::string different = difference(official_text_of(copied), expected);
    if (different != "") REQUIRE(different == "");
    if (view_text_of(copied) != expected) REQUIRE(view_text_of(copied) == expected);
  }
}

TEST_CASE("Threads of a group that build one body, in any order, build the same body") {
  Random random(3);
  for (int round = 0; round < 500; ++round) {
    const Words words = random_body<official::Kinds>(random);
    const Words alone = copied_by_views(words);
    Words together(2 * words.size() + 8);
    const uint32_t size = 1 + uint32_t(random() % 5), first = uint32_t(random() % size);
    uint32_t used = 0;
    for (uint32_t i = 0; i < size; ++i) {
      gyre::wire::Body body(together.data(), size_in_bytes(together));
      gyre::wire::Message message(words.data(), size_in_bytes(words));
      Copy{(first + i) % size, size}(view_of<kinds::Kinds>(message), new_view<kinds::Kinds>(body));
      REQUIRE_FALSE(body.full());
      used = body.used_bytes();
    }
    together.resize(used / 8);
    REQUIRE(together == alone);
  }
}

TEST_CASE("Structs that have each other as fields read the same on both sides") {
  Random random(4);
  for (int round = 0; round < 2000; ++round) {
    const Words words = random_body<official::Ping>(random, 60);
    std::string expected;
    read_officially<official::Ping>(words, [&](auto in) { expected = official_text(in); });
    read_by_view<kinds::Ping>(words, [&](auto in) { REQUIRE(view_text(in) == expected); });
  }
  const Words words =
      view_body<kinds::Ping>([](auto out) { out.initPong().initPing().getEnd().initLost().setRally(3); });
  read_officially<official::Ping>(
      words, [](auto in) { CHECK(in.getPong().getPing().getEnd().getLost().getRally() == 3); });
}

TEST_CASE("Fields that nobody set read as their defaults") {
  const Words official = official_body<official::Kinds>([](auto) {});
  const Words nothing_set = view_body<kinds::Kinds>([](auto) {});
  const Words empty_struct = view_body<kinds::Empty>([](auto) {});
  const Words null_root = {0};
  CHECK(nothing_set == official);
  CHECK(empty_struct == official_body<official::Empty>([](auto) {}));
  for (const Words& words : {nothing_set, empty_struct, null_root}) {
    CHECK(view_text_of(words) == official_text_of(official));
    read_by_view<kinds::Kinds>(words, [&](auto in) {
      CHECK(in.getI64Default() == INT64_MIN);
      CHECK(in.getColourDefault() == gyre::test::enums::view::Palette::Colour::DEFAULT);
      CHECK(in.getF32s().size() == 0);
      CHECK(in.getText().size() == 0);
      CHECK_FALSE(in.hasTextDefault());
      CHECK(in.getTextDefault() == "by default");
      CHECK(in.getEmptyDefault() == "");
      CHECK(in.getDataDefault().size() == 3);
      CHECK(in.getDataDefault()[1] == 0xff);
      CHECK(in.getPointDefault().getX() == -5);
      CHECK(in.getPointDefault().getY() == 7);
      CHECK(in.getPointDefault().getLabel() == "origin");
      CHECK(in.getPoint().getY() == 7);
      CHECK(in.getTree().getLeft().getLeft().getChildren()[5].getLeft().getValue() == 0);
      CHECK(in.getSwatch().getColour() == gyre::test::enums::view::Palette::Colour::GREEN);
      CHECK(in.getPointsDefault()[1].getLabel() == "two");
      CHECK(in.getPointsDefault()[3].getY() == 7);
      CHECK(in.getRowsDefault()[0][1] == -2);
      CHECK(in.getTextsDefault()[2] == "three");
      CHECK_FALSE(in.getTextsDefault()[2] == "thre");
      CHECK(in.getBitsDefault()[2]);
      CHECK(in.getPlace().getColumn() == 3);
      CHECK(in.which() == kinds::Kinds::UNSET);
      CHECK(in.getShape().which() == kinds::Kinds::Shape::NONE);
    });
  }
  const Words nested = view_body<kinds::Kinds::Nested>([](auto) {});
  read_by_view<kinds::Kinds::Nested>(nested, [](auto in) {
    CHECK(in.getOwn() == kinds::Kinds::Nested::Shade::DEEP);
    CHECK(in.getOuter() == kinds::Shade::DARK);
  });
}

TEST_CASE("Empty texts, data, lists and structs are there, and null ones are not") {
  const auto fill = [](auto out) {
    out.setText("");
    out.initTextDefault(0);
    out.initDataDefault(0);
    out.initBits(0);
    out.initPointsDefault(0);
    out.initRowsDefault(0);
    out.initTree();
    out.initTexts(2);
    out.initRows(1);
  };
  const Words words = view_body<kinds::Kinds>(fill);
  CHECK(view_text_of(words) == official_text_of(words));
  read_by_view<kinds::Kinds>(words, [](auto in) {
    CHECK(in.hasText());
    CHECK(in.hasTextDefault());
    CHECK(in.getTextDefault().size() == 0);
    CHECK(in.hasPointsDefault());
    CHECK(in.getPointsDefault().size() == 0);
    CHECK(in.hasTree());
    CHECK_FALSE(in.hasData());
    CHECK(in.getTexts().size() == 2);
    CHECK(in.getTexts()[0].size() == 0);
    CHECK(in.getRows()[0].size() == 0);
  });
}

TEST_CASE("Lists of lists of lists are built in any shape") {
  const Words words = view_body<kinds::Kinds>([](auto out) {
    auto cubes = out.initPointCubes(2);
    auto plane = cubes.init(1, 3);
    plane.init(0, 1)[0].setX(100);
    auto row = plane.init(2, 2);
    row[0].setX(120);
    row[1].setLabel("121");
    row[2].setX(-1);   // is not there
    cubes.init(2, 9);  // nor is this
    auto texts = out.initTextRows(1).init(0, 2);
    auto text = texts.init(1, 3);
    for (uint32_t i = 0; i < 4; ++i) text.set(i, "abcd"[i]);
  });
  read_officially<official::Kinds>(words, [](auto in) {
    const auto cubes = in.getPointCubes();
    REQUIRE(cubes.size() == 2);
    CHECK(cubes[0].size() == 0);
    REQUIRE(cubes[1].size() == 3);
    CHECK(cubes[1][0][0].getX() == 100);
    CHECK(cubes[1][1].size() == 0);
    CHECK(cubes[1][2].size() == 2);
    CHECK(cubes[1][2][1].getLabel() == "121");
    CHECK(in.getTextRows()[0][1] == "abc");
  });
  CHECK(view_text_of(words) == official_text_of(words));
}

TEST_CASE("A member that its union does not hold reads as its default, whatever lies in its place") {
  Random random(5);
  const Words boxed = official_body<official::Kinds>([](auto out) {
    auto box = out.getShape().initBox();
    box.setWidth(3);
    box.setHeight(2.5f);
    box.initTags(2).set(1, "tag");
    box.setOpen(true);
    box.getCorner().setRadius(0.5f);
    out.setNumber(-1);
  });
  read_by_view<kinds::Kinds>(boxed, [](auto in) {
    const auto shape = in.getShape();
    CHECK(shape.which() == kinds::Kinds::Shape::BOX);
    CHECK(shape.getCircle() == 0);
    CHECK_FALSE(shape.hasCaption());
    CHECK(shape.getCaption() == "caption");
    CHECK(shape.getCorners().size() == 0);
    CHECK_FALSE(shape.hasCorners());
    CHECK(shape.getCentre().getY() == 7);
    CHECK(shape.getFilled());
    CHECK(shape.getBox().getCorner().getRadius() == 0.5f);
    CHECK(in.getNumber() == -1);
    CHECK(in.getWord().size() == 0);
    CHECK(in.getPair().getFirst() == 0);
    CHECK(in.getPair().getSecond() == 2);
    CHECK(in.getTrees().size() == 0);
    CHECK(in.getBytes().size() == 0);
  });
  Words unknown = boxed;  // a member that a later revision added
  const size_t tags = 1 + 66 / 4;
  REQUIRE((unknown[tags] >> (66 % 4 * 16) & 0xffff) == 3);
  unknown[tags] ^= uint64_t(3 ^ 555) << (66 % 4 * 16);
  read_by_view<kinds::Kinds>(unknown, [](auto in) {
    CHECK(uint16_t(in.getShape().which()) == 555);
    CHECK(in.getShape().getBox().getWidth() == 10);
    CHECK(in.getShape().getBox().getTags().size() == 0);
    CHECK(in.getShape().getBox().getCorner().which() == kinds::Kinds::Shape::Box::Corner::SHARP);
    CHECK(in.getShape().getFilled());
  });
}

TEST_CASE("A union that changes its member while it is built holds the last, and nothing of the others") {
  Random random(6);
  using Shape = kinds::Kinds::Shape;
  for (int round = 0; round < 5000; ++round) {
    std::vector<int> members(1 + random() % 6);
    for (int& member : members) member = int(random() % 7);
    const auto value = random();
    const Words by_view = view_body<kinds::Kinds>([&](auto out) {
      auto shape = out.getShape();
      for (const int member : members) {
        switch (Shape::Which(member)) {
          case Shape::Which::NONE:
            shape.setNone();
            break;
          case Shape::Which::CIRCLE:
            shape.setCircle(double(value));
            break;
          case Shape::Which::CAPTION:
            shape.setCaption("sign");
            break;
          case Shape::Which::BOX: {
            auto box = shape.initBox();
            box.setOpen((value & 1) != 0);
            if ((value & 2) != 0) box.setWidth(uint32_t(value));
            break;
          }
          case Shape::Which::CORNERS:
            shape.initCorners(2)[1].setY(int32_t(value));
            break;
          case Shape::Which::CENTRE:
            shape.initCentre().setX(int32_t(value));
            break;
          case Shape::Which::FILLED:
            shape.setFilled((value & 4) != 0);
            break;
        }
      }
    });
    const Words official = official_body<official::Kinds>([&](auto out) {
      auto shape = out.getShape();
      switch (Shape::Which(members.back())) {
        case Shape::Which::NONE:
          return shape.setNone();
        case Shape::Which::CIRCLE:
          return shape.setCircle(double(value));
        case Shape::Which::CAPTION:
          return shape.setCaption("sign");
        case Shape::Which::BOX: {
          auto box = shape.initBox();
          box.setOpen((value & 1) != 0);
          if ((value & 2) != 0) box.setWidth(uint32_t(value));
          return;
        }
        case Shape::Which::CORNERS:
          return shape.initCorners(2)[1].setY(int32_t(value));
        case Shape::Which::CENTRE:
          return shape.initCentre().setX(int32_t(value));
        case Shape::Which::FILLED:
          return shape.setFilled((value & 4) != 0);
      }
    });
    const std::string expected = official_text_of(official);
    REQUIRE(official_text_of(by_view) == expected);
    REQUIRE(view_text_of(by_view) == expected);
  }
}

TEST_CASE("A group that a union comes to hold begins with its defaults, nested groups and pointers too") {
  const Words words = view_body<kinds::Kinds>([](auto out) {
    auto shape = out.getShape();
    auto box = shape.initBox();
    box.setWidth(77);
    box.setHeight(1);
    box.initTags(3);
    box.setOpen(true);
    box.getCorner().setRadius(9);
    shape.setCircle(1e300);
    shape.initBox();
    out.initPair().setSecond(200);
    out.setNumber(-1);
    out.initPair();
  });
  read_by_view<kinds::Kinds>(words, [](auto in) {
    const auto box = in.getShape().getBox();
    CHECK(box.getWidth() == 10);
    CHECK(box.getHeight() == 0);
    CHECK_FALSE(box.hasTags());
    CHECK_FALSE(box.getOpen());
    CHECK(box.getCorner().which() == kinds::Kinds::Shape::Box::Corner::SHARP);
    CHECK(in.getPair().getFirst() == 0);
    CHECK(in.getPair().getSecond() == 2);
  });
  CHECK(view_text_of(words) == official_text_of(words));
}

TEST_CASE("A group that is initialised while its union holds it keeps what it has") {
  const Words words = view_body<kinds::Kinds>([](auto out) {
    out.getShape().initBox().setWidth(5);
    out.getShape().initBox().setHeight(2);
  });
  read_by_view<kinds::Kinds>(words, [](auto in) {
    CHECK(in.getShape().getBox().getWidth() == 5);
    CHECK(in.getShape().getBox().getHeight() == 2);
  });
}

TEST_CASE("Groups, structs and what is in unions are written by builders that are kept as constants") {
  const Words words = view_body<kinds::Kinds>([](const auto out) {
    const auto place = out.getPlace();
    place.setLine(7);
    place.setFile("a file");
    const auto view = place.getView();
    view.setFolded(true);
    const auto shape = out.getShape();
    const auto box = shape.initBox();
    box.setWidth(5);
    const auto tags = box.initTags(2);
    tags.init(1, 3).set(0, 'x');
    const auto corner = box.getCorner();
    corner.setRadius(2);
    const auto point = out.initPoint();
    point.setX(3);
    const auto points = out.initPoints(2);
    points[1].setLabel("second");
    out.initPair().setSecond(9);
  });
  read_by_view<kinds::Kinds>(words, [](auto in) {
    CHECK(in.getPlace().getLine() == 7);
    CHECK(in.getPlace().getFile().size() == 6);
    CHECK(in.getPlace().getView().getFolded());
    CHECK(in.getShape().getBox().getWidth() == 5);
    CHECK(in.getShape().getBox().getTags()[1].size() == 3);
    CHECK(in.getShape().getBox().getCorner().getRadius() == 2);
    CHECK(in.getPoint().getX() == 3);
    CHECK(in.getPoints()[1].getLabel().size() == 6);
    CHECK(in.getPair().getSecond() == 9);
  });
  CHECK(view_text_of(words) == official_text_of(words));
}

TEST_CASE("Messages of the built-in actors are the same bytes, whoever built them") {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> a(random() % 40), b(random() % 40);
    for (float& x : a) x = float(random());
    for (float& x : b) x = float(random());
    const auto operation = uint16_t(random() % 4);
    const auto fill = [](auto list, const std::vector<float>& values) {
      for (uint32_t i = 0; i < values.size(); ++i) list.set(i, values[i]);
    };
    const Words from_official = official_body<messages::VectorAddRequest>([&](auto out) {
      out.setOperation(messages::Operation(operation));
      fill(out.initA(uint32_t(a.size())), a);
      fill(out.initB(uint32_t(b.size())), b);
    });
    const Words from_view = view_body<messages::view::VectorAddRequest>([&](auto out) {
      out.setOperation(messages::view::Operation(operation));
      fill(out.initA(uint32_t(a.size())), a);
      fill(out.initB(uint32_t(b.size())), b);
    });
    CHECK(from_view == from_official);
    read_by_view<messages::view::VectorAddRequest>(from_official, [&](auto in) {
      CHECK(uint16_t(in.getOperation()) == operation);
      REQUIRE(in.getA().size() == a.size());
      REQUIRE(in.getB().size() == b.size());
      for (uint32_t i = 0; i < a.size(); ++i) CHECK(in.getA()[i] == a[i]);
      for (uint32_t i = 0; i < b.size(); ++i) CHECK(in.getB()[i] == b[i]);
    });
  }
}

TEST_CASE("Bools that share a byte are set and cleared without touching each other") {
  const Words words = view_body<kinds::Kinds>([](auto out) {
    out.setFlag(true);
    out.setBoolean(true);
    out.setBooleanDefault(false);
    out.setBoolean(false);
    out.setBooleanDefault(true);
    out.setBooleanDefault(false);
    auto bits = out.initBits(70);
    for (uint32_t i = 0; i < 71; ++i) bits.set(i, true);
    for (uint32_t i = 0; i < 71; i += 3) bits.set(i, false);
  });
  read_officially<official::Kinds>(words, [](auto in) {
    CHECK(in.getFlag());
    CHECK_FALSE(in.getBoolean());
    CHECK_FALSE(in.getBooleanDefault());
    CHECK(in.getI8() == 0);
    for (uint32_t i = 0; i < 70; ++i) CHECK(in.getBits()[i] == (i % 3 != 0));
  });
  CHECK(view_text_of(words) == official_text_of(words));
}

TEST_CASE("A list or text initialised twice is the second one, all zero") {
  const Words words = view_body<kinds::Kinds>([](auto out) {
    auto first = out.initU64s(4);
    for (uint32_t i = 0; i < 4; ++i) first.set(i, ~0ull);
    out.initU64s(3).set(2, 5);
    first.set(3, 7);
    out.setText("longer");
    out.setText("short");
    out.initPoint().setX(1);
    out.initPoint();
  });
  read_officially<official::Kinds>(words, [](auto in) {
    REQUIRE(in.getU64s().size() == 3);
    CHECK(in.getU64s()[0] == 0);
    CHECK(in.getU64s()[2] == 5);
    CHECK(in.getText() == "short");
    CHECK(in.getPoint().getX() == 0);
  });
}

TEST_CASE("A root initialised twice is the second one, all zero") {
  Words words(64);
  gyre::wire::Body body(words.data(), size_in_bytes(words));
  new_view<messages::view::EchoResponse>(body).setSequence(3);
  new_view<messages::view::EchoResponse>(body).initPayload(2).set(1, 9);
  gyre::wire::Message message(words.data(), body.used_bytes());
  const auto in = view_of<messages::view::EchoResponse>(message);
  CHECK(in.getSequence() == 0);
  REQUIRE(in.getPayload().size() == 2);
  CHECK(in.getPayload()[1] == 9);
}

TEST_CASE("Each view is paired with its official class, and knows its schema's number and name") {
  STATIC_REQUIRE(std::is_same_v<gyre::OfficialOf<kinds::Kinds::Nested>::type, official::Kinds::Nested>);
  STATIC_REQUIRE(std::is_same_v<gyre::ViewOf<messages::EchoRequest>::type, messages::view::EchoRequest>);
  STATIC_REQUIRE(kinds::Kinds::Shape::Box::type_id == capnp::typeId<official::Kinds::Shape::Box>());
  CHECK(messages::view::EchoRequest::type_name == std::string("EchoRequest"));
  CHECK(kinds::Kinds::Nested::type_name == std::string("Kinds.Nested"));
}
