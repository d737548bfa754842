// The engine process's end of a lane of copies.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/bridge/shared_memory.hpp>
#include <gyre/runtime/memory/buffer_memory.hpp>
#include <gyre/runtime/process/copy_lane.hpp>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

namespace gyre::process {

/// Does what a program asks by a lane, on a stream and a thread of its own. The thread spins while copies are
/// under way and shortly after, then sleeps.
class CopyServer {
 public:
  /// Returns the part of a block that a program names. Throws Error if it is of no block.
  using PartOf = std::function<MemoryBlock(MemoryKind, const char* doing, uint64_t address, uint64_t bytes)>;

  /// All must outlive this.
  /// @param address  the device's, of `block`
  /// @param part_of  called with `memory` locked, which is held until the copy has begun
  /// @throws Error, std::system_error
  CopyServer(const cuda::Context& context, StagingBlock& block, CUdeviceptr address, CopyDirection direction,
             std::mutex& memory, PartOf part_of);
  /// Waits for the copies under way.
  ~CopyServer();
  CopyServer(const CopyServer&) = delete;
  CopyServer& operator=(const CopyServer&) = delete;

 private:
  void serve() noexcept;
  void begin(uint32_t number) noexcept;
  void copy(const CopyCommand& command);
  bool see_done() noexcept;
  void end_all(CUresult result) noexcept;
  void refuse(uint32_t number, const char* why) noexcept;
  void sleep() noexcept;
  void free() noexcept;

  const cuda::Context& context_;
  const cuda::Driver& driver_;
  StagingBlock& block_;
  CopyLane& lane_;
  const CUdeviceptr done_word_;  // lane_.done
  const CopyDirection direction_;
  std::mutex& memory_;
  const PartOf part_of_;
  CUstream stream_ = nullptr;
  uint32_t taken_ = 0, done_ = 0;  // commands
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

/// The staging block, locked for the device, and what serves both directions.
class CopyService {
 public:
  /// See CopyServer.
  CopyService(const cuda::Context& context, std::mutex& memory, const CopyServer::PartOf& part_of);

  /// Returns the memory that the program is to map.
  const SharedMemory& staging() const { return staging_.memory; }
  /// Leaves the staging block locked: unlocking it would wait for a kernel that does not end.
  void leak() { staging_.leaked = true; }

 private:
  struct Staging {
    explicit Staging(const cuda::Context& context);
    ~Staging();
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;
    StagingBlock& block() const { return *static_cast<StagingBlock*>(memory.address()); }

    const cuda::Context& context;
    SharedMemory memory;
    CUdeviceptr address = 0;  // the device's
    bool leaked = false;
  };

  Staging staging_;
  CopyServer in_, out_;
};

}  // namespace gyre::process
