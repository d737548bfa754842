// Outcomes by callback, coroutine and poll loop, and an ask that is cancelled. docs/how-to/asynchronous.md
// explains them.
#include <gyre/gyre.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <poll.h>

#include <coroutine>
#include <cstdio>
#include <future>
#include <stop_token>
#include <string_view>

using gyre::messages::VectorAddRequest;
using gyre::messages::VectorAddResponse;
using Sum = gyre::Result<gyre::Reply<VectorAddResponse>>;

namespace {

const gyre::Address<gyre::actors::VectorAdd> adder{.key = 1};

auto add(float a, float b) {
  return [a, b](VectorAddRequest::Builder request) {
    request.setA({a});
    request.setB({b});
  };
}

// Runs on the poller's thread: it must not block, and says when it is done by way of the promise.
void by_callback(gyre::Client client) {
  std::promise<float> promise;
  client.ask<VectorAddRequest>(adder, add(1, 2)).then([&promise](Sum sum) {
    promise.set_value(sum ? sum.value()->getResult()[0] : 0);
  });
  std::printf("callback: 1 + 2 = %g\n", promise.get_future().get());
}

// Any coroutine type will do; this one starts at once, and nobody waits for it.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }  // counted: Runtime::callback_failures()
  };
};

// Each ask when the reply of the last one is there; no thread waits meanwhile.
Detached sum_up(gyre::Client client, std::promise<float>& total) {
  float sum = 0;
  for (int i = 1; i <= 4; ++i) {
    const Sum next = co_await client.ask<VectorAddRequest>(adder, add(sum, float(i)));
    if (!next) break;
    sum = next.value()->getResult()[0];
  }
  total.set_value(sum);
}

void by_coroutine(gyre::Client client) {
  std::promise<float> total;
  sum_up(client, total);
  std::printf("coroutine: 1 + 2 + 3 + 4 = %g\n", total.get_future().get());
}

void by_poll_loop(gyre::Client client) {
  gyre::CompletionQueue queue;
  for (uint64_t i = 0; i < 3; ++i) {
    queue.watch(client.ask<VectorAddRequest>(adder, add(float(i), 10)), i);
  }
  for (int left = 3; left > 0;) {
    pollfd descriptor{queue.fd(), POLLIN, 0};  // among those of other things
    poll(&descriptor, 1, -1);
    while (auto completion = queue.take()) {
      const Sum sum = std::move(completion->outcome).as<VectorAddResponse>().get();
      std::printf("poll loop: %llu + 10 = %g\n", static_cast<unsigned long long>(completion->tag),
                  sum ? sum.value()->getResult()[0] : 0);
      --left;
    }
  }
}

void given_up(gyre::Client client) {
  std::stop_source source;
  auto future = client.ask<VectorAddRequest>(adder, add(1, 2));
  const auto cancels = future.cancel_on(source.get_token());
  source.request_stop();
  const Sum sum = future.get();
  if (!sum) std::printf("%s\n", sum.error().message().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  gyre::Options options;
  if (argc > 1 && argv[1] == std::string_view("cpu")) options.engine = gyre::EngineKind::cpu;
  gyre::Runtime runtime = gyre::Runtime::launch(gyre::builtin_actors(), options);
  given_up(runtime.client());
  by_callback(runtime.client());
  by_coroutine(runtime.client());
  by_poll_loop(runtime.client());
  const gyre::Books books = runtime.terminate().books;
  std::printf("asks: %llu accepted, %llu answered, %llu cancelled\n",
              static_cast<unsigned long long>(books.asks.accepted),
              static_cast<unsigned long long>(books.asks.answered),
              static_cast<unsigned long long>(books.asks.cancelled));
  return books.balanced() ? 0 : 1;
}
