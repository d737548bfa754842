// concurrent-dictionary on CAF: see ../dictionary.hpp.
#include <bench/savina/dictionary.hpp>

#include "savina/caf/instance.hpp"

namespace gyre::bench::savina {

namespace {

using namespace gyre_savina::dictionary;

struct ClientState {
  uint32_t next = 0, answers = 0;  // the next request; requests of the row that were not answered yet
  uint32_t valid = 0;
};
void send_row(caf::stateful_actor<ClientState>* self, const CafInstance& instance, uint64_t key,
              const caf::actor& to) {
  ClientState& state = self->state;
  for (; state.answers < instance.size.under_way && state.next < instance.size.messages; ++state.next) {
    const Operation planned = operation(key, state.next);
    self->send(to, planned.key, planned.value);
    ++state.answers;
  }
}
caf::behavior client(caf::stateful_actor<ClientState>* self, const CafInstance& instance, uint64_t key,
                     const caf::actor& to) {
  send_row(self, instance, key, to);
  return {[=](uint32_t entry, uint32_t value) {
    ClientState& state = self->state;
    if (is_possible(instance.number, entry, value)) ++state.valid;
    if (--state.answers != 0) return;
    if (state.next < instance.size.messages) return send_row(self, instance, key, to);
    self->send(to, state.valid);
    self->quit();
  }};
}

struct DictionaryState {
  std::vector<uint32_t> values = std::vector<uint32_t>(entries);
  uint64_t written = 0;
  uint32_t valid = 0, left = 0;
};
caf::behavior dictionary_actor(caf::stateful_actor<DictionaryState>* self, const CafInstance& instance) {
  for (uint32_t i = 0; i < clients; ++i)
    self->spawn(client, instance, instance.number * clients + i, caf::actor(self));
  return {[=](uint32_t key, uint32_t value) {  // a request
            uint32_t& entry = self->state.values[key];
            if (value != 0) {
              entry = value;
              self->state.written += gyre_savina::mix(value);
            }
            return std::make_tuple(key, entry);
          },
          [=](uint32_t valid) {  // a client leaves
            DictionaryState& state = self->state;
            state.valid += valid;
            if (++state.left != clients) return;
            instance.report(self, state.written + state.valid);
            self->quit();
          }};
}

}  // namespace

void start_dictionary(const CafInstance& instance) { instance.system.spawn(dictionary_actor, instance); }

}  // namespace gyre::bench::savina
