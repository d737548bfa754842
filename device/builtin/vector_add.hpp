// VectorAdd: element-wise arithmetic on two float vectors, in the message or in buffers. The validation's
// actor.
#pragma once

#include <gyre/device/parallel.hpp>
#include <gyre/messages/vector_add.view.hpp>

namespace gyre::actors {

namespace view = gyre::messages::view;

struct VectorAdd {
  using Floats = gyre::wire::List<float>::Reader;

  GYRE_DEVICE void on(gyre::Context& ctx, view::VectorAddRequest::Reader in,
                      view::VectorAddResponse::Builder out) {
    const gyre::Stopwatch stopwatch(ctx);
    const auto a = in.a();
    const auto b = in.b();
    const bool in_lists = !in.has_a_buffer(), as_long = a.size() == b.size();
    const bool is_short = a.size() <= ctx.size();  // an element a thread
    // A lone warp waits long for each branch: one question leads to what is usual.
    if (in_lists & as_long & is_short & (in.operation() == view::Operation::add)) {
      const auto result = out.init_result(a.size());
      gyre::transform_short(ctx, result, Sum{}, a, b);
      succeed(out, result.size());
    } else {
      answer_unusual(ctx, in, a, b, out);
    }
    out.set_processing_ns(stopwatch.ns());
  }

 private:
  struct Sum {
    GYRE_DEVICE float operator()(float x, float y) const { return x + y; }
  };

  GYRE_DEVICE static void answer_unusual(gyre::Context& ctx, view::VectorAddRequest::Reader in,
                                         const Floats& a, const Floats& b,
                                         view::VectorAddResponse::Builder& out) {
    using Error = view::VectorAddResponse::Error;
    const view::Operation operation = in.operation();
    if (!in.has_a_buffer() && a.size() != b.size()) {
      out.set_error(Error::lengths_differ);
    } else if (operation > view::Operation::divide) {
      out.set_error(Error::unknown_operation);
    } else if (in.has_a_buffer()) {
      add_buffers(ctx, in, out);
    } else if (operation == view::Operation::add) {
      combine(ctx, a, b, out, Sum{});
    } else {
      combine(ctx, a, b, out, [operation](float x, float y) { return apply(operation, x, y); });
    }
  }

  template <class F>
  GYRE_DEVICE static void combine(gyre::Context& ctx, const Floats& a, const Floats& b,
                                  view::VectorAddResponse::Builder& out, F f) {
    const auto result = out.init_result(a.size());
    gyre::transform(ctx, result, f, a, b);
    succeed(out, result.size());
  }
  GYRE_DEVICE static void succeed(view::VectorAddResponse::Builder& out, uint32_t processed) {
    out.set_processed(processed);
    out.set_success(true);
  }

  // Called: a division by the rules of IEEE 754 is long, and there are many places for it.
  GYRE_CALLED_FUNCTION static float divided(float a, float b) { return a / b; }

  // The branch is for the one that takes long; what the others take is less than branches would.
  GYRE_DEVICE static float apply(view::Operation operation, float a, float b) {
    if (operation == view::Operation::divide) return divided(a, b);
    const float sum = operation == view::Operation::add ? a + b : a - b;
    return operation == view::Operation::multiply ? a * b : sum;
  }

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
    if (operation == view::Operation::add) {
      gyre::transform(ctx, result, Sum{}, a, b);
    } else {
      gyre::transform(
          ctx, result, [operation](float x, float y) { return apply(operation, x, y); }, a, b);
    }
    succeed(out, length < 0xffffffff ? uint32_t(length) : 0xffffffff);
  }
};

}  // namespace gyre::actors
