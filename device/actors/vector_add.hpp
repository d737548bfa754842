// VectorAdd: element-wise arithmetic on two float vectors, in the message or in buffers. The validation's
// actor.
#pragma once

#include <gyre/device/parallel.hpp>
#include <gyre/messages/vector_add.view.hpp>

namespace gyre::actors {

namespace view = gyre::messages::view;

struct VectorAdd {
  GYRE_DEVICE void on(gyre::Context& ctx, view::VectorAddRequest::Reader in,
                      view::VectorAddResponse::Builder out) {
    using Error = view::VectorAddResponse::Error;
    const uint64_t begin = ctx.now_ns();
    const view::Operation operation = in.operation();
    if (in.has_a_buffer()) {
      if (operation > view::Operation::divide) return out.set_error(Error::unknown_operation);
      add_buffers(ctx, in, out);
    } else {
      const auto a = in.a();
      const auto b = in.b();
      if (a.size() != b.size()) return out.set_error(Error::lengths_differ);
      if (operation > view::Operation::divide) return out.set_error(Error::unknown_operation);
      const auto result = out.init_result(a.size());
      gyre::transform(
          ctx, result, [=](float x, float y) { return apply(operation, x, y); }, a, b);
      out.set_processed(result.size());
    }
    out.set_success(true);
    out.set_processing_ns(ctx.now_ns() - begin);
  }

  // Called: a division by the rules of IEEE 754 is long, and there are many places for it.
  GYRE_CALLED_FUNCTION static float divided(float a, float b) { return a / b; }

  // The branch is for the one that takes long; what the others take is less than branches would.
  GYRE_DEVICE static float apply(view::Operation operation, float a, float b) {
    if (operation == view::Operation::divide) return divided(a, b);
    const float sum = operation == view::Operation::add ? a + b : a - b;
    return operation == view::Operation::multiply ? a * b : sum;
  }

 private:
  // A handle that is not good ends the message: the spans are then empty in this thread, and nobody gets the
  // response.
  GYRE_DEVICE static void add_buffers(gyre::Context& ctx, view::VectorAddRequest::Reader in,
                                      view::VectorAddResponse::Builder out) {
    const uint64_t length = in.length();
    const view::Operation operation = in.operation();
    const auto a = ctx.buffer<float>(in.a_buffer(), length);
    const auto b = ctx.buffer<float>(in.b_buffer(), length);
    const auto result = ctx.buffer<float>(in.result_buffer(), length);
    if (ctx.status() != gyre::Status::ok) return;
    gyre::transform(
        ctx, result, [=](float x, float y) { return apply(operation, x, y); }, a, b);
    out.set_processed(length < 0xffffffff ? uint32_t(length) : 0xffffffff);
  }
};

}  // namespace gyre::actors
