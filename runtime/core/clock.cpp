#include <fmt/format.h>
#include <gyre/runtime/core/backoff.hpp>
#include <gyre/runtime/core/clock.hpp>

#include <time.h>

namespace gyre::detail {

namespace {

constexpr int64_t sample_interval_ns = 1'000'000'000;
constexpr int samples_at_launch = 8;

}  // namespace

int64_t host_now_ns() { return int64_t(gyre::now_ns()); }

int64_t coarse_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void Clock::calibrate() {
  if (host_.engine->shares_host_clock()) {
    for (HostBridge& bridge : host_.bridges) bridge.commands().never_publish_time();
    return;
  }
  // A worker compares deadlines with its estimate of the host's clock, which begins with the first time.
  for (HostBridge& bridge : host_.bridges) bridge.commands().publish_time(host_now_ns());
  HostBridge& bridge = host_.bridges.front();
  const int64_t deadline_ns = after(host_now_ns(), host_.options.timeout);
  Backoff backoff(WaitPolicy::spin);
  for (int i = 0; i < samples_at_launch; ++i) {
    const int64_t asked_ns = host_now_ns();
    const CommandWord word = bridge.commands().command_again();
    while (!bridge.commands().obeys(word)) {
      backoff.pause();
      if (!backoff.should_read_clock()) continue;
      if (const auto cause = host_.engine->failure()) throw Error("launching the workers: " + *cause);
      if (host_now_ns() < deadline_ns) continue;
      throw Error(fmt::format("launching the workers: worker 0 did not answer a command within {} ms",
                              host_.options.timeout.count()));
    }
    worker_clock_.sample(asked_ns, int64_t(Memory::load_relaxed(bridge.bridge().worker_line->clock_ns)));
  }
}

void Clock::sample(int64_t now_ns) {
  if (host_.engine->shares_host_clock()) return;
  const std::unique_lock lock(sample_mutex_, std::try_to_lock);
  if (!lock) return;
  HostBridge& bridge = host_.bridges.front();
  if (sample_asked_ns_ != 0) {
    if (!bridge.commands().obeys(sample_command_)) return;
    worker_clock_.sample(sample_asked_ns_,
                         int64_t(Memory::load_relaxed(bridge.bridge().worker_line->clock_ns)));
    sample_asked_ns_ = 0;
  } else if (now_ns >= next_sample_ns_) {
    next_sample_ns_ = now_ns + sample_interval_ns;
    sample_asked_ns_ = now_ns;
    sample_command_ = bridge.commands().command_again();
  }
}

void Clock::publish_time(int64_t now_ns) {
  if (host_.engine->shares_host_clock()) return;
  for (HostBridge& bridge : host_.bridges) {
    if (bridge.may_have_work()) bridge.commands().publish_time(now_ns);
  }
}

// Returns 0, no deadline, where the last published time is so old that the worker could take a distant
// deadline for one that has passed.
uint32_t Clock::publish_time_first(HostBridge& bridge, int64_t now_ns, int64_t deadline_ns) {
  constexpr int64_t comparable_ns = 60'000'000'000;
  bridge.commands().publish_time(now_ns);
  return now_ns - bridge.commands().published_time_ns() > comparable_ns ? 0
                                                                        : deadline_us(now_ns, deadline_ns);
}

}  // namespace gyre::detail
