// Drivers tell increments to counters: one call sends many messages, and their receivers are handled
// together.
#pragma once

#include <farm/farm.view.hpp>
#include <gyre/device/sending.hpp>

namespace farm {

inline constexpr uint64_t counters = 1000;

/// Which counter a driver's increment is for, and by how much. The program computes it, too.
struct Planned {
  uint64_t counter;
  uint32_t by;
};
GYRE_DEVICE constexpr Planned planned(uint64_t driver, uint64_t number) {
  const uint64_t mixed = (driver << 32 | number) * 0x9e3779b97f4a7c15u;
  return {(mixed >> 32) % counters, uint32_t(mixed >> 16) % 100};
}

struct Counter {
  using Handles = gyre::Handles<view::Increment, view::CountRequest>;
  // On a GPU up to 32 increments of different counters are handled together, each by one thread.
  static constexpr bool keys_side_by_side = true;

  uint64_t increments = 0, value = 0;  // no atomics: a counter has one message at a time

  GYRE_DEVICE void on(gyre::Context& ctx, view::Increment::Reader in) {
    if (ctx.rank() != 0) return;
    ++increments;
    value += in.getBy();
  }
  GYRE_DEVICE void on(gyre::Context&, view::CountRequest::Reader, view::Count::Builder out) {
    out.setIncrements(increments);
    out.setValue(value);
  }
};

struct Driver {
  static constexpr uint32_t at_once = 31;

  // Sends up to 31 increments, and one message to itself for those that are left.
  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, view::Drive::Reader in) {
    const uint64_t driver = ctx.key(), from = in.getFrom(), left = in.getTo() - from;
    const uint32_t now = left < at_once ? uint32_t(left) : at_once;
    // Each thread builds messages of its own: message n is increment from + n.
    ctx.tell_each<view::Increment>(
        now, [&](uint32_t n) { return gyre::Address<Counter>{planned(driver, from + n).counter}; },
        [&](uint32_t n, view::Increment::Builder out) { out.setBy(planned(driver, from + n).by); });
    if (left == now) return;
    ctx.tell<view::Drive>(gyre::Address<Driver>{driver}, [&](view::Drive::Builder rest) {
      rest.setFrom(from + now);
      rest.setTo(in.getTo());
    });
  }
};

}  // namespace farm
