#include "baselines/raw.hpp"

#include <fmt/format.h>
#include <gyre/bridge/cuda/pinned.hpp>
#include <gyre/bridge/region.hpp>

#include <cstring>
#include <gyre_bench_kernels_sources.hpp>

#include "affinity.hpp"
#include "baselines/cuda_kernel.hpp"
#include "echo_message.hpp"

namespace gyre::bench {

namespace {

using Clock = std::chrono::steady_clock;

// The kernel's bound on polls without a message ends it in less, whatever the host does.
constexpr std::chrono::seconds end_timeout{60};

// The running kernel and the host's end of its rings.
class RawEcho {
 public:
  RawEcho(const Plan& plan, uint32_t size)
      : timeout_(plan.options.timeout),
        packets_(packets_for(size)),
        layout_{1, plan.options.ring_shape()},
        kernel_(plan.options.device,
                [size](int architecture) { return compile_raw_kernel(architecture, size); }),
        region_(kernel_.context(), layout_.region_bytes(), layout_.region_bytes()),
        bridge_(Bridge::of(region_.host_address(), layout_, 0)) {
    CUdeviceptr region = region_.device_address();
    void* arguments[] = {&region, &layout_, &packets_};
    kernel_.launch(32, arguments);
  }
  ~RawEcho() {
    if (stop()) return;
    region_.leak();
    kernel_.abandon();
  }
  RawEcho(const RawEcho&) = delete;
  RawEcho& operator=(const RawEcho&) = delete;

  // Sends the message's bytes and takes the reply's into `got`, which has room for whole packets.
  void round_trip(const EchoMessage& message, uint64_t* got) {
    const char* const sent = reinterpret_cast<const char*>(message.words().data());
    char* const received = reinterpret_cast<char*>(got);
    const uint32_t stamp = layout_.shape.stamp(ticket_);
    Packet* const request = bridge_.h2d + layout_.shape.first_packet(ticket_);
    const Packet* const reply = bridge_.d2h + layout_.shape.first_packet(ticket_);
    for (uint32_t k = 0; k < packets_; ++k) {
      Packet packet{{}, stamp};
      std::memcpy(packet.data, sent + k * data_bytes_a_packet, data_bytes_a_packet);
      Memory::store(request[k], packet);
    }
    uint64_t polls = 0;
    for (uint32_t k = 0; k < packets_; ++k) {
      Packet packet = Memory::load(reply[k]);
      while (packet.stamp != stamp) {
        if (++polls % polls_between_looks == 0) look_after(message, polls);
        packet = Memory::load(reply[k]);
      }
      std::memcpy(received + k * data_bytes_a_packet, packet.data, data_bytes_a_packet);
    }
    ++ticket_;
  }

  // Throws Error unless the kernel ends, and ends well.
  void end() {
    if (!stop()) {
      throw Error(
          fmt::format("ending the raw kernel: it still runs {} s after its stop word was set; its memory "
                      "is left allocated; check the GPU with nvidia-smi",
                      end_timeout.count()));
    }
    kernel_.check_ended();
  }

 private:
  static constexpr uint64_t polls_between_looks = 1u << 16;

  bool stop() {
    Memory::store_release(bridge_.command_line->command, uint64_t(Command::stop));
    return kernel_.wait_until_ended(end_timeout);
  }

  // While a reply is long in coming: throws once the kernel has ended or the time is over.
  void look_after(const EchoMessage& message, uint64_t polls) {
    if (polls == polls_between_looks) waiting_since_ = Clock::now();
    if (kernel_.ended()) {
      kernel_.check_ended();
      throw Error(message.name() +
                  ": the kernel ended by itself, as it does after some seconds without a message; run it "
                  "again, and do not suspend this process meanwhile");
    }
    if (Clock::now() - waiting_since_ > timeout_) {
      throw Error(fmt::format("{}: no reply within {} ms; raise --timeout if the machine is that slow",
                              message.name(), timeout_.count()));
    }
  }

  const std::chrono::milliseconds timeout_;
  uint32_t packets_;
  RegionLayout layout_;
  CudaKernel kernel_;
  cuda::PinnedRegion region_;
  const Bridge bridge_;
  uint64_t ticket_ = 0;
  Clock::time_point waiting_since_;
};

}  // namespace

cuda::CompiledKernel compile_raw_kernel(int architecture, uint32_t size) {
  const uint32_t packets_a_lane = (packets_for(size) + 31) / 32;
  return cuda::compile_text("#include <bench/baselines/raw_kernel.hpp>\n",
                            fmt::format("gyre::bench::raw_echo<{}u>", packets_a_lane), architecture,
                            {fmt::format("--gpu-architecture=sm_{}", architecture), "--std=c++20"},
                            gyre_bench_kernels::sources.files);
}

Row measure_raw(const Plan& plan, uint32_t size) {
  Row row{.name = "raw", .transport = "pinned", .size = size, .wait = "spin"};
  // The envelope's bytes travel too: what lies in them does not matter to the bus.
  const size_t words = (sizeof(Envelope) + size) / sizeof(uint64_t);
  row.remark = fmt::format("{} packets of 16 bytes", packets_for(size));
  EchoMessage message(fmt::format("raw at {} bytes", size), words);
  std::vector<uint64_t> got(words + 1);
  RawEcho echo(plan, size);
  const Pinned here(pthread_self(), plan.own_cpu);
  row.summary = summarise(measure(
      plan, [&] { message.next(); },
      [&] {
        echo.round_trip(message, got.data());
        message.expect(got);
      }));
  echo.end();
  return row;
}

}  // namespace gyre::bench
