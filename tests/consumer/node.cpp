// A node of the till's actors: joins them to a NATS server that is not there, and says so.
#include <gyre/gyre.hpp>
#include <gyre/runtime/nats/gateway.hpp>
#include <gyre/runtime/nats/headers.hpp>
#include <gyre/runtime/nats/subject.hpp>
#include <till_sources.hpp>

#include <till/actors/till.hpp>
#include <till/schemas/order.official.hpp>

#include <cstdio>
#include <string>

int main() {
  gyre::Runtime runtime =
      gyre::Runtime::launch(gyre::ActorSet::of<till::Till>(till::sources), {.engine = gyre::EngineKind::cpu});
  const std::string name = gyre::nats::name_in_subject("till::Till");
  std::printf("%s with key 1000003 is in shard %u\n", name.c_str(),
              gyre::nats::shard_of("my_Counter", 1000003, 64));
  gyre::nats::GatewayOptions options;
  options.connection.servers = {"nats://127.0.0.1:1"};
  options.node = "node1";
  try {
    gyre::nats::Gateway gateway(runtime, options);
  } catch (const gyre::Error& error) {
    std::printf("%s\n", error.what());
  }
  return runtime.terminate().books.balanced() ? 0 : 1;
}
