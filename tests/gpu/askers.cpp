// Threads that ask Echo and check every reply, in a library for Python: they go on while Python computes.
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <gyre/gyre.h>
#include <gyre/messages/echo.capnp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Askers {
  std::atomic<bool> ending{false};
  std::atomic<uint64_t> asked{0}, wrong{0}, failed{0};
  std::vector<std::vector<uint32_t>> times_ns;
  std::vector<std::thread> threads;
};

void ask(Askers& askers, gyre_runtime runtime, uint32_t thread) {
  constexpr uint32_t numbers = 6;
  gyre_send_options options;
  gyre_send_options_init(&options, sizeof options);
  options.encoding = GYRE_STREAM;
  std::vector<uint32_t>& times_ns = askers.times_ns[thread];
  times_ns.reserve(8 << 20);
  for (uint64_t n = uint64_t(thread) << 40; !askers.ending.load(std::memory_order_relaxed); ++n) {
    capnp::MallocMessageBuilder message;
    auto request = message.initRoot<gyre::messages::EchoRequest>();
    request.setSequence(n);
    auto payload = request.initPayload(numbers);
    for (uint32_t i = 0; i < numbers; ++i) payload.set(i, n * 31 + i);
    const auto bytes = capnp::messageToFlatArray(message);
    const auto began = Clock::now();
    gyre_call call = 0;
    const gyre_status sent =
        gyre_ask_and_wait(runtime, "gyre::actors::Echo", thread, capnp::typeId<gyre::messages::EchoRequest>(),
                          bytes.begin(), bytes.asBytes().size(), &options, &call);
    askers.asked.fetch_add(1, std::memory_order_relaxed);
    if (sent != GYRE_OK) {
      askers.failed.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    if (times_ns.size() < times_ns.capacity())
      times_ns.push_back(uint32_t(std::min<int64_t>((Clock::now() - began).count(), UINT32_MAX)));
    const void* body = nullptr;
    size_t size = 0;
    bool right = gyre_call_reply(call, &body, &size) == GYRE_OK;
    if (right) {
      const kj::ArrayPtr<const capnp::word> segment(static_cast<const capnp::word*>(body), size / 8);
      capnp::SegmentArrayMessageReader reader(kj::arrayPtr(&segment, 1));
      const auto reply = reader.getRoot<gyre::messages::EchoResponse>();
      right = reply.getSequence() == n && reply.getPayload().size() == numbers;
      for (uint32_t i = 0; right && i < numbers; ++i) right = reply.getPayload()[i] == n * 31 + i;
    }
    if (!right) askers.wrong.fetch_add(1, std::memory_order_relaxed);
    gyre_call_release(call);
  }
}

}  // namespace

extern "C" {

struct askers_report {
  uint64_t asked, wrong, failed;
  double p50_us, p99_us, p999_us, max_us;
};

void* askers_start(gyre_runtime runtime, uint32_t threads) {
  auto* const askers = new Askers;
  askers->times_ns.resize(threads);
  for (uint32_t thread = 0; thread < threads; ++thread)
    askers->threads.emplace_back([askers, runtime, thread] { ask(*askers, runtime, thread); });
  return askers;
}

uint64_t askers_asked(void* handle) { return static_cast<Askers*>(handle)->asked; }

void askers_stop(void* handle, askers_report* report) {
  const std::unique_ptr<Askers> askers(static_cast<Askers*>(handle));
  askers->ending = true;
  for (std::thread& thread : askers->threads) thread.join();
  std::vector<uint32_t> all;
  for (const auto& times : askers->times_ns) all.insert(all.end(), times.begin(), times.end());
  std::sort(all.begin(), all.end());
  const auto us = [&all](double part) {
    return all.empty() ? 0.0 : all[std::min(all.size() - 1, size_t(part * double(all.size())))] * 1e-3;
  };
  *report = {askers->asked, askers->wrong, askers->failed, us(0.5), us(0.99), us(0.999), us(1)};
}
}
