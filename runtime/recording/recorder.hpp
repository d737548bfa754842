// Records what a program sends, and what becomes of it, to a file (messages/recording.capnp). Threads on the
// message path put records into a RecordRing; a thread of the recorder's writes them.
#pragma once

#include <gyre/bridge/fork.hpp>
#include <gyre/messages/status.hpp>
#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/calls/call_id.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>

namespace gyre::detail {

/// One recording. Thread-safe. What records a message never waits: without room it is dropped and counted.
class Recorder {
 public:
  /// The memory for records that wait to be written.
  static constexpr uint64_t standard_ring_bytes = uint64_t(64) << 20;

  enum class Kind : uint32_t { ask, tell, receipt };
  /// What is said of a message that is about to be published.
  struct Sent {
    Kind kind;
    uint32_t worker;
    uint64_t ticket;
    CallId call;  ///< 0 for a tell
    uint64_t key;
    uint16_t actor_type;
    uint16_t message_type;
    std::chrono::nanoseconds timeout;
    std::chrono::nanoseconds expires_after;  ///< 0: never
  };

  /// Makes the file, in place of one of that name. Throws Error if that cannot be.
  explicit Recorder(const std::string& path, uint64_t ring_bytes = standard_ring_bytes);
  /// Ends the recording, unless it was ended; waits for a second at most.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Starts the thread, which writes the header first. Throws Error if there can be no thread.
  void begin(const ActorSet& actors, const Options& options, const std::string& device);
  /// Records a message. Call it before the message is published: so its outcome is behind it in the file.
  /// @param first_word  the body's first word
  /// @param rest        the body behind it; ignored if the body is empty
  void sent(const Sent& sent, uint64_t first_word, const void* rest, uint32_t body_bytes) noexcept;
  /// Records how an ask, or a receipt, ended. The first outcome counts; one of a message that was dropped is
  /// ignored.
  void outcome(CallId call, Status status, uint32_t detail) noexcept;
  void answer(CallId call, const void* body, uint64_t body_bytes) noexcept;
  /// Records that the workers begin anew.
  void relaunched() noexcept;
  /// Writes what is there, and the end, and closes the file. Waits at most until `deadline_ns` of the host's
  /// clock, and logs what is missing then. Repeatable.
  void end(int64_t deadline_ns) noexcept;

 private:
  class File;

  const ForkGuard fork_;
  std::shared_ptr<File> file_;  // the thread keeps it, too
  std::thread thread_;
};

}  // namespace gyre::detail
