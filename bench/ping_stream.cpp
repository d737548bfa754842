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

// Whose turn it is: `burst` messages to each key, or all to one that is alone.
class Turns {
 public:
  explicit Turns(const std::vector<uint64_t>& keys) : keys_(keys), left_(turn()) {}
  size_t which() const { return which_; }
  uint64_t key() const { return keys_[which_]; }
  uint64_t left() const { return left_; }
  /// At most left().
  void advance(uint64_t messages) {
    left_ -= messages;
    if (left_ != 0) return;
    left_ = turn();
    if (++which_ == keys_.size()) which_ = 0;
  }

 private:
  static constexpr uint64_t burst = 16;
  uint64_t turn() const { return keys_.size() == 1 ? UINT64_MAX : burst; }

  const std::vector<uint64_t>& keys_;
  size_t which_ = 0;
  uint64_t left_;
};

}  // namespace

ActorSet ping_actors() { return ActorSet::of<Ping, Counter>(gyre_bench_actors::sources); }

uint32_t usual_window(uint32_t workers, uint32_t slots) {
  return std::min(workers == 1 ? 128u : 64u, slots - 1);
}

std::vector<PingShare> share_pings(uint64_t messages, uint32_t threads, uint32_t workers, uint32_t slots,
                                   uint32_t window) {
  std::vector<PingShare> shares(threads);
  for (uint32_t t = 0; t < threads; ++t) {
    PingShare& share = shares[t];
    for (uint32_t worker = t % workers; worker < workers; worker += threads) share.keys.push_back(worker);
    const uint32_t threads_a_worker = (threads + workers - 1) / workers;
    const uint32_t usual = std::max(1u, usual_window(workers, slots) / threads_a_worker);
    share.window = window != 0 ? window : std::min(uint32_t(usual * share.keys.size()), 8192u);
    share.messages = messages / threads + (t < messages % threads);
    share.first_value = uint64_t(t) << 48;
  }
  return shares;
}

uint64_t ask_pings(Client& client, const PingShare& share) {
  const uint64_t batch = std::clamp<uint64_t>(share.window / 2, 1, share.batch);
  std::vector<Answer> in_flight(share.window);  // a ring
  Turns turns(share.keys);
  uint64_t sum = 0, sent = 0, taken = 0;
  uint32_t put = 0, get = 0;
  while (taken < share.messages) {
    const uint64_t next =
        std::min({batch, share.messages - sent, uint64_t(share.window - put), turns.left()});
    if (next == 0 || sent - taken + next > share.window) {
      sum += take(in_flight[get], share.first_value + taken);
      ++taken;
      if (++get == share.window) get = 0;
    } else if (tools::interrupt_requested()) {
      return sum;  // unread futures abandon their calls; their replies are counted all the same
    } else {
      client.ask_many<gyre_bench::PingRequest>(Address<Ping>{turns.key()},
                                               std::span(in_flight).subspan(put, next),
                                               [&](size_t i, gyre_bench::PingRequest::Builder request) {
                                                 request.setValue(share.first_value + sent + i);
                                               });
      sent += next;  // what was refused says so when it is taken
      put += uint32_t(next);
      if (put == share.window) put = 0;
      turns.advance(next);
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
  Turns turns(share.keys);
  for (uint64_t sent = 0, taken = 0; taken < share.messages;) {
    const auto now = Clock::now();
    if (sent < share.messages && now >= next) {
      const uint64_t value = share.first_value + sent;
      const auto fill = [value](gyre_bench::PingRequest::Builder request) { request.setValue(value); };
      auto asked = client.try_ask<gyre_bench::PingRequest>(Address<Ping>{turns.key()}, fill);
      if (asked) {
        load.sent_late += now - next > std::chrono::microseconds(1);
        in_flight[turns.which()].push_back({std::move(asked.value()), value, next});
        turns.advance(1);
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
  Turns turns(share.keys);
  for (uint64_t sent = 0; sent < share.messages && !tools::interrupt_requested();) {
    const uint64_t next = std::min({share.messages - sent, uint64_t(256), turns.left()});
    const auto told = client.tell_many<gyre_bench::Count>(Address<Counter>{turns.key()}, next,
                                                          [&](size_t i, gyre_bench::Count::Builder count) {
                                                            count.setValue(share.first_value + sent + i);
                                                            sum += share.first_value + sent + i;
                                                          });
    if (!told) {
      throw Error(fmt::format("telling {}: {}", sent + told.sent, told.failure.message()),
                  told.failure.status);
    }
    sent += next;
    turns.advance(next);
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
