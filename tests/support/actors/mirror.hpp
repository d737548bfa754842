// Mirror: answers a Kinds with the same Kinds, read field by field through one view and written through the
// other.
#pragma once

#include <gyre/device/context.hpp>
#include <tests/messages/kinds.view.hpp>

namespace gyre_test {

namespace wire = gyre::wire;
namespace kinds = gyre::test::view;

// The fields of Kinds outside its union, in the order of their numbers: VALUE(name) for those that are set,
// SIZED(name) for those that init… makes of a size, OBJECT(name) for structs.
// clang-format off
#define GYRE_TEST_KINDS_VALUES(VALUE) \
  VALUE(Boolean) VALUE(BooleanDefault) VALUE(I8) VALUE(I8Default) VALUE(I16) VALUE(I16Default) VALUE(I32) \
  VALUE(I32Default) VALUE(I64) VALUE(I64Default) VALUE(U8) VALUE(U8Default) VALUE(U16) VALUE(U16Default) \
  VALUE(U32) VALUE(U32Default) VALUE(U64) VALUE(U64Default) VALUE(F32) VALUE(F32Default) VALUE(F32Whole) \
  VALUE(F32Infinite) VALUE(F32None) VALUE(F64) VALUE(F64Default) VALUE(F64Infinite) VALUE(F64None) \
  VALUE(Colour) VALUE(ColourDefault)
#define GYRE_TEST_KINDS_LISTS(SIZED) \
  SIZED(I8s) SIZED(I16s) SIZED(I32s) SIZED(I64s) SIZED(U8s) SIZED(U16s) SIZED(U32s) SIZED(U64s) \
  SIZED(F32s) SIZED(F64s) SIZED(Colours) SIZED(Text) SIZED(TextDefault) SIZED(Data) SIZED(DataDefault)
#define GYRE_TEST_KINDS_OBJECTS(OBJECT) \
  OBJECT(Point) OBJECT(PointDefault) OBJECT(Tree) OBJECT(Swatch)
#define GYRE_TEST_KINDS_MORE_LISTS(SIZED) \
  SIZED(Bits) SIZED(Voids) SIZED(Texts) SIZED(Datas) SIZED(Points) SIZED(Swatches) SIZED(Rows) \
  SIZED(TextRows) SIZED(BitRows) SIZED(PointCubes) SIZED(F32sDefault) SIZED(BitsDefault) \
  SIZED(TextsDefault) SIZED(PointsDefault) SIZED(RowsDefault) SIZED(EmptyDefault)
// clang-format on

// Functions of their own on the GPU too: all in one, they take NVRTC half a minute.
#if defined(__CUDACC_RTC__)
#define GYRE_TEST_DEVICE __noinline__ __device__
#else
#define GYRE_TEST_DEVICE
#endif

/// Copies what a Reader reads into a Builder, as thread `rank` of `size`: all call it, each stores its part
/// of the elements.
struct Copy {
  // A Tree being copied.
  union Level {
    struct {
      kinds::Tree::Reader in;
      kinds::Tree::Builder out;
      wire::List<kinds::Tree>::Reader children_in;
      wire::List<kinds::Tree>::Builder children_out;
      uint32_t children, next;
      bool left_to_do;
    } of;
    char nothing;

    GYRE_DEVICE Level() : nothing(0) {}
    GYRE_TEST_DEVICE void begin(kinds::Tree::Reader from, kinds::Tree::Builder to) {
      to.setValue(from.getValue());
      const auto list = from.getChildren();
      // One that is not there is not made; then nobody looks at its builder.
      const bool has = from.hasChildren();
      of = {from, to, list, wire::List<kinds::Tree>::Builder(), has ? list.size() : 0, 0, true};
      if (has) of.children_out = to.initChildren(list.size());
    }
  };

  uint32_t rank = 0;
  uint32_t size = 1;

#define GYRE_TEST_COPY_VALUE(name) out.set##name(in.get##name());
#define GYRE_TEST_COPY_SIZED(name) \
  if (in.has##name()) (*this)(in.get##name(), out.init##name(in.get##name().size()));
#define GYRE_TEST_COPY_OBJECT(name) \
  if (in.has##name()) (*this)(in.get##name(), out.init##name());

  template <class T>
  GYRE_TEST_DEVICE void operator()(wire::ListReader<T> in, wire::ListBuilder<T> out) const {
    if constexpr (wire::Scalar<T> || wire::is_bool<T>) {
      for (uint32_t i = rank; i < out.size(); i += size) out.set(i, in[i]);
    } else if constexpr (wire::Blob<T>) {
      for (uint32_t i = 0; i < out.size(); ++i) (*this)(in[i], out.init(i, in[i].size()));
    } else if constexpr (wire::Struct<T>) {
      for (uint32_t i = 0; i < out.size(); ++i) (*this)(in[i], out[i]);
    }
  }
  GYRE_TEST_DEVICE void operator()(wire::Text::Reader in, wire::Text::Builder out) const {
    for (uint32_t i = rank; i < out.size(); i += size) out.set(i, in[i]);
  }
  GYRE_TEST_DEVICE void operator()(kinds::Point::Reader in, kinds::Point::Builder out) const {
    out.setX(in.getX());
    out.setY(in.getY());
    GYRE_TEST_COPY_SIZED(Label)
  }
  // A tree may be as deep as a message: a stack of our own, where a GPU thread has only a small one.
  GYRE_TEST_DEVICE void operator()(kinds::Tree::Reader in, kinds::Tree::Builder out) const {
    Level levels[wire::Message::max_depth + 1];
    uint32_t depth = 0;
    levels[0].begin(in, out);
    for (;;) {
      auto& at = levels[depth].of;
      if (at.left_to_do) {
        at.left_to_do = false;
        if (at.in.hasLeft()) levels[++depth].begin(at.in.getLeft(), at.out.initLeft());
      } else if (at.next < at.children) {
        const uint32_t i = at.next++;
        levels[++depth].begin(at.children_in[i], at.children_out[i]);
      } else if (depth-- == 0) {
        return;
      }
    }
  }
  GYRE_TEST_DEVICE void operator()(gyre::test::enums::view::Swatch::Reader in,
                                   gyre::test::enums::view::Swatch::Builder out) const {
    out.setColour(in.getColour());
    if (in.hasName()) out.setName(in.getName());
  }
  GYRE_TEST_DEVICE void operator()(kinds::Kinds::Place::Reader in, kinds::Kinds::Place::Builder out) const {
    out.setLine(in.getLine());
    out.setColumn(in.getColumn());
    GYRE_TEST_COPY_SIZED(File)
    out.getView().setFolded(in.getView().getFolded());
    out.getView().setColour(in.getView().getColour());
  }
  GYRE_TEST_DEVICE void operator()(kinds::Kinds::Shape::Box::Reader in,
                                   kinds::Kinds::Shape::Box::Builder out) const {
    using Which = kinds::Kinds::Shape::Box::Corner::Which;
    out.setWidth(in.getWidth());
    out.setHeight(in.getHeight());
    GYRE_TEST_COPY_SIZED(Tags)
    out.setOpen(in.getOpen());
    switch (in.getCorner().which()) {
      case Which::SHARP:
        return out.getCorner().setSharp();
      case Which::RADIUS:
        return out.getCorner().setRadius(in.getCorner().getRadius());
    }
  }
  GYRE_TEST_DEVICE void operator()(kinds::Kinds::Shape::Reader in, kinds::Kinds::Shape::Builder out) const {
    using Which = kinds::Kinds::Shape::Which;
    switch (in.which()) {
      case Which::NONE:
        return out.setNone();
      case Which::CIRCLE:
        return out.setCircle(in.getCircle());
      case Which::CAPTION:  // null is another thing than what it reads as then
        if (in.hasCaption()) return (*this)(in.getCaption(), out.initCaption(in.getCaption().size()));
        return out.setCaption("caption");
      case Which::BOX:
        return (*this)(in.getBox(), out.initBox());
      case Which::CORNERS:
        return (*this)(in.getCorners(), out.initCorners(in.getCorners().size()));
      case Which::CENTRE:
        return (*this)(in.getCentre(), out.initCentre());
      case Which::FILLED:
        return out.setFilled(in.getFilled());
    }
  }
  GYRE_TEST_DEVICE void operator()(kinds::Kinds::Reader in, kinds::Kinds::Builder out) const {
    GYRE_TEST_KINDS_VALUES(GYRE_TEST_COPY_VALUE)
    out.setInt(in.getInt());
    out.setAnHTTPCode(in.getAnHTTPCode());
    out.setFlag(in.getFlag());
    GYRE_TEST_KINDS_LISTS(GYRE_TEST_COPY_SIZED)
    GYRE_TEST_KINDS_OBJECTS(GYRE_TEST_COPY_OBJECT)
    GYRE_TEST_KINDS_MORE_LISTS(GYRE_TEST_COPY_SIZED)
    (*this)(in.getPlace(), out.getPlace());
    (*this)(in.getShape(), out.getShape());
    copy_union(in, out);
  }

 private:
  GYRE_TEST_DEVICE void copy_union(kinds::Kinds::Reader in, kinds::Kinds::Builder out) const {
    using Which = kinds::Kinds::Which;
    switch (in.which()) {
      case Which::UNSET:
        return out.setUnset();
      case Which::NUMBER:
        return out.setNumber(in.getNumber());
      case Which::WORD:
        return (*this)(in.getWord(), out.initWord(in.getWord().size()));
      case Which::PAIR: {
        auto pair = out.initPair();
        pair.setFirst(in.getPair().getFirst());
        pair.setSecond(in.getPair().getSecond());
        return;
      }
      case Which::TREES:
        return (*this)(in.getTrees(), out.initTrees(in.getTrees().size()));
      case Which::BYTES:
        return (*this)(in.getBytes(), out.initBytes(in.getBytes().size()));
    }
  }

#undef GYRE_TEST_DEVICE
#undef GYRE_TEST_COPY_VALUE
#undef GYRE_TEST_COPY_SIZED
#undef GYRE_TEST_COPY_OBJECT
};

struct Mirror {
  GYRE_DEVICE void on(gyre::Context& ctx, kinds::Kinds::Reader in, kinds::Kinds::Builder out) {
    Copy{ctx.rank(), ctx.size()}(in, out);
  }
};

}  // namespace gyre_test
