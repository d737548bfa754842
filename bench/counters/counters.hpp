// Counters, and actors that send them increments, for gyre-bench counters.
#pragma once

#include <bench/counters/counters.view.hpp>
#include <gyre/device/sending.hpp>

namespace gyre_counting {

/// Returns another number for each (the finaliser of SplitMix64).
GYRE_DEVICE constexpr uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

/// Returns the amount of increment number `number`.
GYRE_DEVICE constexpr uint32_t amount_of(uint64_t number) { return uint32_t(mix(number)); }

/// Returns a pseudo-random counter below `counters`, which is below 2^32, for increment number `number`.
GYRE_DEVICE constexpr uint64_t random_counter(uint64_t number, uint64_t counters) {
  return (mix(~number) >> 32) * counters >> 32;
}

/// Returns the place of `number` in a pseudo-random order of the numbers below `count`: another for each.
/// @param number  below `count`
///
/// Each step of the loop maps the numbers below a power of two onto themselves, one to one: shifts to the
/// right and odd factors can be undone. Steps that leave the numbers below `count` are repeated, which keeps
/// the map one to one ("cycle walking": Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
GYRE_DEVICE constexpr uint64_t shuffled(uint64_t number, uint64_t count) {
  uint32_t bits = 1;
  while (count > uint64_t(1) << bits) ++bits;
  const uint64_t mask = (uint64_t(1) << bits) - 1;
  const uint32_t shift = bits / 2 + 1;
  do {
    number ^= number >> shift;
    number = (number * 0xbf58476d1ce4e5b9u + 0x9e3779b9u) & mask;
    number ^= number >> shift;
    number = number * 0x94d049bb133111ebu & mask;
    number ^= number >> shift;
  } while (number >= count);
  return number;
}

/// Returns the counter of increment number `number`: pseudo-random, or each of all counters once before one
/// gets another.
GYRE_DEVICE constexpr uint64_t counter_of(uint64_t number, uint64_t counters, bool evenly) {
  return evenly ? shuffled(number % counters, counters) : random_counter(number, counters);
}

/// Returns the number of the first increment of sender `sender`; its last one comes before the next sender's.
/// @param increments  number of increments of all `senders`
GYRE_DEVICE constexpr uint64_t first_of_sender(uint64_t increments, uint64_t sender, uint64_t senders) {
  return increments / senders * sender + increments % senders * sender / senders;
}

/// Counts and adds up. Its state is 16 bytes.
struct Counter {
  using Handles = gyre::Handles<view::Increment, view::CountRequest>;
  static constexpr bool keys_side_by_side = true;

  uint64_t increments = 0, sum = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Increment::Reader in) {
    if (ctx.rank() != 0) return;
    ++increments;
    sum += in.getAmount();
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::CountRequest::Reader, view::Count::Builder out) {
    out.setIncrements(uint32_t(increments));
    out.setSum(uint32_t(sum));
    ctx.sync();
  }
};
static_assert(sizeof(Counter) == 16);

/// Sends increments, `at_once` by each call of its handler, and tells itself to go on. Its key is its worker.
///
/// Nothing else bounds how far senders run ahead: counters neither answer nor send, so a worker that has no
/// room to send still handles increments. A full mailbox therefore holds its senders only for a time, and no
/// increment waits in spill memory for a handler that may not run.
struct Sender {
  using Handles = gyre::Handles<view::Among, view::Start, view::GoOn>;
  static constexpr uint32_t max_per_worker = 1;
  static constexpr uint32_t at_once = 31;

  uint64_t next = 0, end = 0;  // increments to send
  uint32_t counters = 0, senders = 0;
  bool evenly = false;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Among::Reader in) {
    if (ctx.rank() != 0) return;
    counters = in.getCounters();
    senders = in.getSenders();
    evenly = in.getEvenly();
  }
  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, view::Start::Reader in) {
    GYRE_CHECK(senders != 0);  // Among came before
    const uint64_t first = first_of_sender(in.getIncrements(), ctx.key(), senders);
    if (ctx.rank() == 0) end = first_of_sender(in.getIncrements(), ctx.key() + 1, senders);
    ctx.sync();
    send(ctx, first);
  }
  GYRE_DEVICE void on(gyre::Sending<at_once + 1>& ctx, view::GoOn::Reader) {
    const uint64_t first = next;
    ctx.sync();  // every thread has read it
    send(ctx, first);
  }

 private:
  GYRE_DEVICE void send(gyre::Sending<at_once + 1>& ctx, uint64_t first) {
    const uint64_t left = end - first, among = counters;
    const uint32_t now = left < at_once ? uint32_t(left) : at_once;
    const bool all_once = evenly;
    ctx.tell_each<view::Increment>(
        now, [&](uint32_t n) { return gyre::Address<Counter>{counter_of(first + n, among, all_once)}; },
        [&](uint32_t n, view::Increment::Builder told) { told.setAmount(amount_of(first + n)); });
    if (ctx.rank() == 0) next = first + now;
    if (left > now) ctx.tell<view::GoOn>(gyre::Address<Sender>{ctx.key()}, [](view::GoOn::Builder) {});
  }
};

}  // namespace gyre_counting
