// The counts of messages between actors by type, beside those by worker.
#pragma once

#include <gyre/runtime/stats.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

namespace gyre_test {

inline const gyre::ActorStats& stats_of(const std::vector<gyre::ActorStats>& actors, std::string_view type) {
  const auto found =
      std::find_if(actors.begin(), actors.end(), [&](const auto& a) { return a.actor == type; });
  REQUIRE(found != actors.end());
  return *found;
}

/// Checks that in each worker the types' counts add up to the worker's, where no message was refused.
inline void check_types_add_up(const gyre::Stats& stats) {
  for (const gyre::WorkerStats& worker : stats.workers) {
    uint64_t sent = 0, processed = 0;
    for (const gyre::ActorStats& type : worker.actors) {
      sent += type.mail_sent;
      processed += type.mail_processed;
    }
    CHECK(sent == worker.mail.sent);
    CHECK(processed == worker.mail.processed);
  }
}

}  // namespace gyre_test
