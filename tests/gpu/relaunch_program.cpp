// gyre-gpu-relaunch pinned|bar TIMES [CAUSE]: an engine process dies in each way, TIMES times, under load,
// and is launched again each time, while the program's own CUDA goes on. Exit 0 if every ask ended as
// promised and the books balance; 77 without a GPU. $GYRE_ENGINE may be tests' fake-gyre-engine: there is no
// CUDA then.
#include <signal.h>
#include <unistd.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/process/engine_process.hpp>

#include <memory>
#include <thread>

#include "gpu/figures.hpp"
#include "support/actors/faulty.hpp"
#include "support/engine_processes.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

// The program's own CUDA: memory is allocated, written, read back and freed all the time.
class OwnCuda {
 public:
  OwnCuda() : thread_([this] { run(); }) {}
  ~OwnCuda() {
    ending_ = true;
    thread_.join();
    say("own CUDA: {} rounds, the longest {:.1f} ms", rounds_, longest_ms_);
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
  std::string_view name;
  std::string says;  // the failure
  void (*provoke)(Client&, Future<Reply<ProbeResponse>>&);
};

template <Action action>
void provoke_by(Client& client, Future<Reply<ProbeResponse>>& pending) {
  pending = client.ask<ProbeRequest>(Address<Faulty>{1}, asking(action, 1));
}
template <int signal>
void send(Client&, Future<Reply<ProbeResponse>>&) {
  for (const pid_t engine : engines_of(getpid())) kill(engine, signal);
}

// Where $GYRE_ENGINE names no program a relaunch is refused. The variable is set since main() began: setting
// it once more moves no other variable, which a thread may be reading.
void refuse_a_relaunch(Runtime& runtime) {
  const std::string found = std::getenv("GYRE_ENGINE");
  setenv("GYRE_ENGINE", "/nowhere/gyre-engine", 1);
  std::string said = "it was launched";
  try {
    runtime.relaunch();
  } catch (const EngineUnavailable& error) {
    said = error.what();
  }
  expect(said.find("no program gyre-engine at /nowhere/gyre-engine") != std::string::npos,
         "a relaunch without the program is refused by name: " + said);
  expect(runtime.state() == Lifecycle::failed, "a refused relaunch leaves the runtime failed");
  setenv("GYRE_ENGINE", found.c_str(), 1);
}

constexpr std::string_view no_program = "no program";  // a cause's name

void relaunch_after_each_cause(bool bar, int times, const std::string& only) {
  Options options{.engine = EngineKind::cuda, .transport = bar ? TransportKind::bar : TransportKind::pinned};
  options.isolation = Isolation::process;
  // Where tests run on few processors, others take them for that long.
  options.heartbeat_timeout = on_fake_driver() ? 5000ms : 300ms;
  // The driver takes longer than half a second to report a trap.
  options.stall_after = on_fake_driver() ? 8000ms : 1000ms;
  options.workers = 4;
  options.timeout = 30s;
  set_log_level(LogLevel::off);
  const std::string illegal_address = "CUDA_ERROR_ILLEGAL_ADDRESS";  // the fake driver's only fault
  const std::string trap = on_fake_driver() ? illegal_address : "CUDA_ERROR_LAUNCH_FAILED";
  const Cause causes[] = {
      {"illegal address", illegal_address, provoke_by<Action::FAIL>},
      {"trap", trap, provoke_by<Action::FAIL_ALONE>},
      {"endless handler", fmt::format("was in one handler for {} ms", options.stall_after.count()),
       provoke_by<Action::WORK>},
      {"SIGKILL", "was ended by signal 9", send<SIGKILL>},
      {"SIGSTOP", fmt::format("gave no heartbeat for {} ms", options.heartbeat_timeout.count()),
       send<SIGSTOP>},
      {no_program, "was ended by signal 9", send<SIGKILL>},
  };
  const ActorSet actors = ActorSet::of<Faulty>(gyre_test_actors::sources);
  Runtime runtime = Runtime::launch(actors, options);
  say("{} over {}", runtime.device_name(), name(runtime.transport()));
  {
    const std::unique_ptr<OwnCuda> own(on_fake_driver() ? nullptr : new OwnCuda);
    std::atomic<uint64_t> answered{0}, failed{0};
    std::vector<std::jthread> threads;
    for (uint64_t thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread](std::stop_token stop) {
        Client client = runtime.client();
        for (uint64_t n = 0; !stop.stop_requested(); ++n) {
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
    uint32_t relaunches = 0;
    for (const Cause& cause : causes) {
      if (!only.empty() && cause.name != only) continue;
      Times noticed_ms, down_ms;
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
        noticed_ms.add(ms_since(begin));
        expect(runtime.failure().find(cause.says) != std::string::npos,
               fmt::format("{}: {}", cause.name, runtime.failure()));
        const auto outcome = pending.get();
        // A stray store goes its own way: the handler may have answered before the device finds it.
        expect(!outcome || outcome.value()->getValue() == 3, "what provoked it has no wrong reply");
        if (cause.name == no_program) refuse_a_relaunch(runtime);
        begin = Clock::now();
        runtime.relaunch();
        ++relaunches;
        const auto reply = client.ask<ProbeRequest>(Address<Faulty>{2}, asking(Action::ANSWER, 20)).get();
        expect(reply && reply.value()->getValue() == 41, "the next engine answers");
        down_ms.add(ms_since(begin));
      }
      say("{:<16} {:3} times: noticed after p50 {:.1f} ms, max {:.1f}; first reply after p50 {:.1f} ms, max "
          "{:.1f}",
          cause.name, times, noticed_ms.p50(), noticed_ms.max(), down_ms.p50(), down_ms.max());
    }
    threads.clear();
    const Termination report = runtime.terminate();
    say("{} answered, {} failed by name; the books {}", answered.load(), failed.load(),
        report.books.balanced() ? "balance" : "DO NOT BALANCE");
    expect(report.books.balanced(), "the books balance");
    expect(runtime.stats().restarts == relaunches, "each relaunch is counted");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::string why = why_skipped(); !why.empty()) {
    say("skipped: {}", why);
    return 77;
  }
  alarm(on_fake_driver() ? 3000 : 540);
  for (const std::string& path : process::engine_paths())
    if (access(path.c_str(), X_OK) == 0) setenv("GYRE_ENGINE", path.c_str(), 0);
  try {
    relaunch_after_each_cause(argc > 1 && std::string(argv[1]) == "bar", argc > 2 ? std::stoi(argv[2]) : 3,
                              argc > 3 ? argv[3] : "");
  } catch (const std::exception& error) {
    expect(false, error.what());
  }
  return wrong == 0 ? 0 : 1;
}
