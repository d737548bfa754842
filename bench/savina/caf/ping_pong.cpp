// ping-pong on CAF: see ../ping_pong.hpp.
#include "savina/caf/instance.hpp"

namespace gyre::bench::savina {

namespace {

caf::behavior ponger(caf::event_based_actor*) {
  return {[](uint64_t ping) { return gyre_savina::mix(ping); }};
}

struct PingerState {
  uint32_t left = 0;
};
caf::behavior pinger(caf::stateful_actor<PingerState>* self, const CafInstance& instance,
                     const caf::actor& other) {
  self->state.left = instance.size.messages - 1;
  self->send(other, instance.number);
  return {[=](uint64_t pong) {
    if (self->state.left == 0) {
      instance.report(self, pong);
      return end_all(self, std::vector{other});
    }
    --self->state.left;
    self->send(other, pong + 1);
  }};
}

}  // namespace

void start_ping_pong(const CafInstance& instance) {
  instance.system.spawn(pinger, instance, instance.system.spawn(ponger));
}

}  // namespace gyre::bench::savina
