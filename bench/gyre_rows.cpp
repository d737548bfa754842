#include "gyre_rows.hpp"

#include <fmt/format.h>
#include <gyre/runtime/builtin_actors.hpp>

#include "affinity.hpp"
#include "echo_asks.hpp"
#include "gyre_run.hpp"
#include "vector_message.hpp"

namespace gyre::bench {

namespace {

using messages::EchoRequest;
using messages::VectorAddRequest;

void ask_vector_add(Client& client, const VectorMessage& message) {
  const auto fill = [&message](VectorAddRequest::Builder request) {
    auto a = request.initA(message.size());
    auto b = request.initB(message.size());
    for (uint32_t i = 0; i < message.size(); ++i) {
      a.set(i, message.a(i));
      b.set(i, message.b(i));
    }
  };
  const auto reply = client.ask<VectorAddRequest>(Address<actors::VectorAdd>{}, fill).get();
  if (!reply) throw Error(message.name() + ": " + reply.error().message(), reply.error().status);
  const auto sum = reply.value()->getResult();
  message.expect_size(sum.size());
  for (uint32_t i = 0; i < sum.size(); ++i) message.expect(i, sum[i]);
}

// Measures `ask(client)` after `prepare()`.
template <class Prepare, class Ask>
GyreRow measure_asks(const Plan& plan, Row row, Prepare&& prepare, Ask&& ask) {
  GyreRow result{std::move(row), {}};
  result.row.wait = name(plan.options.wait);
  result.row.workers = plan.options.workers;
  run_on_gyre(builtin_actors(), plan.options, result.row.name, [&](Runtime& runtime) {
    result.machine = describe_machine(runtime);
    result.row.transport = name(runtime.transport());
    Client client = runtime.client();
    const Pinned here(pthread_self(), plan.own_cpu);
    result.row.record(measure(plan, prepare, [&] { ask(client); }));
  });
  return result;
}

}  // namespace

GyreRow measure_gyre_echo(const Plan& plan, uint32_t size, bool checked) {
  Row row{.name = checked ? "gyre" : "gyre unchecked", .size = size, .checked = checked};
  EchoMessage message(fmt::format("{} at {} bytes", row.name, size),
                      1 + (size - echo_overhead_bytes) / sizeof(uint64_t));
  return measure_asks(
      plan, std::move(row), [&] { message.next(); },
      [&](Client& client) {
        const auto outcome = client.ask<EchoRequest>(Address<actors::Echo>{}, filling(message)).get();
        if (checked) {
          expect_echo(message, outcome);
        } else {
          expect_success(message, outcome);
        }
      });
}

GyreRow measure_gyre_vector_add(const Plan& plan) {
  VectorMessage message("gyre vector-add", VectorMessage::usual_size);
  Row row{.name = "gyre vector-add", .size = 2 * VectorMessage::usual_size * uint32_t(sizeof(float))};
  row.remark = fmt::format("n = {}; by the typed client API", VectorMessage::usual_size);
  row.work = Work::vector_add;
  return measure_asks(
      plan, std::move(row), [&] { message.next(); },
      [&](Client& client) { ask_vector_add(client, message); });
}

uint32_t slot_bytes_for(uint32_t size) {
  return (packets_for(size) * uint32_t(sizeof(Packet)) + 63) / 64 * 64;
}

}  // namespace gyre::bench
