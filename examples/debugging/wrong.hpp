// Wrong: takes the number of a thread for the number of an element. On the CPU, of one thread, it is right.
#pragma once

#include <gyre/device/context.hpp>

#include "smooth.view.hpp"

namespace debugging {

struct Wrong {
  GYRE_DEVICE void on(gyre::Context& ctx, view::Smooth::Reader in, view::Smoothed::Builder out) {
    const auto values = in.getValues();
    const uint32_t n = values.size();
    const auto result = out.initValues(n);
    for (uint32_t i = ctx.rank(); i < n; i += ctx.size()) {
      const uint32_t before = i == ctx.rank() ? i : i - 1;  // it means "i == 0"
      const float left = values[before], right = values[i + 1 == n ? i : i + 1];
      result.set(i, (left + values[i] + right) / 3);
    }
    ctx.sync();
    if (ctx.rank() != 0) return;
    float sum = 0;
    for (uint32_t i = 0; i < n; ++i) sum += values[i];
    out.setSum(sum);
  }
};

}  // namespace debugging
