#include "baselines/futex.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "affinity.hpp"
#include "echo_message.hpp"

namespace gyre::bench {

namespace {

// A message and its number, which the one who waits sleeps on.
class alignas(128) Mailbox {
 public:
  explicit Mailbox(size_t words) : message(words) {}

  void post(uint32_t number) {
    number_.store(number, std::memory_order_release);
    syscall(SYS_futex, address(), FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
  }
  void wait_beyond(uint32_t number) const {
    while (number_.load(std::memory_order_acquire) == number)
      syscall(SYS_futex, address(), FUTEX_WAIT | FUTEX_PRIVATE_FLAG, number, nullptr, nullptr, 0);
  }

  std::vector<uint64_t> message;

 private:
  const uint32_t* address() const { return reinterpret_cast<const uint32_t*>(&number_); }

  std::atomic<uint32_t> number_{0};
  static_assert(sizeof number_ == sizeof(uint32_t));
};

// Echoes every request as its response.
class FutexThread {
 public:
  explicit FutexThread(size_t words) : request(words), response(words), thread_([this] { run(); }) {}
  ~FutexThread() {
    stopping_.store(true, std::memory_order_relaxed);
    request.post(~uint32_t(0));
    thread_.join();
  }
  FutexThread(const FutexThread&) = delete;
  FutexThread& operator=(const FutexThread&) = delete;

  pthread_t handle() { return thread_.native_handle(); }

  Mailbox request, response;

 private:
  void run() {
    for (uint32_t number = 0;; ++number) {
      request.wait_beyond(number);
      if (stopping_.load(std::memory_order_relaxed)) return;
      response.message = request.message;
      response.post(number + 1);
    }
  }

  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace

Row measure_futex(const Plan& plan, uint32_t size, std::chrono::microseconds pause) {
  Row row{.name = "futex", .transport = "heap", .size = size, .wait = "futex"};
  const size_t words = size / sizeof(uint64_t);
  EchoMessage message(fmt::format("futex after {} us", pause.count()), words);
  FutexThread echo(words);
  const Pinned here(pthread_self(), plan.own_cpu), there(echo.handle(), plan.baseline_cpu);
  uint32_t number = 0;
  row.record(measure(
      plan,
      [&] {
        message.next();
        std::this_thread::sleep_for(pause);
      },
      [&] {
        std::copy(message.words().begin(), message.words().end(), echo.request.message.begin());
        echo.request.post(number + 1);
        echo.response.wait_beyond(number++);
        message.expect(echo.response.message);
      }));
  return row;
}

}  // namespace gyre::bench
