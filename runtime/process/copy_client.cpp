#include <fmt/format.h>
#include <sched.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/core/deadline.hpp>
#include <gyre/runtime/errors.hpp>
#include <gyre/runtime/process/copy_client.hpp>
#include <gyre/runtime/system/cancellation.hpp>
#include <gyre/runtime/system/futex.hpp>

#include <algorithm>
#include <cstring>
#include <optional>

namespace gyre::process {

namespace {

// A blocking copy of the driver spins too: a sleeper wakes some 50 µs late. Later on others may have the
// processor.
constexpr int64_t spin_ns = 2'000'000;
constexpr int64_t sleep_ns = 10'000'000;  // between two looks at whether the process is gone
// An engine process that ends no copy for so many times Options::heartbeat_timeout is broken. What copies
// wait for there, such as zeroing a large buffer, takes seconds; a GiB takes less than limit_of_gib on any
// bus.
constexpr int copy_heartbeats = 30;
constexpr std::chrono::milliseconds limit_of_gib{1000};

// A copy goes in four parts or more, so that the device copies one while the program fills or empties
// another. Larger parts keep the threads that fill them together for longer; the two largest fill the staging
// memory. Smaller ones than these would spend their time on being asked for.
uint64_t bytes_of_part(uint64_t bytes) {
  constexpr uint64_t unit = 64 << 10, least = 2 * unit, most = StagingBlock::lane_bytes / 2;
  return std::clamp((bytes / 4 + unit - 1) / unit * unit, least, most);
}

}  // namespace

void CopyClient::attach(StagingBlock& block) {
  lane_ = &block.lanes[uint32_t(direction_)];
  staging_ = block.memory[uint32_t(direction_)].data();
}

// A command under way. Not destroyed before its copy has ended: until then its memory is the device's.
class CopyClient::Part {
 public:
  Part(CopyClient& client, const CopyCommand& command)
      : client_(client), number_(client.ask(command)), bytes_(command.bytes) {}
  ~Part() {
    if (finished_) return;
    (void)client_.wait_until_done(number_, bytes_);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  void finish() {
    finished_ = true;
    client_.finish(number_, bytes_);
  }

 private:
  CopyClient& client_;
  const uint32_t number_;
  const uint64_t bytes_;
  bool finished_ = false;
};

uint32_t CopyClient::ask(const CopyCommand& command) {
  const uint32_t number = asked_++;
  CopyLane::Slot& slot = lane_->slot(number);
  slot.command = command;
  slot.refused.store(0, std::memory_order_relaxed);
  // Pairs with the engine's load of it, which then sees the command. Before the load of engine_sleeps: one
  // side sees the other's store.
  lane_->asked.store(asked_, std::memory_order_seq_cst);
  if (lane_->engine_sleeps.load(std::memory_order_seq_cst) != 0)
    detail::futex_wake_shared(detail::whole(lane_->asked));
  return number;
}

bool CopyClient::is_done(uint32_t number) const noexcept {
  // Pairs with the engine's store: what it copied is seen, and why it refused.
  return int32_t(lane_->done.load(std::memory_order_seq_cst) - number) > 0;
}

// False if the process ended before. `bytes` is the size of the copies that may be under way.
bool CopyClient::wait_until_done(uint32_t number, uint64_t bytes) const noexcept {
  const int64_t begin_ns = detail::host_now_ns();
  for (int64_t now_ns = begin_ns; now_ns - begin_ns < spin_ns; now_ns = detail::host_now_ns()) {
    for (int i = 0; i < 8; ++i) {
      if (is_done(number)) return true;
    }
    if (now_ns - begin_ns > copy_spin_ns) sched_yield();
  }
  const std::chrono::milliseconds limit =
      process_.heartbeat_timeout() * copy_heartbeats + limit_of_gib * int64_t(bytes >> 30);
  const bool limited = process_.heartbeat_timeout().count() != 0;
  uint32_t most_done = number - CopyLane::slots;  // those before were waited for
  int64_t stood_ns = 0;
  while (!process_.gone()) {
    lane_->program_sleeps.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t seen = lane_->done.load(std::memory_order_seq_cst);
    const int64_t slept_at_ns = detail::host_now_ns();
    if (int32_t(seen - number) <= 0)
      detail::futex_wait_shared(detail::whole(lane_->done), seen, slept_at_ns + sleep_ns);
    lane_->program_sleeps.fetch_sub(1, std::memory_order_seq_cst);
    if (is_done(number)) return true;
    // Adds up sleeps, not time: both processes may have been frozen.
    stood_ns += std::min(detail::host_now_ns() - slept_at_ns, sleep_ns);
    if (int32_t(seen - most_done) > 0) {
      most_done = seen;
      stood_ns = 0;
    }
    if (!limited || stood_ns < std::chrono::nanoseconds(limit).count()) continue;
    kill_stalled(limit);
    stood_ns = 0;
  }
  return is_done(number);
}

void CopyClient::kill_stalled(std::chrono::milliseconds limit) const noexcept {
  try {
    process_.kill(fmt::format(
        "the engine process {} was killed: it finished no part of a copy {} a buffer "
        "for {} ms ({} times Options::heartbeat_timeout, and a second a GiB)",
        process_.id(), direction_ == CopyDirection::in ? "into" : "out of", limit.count(), copy_heartbeats));
  } catch (const std::exception&) {  // no memory: how it ended is said instead
    process_.kill();
  }
}

void CopyClient::finish(uint32_t number, uint64_t bytes) {
  if (!wait_until_done(number, bytes)) {
    throw Error(fmt::format("copying a buffer: {}; launch anew",
                            process_.failure().value_or("the engine process has ended")),
                Status::buffer_lost);
  }
  const CopyLane::Slot& slot = lane_->slot(number);
  if (slot.refused.load(std::memory_order_relaxed) != 0) {
    const std::string refusal(slot.why.data(), strnlen(slot.why.data(), slot.why.size()));
    throw Error(refusal.empty() ? "copying a buffer: the engine process refused it, and gave no reason"
                                : refusal);
  }
}

void CopyClient::copy_pinned(uint64_t device, uint64_t pinned, uint64_t bytes) {
  const detail::CancellationDeferred deferred;
  const std::lock_guard lock(turn_);
  Part(*this, {device, bytes, pinned, 0}).finish();
}

void CopyClient::copy(uint64_t device, void* host, uint64_t bytes) {
  const detail::CancellationDeferred deferred;
  const std::lock_guard lock(turn_);
  const uint64_t part_bytes = bytes_of_part(bytes), parts = (bytes + part_bytes - 1) / part_bytes;
  // At most so many are under way, each in its place of the staging memory.
  const uint64_t places = std::min<uint64_t>(CopyLane::slots, StagingBlock::lane_bytes / part_bytes);
  std::optional<Part> under_way[CopyLane::slots];
  const auto bytes_of = [&](uint64_t part) { return std::min(part_bytes, bytes - part * part_bytes); };
  const auto host_of = [&](uint64_t part) { return static_cast<char*>(host) + part * part_bytes; };
  const auto staged_of = [&](uint64_t part) { return staging_ + part % places * part_bytes; };
  const auto begin = [&](uint64_t part) {
    under_way[part % places].emplace(
        *this, CopyCommand{device + part * part_bytes, bytes_of(part), 0, part % places * part_bytes});
  };
  const auto end = [&](uint64_t part) {
    under_way[part % places]->finish();
    under_way[part % places].reset();
  };
  const bool in = direction_ == CopyDirection::in;
  // Into the device, a part is filled once the one in its place has been copied, and asked for. Out of it,
  // parts are asked for in advance, and emptied once copied.
  for (uint64_t step = 0; step < parts + places; ++step) {
    if (step >= places && step - places < parts) {
      end(step - places);
      if (!in) threads_->copy(host_of(step - places), staged_of(step - places), bytes_of(step - places));
    }
    if (step >= parts) continue;
    if (in) threads_->copy(staged_of(step), host_of(step), bytes_of(step));
    begin(step);
  }
}

}  // namespace gyre::process
