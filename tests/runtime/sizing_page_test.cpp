// docs/how-to/sizing.md: its formulas against the layouts, its table against the formulas, and both against
// what a runtime says that it took.
#include <fmt/format.h>
#include <gyre/device/actor/table.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include "support/catch.hpp"
#include "support/counters.hpp"
#include "support/temporary_folder.hpp"

using namespace gyre;

namespace {

constexpr uint64_t mebibyte = uint64_t(1) << 20;

uint64_t rounded_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// As the page has it.
uint64_t region_bytes(const Options& options, uint64_t handlers) {
  const uint64_t slots = options.slots, ring = slots * options.slot_bytes;
  const uint64_t parts =
      options.workers * (3 * ring + 32 * slots + 384 * handlers + 5120) + 128 * (1 + (handlers + 7) / 8);
  return options.arena_bytes == 0 ? parts : rounded_up(parts, 4096) + options.arena_bytes;
}
uint64_t bar_bytes(const Options& options) {
  const uint64_t ring = uint64_t(options.slots) * options.slot_bytes;
  const bool pages = 4096 % options.slot_bytes == 0 && ring >= 8 * 1024 && ring <= 256 * 1024;
  return options.workers * ((pages ? 2 * ring : rounded_up(ring, 8 * 1024)) + 128);
}
uint64_t table_bytes(uint64_t state, uint64_t actors) { return actors * (rounded_up(state, 16) + 28); }

std::string mebibytes(uint64_t bytes) { return fmt::format("{:.2f}", double(bytes) / double(mebibyte)); }

Options launch(uint32_t workers, uint32_t slots, uint32_t slot_bytes, uint64_t arena_mebibytes) {
  return {.workers = workers,
          .slots = slots,
          .slot_bytes = slot_bytes,
          .arena_bytes = arena_mebibytes * mebibyte,
          .region_budget = ~uint64_t(0)};
}

const std::vector<Options>& rows() {
  static const std::vector<Options> rows = {launch(1, 256, 512, 64),    launch(16, 256, 512, 64),
                                            launch(64, 256, 512, 64),   launch(132, 256, 512, 64),
                                            launch(132, 1024, 512, 64), launch(132, 256, 1024, 64),
                                            launch(132, 64, 128, 0)};
  return rows;
}

}  // namespace

TEST_CASE("the page's formulas give what the layouts take") {
  for (uint32_t workers : {1u, 3u, 132u}) {
    for (uint32_t slots : {4u, 64u, 256u, 4096u, 65536u}) {
      for (uint32_t slot_bytes : {64u, 192u, 512u, 4096u, 16384u}) {
        for (uint64_t arena : {0u, 64u}) {
          const Options options = launch(workers, slots, slot_bytes, arena);
          INFO(workers << " workers, " << slots << " slots of " << slot_bytes << ", arena " << arena);
          for (const size_t handlers : {1u, 2u, 8u, 9u, 100u}) {
            CHECK(options.region_layout(handlers).region_bytes() == region_bytes(options, handlers));
          }
          CHECK(options.region_layout(0).inbound_bytes_elsewhere() == bar_bytes(options));
          CHECK(options.ring_shape().body_capacity() == slot_bytes * 3 / 4 - 32);
        }
      }
    }
  }
  for (const uint32_t actors : {1u, 1000u, 16384u}) {
    for (const uint32_t state : {16u, 64u, 4096u}) {
      const uint64_t table = ActorTableLayout{state, actors}.bytes();
      CHECK(table >= table_bytes(state, actors));
      CHECK(table <= table_bytes(state, actors) + 400);
    }
  }
}

TEST_CASE("the page's table has what its formulas give") {
  const uint64_t handlers = builtin_actors().handlers().size();
  std::string table;
  for (const Options& options : rows()) {
    const uint64_t actors = options.workers * ActorTableLayout{64, options.actors_per_worker}.bytes();
    table += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", options.workers, options.slots,
                         options.slot_bytes, options.arena_bytes / mebibyte,
                         mebibytes(region_bytes(options, handlers)),
                         rounded_up(bar_bytes(options), 2 * mebibyte) / mebibyte, mebibytes(actors));
  }
  const std::string page = gyre_test::read_file(GYRE_TEST_SIZING_PAGE);
  INFO("the page should have\n" << table);
  CHECK(page.find(table) != std::string::npos);
  const std::string planned = fmt::format("region of {} bytes", region_bytes(rows()[1], handlers));
  INFO(planned);
  CHECK(page.find(planned) != std::string::npos);
}

TEST_CASE("a runtime says that it took what the page's formulas give") {
  const ActorSet actors = gyre_counters::counter_actors();
  Options options = launch(2, 128, 512, 1);
  options.engine = EngineKind::cpu;
  options.actors_per_worker = 1000;
  options.max_buffers = 100;
  const Runtime runtime = Runtime::launch(actors, options);
  const MemoryStats memory = runtime.stats().memory;
  const uint64_t handlers = actors.handlers().size();
  CHECK(memory.region == region_bytes(options, handlers));
  // Counter has 64 bytes of state, Orderly 72, Guest 8 and at most 3 actors a worker.
  const uint64_t counts = 384 * (handlers + 1);
  const uint64_t least =
      options.workers * (table_bytes(64, 1000) + table_bytes(72, 1000) + table_bytes(8, 3) + counts);
  CHECK(memory.actors >= least);
  CHECK(memory.actors <= least + options.workers * 3 * 400);
  CHECK(memory.buffer_table == 24 * options.max_buffers);
}
