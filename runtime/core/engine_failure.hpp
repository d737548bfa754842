// What a Core does when its engine fails.
#pragma once

#include <gyre/runtime/core/host_side.hpp>
#include <gyre/runtime/core/state.hpp>

#include <atomic>
#include <string>
#include <string_view>

namespace gyre::detail {

class Receiver;

/// The first failure of the engine, and what follows from it. Thread-safe. No step waits for another thread:
/// several threads may do each step at once and again.
class EngineFailure {
 public:
  /// All must outlive this.
  EngineFailure(HostSide& host, State& state, Receiver& receiver)
      : host_(host), state_(state), receiver_(receiver) {}
  ~EngineFailure();
  EngineFailure(const EngineFailure&) = delete;
  EngineFailure& operator=(const EngineFailure&) = delete;

  /// Asks the engine whether its workers died, and fails the Core if they did. Costs a driver call on CUDA in
  /// process. Not while the Core terminates. Once it has failed or terminated, ends calls that were being
  /// sent at that time.
  void check() noexcept;
  /// Asks the engine, unless the Core has failed, also while it terminates.
  void ask_engine() noexcept;
  /// Notes the first `cause`, closes the rings, takes the replies that are there, and ends all other calls.
  void fail(std::string_view cause) noexcept;
  /// Returns the first cause; empty if the engine did not fail.
  std::string text() const;
  /// Returns the outcome of a call whose worker died: with what the worker was last busy with.
  Failure of_worker(uint32_t worker) const;

 private:
  bool record(std::string_view cause) noexcept;
  std::string last_words() const;

  HostSide& host_;
  State& state_;
  Receiver& receiver_;
  std::atomic<const std::string*> first_{nullptr};    // for good; owned, unless it is out_of_memory_
  const std::string out_of_memory_{"out of memory"};  // needs no allocation
};

}  // namespace gyre::detail
