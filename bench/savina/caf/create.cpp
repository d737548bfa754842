// fork-join-create on CAF: see ../create.hpp.
#include "savina/caf/instance.hpp"

namespace gyre::bench::savina {

namespace {

using Work = uint32_t;  // its seed

caf::behavior task(caf::event_based_actor* self) {
  return {[=](Work seed) {
    self->quit();
    return gyre_savina::work(0, seed);
  }};
}

struct ForkerState {
  uint32_t created = 0, joined = 0;
  uint64_t sum = 0;
};
void create(caf::stateful_actor<ForkerState>* self, const CafInstance& instance, uint32_t count) {
  for (; count != 0 && self->state.created < instance.size.messages; --count) {
    self->send(self->spawn(task),
               Work(uint32_t(instance.number * instance.size.messages + self->state.created)));
    ++self->state.created;
  }
}
caf::behavior forker(caf::stateful_actor<ForkerState>* self, const CafInstance& instance) {
  constexpr uint32_t under_way = 248;  // as on Gyre
  create(self, instance, under_way);
  return {[=](uint64_t value) {
    ForkerState& state = self->state;
    state.sum += value;
    create(self, instance, 1);
    if (++state.joined != instance.size.messages) return;
    instance.report(self, state.sum);
    self->quit();
  }};
}

}  // namespace

void start_create(const CafInstance& instance) { instance.system.spawn(forker, instance); }

}  // namespace gyre::bench::savina
