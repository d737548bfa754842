#include <fmt/format.h>
#include <gyre/bridge/region.hpp>
#include <gyre/device/worker/mail_memory.hpp>
#include <gyre/runtime/options.hpp>

#include <sched.h>

#include <algorithm>
#include <bit>

namespace gyre {

namespace {

template <class Kind>
std::string_view name_in_table(Kind kind) {
  return detail::is_named(kind) ? detail::names_of<Kind>[size_t(kind)] : "?";
}

}  // namespace

std::string_view name(EngineKind kind) { return name_in_table(kind); }
std::string_view name(TransportKind kind) { return name_in_table(kind); }
std::string_view name(Isolation isolation) { return name_in_table(isolation); }
std::string_view name(CudaContext context) { return name_in_table(context); }
std::string_view name(WaitPolicy policy) { return name_in_table(policy); }

MailChunks Options::mail_chunks() const {
  const uint64_t most = 1u << 31;
  return {uint32_t(std::min(spill_bytes / MailLayout::of(workers, slot_bytes, {}, {}).chunk_bytes(), most)),
          uint32_t(std::min(body_pool_bytes / std::max(body_bytes, 1u), most)), body_bytes};
}

std::string Options::problems() const {
  std::string problems;
  const auto wrong = [&problems](const std::string& line) { problems += "  " + line + "\n"; };
  if (!detail::is_named(engine)) {
    wrong(fmt::format("--engine {}: must be auto, cuda or cpu (0 to 2)", int(engine)));
  }
  if (!detail::is_named(transport)) {
    wrong(fmt::format("--transport {}: must be auto, bar, pinned, heap or unified (0 to 4)", int(transport)));
  }
  if (!detail::is_named(isolation)) {
    wrong(fmt::format("--isolation {}: must be process or in_process (0 or 1)", int(isolation)));
  }
  if (!detail::is_named(context)) {
    wrong(fmt::format("--context {}: must be own, primary or given (0 to 2)", int(context)));
  } else if ((context == CudaContext::given) != (cuda_context != nullptr)) {
    wrong(fmt::format("--context {}: Options::cuda_context must be a CUDA context with given, else null",
                      name(context)));
  }
  if (heartbeat_timeout.count() != 0 &&
      (heartbeat_timeout.count() < 100 || heartbeat_timeout > std::chrono::hours(1))) {
    wrong(fmt::format("--heartbeat-timeout {}: must be 100 to 3600000 ms (an hour), or 0 for never",
                      heartbeat_timeout.count()));
  }
  if (stall_after.count() != 0 && (stall_after.count() < 10 || stall_after > std::chrono::hours(24))) {
    wrong(fmt::format("--stall-after {}: must be 10 to 86400000 ms (a day), or 0 for never",
                      stall_after.count()));
  }
  if (restart.within.count() < 1 || restart.within > std::chrono::hours(24)) {
    wrong(fmt::format("restart.within {}: must be 1 to 86400000 ms (a day)", restart.within.count()));
  }
  if (!detail::is_named(wait)) {
    wrong(fmt::format("--wait {}: must be polite or spin (0 or 1)", int(wait)));
  }
  if (device < 0) wrong(fmt::format("--device {}: must be 0 or more", device));
  if (workers < 1 || workers > 65535) wrong(fmt::format("--workers {}: must be 1 to 65535", workers));
  if (block < 32 || block > 1024 || block % 32 != 0) {
    wrong(fmt::format("--block {}: must be a multiple of 32 (a warp), 32 to 1024 (the hardware's most)",
                      block));
  }
  if (blocks > 4096) wrong(fmt::format("--blocks {}: at most 4096", blocks));
  const bool slots_valid = std::has_single_bit(slots) && slots >= 2 && slots <= 65536;
  if (!slots_valid) wrong(fmt::format("--slots {}: must be a power of two, 2 to 65536", slots));
  const bool slot_bytes_valid = slot_bytes % 64 == 0 && slot_bytes >= 64 && slot_bytes <= 16384;
  if (!slot_bytes_valid) {
    wrong(fmt::format("--slot-bytes {}: must be a multiple of 64 (a cache line), 64 to 16384", slot_bytes));
  }
  const bool arena_valid = arena_bytes % 4096 == 0 && arena_bytes <= uint64_t(1) << 40;
  if (!arena_valid) {
    wrong(fmt::format("--arena-bytes {}: must be a multiple of 4096 (a page), at most 2^40", arena_bytes));
  }
  if (actors_per_worker < 1 || actors_per_worker > 1u << 30) {
    wrong(fmt::format("--actors-per-worker {}: must be 1 to 2^30", actors_per_worker));
  }
  if (spill_bytes > uint64_t(1) << 40) {
    wrong(fmt::format("--spill-bytes {}: must be at most 2^40", spill_bytes));
  }
  constexpr uint32_t most_body_bytes = 16u << 20;
  const bool body_valid = body_bytes % 128 == 0 && body_bytes >= 128 && body_bytes <= most_body_bytes;
  if (!body_valid) {
    wrong(fmt::format("--body-bytes {}: must be a multiple of 128, 128 to {}", body_bytes, most_body_bytes));
  }
  if (body_pool_bytes > uint64_t(1) << 40) {
    wrong(fmt::format("--body-pool-bytes {}: must be at most 2^40", body_pool_bytes));
  } else if (body_valid && body_pool_bytes != 0 && body_pool_bytes < body_bytes) {
    wrong(fmt::format("--body-pool-bytes {}: must be 0, or have room for a body of --body-bytes {}",
                      body_pool_bytes, body_bytes));
  }
  const uint32_t slot_body = slot_bytes_valid ? RingShape{2, slot_bytes, 1}.body_capacity() : 0;
  if (slot_bytes_valid && max_reply_bytes > slot_body && slot_body < sizeof(OutOfLine)) {
    wrong(fmt::format(
        "--max-reply-bytes {}: slots of {} bytes have no room to say where such a reply lies; use "
        "--slot-bytes 128 or more",
        max_reply_bytes, slot_bytes));
  }
  if (arena_valid && max_reply_bytes > arena_bytes) {
    wrong(fmt::format(
        "--max-reply-bytes {}: replies larger than a slot lie in the arena, and --arena-bytes is {}",
        max_reply_bytes, arena_bytes));
  }
  for (const int cpu : pin_workers) {
    if (cpu < 0 || cpu >= CPU_SETSIZE) {
      wrong(fmt::format("--pin-workers {}: CPUs have numbers from 0 to {}", cpu, CPU_SETSIZE - 1));
    }
  }
  if (max_buffers > 65535) wrong(fmt::format("max_buffers {}: must be 0 to 65535", max_buffers));
  constexpr std::chrono::milliseconds day = std::chrono::hours(24);
  if (timeout.count() < 1 || timeout > day) {
    wrong(fmt::format("--timeout {}: must be 1 to {} ms (a day)", timeout.count(), day.count()));
  }
  if (stats_interval.count() < 10 || stats_interval > std::chrono::hours(1)) {
    wrong(fmt::format("stats_interval {}: must be 10 to 3600000 ms (an hour)", stats_interval.count()));
  }
  if (first_lap < 1 || first_lap > uint64_t(1) << 62) {
    wrong(fmt::format("first_lap {}: must be 1 to 2^62; stamp 0 means never written", first_lap));
  }
  if (slots_valid && slot_bytes_valid && arena_valid) {
    const uint64_t bytes = region_layout(0).region_bytes();
    if (bytes > region_budget) {
      wrong(
          fmt::format("--workers {} --slots {} --slot-bytes {} --arena-bytes {}: the region would take {} "
                      "bytes, over its "
                      "budget of {}; ask for "
                      "less, or raise Options::region_budget",
                      workers, slots, slot_bytes, arena_bytes, bytes, region_budget));
    }
    if (transport == TransportKind::unified && bytes > unified_region_bytes) {
      wrong(fmt::format(
          "--transport unified --workers {} --slots {} --slot-bytes {} --arena-bytes {}: the region would "
          "take {} bytes, and in unified memory it may have {}; ask for less, or use --transport pinned",
          workers, slots, slot_bytes, arena_bytes, bytes, unified_region_bytes));
    }
  }
  return problems;
}

}  // namespace gyre
