// Slow: the same answers, by one thread alone, with a window that does not fit its registers.
#pragma once

#include <gyre/device/context.hpp>

#include "smooth.view.hpp"

namespace debugging {

struct Slow {
  GYRE_DEVICE void on(gyre::Context& ctx, view::Smooth::Reader in, view::Smoothed::Builder out) {
    const auto values = in.getValues();
    const uint32_t n = values.size();
    const auto result = out.initValues(n);
    if (ctx.rank() != 0) return;
    float window[512];  // indexed by what is known at run time only: it lies in local memory
    float sum = 0;
    for (uint32_t i = 0; i < n; ++i) {
      for (uint32_t j = 0; j < 512; ++j) window[j] = 0;
      window[i % 512] = values[i];
      window[(i + 511) % 512] = values[i == 0 ? 0 : i - 1];
      window[(i + 1) % 512] = values[i + 1 == n ? i : i + 1];
      result.set(i, (window[(i + 511) % 512] + window[i % 512] + window[(i + 1) % 512]) / 3);
      sum += values[i];
    }
    out.setSum(sum);
  }
};

}  // namespace debugging
