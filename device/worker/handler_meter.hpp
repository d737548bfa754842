// Counts what becomes of a worker's messages, by handler, and how long handlers take.
#pragma once

#include <gyre/bridge/handler_counts.hpp>
#include <gyre/bridge/packet.hpp>
#include <gyre/device/platform.hpp>
#include <gyre/messages/status.hpp>

namespace gyre {

/// How long a tick of clock_ticks() was when that was last measured.
struct TickLength {
  static constexpr uint32_t fraction_bits = 24;

  uint32_t ns;  ///< with that many bits behind the point

  /// Nanoseconds of so many ticks: of 18 minutes and less, at 2 GHz.
  GYRE_DEVICE uint64_t ns_of(uint64_t ticks) const { return ticks * ns >> fraction_bits; }
};

/// Refers to the counts, one for each handler and one more for messages that are for none. Times are those of
/// the multiprocessor's or the processor's clock, turned into nanoseconds by a rate that is measured again
/// every 32 ms. One thread counts for a message: rank 0 of the team that handled it.
class HandlerMeter {
 public:
  /// `counts`: the worker's own, zeroed, `entries` of them. Takes some 20 µs, to compare the clocks.
  GYRE_DEVICE HandlerMeter(HandlerCounts* counts, uint32_t entries) : counts_(counts), entries_(entries) {
    const ClockPair begin = ClockPair::now();
    ClockPair end = begin;
    while (end.ns - begin.ns < first_comparison_ns) end = ClockPair::now();
    compare(begin, end);
  }

  /// The engine's two clocks at one time.
  struct ClockPair {
    uint64_t ticks;
    uint64_t ns;
    GYRE_DEVICE static ClockPair now() { return {clock_ticks(), steady_ns()}; }
  };
  /// From now on times are by the rate between those.
  GYRE_DEVICE void compare(const ClockPair& begin, const ClockPair& end) {
    const uint64_t ticks = end.ticks - begin.ticks;
    if (ticks == 0) return;
    const float tick = ratio(end.ns - begin.ns, ticks) * (1u << TickLength::fraction_bits);
    tick_.ns = tick < 4e9f ? uint32_t(tick) : 4'000'000'000;
  }
  GYRE_DEVICE const TickLength& tick() const { return tick_; }

  GYRE_DEVICE HandlerCounts* of(uint32_t handler) const { return counts_ + handler; }
  /// Adds `n`, in one thread, to a count of an actor type; of a number that is no type's, nowhere.
  GYRE_DEVICE void add(uint32_t actor_type, uint64_t HandlerCounts::Actors::*count, uint64_t n) const {
    if (actor_type + 1 < entries_) add_soon(counts_[actor_type].actors.*count, n);
  }
  /// A message ended well, after `ticks` in its handler. Counted where `counts_it` is true: others of a group
  /// may call along, which spares a branch.
  GYRE_DEVICE void processed(HandlerCounts* counts, uint64_t ticks, bool counts_it) const {
    const uint64_t ns = tick_.ns_of(ticks);
    add_soon_if(counts_it, counts->processed[HandlerCounts::bin_of(ns)], 1);
    add_soon_if(counts_it, counts->processed_ns, ns);
  }
  /// One ended otherwise.
  GYRE_DEVICE void failed(HandlerCounts* counts, Status status, bool is_ask) const {
    add_soon(status == Status::expired ? counts->expired : counts->failed, 1);
    if (!is_ask) add_soon(counts->dead_letters, 1);
  }

  /// Copies all counts to `to`, where the host reads them. Collective over PollGroup.
  GYRE_DEVICE void publish(HandlerCounts* to) const {
    const auto* const from = reinterpret_cast<const uint64_t*>(counts_);
    auto* const words = reinterpret_cast<uint64_t*>(to);
    const uint64_t count = uint64_t(entries_) * (sizeof(HandlerCounts) / sizeof(uint64_t));
    PollGroup::sync();
    GYRE_ROLLED
    for (uint64_t first = 0; first < count; first += PollGroup::size()) {
      const uint64_t i = first + PollGroup::rank();
      if (i < count) Memory::store_relaxed(words[i], load_added(from[i]));
    }
    PollGroup::sync();
  }

 private:
  static constexpr uint64_t first_comparison_ns = 20'000;

  HandlerCounts* counts_;
  uint32_t entries_;
  TickLength tick_{1u << TickLength::fraction_bits};
};

}  // namespace gyre
