// counting on CAF: see ../counting.hpp.
#include "savina/caf/instance.hpp"

namespace gyre::bench::savina {

namespace {

// CAF's mailboxes have no bound: a producer that runs ahead would fill the memory. It has two rows of
// increments under way, and learns of each row's end by the count, which is the answer to the last row as
// well. So one message in 500 is not an increment.
constexpr uint32_t row = 1000;

using Increment = uint32_t;
using Retrieve = caf::unit_t;

struct CounterState {
  uint64_t count = 0;
};
caf::behavior counter(caf::stateful_actor<CounterState>* self) {
  return {[=](Increment) { ++self->state.count; }, [=](Retrieve) { return self->state.count; }};
}

struct ProducerState {
  uint32_t left = 0, rows = 0;  // increments to send, rows that were not answered yet
};
void send_row(caf::stateful_actor<ProducerState>* self, const caf::actor& to) {
  ProducerState& state = self->state;
  if (state.left == 0) return;
  const uint32_t now = std::min(row, state.left);
  for (uint32_t n = 0; n < now; ++n) self->send(to, Increment(1));
  self->send(to, Retrieve());
  state.left -= now;
  ++state.rows;
}
caf::behavior producer(caf::stateful_actor<ProducerState>* self, const CafInstance& instance,
                       const caf::actor& to) {
  self->state.left = instance.size.messages;
  send_row(self, to);
  send_row(self, to);
  return {[=](uint64_t count) {
    --self->state.rows;
    send_row(self, to);
    if (self->state.rows != 0) return;
    instance.report(self, count);
    end_all(self, std::vector{to});
  }};
}

}  // namespace

void start_counting(const CafInstance& instance) {
  instance.system.spawn(producer, instance, instance.system.spawn(counter));
}

}  // namespace gyre::bench::savina
