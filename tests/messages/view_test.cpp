// Views against the official Cap'n Proto classes, over the same bytes, both ways; then bytes that nobody
// wrote.
#include <capnp/message.h>
#include <gyre/messages/echo.official.hpp>
#include <gyre/messages/vector_add.official.hpp>
#include <gyre/messages/view.hpp>

#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"
#include "tests/messages/kinds.official.hpp"
#include "tests/messages/kinds_old.official.hpp"

namespace {

namespace messages = gyre::messages;
namespace kinds = gyre::test;
namespace wire = gyre::wire;

using Random = std::mt19937_64;
/// A body of exactly as many bytes as it says, so that the address sanitizer sees a read past it.
using Words = std::vector<uint64_t>;

template <class T>
T random_value(Random& random) {
  const uint64_t bits = random();
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <>
bool random_value<bool>(Random& random) {
  return (random() & 1) != 0;
}

/// The bits of a value of either side: floats compare by them, enums of the two sides through them.
template <class T>
uint64_t bits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class View>
typename View::Reader view_of(wire::Message& message) {
  return typename View::Reader(message.root());
}
template <class View>
typename View::Builder new_view(wire::Body& body) {
  return typename View::Builder(body.init_root(View::data_words, View::pointers));
}

uint32_t size_in_bytes(const Words& words) { return uint32_t(words.size() * 8); }

/// What the official builder makes of `fill(builder)`.
template <class Official, class Fill>
Words official_body(Fill fill) {
  capnp::MallocMessageBuilder message(4096);
  fill(message.initRoot<Official>());
  const auto segments = message.getSegmentsForOutput();
  REQUIRE(segments.size() == 1);
  Words words(segments[0].size());
  std::memcpy(words.data(), segments[0].begin(), words.size() * 8);
  return words;
}

/// What the view's builder makes of `fill(builder)`, in a body of `capacity` words.
template <class View, class Fill>
Words view_body(Fill fill, size_t capacity = 4096) {
  Words words(capacity);
  wire::Body body(words.data(), size_in_bytes(words));
  fill(new_view<View>(body));
  REQUIRE_FALSE(body.full());
  words.resize(body.used_bytes() / 8);
  return words;
}

/// Reads the body with the official reader.
template <class Official, class Use>
void read_officially(const Words& words, Use use) {
  const kj::ArrayPtr<const capnp::word> segment(reinterpret_cast<const capnp::word*>(words.data()),
                                                words.size());
  capnp::SegmentArrayMessageReader message(kj::arrayPtr(&segment, 1));
  use(message.getRoot<Official>());
}

/// Reads the body with the view; it must be well formed.
template <class View, class Use>
void read_by_view(const Words& words, Use use) {
  wire::Message message(words.data(), size_in_bytes(words));
  use(view_of<View>(message));
  CHECK_FALSE(message.failed());
}

template <class T>
std::vector<T> random_list(Random& random) {
  std::vector<T> list(random() % 40);
  for (T& element : list) element = random_value<T>(random);
  return list;
}
template <class List, class T>
void fill_list(List list, const std::vector<T>& values) {
  for (uint32_t i = 0; i < values.size(); ++i) list.set(i, values[i]);
}
template <class List, class T>
bool equal(List list, const std::vector<T>& values) {
  if (list.size() != values.size()) return false;
  for (uint32_t i = 0; i < values.size(); ++i) {
    if (bits(list[i]) != bits(values[i])) return false;
  }
  return true;
}

// Every field of Kinds: its name in the view, its name in the official class, its type.
#define SCALARS(X)                                                \
  X(boolean, Boolean, bool)                                       \
  X(boolean_default, BooleanDefault, bool)                        \
  X(i8, I8, int8_t)                                               \
  X(i8_default, I8Default, int8_t)                                \
  X(i16, I16, int16_t)                                            \
  X(i16_default, I16Default, int16_t)                             \
  X(i32, I32, int32_t)                                            \
  X(i32_default, I32Default, int32_t)                             \
  X(i64, I64, int64_t)                                            \
  X(i64_default, I64Default, int64_t)                             \
  X(u8, U8, uint8_t)                                              \
  X(u8_default, U8Default, uint8_t)                               \
  X(u16, U16, uint16_t)                                           \
  X(u16_default, U16Default, uint16_t)                            \
  X(u32, U32, uint32_t)                                           \
  X(u32_default, U32Default, uint32_t)                            \
  X(u64, U64, uint64_t)                                           \
  X(u64_default, U64Default, uint64_t)                            \
  X(f32, F32, float)                                              \
  X(f32_default, F32Default, float)                               \
  X(f32_whole, F32Whole, float)                                   \
  X(f32_infinite, F32Infinite, float)                             \
  X(f32_none, F32None, float)                                     \
  X(f64, F64, double)                                             \
  X(f64_default, F64Default, double)                              \
  X(f64_infinite, F64Infinite, double)                            \
  X(f64_none, F64None, double)                                    \
  X(colour, Colour, kinds::enums::Palette::Colour)                \
  X(colour_default, ColourDefault, kinds::enums::Palette::Colour) \
  X(an_http_code, AnHTTPCode, uint16_t)                           \
  X(flag, Flag, bool)
#define LISTS(X)          \
  X(i8s, I8s, int8_t)     \
  X(i16s, I16s, int16_t)  \
  X(i32s, I32s, int32_t)  \
  X(i64s, I64s, int64_t)  \
  X(u8s, U8s, uint8_t)    \
  X(u16s, U16s, uint16_t) \
  X(u32s, U32s, uint32_t) \
  X(u64s, U64s, uint64_t) \
  X(f32s, F32s, float)    \
  X(f64s, F64s, double)   \
  X(colours, Colours, kinds::enums::Palette::Colour)

/// The view's counterpart of an official type.
template <class T>
struct InView {
  using type = T;
};
template <>
struct InView<kinds::enums::Palette::Colour> {
  using type = kinds::enums::view::Palette::Colour;
};
template <class T>
auto in_view(T value) {
  return static_cast<typename InView<T>::type>(value);
}

/// A value for every field of Kinds.
struct KindsValues {
#define X(name, Name, Type) Type name;
  SCALARS(X)
#undef X
#define X(name, Name, Type) std::vector<Type> name;
  LISTS(X)
#undef X

  explicit KindsValues(Random& random) {
#define X(name, Name, Type) name = random_value<Type>(random);
    SCALARS(X)
#undef X
#define X(name, Name, Type) name = random_list<Type>(random);
    LISTS(X)
#undef X
  }
  void fill(kinds::Kinds::Builder out) const {
#define X(name, Name, Type) out.set##Name(name);
    SCALARS(X)
#undef X
#define X(name, Name, Type) fill_list(out.init##Name(uint32_t(name.size())), name);
    LISTS(X)
#undef X
  }
  void fill(kinds::view::Kinds::Builder out) const {
#define X(name, Name, Type) out.set_##name(in_view(name));
    SCALARS(X)
#undef X
#define X(name, Name, Type)                                                   \
  {                                                                           \
    auto list = out.init_##name(uint32_t(name.size()));                       \
    for (uint32_t i = 0; i < name.size(); ++i) list.set(i, in_view(name[i])); \
  }
    LISTS(X)
#undef X
  }
  void check(kinds::Kinds::Reader in) const {
#define X(name, Name, Type) CHECK(bits(in.get##Name()) == bits(name));
    SCALARS(X)
#undef X
#define X(name, Name, Type) CHECK(equal(in.get##Name(), name));
    LISTS(X)
#undef X
  }
  void check(kinds::view::Kinds::Reader in) const {
#define X(name, Name, Type) CHECK(bits(in.name()) == bits(name));
    SCALARS(X)
#undef X
#define X(name, Name, Type) CHECK(equal(in.name(), name));
    LISTS(X)
#undef X
  }
};

/// Whether every field of the two reads the same.
void check_same(kinds::view::Kinds::Reader view, kinds::Kinds::Reader official) {
#define X(name, Name, Type) CHECK(bits(view.name()) == bits(official.get##Name()));
  SCALARS(X)
#undef X
#define X(name, Name, Type)                                                          \
  {                                                                                  \
    const auto a = view.name();                                                      \
    const auto b = official.get##Name();                                             \
    REQUIRE(a.size() == b.size());                                                   \
    bool same = true;                                                                \
    for (uint32_t i = 0; i < a.size(); ++i) same = same && bits(a[i]) == bits(b[i]); \
    CHECK(same);                                                                     \
  }
  LISTS(X)
#undef X
}

/// Reads everything there is; the sum keeps the compiler from leaving any of it out.
uint64_t sum(kinds::view::Kinds::Reader in) {
  uint64_t total = 0;
#define X(name, Name, Type) total += bits(in.name());
  SCALARS(X)
#undef X
#define X(name, Name, Type) \
  for (uint32_t i = 0, size = in.name().size(); i < size; ++i) total += bits(in.name()[i]);
  LISTS(X)
#undef X
  return total;
}

// Pointer words by hand, after Cap'n Proto's encoding page.
constexpr uint64_t struct_pointer(int32_t offset, uint64_t data_words, uint64_t pointers) {
  return uint64_t(uint32_t(offset) << 2) | data_words << 32 | pointers << 48;
}
constexpr uint64_t list_pointer(int32_t offset, uint64_t code, uint64_t size) {
  return uint64_t(uint32_t(offset) << 2 | 1) | code << 32 | size << 35;
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

/// Reads `a` of such a request, which must fail at word 2 and read as empty, and leave the rest readable.
void check_refused(const Words& words) {
  wire::Message message(words.data(), size_in_bytes(words));
  const auto request = view_of<messages::view::VectorAddRequest>(message);
  CHECK_FALSE(message.failed());
  CHECK(request.a().size() == 0);
  CHECK(message.failed());
  CHECK(message.failed_word() == 2);
  CHECK(request.operation() == messages::view::Operation::multiply);
  CHECK(request.b().size() == 0);
  CHECK(message.failed_word() == 2);
}

}  // namespace

TEST_CASE("A vector-add request reads the same on both sides, whoever built it") {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const auto a = random_list<float>(random), b = random_list<float>(random);
    const auto operation = static_cast<messages::Operation>(random() % 4);
    const Words from_official = official_body<messages::VectorAddRequest>([&](auto out) {
      out.setOperation(operation);
      fill_list(out.initA(uint32_t(a.size())), a);
      fill_list(out.initB(uint32_t(b.size())), b);
    });
    const Words from_view = view_body<messages::view::VectorAddRequest>([&](auto out) {
      out.set_operation(static_cast<messages::view::Operation>(operation));
      fill_list(out.init_a(uint32_t(a.size())), a);
      fill_list(out.init_b(uint32_t(b.size())), b);
    });
    CHECK(from_view == from_official);
    for (const Words& words : {from_official, from_view}) {
      read_by_view<messages::view::VectorAddRequest>(words, [&](auto in) {
        CHECK(bits(in.operation()) == bits(operation));
        CHECK(equal(in.a(), a));
        CHECK(equal(in.b(), b));
      });
    }
    read_officially<messages::VectorAddRequest>(from_view, [&](auto in) {
      CHECK(in.getOperation() == operation);
      CHECK(equal(in.getA(), a));
      CHECK(equal(in.getB(), b));
    });
  }
}

TEST_CASE("A vector-add response reads the same on both sides, whoever built it") {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    const auto result = random_list<float>(random);
    const bool success = random_value<bool>(random);
    const auto error = static_cast<messages::VectorAddResponse::Error>(random() % 3);
    const auto processed = random_value<uint32_t>(random);
    const auto processing_ns = random_value<uint64_t>(random);
    const Words from_official = official_body<messages::VectorAddResponse>([&](auto out) {
      out.setSuccess(success);
      out.setError(error);
      out.setProcessed(processed);
      out.setProcessingNs(processing_ns);
      fill_list(out.initResult(uint32_t(result.size())), result);
    });
    const Words from_view = view_body<messages::view::VectorAddResponse>([&](auto out) {
      out.set_success(success);
      out.set_error(static_cast<messages::view::VectorAddResponse::Error>(error));
      out.set_processed(processed);
      out.set_processing_ns(processing_ns);
      fill_list(out.init_result(uint32_t(result.size())), result);
    });
    CHECK(from_view == from_official);
    read_by_view<messages::view::VectorAddResponse>(from_view, [&](auto in) {
      CHECK(in.success() == success);
      CHECK(bits(in.error()) == bits(error));
      CHECK(in.processed() == processed);
      CHECK(in.processing_ns() == processing_ns);
      CHECK(equal(in.result(), result));
    });
  }
}

TEST_CASE("Echo messages read the same on both sides, whoever built them") {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    const auto payload = random_list<uint64_t>(random);
    const auto sequence = random_value<uint64_t>(random);
    const auto officially = [&](auto out) {
      out.setSequence(sequence);
      fill_list(out.initPayload(uint32_t(payload.size())), payload);
    };
    const auto by_view = [&](auto out) {
      out.set_sequence(sequence);
      fill_list(out.init_payload(uint32_t(payload.size())), payload);
    };
    const Words from_view = view_body<messages::view::EchoRequest>(by_view);
    CHECK(from_view == official_body<messages::EchoRequest>(officially));
    CHECK(from_view == view_body<messages::view::EchoResponse>(by_view));
    read_by_view<messages::view::EchoResponse>(from_view, [&](auto in) {
      CHECK(in.sequence() == sequence);
      CHECK(equal(in.payload(), payload));
    });
    read_officially<messages::EchoRequest>(from_view, [&](auto in) {
      CHECK(in.getSequence() == sequence);
      CHECK(equal(in.getPayload(), payload));
    });
  }
}

TEST_CASE("Every kind of field reads the same on both sides, whoever built it") {
  Random random(4);
  for (int round = 0; round < 100; ++round) {
    const KindsValues values(random);
    const Words from_official = official_body<kinds::Kinds>([&](auto out) { values.fill(out); });
    const Words from_view = view_body<kinds::view::Kinds>([&](auto out) { values.fill(out); });
    CHECK(from_view == from_official);
    read_by_view<kinds::view::Kinds>(from_official, [&](auto in) { values.check(in); });
    read_by_view<kinds::view::Kinds>(from_view, [&](auto in) { values.check(in); });
    read_officially<kinds::Kinds>(from_view, [&](auto in) { values.check(in); });
  }
}

TEST_CASE("Fields that nobody set read as their defaults") {
  const Words official = official_body<kinds::Kinds>([](auto) {});
  const Words nothing_set = view_body<kinds::view::Kinds>([](auto) {});
  const Words empty_struct = view_body<kinds::view::Empty>([](auto) {});
  const Words null_root = {0};
  CHECK(nothing_set == official);
  CHECK(empty_struct == official_body<kinds::Empty>([](auto) {}));
  for (const Words& words : {nothing_set, empty_struct, null_root}) {
    read_by_view<kinds::view::Kinds>(words, [&](auto view) {
      read_officially<kinds::Kinds>(official, [&](auto expected) { check_same(view, expected); });
      CHECK(view.i64_default() == INT64_MIN);
      CHECK(view.colour_default() == kinds::enums::view::Palette::Colour::default_);
      CHECK(view.f32s().size() == 0);
    });
  }
  const Words nested = view_body<kinds::view::Kinds::Nested>([](auto) {});
  read_by_view<kinds::view::Kinds::Nested>(nested, [](auto in) {
    CHECK(in.own() == kinds::view::Kinds::Nested::Shade::deep);
    CHECK(in.outer() == kinds::view::Shade::dark);
  });
}

TEST_CASE("A struct of an older schema reads with defaults for what it lacks") {
  Random random(5);
  const auto i8 = random_value<int8_t>(random);
  const auto i16 = random_value<int16_t>(random);
  const Words words = view_body<kinds::old::view::Kinds>([&](auto out) {
    out.set_boolean_default(false);
    out.set_i8(i8);
    out.set_i16_default(i16);
  });
  read_by_view<kinds::view::Kinds>(words, [&](auto in) {
    CHECK_FALSE(in.boolean_default());
    CHECK(in.i8() == i8);
    CHECK(in.i16_default() == i16);
    CHECK(in.u8_default() == 255);
    CHECK(in.f64_default() == 1e-300);
    CHECK(in.u64s().size() == 0);
  });
}

TEST_CASE("A struct with a data section of any length reads as the official class reads it") {
  Random random(10);
  for (uint64_t data_words = 0; data_words <= kinds::view::Kinds::data_words; ++data_words) {
    Words words(1 + data_words);
    for (uint64_t& word : words) word = random();
    words[0] = struct_pointer(0, data_words, 0);
    read_by_view<kinds::view::Kinds>(words, [&](auto view) {
      read_officially<kinds::Kinds>(words, [&](auto official) { check_same(view, official); });
    });
  }
}

TEST_CASE("A struct of a newer schema reads, its unknown fields ignored") {
  Random random(6);
  const KindsValues values(random);
  const Words words = view_body<kinds::view::Kinds>([&](auto out) { values.fill(out); });
  read_by_view<kinds::old::view::Kinds>(words, [&](auto in) {
    CHECK(in.boolean() == values.boolean);
    CHECK(in.boolean_default() == values.boolean_default);
    CHECK(in.i8_default() == values.i8_default);
    CHECK(in.i16_default() == values.i16_default);
  });
}

TEST_CASE("An enum value that the schema does not know reads as its number") {
  Words words = request_with_a(0);
  words[1] = 777;
  read_by_view<messages::view::VectorAddRequest>(words,
                                                 [](auto in) { CHECK(uint16_t(in.operation()) == 777); });
}

TEST_CASE("A list element that is not there reads as zero, without a failure") {
  const Words words = request_with_a(list_pointer(1, 4, 3));
  read_by_view<messages::view::VectorAddRequest>(words, [](auto in) {
    CHECK(in.a()[2] == 1.0f);
    CHECK(in.a()[3] == 0.0f);
    CHECK(in.a()[0xffffffff] == 0.0f);
  });
}

TEST_CASE("A body without a root struct is malformed and reads as an empty struct") {
  const std::vector<Words> bodies = {
      {},                                         // no word at all
      {list_pointer(0, 4, 0)},                    // a list
      {2 | 1ull << 32},                           // a far pointer
      {6 | 1ull << 32},                           // a far pointer with a landing pad of two words
      {3},                                        // a capability
      {struct_pointer(0, 1, 0)},                  // one word past the end
      {struct_pointer(0, 0xffff, 0xffff), 0, 0},  // far past the end
      {struct_pointer(-2, 1, 0), 0},              // before the beginning
      {struct_pointer(-0x20000000, 0, 0), 0},     // the lowest offset
      {struct_pointer(0x1fffffff, 0, 0), 0},      // the highest
  };
  for (const Words& words : bodies) {
    wire::Message message(words.data(), size_in_bytes(words));
    const auto in = view_of<kinds::view::Kinds>(message);
    CHECK(message.failed());
    CHECK(message.failed_word() == 0);
    CHECK(in.i16_default() == -12345);
    CHECK(in.boolean_default());
    CHECK(in.f64s().size() == 0);
  }
}

TEST_CASE("A list pointer that is not what the schema says, or leaves the body, is refused") {
  check_refused(request_with_a(2));                        // a far pointer
  check_refused(request_with_a(3));                        // a capability
  check_refused(request_with_a(struct_pointer(1, 1, 0)));  // a struct
  for (uint64_t code : {0, 1, 2, 3, 5, 6, 7}) {            // elements that are not 4 bytes
    check_refused(request_with_a(list_pointer(1, code, 1)));
  }
  check_refused(request_with_a(list_pointer(1, 4, 5)));            // one element too many
  check_refused(request_with_a(list_pointer(2, 4, 3)));            // one word too far
  check_refused(request_with_a(list_pointer(-4, 4, 1)));           // before the beginning
  check_refused(request_with_a(list_pointer(-0x20000000, 4, 1)));  // the lowest offset
  check_refused(request_with_a(list_pointer(0x1fffffff, 4, 1)));   // the highest
  check_refused(request_with_a(list_pointer(0x1fffffff, 4, 0x1fffffff)));
  for (uint64_t size : {0x1fffffff, 0x1ffffffe, 0x10000000, 0x0fffffff}) {
    check_refused(request_with_a(list_pointer(1, 4, size)));
    check_refused(request_with_a(list_pointer(-3, 4, size)));
  }
}

TEST_CASE("A message remembers the first of its malformed pointers") {
  Words words = request_with_a(2);
  words[3] = 2;
  wire::Message message(words.data(), size_in_bytes(words));
  const auto in = view_of<messages::view::VectorAddRequest>(message);
  CHECK(in.b().size() == 0);
  CHECK(in.a().size() == 0);
  CHECK(message.failed_word() == 3);
}

TEST_CASE("A negative offset that stays in the body is followed") {
  const Words words = request_with_a(list_pointer(-3, 4, 2));  // the root pointer, read as floats
  read_by_view<messages::view::VectorAddRequest>(words, [&](auto in) {
    REQUIRE(in.a().size() == 2);
    CHECK(bits(in.a()[0]) == (words[0] & 0xffffffff));
  });
}

TEST_CASE("A body cut off at any byte never reads past its end") {
  Random random(7);
  const KindsValues values(random);
  const Words whole = view_body<kinds::view::Kinds>([&](auto out) { values.fill(out); });
  uint64_t total = 0;
  for (uint32_t bytes = 0; bytes < size_in_bytes(whole); ++bytes) {
    const Words cut(whole.begin(), whole.begin() + bytes / 8);
    wire::Message message(cut.data(), bytes);  // the odd bytes do not exist: they must not be looked at
    total += sum(view_of<kinds::view::Kinds>(message));
    CHECK(message.failed());
  }
  CHECK(total != 0);
}

TEST_CASE(
    "Bytes changed at random never crash a view, and what it accepts it reads as the official class does") {
  Random random(8);
  const KindsValues values(random);
  const Words whole = view_body<kinds::view::Kinds>([&](auto out) { values.fill(out); });
  const size_t pointer_words = 1 + kinds::view::Kinds::data_words + kinds::view::Kinds::pointers;
  uint64_t total = 0;
  int accepted = 0, failed = 0;
  for (int round = 0; round < 100000; ++round) {
    Words words = whole;
    for (uint64_t change = 0, changes = 1 + random() % 4; change < changes; ++change) {
      const size_t reach = (random() & 1) != 0 ? pointer_words * 8 : words.size() * 8;
      const size_t place = random() % reach;
      reinterpret_cast<uint8_t*>(words.data())[place] = uint8_t(random());
    }
    if (random() % 8 == 0) words.resize(random() % words.size());
    wire::Message message(words.data(), size_in_bytes(words));
    const auto view = view_of<kinds::view::Kinds>(message);
    total += sum(view);
    ++(message.failed() ? failed : accepted);
    if (message.failed()) {
      CHECK(message.failed_word() < (words.empty() ? 1 : words.size()));
    } else if (round % 16 == 0) {
      read_officially<kinds::Kinds>(words, [&](auto official) { check_same(view, official); });
    }
  }
  CHECK(total != 0);
  CHECK(accepted > 1000);
  CHECK(failed > 1000);
}

TEST_CASE("A body too small for what is built is full, and nothing is written past it") {
  Random random(9);
  const KindsValues values(random);
  const size_t needed = view_body<kinds::view::Kinds>([&](auto out) { values.fill(out); }).size();
  for (size_t capacity = 0; capacity <= needed + 1; ++capacity) {
    Words words(capacity);
    wire::Body body(words.data(), size_in_bytes(words));
    values.fill(new_view<kinds::view::Kinds>(body));
    CHECK(body.full() == (capacity < needed));
    CHECK(body.used_bytes() <= size_in_bytes(words));
    wire::Message message(words.data(), body.used_bytes());
    sum(view_of<kinds::view::Kinds>(message));
    CHECK(message.failed() == (capacity == 0));  // what was allocated is well formed all the same
  }
}

TEST_CASE("A list of any size either fits or makes the body full") {
  for (uint32_t size : {17u, 0x0fffffffu, 0x1fffffffu, 0x20000000u, 0x20000001u, 0x40000000u, 0xffffffffu}) {
    Words words(16);
    wire::Body body(words.data(), size_in_bytes(words));
    auto out = new_view<messages::view::EchoResponse>(body);
    const auto list = out.init_payload(size);
    CHECK(list.size() == 0);
    CHECK(list.data() == nullptr);
    list.set(0, 1);
    CHECK(body.full());
    CHECK(out.init_payload(0).size() == 0);
    CHECK(body.full());
  }
  Words words(16);
  wire::Body body(words.data(), size_in_bytes(words));
  CHECK(new_view<messages::view::EchoResponse>(body).init_payload(13).size() == 13);
  CHECK(body.used_bytes() == 128);
  CHECK_FALSE(body.full());
}

TEST_CASE("A list has at most 2^29 - 1 elements, however large the body") {
  Words words(2);
  wire::Body body(words.data(), 0xffffffff);  // more than there is: no element is set
  const auto root = body.init_root(0, 1);
  CHECK(root.init_list<uint8_t>(0, 0x1fffffff).size() == 0x1fffffff);
  CHECK_FALSE(body.full());
  CHECK(root.init_list<uint8_t>(0, 0x20000000).size() == 0);
  CHECK(body.full());
}

TEST_CASE("A list initialised twice is the second one, all zero") {
  const Words words = view_body<messages::view::EchoResponse>([](auto out) {
    auto first = out.init_payload(4);
    for (uint32_t i = 0; i < 4; ++i) first.set(i, ~0ull);
    out.init_payload(3).set(2, 5);
    first.set(3, 7);
  });
  const std::vector<uint64_t> expected = {0, 0, 5};
  read_by_view<messages::view::EchoResponse>(words, [&](auto in) { CHECK(equal(in.payload(), expected)); });
  read_officially<messages::EchoResponse>(words, [&](auto in) { CHECK(equal(in.getPayload(), expected)); });
}

TEST_CASE("A root initialised twice is the second one, all zero") {
  Words words(64);
  wire::Body body(words.data(), size_in_bytes(words));
  new_view<messages::view::EchoResponse>(body).set_sequence(3);
  new_view<messages::view::EchoResponse>(body).init_payload(2).set(1, 9);
  wire::Message message(words.data(), body.used_bytes());
  const auto in = view_of<messages::view::EchoResponse>(message);
  CHECK(in.sequence() == 0);
  CHECK(equal(in.payload(), std::vector<uint64_t>{0, 9}));
}

TEST_CASE("Bools that share a byte are set and cleared without touching each other") {
  const Words words = view_body<kinds::view::Kinds>([](auto out) {
    out.set_flag(true);
    out.set_boolean(true);
    out.set_boolean_default(false);
    out.set_boolean(false);
    out.set_boolean_default(true);
    out.set_boolean_default(false);
  });
  read_by_view<kinds::view::Kinds>(words, [](auto in) {
    CHECK(in.flag());
    CHECK_FALSE(in.boolean());
    CHECK_FALSE(in.boolean_default());
    CHECK(in.i8() == 0);
  });
}

TEST_CASE("Each view is paired with its official class") {
  STATIC_REQUIRE(std::is_same_v<gyre::OfficialOf<kinds::view::Kinds::Nested>::type, kinds::Kinds::Nested>);
  STATIC_REQUIRE(std::is_same_v<gyre::ViewOf<messages::EchoRequest>::type, messages::view::EchoRequest>);
  CHECK(messages::view::EchoRequest::type_name == std::string("EchoRequest"));
  CHECK(kinds::view::Kinds::Nested::type_name == std::string("Kinds.Nested"));
}
