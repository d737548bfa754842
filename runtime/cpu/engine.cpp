#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <gyre/runtime/cpu/engine.hpp>
#include <gyre/runtime/errors.hpp>
#include <gyre/runtime/system/signals_blocked.hpp>

#include <algorithm>
#include <system_error>

namespace gyre {

std::string CpuEngine::problems(const Options& options) {
  // Worker threads poll: far more of them than processors would keep each other, and the machine, from
  // working.
  const uint32_t workers = options.workers;
  const uint32_t most = std::max(64u, 4 * std::thread::hardware_concurrency());
  if (workers <= most) return {};
  return fmt::format(
      "--workers {}: at most {} worker threads here ({} processors, and each polls); ask for fewer", workers,
      most, std::thread::hardware_concurrency());
}

namespace {
const Options& checked(const ActorSet& actors, const Options& options) {
  actors.require_cpu_worker();
  if (const std::string problem = CpuEngine::problems(options); !problem.empty()) {
    throw BadOptions("launching on the CPU engine: " + problem);
  }
  return options;
}
}  // namespace

CpuEngine::CpuEngine(const ActorSet& actors, const Options& options)
    : actors_(actors),
      layout_(checked(actors, options).region_layout(actors.handlers().size())),
      wait_(options.wait),
      pin_workers_(options.pin_workers),
      region_(layout_.region_bytes(), layout_.rings_bytes()),
      actor_memory_(actors, options),
      buffer_memory_(options.max_buffers) {
  actor_memory_.describe(memory_);
  buffer_memory_.describe(memory_);
  for (uint32_t worker = 0; worker < layout_.workers; ++worker)
    bells_.push_back(std::make_unique<Doorbell>());
  for (const auto& bell : bells_) bell->set_others(bells_);
}

CpuEngine::~CpuEngine() {
  if (fork_.forked()) {
    (void)threads_.release();
  } else {
    stop_threads();
  }
}

void CpuEngine::stop_threads() noexcept {
  for (uint32_t worker = 0; worker < threads_->size(); ++worker) {
    // Pairs with the load in CommandWatch::request_sample(), as CommandSender's store.
    Memory::store_release(Bridge::of(region(), layout_, worker).command_line->command,
                          uint64_t(Command::stop));
    bells_[worker]->ring();
  }
  for (std::thread& thread : *threads_) thread.join();
  threads_->clear();
}

std::string CpuEngine::device_name() const {
  return fmt::format("CPU, {} worker thread{}", layout_.workers, layout_.workers == 1 ? "" : "s");
}

void CpuEngine::pin(std::thread& thread, uint32_t worker) const {
  if (pin_workers_.empty()) return;
  const int cpu = pin_workers_[worker % pin_workers_.size()];
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(size_t(cpu), &only);
  if (const int error = pthread_setaffinity_np(thread.native_handle(), sizeof only, &only); error != 0) {
    throw Error(fmt::format(
        "pinning worker thread {} to CPU {}: {}; give --pin-workers CPUs that this process may run "
        "on (`taskset -p $$` shows which)",
        worker, cpu, std::generic_category().message(error)));
  }
}

void CpuEngine::launch() {
  for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
    workers_.push_back(
        actors_.make_cpu_worker(Bridge::of(region(), layout_, worker), memory_.of_worker(worker), wait_));
  }
  threads_->reserve(workers_.size());
  const detail::SignalsBlocked blocked;
  try {
    for (const auto& worker : workers_) {
      Doorbell& bell = *bells_[threads_->size()];
      threads_->emplace_back([running = running_, worker = worker.get(), &bell] {
        worker->run(bell);
        running->fetch_sub(1, std::memory_order_release);  // pairs with the load in finished()
      });
      running_->fetch_add(1, std::memory_order_relaxed);  // this thread alone asks finished() so far
      pin(threads_->back(), uint32_t(threads_->size() - 1));
    }
  } catch (const std::system_error& error) {
    const size_t started = threads_->size();
    stop_threads();
    throw Error(fmt::format("starting worker thread {} of {}: {}; launch with fewer --workers", started + 1,
                            layout_.workers, error.what()));
  } catch (...) {
    stop_threads();
    throw;
  }
}

bool CpuEngine::finished() { return running_->load(std::memory_order_acquire) == 0; }

void CpuEngine::leak() {
  for (std::thread& thread : *threads_) thread.detach();
  threads_->clear();
  for (auto& worker : workers_) (void)worker.release();
  for (auto& bell : bells_) (void)bell.release();
  region_.leak();
  actor_memory_.leak();
  buffer_memory_.leak();
}

}  // namespace gyre
