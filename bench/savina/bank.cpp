// bank-transaction: see bank.hpp.
#include <bench/savina/bank.hpp>
#include <bench/savina/bank.official.hpp>

#include "savina/describe.hpp"

namespace gyre::bench::savina {

namespace {

// A worker has room for 256 open asks. Each transfer under way is one, of the worker of the account that
// pays: any worker. So all transfers together are 256, or half of the workers' room.
std::string fit_bank(Size& size, uint64_t instances, const Options& options) {
  constexpr uint64_t room = 256;
  const uint64_t safe = std::max(room / instances, room / 2 * options.workers / instances);
  if (safe == 0) {
    return fmt::format(
        "{} instances have at least as many transfers under way, and {} workers have room for "
        "{}; give it {} workers",
        instances, options.workers, room / 2 * options.workers, (instances + room / 2 - 1) / (room / 2));
  }
  size.under_way = uint32_t(std::min<uint64_t>(size.under_way, safe));
  return {};
}

}  // namespace

Benchmark bank() {
  using namespace gyre_savina::bank;
  return {.name = "bank-transaction",
          .full = {.messages = 50'000, .actors = 1000, .under_way = 256},
          .scaled = fewer_messages,
          .text =
              [](const Size& size) {
                return fmt::format("{} accounts, {} transfers", size.actors, size.messages);
              },
          .messages = [](const Size& size) { return 4 * uint64_t(size.messages) + 2 * size.actors; },
          .expected =
              [](const Size& size, uint64_t instance) {
                std::vector<int32_t> cents(size.actors);
                for (uint32_t n = 0; n < size.messages; ++n) {
                  const Planned transfer = planned(instance, n, size.actors);
                  cents[transfer.from] -= int32_t(transfer.amount);
                  cents[transfer.to] += int32_t(transfer.amount);
                }
                uint64_t sum = 0;
                for (uint32_t account = 0; account < size.actors; ++account)
                  sum += weighed(account, cents[account]);
                return sum;
              },
          .actors = set_of<Teller, Account>,
          .actors_of_a_type = [](const Size& size) { return uint64_t(size.actors); },
          .fit = fit_bank,
          .start = [](Client& client, uint64_t instances,
                      const Size& size) { return start_each<Teller>(client, instances, size); }};
}

}  // namespace gyre::bench::savina
