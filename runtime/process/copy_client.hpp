// The program's end of a lane of copies.
#pragma once

#include <gyre/runtime/memory/copy_threads.hpp>
#include <gyre/runtime/process/copy_lane.hpp>
#include <gyre/runtime/process/engine_process.hpp>

#include <chrono>
#include <mutex>

namespace gyre::process {

/// Copies in one direction. Thread-safe: copies take turns.
class CopyClient {
 public:
  CopyClient(EngineProcess& process, CopyDirection direction) : process_(process), direction_(direction) {}

  /// Once, before all else. `block` is zeroed, and outlives this.
  void attach(StagingBlock& block);

  /// Copies between the device and ordinary memory, `to` or `from` the device by the direction. Returns when
  /// the copy is done. Throws Error: the engine process refused it, or has ended. One that finishes no part
  /// of the copy for 30 times Options::heartbeat_timeout is killed.
  void copy(uint64_t device, void* host, uint64_t bytes);
  /// Likewise between the device and a pinned buffer, `pinned` being the device's address of its bytes.
  void copy_pinned(uint64_t device, uint64_t pinned, uint64_t bytes);

 private:
  class Part;

  uint32_t ask(const CopyCommand& command);
  void finish(uint32_t number, uint64_t bytes);
  bool wait_until_done(uint32_t number, uint64_t bytes) const noexcept;
  void kill_stalled(std::chrono::milliseconds limit) const noexcept;
  bool is_done(uint32_t number) const noexcept;

  EngineProcess& process_;
  const CopyDirection direction_;
  CopyLane* lane_ = nullptr;
  char* staging_ = nullptr;
  const std::shared_ptr<detail::CopyThreads> threads_ = detail::CopyThreads::shared();
  // Held for a whole copy: it has no more commands under way than the lane has slots, so that none waits for
  // a slot that another thread would have to free.
  std::mutex turn_;
  uint32_t asked_ = 0;
};

}  // namespace gyre::process
