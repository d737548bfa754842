// Launches the workers, and moves all of them from one state to the next.
#pragma once

#include <gyre/runtime/core/accounts.hpp>
#include <gyre/runtime/core/clock.hpp>
#include <gyre/runtime/core/host_side.hpp>
#include <gyre/runtime/core/receive.hpp>
#include <gyre/runtime/core/state.hpp>
#include <gyre/runtime/memory/buffers.hpp>
#include <gyre/runtime/system/timed_mutex.hpp>

#include <mutex>
#include <vector>

namespace gyre::detail {

class ToldMessages;

/// Commands all workers. Thread-safe, except for launch() and abandon().
class WorkerControl {
 public:
  /// Every argument must outlive the WorkerControl.
  WorkerControl(HostSide& host, State& state, Accounts& accounts, Clock& clock, Receiver& receiver);

  /// Launches the engine's workers and waits until each has started, at most Options::timeout. Throws Error,
  /// after stopping the workers that did start.
  void launch();
  /// Stops workers to which no message was sent.
  void abandon() noexcept;

  /// Commands the workers to take messages or to answer `inactive`, and waits until all obey.
  Result<void> set_active(bool active, std::chrono::nanoseconds timeout);
  /// Closes the rings, and waits until the workers have done all they accepted, and what their actors sent to
  /// each other for it.
  /// @param told  waited for too, where actors tell the host; null: they are not
  Result<void> drain(const ToldMessages* told, std::chrono::nanoseconds timeout);
  /// Waits until every worker is done with all messages sent before the call.
  Result<void> wait_for_workers(const Buffers& buffers, std::chrono::nanoseconds timeout);

 private:
  enum class Terminating { ends_the_wait, is_ignored };

  template <class Done>
  Result<void> wait_until(Done&& done, int64_t deadline_ns, std::chrono::nanoseconds timeout,
                          Terminating terminating);
  void wait_until_started();
  void send_drain_messages();
  Result<void> drain_mail(int64_t deadline_ns, std::chrono::nanoseconds timeout);
  // `words`: the workers' commands.
  Result<void> wait_until_obeyed(const std::vector<CommandWord>& words, int64_t deadline_ns,
                                 std::chrono::nanoseconds timeout);

  HostSide& host_;
  State& state_;
  Accounts& accounts_;
  Clock& clock_;
  Receiver& receiver_;
  TimedMutex active_mutex_;       // set_active's state and commands belong together
  std::mutex drain_mutex_;        // of drain_sent_; tried, never waited for
  std::vector<bool> drain_sent_;  // by worker
};

}  // namespace gyre::detail
