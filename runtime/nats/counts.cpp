#include <gyre/runtime/nats/counts.hpp>

#include <array>

namespace gyre::nats {
namespace {

#define GYRE_COUNT(member, help) \
  CountField { &GatewayBooks::member, #member, help }

constexpr std::array fields{
    GYRE_COUNT(asks_received, "Requests with a reply subject."),
    GYRE_COUNT(asks_answered, "Asks answered with status ok."),
    GYRE_COUNT(asks_error_replies, "Asks that an actor or the engine failed."),
    GYRE_COUNT(asks_refused, "Asks that were answered without being given to an actor."),
    GYRE_COUNT(asks_expired, "Asks whose time was over."),
    GYRE_COUNT(asks_lost, "Asks whose outcome found no connection or no lease."),
    GYRE_COUNT(asks_forwarded, "Asks published again for their shard's new owner."),
    GYRE_COUNT(tells_received, "Requests without a reply subject."),
    GYRE_COUNT(tells_accepted, "Tells that the runtime accepted."),
    GYRE_COUNT(tells_refused, "Tells that were not given to an actor."),
    GYRE_COUNT(tells_forwarded, "Tells published again for their shard's new owner."),
    GYRE_COUNT(durable_received, "Deliveries of durable tells."),
    GYRE_COUNT(durable_processed, "Durable tells acknowledged after their handler ended well."),
    GYRE_COUNT(durable_failed, "Durable tells terminated because their handler failed."),
    GYRE_COUNT(durable_refused, "Durable tells terminated because no handler takes them."),
    GYRE_COUNT(durable_expired, "Durable tells terminated because their time was over."),
    GYRE_COUNT(durable_delayed, "Deliveries of durable tells put off to a later one."),
    GYRE_COUNT(durable_duplicates, "Deliveries of an id that the node has or had in hand."),
    GYRE_COUNT(durable_redelivered, "Deliveries of durable tells that were not the first."),
    GYRE_COUNT(durable_consumers_renewed, "Consumers made anew because they delivered none of their tells."),
    GYRE_COUNT(dropped, "Requests that the NATS library dropped unread."),
    GYRE_COUNT(disconnects, "Connections to a server that were lost."),
    GYRE_COUNT(leases_lost, "Leases of this node that ended early, also with its engine."),
    GYRE_COUNT(shards_taken, "Times that this node began to serve a shard."),
    GYRE_COUNT(shards_handed, "Times that this node handed a shard over."),
};

#undef GYRE_COUNT

static_assert(sizeof(GatewayBooks) == fields.size() * sizeof(uint64_t), "every count has its field");

}  // namespace

std::span<const CountField> count_fields() { return fields; }

}  // namespace gyre::nats
