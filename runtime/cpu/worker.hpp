// A worker on the CPU: the device's Worker with memory of its own.
#pragma once

#include <gyre/device/worker/worker.hpp>
#include <gyre/runtime/core/backoff.hpp>
#include <gyre/runtime/cpu/worker_sleep.hpp>

#include <vector>

namespace gyre {

/// One worker of any actor set. Run it from one thread.
class CpuWorker {
 public:
  virtual ~CpuWorker() = default;
  /// Works until commanded to stop. Without work it spins, and then, if its WaitPolicy is polite, sleeps by
  /// `sleep`. Wakes threads that sleep until its replies arrive.
  virtual void run(WorkerSleep& sleep) = 0;
  /// Starts a worker that is stepped instead of run. Returns false if it must not be stepped.
  virtual bool start() = 0;
  /// Polls once, and handles at most one message, or one batch for an on_batch().
  virtual PollOutcome step() = 0;
  /// Makes `time_ns` the clock that judges deadlines, of a worker that is stepped. Handlers that read it move
  /// it forward. From now on step() publishes all counts. Call it before start(); `time_ns` must outlive the
  /// worker.
  virtual void use_time(uint64_t& time_ns) = 0;
  /// Returns true if messages to other actors wait, to be sent or handled: further steps may move them.
  virtual bool has_waiting() const = 0;
  /// Returns nanoseconds until the worker's next timer may be due; ~0 if none is set.
  virtual uint64_t ns_to_next_timer() = 0;
  /// Publishes the final counters. Call it after step() returned `stop`.
  virtual void finish() = 0;
};

template <class... Actors>
class CpuWorkerOf final : public CpuWorker {
 public:
  CpuWorkerOf(const Bridge& bridge, const EngineMemory& memory, WaitPolicy wait)
      : bridge_(bridge),
        request_(packets_of(messages(bridge).request_words())),
        response_(
            packets_of(messages(bridge).reply_words() +
                       Worker<Actors...>::staging_layout(bridge.shape, bridge.place().workers).words())),
        scratch_(SharedScratch::of<Actors...>(compares_packets).bytes() / sizeof(Packet)),
        wait_(wait),
        worker_(bridge, with_scratch(memory), words(request_), words(response_), shared_) {}

  void run(WorkerSleep& sleep) override {
    detail::worker_shared_of_this_thread = &shared_;
    if (!worker_.start()) return;
    Backoff backoff(wait_);
    bool prepared = false;  // prepared to sleep: senders wake this thread
    bool spins = true;      // before it sleeps; else it yields once
    bool yielded = false;   // since the last message
    for (;;) {
      const uint64_t sent = worker_.replies_sent();
      const PollOutcome outcome = worker_.step();
      if (outcome == PollOutcome::stop) break;
      worker_.take_reached([&](uint32_t other) { sleep.ring_worker(other); });
      if (worker_.replies_sent() != sent && sleep.somebody_sleeps()) {
        for (uint64_t reply = sent; reply != worker_.replies_sent(); ++reply) sleep.wake(correlation(reply));
      }
      if (outcome == PollOutcome::nothing) {
        if (worker_.has_waiting()) {
          sleep.yield();
        } else if (spins && !backoff.spun()) {
          backoff.pause();
        } else if (!spins && !yielded) {
          yielded = true;
          worker_.publish_pending_credit();
          sleep.yield();
        } else if (!prepared) {
          worker_.publish_pending_credit();
          prepared = sleep.prepare_sleep();  // and polls once more
        } else if (prepared = sleep.sleep(worker_.ns_to_next_timer()); !prepared) {
          backoff.reset();
          spins = sleep.spin_pays();
        }
        continue;
      }
      if (prepared) {
        sleep.end_sleep();
        spins = sleep.spin_pays();
      }
      prepared = yielded = false;
      backoff.reset();
    }
    worker_.finish();
  }
  bool start() override { return worker_.start(); }
  PollOutcome step() override {
    const InTime in_time(time_ns_);
    detail::worker_shared_of_this_thread = &shared_;
    if (time_ns_ != nullptr) worker_.read_clock();
    const PollOutcome outcome = worker_.step();
    if (time_ns_ != nullptr) worker_.publish();
    return outcome;
  }
  void use_time(uint64_t& time_ns) override { time_ns_ = &time_ns; }
  bool has_waiting() const override { return worker_.has_waiting(); }
  uint64_t ns_to_next_timer() override {
    const InTime in_time(time_ns_);
    return worker_.ns_to_next_timer();
  }
  void finish() override {
    const InTime in_time(time_ns_);
    detail::worker_shared_of_this_thread = &shared_;
    worker_.finish();
  }

 private:
  // Makes `time_ns` the calling thread's clock; null: the steady clock.
  class InTime {
   public:
    explicit InTime(uint64_t* time_ns) { detail::virtual_time_ns = time_ns; }
    ~InTime() { detail::virtual_time_ns = nullptr; }
    InTime(const InTime&) = delete;
    InTime& operator=(const InTime&) = delete;
  };

  // Returns the correlation of a reply of the last step; 0 of a message to the host, for which no call waits.
  // The worker alone writes the D2H ring.
  uint64_t correlation(uint64_t reply) const {
    const Packet* const slot = bridge_.d2h + bridge_.shape.first_packet(reply);
    const Packet first = Memory::load(slot[0]);
    if constexpr (rights_of_any<Actors...>().tells_host) {
      // Envelope::flags
      if ((Memory::load(slot[2]).data[1] >> 24 & envelope_flags::to_host) != 0) return 0;
    }
    return first.data[0] | uint64_t(first.data[1]) << 32;
  }
  // Zeroed and 16-aligned.
  static size_t packets_of(uint32_t words) {
    return (words * sizeof(uint32_t) + sizeof(Packet) - 1) / sizeof(Packet);
  }
  static MessageMemory messages(const Bridge& bridge) {
    return Worker<Actors...>::message_memory(bridge.shape);
  }
  static uint32_t* words(std::vector<Packet>& packets) { return packets.front().data; }
  EngineMemory with_scratch(EngineMemory memory) {
    memory.scratch = reinterpret_cast<uint8_t*>(scratch_.data());
    return memory;
  }

  const Bridge bridge_;
  std::vector<Packet> request_;
  std::vector<Packet> response_;
  std::vector<Packet> scratch_;  // of handlers, where a GPU has shared memory
  WaitPolicy wait_;
  uint64_t* time_ns_ = nullptr;  // null: the steady clock judges deadlines
  WorkerShared shared_{};
  Worker<Actors...> worker_;
};

}  // namespace gyre
