// Ends the workers, and settles what became of every message.
#pragma once

#include <gyre/runtime/core/accounts.hpp>
#include <gyre/runtime/core/engine_failure.hpp>
#include <gyre/runtime/core/host_side.hpp>
#include <gyre/runtime/core/receive.hpp>
#include <gyre/runtime/core/state.hpp>
#include <gyre/runtime/memory/buffers.hpp>

#include <atomic>
#include <vector>

namespace gyre {

/// Reports what Runtime::terminate did.
struct Termination {
  Books books;
  double uptime_s = 0;
  double terminate_ms = 0;
  /// A worker did not stop in time. Its engine process was killed, or its memory left allocated.
  bool worker_stuck = false;
  bool sender_stuck = false;  ///< a thread did not finish sending in time; Books::inferred counts its message
  /// A thread did not finish taking replies in time; Books::inferred counts the replies behind it.
  bool reader_stuck = false;
  /// A thread did not finish allocating or freeing a buffer in time. Memory of freed buffers stays
  /// allocated until the runtime's last holder is gone.
  bool buffers_stuck = false;
  bool callback_stuck = false;  ///< a callback did not return in time; later callbacks may run late or never
  /// The time was up while another call was still ending the workers. The books are a snapshot; call again
  /// for the full report.
  bool unfinished = false;
};

namespace detail {

/// Ends the workers once, and reports it to every caller. Thread-safe.
class Terminator {
 public:
  /// Every argument must outlive the Terminator.
  Terminator(HostSide& host, State& state, Accounts& accounts, Receiver& receiver,
             EngineFailure& engine_failure, Buffers& buffers);

  /// Ends the workers after the message in hand; the messages behind it become dead letters. The first caller
  /// ends them; others wait for its report, at most until their deadlines. `timeout` appears in texts only.
  Termination end_workers(std::chrono::nanoseconds timeout, int64_t deadline_ns);
  /// Returns the final books once the workers have ended, and the books so far until then.
  Books books() const;

 private:
  Termination wait_for_report(int64_t deadline_ns) const;
  void stop_workers(Termination& report, int64_t deadline_ns);
  void settle(Termination& report, int64_t deadline_ns);
  bool dead_letter_unprocessed(uint32_t worker, int64_t deadline_ns);
  void log_report(const Termination& report, std::chrono::nanoseconds timeout, bool killed) const;

  HostSide& host_;
  State& state_;
  Accounts& accounts_;
  Receiver& receiver_;
  EngineFailure& engine_failure_;
  Buffers& buffers_;
  std::vector<Packet> read_back_;  // room for one message: termination must not fail for lack of memory
  Termination report_;             // the first caller's, until reported_
  std::atomic<bool> reported_{false};
};

}  // namespace detail
}  // namespace gyre
