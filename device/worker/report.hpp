// What a worker publishes of itself: credit, counters, heartbeat, and the tells that failed.
#pragma once

#include <gyre/device/worker/shared.hpp>

namespace gyre {

/// The counters of one worker, and its line in the region, where the host reads them. The host collects
/// failed tells once it sees the credit, so all counters are stored before it.
class WorkerReport {
 public:
  uint64_t answered = 0;
  uint64_t error_replies = 0;
  uint64_t tells_processed = 0;
  uint64_t tells_failed = 0;
  uint64_t corrupt = 0;

  /// @param counts  the worker's own, zeroed: one a handler, and one for messages that are for none
  GYRE_DEVICE WorkerReport(const Bridge& bridge, HandlerCounts* counts, uint32_t entries)
      : line_(bridge.worker_line),
        published_counts_(bridge.counts),
        failure_log_(bridge.failure_log),
        shape_(bridge.shape),
        credits_(bridge.worker_line->h2d_credit, bridge.shape.slots),
        meter_(counts, entries) {}

  GYRE_DEVICE const HandlerMeter& meter() const { return meter_; }

  /// Publishes that the slots of all requests below `ticket` are free. One thread, or all of a warp alike:
  /// they store the same, in one access.
  GYRE_DEVICE void publish_credit(uint64_t ticket) {
    Memory::store_relaxed(line_->answered, answered);
    Memory::store_relaxed(line_->error_replies, error_replies);
    Memory::store_relaxed(line_->tells_processed, tells_processed);
    Memory::store_relaxed(line_->tells_failed, tells_failed);
    Memory::store_relaxed(line_->corrupt, corrupt);
    credits_.publish(ticket);  // release: pairs with the host's acquire of h2d_credit
  }
  /// Whether credit is due after `n` requests, the last of them `ticket` - 1.
  GYRE_DEVICE bool credit_is_due(uint64_t ticket, uint32_t n) const { return credits_.due(ticket, n); }
  /// Whether requests below `ticket` were handled whose credit is not published.
  GYRE_DEVICE bool credit_is_behind(uint64_t ticket) const { return credits_.behind(ticket); }

  /// Publishes the handlers' counts, unless nothing was counted since the last publication. Collective over
  /// PollGroup.
  /// @param counted  a number that grows with each message that is counted
  GYRE_DEVICE void publish_counts(WorkerShared& shared, uint64_t counted) {
    if (shared.reports.counts_ticket != counted) publish_counts_again(shared, counted);
  }
  /// Publishes the handlers' counts. Collective over PollGroup.
  GYRE_DEVICE void publish_counts_again(WorkerShared& shared, uint64_t counted) {
    meter_.publish(published_counts_);
    if (PollGroup::rank() == 0) shared.reports.counts_ticket = counted;
    PollGroup::sync();
  }
  /// Publishes the heartbeat if it is due. If the counts are due too, measures the tick and publishes them.
  /// Collective over PollGroup.
  /// @param at_once  publishes all of it now; the tick is measured only where it is due, over 32 ms
  /// @returns whether the counts were published
  GYRE_DEVICE bool publish_if_due(WorkerShared& shared, uint32_t now_us, uint64_t counted, bool at_once) {
    WorkerReports& reports = shared.reports;
    if (!at_once && now_us - reports.heartbeat_us < heartbeat_interval_us) return false;
    const auto clocks = HandlerMeter::ClockPair::now();
    const bool tick_due = now_us - reports.counts_us >= counts_interval_us;
    if (tick_due) meter_.compare(reports.clocks, clocks);
    PollGroup::sync();
    if (PollGroup::rank() == 0) {
      Memory::store_relaxed(line_->heartbeat_ns, clocks.ns);  // a time alone, which the host's stats read
      reports.heartbeat_us = now_us;
      if (tick_due) {
        reports.counts_us = now_us;
        reports.clocks = clocks;
        shared.tick = meter_.tick();
      }
    }
    const bool counts_due = tick_due || at_once;
    if (assert_warp_uniform(counts_due)) publish_counts(shared, counted);
    PollGroup::sync();
    return counts_due;
  }
  /// Says that the worker has seen the command. One thread.
  GYRE_DEVICE void acknowledge_command(CommandWord command) {
    Memory::store_relaxed(line_->clock_ns, deadline_clock_ns());
    // Pairs with the load in CommandSender::acknowledged(), after which the host reads clock_ns.
    Memory::store_release(line_->acknowledged, command.word);
  }

  /// Logs a failed tell and the reason, for the host to collect as a dead letter, then publishes credit. One
  /// thread, after the tell was counted.
  GYRE_DEVICE void log_failed_tell(const MessageVerdict& verdict, const Envelope& envelope,
                                   const uint32_t* request, uint64_t ticket) {
    const auto stamp = uint32_t(tells_failed);
    const uint64_t where = verdict.where;
    Packet* entry = failure_log_ + FailureLog::first_packet(shape_, tells_failed);
    Memory::store(*entry++, Packet{{uint32_t(verdict.status), verdict.detail, uint32_t(where)}, stamp});
    Memory::store(*entry++, Packet{{uint32_t(where >> 32), 0, 0}, stamp});
    GYRE_ROLLED
    for (uint32_t k = 0; k < packets_for(envelope.body_bytes); ++k) {
      const uint32_t* const words = request + k * words_a_packet;
      Memory::store(entry[k], Packet{{words[0], words[1], words[2]}, stamp});
    }
    publish_credit(ticket);
  }

 private:
  static constexpr uint32_t heartbeat_interval_us = 1000;
  static constexpr uint32_t counts_interval_us = 32'000;

  WorkerLine* line_;
  HandlerCounts* published_counts_;
  Packet* failure_log_;
  RingShape shape_;
  CreditPublisher<Memory> credits_;
  HandlerMeter meter_;
};

}  // namespace gyre
