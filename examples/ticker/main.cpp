// Instruments publish their prices to subscribers, who come and go. The program compares what became of each
// subscription, and what each subscriber saw, with a plain computation.
#include <gyre/gyre.hpp>
#include <ticker_actors_sources.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <ticker/ticker.hpp>
#include <ticker/ticker.official.hpp>

using namespace ticker;

namespace {

constexpr uint64_t subscribers = 40;
constexpr uint32_t rounds = 20, changes_each = 30, prices_each = 10;

// The same without actors.
class PlainTicker {
 public:
  struct Sight {
    uint64_t prices = 0, checksum = 0;
    uint32_t last = 0;
  };

  Outcome follow(uint64_t subscriber, uint64_t instrument) {
    if (follows(subscriber, instrument)) return Outcome::ALREADY_SUBSCRIBED;
    lists_[instrument].push_back(subscriber);
    return Outcome::DONE;
  }
  Outcome unfollow(uint64_t subscriber, uint64_t instrument) {
    return std::erase(lists_[instrument], subscriber) == 0 ? Outcome::NOT_SUBSCRIBED : Outcome::DONE;
  }
  bool follows(uint64_t subscriber, uint64_t instrument) const {
    const auto& list = lists_[instrument];
    return std::find(list.begin(), list.end(), subscriber) != list.end();
  }
  void publish(uint64_t instrument, uint32_t cents) {
    for (const uint64_t subscriber : lists_[instrument]) {
      Sight& sight = seen_[subscriber][instrument];
      ++sight.prices;
      sight.checksum = checksum_with(sight.checksum, cents);
      sight.last = cents;
    }
  }
  const Sight& seen(uint64_t subscriber, uint64_t instrument) const { return seen_[subscriber][instrument]; }

 private:
  std::vector<uint64_t> lists_[instruments];
  Sight seen_[subscribers][instruments];
};

Outcome follow(gyre::Client client, uint64_t subscriber, uint64_t instrument, bool ends = false) {
  const auto fill = [&](Follow::Builder follow) {
    follow.setInstrument(instrument);
    follow.setEnds(ends);
  };
  return client.ask<Follow>(gyre::Address<Subscriber>{subscriber}, fill).get().value()->getOutcome();
}
Outcome unfollow(gyre::Client client, uint64_t subscriber, uint64_t instrument) {
  return follow(client, subscriber, instrument, true);
}

// Tells each instrument some prices, and returns once it has published them.
void publish(gyre::Client client, PlainTicker& plain, std::mt19937_64& random) {
  std::vector<gyre::Future<gyre::Receipt>> receipts;
  for (uint32_t n = 0; n < prices_each; ++n) {
    for (uint64_t instrument = 0; instrument < instruments; ++instrument) {
      const auto cents = uint32_t(1000 + random() % 100);
      receipts.push_back(client.tell_with_receipt<Price>(gyre::Address<Instrument>{instrument},
                                                         [&](Price::Builder p) { p.setCents(cents); }));
      plain.publish(instrument, cents);
    }
  }
  for (auto& receipt : receipts) receipt.get().value();
}

bool is_right(gyre::Client client, const PlainTicker& plain, uint64_t subscriber, uint64_t instrument) {
  const auto fill = [&](SeenRequest::Builder request) { request.setInstrument(instrument); };
  const auto reply = client.ask<SeenRequest>(gyre::Address<Subscriber>{subscriber}, fill).get();
  const Seen::Reader seen = *reply.value();
  const PlainTicker::Sight& expected = plain.seen(subscriber, instrument);
  return seen.getPrices() == expected.prices && seen.getLast() == expected.last &&
         seen.getChecksum() == expected.checksum && seen.getGaps() == 0;
}

}  // namespace

int main(int argc, char** argv) try {
  gyre::Options options;
  if (argc > 1 && std::string(argv[1]) == "cpu") options.engine = gyre::EngineKind::cpu;
  options.workers = 4;
  gyre::Runtime runtime =
      gyre::Runtime::launch(gyre::ActorSet::of<Subscriber, Instrument>(ticker_actors::sources), options);
  gyre::Client client = runtime.client();

  PlainTicker plain;
  std::mt19937_64 random(8);
  uint64_t outcomes[3] = {}, wrong_outcomes = 0;
  const auto count = [&](Outcome outcome, Outcome expected) {
    ++outcomes[size_t(outcome) % 3];
    if (outcome != expected) ++wrong_outcomes;
  };
  for (uint32_t round = 0; round < rounds; ++round) {
    for (uint32_t n = 0; n < changes_each; ++n) {
      const uint64_t subscriber = random() % subscribers, instrument = random() % instruments;
      if (random() % 4 != 0) {
        count(follow(client, subscriber, instrument), plain.follow(subscriber, instrument));
      } else {
        count(unfollow(client, subscriber, instrument), plain.unfollow(subscriber, instrument));
      }
    }
    publish(client, plain, random);
  }
  // Once these are answered, every price has arrived.
  for (uint64_t subscriber = 0; subscriber < subscribers; ++subscriber) {
    for (uint64_t instrument = 0; instrument < instruments; ++instrument) {
      if (plain.follows(subscriber, instrument))
        count(unfollow(client, subscriber, instrument), plain.unfollow(subscriber, instrument));
    }
  }
  std::printf("%lu done, %lu alreadySubscribed, %lu notSubscribed; %lu wrong\n", outcomes[0], outcomes[1],
              outcomes[2], wrong_outcomes);

  uint64_t prices = 0, wrong = 0;
  for (uint64_t subscriber = 0; subscriber < subscribers; ++subscriber) {
    for (uint64_t instrument = 0; instrument < instruments; ++instrument) {
      prices += plain.seen(subscriber, instrument).prices;
      if (!is_right(client, plain, subscriber, instrument)) ++wrong;
    }
  }
  std::printf("%lu subscribers saw %lu prices of %lu instruments, %lu wrong\n", subscribers, prices,
              instruments, wrong);

  runtime.drain(std::chrono::seconds(10)).value();
  const gyre::Books books = runtime.terminate().books;
  std::printf("between actors: %lu messages, %lu handled\n", books.mail.sent, books.mail.processed);
  return wrong_outcomes == 0 && wrong == 0 && books.balanced() ? 0 : 1;
} catch (const gyre::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
