#include "baselines/raw_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

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

// One worker's ring, as its host thread sees it.
struct Lane {
  uint32_t worker;
  uint64_t sent = 0, taken = 0;
};

class Stream {
 public:
  Stream(const RawMemory& memory, const CudaKernel& kernel, std::chrono::milliseconds timeout, uint32_t words)
      : memory_(memory), kernel_(kernel), timeout_(timeout), words_(words) {}

  // Until each lane has taken `messages` more, at most `window` in flight in each. Returns their checksum.
  uint64_t run(std::vector<Lane>& lanes, uint64_t messages, uint32_t window) const {
    BareWait wait(kernel_, timeout_);
    std::vector<uint64_t> payload(words_ + 2), got(words_ + 2);
    std::vector<uint64_t> until(lanes.size());
    for (size_t i = 0; i < lanes.size(); ++i) until[i] = lanes[i].taken + messages;
    uint64_t checksum = 0;
    for (size_t busy = lanes.size(); busy != 0 && !tools::interrupt_requested();) {
      bool progress = false;
      busy = 0;
      for (size_t i = 0; i < lanes.size(); ++i) {
        Lane& lane = lanes[i];
        for (; lane.sent < until[i] && lane.sent - lane.taken < window; ++lane.sent) {
          for (uint32_t w = 0; w < words_; ++w) payload[w] = word(lane.worker, lane.sent, w);
          memory_.send(lane.worker, lane.sent, payload.data());
        }
        for (; lane.taken < lane.sent && memory_.try_receive(lane.worker, lane.taken, got.data());
             ++lane.taken) {
          checksum += check(lane, got);
          progress = true;
        }
        busy += lane.taken != until[i];
      }
      if (progress) {
        wait.reset();
      } else if (busy != 0) {
        wait.poll(
            [&] { return fmt::format("streaming to worker {} and {} others", lanes[0].worker, busy - 1); });
      }
    }
    return checksum;
  }

 private:
  uint64_t check(const Lane& lane, const std::vector<uint64_t>& got) const {
    uint64_t sum = 0;
    for (uint32_t w = 0; w < words_; ++w) {
      const uint64_t expected = word(lane.worker, lane.taken, w);
      if (got[w] != expected) [[unlikely]] {
        throw Error(
            fmt::format("streaming raw packets: word {} of message {} of worker {} came back as "
                        "0x{:x}, not 0x{:x}; please report it",
                        w, lane.taken, lane.worker, got[w], expected));
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

}  // namespace

StreamFigures measure_raw_stream(const Options& options, uint32_t size, uint64_t messages, uint32_t threads,
                                 uint32_t window) {
  uint32_t packets = packets_for(size);
  if (packets > 32) {
    throw BadOptions(
        fmt::format("streaming raw packets of {} bytes: {} packets a message, and a warp takes at "
                    "most 32; give --size 352 or less",
                    size, packets));
  }
  // A ring has one sender: more threads than workers have nothing to do here.
  threads = std::min(threads, options.workers);
  CudaKernel kernel(options.device, compile_raw_stream_kernel);
  RawMemory memory(kernel.context(), options.transport, options.workers, options.ring_shape(), packets);
  RawRings rings = memory.on_device();
  void* arguments[] = {&rings, &packets};
  kernel.launch(32, arguments, options.workers);
  BareEnd end(
      kernel, "raw stream", [&] { memory.command_stop(); }, [&] { memory.leak(); });

  const Stream stream(memory, kernel, options.timeout, uint32_t(sizeof(Envelope) + size) / 8);
  const std::vector<PingShare> shares =
      share_pings(messages, threads, options.workers, options.slots, window);
  std::vector<std::vector<Lane>> lanes(threads);
  std::vector<uint64_t> checksums(threads);
  for (uint32_t t = 0; t < threads; ++t) {
    for (const uint64_t key : shares[t].keys) lanes[t].push_back({uint32_t(key)});
  }
  const auto run = [&](uint32_t t, uint64_t of_messages) {
    const auto window_a_lane =
        uint32_t(std::clamp<size_t>(shares[t].window / lanes[t].size(), 1, options.slots));
    return stream.run(lanes[t], std::max<uint64_t>(1, of_messages / lanes[t].size()), window_a_lane);
  };
  StreamFigures figures;
  figures.seconds = run_together(
      threads, [&](uint32_t t) { run(t, shares[t].messages / 10); },
      [&](uint32_t t) { checksums[t] = run(t, shares[t].messages); });
  for (uint32_t t = 0; t < threads; ++t) {
    figures.checksum += checksums[t];
    figures.messages += std::max<uint64_t>(1, shares[t].messages / lanes[t].size()) * lanes[t].size();
  }
  end.end();
  return figures;
}

}  // namespace gyre::bench
