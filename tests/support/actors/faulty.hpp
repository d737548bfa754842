// Faulty: answers, or does what its engine does not survive.
#pragma once

#include <gyre/device/context.hpp>
#include <support/actors/probe.view.hpp>

namespace gyre_test {

struct Faulty {
  using Handles = gyre::Handles<view::ProbeRequest>;

  GYRE_DEVICE void on(gyre::Context& ctx, view::ProbeRequest::Reader in, view::ProbeResponse::Builder out) {
    if (in.getAction() != view::Action::ANSWER) fault();
    out.setKey(ctx.key());
    out.setValue(2 * in.getArgument() + 1);
  }

 private:
  // On the fake driver's workers, which are threads, an exception stands for the fault.
  GYRE_DEVICE static void fault() {
#if defined(__CUDACC_RTC__)
    *reinterpret_cast<volatile uint32_t*>(uint64_t(16)) = 1;
#else
    throw "a device fault";
#endif
  }
};

}  // namespace gyre_test
