// Calls at random of a view's builder, in a body of any capacity, and the same calls of the official builder.
// Nothing is written past what is used (the address sanitizer watches the capacity's end), reading it ends,
// and unless the body is full it is well formed and says what the official builder's message says.
//
// An input is the capacity, two bytes, and then the calls with what they set.
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <type_traits>

#include "tests/fuzz/walks.hpp"

using namespace gyre_fuzz;
namespace wire = gyre::wire;
namespace kinds = gyre::test::view;
using capnp::DynamicEnum;
using capnp::DynamicList;
using capnp::DynamicStruct;
using capnp::DynamicValue;

namespace {

/// The input, and zeros behind it.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }

  template <class T>
  T take() {
    T value{};
    const size_t bytes = size_ < sizeof value ? size_ : sizeof value;
    std::memcpy(&value, data_, bytes);
    data_ += bytes;
    size_ -= bytes;
    if constexpr (std::is_floating_point_v<T>) {
      if (value != value) return std::numeric_limits<T>::quiet_NaN();  // Dynamic… change the other NaNs
    }
    return value;
  }
  uint32_t below(uint32_t end) { return (end <= 256 ? take<uint8_t>() : take<uint32_t>()) % end; }
  /// Small for the most part, and sometimes more than any body of a fuzzer has.
  uint32_t size() {
    const uint8_t kind = take<uint8_t>();
    if (kind < 200) return kind % 12;
    if (kind < 250) return take<uint16_t>() % 1500;
    const uint32_t sizes[] = {0x1ffffffe, 0x1fffffff, 0x20000000, 0x3fffffff, 0x80000000, 0xffffffff};
    return sizes[kind - 250];
  }

 private:
  const uint8_t* data_;
  size_t size_;
};
template <>
bool Input::take<bool>() {
  return (take<uint8_t>() & 1) != 0;
}

capnp::StructSchema::Field field_of(capnp::StructSchema schema, const std::string& name) {
  static std::map<uint64_t, std::map<std::string, capnp::StructSchema::Field>> known;
  auto& fields = known[schema.getProto().getId()];
  if (fields.empty()) {
    for (const auto field : schema.getFields())
      fields.emplace(gyre::compiler::title_case(field.getProto().getName().cStr()), field);
  }
  return fields.at(name);
}

template <class T>
DynamicValue::Reader dynamic(capnp::Type type, T value) {
  if constexpr (std::is_enum_v<T>)
    return DynamicEnum(type.asEnum(), uint16_t(value));
  else
    return value;
}

/// Makes the same calls of both builders, as the input says.
class Calls {
 public:
  Calls(Input& in, const wire::Body& body) : in_(in), body_(body) {}

#define GYRE_FUZZ_SET(name)                                                                    \
  if (chosen == n++) {                                                                         \
    using Reader = typename decltype(view)::Builds::Reader;                                    \
    const auto value = in_.take<std::decay_t<decltype(std::declval<Reader>().get##name())>>(); \
    view.set##name(value);                                                                     \
    return set(official, #name, value);                                                        \
  }
#define GYRE_FUZZ_INIT(name)                                         \
  if (chosen == n++) {                                               \
    const uint32_t size = in_.size();                                \
    return fill(view.init##name(size), init(official, #name, size)); \
  }
#define GYRE_FUZZ_INIT_STRUCT(name)                                           \
  if (chosen == n++) {                                                        \
    const auto field = field_of(official.getSchema(), #name);                 \
    return fill(view.init##name(), official.init(field).as<DynamicStruct>()); \
  }
  // Of a group: it stays as it is if the union holds it.
#define GYRE_FUZZ_INIT_GROUP(name)                                                    \
  if (chosen == n++) {                                                                \
    const auto field = field_of(official.getSchema(), #name);                         \
    auto group = holds(official, field) ? official.get(field) : official.init(field); \
    return fill(view.init##name(), group.as<DynamicStruct>());                        \
  }
#define GYRE_FUZZ_GROUP(name)                                                                               \
  if (chosen == n++) {                                                                                      \
    return fill(view.get##name(), official.get(field_of(official.getSchema(), #name)).as<DynamicStruct>()); \
  }

  void call(kinds::Kinds::Builder view, DynamicStruct::Builder official) {
    const uint32_t chosen = in_.below(90);
    uint32_t n = 0;
    GYRE_TEST_KINDS_VALUES(GYRE_FUZZ_SET)
    GYRE_TEST_KINDS_LISTS(GYRE_FUZZ_INIT)
    GYRE_TEST_KINDS_MORE_LISTS(GYRE_FUZZ_INIT)
    GYRE_TEST_KINDS_OBJECTS(GYRE_FUZZ_INIT_STRUCT)
    GYRE_FUZZ_SET(AnHTTPCode)
    GYRE_FUZZ_SET(Flag)
    GYRE_FUZZ_GROUP(Place)
    GYRE_FUZZ_GROUP(Shape)
    GYRE_FUZZ_SET(Number)
    GYRE_FUZZ_INIT(Word)
    GYRE_FUZZ_INIT_GROUP(Pair)
    GYRE_FUZZ_INIT(Trees)
    GYRE_FUZZ_INIT(Bytes)
    if (chosen == n++) {
      view.setUnset();
      return official.set("unset", capnp::VOID);
    }
    if (chosen == n++) {
      view.setText("a literal");
      return official.set("text", "a literal");
    }
    const auto value = in_.take<int32_t>();
    view.setInt(value);
    official.set("int", value);
  }

 private:
  void call(kinds::Point::Builder view, DynamicStruct::Builder official) {
    const uint32_t chosen = in_.below(3);
    uint32_t n = 0;
    GYRE_FUZZ_SET(X)
    GYRE_FUZZ_SET(Y)
    GYRE_FUZZ_INIT(Label)
  }
  void call(kinds::Tree::Builder view, DynamicStruct::Builder official) {
    const uint32_t chosen = in_.below(3);
    uint32_t n = 0;
    GYRE_FUZZ_SET(Value)
    GYRE_FUZZ_INIT_STRUCT(Left)
    GYRE_FUZZ_INIT(Children)
  }
  void call(gyre::test::enums::view::Swatch::Builder view, DynamicStruct::Builder official) {
    const uint32_t chosen = in_.below(2);
    uint32_t n = 0;
    GYRE_FUZZ_SET(Colour)
    GYRE_FUZZ_INIT(Name)
  }
  void call(kinds::Kinds::Place::View::Builder view, DynamicStruct::Builder official) {
    const uint32_t chosen = in_.below(2);
    uint32_t n = 0;
    GYRE_FUZZ_SET(Folded)
    GYRE_FUZZ_SET(Colour)
  }
  void call(kinds::Kinds::Place::Builder view, DynamicStruct::Builder official) {
    const uint32_t chosen = in_.below(4);
    uint32_t n = 0;
    GYRE_FUZZ_SET(Line)
    GYRE_FUZZ_SET(Column)
    GYRE_FUZZ_INIT(File)
    GYRE_FUZZ_GROUP(View)
  }
  void call(kinds::Kinds::Shape::Box::Corner::Builder view, DynamicStruct::Builder official) {
    const uint32_t chosen = in_.below(2);
    uint32_t n = 0;
    GYRE_FUZZ_SET(Radius)
    view.setSharp();
    official.set("sharp", capnp::VOID);
  }
  void call(kinds::Kinds::Shape::Box::Builder view, DynamicStruct::Builder official) {
    const uint32_t chosen = in_.below(5);
    uint32_t n = 0;
    GYRE_FUZZ_SET(Width)
    GYRE_FUZZ_SET(Height)
    GYRE_FUZZ_INIT(Tags)
    GYRE_FUZZ_SET(Open)
    GYRE_FUZZ_GROUP(Corner)
  }
  void call(kinds::Kinds::Shape::Builder view, DynamicStruct::Builder official) {
    const uint32_t chosen = in_.below(7);
    uint32_t n = 0;
    GYRE_FUZZ_SET(Circle)
    GYRE_FUZZ_INIT(Caption)
    GYRE_FUZZ_INIT_GROUP(Box)
    GYRE_FUZZ_INIT(Corners)
    GYRE_FUZZ_INIT_STRUCT(Centre)
    GYRE_FUZZ_SET(Filled)
    view.setNone();
    official.set("none", capnp::VOID);
  }
  void call(kinds::Kinds::Pair::Builder view, DynamicStruct::Builder official) {
    const uint32_t chosen = in_.below(2);
    uint32_t n = 0;
    GYRE_FUZZ_SET(First)
    GYRE_FUZZ_SET(Second)
  }

#undef GYRE_FUZZ_SET
#undef GYRE_FUZZ_INIT
#undef GYRE_FUZZ_INIT_STRUCT
#undef GYRE_FUZZ_INIT_GROUP
#undef GYRE_FUZZ_GROUP

  template <class StructBuilder>
  void fill(StructBuilder view, DynamicStruct::Builder official) {
    if (depth_ == 16) return;  // messages may not be nested deeper than 64
    ++depth_;
    for (uint32_t count = in_.below(5); count != 0 && !body_.full(); --count) call(view, official);
    --depth_;
  }
  void fill(wire::TextBuilder view, DynamicValue::Builder official) {
    if (!was_made(official)) return;
    auto text = official.as<capnp::Text>();
    for (uint32_t count = in_.below(4); count != 0; --count) {
      const uint32_t i = in_.below(text.size() + 2);
      const auto letter = in_.take<char>();
      view.set(i, letter);
      if (i < text.size()) text[i] = letter;
    }
  }
  template <class T>
  void fill(wire::ListBuilder<T> view, DynamicValue::Builder official) {
    if (!was_made(official)) return;
    if constexpr (wire::is_same<T, uint8_t>) {
      if (official.getType() == DynamicValue::DATA) return fill_data(view, official.as<capnp::Data>());
    }
    auto list = official.as<DynamicList>();
    for (uint32_t count = in_.below(5); count != 0 && !body_.full(); --count)
      fill_element(view, list, in_.below(list.size() + 2));
  }
  void fill_data(wire::Data::Builder view, capnp::Data::Builder data) {
    for (uint32_t count = in_.below(4); count != 0; --count) {
      const uint32_t i = in_.below(uint32_t(data.size()) + 2);
      const auto byte = in_.take<uint8_t>();
      view.set(i, byte);
      if (i < data.size()) data[i] = byte;
    }
  }
  // One that is not there has no elements, and takes none.
  template <class T>
  void fill_element(wire::ListBuilder<T> view, DynamicList::Builder list, uint32_t i) {
    const bool there = i < list.size();
    if constexpr (wire::Scalar<T> || wire::is_bool<T>) {
      const auto value = in_.take<T>();
      view.set(i, value);
      if (there) list.set(i, dynamic(list.getSchema().getElementType(), value));
    } else if constexpr (wire::Struct<T>) {
      const auto element = view[i];
      if (there) fill(element, list[i].template as<DynamicStruct>());
    } else if constexpr (wire::Blob<T>) {
      const uint32_t size = in_.size();
      const auto element = view.init(i, size);
      if (there)
        fill(element, fits_nowhere(list.getSchema().getElementType(), size) ? nothing() : list.init(i, size));
      else if (element.size() != 0)
        found("element ", i, " of ", list.size(), " has ", element.size());
    }
  }

  template <class T>
  static void set(DynamicStruct::Builder official, const char* name, T value) {
    const auto field = field_of(official.getSchema(), name);
    official.set(field, dynamic(field.getType(), value));
  }
  static DynamicValue::Builder init(DynamicStruct::Builder official, const char* name, uint32_t size) {
    const auto field = field_of(official.getSchema(), name);
    if (fits_nowhere(field.getType(), size)) return nothing();
    return official.init(field, size);
  }
  static bool holds(DynamicStruct::Builder official, capnp::StructSchema::Field field) {
    KJ_IF_MAYBE (held, official.which()) {
      return *held == field;
    }
    return false;
  }
  // More than a fuzzer's body may hold, so that the official builder is not asked for it.
  static bool fits_nowhere(capnp::Type type, uint32_t size) {
    const bool voids = type.isList() && type.asList().getElementType().isVoid();
    return size > (voids ? wire::Pointer::max_list_size : 2048);
  }
  static DynamicValue::Builder nothing() { return {}; }
  bool was_made(const DynamicValue::Builder& official) const {
    const bool made = const_cast<DynamicValue::Builder&>(official).getType() != DynamicValue::UNKNOWN;
    if (!made && !body_.full()) found("there was room for what is larger than the body");
    return made;
  }

  Input& in_;
  const wire::Body& body_;
  int depth_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WithoutTraces without_traces;
  Input in(data, size);
  const size_t capacity = in.take<uint16_t>() % 4096;
  const std::unique_ptr<uint64_t[]> words(new uint64_t[capacity]());  // no byte more
  wire::Body body(words.get(), uint32_t(capacity * 8));
  kinds::Kinds::Builder view(body.init_root(kinds::Kinds::data_words, kinds::Kinds::pointers));
  capnp::MallocMessageBuilder official;
  auto root = official.initRoot<gyre::test::Kinds>();
  Calls calls(in, body);
  for (int when_full = 0; !in.empty() && when_full < 8; when_full += body.full() ? 1 : 0)
    calls.call(view, root);

  const size_t used = body.used_bytes() / 8;
  if (used > capacity) found(used, " words used of ", capacity);
  for (size_t i = used; i < capacity; ++i) {
    if (words[i] != 0) found("word ", i, " is written, and ", used, " are used");
  }
  wire::Message message(words.get(), body.used_bytes(), ~uint64_t(0));
  const std::string text = gyre_test::view_text(kinds::Kinds::Reader(message.root(kinds::Kinds::type_id)));
  if (body.full()) return 0;  // a union may hold a member that did not fit, and another's pointer
  if (message.failed()) found("what was built is malformed: ", int(message.reason()));
  const Opinion opinion = official_opinion<gyre::test::Kinds>(words.get(), used, ~uint64_t(0) >> 1);
  if (opinion.refused) found("the official library refuses what was built: ", opinion.why);
  const std::string wanted = gyre_test::official_text(root.asReader());
  if (opinion.text != wanted) found("built differently: ", gyre_test::difference(opinion.text, wanted));
  if (text != wanted) found("read differently: ", gyre_test::difference(text, wanted));
  return 0;
}
