// A node inside a program of your own. Argument: a server's URL. It leaves at the end of standard input.
#include <gyre/gyre.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/nats/gateway.hpp>

#include <cstdio>

int main(int arguments, char** argument) {
  gyre::Runtime runtime = gyre::Runtime::launch(gyre::builtin_actors());
  gyre::nats::GatewayOptions options;
  options.connection.servers = {arguments > 1 ? argument[1] : "nats://alpha:4222"};
  options.namespace_name = "demo";
  options.node = "embedded";
  gyre::nats::Gateway gateway(runtime, options);  // serves from here on, on threads of its own

  while (std::getchar() != EOF) continue;  // the program's own work

  const bool left = gateway.leave();  // hands the shards over to other nodes, within 30 s
  return left && gateway.books().balanced() ? 0 : 1;
}
