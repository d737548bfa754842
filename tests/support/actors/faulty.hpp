// Faulty: answers, or does what its engine does not survive.
#pragma once

#include <gyre/device/context.hpp>
#include <support/actors/probe.view.hpp>

namespace gyre_test {

struct Faulty {
  using Handles = gyre::Handles<view::ProbeRequest>;

  GYRE_DEVICE void on(gyre::Context& ctx, view::ProbeRequest::Reader in, view::ProbeResponse::Builder out) {
    if (in.getAction() == view::Action::WORK) return endless(ctx);
    if (in.getAction() != view::Action::ANSWER) fault(in.getAction());
    out.setKey(ctx.key());
    out.setValue(2 * in.getArgument() + 1);
  }

 private:
  // On the fake driver's workers, which are threads, an exception stands for the fault.
  GYRE_DEVICE static void fault([[maybe_unused]] view::Action action) {
#if defined(__CUDACC_RTC__)
    if (action == view::Action::FAIL_ALONE) __trap();
    *reinterpret_cast<volatile uint32_t*>(uint64_t(16)) = 1;
#else
    throw "a device fault";
#endif
  }
  GYRE_DEVICE static void endless(gyre::Context& ctx) {
    while (ctx.now_ns() != 0) {
    }
  }
};

}  // namespace gyre_test
