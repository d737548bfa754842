// What the program gyre-engine does: runs one CUDA engine for the program that started it.
#pragma once

#include <gyre/runtime/process/control.capnp.h>
#include <gyre/runtime/cuda/engine.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/process/channel.hpp>
#include <gyre/runtime/process/copy_server.hpp>
#include <gyre/runtime/process/engine_page.hpp>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace gyre::process {

/// Serves the program at socket_descriptor until it asks to end, or is gone. Call it once, first in main().
/// @returns the exit code
int serve_engine(int count, char** arguments);

/// Does what a program's messages ask, on an engine of this process. One thread at a time.
class EngineService {
 public:
  /// Both must outlive this.
  EngineService(Channel& channel, EnginePage& page) : channel_(channel), page_(page) {}
  ~EngineService();
  EngineService(const EngineService&) = delete;
  EngineService& operator=(const EngineService&) = delete;

  /// Says which Gyre this is.
  void hello();
  /// Does what a message asks, and answers it.
  /// @returns false once the program asked to end
  /// @throws MalformedMessage, Error  if no program of this Gyre sends such a message: do not serve it
  /// further
  bool serve(Received received);
  /// Makes the workers leave, and waits for that, at most for `timeout`.
  void stop_workers(std::chrono::milliseconds timeout);
  /// Says why nothing can be asked any more.
  void say_failed(const std::string& why);
  /// Sends a line of the log.
  static void send_log(Channel& channel, LogLevel level, std::string_view line);

 private:
  struct Answer;

  void refuse(control::Refusal::Kind kind, const char* text);
  void take(control::ToEngine::Reader message, Received& received);
  void launch(control::Launch::Reader message);
  void start(bool over_bar);
  void allocate(control::Block::Reader asked);
  uint64_t import(control::Import::Reader asked, Received& received);
  void export_block(uint64_t address);
  void release(control::Block::Reader block);
  void set_entry(control::Entry::Reader entry);
  void map_bar(uint64_t bytes, Descriptor memory);
  void bar_stored(uint32_t how);
  void set_devices(Answer& answer);
  void command_stop();
  MemoryBlock part_of(MemoryKind kind, const char* doing, uint64_t address, uint64_t bytes) const;
  void publish(const MemoryStats& memory);
  void watch();

  cuda::CudaEngine& engine();
  cuda::CudaBufferMemory& buffers() { return engine().cuda_buffers(); }

  Channel& channel_;
  EnginePage& page_;
  std::unique_ptr<cuda::CudaEngine> engine_;
  std::unique_ptr<cuda::BarMapping> bar_;  // until the start
  std::mutex memory_mutex_;  // of blocks_, and of the end of imports: threads that copy read both
  std::map<uint64_t, MemoryBlock> blocks_;  // by address: what was allocated and not released
  std::optional<CopyService> copies_;       // ends before the engine does
  std::atomic<bool> ending_{false};
  std::thread watcher_;
};

}  // namespace gyre::process
