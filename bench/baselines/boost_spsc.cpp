#include "baselines/boost_spsc.hpp"

#include <emmintrin.h>
#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>

#include <atomic>
#include <boost/lockfree/spsc_queue.hpp>
#include <thread>

#include "affinity.hpp"
#include "echo_message.hpp"
#include "threads.hpp"

namespace gyre::bench {

namespace {

// A queue of words: a message goes in and comes out by one call of the bulk interface, which publishes all
// its words by one store of the index.
class alignas(128) MessageQueue {
 public:
  MessageQueue(size_t words, size_t messages) : words_(words), queue_(words * messages) {}

  bool try_push(const uint64_t* message) {
    return queue_.write_available() >= words_ && queue_.push(message, words_) == words_;
  }
  bool try_pop(uint64_t* message) { return queue_.pop(message, words_) == words_; }

 private:
  size_t words_;
  boost::lockfree::spsc_queue<uint64_t> queue_;
};

// Echoes every request as its response.
class SpscThread {
 public:
  SpscThread(size_t words, size_t messages)
      : requests(words, messages), responses(words, messages), thread_([this, words] { run(words); }) {}
  ~SpscThread() {
    stopping_.store(true, std::memory_order_relaxed);
    thread_.join();
  }
  SpscThread(const SpscThread&) = delete;
  SpscThread& operator=(const SpscThread&) = delete;

  pthread_t handle() { return thread_.native_handle(); }

  MessageQueue requests, responses;

 private:
  void run(size_t words) {
    std::vector<uint64_t> message(words);
    while (!stopping_.load(std::memory_order_relaxed)) {
      if (!requests.try_pop(message.data())) {
        _mm_pause();
      } else {
        while (!responses.try_push(message.data()) && !stopping_.load(std::memory_order_relaxed)) _mm_pause();
      }
    }
  }

  alignas(128) std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace

Row measure_boost_spsc(const Plan& plan, uint32_t size) {
  Row row{.name = "boost-spsc", .transport = "heap", .size = size, .wait = "spin"};
  const size_t words = size / sizeof(uint64_t);
  EchoMessage message(fmt::format("boost-spsc at {} bytes", size), words);
  SpscThread echo(words, plan.options.slots);
  const Pinned here(pthread_self(), plan.own_cpu), there(echo.handle(), plan.baseline_cpu);
  std::vector<uint64_t> reply(words);
  row.record(measure(
      plan, [&] { message.next(); },
      [&] {
        while (!echo.requests.try_push(message.words().data())) _mm_pause();
        while (!echo.responses.try_pop(reply.data())) _mm_pause();
        message.expect(reply);
      }));
  return row;
}

double measure_boost_spsc_one_way(uint32_t size, uint64_t messages, uint32_t slots) {
  const size_t words = size / sizeof(uint64_t);
  MessageQueue queue(words, slots);
  constexpr uint32_t sender = 0;
  std::vector<uint64_t> sent(words), taken(words);
  std::atomic<bool> wrong{false};
  const auto word = [](uint64_t message, size_t i) { return message * 0x9e3779b97f4a7c15u + i; };
  const auto part = [&](uint32_t thread, uint64_t first, uint64_t end) {
    for (uint64_t n = first; n < end && !wrong.load(std::memory_order_relaxed); ++n) {
      if (thread == sender) {
        for (size_t i = 0; i < words; ++i) sent[i] = word(n, i);
        while (!queue.try_push(sent.data()) && !wrong.load(std::memory_order_relaxed)) _mm_pause();
      } else {
        while (!queue.try_pop(taken.data())) _mm_pause();
        for (size_t i = 0; i < words; ++i) {
          if (taken[i] == word(n, i)) continue;
          wrong = true;
          throw Error(fmt::format("boost-spsc one way: word {} of message {} came as 0x{:x}, not 0x{:x}", i,
                                  n, taken[i], word(n, i)));
        }
      }
    }
  };
  const uint64_t warm_up = (messages + 9) / 10;
  return run_together(
      2, [&](uint32_t t) { part(t, 0, warm_up); }, [&](uint32_t t) { part(t, warm_up, warm_up + messages); });
}

}  // namespace gyre::bench
