// Actors that leave no trace where a message ends in an error: by asking ctx.ok() first, and by having their
// state rolled back; and actors that use scratch memory.
#pragma once

#include <gyre/device/context.hpp>
#include <gyre/device/parallel.hpp>
#include <support/actors/ledger.view.hpp>

namespace gyre_ledgers {

/// Fills a list of `words` words from `first` on.
GYRE_DEVICE inline void fill(gyre::Context& ctx, view::Total::Builder out, uint32_t words, uint64_t first) {
  const auto filler = out.initFiller(words);
  for (uint32_t k = ctx.rank(); k < filler.size(); k += ctx.size()) filler.set(k, first + k);
}

/// Fails as `end` says.
GYRE_DEVICE inline void end_as(gyre::Context& ctx, view::End end, uint64_t code) {
  const bool last = ctx.rank() + 1 == ctx.size();
  if (end == view::End::FAIL || (end == view::End::FAIL_IN_ONE_THREAD && last)) ctx.fail(uint32_t(code));
  GYRE_CHECK(end != view::End::CHECK && !(end == view::End::CHECK_IN_ONE_THREAD && last));
}

/// Reads all, builds the whole reply, asks whether that is well, and only then changes its state.
struct Careful {
  using Handles = gyre::Handles<view::Entry, view::Read>;

  uint64_t total = 0;
  uint64_t entries = 0;

  GYRE_DEVICE static constexpr uint32_t max_reply_bytes(view::Entry) { return 4096; }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Entry::Reader in, view::Total::Builder out) {
    const uint64_t amount = in.getAmount();
    const auto late = in.getLate();
    const uint64_t before = total, entries_before = entries;
    uint64_t sum = before + amount;
    for (uint32_t i = 0; i < late.size(); ++i) sum += late[i];
    sum += in.getNote().size();
    fill(ctx, out, in.getWords(), sum);
    end_as(ctx, in.getEnd(), amount);
    const bool sound = ctx.ok();
    if (!sound && in.getEnd() != view::End::GO_ON) return;
    if (ctx.rank() == 0) {
      total = sum;
      ++entries;
    }
    out.setTotal(sum);
    out.setEntries(sound ? entries_before + 1 : 0);
    out.setThreads(gyre::sum(ctx, uint32_t(1)));
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Read::Reader in, view::Total::Builder out) {
    fill(ctx, out, in.getWords(), total);
    out.setTotal(total);
    out.setEntries(entries);
  }
};

/// Changes all its state first, and finds out afterwards whether that was well. `words`: of its state.
template <uint32_t words>
struct UndoneOf {
  using Handles = gyre::Handles<view::Entry, view::Read>;
  static constexpr bool rollback_on_error = true;

  uint64_t state[words] = {};

  GYRE_DEVICE void on_start(gyre::Context& ctx) {
    if (ctx.rank() == 0) state[words - 1] = 1000 * ctx.key();
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Entry::Reader in, view::Total::Builder out) {
    const uint64_t amount = in.getAmount();
    ctx.sync();
    for (uint32_t i = ctx.rank(); i < words; i += ctx.size()) state[i] += amount + i;
    ctx.sync();
    const auto late = in.getLate();
    for (uint32_t i = 0; i < late.size(); ++i) {
      if (ctx.rank() == 0) state[0] += late[i];
    }
    const uint32_t note = in.getNote().size();
    if (ctx.rank() == 0) state[0] += note;
    ctx.sync();
    fill(ctx, out, in.getWords(), state[0]);
    out.setTotal(sum_of_state(ctx));
    out.setThreads(gyre::sum(ctx, uint32_t(1)));
    end_as(ctx, in.getEnd(), amount);
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Read::Reader in, view::Total::Builder out) {
    fill(ctx, out, in.getWords(), state[0]);
    out.setTotal(sum_of_state(ctx));
  }

 private:
  GYRE_DEVICE uint64_t sum_of_state(gyre::Context& ctx) const {
    uint64_t sum = 0;
    for (uint32_t i = ctx.rank(); i < words; i += ctx.size()) sum += state[i] * (i + 1);
    return gyre::sum(ctx, sum);
  }
};
using Undone = UndoneOf<8>;
using LargeUndone = UndoneOf<512>;  // 4,096 bytes, as many as may be

/// The same state, and nothing puts it back: what the two others are held against.
struct Careless {
  using Handles = gyre::Handles<view::Entry, view::Read>;

  uint64_t total = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Entry::Reader in, view::Total::Builder out) {
    if (ctx.rank() == 0) total += in.getAmount();
    ctx.sync();
    fill(ctx, out, in.getWords(), total);
    out.setTotal(total);
    (void)in.getLate();
    (void)in.getNote();
    end_as(ctx, in.getEnd(), in.getAmount());
  }
  GYRE_DEVICE void on(gyre::Context&, view::Read::Reader, view::Total::Builder out) { out.setTotal(total); }
};

/// What `seed` gives for element i.
GYRE_DEVICE constexpr uint64_t element(uint64_t seed, uint64_t i) {
  return (seed + i) * 0x9e3779b97f4a7c15u >> 7;
}

/// All threads write elements of scratch memory, one finds the least of them, all read what others wrote.
struct Picker {
  static constexpr uint32_t scratch_bytes = 2000;
  static constexpr bool rollback_on_error = true;  // its copy lies in front of the scratch memory

  uint64_t picks = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Pick::Reader in, view::Picked::Builder out) {
    if (ctx.rank() == 0) ++picks;
    const auto elements = ctx.scratch<uint64_t>(in.getCount());
    const auto least = ctx.scratch<uint64_t>(1);
    const auto more = ctx.scratch<uint32_t>(in.getMore());
    if (ctx.status() != gyre::Status::ok) return;
    for (uint64_t i = ctx.rank(); i < elements.size(); i += ctx.size())
      elements[i] = element(in.getSeed(), i);
    for (uint64_t i = ctx.rank(); i < more.size(); i += ctx.size()) more[i] = uint32_t(i);
    ctx.sync();
    if (ctx.rank() == 0) {
      least[0] = ~uint64_t(0);
      for (uint64_t i = 0; i < elements.size(); ++i) {
        if (elements[i] < least[0]) least[0] = elements[i];
      }
    }
    uint64_t sum = 0, more_sum = 0;
    for (uint64_t i = ctx.rank(); i < elements.size(); i += ctx.size())
      sum += elements[elements.size() - 1 - i];
    for (uint64_t i = ctx.rank(); i < more.size(); i += ctx.size()) more_sum += more[more.size() - 1 - i];
    ctx.sync();
    out.setPicks(picks);
    out.setLeast(least[0]);
    out.setSum(gyre::sum(ctx, sum));
    out.setMoreSum(gyre::sum(ctx, more_sum));
    const auto address = reinterpret_cast<uintptr_t>(elements.data());
    out.setApart(uint32_t(reinterpret_cast<uintptr_t>(more.data()) - address));
    out.setMisaligned(uint32_t(address | reinterpret_cast<uintptr_t>(more.data())) % 16);
  }
};

/// The same for several messages at a time: each team has memory of its own.
struct SidePicker {
  static constexpr uint32_t scratch_bytes = 64;
  static constexpr bool side_by_side = true;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Pick::Reader in, view::Picked::Builder out) {
    const auto elements = ctx.scratch<uint64_t>(in.getCount());
    if (ctx.status() != gyre::Status::ok) return;
    for (uint64_t i = ctx.rank(); i < elements.size(); i += ctx.size())
      elements[i] = element(in.getSeed(), i);
    ctx.sync();
    uint64_t sum = 0;
    for (uint64_t i = 0; i < elements.size(); ++i) sum += elements[i];
    out.setSum(sum);
    out.setApart(ctx.size());
  }
};

}  // namespace gyre_ledgers
