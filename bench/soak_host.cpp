#include "soak_host.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "common_options.hpp"
#include "soak_echo.hpp"

namespace gyre::bench {

namespace {

constexpr uint32_t burst = 8;  // messages to one worker before the next one's turn

// Other numbers for each sender, worker and message.
uint64_t seed_of(uint32_t producer, uint32_t worker, uint64_t number) {
  uint64_t x = number + (uint64_t(producer) << 56) + (uint64_t(worker) << 40);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
uint32_t body_word(uint64_t seed, uint32_t index) {
  return uint32_t((seed + index * 0x9e3779b97f4a7c15u) >> 29);
}

constexpr uint32_t envelope_words = sizeof(Envelope) / sizeof(uint32_t);

}  // namespace

SoakHost::SoakHost(const std::vector<Bridge>& bridges, const SoakPlan& plan,
                   const std::vector<BarBridge>& bar)
    : plan_(plan), sent_checksums_(plan.threads), sent_packets_(plan.threads) {
  for (size_t worker = 0; worker < bridges.size(); ++worker) {
    bridges_.emplace_back(bridges[worker], bar.empty() ? BarBridge{} : bar[worker]);
    received_.emplace_back();
    received_.back().next.resize(plan.threads);
  }
}

uint32_t SoakHost::packets_of(uint64_t seed) const {
  return plan_.least_packets + uint32_t((seed >> 33) % (plan_.most_packets - plan_.least_packets + 1));
}

SoakFigures SoakHost::run(const std::function<void()>& look) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  std::atomic<uint32_t> running{plan_.threads};
  for (uint32_t producer = 0; producer < plan_.threads; ++producer) {
    threads.emplace_back([&, producer] {
      produce(producer);
      --running;
    });
  }
  {
    const std::lock_guard lock(mutex_);
    for (std::thread& thread : threads) producers_.push_back(thread.native_handle());
  }
  uint64_t seen = 0;
  auto last_progress = begin;
  std::exception_ptr thrown;
  try {
    while (running != 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      look();
      const uint64_t now = received();
      if (now != seen) last_progress = Clock::now();
      seen = now;
      if (Clock::now() - last_progress > plan_.timeout) {
        fail(fmt::format(
            "soaking: nothing came back for {} ms, after {} of {} messages: lost, or the workers are "
            "stuck",
            plan_.timeout.count(), seen, plan_.messages));
      }
    }
  } catch (...) {
    thrown = std::current_exception();
    failed_ = true;
  }
  {
    const std::lock_guard lock(mutex_);
    producers_.clear();
  }
  for (std::thread& thread : threads) thread.join();
  if (thrown) std::rethrow_exception(thrown);
  if (!failure_.empty()) throw Error(failure_);

  SoakFigures figures;
  figures.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  uint64_t sent_checksum = 0;
  for (uint32_t producer = 0; producer < plan_.threads; ++producer) {
    sent_checksum += sent_checksums_[producer];
    figures.packets += sent_packets_[producer];
  }
  figures.messages = received();
  for (const Received& received : received_) figures.checksum += received.checksum;
  if (!tools::interrupt_requested() &&
      (figures.messages != plan_.messages || figures.checksum != sent_checksum)) {
    throw Error(
        fmt::format("soaking: {} messages came back of {}, with a checksum of 0x{:x}, not 0x{:x}; please "
                    "report it",
                    figures.messages, plan_.messages, figures.checksum, sent_checksum));
  }
  return figures;
}

uint64_t SoakHost::received() const {
  uint64_t messages = 0;
  for (const Received& received : received_) messages += received.messages.load(std::memory_order_relaxed);
  return messages;
}

std::vector<pthread_t> SoakHost::producers() const {
  const std::lock_guard lock(mutex_);
  return producers_;
}

void SoakHost::produce(uint32_t producer) {
  const uint64_t share = plan_.messages / plan_.threads + (producer < plan_.messages % plan_.threads);
  const auto workers = uint32_t(bridges_.size());
  std::vector<uint64_t> numbers(workers);
  uint32_t payload[most_soak_words] = {};
  uint64_t checksum = 0, packets = 0;
  for (uint64_t sent = 0, turn = producer; sent < share && !over() && !tools::interrupt_requested(); ++turn) {
    const auto worker = uint32_t(turn % workers);
    HostBridge& bridge = bridges_[worker];
    for (uint32_t i = 0; i < burst && sent < share; ++i) {
      // Built before the ticket is claimed: nothing stands between claim and publish but what interrupts.
      const uint64_t seed = seed_of(producer, worker, numbers[worker]);
      const uint32_t needed = packets_of(seed);
      Envelope envelope{};
      envelope.correlation = numbers[worker];
      envelope.key = producer;
      envelope.body_bytes = needed * data_bytes_a_packet - uint32_t(sizeof(Envelope));
      std::memcpy(payload, &envelope, sizeof envelope);
      uint64_t sum = 0;
      for (uint32_t w = envelope_words; w < needed * words_a_packet; ++w)
        sum += payload[w] = body_word(seed, w);
      if (bridge.try_prepay_replies(1) == 0) break;
      uint64_t ticket;
      if (bridge.try_claim(ticket) != ClaimOutcome::claimed) {
        bridge.cancel_prepaid(1);
        break;
      }
      bridge.publish(ticket, {payload, envelope.body_bytes});
      ++numbers[worker];
      ++sent;
      checksum += sum;
      packets += needed;
    }
    drain(worker);
  }
  sent_checksums_[producer] = checksum;
  sent_packets_[producer] = packets;
  // All that is to come: whoever is last takes the last.
  while (!over() && !tools::interrupt_requested() && received() != plan_.messages) {
    for (uint32_t worker = 0; worker < workers; ++worker) drain(worker);
  }
}

void SoakHost::drain(uint32_t worker) {
  bridges_[worker].drain([&](const ArrivedReply* reply) {
    bridges_[worker].count_reply_taken();
    if (reply == nullptr) return check(worker, nullptr);
    alignas(16) uint32_t payload[most_soak_words + group_bytes / sizeof(uint32_t)];
    reply->unpack(reinterpret_cast<std::byte*>(payload));
    check(worker, payload);
  });
}

void SoakHost::check(uint32_t worker, const uint32_t* payload) noexcept {
  if (payload == nullptr) return fail(fmt::format("soaking: a corrupt slot came from worker {}", worker));
  Received& received = received_[worker];
  Envelope envelope;
  std::memcpy(&envelope, payload, sizeof envelope);
  if (envelope.key >= received.next.size() || envelope.correlation != received.next[envelope.key]) {
    return fail(
        fmt::format("soaking: worker {} sent back message {} of producer {}; {} was to come: lost, doubled, "
                    "torn or out of order",
                    worker, envelope.correlation, envelope.key,
                    envelope.key < received.next.size() ? fmt::format("{}", received.next[envelope.key])
                                                        : "no such producer, and another"));
  }
  ++received.next[envelope.key];
  const uint64_t seed = seed_of(uint32_t(envelope.key), worker, envelope.correlation);
  const uint32_t needed = packets_of(seed);
  Envelope expected{};
  expected.correlation = envelope.correlation;
  expected.key = envelope.key;
  expected.body_bytes = needed * data_bytes_a_packet - uint32_t(sizeof(Envelope));
  bool right = std::memcmp(&envelope, &expected, sizeof envelope) == 0;
  for (uint32_t w = envelope_words; right && w < needed * words_a_packet; ++w) {
    right = payload[w] == body_word(seed, w);
    received.checksum += payload[w];
  }
  if (!right) {
    return fail(
        fmt::format("soaking: message {} of producer {} came back from worker {} with other content: torn",
                    envelope.correlation, envelope.key, worker));
  }
  received.messages.fetch_add(1, std::memory_order_relaxed);
}

void SoakHost::fail(std::string text) noexcept {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = std::move(text);
  failed_ = true;
}

}  // namespace gyre::bench
