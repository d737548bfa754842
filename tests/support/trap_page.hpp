// A thread that is suspended between two instructions of the runtime, by memory that it reads.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

namespace gyre_test {

/// A page that suspends the first thread that touches it, until it is let go; then it is an ordinary page,
/// with what fill() put there. One at a time.
class TrapPage {
 public:
  static constexpr size_t bytes = 4096;

  TrapPage()
      : address_(static_cast<std::byte*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    trap().store(this, std::memory_order_release);
    struct sigaction action {};
    action.sa_sigaction = suspend;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before_);
  }
  ~TrapPage() {
    let_go();
    sigaction(SIGSEGV, &before_, nullptr);
    trap().store(nullptr, std::memory_order_release);
    munmap(address_, bytes);
  }
  TrapPage(const TrapPage&) = delete;
  TrapPage& operator=(const TrapPage&) = delete;

  std::byte* address() const { return address_; }
  void set() { mprotect(address_, bytes, PROT_NONE); }
  /// Returns once a thread is suspended.
  void wait_until_touched() const {
    while (!touched_.load(std::memory_order_acquire)) usleep(100);
  }
  void let_go() {
    mprotect(address_, bytes, PROT_READ | PROT_WRITE);
    go_.store(true, std::memory_order_release);
  }

 private:
  static std::atomic<TrapPage*>& trap() {
    static std::atomic<TrapPage*> trap{nullptr};
    return trap;
  }
  static void suspend(int, siginfo_t* info, void*) {
    TrapPage* const page = trap().load(std::memory_order_acquire);
    const auto* const at = static_cast<const std::byte*>(info->si_addr);
    if (page == nullptr || at < page->address_ || at >= page->address_ + bytes) {
      signal(SIGSEGV, SIG_DFL);  // it is no trap: the instruction faults once more
      return;
    }
    page->touched_.store(true, std::memory_order_release);
    while (!page->go_.load(std::memory_order_acquire)) usleep(100);
  }

  std::byte* const address_;
  std::atomic<bool> touched_{false}, go_{false};
  struct sigaction before_ {};
};

}  // namespace gyre_test
