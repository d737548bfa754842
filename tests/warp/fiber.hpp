// Flows of control that one thread switches among without a system call, by Boost.Context. Each switch is
// announced to AddressSanitizer and ThreadSanitizer, which Debian's build of Boost.Context does not do.
#pragma once

#include <boost/context/detail/fcontext.hpp>

#include <cstddef>
#include <memory>

#if defined(__SANITIZE_ADDRESS__)
#define GYRE_TEST_ASAN_FIBERS
#elif defined(__SANITIZE_THREAD__)
#define GYRE_TEST_TSAN_FIBERS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GYRE_TEST_ASAN_FIBERS
#elif __has_feature(thread_sanitizer)
#define GYRE_TEST_TSAN_FIBERS
#endif
#endif
#if defined(GYRE_TEST_ASAN_FIBERS)
#include <sanitizer/common_interface_defs.h>
#elif defined(GYRE_TEST_TSAN_FIBERS)
#include <sanitizer/tsan_interface.h>
#endif

namespace gyre_test {

/// A flow of control. One that is made without a body is that of the thread itself. Not thread-safe: all
/// fibers that switch to each other belong to one thread. It may be moved until it first switches or is
/// switched to.
class Fiber {
 public:
  /// The running thread's own flow of control.
  Fiber() = default;
  /// Runs `body` on a stack of its own, once somebody switches to it. The body must not return, nor may an
  /// exception leave it: it ends with a switch to another fiber, after which nobody switches to it.
  explicit Fiber(void (*body)()) : own_(std::make_unique<Own>()) {
    own_->body = body;
    bottom_ = own_->stack.get();
    bytes_ = stack_bytes;
    context_ = boost::context::detail::make_fcontext(own_->stack.get() + stack_bytes, stack_bytes, enter);
  }

  /// Leaves this fiber, which must be the running one, for `next`; returns when somebody switches back to
  /// this one.
  void switch_to(Fiber& next) {
    void* shadow = nullptr;
#if defined(GYRE_TEST_ASAN_FIBERS)
    __sanitizer_start_switch_fiber(&shadow, next.bottom_, next.bytes_);
#elif defined(GYRE_TEST_TSAN_FIBERS)
    if (!own_) thread_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(next.own_ ? next.own_->tsan : next.thread_, 0);
#endif
    Switch here{this, &next};
    arrive(boost::context::detail::jump_fcontext(next.context_, &here), shadow);
  }

 private:
  static constexpr size_t stack_bytes = size_t(1) << 18;
  static_assert(stack_bytes % 16 == 0);
  struct Own {
    std::unique_ptr<char[]> stack{new char[stack_bytes]};
    void (*body)() = nullptr;
#if defined(GYRE_TEST_TSAN_FIBERS)
    void* tsan = __tsan_create_fiber(0);
    ~Own() { __tsan_destroy_fiber(tsan); }
#endif
  };
  struct Switch {
    Fiber *from, *to;
  };

  // Ends a switch, on the stack that it arrives on: notes where the fiber stopped that it left.
  static Fiber& arrive(boost::context::detail::transfer_t transfer, [[maybe_unused]] void* shadow) {
    const Switch& made = *static_cast<const Switch*>(transfer.data);
#if defined(GYRE_TEST_ASAN_FIBERS)
    __sanitizer_finish_switch_fiber(shadow, &made.from->bottom_, &made.from->bytes_);
#endif
    made.from->context_ = transfer.fctx;
    return *made.to;
  }
  static void enter(boost::context::detail::transfer_t transfer) {
    const Fiber& entered = arrive(transfer, nullptr);
    entered.own_->body();
    __builtin_trap();  // it returned
  }

  std::unique_ptr<Own> own_;  // none: the thread's
  boost::context::detail::fcontext_t context_ = nullptr;
  [[maybe_unused]] const void* bottom_ = nullptr;  // of its stack
  [[maybe_unused]] size_t bytes_ = 0;
  [[maybe_unused]] void* thread_ = nullptr;  // ThreadSanitizer's, of the thread
};

}  // namespace gyre_test
