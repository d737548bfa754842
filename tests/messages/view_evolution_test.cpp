// Messages of older and newer revisions of a schema, read as the official library reads them.
#include "tests/messages/bodies.hpp"
#include "tests/messages/kinds.official.hpp"
#include "tests/messages/kinds_old.official.hpp"
#include "tests/messages/kinds_text.hpp"

using namespace gyre_test;

namespace {

namespace official = gyre::test;
namespace old = gyre::test::old;

/// Whether the view and the official class read `words` the same.
template <class Official>
void check_same(const Words& words) {
  std::string expected;
  read_officially<Official>(words, [&](auto in) { expected = official_text(in); });
  read_by_view<typename gyre::ViewOf<Official>::type>(words, [&](auto in) {
    const std::string text = view_text(in);
    if (text != expected) REQUIRE(text == expected);
  });
}

}  // namespace

TEST_CASE("A message of the newer schema reads as the official class of the older one reads it", "[random]") {
  Random random(11);
  for (int round = 0, rounds = random_messages(); round < rounds; ++round) {
    check_same<old::Evolved>(random_body<official::Evolved>(random, int64_t(random() % 150)));
    if (round % 10 == 0) check_same<old::Kinds>(random_body<official::Kinds>(random, 50));
  }
}

TEST_CASE("A message of the older schema reads as the official class of the newer one reads it", "[random]") {
  Random random(12);
  for (int round = 0, rounds = random_messages(); round < rounds; ++round) {
    check_same<official::Evolved>(random_body<old::Evolved>(random, int64_t(random() % 150)));
    if (round % 10 == 0) check_same<official::Kinds>(random_body<old::Kinds>(random, 50));
  }
}

TEST_CASE("A list of numbers, texts or lists that became one of structs reads as their first fields") {
  const Words words = view_body<old::view::Evolved>([](auto out) {
    auto numbers = out.initNumbers(3);
    for (uint32_t i = 0; i < 3; ++i) numbers.set(i, int32_t(i) - 1);
    auto name = out.initNames(2).init(1, 2);
    name.set(0, 'o');
    name.set(1, 'k');
    out.initRows(2).init(0, 2).set(1, -7);
    out.initPlaces(2)[1].setX(5);
    out.initPlace().setX(6);
  });
  read_by_view<kinds::Evolved>(words, [](auto in) {
    REQUIRE(in.getNumbers().size() == 3);
    CHECK(in.getNumbers()[0].getValue() == -1);
    CHECK(in.getNumbers()[2].getValue() == 1);
    CHECK(in.getNumbers()[2].getNote().size() == 0);
    REQUIRE(in.getNames().size() == 2);
    CHECK(in.getNames()[1].getText() == "ok");
    CHECK(in.getNames()[1].getRank() == 9);
    CHECK(in.getRows()[0].getCells()[1] == -7);
    CHECK(in.getRows()[0].getHeight() == 0);
    CHECK(in.getPlaces()[1].getX() == 5);
    CHECK(in.getPlaces()[1].getY() == -1);
    CHECK(in.getPlace().getX() == 6);
    CHECK(in.getPlace().getNotes().size() == 0);
    CHECK(in.getAdded() == "added");
  });
  check_same<official::Evolved>(words);
}

TEST_CASE("A list of structs whose first field is what it held before reads as that") {
  const Words words = view_body<kinds::Evolved>([](auto out) {
    auto numbers = out.initNumbers(2);
    numbers[0].setNote("first");
    numbers[1].setValue(-9);
    out.initNames(2)[1].setText("second");
    out.initRows(1)[0].initCells(3).set(2, 4);
    out.getChoice().initRich().setLabel("rich");
  });
  read_by_view<old::view::Evolved>(words, [](auto in) {
    REQUIRE(in.getNumbers().size() == 2);
    CHECK(in.getNumbers()[0] == 0);
    CHECK(in.getNumbers()[1] == -9);
    CHECK(in.getNumbers().data() == nullptr);  // they do not lie side by side
    CHECK(in.getNames()[0].size() == 0);
    CHECK(in.getNames()[1] == "second");
    REQUIRE(in.getRows().size() == 1);
    CHECK(in.getRows()[0][2] == 4);
    CHECK(uint16_t(in.getChoice().which()) == 1);
    CHECK(in.getChoice().getPlain() == 0);
  });
  check_same<old::Evolved>(words);
}

TEST_CASE("A struct with a data section of any length reads as the official class reads it") {
  Random random(10);
  for (uint64_t data_words = 0; data_words <= kinds::Kinds::data_words + 2; ++data_words) {
    Words words(1 + data_words);
    for (uint64_t& word : words) word = random();
    words[0] = struct_pointer(0, data_words, 0);
    if (data_words > 18) words[1 + 18] &= 0xffff;  // the unnamed union's tag
    check_same<official::Kinds>(words);
  }
}

TEST_CASE("A struct with a pointer section of any length reads as the official class reads it") {
  Random random(13);
  for (int round = 0; round < 20; ++round) {
    const Words whole = random_body<official::Kinds>(random, 300);
    for (uint64_t pointers = 0; pointers <= kinds::Kinds::pointers; ++pointers) {
      Words words = whole;
      words[0] = struct_pointer(0, kinds::Kinds::data_words, pointers);
      check_same<official::Kinds>(words);
    }
  }
}
