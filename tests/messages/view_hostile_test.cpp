// Bytes that no honest program wrote, read by views: never a fault, always an end, and the reason is told.
#include <capnp/any.h>
#include <gyre/messages/vector_add.official.hpp>

#include <optional>
#include <random>

#include "tests/messages/bodies.hpp"
#include "tests/messages/kinds.official.hpp"
#include "tests/messages/kinds_text.hpp"

using namespace gyre_test;
using gyre::wire::Malformed;
using gyre::wire::Message;

namespace {

namespace messages = gyre::messages;
namespace official = gyre::test;

/// A body by hand whose root has one pointer, `pointer`, and `rest` behind it.
Words one_pointer(uint64_t pointer, Words rest = {}) {
  Words words = {struct_pointer(0, 0, 1), pointer};
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

/// What reading the only pointer of the body's root as a T comes to.
template <class T>
Malformed reading(const Words& words, uint32_t* failed_word = nullptr) {
  Message message(words.data(), size_in_bytes(words));
  const auto root = message.root();
  const auto value = root.get<T>(0, {77, 5});
  if constexpr (requires { value.size(); }) {
    if (message.failed()) CHECK(value.size() == 0);
  }
  if (message.failed()) {
    CHECK(message.failed_field().type_id == 77);
    CHECK(message.failed_field().index == 5);
  }
  if (failed_word != nullptr) *failed_word = message.failed_word();
  return message.reason();
}

/// A VectorAddRequest by hand: root pointer, one data word, pointers a and b, and `payload` behind them.
Words request_with_a(uint64_t a, size_t payload = 2) {
  Words words(4 + payload, 0x3f8000003f800000u);  // 1.0f, twice a word
  words[0] = struct_pointer(0, 1, 2);
  words[1] = 2;  // multiply
  words[2] = a;
  words[3] = 0;
  return words;
}

/// Reads `a` of such a request, which must fail at word 2 for the reason, read as empty, and leave the rest
/// readable.
void check_refused(const Words& words, Malformed reason) {
  Message message(words.data(), size_in_bytes(words));
  const auto request = view_of<messages::view::VectorAddRequest>(message);
  CHECK_FALSE(message.failed());
  CHECK(request.getA().size() == 0);
  CHECK(message.failed());
  CHECK(message.reason() == reason);
  CHECK(message.failed_word() == 2);
  CHECK(message.failed_field().type_id == messages::view::VectorAddRequest::type_id);
  CHECK(message.failed_field().index == 1);
  CHECK(request.getOperation() == messages::view::Operation::MULTIPLY);
  CHECK(request.getB().size() == 0);
  CHECK(message.failed_word() == 2);
}

/// The body read whole by the official class; nothing, and why, where it refuses.
std::optional<std::string> official_opinion(const Words& words, std::string* why = nullptr) {
  try {
    std::string text;
    read_officially<official::Kinds>(words, [&](auto in) { text = official_text(in); });
    return text;
  } catch (const kj::Exception& exception) {
    if (why != nullptr) *why = exception.getDescription().cStr();
    return std::nullopt;
  }
}

using wire::Data;
using wire::List;
using TextKind = wire::Text;

}  // namespace

TEST_CASE("A body without a root struct is malformed and reads as an empty struct") {
  const std::vector<std::pair<Words, Malformed>> bodies = {
      {{}, Malformed::out_of_bounds},                                         // no word at all
      {{list_pointer(0, 4, 0)}, Malformed::not_a_struct},                     // a list
      {{2 | 1ull << 32}, Malformed::not_a_struct},                            // a far pointer
      {{6 | 1ull << 32}, Malformed::not_a_struct},                            // one of two words
      {{3}, Malformed::not_a_struct},                                         // a capability
      {{struct_pointer(0, 1, 0)}, Malformed::out_of_bounds},                  // one word past the end
      {{struct_pointer(0, 0xffff, 0xffff), 0, 0}, Malformed::out_of_bounds},  // far past the end
      {{struct_pointer(-2, 1, 0), 0}, Malformed::out_of_bounds},              // before the beginning
      {{struct_pointer(-0x20000000, 0, 1), 0}, Malformed::out_of_bounds},     // the lowest offset
      {{struct_pointer(0x1fffffff, 0, 1), 0}, Malformed::out_of_bounds},      // the highest
  };
  for (const auto& [words, reason] : bodies) {
    Message message(words.data(), size_in_bytes(words));
    const auto in = view_of<kinds::Kinds>(message);
    CHECK(message.failed());
    CHECK(message.failed_word() == 0);
    CHECK(message.reason() == reason);
    CHECK(message.failed_field().type_id == kinds::Kinds::type_id);
    CHECK(message.failed_field().index == gyre::wire::Field::root);
    CHECK(in.getI16Default() == -12345);
    CHECK(in.getBooleanDefault());
    CHECK(in.getF64s().size() == 0);
    CHECK(in.getTextDefault() == "by default");
    CHECK(in.getTree().getLeft().getChildren()[3].getValue() == 0);
    CHECK(in.getPointCubes()[1][2][3].getLabel().size() == 0);
    CHECK(in.getShape().getBox().getTags()[3].size() == 0);
  }
}

TEST_CASE("A list pointer that is not what the schema says, or leaves the body, is refused") {
  check_refused(request_with_a(2), Malformed::not_a_list);                        // a far pointer
  check_refused(request_with_a(3), Malformed::not_a_list);                        // a capability
  check_refused(request_with_a(struct_pointer(1, 1, 0)), Malformed::not_a_list);  // a struct
  for (uint64_t code : {0, 1, 2, 3, 6}) {  // elements that are smaller than 4 bytes, or pointers
    check_refused(request_with_a(list_pointer(1, code, 1)), Malformed::wrong_elements);
  }
  check_refused(request_with_a(list_pointer(1, 4, 5)), Malformed::out_of_bounds);   // one element too many
  check_refused(request_with_a(list_pointer(2, 4, 3)), Malformed::out_of_bounds);   // one word too far
  check_refused(request_with_a(list_pointer(-4, 4, 1)), Malformed::out_of_bounds);  // before the beginning
  check_refused(request_with_a(list_pointer(-0x20000000, 4, 1)), Malformed::out_of_bounds);
  check_refused(request_with_a(list_pointer(0x1fffffff, 4, 1)), Malformed::out_of_bounds);
  check_refused(request_with_a(list_pointer(0x1fffffff, 4, 0x1fffffff)), Malformed::out_of_bounds);
  for (uint64_t code : {4, 5, 6, 7}) {
    for (uint64_t size : {0x1fffffff, 0x1ffffffe, 0x10000000, 0x0fffffff}) {
      check_refused(request_with_a(list_pointer(1, code, size)), Malformed::out_of_bounds);
      check_refused(request_with_a(list_pointer(-3, code, size)), Malformed::out_of_bounds);
    }
  }
}

TEST_CASE("A pointer to the wrong kind of object is refused, with its place and its field") {
  const Words a_struct = one_pointer(struct_pointer(0, 1, 0), {0});
  const Words bytes = one_pointer(list_pointer(0, 2, 4), {0x00434241});
  const Words bits = one_pointer(list_pointer(0, 1, 4), {5});
  const Words words = one_pointer(list_pointer(0, 5, 1), {5});
  const Words pointers = one_pointer(list_pointer(0, 6, 1), {0});
  const Words voids = one_pointer(list_pointer(0, 0, 3), {0});
  const Words structs = one_pointer(list_pointer(0, 7, 1), {struct_pointer(1, 1, 0), 5});
  uint32_t word = 0;
  CHECK(reading<TextKind>(a_struct, &word) == Malformed::not_a_list);
  CHECK(word == 1);
  CHECK(reading<Data>(a_struct) == Malformed::not_a_list);
  CHECK(reading<List<bool>>(a_struct) == Malformed::not_a_list);
  CHECK(reading<List<TextKind>>(a_struct) == Malformed::not_a_list);
  CHECK(reading<List<kinds::Point>>(a_struct) == Malformed::not_a_list);
  CHECK(reading<kinds::Point>(bytes) == Malformed::not_a_struct);
  CHECK(reading<kinds::Point>(structs) == Malformed::not_a_struct);
  for (const uint64_t pointer : {uint64_t(1) << 32 | 2, uint64_t(6), uint64_t(3)}) {
    CHECK(reading<kinds::Point>(one_pointer(pointer, {0})) == Malformed::not_a_struct);
    CHECK(reading<TextKind>(one_pointer(pointer, {0})) == Malformed::not_a_list);
    CHECK(reading<List<List<float>>>(one_pointer(pointer, {0})) == Malformed::not_a_list);
  }
  for (const Words& other : {bits, words, pointers, voids, structs}) {
    CHECK(reading<TextKind>(other) == Malformed::wrong_elements);
    CHECK(reading<Data>(other) == Malformed::wrong_elements);
  }
  CHECK(reading<List<uint16_t>>(bytes) == Malformed::wrong_elements);
  CHECK(reading<List<uint8_t>>(bits) == Malformed::wrong_elements);
  CHECK(reading<List<float>>(pointers) == Malformed::wrong_elements);
  CHECK(reading<List<float>>(voids) == Malformed::wrong_elements);
  CHECK(reading<List<bool>>(voids) == Malformed::wrong_elements);
  CHECK(reading<List<bool>>(structs) == Malformed::wrong_elements);
  CHECK(reading<List<TextKind>>(words) == Malformed::wrong_elements);
  CHECK(reading<List<TextKind>>(structs) == Malformed::wrong_elements);
  CHECK(reading<List<List<float>>>(bytes) == Malformed::wrong_elements);
  CHECK(reading<List<kinds::Point>>(bits) == Malformed::wrong_elements);
  CHECK(reading<List<gyre::wire::Void>>(bits) == Malformed::wrong_elements);
  CHECK(reading<List<gyre::wire::Void>>(structs) == Malformed::none);
  CHECK(reading<List<bool>>(bytes) == Malformed::none);
  CHECK(reading<List<uint64_t>>(structs) == Malformed::none);
  CHECK(reading<List<kinds::Point>>(words) == Malformed::none);
}

TEST_CASE("An object of no words may be anywhere, as for the official class") {
  for (const int32_t offset : {-0x20000000, -5, 0, 1, 100, 0x1fffffff}) {
    CHECK(reading<List<float>>(one_pointer(list_pointer(offset, 4, 0))) == Malformed::none);
    CHECK(reading<List<kinds::Point>>(one_pointer(list_pointer(offset, 6, 0))) == Malformed::none);
    CHECK(reading<Data>(one_pointer(list_pointer(offset, 2, 0))) == Malformed::none);
    const Words body = {struct_pointer(0, 0, 1), list_pointer(offset, 2, 0)};
    CHECK(official_opinion(body).has_value());
    if (offset != 0)
      CHECK(reading<kinds::Point>(one_pointer(struct_pointer(offset, 0, 0))) == Malformed::none);
  }
}

TEST_CASE("A text that does not end with a 0 in its own bytes is refused") {
  CHECK(reading<TextKind>(one_pointer(list_pointer(0, 2, 0), {0})) == Malformed::bad_text);
  CHECK(reading<TextKind>(one_pointer(list_pointer(0, 2, 3), {0x00434241})) == Malformed::bad_text);
  CHECK(reading<TextKind>(one_pointer(list_pointer(0, 2, 4), {0x00434241})) == Malformed::none);
  CHECK(reading<TextKind>(one_pointer(list_pointer(0, 2, 9), {0})) == Malformed::out_of_bounds);
}

TEST_CASE("A list of structs whose tag does not fit it is refused") {
  const auto with_tag = [](uint64_t words, uint64_t tag) {
    return reading<List<kinds::Point>>(one_pointer(list_pointer(0, 7, words), {tag, 0, 0}));
  };
  CHECK(with_tag(2, struct_pointer(1, 1, 1)) == Malformed::none);
  CHECK(with_tag(2, struct_pointer(2, 1, 0)) == Malformed::none);
  CHECK(with_tag(2, struct_pointer(0, 0xffff, 0xffff)) == Malformed::none);  // no element of any size
  CHECK(with_tag(2, struct_pointer(2, 1, 1)) == Malformed::bad_tag);         // four words in two
  CHECK(with_tag(2, struct_pointer(3, 1, 0)) == Malformed::bad_tag);
  CHECK(with_tag(2, struct_pointer(0x3fffffff, 0xffff, 0xffff)) == Malformed::bad_tag);
  CHECK(with_tag(2, list_pointer(1, 2, 1)) == Malformed::bad_tag);  // not a struct's
  CHECK(with_tag(2, 2) == Malformed::bad_tag);
  CHECK(with_tag(3, struct_pointer(1, 1, 1)) == Malformed::out_of_bounds);  // a word too many
  CHECK(reading<List<kinds::Point>>(one_pointer(list_pointer(0, 7, 0))) == Malformed::out_of_bounds);
}

TEST_CASE("The highest bit of a tag's number of elements is not looked at, as by the official class") {
  for (const int32_t count : {0, 1}) {
    const auto tag = struct_pointer(int32_t(0x20000000u | uint32_t(count)), 1, 1);
    const Words words = one_pointer(list_pointer(0, 7, 2), {tag, 5, 0});
    Message message(words.data(), size_in_bytes(words));
    CHECK(message.root().get<List<kinds::Point>>(0, {}).size() == uint32_t(count));
    CHECK_FALSE(message.failed());
    const kj::ArrayPtr<const capnp::word> segment(reinterpret_cast<const capnp::word*>(words.data()),
                                                  words.size());
    capnp::SegmentArrayMessageReader official_message(kj::arrayPtr(&segment, 1));
    const auto root = official_message.getRoot<capnp::AnyStruct>();
    CHECK(root.getPointerSection()[0].getAs<capnp::List<official::Point>>().size() == uint32_t(count));
  }
}

TEST_CASE("Structs nested deeper than 64 are refused, cyclic ones too") {
  // A chain of trees: each is one data word and two pointers, the first of which leads to the next.
  const auto chain = [](size_t length) {
    Words words = {struct_pointer(0, 1, 2)};
    for (size_t i = 0; i < length; ++i) {
      words.insert(words.end(), {i, i + 1 < length ? struct_pointer(1, 1, 2) : 0, 0});
    }
    return words;
  };
  Words cyclic = chain(2);
  cyclic[5] = struct_pointer(-5, 1, 2);  // the second's left is the first
  cyclic[2] = struct_pointer(1, 1, 2);
  const auto descend = [](const Words& words) {
    Message message(words.data(), size_in_bytes(words));
    auto tree = view_of<kinds::Tree>(message);
    uint32_t depth = 1;
    while (tree.hasLeft() && depth < 1000) {
      tree = tree.getLeft();
      ++depth;
    }
    if (message.failed()) {
      CHECK(message.reason() == Malformed::too_deep);
      CHECK(message.failed_field().type_id == kinds::Tree::type_id);
      CHECK(message.failed_field().index == 1);
    }
    return message.failed() ? 0 : depth;
  };
  CHECK(descend(chain(63)) == 63);
  CHECK(descend(chain(64)) == 64);
  CHECK(descend(chain(65)) == 0);
  CHECK(descend(cyclic) == 0);
}

TEST_CASE("Lists nested deeper than 64 are refused") {
  // A list of one struct, whose second pointer is a list of one struct, and so on: each level is two
  // pointers.
  Words words = {struct_pointer(0, 1, 2), 0, 0, 0};
  size_t pointer = 3;
  for (int level = 0; level < 40; ++level) {
    words[pointer] = list_pointer(int32_t(words.size() - pointer - 1), 7, 3);
    words.insert(words.end(), {struct_pointer(1, 1, 2), uint64_t(level), 0, 0});
    pointer = words.size() - 1;
  }
  Message message(words.data(), size_in_bytes(words));
  auto tree = view_of<kinds::Tree>(message);
  int levels = 0;
  while (tree.getChildren().size() == 1) {
    tree = tree.getChildren()[0];
    ++levels;
  }
  CHECK(message.failed());
  CHECK(message.reason() == Malformed::too_deep);
  CHECK(levels == 31);  // the root's pointer, and two a level: the list's own and its element
  CHECK(message.failed_field().index == 2);
}

TEST_CASE("A small message that leads to one object over and over ends at the traversal budget") {
  // A list of 500 pointers, each to the one list of 500 words.
  constexpr uint64_t count = 500;
  Words words = one_pointer(list_pointer(0, 6, count));
  for (uint64_t i = 0; i < count; ++i) words.push_back(list_pointer(int32_t(count - i - 1), 5, count));
  words.resize(words.size() + count, 1);
  const auto sum_until_failure = [&](uint64_t budget) {
    Message message(words.data(), size_in_bytes(words), budget);
    const auto lists = message.root().get<List<List<uint64_t>>>(0, {1, 2});
    uint64_t sum = 0;
    for (uint32_t i = 0; i < lists.size(); ++i) {
      const auto list = lists[i];
      for (uint32_t k = 0; k < list.size(); ++k) sum += list[k];
    }
    if (message.failed()) {
      CHECK(message.reason() == Malformed::traversal);
      CHECK(message.failed_field().type_id == 1);
      CHECK(message.failed_field().index == 2);
    }
    return sum;
  };
  CHECK(sum_until_failure(1 << 20) == count * count);
  CHECK(sum_until_failure(count * count) == count * count);  // the root's own list is free
  CHECK(sum_until_failure(count * count - 1) == count * (count - 1));
  CHECK(sum_until_failure(10 * count) == 10 * count);
  CHECK(Message::default_traversal_words(800) == 65536);
  CHECK(Message::default_traversal_words(16384) == 64 * 2048);
}

TEST_CASE("The root's own fields may be read any number of times") {
  const Words words = request_with_a(list_pointer(1, 4, 4));
  Message message(words.data(), size_in_bytes(words), 0);
  const auto in = view_of<messages::view::VectorAddRequest>(message);
  for (int i = 0; i < 1000; ++i) CHECK(in.getA().size() == 4);
  CHECK_FALSE(message.failed());
}

TEST_CASE("Huge lists of nothing do not keep a reader busy") {
  const auto voids = [](uint64_t size) { return one_pointer(list_pointer(0, 0, size)); };
  CHECK(reading<List<gyre::wire::Void>>(voids(65536)) == Malformed::none);
  CHECK(reading<List<gyre::wire::Void>>(voids(65537)) == Malformed::traversal);
  CHECK(reading<List<gyre::wire::Void>>(voids(0x1fffffff)) == Malformed::traversal);
  CHECK(reading<List<kinds::Point>>(voids(0x1fffffff)) == Malformed::traversal);
  const auto empty_structs = [](uint64_t size) {
    return one_pointer(list_pointer(0, 7, 0), {struct_pointer(int32_t(size), 0, 0)});
  };
  CHECK(reading<List<kinds::Point>>(empty_structs(65536)) == Malformed::none);
  CHECK(reading<List<kinds::Point>>(empty_structs(65537)) == Malformed::traversal);
  CHECK(reading<List<kinds::Point>>(empty_structs(0x3fffffff)) == Malformed::traversal);
  CHECK(reading<List<gyre::wire::Void>>(empty_structs(0x3fffffff)) == Malformed::traversal);
}

TEST_CASE("A message remembers the first of its malformed pointers") {
  Words words = request_with_a(2);
  words[3] = struct_pointer(0, 0, 0);
  words[3] = 2;
  Message message(words.data(), size_in_bytes(words));
  const auto in = view_of<messages::view::VectorAddRequest>(message);
  CHECK(in.getB().size() == 0);
  CHECK(in.getA().size() == 0);
  CHECK(message.failed_word() == 3);
  CHECK(message.failed_field().index == 2);
}

TEST_CASE("A negative offset that stays in the body is followed") {
  const Words words = request_with_a(list_pointer(-3, 4, 2));  // the root pointer, read as floats
  read_by_view<messages::view::VectorAddRequest>(words, [&](auto in) {
    REQUIRE(in.getA().size() == 2);
    CHECK(bits(in.getA()[0]) == (words[0] & 0xffffffff));
  });
}

TEST_CASE("An enum value that the schema does not know reads as its number") {
  Words words = request_with_a(0);
  words[1] = 777;
  read_by_view<messages::view::VectorAddRequest>(words,
                                                 [](auto in) { CHECK(uint16_t(in.getOperation()) == 777); });
}

TEST_CASE("A list element that is not there reads as zero, without a failure") {
  const Words words = request_with_a(list_pointer(1, 4, 3));
  read_by_view<messages::view::VectorAddRequest>(words, [](auto in) {
    CHECK(in.getA()[2] == 1.0f);
    CHECK(in.getA()[3] == 0.0f);
    CHECK(in.getA()[0xffffffff] == 0.0f);
  });
}

TEST_CASE("A body cut off at any byte never reads past its end") {
  Random random(7);
  const Words whole = random_body<official::Kinds>(random, 600);
  size_t total = 0;
  for (uint32_t bytes = 0; bytes < size_in_bytes(whole); ++bytes) {
    const Words cut(whole.begin(), whole.begin() + bytes / 8);
    Message message(cut.data(), bytes);  // the odd bytes do not exist: they must not be looked at
    total += view_text(view_of<kinds::Kinds>(message)).size();
    CHECK(message.failed());
  }
  CHECK(total != 0);
}

TEST_CASE("Bytes changed at random never crash a view, which accepts and reads what the official class does",
          "[random]") {
  Random random(8);
  const size_t root_words = 1 + kinds::Kinds::data_words + kinds::Kinds::pointers;
  int accepted = 0, refused = 0, stricter = 0;
  Words whole;
  for (int round = 0, rounds = random_messages(); round < rounds; ++round) {
    if (round % 100 == 0) whole = random_body<official::Kinds>(random, int64_t(random() % 600));
    Words words = whole;
    for (uint64_t change = 0, changes = 1 + random() % 4; change < changes; ++change) {
      const size_t begin = (random() & 1) != 0 ? 8 * (1 + kinds::Kinds::data_words) : 0;
      const size_t end = (random() & 1) != 0 ? root_words * 8 : words.size() * 8;
      const size_t place = begin + random() % (end - begin);
      reinterpret_cast<uint8_t*>(words.data())[place] = uint8_t(random());
    }
    if (random() % 8 == 0) words.resize(random() % words.size());
    Message message(words.data(), size_in_bytes(words), uint64_t(1) << 20);
    const std::string text = view_text(view_of<kinds::Kinds>(message));
    ++(message.failed() ? refused : accepted);
    if (message.failed()) REQUIRE(message.failed_word() < (words.empty() ? 1 : words.size()));
    if (round % 8 != 0) continue;
    std::string why;
    const auto opinion = official_opinion(words, &why);
    INFO(why);
    if (!message.failed()) {
      REQUIRE(opinion.has_value());
      REQUIRE(difference(text, *opinion) == "");
    } else if (opinion.has_value()) {  // a far pointer into the only segment, or much of nothing
      const uint64_t pointer = words[message.failed_word()];
      INFO("reason " << int(message.reason()) << ", pointer " << std::hex << pointer << ", field "
                     << message.failed_field().index << " of " << message.failed_field().type_id);
      REQUIRE(((pointer & 3) == 2 || message.reason() == Malformed::traversal));
      ++stricter;
    }
  }
  CHECK(accepted > random_messages() / 100);
  CHECK(refused > random_messages() / 100);
  CHECK(stricter < random_messages() / 1000);
}

TEST_CASE(
    "a root read from a copy of its words, or with lists known, is read as where it lies, damaged too") {
  // One data word; a list of numbers, and behind the other pointer anything.
  Words honest;
  {
    uint64_t zeroed[32] = {};
    gyre::wire::Body body(zeroed, sizeof zeroed);
    const auto root = body.init_root(1, 2);
    root.set<uint64_t>(0, 0x1122334455667788u);
    const auto numbers = root.init<gyre::wire::List<uint32_t>>(0, 5);
    for (uint32_t i = 0; i < 5; ++i) numbers.set(i, 100 + i);
    const auto text = root.init<gyre::wire::Text>(1, 11);
    for (uint32_t i = 0; i < 11; ++i) text.set(i, "hello world"[i]);
    honest.assign(zeroed, zeroed + body.used_bytes() / 8);
  }
  const gyre::wire::NumberLists lists{uint64_t(gyre::wire::ElementSize::four_bytes)};
  const auto read = [](const Words& words, bool copied, gyre::wire::NumberLists known = {}) {
    Message message(words.data(), size_in_bytes(words), 65536, known);
    const Words copy(words.begin() + 1, words.begin() + 4);
    const auto root = message.plain_root(1, 2, copied ? copy.data() : nullptr);
    std::vector<uint64_t> seen = {root.get<uint64_t>(0), root.get<uint32_t>(1), root.get_bool(3),
                                  root.has(0),           root.has(1),           root.has(2)};
    const auto numbers = root.get<gyre::wire::List<uint32_t>>(0, {77, 1});
    seen.push_back(numbers.size());
    for (uint32_t i = 0; i < numbers.size() && i < 64; ++i) seen.push_back(numbers[i]);
    const auto text = root.get<gyre::wire::Text>(1, {77, 2});
    seen.push_back(text.size());
    for (uint32_t i = 0; i < text.size() && i < 64; ++i) seen.push_back(uint8_t(text[i]));
    seen.insert(seen.end(), {message.failed(), message.failed_word(), uint64_t(message.reason()),
                             message.failed_field().index});
    return seen;
  };
  const auto as_it_lies = read(honest, false);
  CHECK(as_it_lies[6] == 5);
  CHECK(as_it_lies[12] == 11);
  std::mt19937_64 random(1);
  uint32_t failed = 0, plain = 0;
  for (int message = 0; message < 20'000; ++message) {
    Words words = honest;
    if (message != 0) {
      const uint64_t flips = 1 + random() % 3;
      for (uint64_t i = 0; i < flips; ++i)
        words[1 + random() % (words.size() - 1)] ^= uint64_t(1) << random() % 64;
      if (random() % 4 == 0) words.resize(4 + random() % (words.size() - 3));
    }
    const auto in_place = read(words, false);
    INFO("message " << message);
    REQUIRE(read(words, true) == in_place);
    if (Message::has_plain_lists(words.data(), size_in_bytes(words), 1, 2, lists)) {
      ++plain;
      REQUIRE(read(words, true, lists) == in_place);
      REQUIRE(read(words, false, lists) == in_place);
    }
    failed += in_place[in_place.size() - 4] != 0;
  }
  CHECK(failed > 1000);
  CHECK(plain > 1000);
  CHECK(plain < 19'000);
  CHECK(failed < 20'000);
}
