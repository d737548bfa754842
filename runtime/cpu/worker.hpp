// A worker on the CPU: the device's Worker with memory of its own.
#pragma once

#include <gyre/device/worker_loop.hpp>
#include <gyre/runtime/backoff.hpp>

#include <vector>

namespace gyre {

/// One worker of any actor set. Run it from one thread.
class CpuWorker {
 public:
  virtual ~CpuWorker() = default;
  /// Works until commanded to stop.
  virtual void run() = 0;
  /// What run() begins with, for who steps the worker. False: it is not to be stepped.
  virtual bool start() = 0;
  /// At most one message.
  virtual Decision step() = 0;
  /// Publishes final counters, after step() said stop.
  virtual void finish() = 0;
};

template <class... Actors>
class CpuWorkerOf final : public CpuWorker {
 public:
  CpuWorkerOf(const Bridge& bridge, const EngineMemory& memory, WaitPolicy wait)
      : request_(message_packets(bridge.shape)),
        response_(message_packets(bridge.shape)),
        wait_(wait),
        worker_(bridge, memory, words(request_), words(response_), shared_) {}

  void run() override {
    detail::worker_shared_of_this_thread = &shared_;
    Backoff backoff(wait_);
    worker_.run([&backoff](uint32_t empty_polls) {
      if (empty_polls == 1) backoff.reset();
      backoff.pause();
    });
  }
  bool start() override { return worker_.start(); }
  Decision step() override {
    detail::worker_shared_of_this_thread = &shared_;
    return worker_.step();
  }
  void finish() override {
    detail::worker_shared_of_this_thread = &shared_;
    worker_.finish();
  }

 private:
  // Zeroed and 16-aligned.
  static size_t message_packets(const RingShape& shape) {
    return (message_words(shape) * sizeof(uint32_t) + sizeof(Packet) - 1) / sizeof(Packet);
  }
  static uint32_t* words(std::vector<Packet>& packets) { return packets.front().data; }

  std::vector<Packet> request_;
  std::vector<Packet> response_;
  WaitPolicy wait_;
  WorkerShared shared_{};
  Worker<Actors...> worker_;
};

}  // namespace gyre
