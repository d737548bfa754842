// Reduction: adds up a buffer by all threads of its group; of the whole GPU where its set is grid-scoped.
#pragma once

#include <gyre/device/context.hpp>
#include <gyre/device/parallel.hpp>
#include <support/actors/reduction.view.hpp>

namespace gyre_reduction {

struct Reduction {
  GYRE_DEVICE void on(gyre::Context& ctx, view::Reduce::Reader in, view::Reduced::Builder out) {
    const uint64_t length = in.getLength();
    const auto numbers = ctx.buffer<float>(in.getNumbers(), length);
    double sum = 0;
    if (numbers.data() != nullptr) {
      for (uint64_t i = ctx.rank(); i < length; i += ctx.size()) sum += double(numbers[i]);
    }
    out.setSum(gyre::sum(ctx, sum) * in.getFactor());
    out.setThreads(ctx.size());
  }
};

}  // namespace gyre_reduction
