#include "ping_stream.hpp"

#include <fmt/format.h>
#include <bench/actors/ping.hpp>
#include <bench/actors/ping.official.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <gyre_bench_actors_sources.hpp>
#include <span>

#include "common_options.hpp"
#include "gaps.hpp"

namespace gyre::bench {

namespace {

using gyre_bench::Counter;
using gyre_bench::Ping;

using Answer = Future<Reply<gyre_bench::PingResponse>>;

// Waits for the answer of the ping with that value and checks it.
uint64_t take(Answer& answer, uint64_t value) {
  const auto reply = answer.get();
  if (!reply) {
    throw Error(fmt::format("asking ping {}: {}", value, reply.error().message()), reply.error().status);
  }
  const uint64_t got = reply.value()->getValue();
  if (got != gyre_bench::ping_answer(value)) {
    throw Error(
        fmt::format("asking ping {}: the answer is 0x{:x}, not 0x{:x}: no figure of this run counts; "
                    "please report it",
                    value, got, gyre_bench::ping_answer(value)));
  }
  return got;
}

}  // namespace

ActorSet ping_actors() { return ActorSet::of<Ping, Counter>(gyre_bench_actors::sources); }

std::vector<PingShare> share_pings(uint64_t messages, uint32_t threads, uint32_t workers, uint32_t slots,
                                   uint32_t window) {
  std::vector<PingShare> shares(threads);
  for (uint32_t t = 0; t < threads; ++t) {
    PingShare& share = shares[t];
    for (uint32_t worker = t % workers; worker < workers; worker += threads) share.keys.push_back(worker);
    const uint32_t threads_a_worker = (threads + workers - 1) / workers;
    const uint32_t usual = std::min(64u, std::max(1u, (slots - 1) / threads_a_worker));
    share.window = window != 0 ? window : std::min(uint32_t(usual * share.keys.size()), 8192u);
    share.messages = messages / threads + (t < messages % threads);
    share.first_value = uint64_t(t) << 48;
  }
  return shares;
}

uint64_t ask_pings(Client& client, const PingShare& share) {
  const uint64_t batch = std::clamp<uint64_t>(share.window / 2, 1, share.batch);
  std::vector<Answer> in_flight(share.window);
  uint64_t sum = 0;
  for (uint64_t sent = 0, taken = 0; taken < share.messages;) {
    const uint64_t place = sent % share.window;
    const uint64_t next = std::min({batch, share.messages - sent, share.window - place});
    if (next == 0 || sent - taken + next > share.window) {
      sum += take(in_flight[taken % share.window], share.first_value + taken);
      ++taken;
    } else if (tools::interrupt_requested()) {
      return sum;  // futures that nobody reads abandon their calls, whose replies are counted all the same
    } else {
      client.ask_many<gyre_bench::PingRequest>([&](size_t i) { return Address<Ping>{share.key(sent + i)}; },
                                               std::span(in_flight).subspan(place, next),
                                               [&](size_t i, gyre_bench::PingRequest::Builder request) {
                                                 request.setValue(share.first_value + sent + i);
                                               });
      sent += next;  // what was refused says so when it is taken
    }
  }
  return sum;
}

OfferedLoad offer_pings(Client& client, const PingShare& share, double per_s) {
  using Clock = std::chrono::steady_clock;
  struct Sent {
    Answer answer;
    uint64_t value;
    Clock::time_point meant;
  };
  std::vector<std::deque<Sent>> in_flight(share.keys.size());  // answers of one worker come in order
  OfferedLoad load;
  Xorshift random;
  const auto gap = [&] {
    const double uniform =
        double((random.next() >> 11) + 1) / double(uint64_t(1) << 53);  // above 0, at most 1
    return std::chrono::nanoseconds(int64_t(-std::log(uniform) / per_s * 1e9));
  };
  const auto begin = Clock::now();
  auto next = begin + gap();
  size_t looked_at = 0;
  for (uint64_t sent = 0, taken = 0; taken < share.messages;) {
    const auto now = Clock::now();
    if (sent < share.messages && now >= next) {
      const uint64_t value = share.first_value + sent;
      const size_t which = sent / PingShare::burst % share.keys.size();
      const auto fill = [value](gyre_bench::PingRequest::Builder request) { request.setValue(value); };
      auto asked = client.try_ask<gyre_bench::PingRequest>(Address<Ping>{share.keys[which]}, fill);
      if (asked) {
        load.sent_late += now - next > std::chrono::microseconds(1);
        in_flight[which].push_back({std::move(asked.value()), value, next});
        ++sent;
        next += gap();
        continue;
      }
      const Status why = asked.error().status;
      if (why != Status::ring_full && why != Status::call_table_full)
        throw Error(fmt::format("asking ping {}: {}", value, asked.error().message()), why);
    }
    std::deque<Sent>& oldest = in_flight[++looked_at % in_flight.size()];
    while (!oldest.empty() && oldest.front().answer.ready()) {
      take(oldest.front().answer, oldest.front().value);
      load.latency_ns.add(uint64_t((Clock::now() - oldest.front().meant) / std::chrono::nanoseconds(1)));
      oldest.pop_front();
      ++taken;
    }
    if (tools::interrupt_requested()) break;
  }
  load.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return load;
}

uint64_t tell_counts(Client& client, const PingShare& share) {
  uint64_t sum = 0;
  for (uint64_t sent = 0; sent < share.messages && !tools::interrupt_requested();) {
    const uint64_t next = std::min<uint64_t>(share.messages - sent, 256);
    const auto told = client.tell_many<gyre_bench::Count>(
        [&](size_t i) { return Address<Counter>{share.key(sent + i)}; }, next,
        [&](size_t i, gyre_bench::Count::Builder count) {
          count.setValue(share.first_value + sent + i);
          sum += share.first_value + sent + i;
        });
    if (!told) {
      throw Error(fmt::format("telling {}: {}", sent + told.sent, told.refused.message()),
                  told.refused.status);
    }
    sent += next;
  }
  return sum;
}

CountedInAll counted(Client& client, const std::vector<uint64_t>& keys) {
  const auto ask = [&](uint64_t key, bool sum) {
    const auto fill = [sum](gyre_bench::CountedRequest::Builder request) { request.setSum(sum); };
    const auto reply = client.ask<gyre_bench::CountedRequest>(Address<Counter>{key}, fill).get();
    if (!reply) {
      throw Error(fmt::format("asking counter {}: {}", key, reply.error().message()), reply.error().status);
    }
    return reply.value()->getValue();
  };
  CountedInAll all;
  for (const uint64_t key : keys) {
    all.messages += ask(key, false);
    all.sum += ask(key, true);
  }
  return all;
}

}  // namespace gyre::bench
