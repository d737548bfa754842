// Grid-scoped actor sets without a GPU: they compile.
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <gyre_ledger_actors_sources.hpp>

#include "support/actors/ledger.hpp"
#include "support/catch.hpp"
#include "support/compiled_kernels.hpp"
#include "support/counters.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;

namespace {

void check_grid_compiles_for(int architecture) {
  const cuda::CompiledKernel kernel = cuda::compile(builtin_actors().grid_scoped(), architecture, 256);
  INFO(kernel.log);
  CHECK(kernel.log.empty());
  CHECK(kernel.cubin.find("grid_arrivals") != std::string::npos);
}

}  // namespace

TEST_CASE("a grid-scoped actor set compiles, with a barrier of the grid and no shared memory for slots") {
  if (gyre_test::without_nvrtc()) return;
  check_grid_compiles_for(90);
  CHECK(cuda::compile(gyre_counters::counter_actors().grid_scoped(), 90, 128).log.empty());
  const auto ledgers = ActorSet::of<gyre_ledgers::Careful, gyre_ledgers::Undone, gyre_ledgers::Picker>(
      gyre_ledger_actors::sources);
  CHECK(cuda::compile(ledgers.grid_scoped(), 90, 128).log.empty());
  CHECK(gyre_test::built_in_kernel().cubin.find("grid_arrivals") == std::string::npos);
}

TEST_CASE("a grid-scoped actor set compiles for the oldest and the newest architecture", "[.slow]") {
  if (gyre_test::without_nvrtc()) return;
  check_grid_compiles_for(75);
  check_grid_compiles_for(120);
}
