// Mirror: answers a Kinds with the same Kinds, read field by field through one view and written through the
// other.
#pragma once

#include <gyre/device/actor/dispatch.hpp>
#include <gyre/device/context.hpp>
#include <tests/messages/kinds.view.hpp>

namespace gyre_test {

namespace wire = gyre::wire;
namespace kinds = gyre::test::view;

// The fields of Kinds outside its union, in the order of their numbers: VALUE(name) for those that are set,
// SIZED(name) for those that init_… makes of a size, OBJECT(name) for structs.
#define GYRE_TEST_KINDS_VALUES(VALUE)                                                                \
  VALUE(boolean)                                                                                     \
  VALUE(boolean_default)                                                                             \
  VALUE(i8)                                                                                          \
  VALUE(i8_default)                                                                                  \
  VALUE(i16)                                                                                         \
  VALUE(i16_default)                                                                                 \
  VALUE(i32) VALUE(i32_default) VALUE(i64) VALUE(i64_default) VALUE(u8) VALUE(u8_default) VALUE(u16) \
      VALUE(u16_default) VALUE(u32) VALUE(u32_default) VALUE(u64) VALUE(u64_default) VALUE(f32)      \
          VALUE(f32_default) VALUE(f32_whole) VALUE(f32_infinite) VALUE(f32_none) VALUE(f64)         \
              VALUE(f64_default) VALUE(f64_infinite) VALUE(f64_none) VALUE(colour) VALUE(colour_default)
#define GYRE_TEST_KINDS_LISTS(SIZED)                                                                \
  SIZED(i8s)                                                                                        \
  SIZED(i16s)                                                                                       \
  SIZED(i32s)                                                                                       \
  SIZED(i64s)                                                                                       \
  SIZED(u8s) SIZED(u16s) SIZED(u32s) SIZED(u64s) SIZED(f32s) SIZED(f64s) SIZED(colours) SIZED(text) \
      SIZED(text_default) SIZED(data) SIZED(data_default)
#define GYRE_TEST_KINDS_OBJECTS(OBJECT) OBJECT(point) OBJECT(point_default) OBJECT(tree) OBJECT(swatch)
#define GYRE_TEST_KINDS_MORE_LISTS(SIZED)                                                                    \
  SIZED(bits)                                                                                                \
  SIZED(voids)                                                                                               \
  SIZED(texts)                                                                                               \
  SIZED(datas)                                                                                               \
  SIZED(points) SIZED(swatches) SIZED(rows) SIZED(text_rows) SIZED(bit_rows) SIZED(point_cubes)              \
      SIZED(f32s_default) SIZED(bits_default) SIZED(texts_default) SIZED(points_default) SIZED(rows_default) \
          SIZED(empty_default)

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
      to.set_value(from.value());
      const auto list = from.children();
      // One that is not there is not made; then nobody looks at its builder.
      const bool has = from.has_children();
      of = {from, to, list, wire::List<kinds::Tree>::Builder(), has ? list.size() : 0, 0, true};
      if (has) of.children_out = to.init_children(list.size());
    }
  };

  uint32_t rank = 0;
  uint32_t size = 1;

#define GYRE_TEST_COPY_VALUE(name) out.set_##name(in.name());
#define GYRE_TEST_COPY_SIZED(name) \
  if (in.has_##name()) (*this)(in.name(), out.init_##name(in.name().size()));
#define GYRE_TEST_COPY_OBJECT(name) \
  if (in.has_##name()) (*this)(in.name(), out.init_##name());

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
    out.set_x(in.x());
    out.set_y(in.y());
    GYRE_TEST_COPY_SIZED(label)
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
        if (at.in.has_left()) levels[++depth].begin(at.in.left(), at.out.init_left());
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
    out.set_colour(in.colour());
    if (in.has_name()) out.set_name(in.name());
  }
  GYRE_TEST_DEVICE void operator()(kinds::Kinds::Place::Reader in, kinds::Kinds::Place::Builder out) const {
    out.set_line(in.line());
    out.set_column(in.column());
    GYRE_TEST_COPY_SIZED(file)
    out.view().set_folded(in.view().folded());
    out.view().set_colour(in.view().colour());
  }
  GYRE_TEST_DEVICE void operator()(kinds::Kinds::Shape::Box::Reader in,
                                   kinds::Kinds::Shape::Box::Builder out) const {
    using Which = kinds::Kinds::Shape::Box::Corner::Which;
    out.set_width(in.width());
    out.set_height(in.height());
    GYRE_TEST_COPY_SIZED(tags)
    out.set_open(in.open());
    switch (in.corner().which()) {
      case Which::sharp:
        return out.corner().set_sharp();
      case Which::radius:
        return out.corner().set_radius(in.corner().radius());
    }
  }
  GYRE_TEST_DEVICE void operator()(kinds::Kinds::Shape::Reader in, kinds::Kinds::Shape::Builder out) const {
    using Which = kinds::Kinds::Shape::Which;
    switch (in.which()) {
      case Which::none:
        return out.set_none();
      case Which::circle:
        return out.set_circle(in.circle());
      case Which::caption:  // null is another thing than what it reads as then
        if (in.has_caption()) return (*this)(in.caption(), out.init_caption(in.caption().size()));
        return out.set_caption("caption");
      case Which::box:
        return (*this)(in.box(), out.init_box());
      case Which::corners:
        return (*this)(in.corners(), out.init_corners(in.corners().size()));
      case Which::centre:
        return (*this)(in.centre(), out.init_centre());
      case Which::filled:
        return out.set_filled(in.filled());
    }
  }
  GYRE_TEST_DEVICE void operator()(kinds::Kinds::Reader in, kinds::Kinds::Builder out) const {
    GYRE_TEST_KINDS_VALUES(GYRE_TEST_COPY_VALUE)
    out.set_int(in.int_());
    out.set_an_http_code(in.an_http_code());
    out.set_flag(in.flag());
    GYRE_TEST_KINDS_LISTS(GYRE_TEST_COPY_SIZED)
    GYRE_TEST_KINDS_OBJECTS(GYRE_TEST_COPY_OBJECT)
    GYRE_TEST_KINDS_MORE_LISTS(GYRE_TEST_COPY_SIZED)
    (*this)(in.place(), out.place());
    (*this)(in.shape(), out.shape());
    copy_union(in, out);
  }

 private:
  GYRE_TEST_DEVICE void copy_union(kinds::Kinds::Reader in, kinds::Kinds::Builder out) const {
    using Which = kinds::Kinds::Which;
    switch (in.which()) {
      case Which::unset:
        return out.set_unset();
      case Which::number:
        return out.set_number(in.number());
      case Which::word:
        return (*this)(in.word(), out.init_word(in.word().size()));
      case Which::pair: {
        auto pair = out.init_pair();
        pair.set_first(in.pair().first());
        pair.set_second(in.pair().second());
        return;
      }
      case Which::trees:
        return (*this)(in.trees(), out.init_trees(in.trees().size()));
      case Which::bytes:
        return (*this)(in.bytes(), out.init_bytes(in.bytes().size()));
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
