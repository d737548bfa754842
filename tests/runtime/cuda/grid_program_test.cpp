// Grid-scoped actor sets without a GPU: they compile.
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/program.hpp>

#include "support/catch.hpp"
#include "support/counters.hpp"

using namespace gyre;

TEST_CASE("a grid-scoped actor set compiles, with a barrier of the grid and no shared memory for slots") {
  if (!cuda::nvrtc_available()) {
    WARN("NVRTC is not installed: not compiled");
    return;
  }
  const cuda::CompiledKernel kernel = cuda::compile(builtin_actors().grid_scoped(), 90, 256);
  INFO(kernel.log);
  CHECK(kernel.log.empty());
  CHECK(kernel.cubin.find("grid_arrivals") != std::string::npos);
  CHECK(cuda::compile(gyre_counters::counter_actors().grid_scoped(), 90, 128).log.empty());
  CHECK(cuda::compile(gyre_counters::counter_actors(), 90, 32).cubin.find("grid_arrivals") ==
        std::string::npos);
}
