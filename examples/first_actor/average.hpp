// Average: remembers the mean of all numbers it was sent.
#pragma once

#include <averages/average.view.hpp>
#include <gyre/device/parallel.hpp>

namespace averages {

struct Average {
  // The state: every key has its own.
  double total = 0;
  uint64_t count = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Add::Reader in, view::Mean::Builder out) {
    const auto numbers = in.getNumbers();
    GYRE_CHECK(numbers.size() != 0);  // a mean of nothing: the sender gets an error with this line

    double mine = 0;  // on the GPU many threads run this, and each adds up its share
    gyre::for_each(ctx, numbers, [&](uint32_t, double number) { mine += number; });
    const double sum = gyre::sum(ctx, mine);  // all shares, in every thread

    if (ctx.rank() == 0) {  // one thread writes the state,
      total += sum;
      count += numbers.size();
    }
    ctx.sync();  // and after this all threads see it
    out.setMean(total / double(count));
    out.setCount(count);
  }
};

}  // namespace averages
