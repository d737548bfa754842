// Grid-scoped actor sets without a GPU: they compile.
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <gyre_handlers_actors_sources.hpp>
#include <gyre_ledger_actors_sources.hpp>

#include "support/actors/handlers.hpp"
#include "support/actors/ledger.hpp"
#include "support/catch.hpp"
#include "support/compiled_kernels.hpp"
#include "support/counters.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;

namespace {

void check_grid_compiles(const ActorSet& actors, int architecture, uint32_t block) {
  const cuda::CompiledKernel kernel = cuda::compile(actors.grid_scoped(), architecture, block);
  INFO(kernel.log);
  CHECK(kernel.log.empty());
  CHECK(kernel.cubin.find("grid_arrivals") != std::string::npos);
}

}  // namespace

TEST_CASE("a grid-scoped actor set compiles, with a barrier of the grid and no shared memory for slots") {
  if (gyre_test::without_nvrtc()) return;
  check_grid_compiles(gyre_counters::counter_actors(), 90, 128);
  CHECK(gyre_test::built_in_kernel().cubin.find("grid_arrivals") == std::string::npos);
}

TEST_CASE("grid-scoped actors that are rolled back and that use scratch memory compile", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  check_grid_compiles(ActorSet::of<gyre_ledgers::Careful, gyre_ledgers::Undone, gyre_ledgers::Picker>(
                          gyre_ledger_actors::sources),
                      90, 128);
}

TEST_CASE("a grid-scoped actor that uses shared scratch memory compiles", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  check_grid_compiles(ActorSet::of<gyre_handlers::GridFiller>(gyre_handlers_actors::sources), 90, 128);
}

TEST_CASE("a grid-scoped actor set compiles for old and new architectures", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  for (const int architecture : {75, 90, 120}) check_grid_compiles(builtin_actors(), architecture, 256);
}
