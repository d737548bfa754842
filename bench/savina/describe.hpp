// What the descriptions of the benchmarks share.
#pragma once

#include <fmt/format.h>
#include <bench/savina/collector.hpp>
#include <bench/savina/run.official.hpp>
#include <gyre_bench_savina_sources.hpp>

#include <algorithm>
#include <utility>

#include "savina/benchmark.hpp"

namespace gyre::bench::savina {

/// Returns percent of a number, at least 1.
inline uint32_t percent_of(uint32_t number, uint32_t percent) {
  return uint32_t(std::max<uint64_t>(1, uint64_t(number) * percent / 100));
}
/// Returns the size with so many percent of the messages.
inline Size fewer_messages(const Size& full, uint32_t percent) {
  Size size = full;
  size.messages = percent_of(full.messages, percent);
  return size;
}

/// Tells the actors of type First with keys 0, `stride`, 2 `stride`, … to begin.
template <class First>
TellManyResult start_each(Client& client, uint64_t instances, const Size& size, uint64_t stride = 1) {
  using gyre_savina::run::Start;
  return client.tell_many<Start>([&](size_t i) { return Address<First>{i * stride}; }, instances,
                                 [&](size_t, Start::Builder start) {
                                   start.setMessages(size.messages);
                                   start.setActors(uint16_t(size.actors));
                                   start.setUnderWay(uint16_t(size.under_way));
                                 });
}

/// Returns the set of these actors and the collector.
template <class... Actors>
ActorSet set_of() {
  return ActorSet::of<Actors..., gyre_savina::Collector>(gyre_bench_savina::sources);
}

// One a benchmark, in a file of its name.
Benchmark ping_pong();
Benchmark counting();
Benchmark fork_join();
Benchmark create();
Benchmark big();
Benchmark fib();
Benchmark dictionary();
Benchmark bank();

}  // namespace gyre::bench::savina
