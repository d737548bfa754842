// The program's end of a lane of copies.
#pragma once

#include <gyre/runtime/memory/copy_threads.hpp>
#include <gyre/runtime/process/copy_lane.hpp>
#include <gyre/runtime/process/engine_process.hpp>

#include <condition_variable>
#include <mutex>

namespace gyre::process {

/// Copies in one direction. Thread-safe: copies of pinned memory overlap, the others take turns.
class CopyClient {
 public:
  CopyClient(EngineProcess& process, CopyDirection direction) : process_(process), direction_(direction) {}

  /// Once, before all else. `block` is zeroed, and outlives this.
  void attach(StagingBlock& block);

  /// Copies between the device and ordinary memory, `to` or `from` the device by the direction. Returns when
  /// the copy is done. Throws Error: the engine process refused it, or has ended.
  void copy(uint64_t device, void* host, uint64_t bytes);
  /// Likewise between the device and a pinned buffer, `pinned` being the device's address of its bytes.
  void copy_pinned(uint64_t device, uint64_t pinned, uint64_t bytes);

 private:
  class Part;

  uint32_t ask(const CopyCommand& command);
  void finish(uint32_t number);
  bool wait_until_done(uint32_t number) const noexcept;
  void give_back(uint32_t number) noexcept;
  bool is_done(uint32_t number) const noexcept;

  EngineProcess& process_;
  const CopyDirection direction_;
  CopyLane* lane_ = nullptr;
  char* staging_ = nullptr;
  const std::shared_ptr<detail::CopyThreads> threads_ = detail::CopyThreads::shared();
  std::mutex staging_mutex_;  // held while a copy uses the staging memory
  std::mutex mutex_;          // of what follows
  std::condition_variable slot_free_;
  uint32_t asked_ = 0;
  bool slot_used_[CopyLane::slots] = {};  // until whoever asked has read its outcome
};

}  // namespace gyre::process
