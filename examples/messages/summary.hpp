// Summary: turns readings into degrees Celsius, and finds the hottest.
#pragma once

#include <gyre/device/context.hpp>
#include <gyre/device/parallel.hpp>
#include <station/readings.view.hpp>

namespace station {

struct Summary {
  using Handles = gyre::Handles<view::SummaryRequest, view::Calibration>;

  // State: one for all threads of the group, and one for each key.
  float offset = 0;
  uint32_t hottest = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::SummaryRequest::Reader in,
                      view::SummaryResponse::Builder out) {
    const auto readings = in.getReadings();                 // once: each call follows the pointer anew
    const auto results = out.initResults(readings.size());  // every thread, with the same size
    const auto limit = in.getLimit();
    const bool limited = limit.which() == view::SummaryRequest::Limit::AT_MOST;

    gyre::for_each(ctx, readings, [&](uint32_t i, view::Reading::Reader reading) {  // each thread its share
      const float degrees = celsius(reading);
      results[i].setCelsius(degrees);
      results[i].setAbove(limited && degrees > limit.getAtMost());
    });

    if (readings.size() == 0) return;  // the same in every thread
    if (ctx.rank() == 0) {
      hottest = 0;
      for (uint32_t i = 1; i < readings.size(); ++i) {
        if (celsius(readings[i]) > celsius(readings[hottest])) hottest = i;
      }
    }
    ctx.sync();  // from here on every thread sees what rank 0 found
    out.setHottest(readings[hottest].getSensor());
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Calibration::Reader in) {
    if (ctx.rank() == 0) offset = in.getOffset();
  }

 private:
  GYRE_DEVICE float celsius(view::Reading::Reader reading) const {
    const float value = reading.getValue() * reading.getGain();
    const bool fahrenheit = reading.getUnit() == view::Unit::FAHRENHEIT;
    return (fahrenheit ? (value - 32) / 1.8f : value) + offset;
  }
};

}  // namespace station
