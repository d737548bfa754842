#include "baselines/caf.hpp"

#include <fmt/format.h>
#include <caf/all.hpp>
#include <gyre/bridge/errors/error.hpp>

#include "affinity.hpp"
#include "vector_message.hpp"

namespace gyre::bench {

namespace {

using Vector = std::vector<float>;

caf::behavior adder(caf::event_based_actor*) {
  return {[](const Vector& a, const Vector& b) {
    Vector sum(a.size());
    for (size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
    return sum;
  }};
}

}  // namespace

Row measure_caf(const Plan& plan, bool aggressive) {
  Row row{.name = aggressive ? "caf-aggressive" : "caf",
          .transport = "heap",
          .size = 2 * VectorMessage::usual_size * uint32_t(sizeof(float)),
          .wait = aggressive ? "spin" : "polite"};
  row.work = Work::vector_add;
  row.remark =
      fmt::format("n = {}; CAF {}.{}.{}, {}", VectorMessage::usual_size, CAF_MAJOR_VERSION, CAF_MINOR_VERSION,
                  CAF_PATCH_VERSION, aggressive ? "its workers steal without sleeping" : "its own settings");
  caf::actor_system_config config;
  if (aggressive) {
    constexpr const char* group = CAF_VERSION < 1800 ? "work-stealing" : "caf.work-stealing";
    config.set(fmt::format("{}.aggressive-poll-attempts", group), UINT32_MAX);
  }
  caf::actor_system system(config);
  const caf::actor actor = system.spawn(adder);
  caf::scoped_actor self(system);
  VectorMessage message(row.name, VectorMessage::usual_size);
  const Pinned here(pthread_self(), plan.own_cpu);
  row.record(measure(
      plan, [&] { message.next(); },
      [&] {
        Vector a(message.size()), b(message.size());
        for (uint32_t i = 0; i < message.size(); ++i) {
          a[i] = message.a(i);
          b[i] = message.b(i);
        }
        self->request(actor, plan.options.timeout, std::move(a), std::move(b))
            .receive(
                [&](const Vector& sum) {
                  message.expect_size(sum.size());
                  for (uint32_t i = 0; i < sum.size(); ++i) message.expect(i, sum[i]);
                },
                [&](caf::error& error) {
                  throw Error(message.name() + ": CAF answered with an error: " + caf::to_string(error));
                });
      }));
  self->send_exit(actor, caf::exit_reason::user_shutdown);
  return row;
}

}  // namespace gyre::bench
