// A region's pinned memory, on the fake driver.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gyre/bridge/cuda/pinned.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "support/actors/probe.hpp"
#include "support/catch.hpp"
#include "support/fake_driver.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

constexpr size_t mebibyte = size_t(1) << 20;

bool all_zero(const void* memory, size_t bytes) {
  const auto* const begin = static_cast<const char*>(memory);
  return std::all_of(begin, begin + bytes, [](char byte) { return byte == 0; });
}

}  // namespace

TEST_CASE("a region is zeroed, wherever its pages are from, and given back") {
  FakeDriver fake({probe_actors()});
  const cuda::Driver driver = cuda::Driver::load();
  const cuda::Context context(driver, 0);
  const auto before = fake.live();
  for (const bool refuses : {false, true}) {
    fake.device.refuses_registering = refuses;
    for (const size_t bytes : {size_t(4096), size_t(5000), 3 * mebibyte + 4096, 40 * mebibyte}) {
      cuda::PinnedRegion region(context, bytes, bytes);
      INFO(bytes << " bytes" << (refuses ? ", allocated by the driver" : ""));
      CHECK(fake.live().allocations == before.allocations + 1);
      CHECK(fake.live().bytes >= before.bytes + bytes);
      CHECK(all_zero(region.host_address(), bytes));
      CHECK(region.device_address() == reinterpret_cast<CUdeviceptr>(region.host_address()));
      std::memset(region.host_address(), 0x5a, bytes);
    }
    CHECK(fake.live() == before);
  }
  CHECK(fake.misuse().empty());
}

TEST_CASE("a region is made of the pages that were touched before, where there is room for it") {
  FakeDriver fake({probe_actors()});
  const cuda::Driver driver = cuda::Driver::load();
  const cuda::Context context(driver, 0);
  const auto before = fake.live();
  for (const size_t bytes : {size_t(4096), size_t(5000), 6 * mebibyte, 9 * mebibyte, 17 * mebibyte}) {
    cuda::OwnPages pages(6 * mebibyte, 16 * mebibyte);
    REQUIRE(pages.room() == 16 * mebibyte);
    char* const begin = static_cast<char*>(const_cast<void*>(pages.address()));
    cuda::PinnedRegion region(context, bytes, bytes, std::move(pages));
    INFO(bytes << " bytes");
    CHECK(fake.live().allocations == before.allocations + 1);
    CHECK((region.host_address() == begin) == (bytes <= 16 * mebibyte));
    CHECK(all_zero(region.host_address(), bytes));
    std::memset(region.host_address(), 0x5a, bytes);
    if (bytes >= 16 * mebibyte) continue;
    // What is behind it was given back.
    unsigned char there = 0;
    const size_t end = (bytes + 4095) / 4096 * 4096;
    CHECK((mincore(begin + end, 4096, &there) == -1 && errno == ENOMEM));
  }
  CHECK(fake.live() == before);
}

TEST_CASE("pages that there is no room for are none, and their region is the driver's") {
  CHECK(cuda::OwnPages().room() == 0);
  CHECK(cuda::OwnPages(4096, cuda::OwnPages::most_bytes + 1).room() == 0);
  char* begin = nullptr;
  {
    const cuda::OwnPages unused(mebibyte, 2 * mebibyte);
    begin = static_cast<char*>(const_cast<void*>(unused.address()));
    REQUIRE(begin != nullptr);
    CHECK(all_zero(begin, 2 * mebibyte));
  }
  unsigned char there = 0;
  CHECK((mincore(begin, 4096, &there) == -1 && errno == ENOMEM));
}

TEST_CASE("a region larger than its pages may be is the driver's, which says where there is no room") {
  FakeDriver fake({probe_actors()});
  const cuda::Driver driver = cuda::Driver::load();
  const cuda::Context context(driver, 0);
  fake.device.host_memory_bytes = cuda::OwnPages::most_bytes;
  for (const size_t bytes : {cuda::OwnPages::most_bytes + 4096, size_t(1) << 50}) {
    CHECK_THROWS_WITH(cuda::PinnedRegion(context, bytes, 4096),
                      containing("CUDA_ERROR_OUT_OF_MEMORY") && containing(std::to_string(bytes)));
  }
  fake.device.host_memory_bytes *= 2;
  const cuda::PinnedRegion region(context, cuda::OwnPages::most_bytes + 4096, 4096);
  CHECK(all_zero(region.host_address(), 4096));
}

TEST_CASE("a forked child has nothing of what is in a region, and the region stays where it is") {
  FakeDriver fake({probe_actors()});
  const cuda::Driver driver = cuda::Driver::load();
  const cuda::Context context(driver, 0);
  cuda::PinnedRegion region(context, mebibyte, mebibyte);
  auto* const bytes = static_cast<volatile char*>(region.host_address());
  std::memset(region.host_address(), 1, mebibyte);
  const pid_t child = fork();
  if (child == 0) _exit(bytes[0] == 0 && bytes[mebibyte - 1] == 0 ? 0 : 1);
  REQUIRE(child > 0);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(bytes[0] == 1);
}
