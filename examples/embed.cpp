#include <gyre/gyre.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <cstdio>

using gyre::messages::VectorAddRequest;

int main() {
  // Workers on the GPU where there is one, else on CPU threads. Throws gyre::Error with what to do.
  gyre::Runtime runtime = gyre::Runtime::launch(gyre::builtin_actors());
  gyre::Client client = runtime.client();  // any thread may use it, or a copy

  // fill builds the request in place; the future brings the reply, or the reason why there is none.
  gyre::Address<gyre::actors::VectorAdd> adder{.key = 1};
  auto future = client.ask<VectorAddRequest>(adder, [](VectorAddRequest::Builder request) {
    request.setOperation(gyre::messages::Operation::MULTIPLY);
    request.setA({1, 2, 3});
    request.setB({10, 20, 30});
  });
  auto reply = future.get();
  if (!reply) {
    std::fprintf(stderr, "%s\n", reply.error().message().c_str());
    return 1;
  }
  for (const float x : reply.value()->getResult()) std::printf("%g ", x);
  std::printf("from %s\n", runtime.device_name().c_str());
  return runtime.terminate().books.balanced() ? 0 : 1;  // 10 40 90
}
