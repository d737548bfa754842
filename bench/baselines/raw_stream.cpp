#include "baselines/raw_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>

#include "baselines/bare_run.hpp"
#include "baselines/raw.hpp"
#include "baselines/raw_memory.hpp"
#include "common_options.hpp"
#include "ping_stream.hpp"
#include "threads.hpp"

namespace gyre::bench {

namespace {

// Words of a message: cheap to make and to check, and other ones for each message, worker and place.
uint64_t word(uint32_t worker, uint64_t ticket, uint32_t index) {
  return (ticket + 1) * 0x9e3779b97f4a7c15u + uint64_t(worker) * 0x94d049bb133111ebu + index;
}

// One worker's ring, as the host sees it: one thread sends, one takes, which may be the same.
struct Lane {
  explicit Lane(uint32_t worker) : worker(worker) {}
  const uint32_t worker;
  alignas(128) std::atomic<uint64_t> sent{0};
  alignas(128) std::atomic<uint64_t> taken{0};
};

// What a thread does for each of its lanes.
struct Part {
  bool sends = true, takes = true;
  std::vector<Lane*> lanes;
};

class Stream {
 public:
  Stream(const RawMemory& memory, const CudaKernel& kernel, std::chrono::milliseconds timeout, uint32_t words)
      : memory_(memory), kernel_(kernel), timeout_(timeout), words_(words) {}

  // Until message `until` of each lane, at most `window` in flight in each. Returns the checksum of what was
  // taken.
  uint64_t run(const Part& part, uint64_t until, uint32_t window) const {
    const cuda::Context::Current current(kernel_.context());
    BareWait wait(kernel_, timeout_);
    std::vector<uint64_t> buffer(words_ + 2);
    uint64_t checksum = 0;
    for (size_t busy = part.lanes.size(); busy != 0 && !tools::interrupt_requested();) {
      bool progress = false;
      busy = 0;
      for (Lane* const lane : part.lanes) {
        if (part.sends) progress |= send(*lane, until, window, buffer);
        if (part.takes) progress |= take(*lane, buffer, checksum);
        busy += (part.takes ? lane->taken : lane->sent).load(std::memory_order_relaxed) != until;
      }
      if (progress) {
        wait.reset();
      } else if (busy != 0) {
        wait.poll([&] { return fmt::format("streaming to worker {} and others", part.lanes[0]->worker); });
      }
    }
    return checksum;
  }

 private:
  bool send(Lane& lane, uint64_t until, uint32_t window, std::vector<uint64_t>& payload) const {
    uint64_t sent = lane.sent.load(std::memory_order_relaxed);
    const uint64_t end = std::min(until, lane.taken.load(std::memory_order_acquire) + window);
    if (sent >= end) return false;
    for (; sent < end; ++sent) {
      for (uint32_t w = 0; w < words_; ++w) payload[w] = word(lane.worker, sent, w);
      memory_.send(lane.worker, sent, payload.data());
    }
    lane.sent.store(sent, std::memory_order_release);
    return true;
  }
  bool take(Lane& lane, std::vector<uint64_t>& got, uint64_t& checksum) const {
    const uint64_t before = lane.taken.load(std::memory_order_relaxed);
    const uint64_t sent = lane.sent.load(std::memory_order_acquire);
    uint64_t taken = before;
    for (; taken < sent && memory_.try_receive(lane.worker, taken, got.data()); ++taken)
      checksum += check(lane.worker, taken, got);
    if (taken != before) lane.taken.store(taken, std::memory_order_release);
    return taken != before;
  }
  uint64_t check(uint32_t worker, uint64_t message, const std::vector<uint64_t>& got) const {
    uint64_t sum = 0;
    for (uint32_t w = 0; w < words_; ++w) {
      const uint64_t expected = word(worker, message, w);
      if (got[w] != expected) [[unlikely]] {
        throw Error(
            fmt::format("streaming raw packets: word {} of message {} of worker {} came back as "
                        "0x{:x}, not 0x{:x}; please report it",
                        w, message, worker, got[w], expected));
      }
      sum += got[w];
    }
    return sum;
  }

  const RawMemory& memory_;
  const CudaKernel& kernel_;
  const std::chrono::milliseconds timeout_;
  const uint32_t words_;
};

// Thread i serves worker i modulo the workers. Where there are twice as many as workers, two share each: one
// sends, one takes.
std::vector<Part> parts_of(std::deque<Lane>& lanes, uint32_t threads) {
  const auto workers = uint32_t(lanes.size());
  const bool in_pairs = threads >= 2 * workers;
  std::vector<Part> parts(in_pairs ? 2 * workers : std::min(threads, workers));
  for (uint32_t t = 0; t < parts.size(); ++t) {
    if (in_pairs) {
      parts[t] = {t % 2 == 0, t % 2 == 1, {&lanes[t / 2]}};
    } else {
      for (uint32_t worker = t; worker < workers; worker += uint32_t(parts.size()))
        parts[t].lanes.push_back(&lanes[worker]);
    }
  }
  return parts;
}

}  // namespace

StreamFigures measure_raw_stream(const Options& options, uint32_t size, uint64_t messages, uint32_t threads,
                                 uint32_t window, uint32_t pollers) {
  uint32_t packets = packets_for(size);
  if (packets > 32) {
    throw BadOptions(
        fmt::format("streaming raw packets of {} bytes: {} packets a message, and a warp takes at "
                    "most 32; give --size 352 or less",
                    size, packets));
  }
  CudaKernel kernel(options.device,
                    [&](int architecture) { return compile_raw_stream_kernel(architecture, pollers); });
  RawMemory memory(kernel.context(), options.transport, options.workers, options.ring_shape(), packets);
  RawRings rings = memory.on_device();
  void* arguments[] = {&rings, &packets};
  kernel.launch(32 * pollers, arguments, options.workers);
  BareEnd end(
      kernel, "raw stream", [&] { memory.command_stop(); }, [&] { memory.leak(); });

  const Stream stream(memory, kernel, options.timeout, uint32_t(sizeof(Envelope) + size) / 8);
  std::deque<Lane> lanes;
  for (uint32_t worker = 0; worker < options.workers; ++worker) lanes.emplace_back(worker);
  const std::vector<Part> parts = parts_of(lanes, threads);
  const auto senders =
      uint32_t(std::count_if(parts.begin(), parts.end(), [](const Part& part) { return part.sends; }));
  const uint32_t window_a_lane =
      std::clamp(window == 0 ? usual_window(options.workers, options.slots)
                             : uint32_t(uint64_t(window) * senders / options.workers),
                 1u, options.slots);
  const uint64_t messages_a_lane = std::max<uint64_t>(1, messages / options.workers);
  const uint64_t warm_up_a_lane = (messages_a_lane + 9) / 10;
  std::vector<uint64_t> checksums(parts.size());
  StreamFigures figures;
  figures.seconds = run_together(
      uint32_t(parts.size()), [&](uint32_t t) { stream.run(parts[t], warm_up_a_lane, window_a_lane); },
      [&](uint32_t t) {
        checksums[t] = stream.run(parts[t], warm_up_a_lane + messages_a_lane, window_a_lane);
      });
  for (const uint64_t checksum : checksums) figures.checksum += checksum;
  figures.messages = messages_a_lane * options.workers;
  figures.threads = uint32_t(parts.size());
  end.end();
  return figures;
}

}  // namespace gyre::bench
