// fib on CAF: see ../fib.hpp.
#include "savina/caf/instance.hpp"

namespace gyre::bench::savina {

namespace {

struct NodeState {
  uint64_t sum = 0;
  uint32_t computed = 0;
};
// @param parent  whom to tell; none: the root, which reports
caf::behavior node(caf::stateful_actor<NodeState>* self, const CafInstance& instance, uint32_t n,
                   const caf::actor& parent) {
  const auto end = [=](uint64_t value) {
    if (parent) {
      self->send(parent, value);
    } else {
      instance.report(self, value);
    }
    self->quit();
  };
  if (n <= 2) {
    end(1);
    return {};
  }
  for (const uint32_t smaller : {n - 1, n - 2}) self->spawn(node, instance, smaller, caf::actor(self));
  return {[=](uint64_t value) {
    self->state.sum += value;
    if (++self->state.computed == 2) end(self->state.sum);
  }};
}

}  // namespace

void start_fib(const CafInstance& instance) {
  instance.system.spawn(node, instance, instance.size.messages, caf::actor());
}

}  // namespace gyre::bench::savina
