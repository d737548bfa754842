#include <fmt/format.h>
#include <gyre/runtime/cpu/engine.hpp>
#include <gyre/runtime/errors.hpp>

#include <system_error>

namespace gyre {

CpuEngine::CpuEngine(const ActorSet& actors, const Options& options)
    : actors_(actors),
      layout_{options.workers, options.ring_shape()},
      wait_(options.wait),
      region_(layout_.region_bytes()) {}

CpuEngine::~CpuEngine() {
  for (std::thread& thread : threads_) thread.join();
}

std::string CpuEngine::device_name() const {
  return fmt::format("CPU, {} worker thread{}", layout_.workers, layout_.workers == 1 ? "" : "s");
}

void CpuEngine::launch() {
  for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
    workers_.push_back(actors_.make_cpu_worker(Bridge::of(region(), layout_, worker), wait_));
  }
  try {
    for (const auto& worker : workers_) {
      running_->fetch_add(1, std::memory_order_relaxed);
      threads_.emplace_back([running = running_, worker = worker.get()] {
        worker->run();
        running->fetch_sub(1, std::memory_order_release);
      });
    }
  } catch (const std::system_error& error) {
    for (uint32_t worker = 0; worker < threads_.size(); ++worker) {
      Memory::store_release(Bridge::of(region(), layout_, worker).host_line->command,
                            uint64_t(Command::stop));
    }
    throw Error(fmt::format("starting worker thread {} of {}: {}; launch with fewer --workers",
                            threads_.size() + 1, layout_.workers, error.what()));
  }
}

bool CpuEngine::finished() { return running_->load(std::memory_order_acquire) == 0; }

void CpuEngine::leak() {
  for (std::thread& thread : threads_) thread.detach();
  threads_.clear();
  for (auto& worker : workers_) (void)worker.release();
  region_.leak();
}

}  // namespace gyre
