// One text for both sides: function templates that fill and read a message, compiled for the official classes
// and for the views.
#include <utility>

#include "tests/messages/bodies.hpp"
#include "tests/messages/kinds.official.hpp"

using namespace gyre_test;

namespace {

namespace official = gyre::test;
namespace view = gyre::test::view;

constexpr uint8_t bytes[] = {0, 0xff, 0x80};

/// The type of the field `colour` of a Kinds.
template <class Kinds>
using ColourOf = decltype(std::declval<typename Kinds::Reader>().getColour());

template <class Builder>
void fill(Builder out) {
  using Kinds = typename Builder::Builds;
  using Colour = ColourOf<Kinds>;
  out.setBoolean(true);
  out.setI8(-8);
  out.setI64Default(-64);
  out.setU16(0xffff);
  out.setF32(0.5f);
  out.setF64Default(1e300);
  out.setColour(Colour::INFRA_RED);
  out.setInt(3);
  out.setAnHTTPCode(404);

  out.setText("a text");
  out.setData({bytes, sizeof bytes});
  auto numbers = out.initU32s(3);
  for (uint32_t i = 0; i < numbers.size(); ++i) numbers.set(i, 10 * i);
  auto colours = out.initColours(2);
  colours.set(1, Colour::DEFAULT);
  out.initBits(9).set(8, true);
  out.initVoids(5);
  out.initRows(2).init(1, 2).set(0, -1.5f);
  auto points = out.initPoints(2);
  points[1].setX(-5);
  points[1].setLabel("the second");

  auto tree = out.initTree();
  tree.setValue(1);
  tree.initLeft().setValue(2);
  tree.initChildren(1)[0].initLeft().setValue(3);

  auto place = out.getPlace();
  place.setLine(12);
  place.setFile("a file");
  place.getView().setFolded(true);

  auto shape = out.getShape();
  shape.setCaption("goes with the next member");
  auto box = shape.initBox();
  box.setHeight(2.5f);
  box.getCorner().setSharp();
  out.setNumber(1);
  out.initPair().setFirst(200);
}

/// The member that the unnamed union holds.
template <class Reader>
std::string member(Reader in) {
  using Kinds = typename Reader::Reads;
  switch (in.which()) {
    case Kinds::UNSET:
      return "unset";
    case Kinds::NUMBER:
      return "number";
    case Kinds::WORD:
      return "word";
    case Kinds::PAIR:
      return "pair";
    case Kinds::TREES:
      return "trees";
    case Kinds::BYTES:
      return "bytes";
  }
  return "unknown";
}

template <class Reader>
void check_filled(Reader in) {
  using Kinds = typename Reader::Reads;
  using Colour = ColourOf<Kinds>;
  CHECK(in.getBoolean());
  CHECK(in.getBooleanDefault());
  CHECK(in.getI8() == -8);
  CHECK(in.getI64Default() == -64);
  CHECK(in.getU16() == 0xffff);
  CHECK(in.getU64Default() == UINT64_MAX);
  CHECK(in.getF32() == 0.5f);
  CHECK(in.getF64Default() == 1e300);
  CHECK(in.getColour() == Colour::INFRA_RED);
  CHECK(in.getColourDefault() == Colour::DEFAULT);
  CHECK(in.getInt() == 3);
  CHECK(in.getAnHTTPCode() == 404);

  CHECK(in.hasText());
  CHECK(in.getText().size() == 6);
  CHECK(in.getText() == "a text");
  CHECK_FALSE(in.hasTextDefault());
  CHECK(in.getTextDefault() == "by default");
  REQUIRE(in.getData().size() == sizeof bytes);
  for (uint32_t i = 0; i < sizeof bytes; ++i) CHECK(in.getData()[i] == bytes[i]);
  REQUIRE(in.getU32s().size() == 3);
  for (uint32_t i = 0; i < 3; ++i) CHECK(in.getU32s()[i] == 10 * i);
  REQUIRE(in.getColours().size() == 2);
  CHECK(in.getColours()[0] == Colour::RED);
  CHECK(in.getColours()[1] == Colour::DEFAULT);
  REQUIRE(in.getBits().size() == 9);
  CHECK_FALSE(in.getBits()[7]);
  CHECK(in.getBits()[8]);
  CHECK(in.getVoids().size() == 5);
  REQUIRE(in.getRows().size() == 2);
  CHECK(in.getRows()[0].size() == 0);
  REQUIRE(in.getRows()[1].size() == 2);
  CHECK(in.getRows()[1][0] == -1.5f);
  REQUIRE(in.getPoints().size() == 2);
  CHECK(in.getPoints()[0].getY() == 7);
  CHECK(in.getPoints()[1].getX() == -5);
  CHECK(in.getPoints()[1].getLabel() == "the second");

  CHECK(in.hasTree());
  CHECK(in.getTree().getValue() == 1);
  CHECK(in.getTree().getLeft().getValue() == 2);
  CHECK_FALSE(in.getTree().getLeft().hasLeft());
  REQUIRE(in.getTree().getChildren().size() == 1);
  CHECK(in.getTree().getChildren()[0].getLeft().getValue() == 3);
  CHECK_FALSE(in.hasSwatch());

  CHECK(in.getPlace().getLine() == 12);
  CHECK(in.getPlace().getColumn() == 3);
  CHECK(in.getPlace().getFile() == "a file");
  CHECK(in.getPlace().getView().getFolded());

  const auto shape = in.getShape();
  CHECK(shape.which() == Kinds::Shape::BOX);
  CHECK(shape.isBox());
  CHECK_FALSE(shape.isCaption());
  CHECK_FALSE(shape.hasCaption());
  CHECK(shape.getBox().getWidth() == 10);
  CHECK(shape.getBox().getHeight() == 2.5f);
  CHECK_FALSE(shape.getBox().hasTags());
  CHECK(shape.getBox().getCorner().isSharp());
  CHECK(member(in) == "pair");
  CHECK(in.isPair());
  CHECK_FALSE(in.isNumber());
  CHECK(in.getPair().getFirst() == 200);
  CHECK(in.getPair().getSecond() == 2);
}

}  // namespace

TEST_CASE("One function template fills, and one reads, a message of the official classes and of views") {
  const Words by_official = official_body<official::Kinds>([](auto out) { fill(out); });
  const Words by_view = view_body<view::Kinds>([](auto out) { fill(out); });
  for (const Words& words : {by_official, by_view}) {
    read_officially<official::Kinds>(words, [](auto in) { check_filled(in); });
    read_by_view<view::Kinds>(words, [](auto in) { check_filled(in); });
  }
}

TEST_CASE("One function template fills and reads a struct whose nested enum has the name of an outer one") {
  const auto set = [](auto out) {
    using Nested = typename decltype(out)::Builds;
    out.setOwn(Nested::Shade::PALE);
  };
  const auto check = [](auto in) {
    using Nested = typename decltype(in)::Reads;
    using Outer = decltype(in.getOuter());
    CHECK(in.getOwn() == Nested::Shade::PALE);
    CHECK(in.getOuter() == Outer::DARK);
  };
  for (const Words& words :
       {official_body<official::Kinds::Nested>(set), view_body<view::Kinds::Nested>(set)}) {
    read_officially<official::Kinds::Nested>(words, check);
    read_by_view<view::Kinds::Nested>(words, check);
  }
}
