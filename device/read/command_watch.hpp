// How a worker learns what the host commands, and the host's time.
#pragma once

#include <gyre/bridge/region.hpp>
#include <gyre/device/platform.hpp>

namespace gyre {

/// Samples the command word and the worker's clock. The polling threads' alone.
class CommandWatch {
 public:
  GYRE_DEVICE CommandWord command() const { return {command_}; }
  /// The host's clock at the last sample, in microseconds, by estimate: the worker's own clock since the host
  /// last wrote its time. Good enough to suspect that a message is late, not to refuse it: clocks drift, and
  /// a GPU's may step.
  GYRE_DEVICE uint32_t now_us() const { return now_us_; }

  /// clock_ticks() at the last request_sample() or read_clock_again().
  GYRE_DEVICE uint64_t ticks() const { return ticks_; }
  GYRE_DEVICE void read_clock_again() { ticks_ = clock_ticks(); }

  /// Makes the next sample due.
  GYRE_DEVICE void make_sample_due() { sampled_at_ = uint32_t(clock_ticks()) - command_poll_interval; }
  /// Loads the command word if a sample is due. Called beside a load of the ring, so that both cross the bus
  /// together. Collective over PollGroup.
  GYRE_DEVICE void request_sample(const CommandLine& command_line) {
    ticks_ = clock_ticks();
    const bool due = PollGroup::any(uint32_t(ticks_) - sampled_at_ >= command_poll_interval);
    if (due) {
      sampled_at_ = uint32_t(ticks_);
      now_us_ = uint32_t(deadline_clock_ns() / 1000) + host_ahead_us_;
    }
    if (due || samples_command_each_poll) {
      due_ = due || (pending_ && due_);  // what was due and is not taken yet stays due
      pending_ = true;
      // Relaxed: the word is its own content. Stored by CommandSender::store_line().
      sample_ = Memory::load_relaxed(command_line.command);
    }
  }
  /// Takes the sample that was requested, if any.
  /// @returns true if the sample was due, or the command has changed
  /// Collective over PollGroup.
  GYRE_DEVICE bool take_sample() {
    if (!pending_) return false;
    pending_ = false;
    const uint32_t before = command_;
    command_ = PollGroup::broadcast(uint32_t(sample_));
    if constexpr (!shares_host_clock) set_host_time(PollGroup::broadcast(CommandLine::host_us_in(sample_)));
    return !samples_command_each_poll || due_ || command_ != before;
  }

 private:
  GYRE_DEVICE void set_host_time(uint32_t host_us) {
    if (host_us == host_us_) return;
    host_us_ = host_us;
    host_ahead_us_ += host_us - now_us_;
    now_us_ = host_us;
  }

  uint32_t command_ = 0;  // CommandWord::word
  uint32_t now_us_ = 0;
  uint32_t host_us_ = 0;        // the last time that the host wrote
  uint32_t host_ahead_us_ = 0;  // estimate: the host's clock minus the worker's
  uint64_t ticks_ = 0;
  uint32_t sampled_at_ = 0;  // low bits of ticks_ at the last due sample
  uint64_t sample_ = 0;      // CommandLine::command
  bool pending_ = false;     // a sample was requested and not taken
  bool due_ = false;         // that sample was due
};

}  // namespace gyre
