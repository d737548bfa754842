// The program's end of an engine process: starts it, asks it, watches it, ends it.
#pragma once

#include <gyre/runtime/process/control.capnp.h>
#include <sys/types.h>
#include <gyre/bridge/fork.hpp>
#include <gyre/bridge/shared_memory.hpp>
#include <gyre/runtime/process/channel.hpp>
#include <gyre/runtime/process/engine_page.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace gyre::process {

/// Lists where the program gyre-engine is looked for, in order: $GYRE_ENGINE alone if it is set, else beside
/// this program and library, and in the folders that packages install to.
std::vector<std::string> engine_paths();

/// A running gyre-engine. It ends with this object, with the program, and when the program calls exec.
/// Thread-safe.
class EngineProcess {
 public:
  /// Starts the process, and a thread that watches it.
  /// @param heartbeat_timeout  the process is killed if it gives no sign for so long; 0: never
  /// @param mps_percentage     CUDA_MPS_ACTIVE_THREAD_PERCENTAGE in its environment; 0: as in the program's
  /// @throws EngineUnavailable  if it is not found, does not start, or is of another Gyre
  explicit EngineProcess(std::chrono::milliseconds heartbeat_timeout, uint32_t mps_percentage = 0);
  ~EngineProcess() { end(); }
  EngineProcess(const EngineProcess&) = delete;
  EngineProcess& operator=(const EngineProcess&) = delete;

  /// Sends a request and waits for its answer, which is of kind `expected`. One request at a time: other
  /// threads wait. Any thread; blocks until the process answers or is gone.
  /// @throws Error, EngineUnavailable, BadOptions, std::bad_alloc  as the engine process did, or Error if it
  ///         is gone, or answered what cannot be and was killed
  /// @param descriptors  copied to the process, beside the request
  Received call(capnp::MessageBuilder& request, control::FromEngine::Which expected,
                std::initializer_list<int> descriptors = {});
  /// Likewise, and returns what `read(root, received)` makes of the answer. A malformed one ends the process.
  template <class Read>
  auto call(capnp::MessageBuilder& request, control::FromEngine::Which expected, Read read,
            std::initializer_list<int> descriptors = {}) {
    Received received = call(request, expected, descriptors);
    try {
      return read(received.root<control::FromEngine>(), received);
    } catch (const kj::Exception& error) {
      throw condemned(MalformedMessage(error).what());
    } catch (const MalformedMessage& error) {
      throw condemned(error.what());
    }
  }
  /// Kills the process, which said what cannot be, and returns the error to throw.
  Error condemned(const std::string& why);
  /// Sends a request that has no answer. Never throws: if the process is gone there is nothing to do.
  void post(capnp::MessageBuilder& request) noexcept;
  /// Asks the process to end, and kills it after end_grace. Blocks until it is gone. Does nothing in a child
  /// of fork(). Repeatable; one thread at a time.
  void end() noexcept;
  /// Kills the process. Under MPS asks it to stop, and kills it after kill_grace_ms. Does not wait.
  void kill() noexcept;
  /// Kills the process for `cause`, which failure() returns, unless there is one already.
  void kill(std::string_view cause) noexcept;

  /// Returns true once the process has ended: nothing writes to its shared memory any more.
  bool gone() const { return gone_.load(std::memory_order_acquire); }  // pairs with the store in conclude()
  /// Returns why its workers died, or how the process ended unasked; nothing if neither happened.
  std::optional<std::string> failure() const;
  const EnginePage& page() const { return *static_cast<const EnginePage*>(page_.address()); }
  pid_t id() const { return id_; }
  std::chrono::milliseconds heartbeat_timeout() const { return heartbeat_timeout_; }
  const std::string& path() const { return path_; }

 private:
  static constexpr std::chrono::milliseconds hello_timeout{10'000}, end_grace{1'000};

  void spawn(uint32_t mps_percentage);
  void wait_for_hello();
  void kill_now() noexcept;
  void supervise() noexcept;
  bool take_message() noexcept;
  void deliver(Received received);
  bool guardian_waits_for_processor() const noexcept;
  void check_heartbeat() noexcept;
  void check_end() noexcept;
  bool reap() noexcept;
  void conclude(std::string how) noexcept;
  void fail(std::string why) noexcept;

  const ForkGuard fork_;
  const std::chrono::milliseconds heartbeat_timeout_;
  const bool mps_;  // it runs
  std::string path_;
  SharedMemory page_;
  std::optional<Channel> channel_;
  Descriptor process_;  // pidfd; none before Linux 5.3
  pid_t id_ = 0;

  std::mutex call_mutex_;     // one request at a time
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable answered_;
  bool awaiting_ = true;  // the hello comes by itself
  std::optional<Received> answer_;
  std::string failure_;
  bool ending_ = false;
  std::chrono::steady_clock::time_point end_by_ = std::chrono::steady_clock::time_point::max();

  std::atomic<bool> gone_{false};
  uint64_t last_heartbeat_ = 0;  // the supervisor's, as the next
  int missed_ = 0;               // polls without a heartbeat
  bool socket_open_ = true;
  std::chrono::steady_clock::time_point must_end_by_{};  // once it closed its socket, or failed
  std::thread supervisor_;
};

}  // namespace gyre::process
