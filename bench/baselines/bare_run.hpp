// A bare kernel that runs while the host talks to it: launched, looked after, ended in bounded time.
#pragma once

#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>

#include <functional>

#include "baselines/cuda_kernel.hpp"

namespace gyre::bench {

/// Bare kernels that wait for messages end by themselves in less.
inline constexpr std::chrono::seconds bare_kernel_end_timeout{120};

/// Watches over the wait for one reply of a kernel that runs. One thread's.
class BareWait {
 public:
  BareWait(const CudaKernel& kernel, std::chrono::milliseconds timeout)
      : kernel_(kernel), timeout_(timeout) {}

  /// A reply came: the time runs anew.
  void reset() { polls_ = 0; }
  /// To be called at each empty poll. `name()` names the message. Throws Error once the kernel has ended or
  /// the time-out is over.
  template <class Name>
  void poll(Name&& name) {
    if (++polls_ % polls_between_looks == 0) look(name());
  }

 private:
  static constexpr uint64_t polls_between_looks = 1u << 16;
  using Clock = std::chrono::steady_clock;

  void look(const std::string& message) {
    if (polls_ == polls_between_looks) since_ = Clock::now();
    if (kernel_.ended()) {
      kernel_.check_ended();
      throw Error(message +
                  ": the kernel ended by itself, as it does after half a minute without a message; run it "
                  "again, and do not suspend this process meanwhile");
    }
    if (Clock::now() - since_ > timeout_) {
      throw Error(fmt::format("{}: no reply within {} ms; raise --timeout if the machine is that slow",
                              message, timeout_.count()));
    }
  }

  const CudaKernel& kernel_;
  const std::chrono::milliseconds timeout_;
  uint64_t polls_ = 0;
  Clock::time_point since_;
};

/// Ends a kernel however its scope is left. `stop()` tells it to end; `leak()` gives up the memory it polls,
/// where it does not. One thread's.
class BareEnd {
 public:
  BareEnd(CudaKernel& kernel, std::string name, std::function<void()> stop, std::function<void()> leak)
      : kernel_(kernel), name_(std::move(name)), stop_(std::move(stop)), leak_(std::move(leak)) {}
  ~BareEnd() {
    if (!over_ && !stopped()) give_up();
  }
  BareEnd(const BareEnd&) = delete;
  BareEnd& operator=(const BareEnd&) = delete;

  /// Throws Error unless the kernel ends, and ends well.
  void end() {
    if (!stopped()) {
      give_up();
      throw Error(
          fmt::format("ending the {} kernel: it still runs {} s after it was told to stop; its "
                      "memory is left allocated; check the GPU with nvidia-smi",
                      name_, bare_kernel_end_timeout.count()));
    }
    over_ = true;
    kernel_.check_ended();
  }

 private:
  bool stopped() {
    stop_();
    return kernel_.wait_until_ended(bare_kernel_end_timeout);
  }
  void give_up() {
    over_ = true;
    leak_();
    kernel_.abandon();
  }

  CudaKernel& kernel_;
  const std::string name_;
  const std::function<void()> stop_, leak_;
  bool over_ = false;
};

}  // namespace gyre::bench
