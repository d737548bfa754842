// VectorAdd: element-wise arithmetic on two float vectors. The validation's actor.
#pragma once

#include <gyre/device/parallel.hpp>
#include <gyre/messages/vector_add.view.hpp>

namespace gyre::actors {

namespace view = gyre::messages::view;

struct VectorAdd {
  uint64_t processed = 0;  // requests answered

  GYRE_DEVICE void on(gyre::Context& ctx, view::VectorAddRequest::Reader in,
                      view::VectorAddResponse::Builder out) {
    using Error = view::VectorAddResponse::Error;
    const uint64_t begin = ctx.now_ns();
    const auto a = in.a();
    const auto b = in.b();
    if (a.size() != b.size()) return out.set_error(Error::lengths_differ);
    const view::Operation operation = in.operation();
    if (operation > view::Operation::divide) return out.set_error(Error::unknown_operation);

    const auto result = out.init_result(a.size());
    gyre::transform(
        ctx, result, [=](float x, float y) { return apply(operation, x, y); }, a, b);
    if (ctx.rank() == 0) ++processed;
    out.set_success(true);
    out.set_processed(result.size());
    out.set_processing_ns(ctx.now_ns() - begin);
  }

  GYRE_DEVICE static float apply(view::Operation operation, float a, float b) {
    switch (operation) {
      case view::Operation::add:
        return a + b;
      case view::Operation::subtract:
        return a - b;
      case view::Operation::multiply:
        return a * b;
      case view::Operation::divide:
        return a / b;
    }
    return 0;
  }
};

}  // namespace gyre::actors
