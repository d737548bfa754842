// Abacus: adds to what is in buffers, so that tests see both sides read and write them.
#pragma once

#include <gyre/device/context.hpp>
#include <support/actors/abacus.view.hpp>

namespace gyre_test {

struct Abacus {
  using Handles = gyre::Handles<view::Add, view::Note>;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Add::Reader in, view::Sum::Builder out) {
    if (in.getWay() == view::Way::LAST_THREAD_ALONE && ctx.rank() + 1 != ctx.size()) return;
    const auto numbers = ctx.buffer<uint64_t>(in.getBuffer(), in.getAtLeast());
    if (in.getWay() == view::Way::LAST_THREAD_ALONE) return;
    add(ctx, numbers, in.getAmount());
    ctx.sync();
    if (ctx.rank() != 0) return;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < numbers.size(); ++i) sum += numbers[i];
    out.setSize(numbers.size());
    out.setSum(sum);
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Note::Reader in) {
    add(ctx, ctx.buffer<uint64_t>(in.getBuffer()), in.getAmount());
  }

 private:
  GYRE_DEVICE static void add(gyre::Context& ctx, gyre::BufferSpan<uint64_t> numbers, uint64_t amount) {
    for (uint64_t i = ctx.rank(); i < numbers.size(); i += ctx.size()) numbers[i] += amount;
  }
};

}  // namespace gyre_test
