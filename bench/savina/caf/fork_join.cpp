// fork-join-throughput on CAF: see ../fork_join.hpp.
#include "savina/caf/instance.hpp"

namespace gyre::bench::savina {

namespace {

// As a producer of counting, a forker has two rows of work under way, of 50 pieces for each worker. So one
// message in 26 is not work.
constexpr uint32_t row = 50;

using Work = uint64_t;  // its seed
using EndOfRow = caf::unit_t;
using Finish = bool;

struct WorkerState {
  uint64_t value = 0;
};
caf::behavior worker(caf::stateful_actor<WorkerState>* self) {
  return {[=](Work seed) { self->state.value = gyre_savina::work(self->state.value, seed); },
          [=](EndOfRow) { return true; },
          [=](Finish) {
            self->quit();
            return self->state.value;
          }};
}

struct ForkerState {
  std::vector<caf::actor> workers;
  uint32_t next = 0, rows = 0;  // the next piece of each worker; workers' rows that were not answered yet
  uint32_t joined = 0;
  uint64_t sum = 0;
};
void send_row(caf::stateful_actor<ForkerState>* self, const CafInstance& instance) {
  ForkerState& state = self->state;
  const uint32_t last = std::min(state.next + row, instance.size.messages), actors = instance.size.actors;
  if (state.next == last) return;
  for (uint64_t n = state.next; n < last; ++n) {
    for (uint32_t i = 0; i < actors; ++i)
      self->send(state.workers[i], Work(instance.number << 32 | (n * actors + i)));
  }
  for (const caf::actor& worker : state.workers) {
    self->send(worker, EndOfRow());
    if (last == instance.size.messages) self->send(worker, Finish());
  }
  state.next = last;
  state.rows += actors;
}
caf::behavior forker(caf::stateful_actor<ForkerState>* self, const CafInstance& instance) {
  ForkerState& state = self->state;
  for (uint32_t i = 0; i < instance.size.actors; ++i) state.workers.push_back(self->spawn(worker));
  send_row(self, instance);
  send_row(self, instance);
  return {[=](bool) {  // a worker has ended a row
            ForkerState& state = self->state;
            if (--state.rows % instance.size.actors == 0) send_row(self, instance);
          },
          [=](uint64_t value) {
            ForkerState& state = self->state;
            state.sum += value;
            if (++state.joined != instance.size.actors) return;
            instance.report(self, state.sum);
            self->quit();
          }};
}

}  // namespace

void start_fork_join(const CafInstance& instance) { instance.system.spawn(forker, instance); }

}  // namespace gyre::bench::savina
