// The actor that gathers the results of all instances of a benchmark.
#pragma once

#include <bench/savina/hash.hpp>
#include <bench/savina/run.view.hpp>
#include <gyre/device/sending.hpp>

namespace gyre_savina {

/// Keeps the result of instance `key - 1`. Collector 0 counts the instances that have ended.
struct Collector {
  using Handles =
      gyre::Handles<run::view::Done, run::view::Arrived, run::view::ProgressRequest, run::view::ValueRequest>;
  static constexpr uint32_t max_per_worker = most_instances + 1;

  uint64_t value = 0;  // of collector 0: how many have ended

  GYRE_DEVICE void on(gyre::Sending<1>& ctx, run::view::Done::Reader in) {
    if (ctx.rank() == 0) value = in.getValue();
    ctx.tell<run::view::Arrived>(gyre::Address<Collector>{0}, [](run::view::Arrived::Builder) {});
  }
  GYRE_DEVICE void on(gyre::Context& ctx, run::view::Arrived::Reader) {
    if (ctx.rank() == 0) ++value;
  }
  GYRE_DEVICE void on(gyre::Context& ctx, run::view::ProgressRequest::Reader,
                      run::view::Progress::Builder out) {
    out.setDone(value);
    ctx.sync();
  }
  GYRE_DEVICE void on(gyre::Context& ctx, run::view::ValueRequest::Reader, run::view::Value::Builder out) {
    out.setValue(value);
    ctx.sync();
  }
};

/// Tells the collector of an instance its result. Every thread calls it.
template <class Sending>
GYRE_DEVICE void report(Sending& ctx, uint64_t instance, uint64_t value) {
  ctx.template tell<run::view::Done>(gyre::Address<Collector>{instance + 1},
                                     [&](run::view::Done::Builder done) { done.setValue(value); });
}

}  // namespace gyre_savina
