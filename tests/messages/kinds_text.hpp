// What a message says, field by field, as text: by the official library's reflection, and by the views. The
// two are equal where both read the same.
#pragma once

#include <capnp/dynamic.h>
#include <gyre/messages/view.hpp>

#include <charconv>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "messages/compiler/names.hpp"
#include "support/actors/mirror.hpp"
#include "tests/messages/kinds_old.view.hpp"

namespace gyre_test {

/// Values behind one another: numbers by their bits, so that any two NaNs differ as they should.
class Text {
 public:
  Text() = default;
  /// Notes how long the text is when `watched` fails.
  explicit Text(const wire::Message& watched) : watched_(&watched) {}

  void name(const char* name) {
    text() += name;
    text_ += '=';
  }
  void number(uint64_t bits) {
    char digits[20];
    char* const end = std::to_chars(digits, digits + sizeof digits - 1, bits, 16).ptr;
    *end = ' ';
    text().append(digits, size_t(end + 1 - digits));
  }
  void bytes(const char* bytes, size_t size) {
    number(size);
    text_.append(bytes, size);
  }
  void open() { text() += '('; }
  void close() { text() += ')'; }
  std::string take() {
    text();
    return std::move(text_);
  }
  /// Length of the text when the message failed; npos where it has not.
  size_t failed_at() const { return failed_at_; }

 protected:
  template <class T>
  void bits_of(T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    number(bits);
  }

 private:
  // To append to.
  std::string& text() {
    if (watched_ != nullptr && failed_at_ == std::string::npos && watched_->failed())
      failed_at_ = text_.size();
    return text_;
  }

  std::string text_;
  const wire::Message* watched_ = nullptr;
  size_t failed_at_ = std::string::npos;
};

class OfficialText : public Text {
 public:
  void say(capnp::DynamicStruct::Reader in) {
    open();
    const auto schema = in.getSchema();
    const auto fields = schema.getFields();
    const auto& names = names_of(schema);
    KJ_IF_MAYBE (held, in.which()) {
      name("which");
      number(held->getProto().getDiscriminantValue());
    } else if (schema.getUnionFields().size() != 0) {
      name("which unknown");
    }
    for (uint32_t i = 0; i < fields.size(); ++i) {
      const auto field = fields[i];
      if (field.getType().isVoid() || !holds(in, field)) continue;
      name(names[i].c_str());
      const bool slot = field.getProto().isSlot();
      if (slot && is_pointer(field.getType())) number(in.has(field) ? 1 : 0);
      if (slot && field.getType().isStruct() && !in.has(field)) continue;  // it may have itself as a field
      say(in.get(field));
    }
    close();
  }

  void say(const capnp::DynamicValue::Reader& value) {
    switch (value.getType()) {
      case capnp::DynamicValue::BOOL:
        return number(value.as<bool>() ? 1 : 0);
      case capnp::DynamicValue::INT:
        return number(uint64_t(value.as<int64_t>()));
      case capnp::DynamicValue::UINT:
        return number(value.as<uint64_t>());
      case capnp::DynamicValue::FLOAT:
        return bits_of(value.as<double>());
      case capnp::DynamicValue::ENUM:
        return number(value.as<capnp::DynamicEnum>().getRaw());
      case capnp::DynamicValue::TEXT: {
        const auto text = value.as<capnp::Text>();
        return bytes(text.begin(), text.size());
      }
      case capnp::DynamicValue::DATA: {
        const auto data = value.as<capnp::Data>();
        return bytes(reinterpret_cast<const char*>(data.begin()), data.size());
      }
      case capnp::DynamicValue::LIST: {
        const auto list = value.as<capnp::DynamicList>();
        number(list.size());
        open();
        const bool voids = list.getSchema().getElementType().isVoid();
        for (uint32_t i = 0; i < list.size() && !voids; ++i) say(list[i]);
        return close();
      }
      case capnp::DynamicValue::STRUCT:
        return say(value.as<capnp::DynamicStruct>());
      default:
        return;
    }
  }

 private:
  static bool is_pointer(capnp::Type type) {
    return type.isText() || type.isData() || type.isList() || type.isStruct();
  }
  static bool holds(capnp::DynamicStruct::Reader in, capnp::StructSchema::Field field) {
    if (field.getProto().getDiscriminantValue() == capnp::schema::Field::NO_DISCRIMINANT) return true;
    KJ_IF_MAYBE (held, in.which()) {
      return *held == field;
    }
    return false;
  }
  static const std::vector<std::string>& names_of(capnp::StructSchema schema) {
    static std::map<uint64_t, std::vector<std::string>> known;
    std::vector<std::string>& names = known[schema.getProto().getId()];
    if (names.empty()) {
      for (const auto field : schema.getFields())
        names.push_back(gyre::compiler::title_case(field.getProto().getName().cStr()));
    }
    return names;
  }
};

class ViewText : public Text {
 public:
  using Text::Text;

  void say(bool value) { number(value ? 1 : 0); }
  template <wire::Scalar T>
  void say(T value) {
    if constexpr (std::is_enum_v<T>)
      number(uint64_t(value));
    else if constexpr (std::is_floating_point_v<T>)
      bits_of(double(value));
    else
      number(uint64_t(value));
  }
  void say(wire::Text::Reader text) { bytes(text.data(), text.size()); }
  void say(wire::Data::Reader data) { bytes(reinterpret_cast<const char*>(data.data()), data.size()); }

  /// A list; not a Data, which is the same class as a List(UInt8).
  template <class T>
  void list(wire::ListReader<T> list) {
    number(list.size());
    open();
    if constexpr (!wire::is_same<T, wire::Void>) {
      for (uint32_t i = 0; i < list.size(); ++i) {
        if constexpr (wire::is_list<T>)
          this->list(list[i]);
        else if constexpr (wire::Scalar<T>)
          say(list.data() != nullptr ? list.data()[i] : list[i]);
        else
          say(list[i]);
      }
    }
    close();
  }

#define GYRE_TEST_SAY_VALUE(field) \
  name(#field);                    \
  say(in.get##field());
#define GYRE_TEST_SAY_BYTES(field) \
  name(#field);                    \
  number(in.has##field() ? 1 : 0); \
  say(in.get##field());
#define GYRE_TEST_SAY_OBJECT(field) \
  name(#field);                     \
  number(in.has##field() ? 1 : 0);  \
  if (in.has##field()) say(in.get##field());
#define GYRE_TEST_SAY_LIST(field)  \
  name(#field);                    \
  number(in.has##field() ? 1 : 0); \
  list(in.get##field());
#define GYRE_TEST_SAY_SIZED(field) \
  name(#field);                    \
  number(in.has##field() ? 1 : 0); \
  sized(#field, in.get##field());

  void say(kinds::Point::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(X)
    GYRE_TEST_SAY_VALUE(Y)
    GYRE_TEST_SAY_BYTES(Label)
    close();
  }
  void say(kinds::Tree::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(Value)
    GYRE_TEST_SAY_OBJECT(Left)
    GYRE_TEST_SAY_LIST(Children)
    close();
  }
  void say(gyre::test::enums::view::Swatch::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(Colour)
    GYRE_TEST_SAY_BYTES(Name)
    close();
  }
  void say(kinds::Ping::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(Rally)
    GYRE_TEST_SAY_OBJECT(Pong)
    name("End");
    open();
    which(in.getEnd().which(), 2);
    if (in.getEnd().which() == kinds::Ping::End::LOST) {
      const auto end = in.getEnd();
      name("Lost");
      number(end.hasLost() ? 1 : 0);
      if (end.hasLost()) say(end.getLost());
    }
    close();
    close();
  }
  void say(kinds::Pong::Reader in) {
    open();
    GYRE_TEST_SAY_OBJECT(Ping)
    close();
  }
  void say(kinds::Evolved::Number::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(Value)
    GYRE_TEST_SAY_BYTES(Note)
    close();
  }
  void say(kinds::Evolved::Name::Reader in) {
    open();
    GYRE_TEST_SAY_BYTES(Text)
    GYRE_TEST_SAY_VALUE(Rank)
    close();
  }
  void say(kinds::Evolved::Row::Reader in) {
    open();
    GYRE_TEST_SAY_LIST(Cells)
    GYRE_TEST_SAY_VALUE(Height)
    close();
  }
  void say(kinds::Evolved::Place::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(X)
    GYRE_TEST_SAY_VALUE(Y)
    GYRE_TEST_SAY_BYTES(Label)
    GYRE_TEST_SAY_LIST(Notes)
    close();
  }
  void say(kinds::Evolved::Choice::Reader in) {
    using Which = kinds::Evolved::Choice::Which;
    open();
    which(in.which(), 2);
    if (in.which() == Which::PLAIN) {
      GYRE_TEST_SAY_VALUE(Plain)
    }
    if (in.which() == Which::RICH) {
      GYRE_TEST_SAY_OBJECT(Rich)
    }
    close();
  }
  void say(kinds::Evolved::Reader in) {
    open();
    GYRE_TEST_SAY_LIST(Numbers)
    GYRE_TEST_SAY_LIST(Names)
    GYRE_TEST_SAY_LIST(Rows)
    GYRE_TEST_SAY_LIST(Places)
    GYRE_TEST_SAY_OBJECT(Place)
    GYRE_TEST_SAY_VALUE(Choice)
    GYRE_TEST_SAY_BYTES(Added)
    close();
  }
  void say(gyre::test::old::view::Evolved::Place::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(X)
    close();
  }
  void say(gyre::test::old::view::Evolved::Choice::Reader in) {
    using Which = gyre::test::old::view::Evolved::Choice::Which;
    open();
    which(in.which(), 2);
    if (in.which() == Which::PLAIN) {
      GYRE_TEST_SAY_VALUE(Plain)
    }
    close();
  }
  void say(gyre::test::old::view::Evolved::Reader in) {
    open();
    GYRE_TEST_SAY_LIST(Numbers)
    GYRE_TEST_SAY_LIST(Names)
    GYRE_TEST_SAY_LIST(Rows)
    GYRE_TEST_SAY_LIST(Places)
    GYRE_TEST_SAY_OBJECT(Place)
    GYRE_TEST_SAY_VALUE(Choice)
    close();
  }
  void say(gyre::test::old::view::Kinds::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(Boolean)
    GYRE_TEST_SAY_VALUE(BooleanDefault)
    GYRE_TEST_SAY_VALUE(I8)
    GYRE_TEST_SAY_VALUE(I8Default)
    GYRE_TEST_SAY_VALUE(I16)
    GYRE_TEST_SAY_VALUE(I16Default)
    close();
  }
  void say(kinds::Kinds::Place::View::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(Folded)
    GYRE_TEST_SAY_VALUE(Colour)
    close();
  }
  void say(kinds::Kinds::Place::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(Line)
    GYRE_TEST_SAY_VALUE(Column)
    GYRE_TEST_SAY_BYTES(File)
    GYRE_TEST_SAY_VALUE(View)
    close();
  }
  void say(kinds::Kinds::Shape::Box::Corner::Reader in) {
    open();
    which(in.which(), 2);
    if (in.which() == kinds::Kinds::Shape::Box::Corner::RADIUS) {
      GYRE_TEST_SAY_VALUE(Radius)
    }
    close();
  }
  void say(kinds::Kinds::Shape::Box::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(Width)
    GYRE_TEST_SAY_VALUE(Height)
    GYRE_TEST_SAY_LIST(Tags)
    GYRE_TEST_SAY_VALUE(Open)
    GYRE_TEST_SAY_VALUE(Corner)
    close();
  }
  void say(kinds::Kinds::Shape::Reader in) {
    using Which = kinds::Kinds::Shape::Which;
    open();
    which(in.which(), 7);
    switch (in.which()) {
      case Which::NONE:
        break;
      case Which::CIRCLE:
        GYRE_TEST_SAY_VALUE(Circle) break;
      case Which::CAPTION:
        GYRE_TEST_SAY_BYTES(Caption) break;
      case Which::BOX:
        GYRE_TEST_SAY_VALUE(Box) break;
      case Which::CORNERS:
        GYRE_TEST_SAY_LIST(Corners) break;
      case Which::CENTRE:
        GYRE_TEST_SAY_OBJECT(Centre) break;
      case Which::FILLED:
        GYRE_TEST_SAY_VALUE(Filled) break;
    }
    close();
  }
  void say(kinds::Kinds::Pair::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(First)
    GYRE_TEST_SAY_VALUE(Second)
    close();
  }
  void say(kinds::Kinds::Reader in) {
    using Which = kinds::Kinds::Which;
    open();
    which(in.which(), 6);
    GYRE_TEST_KINDS_VALUES(GYRE_TEST_SAY_VALUE)
    GYRE_TEST_SAY_VALUE(Int)
    GYRE_TEST_SAY_VALUE(AnHTTPCode)
    GYRE_TEST_SAY_VALUE(Flag)
    GYRE_TEST_KINDS_LISTS(GYRE_TEST_SAY_SIZED)
    GYRE_TEST_KINDS_OBJECTS(GYRE_TEST_SAY_OBJECT)
    GYRE_TEST_KINDS_MORE_LISTS(GYRE_TEST_SAY_SIZED)
    GYRE_TEST_SAY_VALUE(Place)
    GYRE_TEST_SAY_VALUE(Shape)
    switch (in.which()) {
      case Which::UNSET:
        break;
      case Which::NUMBER:
        GYRE_TEST_SAY_VALUE(Number) break;
      case Which::WORD:
        GYRE_TEST_SAY_BYTES(Word) break;
      case Which::PAIR:
        GYRE_TEST_SAY_VALUE(Pair) break;
      case Which::TREES:
        GYRE_TEST_SAY_LIST(Trees) break;
      case Which::BYTES:
        GYRE_TEST_SAY_BYTES(Bytes) break;
    }
    close();
  }

#undef GYRE_TEST_SAY_VALUE
#undef GYRE_TEST_SAY_BYTES
#undef GYRE_TEST_SAY_OBJECT
#undef GYRE_TEST_SAY_LIST
#undef GYRE_TEST_SAY_SIZED

 private:
  template <class Which>
  void which(Which value, unsigned known) {
    if (unsigned(value) < known) {
      name("which");
      number(unsigned(value));
    } else {
      name("which unknown");
    }
  }
  void sized(const char*, wire::Text::Reader text) { say(text); }
  template <class T>
  void sized(const char* field, wire::ListReader<T> list) {
    if constexpr (wire::is_same<T, uint8_t>) {
      if (std::string_view(field).starts_with("Data")) return say(list);
    }
    this->list(list);
  }
};

template <class Reader>
std::string official_text(Reader in) {
  OfficialText text;
  text.say(capnp::DynamicStruct::Reader(in));
  return text.take();
}
template <class Reader>
std::string view_text(Reader in) {
  ViewText text;
  text.say(in);
  return text.take();
}

/// Where two texts begin to differ, with what is in front of that; empty if they do not.
inline std::string difference(const std::string& a, const std::string& b) {
  if (a == b) return {};
  size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  const size_t begin = i < 200 ? 0 : i - 200;
  return a.substr(begin, i - begin) + " >>> " + a.substr(i, 60) + " <<< but >>> " + b.substr(i, 60) + " <<<";
}

}  // namespace gyre_test
