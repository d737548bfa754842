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
        names.push_back(gyre::compiler::snake_case(field.getProto().getName().cStr()));
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
  say(in.field());
#define GYRE_TEST_SAY_BYTES(field)  \
  name(#field);                     \
  number(in.has_##field() ? 1 : 0); \
  say(in.field());
#define GYRE_TEST_SAY_OBJECT(field) \
  name(#field);                     \
  number(in.has_##field() ? 1 : 0); \
  if (in.has_##field()) say(in.field());
#define GYRE_TEST_SAY_LIST(field)   \
  name(#field);                     \
  number(in.has_##field() ? 1 : 0); \
  list(in.field());
#define GYRE_TEST_SAY_SIZED(field)  \
  name(#field);                     \
  number(in.has_##field() ? 1 : 0); \
  sized(#field, in.field());

  void say(kinds::Point::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(x)
    GYRE_TEST_SAY_VALUE(y)
    GYRE_TEST_SAY_BYTES(label)
    close();
  }
  void say(kinds::Tree::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(value)
    GYRE_TEST_SAY_OBJECT(left)
    GYRE_TEST_SAY_LIST(children)
    close();
  }
  void say(gyre::test::enums::view::Swatch::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(colour)
    GYRE_TEST_SAY_BYTES(name)
    close();
  }
  void say(kinds::Ping::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(rally)
    GYRE_TEST_SAY_OBJECT(pong)
    name("end");
    open();
    which(in.end().which(), 2);
    if (in.end().which() == kinds::Ping::End::Which::lost) {
      const auto end = in.end();
      name("lost");
      number(end.has_lost() ? 1 : 0);
      if (end.has_lost()) say(end.lost());
    }
    close();
    close();
  }
  void say(kinds::Pong::Reader in) {
    open();
    GYRE_TEST_SAY_OBJECT(ping)
    close();
  }
  void say(kinds::Evolved::Number::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(value)
    GYRE_TEST_SAY_BYTES(note)
    close();
  }
  void say(kinds::Evolved::Name::Reader in) {
    open();
    GYRE_TEST_SAY_BYTES(text)
    GYRE_TEST_SAY_VALUE(rank)
    close();
  }
  void say(kinds::Evolved::Row::Reader in) {
    open();
    GYRE_TEST_SAY_LIST(cells)
    GYRE_TEST_SAY_VALUE(height)
    close();
  }
  void say(kinds::Evolved::Place::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(x)
    GYRE_TEST_SAY_VALUE(y)
    GYRE_TEST_SAY_BYTES(label)
    GYRE_TEST_SAY_LIST(notes)
    close();
  }
  void say(kinds::Evolved::Choice::Reader in) {
    using Which = kinds::Evolved::Choice::Which;
    open();
    which(in.which(), 2);
    if (in.which() == Which::plain) {
      GYRE_TEST_SAY_VALUE(plain)
    }
    if (in.which() == Which::rich) {
      GYRE_TEST_SAY_OBJECT(rich)
    }
    close();
  }
  void say(kinds::Evolved::Reader in) {
    open();
    GYRE_TEST_SAY_LIST(numbers)
    GYRE_TEST_SAY_LIST(names)
    GYRE_TEST_SAY_LIST(rows)
    GYRE_TEST_SAY_LIST(places)
    GYRE_TEST_SAY_OBJECT(place)
    GYRE_TEST_SAY_VALUE(choice)
    GYRE_TEST_SAY_BYTES(added)
    close();
  }
  void say(gyre::test::old::view::Evolved::Place::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(x)
    close();
  }
  void say(gyre::test::old::view::Evolved::Choice::Reader in) {
    using Which = gyre::test::old::view::Evolved::Choice::Which;
    open();
    which(in.which(), 2);
    if (in.which() == Which::plain) {
      GYRE_TEST_SAY_VALUE(plain)
    }
    close();
  }
  void say(gyre::test::old::view::Evolved::Reader in) {
    open();
    GYRE_TEST_SAY_LIST(numbers)
    GYRE_TEST_SAY_LIST(names)
    GYRE_TEST_SAY_LIST(rows)
    GYRE_TEST_SAY_LIST(places)
    GYRE_TEST_SAY_OBJECT(place)
    GYRE_TEST_SAY_VALUE(choice)
    close();
  }
  void say(gyre::test::old::view::Kinds::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(boolean)
    GYRE_TEST_SAY_VALUE(boolean_default)
    GYRE_TEST_SAY_VALUE(i8)
    GYRE_TEST_SAY_VALUE(i8_default)
    GYRE_TEST_SAY_VALUE(i16)
    GYRE_TEST_SAY_VALUE(i16_default)
    close();
  }
  void say(kinds::Kinds::Place::View::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(folded)
    GYRE_TEST_SAY_VALUE(colour)
    close();
  }
  void say(kinds::Kinds::Place::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(line)
    GYRE_TEST_SAY_VALUE(column)
    GYRE_TEST_SAY_BYTES(file)
    GYRE_TEST_SAY_VALUE(view)
    close();
  }
  void say(kinds::Kinds::Shape::Box::Corner::Reader in) {
    open();
    which(in.which(), 2);
    if (in.which() == kinds::Kinds::Shape::Box::Corner::Which::radius) {
      GYRE_TEST_SAY_VALUE(radius)
    }
    close();
  }
  void say(kinds::Kinds::Shape::Box::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(width)
    GYRE_TEST_SAY_VALUE(height)
    GYRE_TEST_SAY_LIST(tags)
    GYRE_TEST_SAY_VALUE(open)
    GYRE_TEST_SAY_VALUE(corner)
    close();
  }
  void say(kinds::Kinds::Shape::Reader in) {
    using Which = kinds::Kinds::Shape::Which;
    open();
    which(in.which(), 7);
    switch (in.which()) {
      case Which::none:
        break;
      case Which::circle:
        GYRE_TEST_SAY_VALUE(circle) break;
      case Which::caption:
        GYRE_TEST_SAY_BYTES(caption) break;
      case Which::box:
        GYRE_TEST_SAY_VALUE(box) break;
      case Which::corners:
        GYRE_TEST_SAY_LIST(corners) break;
      case Which::centre:
        GYRE_TEST_SAY_OBJECT(centre) break;
      case Which::filled:
        GYRE_TEST_SAY_VALUE(filled) break;
    }
    close();
  }
  void say(kinds::Kinds::Pair::Reader in) {
    open();
    GYRE_TEST_SAY_VALUE(first)
    GYRE_TEST_SAY_VALUE(second)
    close();
  }
  void say(kinds::Kinds::Reader in) {
    using Which = kinds::Kinds::Which;
    open();
    which(in.which(), 6);
    GYRE_TEST_KINDS_VALUES(GYRE_TEST_SAY_VALUE)
    GYRE_TEST_SAY_VALUE(int_)
    GYRE_TEST_SAY_VALUE(an_http_code)
    GYRE_TEST_SAY_VALUE(flag)
    GYRE_TEST_KINDS_LISTS(GYRE_TEST_SAY_SIZED)
    GYRE_TEST_KINDS_OBJECTS(GYRE_TEST_SAY_OBJECT)
    GYRE_TEST_KINDS_MORE_LISTS(GYRE_TEST_SAY_SIZED)
    GYRE_TEST_SAY_VALUE(place)
    GYRE_TEST_SAY_VALUE(shape)
    switch (in.which()) {
      case Which::unset:
        break;
      case Which::number:
        GYRE_TEST_SAY_VALUE(number) break;
      case Which::word:
        GYRE_TEST_SAY_BYTES(word) break;
      case Which::pair:
        GYRE_TEST_SAY_VALUE(pair) break;
      case Which::trees:
        GYRE_TEST_SAY_LIST(trees) break;
      case Which::bytes:
        GYRE_TEST_SAY_BYTES(bytes) break;
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
      if (std::string_view(field).starts_with("data")) return say(list);
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
