// Four drivers tell increments to a thousand counters, as docs/tutorials/06-actors-that-talk.md explains it.
// The program compares each counter's value with a plain computation.
#include <farm_actors_sources.hpp>
#include <gyre/gyre.hpp>

#include <cstdio>
#include <string>
#include <vector>

#include <farm/farm.hpp>
#include <farm/farm.official.hpp>

using namespace farm;

namespace {

constexpr uint64_t drivers = 4, increments_each = 5000;

struct Tally {
  uint64_t increments = 0, value = 0;
};

// What each counter should have in the end.
std::vector<Tally> computed() {
  std::vector<Tally> tallies(counters);
  for (uint64_t driver = 0; driver < drivers; ++driver) {
    for (uint64_t number = 0; number < increments_each; ++number) {
      const Planned increment = planned(driver, number);
      ++tallies[increment.counter].increments;
      tallies[increment.counter].value += increment.by;
    }
  }
  return tallies;
}

// Asks a counter until it has had so many increments. Returns its value.
uint64_t await_increments(gyre::Client client, uint64_t counter, uint64_t increments) {
  const gyre::Address<Counter> address{.key = counter};
  for (;;) {
    const auto reply = client.ask<CountRequest>(address, [](CountRequest::Builder) {}).get();
    if (reply.value()->getIncrements() >= increments) return reply.value()->getValue();
  }
}

}  // namespace

int main(int argc, char** argv) try {
  gyre::Options options;
  if (argc > 1 && std::string(argv[1]) == "cpu") options.engine = gyre::EngineKind::cpu;
  options.workers = 4;
  gyre::Runtime runtime =
      gyre::Runtime::launch(gyre::ActorSet::of<Driver, Counter>(farm_actors::sources), options);
  gyre::Client client = runtime.client();

  for (uint64_t driver = 0; driver < drivers; ++driver) {
    const auto told = client.tell<Drive>(gyre::Address<Driver>{driver},
                                         [](Drive::Builder drive) { drive.setTo(increments_each); });
    if (!told) return 1;
  }
  const std::vector<Tally> expected = computed();
  uint64_t wrong = 0;
  for (uint64_t counter = 0; counter < counters; ++counter) {
    const uint64_t value = await_increments(client, counter, expected[counter].increments);
    if (value != expected[counter].value) ++wrong;
  }
  std::printf("%lu increments told to %lu counters, %lu wrong values\n", drivers * increments_each, counters,
              wrong);

  const gyre::Books books = runtime.terminate().books;
  std::printf("between actors: %lu messages, %lu handled\n", books.mail.sent, books.mail.processed);
  return wrong == 0 && books.balanced() ? 0 : 1;
} catch (const gyre::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
