// Faulty: does to its worker what handlers should not.
#pragma once

#include <faults/faulty.view.hpp>
#include <gyre/device/context.hpp>

namespace faults {

struct Faulty {
  uint64_t survived = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Provoke::Reader in, view::Survived::Builder out) {
    switch (in.getFault()) {
      case view::Fault::NONE:
        break;
      case view::Fault::NULL_POINTER:
        *static_cast<volatile int*>(nullptr) = 1;
        break;
      case view::Fault::TRAP:
#if defined(__CUDACC_RTC__)
        __trap();
#else
        __builtin_trap();
#endif
        break;
      case view::Fault::CHECK:
        GYRE_CHECK(in.getFault() == view::Fault::NONE);
        break;
      case view::Fault::ENDLESS:
        while (ctx.now_ns() != 0) {
        }
    }
    ctx.sync();
    if (ctx.rank() == 0) ++survived;
    ctx.sync();
    out.setTimes(survived);
  }
};

}  // namespace faults
