// Savina's fib: an actor for each node of the recursion.
#pragma once

#include <bench/savina/collector.hpp>
#include <bench/savina/fib.view.hpp>

namespace gyre_savina::fib {

/// Returns the nodes of the recursion for n: 2 fib(n) - 1. Those for 1 and 2 are leaves.
GYRE_DEVICE constexpr uint32_t nodes_of(uint32_t n) {
  uint32_t before = 1, last = 1;
  for (uint32_t i = 3; i <= n; ++i) {
    const uint32_t now = before + last;
    before = last;
    last = now;
  }
  return 2 * last - 1;
}

/// Numbered in preorder: the root of an instance has the key `instance * nodes_of(n)`, a node's first child
/// is behind it. So the nodes spread over the workers. They stay until the launch ends: only the host stops
/// actors.
struct Node {
  using Handles = gyre::Handles<run::view::Start, view::Compute, view::Computed>;
  static constexpr uint32_t no_parent = ~uint32_t(0);

  uint64_t sum = 0;
  uint32_t parent = no_parent, n = 0, computed = 0;

  GYRE_DEVICE void on(gyre::Sending<2>& ctx, run::view::Start::Reader in) {
    compute(ctx, no_parent, in.getMessages());
  }
  GYRE_DEVICE void on(gyre::Sending<2>& ctx, view::Compute::Reader in) {
    compute(ctx, in.getParent(), in.getN());
  }
  GYRE_DEVICE void on(gyre::Sending<2>& ctx, view::Computed::Reader in) {
    const uint64_t value = sum + in.getValue();
    const uint32_t now = computed + 1;
    ctx.sync();  // every thread has read the state
    if (ctx.rank() == 0) {
      sum = value;
      computed = now;
    }
    if (now == 2) end(ctx, parent, n, value);
  }

 private:
  GYRE_DEVICE void compute(gyre::Sending<2>& ctx, uint32_t for_parent, uint32_t number) {
    if (ctx.rank() == 0) {
      parent = for_parent;
      n = number;
    }
    if (number <= 2) return end(ctx, for_parent, number, 1);
    const uint32_t key = uint32_t(ctx.key()), second = key + 1 + nodes_of(number - 1);
    ctx.tell_each<view::Compute>(
        2, [&](uint32_t child) { return gyre::Address<Node>{child == 0 ? key + 1 : second}; },
        [&](uint32_t child, view::Compute::Builder out) {
          out.setParent(key);
          out.setN(number - 1 - child);
        });
  }
  GYRE_DEVICE static void end(gyre::Sending<2>& ctx, uint32_t to, uint32_t number, uint64_t value) {
    if (to == no_parent) return report(ctx, ctx.key() / nodes_of(number), value);
    ctx.tell<view::Computed>(gyre::Address<Node>{to},
                             [&](view::Computed::Builder out) { out.setValue(value); });
  }
};

}  // namespace gyre_savina::fib
