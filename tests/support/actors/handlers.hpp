// Actors that use what handlers have beyond messages and state: scratch memory in shared memory, products of
// matrices.
#pragma once

#include <gyre/device/context.hpp>
#include <gyre/device/matrix.hpp>
#include <gyre/device/parallel.hpp>
#include <support/actors/handlers.view.hpp>

namespace gyre_handlers {

/// Element i that follows from `seed`.
GYRE_DEVICE constexpr uint64_t element(uint64_t seed, uint64_t i) {
  return (seed + i) * 0x9e3779b97f4a7c15u >> 7;
}

/// Both kinds of scratch memory at once, more of the shared one than a block has without opting in.
struct Filler {
  static constexpr uint32_t scratch_bytes = 64;
  static constexpr uint32_t shared_scratch_bytes = 60'000;

  uint64_t fills = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Fill::Reader in, view::Filled::Builder out) {
    const auto elements = ctx.scratch<uint64_t, gyre::ScratchIn::shared>(in.getCount());
    const auto more = ctx.scratch<uint32_t, gyre::ScratchIn::shared>(in.getMore());
    const auto elsewhere = ctx.scratch<uint64_t>(8);
    if (ctx.status() != gyre::Status::ok) return;
    for (uint64_t i = ctx.rank(); i < 8; i += ctx.size()) elsewhere[i] = ~uint64_t(0);
    for (uint64_t i = ctx.rank(); i < elements.size(); i += ctx.size())
      elements[i] = element(in.getSeed(), i);
    for (uint64_t i = ctx.rank(); i < more.size(); i += ctx.size()) more[i] = uint32_t(i);
    ctx.sync();
    uint64_t sum = 0, more_sum = 0;
    for (uint64_t i = ctx.rank(); i < elements.size(); i += ctx.size())
      sum += elements[elements.size() - 1 - i];
    for (uint64_t i = ctx.rank(); i < more.size(); i += ctx.size()) more_sum += more[more.size() - 1 - i];
    ctx.sync();
    out.setSum(gyre::sum(ctx, sum));
    out.setMoreSum(gyre::sum(ctx, more_sum));
    const auto address = reinterpret_cast<uintptr_t>(elements.data());
    out.setApart(uint32_t(reinterpret_cast<uintptr_t>(more.data()) - address));
    out.setMisaligned(uint32_t(address | reinterpret_cast<uintptr_t>(more.data())) % 16);
    out.setThreads(ctx.size());
  }
};

/// More shared memory than any GPU has for a block.
struct Greedy {
  static constexpr uint32_t shared_scratch_bytes = 300'000;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Fill::Reader in, view::Filled::Builder) {
    (void)ctx.scratch<uint8_t, gyre::ScratchIn::shared>(in.getCount());
  }
};

/// For several messages at a time: each team has shared memory of its own.
struct SideFiller {
  static constexpr uint32_t shared_scratch_bytes = 64;
  static constexpr bool side_by_side = true;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Fill::Reader in, view::Filled::Builder out) {
    const auto elements = ctx.scratch<uint64_t, gyre::ScratchIn::shared>(in.getCount());
    if (ctx.status() != gyre::Status::ok) return;
    for (uint64_t i = ctx.rank(); i < elements.size(); i += ctx.size())
      elements[i] = element(in.getSeed(), i);
    ctx.sync();
    uint64_t sum = 0;
    for (uint64_t i = 0; i < elements.size(); ++i) sum += elements[i];
    out.setSum(sum);
    out.setThreads(ctx.size());
  }
};

/// Shared memory of each block of a grid: no block finds another's elements in its own.
struct GridFiller {
  static constexpr uint32_t shared_scratch_bytes = 4096;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Fill::Reader in, view::Filled::Builder out) {
    const auto elements = ctx.scratch<uint64_t, gyre::ScratchIn::shared>(in.getCount());
    if (ctx.status() != gyre::Status::ok) return;
#if defined(__CUDACC_RTC__)
    const uint32_t thread = threadIdx.x, threads = blockDim.x;
#else
    const uint32_t thread = 0, threads = 1;
#endif
    const uint64_t block = (ctx.rank() - thread) / threads;
    for (uint64_t i = thread; i < elements.size(); i += threads)
      elements[i] = element(in.getSeed() + block, i);
    ctx.sync();
    uint64_t sum = 0;
    for (uint64_t i = thread; i < elements.size(); i += threads) sum += elements[elements.size() - 1 - i];
    out.setSum(gyre::sum(ctx, sum));  // over all blocks
    out.setThreads(ctx.size());
  }
};

/// A layer of a neural network: its vector in shared memory, its matrix in a buffer.
struct Multiplier {
  static constexpr uint32_t shared_scratch_bytes = 4 * (1024 + 4) + 16;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Multiply::Reader in, view::Product::Builder out) {
    const uint32_t rows = in.getRows(), columns = in.getColumns();
    const uint64_t size = uint64_t(rows) * columns;
    const auto vector = in.getVector();
    const auto matrix = ctx.buffer<const float>(in.getMatrix(), size + (in.getBias() ? rows : 0));
    const uint32_t shift = in.getShifted() ? 1 : 0;
    const auto x = ctx.scratch<float, gyre::ScratchIn::shared>(columns + shift);
    const auto y = out.initValues(rows);
    if (!ctx.ok()) return;
    for (uint32_t i = ctx.rank(); i < columns; i += ctx.size()) x[i + shift] = vector[i];
    ctx.sync();
    gyre::multiply_add(ctx, {matrix.data(), rows, columns}, x.data() + shift,
                       in.getBias() ? matrix.data() + size : nullptr, y.data(),
                       [](float value) { return value < 0 ? 0 : value; });
  }
};

/// Several waiting messages at once, each of which ends as it would alone.
struct Crowd {
  using Handles = gyre::Handles<view::Join, view::Leave, view::Attend, view::Detain>;

  uint64_t joined = 0;
  uint64_t left = 0;
  uint64_t sum = 0;
  uint32_t left_together = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Join::Reader in, view::Joined::Builder out) {
    answer(ctx, in, out, 1, 0);
    if (fails(ctx, in)) ctx.fail(uint32_t(in.getNumber()));
    if (in.getWay() == view::Way::FAIL_ALL) ctx.fail(4);
    if (ctx.ok()) count(ctx, out);
  }
  GYRE_DEVICE void on_batch(gyre::Context& ctx, gyre::Requests<view::Join> requests,
                            gyre::Replies<view::Joined> replies) {
    for (uint32_t n = 0; n < requests.size(); ++n) {
      answer(ctx, requests[n], replies[n], requests.size(), n);
      if (fails(ctx, requests[n])) requests.fail(n, uint32_t(requests[n].getNumber()));
      if (requests[n].getWay() == view::Way::FAIL_ALL) ctx.fail(4);
    }
    if (requests[0].getNumber() % 2 != 0) (void)ctx.should_stop();
    for (uint32_t n = 0; n < requests.size(); ++n) {
      if (requests.ok(n)) count(ctx, replies[n]);
    }
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Leave::Reader in) {
    if (in.getFails()) return ctx.fail(uint32_t(in.getNumber()));
    if (ctx.rank() == 0) leave(in.getNumber(), 1);
  }
  GYRE_DEVICE void on_batch(gyre::Context& ctx, gyre::Requests<view::Leave> requests) {
    for (uint32_t n = 0; n < requests.size(); ++n) {
      const uint64_t number = requests[n].getNumber();
      if (requests[n].getFails()) {
        requests.fail(n, uint32_t(number));
      } else if (ctx.rank() == 0) {
        leave(number, requests.size());
      }
    }
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Attend::Reader, view::Attended::Builder out) {
    ctx.sync();
    out.setJoined(joined);
    out.setLeft(left);
    out.setSum(sum);
    out.setTogether(left_together);
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Detain::Reader in, view::Freed::Builder) {
    const auto flag = ctx.buffer<uint64_t>(in.getFlag(), 1);
    if (ctx.status() != gyre::Status::ok) return;
#if defined(__CUDACC_RTC__)
    while (*static_cast<const volatile uint64_t*>(flag.data()) == 0) {
    }
#else
    while (__atomic_load_n(flag.data(), __ATOMIC_ACQUIRE) == 0) {
    }
#endif
  }

 private:
  GYRE_DEVICE static bool fails(const gyre::Context& ctx, const view::Join::Reader& in) {
    const view::Way way = in.getWay();
    return way == view::Way::FAIL || (way == view::Way::FAIL_IN_ONE_THREAD && ctx.rank() + 1 == ctx.size());
  }
  GYRE_DEVICE static void answer(const gyre::Context& ctx, const view::Join::Reader& in,
                                 const view::Joined::Builder& out, uint32_t together, uint32_t place) {
    const auto list = in.getList();
    const auto copy = out.initList(list.size() + in.getFiller());
    for (uint32_t i = ctx.rank(); i < copy.size(); i += ctx.size())
      copy.set(i, i < list.size() ? list[i] + 1 : i);
    out.setTogether(together);
    out.setPlace(place);
  }
  // All threads, once the message can no longer fail.
  GYRE_DEVICE void count(const gyre::Context& ctx, const view::Joined::Builder& out) {
    if (ctx.rank() == 0) ++joined;
    ctx.sync();
    out.setCount(joined);
    ctx.sync();
  }
  GYRE_DEVICE void leave(uint64_t number, uint32_t together) {
    ++left;
    sum += number;
    if (together > left_together) left_together = together;
  }
};

/// Takes three at most.
struct Trio : Crowd {
  using Handles = gyre::Handles<view::Join>;
  static constexpr uint32_t most_in_batch = 3;
};

}  // namespace gyre_handlers
