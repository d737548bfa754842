// The actors' state and the handlers' counts, where workers are threads.
#pragma once

#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/options.hpp>

#include <cstdlib>
#include <memory>
#include <new>

namespace gyre {

/// Owns the zeroed tables of all workers' actors, and their handlers' counts. The system provides a page when
/// an actor on it is created. Move-only. The constructor throws Error.
class ActorMemory {
 public:
  ActorMemory(const ActorSet& actors, const Options& options)
      : bytes_a_worker_(actors.actor_bytes(options.actors_per_worker)),
        workers_(options.workers),
        actors_per_worker_(options.actors_per_worker),
        counts_per_worker_(uint32_t(actors.handlers().size()) + 1),
        mail_bytes_(actors.mail_bytes(options)),
        counts_(allocate(counts_per_worker_ * sizeof(HandlerCounts) +
                             (mail_bytes_ + options.workers - 1) / options.workers,
                         options.workers)),
        memory_(allocate(bytes_a_worker_, options.workers)) {
    if (!counts_) {
      throw BadOptions("allocating memory for the messages between actors of " + std::to_string(workers_) +
                       " workers: there are no " + std::to_string(mail_bytes_) +
                       " bytes; launch with fewer --workers, or less --spill-bytes (" +
                       std::to_string(options.spill_bytes) + ")" +
                       (actors.rights().sends_large
                            ? " and --body-pool-bytes (" + std::to_string(options.body_pool_bytes) + ")"
                            : ""));
    }
    if (!memory_) {
      throw BadOptions("allocating memory for the actors of " + std::to_string(options.workers) +
                       " workers: there are no " + std::to_string(bytes_a_worker_) +
                       " bytes for each; launch with fewer --actors-per-worker (" +
                       std::to_string(actors_per_worker_) + ")");
    }
  }
  /// Sets the addresses in `memory`.
  void describe(EngineMemory& memory) const {
    memory.actors = memory_.get();
    memory.actor_bytes = bytes_a_worker_;
    memory.actors_per_worker = actors_per_worker_;
    memory.counts = reinterpret_cast<HandlerCounts*>(counts_.get());
    memory.counts_per_worker = counts_per_worker_;
  }
  /// Returns the bytes of all workers.
  uint64_t bytes() const {
    return workers_ * (bytes_a_worker_ + counts_per_worker_ * sizeof(HandlerCounts)) + mail_bytes_;
  }
  /// Gives the memory up without freeing it: a worker may still write to it.
  void leak() {
    (void)memory_.release();
    (void)counts_.release();
  }

 private:
  // Allocates at least one byte, so that null means failure. Sizes beyond 64 bits fail too.
  static uint8_t* allocate(uint64_t bytes_a_worker, uint32_t workers) {
    if (bytes_a_worker == ~uint64_t(0)) return nullptr;
    return static_cast<uint8_t*>(std::calloc(bytes_a_worker + 1, workers));
  }
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  uint64_t bytes_a_worker_;
  uint64_t workers_;
  uint32_t actors_per_worker_;
  uint32_t counts_per_worker_;
  uint64_t mail_bytes_;
  std::unique_ptr<uint8_t, Free> counts_;  // and behind them the mailboxes: see MailLayout
  std::unique_ptr<uint8_t, Free> memory_;
};

}  // namespace gyre
