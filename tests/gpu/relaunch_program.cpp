// gyre-gpu-relaunch pinned|bar TIMES: an engine process dies in each way, TIMES times, under load, and is
// launched again each time, while the program's own CUDA goes on. Exit 0 if every ask ended as promised and
// the books balance; 77 without a GPU.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>
#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/gyre.hpp>
#include <gyre/runtime/log.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support/actors/faulty.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::atomic<uint64_t> wrong{0};
void expect(bool held, const std::string& what) {
  if (held) return;
  ++wrong;
  std::printf("WRONG: %s\n", what.c_str());
}

pid_t engine_process() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    if (!std::getline(file, line) || line.find("(gyre-engine)") == std::string::npos) continue;
    const std::string rest = line.substr(line.rfind(')') + 2);
    if (rest[0] != 'Z' && std::stol(rest.substr(2)) == getpid()) return pid_t(std::stol(name));
  }
  return 0;
}

// The program's own CUDA: memory is allocated, written, read back and freed all the time.
class OwnCuda {
 public:
  OwnCuda() : thread_([this] { run(); }) {}
  ~OwnCuda() {
    ending_ = true;
    thread_.join();
    std::printf("own CUDA: %llu rounds, the longest %.1f ms\n", static_cast<unsigned long long>(rounds_),
                longest_ms_);
    expect(rounds_ > 100 && longest_ms_ < 1000, "the program's own CUDA goes on");
  }
  OwnCuda(const OwnCuda&) = delete;
  OwnCuda& operator=(const OwnCuda&) = delete;

 private:
  void run() {
    const cuda::Driver driver = cuda::Driver::load();
    const cuda::Context context(driver, 0);
    const cuda::Context::Current current(context);
    std::vector<uint32_t> out(1 << 18), in(out.size());
    while (!ending_) {
      const auto begin = Clock::now();
      for (uint32_t& value : out) value = uint32_t(rounds_) + uint32_t(&value - out.data());
      CUdeviceptr memory = 0;
      CUstream stream = nullptr;
      driver.check(driver.cuMemAlloc(&memory, out.size() * 4), "allocating");
      driver.check(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "creating a stream");
      driver.check(driver.cuMemcpyHtoDAsync(memory, out.data(), out.size() * 4, stream), "writing");
      driver.check(driver.cuMemcpyDtoHAsync(in.data(), memory, in.size() * 4, stream), "reading");
      driver.check(driver.cuStreamSynchronize(stream), "waiting");
      driver.check(driver.cuStreamDestroy(stream), "ending the stream");
      driver.check(driver.cuMemFree(memory), "freeing");
      expect(in == out, "the program's own memory is as written");
      longest_ms_ = std::max(longest_ms_, ms_since(begin));
      ++rounds_;
    }
  }

  std::atomic<bool> ending_{false};
  uint64_t rounds_ = 0;
  double longest_ms_ = 0;
  std::thread thread_;
};

struct Cause {
  const char* name;
  const char* says;  // the failure
  void (*provoke)(Client&, Future<Reply<ProbeResponse>>&);
};

template <Action action>
void provoke_by(Client& client, Future<Reply<ProbeResponse>>& pending) {
  pending = client.ask<ProbeRequest>(Address<Faulty>{1}, asking(action, 1));
}
template <int signal>
void send(Client&, Future<Reply<ProbeResponse>>&) {
  kill(engine_process(), signal);
}

}  // namespace

int main(int argc, char** argv) {
  if (!cuda::Driver::library_present()) {
    std::puts("skipped: no CUDA device here");
    return 77;
  }
  const bool bar = argc > 1 && std::string(argv[1]) == "bar";
  const int times = argc > 2 ? std::stoi(argv[2]) : 3;
  Options options{.engine = EngineKind::cuda, .transport = bar ? TransportKind::bar : TransportKind::pinned};
  options.isolation = Isolation::process;
  options.heartbeat_timeout = 300ms;
  options.stall_after = 1s;  // the driver takes longer than half of it to report a trap
  options.workers = 4;
  options.timeout = 30s;
  set_log_level(LogLevel::off);
  const Cause causes[] = {
      {"illegal address", "CUDA_ERROR_ILLEGAL_ADDRESS", provoke_by<Action::FAIL>},
      {"trap", "CUDA_ERROR_LAUNCH_FAILED", provoke_by<Action::FAIL_ALONE>},
      {"endless handler", "was in one handler for 1000 ms", provoke_by<Action::WORK>},
      {"SIGKILL", "was ended by signal 9", send<SIGKILL>},
      {"SIGSTOP", "gave no heartbeat for 300 ms", send<SIGSTOP>},
  };
  const ActorSet actors = ActorSet::of<Faulty>(gyre_test_actors::sources);
  Runtime runtime = Runtime::launch(actors, options);
  std::printf("%s over %s\n", runtime.device_name().c_str(), std::string(name(runtime.transport())).c_str());
  {
    const OwnCuda own;
    std::atomic<bool> ending{false};
    std::atomic<uint64_t> answered{0}, failed{0};
    std::vector<std::thread> threads;
    for (uint64_t thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        Client client = runtime.client();
        for (uint64_t n = 0; !ending; ++n) {
          const auto reply =
              client.ask<ProbeRequest>(Address<Faulty>{thread}, asking(Action::ANSWER, n)).get();
          if (reply) {
            expect(reply.value()->getValue() == 2 * n + 1, "a reply is right");
            ++answered;
          } else {
            expect(reply.error().status == Status::engine_failed, reply.error().message());
            ++failed;
            std::this_thread::sleep_for(100us);
          }
        }
      });
    }
    Client client = runtime.client();
    for (const Cause& cause : causes) {
      std::vector<double> noticed_ms, down_ms;
      for (int n = 0; n < times; ++n) {
        const uint64_t before = answered;
        const auto loaded = Clock::now();
        while (answered < before + 1000 && ms_since(loaded) < 10'000) std::this_thread::sleep_for(100us);
        expect(answered >= before + 1000, "the engine answers under load");
        Future<Reply<ProbeResponse>> pending;
        auto begin = Clock::now();
        cause.provoke(client, pending);
        while (runtime.state() != Lifecycle::failed && ms_since(begin) < 10'000)
          std::this_thread::sleep_for(50us);
        noticed_ms.push_back(ms_since(begin));
        expect(runtime.failure().find(cause.says) != std::string::npos,
               cause.name + (": " + runtime.failure()));
        const auto outcome = pending.get();
        // A stray store goes its own way: the handler may have answered before the device finds it.
        expect(!outcome || outcome.value()->getValue() == 3, "what provoked it has no wrong reply");
        begin = Clock::now();
        runtime.relaunch();
        const auto reply = client.ask<ProbeRequest>(Address<Faulty>{2}, asking(Action::ANSWER, 20)).get();
        expect(reply && reply.value()->getValue() == 41, "the next engine answers");
        down_ms.push_back(ms_since(begin));
      }
      std::sort(noticed_ms.begin(), noticed_ms.end());
      std::sort(down_ms.begin(), down_ms.end());
      std::printf(
          "%-16s %3d times: noticed after p50 %.1f ms, max %.1f; first reply after p50 %.1f ms, max %.1f\n",
          cause.name, times, noticed_ms[noticed_ms.size() / 2], noticed_ms.back(),
          down_ms[down_ms.size() / 2], down_ms.back());
      std::fflush(stdout);
    }
    ending = true;
    for (std::thread& thread : threads) thread.join();
    const Termination report = runtime.terminate();
    std::printf("%llu answered, %llu failed by name; the books %s\n",
                static_cast<unsigned long long>(answered.load()),
                static_cast<unsigned long long>(failed.load()),
                report.books.balanced() ? "balance" : "DO NOT BALANCE");
    expect(report.books.balanced(), "the books balance");
    expect(runtime.stats().restarts == uint32_t(times) * std::size(causes), "each relaunch is counted");
  }
  return wrong == 0 ? 0 : 1;
}
