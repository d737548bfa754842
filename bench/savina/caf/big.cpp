// big on CAF: see ../big.hpp.
#include <bench/savina/big.hpp>

#include "savina/caf/instance.hpp"

namespace gyre::bench::savina {

namespace {

using Begin = std::vector<caf::actor>;  // all peers
using Pong = uint32_t;                  // the ping's number
using Report = caf::unit_t;

struct PeerState {
  std::vector<caf::actor> peers;
  uint64_t received = 0;
  uint32_t next = 0, answers = 0;  // the next ping; pings of the row that were not answered yet
};
void send_row(caf::stateful_actor<PeerState>* self, const CafInstance& instance, uint32_t key) {
  PeerState& state = self->state;
  const auto& [messages, actors, under_way] = instance.size;
  const caf::actor& to = state.peers[gyre_savina::big::target_of(key, state.next, actors)];
  for (; state.answers < under_way && state.next < messages; ++state.answers, ++state.next)
    self->send(to, key, state.next);
}
caf::behavior peer(caf::stateful_actor<PeerState>* self, const CafInstance& instance, uint32_t key,
                   const caf::actor& sink) {
  return {[=](const Begin& peers) {
            self->state.peers = peers;
            send_row(self, instance, key);
          },
          [=](uint32_t from, uint32_t number) -> Pong {
            self->state.received += gyre_savina::mix(from, number);
            return number;
          },
          [=](Pong number) {
            PeerState& state = self->state;
            state.received += gyre_savina::mix(number, key);
            if (--state.answers != 0) return;
            if (state.next < instance.size.messages) return send_row(self, instance, key);
            self->send(sink, caf::unit);
          },
          [=](Report) {
            self->send(sink, self->state.received);
            self->state.peers.clear();  // they hold each other
            self->quit();
          }};
}

struct SinkState {
  std::vector<caf::actor> peers;
  uint64_t sum = 0;
  uint32_t answered = 0, received = 0;
};
caf::behavior sink(caf::stateful_actor<SinkState>* self, const CafInstance& instance) {
  SinkState& state = self->state;
  const uint32_t actors = instance.size.actors;
  for (uint32_t i = 0; i < actors; ++i) {
    state.peers.push_back(
        self->spawn(peer, instance, uint32_t(instance.number) * actors + i, caf::actor(self)));
  }
  for (const caf::actor& peer : state.peers) self->send(peer, state.peers);
  return {[=](caf::unit_t) {  // a peer's pings were all answered
            SinkState& state = self->state;
            if (++state.answered != actors) return;
            for (const caf::actor& peer : state.peers) self->send(peer, Report());
          },
          [=](uint64_t received) {
            SinkState& state = self->state;
            state.sum += received;
            if (++state.received != actors) return;
            instance.report(self, state.sum);
            state.peers.clear();
            self->quit();
          }};
}

}  // namespace

void start_big(const CafInstance& instance) { instance.system.spawn(sink, instance); }

}  // namespace gyre::bench::savina
