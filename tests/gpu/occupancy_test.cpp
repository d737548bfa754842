// The occupancy that gyre inspect works out, against what the driver says.
#include <fmt/format.h>
#include <gyre/bridge/cuda/device_lease.hpp>
#include <gyre/device/builtin/echo.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/loaded_kernel.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <gyre_builtin_actors_sources.hpp>

#include "inspection.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"
#include "temporary_folder.hpp"

using namespace gyre;
using namespace gyre::tools;

TEST_CASE("the occupancy that is worked out is the driver's, over blocks, registers and shared memory",
          "[gpu]") {
  const auto device = find_device_facts(0);
  REQUIRE(device);
  if (find_multiprocessor(device->architecture) == nullptr) {
    return gyre_test::skip(fmt::format("sm_{} is not in the table of multiprocessors", device->architecture));
  }
  // Half as long to compile as all built-in actors.
  const ActorSet echo = ActorSet::of<actors::Echo>(gyre_builtin_actors::sources);
  for (const uint32_t block : {32u, 64u, 96u, 128u, 256u, 512u, 1024u}) {
    const TemporaryFolder folder;
    compile_into(echo, device->architecture, block, folder.path());
    const Inspection it = read_inspection(folder.path());
    for (const uint32_t dynamic : {0u, 1024u, 5000u, 20000u, 60000u}) {
      const auto driver = ask_driver(it, folder.path(), 0, dynamic);
      REQUIRE(driver);
      INFO(fmt::format("{} threads, {} registers, {} + {} bytes of shared memory, sm_{}: {}", block,
                       it.registers(), it.static_shared_bytes(), dynamic, it.architecture, driver->problem));
      REQUIRE(driver->problem == "");
      CHECK(occupancy(it.architecture, {block, it.registers(), it.static_shared_bytes(), dynamic}).blocks ==
            driver->blocks);
      CHECK(driver->multiprocessors == device->multiprocessors);
    }
  }
}

TEST_CASE("a cubin's registers, stack and shared memory are the driver's", "[gpu]") {
  const auto device = find_device_facts(0);
  REQUIRE(device);
  const TemporaryFolder folder;
  compile_into(builtin_actors(), device->architecture, 128, folder.path());
  const Inspection it = read_inspection(folder.path());
  const cuda::Driver driver = cuda::Driver::load();
  const cuda::DeviceLimits limits = cuda::read_limits(driver, 0);
  cuda::DeviceLease lease(0);
  const cuda::Context context(driver, 0, lease, cuda::ContextKind::own);
  const cuda::CompiledKernel compiled = cuda::compile(builtin_actors(), device->architecture, 128);
  cuda::LaunchRequest request;
  request.block = 128;
  const cuda::KernelLimits kernel = cuda::LoadedKernel(context, compiled).limits(request, limits);
  CHECK(it.registers() == kernel.registers);
  CHECK(it.static_shared_bytes() == kernel.static_shared_bytes);
  CHECK(it.cubin.frame_bytes <= kernel.local_bytes);
}
