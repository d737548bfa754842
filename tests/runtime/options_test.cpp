#include <gyre/bridge/region.hpp>
#include <gyre/runtime/options.hpp>

#include <string>

#include "support/catch.hpp"

using gyre::Options;

TEST_CASE("the default options are valid") { CHECK(Options{}.problems().empty()); }

TEST_CASE("everything that is wrong is said at once, each with its number") {
  Options options;
  options.workers = 0;
  options.block = 1;
  options.slots = 100;
  options.slot_bytes = 65;
  options.timeout = std::chrono::milliseconds(0);
  options.device = -3;
  const std::string problems = options.problems();
  for (const char* const said : {"--workers 0", "--block 1:", "multiple of 32", "--slots 100",
                                 "--slot-bytes 65", "--timeout 0", "--device -3"}) {
    INFO(problems);
    CHECK(problems.find(said) != std::string::npos);
  }
}

TEST_CASE("values that no enumeration has are refused by the option's name, with the numbers that are good") {
  using namespace gyre;
  CHECK(Options{.engine = EngineKind(7)}.problems() == "  --engine 7: must be auto, cuda or cpu (0 to 2)\n");
  CHECK(Options{.engine = EngineKind(-1)}.problems() ==
        "  --engine -1: must be auto, cuda or cpu (0 to 2)\n");
  CHECK(Options{.transport = TransportKind(5)}.problems() ==
        "  --transport 5: must be auto, bar, pinned, heap or unified (0 to 4)\n");
  CHECK(Options{.wait = WaitPolicy(2)}.problems() == "  --wait 2: must be polite or spin (0 or 1)\n");
  CHECK(name(WaitPolicy(2)) == "?");
  for (const EngineKind engine : {EngineKind::automatic, EngineKind::cuda, EngineKind::cpu}) {
    CHECK(Options{.engine = engine}.problems().empty());
  }
  for (const TransportKind transport : {TransportKind::automatic, TransportKind::unified}) {
    CHECK(Options{.transport = transport}.problems().empty());
  }
  CHECK(Options{.wait = WaitPolicy::spin}.problems().empty());
}

TEST_CASE("limits are inclusive on both ends") {
  for (const auto& [low, high] : {std::pair(2u, 65536u)}) {
    CHECK(Options{.slots = low}.problems().empty());
    CHECK(Options{.slots = high, .slot_bytes = 64}.problems().empty());
    CHECK_FALSE(Options{.slots = low / 2}.problems().empty());
    CHECK_FALSE(Options{.slots = high * 2, .slot_bytes = 64}.problems().empty());
  }
  CHECK(Options{.slot_bytes = 64}.problems().empty());
  CHECK(Options{.slot_bytes = 16384}.problems().empty());
  CHECK_FALSE(Options{.slot_bytes = 16448}.problems().empty());
  CHECK(Options{.block = 1024}.problems().empty());
  CHECK_FALSE(Options{.block = 1056}.problems().empty());
  CHECK_FALSE(Options{.block = 2048}.problems().empty());
  for (const uint32_t bytes : {128u, 16u << 20}) {
    CHECK(Options{.body_bytes = bytes}.problems().empty());
    CHECK(Options{.body_bytes = bytes, .body_pool_bytes = bytes}.mail_chunks().bodies == 1);
    CHECK(Options{.body_bytes = bytes, .body_pool_bytes = 3 * uint64_t(bytes) - 1}.mail_chunks().bodies == 2);
    CHECK_FALSE(Options{.body_bytes = bytes, .body_pool_bytes = bytes - 1}.problems().empty());
    CHECK(Options{.body_bytes = bytes, .body_pool_bytes = 0}.problems().empty());
  }
  for (const uint32_t bytes : {0u, 64u, 200u, (16u << 20) + 128}) {
    CHECK_FALSE(Options{.body_bytes = bytes}.problems().empty());
  }
  CHECK(Options{.body_pool_bytes = uint64_t(1) << 40}.problems().empty());
  CHECK_FALSE(Options{.body_pool_bytes = (uint64_t(1) << 40) + 128}.problems().empty());
}

TEST_CASE("a region over its budget is refused with both sizes") {
  Options options{.workers = 2, .slots = 4096, .slot_bytes = 1024};
  CHECK(options.problems().empty());
  options.region_budget = 1 << 20;
  const std::string problems = options.problems();
  INFO(problems);
  CHECK(problems.find("1048576") != std::string::npos);
  CHECK(problems.find(std::to_string(options.region_layout(0).region_bytes())) != std::string::npos);
}

TEST_CASE("a region in unified memory is small, and the CPU has none") {
  using gyre::TransportKind;
  Options options{.transport = TransportKind::unified};
  CHECK(options.problems().empty());
  CHECK(gyre::name(options.transport) == "unified");
  options.arena_bytes = gyre::unified_region_bytes;
  const std::string problems = options.problems();
  INFO(problems);
  CHECK(problems.find("--transport unified") != std::string::npos);
  CHECK(problems.find("may have 268435456") != std::string::npos);
  options.transport = TransportKind::pinned;
  CHECK(options.problems().empty());
}
