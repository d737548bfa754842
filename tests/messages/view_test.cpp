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
      view_body<kinds::Ping>([](auto out) { out.init_pong().init_ping().end().init_lost().set_rally(3); });
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
      CHECK(in.i64_default() == INT64_MIN);
      CHECK(in.colour_default() == gyre::test::enums::view::Palette::Colour::default_);
      CHECK(in.f32s().size() == 0);
      CHECK(in.text().size() == 0);
      CHECK_FALSE(in.has_text_default());
      CHECK(in.text_default() == "by default");
      CHECK(in.empty_default() == "");
      CHECK(in.data_default().size() == 3);
      CHECK(in.data_default()[1] == 0xff);
      CHECK(in.point_default().x() == -5);
      CHECK(in.point_default().y() == 7);
      CHECK(in.point_default().label() == "origin");
      CHECK(in.point().y() == 7);
      CHECK(in.tree().left().left().children()[5].left().value() == 0);
      CHECK(in.swatch().colour() == gyre::test::enums::view::Palette::Colour::green);
      CHECK(in.points_default()[1].label() == "two");
      CHECK(in.points_default()[3].y() == 7);
      CHECK(in.rows_default()[0][1] == -2);
      CHECK(in.texts_default()[2] == "three");
      CHECK_FALSE(in.texts_default()[2] == "thre");
      CHECK(in.bits_default()[2]);
      CHECK(in.place().column() == 3);
      CHECK(in.which() == kinds::Kinds::Which::unset);
      CHECK(in.shape().which() == kinds::Kinds::Shape::Which::none);
    });
  }
  const Words nested = view_body<kinds::Kinds::Nested>([](auto) {});
  read_by_view<kinds::Kinds::Nested>(nested, [](auto in) {
    CHECK(in.own() == kinds::Kinds::Nested::Shade::deep);
    CHECK(in.outer() == kinds::Shade::dark);
  });
}

TEST_CASE("Empty texts, data, lists and structs are there, and null ones are not") {
  const auto fill = [](auto out) {
    out.set_text("");
    out.init_text_default(0);
    out.init_data_default(0);
    out.init_bits(0);
    out.init_points_default(0);
    out.init_rows_default(0);
    out.init_tree();
    out.init_texts(2);
    out.init_rows(1);
  };
  const Words words = view_body<kinds::Kinds>(fill);
  CHECK(view_text_of(words) == official_text_of(words));
  read_by_view<kinds::Kinds>(words, [](auto in) {
    CHECK(in.has_text());
    CHECK(in.has_text_default());
    CHECK(in.text_default().size() == 0);
    CHECK(in.has_points_default());
    CHECK(in.points_default().size() == 0);
    CHECK(in.has_tree());
    CHECK_FALSE(in.has_data());
    CHECK(in.texts().size() == 2);
    CHECK(in.texts()[0].size() == 0);
    CHECK(in.rows()[0].size() == 0);
  });
}

TEST_CASE("Lists of lists of lists are built in any shape") {
  const Words words = view_body<kinds::Kinds>([](auto out) {
    auto cubes = out.init_point_cubes(2);
    auto plane = cubes.init(1, 3);
    plane.init(0, 1)[0].set_x(100);
    auto row = plane.init(2, 2);
    row[0].set_x(120);
    row[1].set_label("121");
    row[2].set_x(-1);  // is not there
    cubes.init(2, 9);  // nor is this
    auto texts = out.init_text_rows(1).init(0, 2);
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
    const auto shape = in.shape();
    CHECK(shape.which() == kinds::Kinds::Shape::Which::box);
    CHECK(shape.circle() == 0);
    CHECK_FALSE(shape.has_caption());
    CHECK(shape.caption() == "caption");
    CHECK(shape.corners().size() == 0);
    CHECK_FALSE(shape.has_corners());
    CHECK(shape.centre().y() == 7);
    CHECK(shape.filled());
    CHECK(shape.box().corner().radius() == 0.5f);
    CHECK(in.number() == -1);
    CHECK(in.word().size() == 0);
    CHECK(in.pair().first() == 0);
    CHECK(in.pair().second() == 2);
    CHECK(in.trees().size() == 0);
    CHECK(in.bytes().size() == 0);
  });
  Words unknown = boxed;  // a member that a later revision added
  const size_t tags = 1 + 66 / 4;
  REQUIRE((unknown[tags] >> (66 % 4 * 16) & 0xffff) == 3);
  unknown[tags] ^= uint64_t(3 ^ 555) << (66 % 4 * 16);
  read_by_view<kinds::Kinds>(unknown, [](auto in) {
    CHECK(uint16_t(in.shape().which()) == 555);
    CHECK(in.shape().box().width() == 10);
    CHECK(in.shape().box().tags().size() == 0);
    CHECK(in.shape().box().corner().which() == kinds::Kinds::Shape::Box::Corner::Which::sharp);
    CHECK(in.shape().filled());
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
      auto shape = out.shape();
      for (const int member : members) {
        switch (Shape::Which(member)) {
          case Shape::Which::none:
            shape.set_none();
            break;
          case Shape::Which::circle:
            shape.set_circle(double(value));
            break;
          case Shape::Which::caption:
            shape.set_caption("sign");
            break;
          case Shape::Which::box: {
            auto box = shape.init_box();
            box.set_open((value & 1) != 0);
            if ((value & 2) != 0) box.set_width(uint32_t(value));
            break;
          }
          case Shape::Which::corners:
            shape.init_corners(2)[1].set_y(int32_t(value));
            break;
          case Shape::Which::centre:
            shape.init_centre().set_x(int32_t(value));
            break;
          case Shape::Which::filled:
            shape.set_filled((value & 4) != 0);
            break;
        }
      }
    });
    const Words official = official_body<official::Kinds>([&](auto out) {
      auto shape = out.getShape();
      switch (Shape::Which(members.back())) {
        case Shape::Which::none:
          return shape.setNone();
        case Shape::Which::circle:
          return shape.setCircle(double(value));
        case Shape::Which::caption:
          return shape.setCaption("sign");
        case Shape::Which::box: {
          auto box = shape.initBox();
          box.setOpen((value & 1) != 0);
          if ((value & 2) != 0) box.setWidth(uint32_t(value));
          return;
        }
        case Shape::Which::corners:
          return shape.initCorners(2)[1].setY(int32_t(value));
        case Shape::Which::centre:
          return shape.initCentre().setX(int32_t(value));
        case Shape::Which::filled:
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
    auto shape = out.shape();
    auto box = shape.init_box();
    box.set_width(77);
    box.set_height(1);
    box.init_tags(3);
    box.set_open(true);
    box.corner().set_radius(9);
    shape.set_circle(1e300);
    shape.init_box();
    out.init_pair().set_second(200);
    out.set_number(-1);
    out.init_pair();
  });
  read_by_view<kinds::Kinds>(words, [](auto in) {
    const auto box = in.shape().box();
    CHECK(box.width() == 10);
    CHECK(box.height() == 0);
    CHECK_FALSE(box.has_tags());
    CHECK_FALSE(box.open());
    CHECK(box.corner().which() == kinds::Kinds::Shape::Box::Corner::Which::sharp);
    CHECK(in.pair().first() == 0);
    CHECK(in.pair().second() == 2);
  });
  CHECK(view_text_of(words) == official_text_of(words));
}

TEST_CASE("A group that is initialised while its union holds it keeps what it has") {
  const Words words = view_body<kinds::Kinds>([](auto out) {
    out.shape().init_box().set_width(5);
    out.shape().init_box().set_height(2);
  });
  read_by_view<kinds::Kinds>(words, [](auto in) {
    CHECK(in.shape().box().width() == 5);
    CHECK(in.shape().box().height() == 2);
  });
}

TEST_CASE("Groups, structs and what is in unions are written by builders that are kept as constants") {
  const Words words = view_body<kinds::Kinds>([](const auto out) {
    const auto place = out.place();
    place.set_line(7);
    place.set_file("a file");
    const auto view = place.view();
    view.set_folded(true);
    const auto shape = out.shape();
    const auto box = shape.init_box();
    box.set_width(5);
    const auto tags = box.init_tags(2);
    tags.init(1, 3).set(0, 'x');
    const auto corner = box.corner();
    corner.set_radius(2);
    const auto point = out.init_point();
    point.set_x(3);
    const auto points = out.init_points(2);
    points[1].set_label("second");
    out.init_pair().set_second(9);
  });
  read_by_view<kinds::Kinds>(words, [](auto in) {
    CHECK(in.place().line() == 7);
    CHECK(in.place().file().size() == 6);
    CHECK(in.place().view().folded());
    CHECK(in.shape().box().width() == 5);
    CHECK(in.shape().box().tags()[1].size() == 3);
    CHECK(in.shape().box().corner().radius() == 2);
    CHECK(in.point().x() == 3);
    CHECK(in.points()[1].label().size() == 6);
    CHECK(in.pair().second() == 9);
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
      out.set_operation(messages::view::Operation(operation));
      fill(out.init_a(uint32_t(a.size())), a);
      fill(out.init_b(uint32_t(b.size())), b);
    });
    CHECK(from_view == from_official);
    read_by_view<messages::view::VectorAddRequest>(from_official, [&](auto in) {
      CHECK(uint16_t(in.operation()) == operation);
      REQUIRE(in.a().size() == a.size());
      REQUIRE(in.b().size() == b.size());
      for (uint32_t i = 0; i < a.size(); ++i) CHECK(in.a()[i] == a[i]);
      for (uint32_t i = 0; i < b.size(); ++i) CHECK(in.b()[i] == b[i]);
    });
  }
}

TEST_CASE("Bools that share a byte are set and cleared without touching each other") {
  const Words words = view_body<kinds::Kinds>([](auto out) {
    out.set_flag(true);
    out.set_boolean(true);
    out.set_boolean_default(false);
    out.set_boolean(false);
    out.set_boolean_default(true);
    out.set_boolean_default(false);
    auto bits = out.init_bits(70);
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
    auto first = out.init_u64s(4);
    for (uint32_t i = 0; i < 4; ++i) first.set(i, ~0ull);
    out.init_u64s(3).set(2, 5);
    first.set(3, 7);
    out.set_text("longer");
    out.set_text("short");
    out.init_point().set_x(1);
    out.init_point();
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
  new_view<messages::view::EchoResponse>(body).set_sequence(3);
  new_view<messages::view::EchoResponse>(body).init_payload(2).set(1, 9);
  gyre::wire::Message message(words.data(), body.used_bytes());
  const auto in = view_of<messages::view::EchoResponse>(message);
  CHECK(in.sequence() == 0);
  REQUIRE(in.payload().size() == 2);
  CHECK(in.payload()[1] == 9);
}

TEST_CASE("Each view is paired with its official class, and knows its schema's number and name") {
  STATIC_REQUIRE(std::is_same_v<gyre::OfficialOf<kinds::Kinds::Nested>::type, official::Kinds::Nested>);
  STATIC_REQUIRE(std::is_same_v<gyre::ViewOf<messages::EchoRequest>::type, messages::view::EchoRequest>);
  STATIC_REQUIRE(kinds::Kinds::Shape::Box::type_id == capnp::typeId<official::Kinds::Shape::Box>());
  CHECK(messages::view::EchoRequest::type_name == std::string("EchoRequest"));
  CHECK(kinds::Kinds::Nested::type_name == std::string("Kinds.Nested"));
}
