#include "baselines/floor.hpp"

#include <emmintrin.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "affinity.hpp"
#include "echo_message.hpp"

namespace gyre::bench {

namespace {

constexpr uint64_t stop = UINT64_MAX;

struct alignas(128) Word {
  std::atomic<uint64_t> value{0};
};

// Echoes the request word into the response word until that is `stop`.
class FloorThread {
 public:
  FloorThread() : thread_([this] { run(); }) {}
  ~FloorThread() {
    request.value.store(stop, std::memory_order_release);
    thread_.join();
  }
  FloorThread(const FloorThread&) = delete;
  FloorThread& operator=(const FloorThread&) = delete;

  pthread_t handle() { return thread_.native_handle(); }

  Word request, response;

 private:
  void run() {
    for (uint64_t last = 0;;) {
      uint64_t value;
      while ((value = request.value.load(std::memory_order_acquire)) == last) _mm_pause();
      if (value == stop) return;
      response.value.store(value, std::memory_order_release);
      last = value;
    }
  }

  std::thread thread_;
};

}  // namespace

Row measure_floor(const Plan& plan) {
  Row row{.name = "floor", .transport = "heap", .size = sizeof(uint64_t), .wait = "spin"};
  row.remark = "one 8-byte word each way";
  EchoMessage message("floor", 1);
  FloorThread echo;
  const Pinned here(pthread_self(), plan.own_cpu), there(echo.handle(), plan.baseline_cpu);
  uint64_t last = 0;
  row.record(measure(
      plan, [&] { message.next(); },
      [&] {
        echo.request.value.store(message.sequence(), std::memory_order_release);
        uint64_t value;
        while ((value = echo.response.value.load(std::memory_order_acquire)) == last) _mm_pause();
        message.expect(0, value);
        last = value;
      }));
  return row;
}

}  // namespace gyre::bench
