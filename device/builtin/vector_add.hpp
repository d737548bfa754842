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
    const auto a = in.getA();
    const auto b = in.getB();
    const bool in_lists = !in.hasABuffer(), as_long = a.size() == b.size();
    const bool is_short = a.size() <= ctx.size();  // an element a thread
    // A lone warp waits long for each branch: one question leads to what is usual.
    if (in_lists & as_long & is_short & (in.getOperation() == view::Operation::ADD)) {
      const auto result = out.initResult(a.size());
      gyre::transform_short(ctx, result, Sum{}, a, b);
      succeed(out, result.size());
    } else {
      answer_unusual(ctx, in, a, b, out);
    }
    out.setProcessingNs(stopwatch.ns());
  }

 private:
  struct Sum {
    GYRE_DEVICE float operator()(float x, float y) const { return x + y; }
  };

  GYRE_DEVICE static void answer_unusual(gyre::Context& ctx, view::VectorAddRequest::Reader in,
                                         const Floats& a, const Floats& b,
                                         view::VectorAddResponse::Builder& out) {
    using Error = view::VectorAddResponse::Error;
    const view::Operation operation = in.getOperation();
    if (!in.hasABuffer() && a.size() != b.size()) {
      out.setError(Error::LENGTHS_DIFFER);
    } else if (operation > view::Operation::DIVIDE) {
      out.setError(Error::UNKNOWN_OPERATION);
    } else if (in.hasABuffer()) {
      add_buffers(ctx, in, out);
    } else if (operation == view::Operation::ADD) {
      combine(ctx, a, b, out, Sum{});
    } else {
      combine(ctx, a, b, out, [operation](float x, float y) { return apply(operation, x, y); });
    }
  }

  template <class F>
  GYRE_DEVICE static void combine(gyre::Context& ctx, const Floats& a, const Floats& b,
                                  view::VectorAddResponse::Builder& out, F f) {
    const auto result = out.initResult(a.size());
    gyre::transform(ctx, result, f, a, b);
    succeed(out, result.size());
  }
  GYRE_DEVICE static void succeed(view::VectorAddResponse::Builder& out, uint32_t processed) {
    out.setProcessed(processed);
    out.setSuccess(true);
  }

  // Called: a division by the rules of IEEE 754 is long, and there are many places for it.
  GYRE_CALLED_FUNCTION static float divided(float a, float b) { return a / b; }

  // The branch is for the one that takes long; what the others take is less than branches would.
  GYRE_DEVICE static float apply(view::Operation operation, float a, float b) {
    if (operation == view::Operation::DIVIDE) return divided(a, b);
    const float sum = operation == view::Operation::ADD ? a + b : a - b;
    return operation == view::Operation::MULTIPLY ? a * b : sum;
  }

  // A handle that is not good ends the message: the spans are then empty in this thread, and nobody gets the
  // response.
  GYRE_DEVICE static void add_buffers(gyre::Context& ctx, view::VectorAddRequest::Reader in,
                                      view::VectorAddResponse::Builder out) {
    const uint64_t length = in.getLength();
    const view::Operation operation = in.getOperation();
    const auto a = ctx.buffer<const float>(in.getABuffer(), length);
    const auto b = ctx.buffer<const float>(in.getBBuffer(), length);
    const auto result = ctx.buffer<float>(in.getResultBuffer(), length);
    if (ctx.status() != gyre::Status::ok) return;
    if (operation == view::Operation::ADD) {
      gyre::transform(ctx, result, Sum{}, a, b);
    } else {
      gyre::transform(
          ctx, result, [operation](float x, float y) { return apply(operation, x, y); }, a, b);
    }
    succeed(out, length < 0xffffffff ? uint32_t(length) : 0xffffffff);
  }
};

}  // namespace gyre::actors
