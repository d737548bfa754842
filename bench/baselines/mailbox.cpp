#include "baselines/mailbox.hpp"

#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre_bench_kernels_sources.hpp>

#include <algorithm>
#include <bit>
#include <chrono>

#include "baselines/cuda_kernel.hpp"

namespace gyre::bench {

namespace {

constexpr uint32_t slot_bytes = 64;
// More than the two that are on the way: limits are raised and read while no message waits for them.
constexpr uint32_t latency_allowance = 4, latency_slots = 64;

cuda::CompiledKernel compile_mailbox_kernel(int architecture, const std::string& kernel) {
  return cuda::compile_text(
      "#include <bench/baselines/mailbox_kernel.hpp>\n", kernel, architecture,
      {fmt::format("--gpu-architecture=sm_{}", architecture), "--std=c++20", "-DGYRE_BLOCK=32"},
      gyre_bench_kernels::sources.files);
}

// Zeroed device memory, as long as it lives.
class Allocation {
 public:
  Allocation(const CudaKernel& kernel, uint64_t bytes) : kernel_(kernel) {
    kernel.check(kernel.driver().cuMemAlloc(&there_, bytes), fmt::format("allocating {} bytes", bytes));
    const CUresult zeroed = kernel.driver().cuMemsetD8Async(there_, 0, bytes, kernel.stream());
    if (zeroed != CUDA_SUCCESS) kernel.driver().cuMemFree(there_);
    kernel.check(zeroed, "zeroing device memory");
  }
  ~Allocation() {
    if (!left_) kernel_.driver().cuMemFree(there_);
  }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(there_);
  }
  template <class T>
  std::vector<T> read(size_t count) const {
    std::vector<T> values(count);
    kernel_.check(kernel_.driver().cuMemcpyDtoH(values.data(), there_, count * sizeof(T)),
                  "reading the results of the mailbox kernel");
    return values;
  }
  // A kernel that does not end uses it.
  void leave() { left_ = true; }

 private:
  const CudaKernel& kernel_;
  CUdeviceptr there_ = 0;
  bool left_ = false;
};

// The memory of one run.
class Mailboxes {
 public:
  Mailboxes(const CudaKernel& kernel, MailboxRun run)
      : run_(run),
        mail_(kernel, workers() * run.mailboxes.rings.shape.ring_bytes()),
        replies_(kernel, workers() * run.replies.shape.ring_bytes()),
        host_(kernel, workers() * 4 * sizeof(Packet)),
        tails_(kernel, 2 * workers() * run.replies.words_a_tail * sizeof(uint64_t)),
        limits_(kernel, workers() * workers() * sizeof(uint32_t)),
        results_(kernel, workers() * sizeof(MailboxResult)),
        received_(kernel, 2 * sizeof(uint64_t)),
        samples_(kernel, run.messages * sizeof(uint32_t)) {
    run_.mailboxes.rings.cells = mail_.as<Packet>();
    run_.mailboxes.rings.tails = tails_.as<uint64_t>();
    run_.mailboxes.limits = limits_.as<uint32_t>();
    run_.replies.cells = replies_.as<Packet>();
    run_.replies.tails = run_.mailboxes.rings.tails + workers() * run.replies.words_a_tail;
    run_.host = host_.as<const Packet>();
    run_.results = results_.as<MailboxResult>();
    run_.received = received_.as<unsigned long long>();
    run_.cycles = received_.as<uint64_t>() + 1;
    run_.samples = samples_.as<uint32_t>();
  }

  void run(CudaKernel& kernel, uint32_t threads, uint32_t blocks) {
    void* arguments[] = {&run_};
    kernel.launch(threads, arguments, blocks);
    if (!kernel.wait_until_ended(kernel_end_timeout)) {
      for (Allocation* memory :
           {&mail_, &replies_, &host_, &tails_, &limits_, &results_, &received_, &samples_})
        memory->leave();
      kernel.abandon();
      throw Error(fmt::format("running bare mailboxes: the kernel did not end within {} s; please report it",
                              kernel_end_timeout.count()));
    }
    kernel.check_ended();
  }
  std::vector<MailboxResult> results() const { return results_.read<MailboxResult>(workers()); }
  std::vector<uint32_t> samples() const { return samples_.read<uint32_t>(run_.messages); }
  uint64_t cycles() const { return received_.read<uint64_t>(2)[1]; }

 private:
  uint64_t workers() const { return run_.mailboxes.workers; }

  MailboxRun run_;
  Allocation mail_, replies_, host_, tails_, limits_, results_, received_, samples_;
};

}  // namespace

cuda::CompiledKernel compile_mailbox_rate_kernel(int architecture, uint32_t workers, uint32_t warps) {
  return compile_mailbox_kernel(architecture,
                                fmt::format("gyre::bench::mailbox_rate_kernel<{}, {}>", workers, warps));
}
cuda::CompiledKernel compile_mailbox_latency_kernel(int architecture, bool by_reply_ring) {
  return compile_mailbox_kernel(architecture,
                                fmt::format("gyre::bench::mailbox_latency_kernel<{}>", by_reply_ring));
}

MailboxRates measure_mailbox_rates(int device, uint32_t warps, uint32_t allowance, uint32_t messages,
                                   MailboxLoad load) {
  // Even: pairs are of two. Shared memory has room for the most.
  constexpr uint32_t most_workers_a_warp = 132;
  CudaKernel kernel(device, [warps](int architecture) {
    return compile_mailbox_rate_kernel(architecture, most_workers_a_warp * warps, warps);
  });
  const auto processors = uint32_t(kernel.context().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  const uint32_t blocks = std::min(processors, most_workers_a_warp) & ~1u;
  const uint32_t workers = blocks * warps;
  MailboxRun run{};
  run.mailboxes.workers = workers;
  run.mailboxes.allowance = allowance;
  run.mailboxes.rings.shape = {std::bit_ceil(workers * allowance + 1), slot_bytes};  // some are spare
  run.replies.shape = {32, slot_bytes};
  run.messages = (messages + 31) / 32 * 32;
  run.total = uint64_t(workers) * run.messages;
  run.load = load;
  Mailboxes mailboxes(kernel, run);
  mailboxes.run(kernel, 32 * warps, blocks);
  MailboxRates rates;
  uint64_t begin = UINT64_MAX, end = 0;
  for (const MailboxResult& result : mailboxes.results()) {
    rates.messages += result.received;
    rates.wrong += result.wrong;
    begin = std::min(begin, result.begin_ns);
    end = std::max(end, result.end_ns);
  }
  rates.wrong += rates.messages == run.total ? 0 : 1;
  rates.seconds = double(end - begin) * 1e-9;
  rates.slots = run.mailboxes.rings.shape.slots;
  rates.ring_bytes = workers * run.mailboxes.rings.shape.ring_bytes();
  return rates;
}

std::vector<uint64_t> measure_mailbox_latency(int device, uint32_t round_trips, bool by_reply_ring) {
  CudaKernel kernel(device, [by_reply_ring](int architecture) {
    return compile_mailbox_latency_kernel(architecture, by_reply_ring);
  });
  MailboxRun run{};
  run.mailboxes.workers = 2;
  run.mailboxes.allowance = latency_allowance;
  run.mailboxes.rings.shape = run.replies.shape = {latency_slots, slot_bytes};
  run.messages = round_trips;
  run.total = 2 * uint64_t(round_trips);
  Mailboxes mailboxes(kernel, run);
  mailboxes.run(kernel, 32, 2);
  const auto results = mailboxes.results();
  const uint64_t expected = by_reply_ring ? round_trips : 2 * uint64_t(round_trips);
  if (results[0].wrong + results[1].wrong != 0 || results[0].received + results[1].received != expected) {
    throw Error(fmt::format(
        "timing bare mailboxes: {} messages came in place of {}, and {} were wrong; please report it",
        results[0].received + results[1].received, expected, results[0].wrong + results[1].wrong));
  }
  // The clock of the multiprocessor, whose rate varies, by the global timer over the whole run.
  const double ns_a_cycle = double(results[0].end_ns - results[0].begin_ns) / double(mailboxes.cycles());
  std::vector<uint64_t> ns;
  for (const uint32_t cycles : mailboxes.samples()) ns.push_back(uint64_t(double(cycles) * ns_a_cycle));
  return ns;
}

}  // namespace gyre::bench
