// The benchmarks of gyre-bench savina give what plain loops give, and their kernels compile. No GPU is
// needed.
#include <bench/savina/dictionary.hpp>
#include <bench/savina/fib.hpp>

#include "savina/benchmark.hpp"
#include "support/catch.hpp"

#if defined(GYRE_WITH_CUDA)
#include <gyre/runtime/cuda/program.hpp>

#include "support/without_nvrtc.hpp"
#endif
#if defined(GYRE_BENCH_CAF)
#include "savina/caf/caf.hpp"
#endif

namespace {

using namespace gyre;
using namespace gyre::bench::savina;
using gyre_test::containing;

Options on_cpu(uint32_t workers) {
  Options options;
  options.engine = EngineKind::cpu;
  options.workers = workers;
  options.slot_bytes = 64;
  options.timeout = std::chrono::minutes(1);
  return options;
}

const Benchmark& find(std::string_view name) {
  for (const Benchmark& benchmark : benchmarks()) {
    if (benchmark.name == name) return benchmark;
  }
  throw Error("no such benchmark");
}

// A size of one percent; of benchmarks with rows, with so many requests under way.
Size small_size(const Benchmark& benchmark, uint32_t under_way = 1) {
  Size size = benchmark.scaled(benchmark.full, 1);
  if (benchmark.has_window) size.under_way = under_way;
  return size;
}

void check_on_engine(const Benchmark& benchmark, const Size& size, uint32_t instances,
                     const Options& options) {
  INFO(benchmark.name << ", " << instances << " instances, " << options.workers << " workers, "
                      << size.under_way << " under way");
  const Outcome outcome = run_on_engine(benchmark, size, instances, options);
  CHECK(outcome.refused == "");
  CHECK(outcome.values == expected_values(benchmark, size, instances));
  CHECK(outcome.seconds > 0);
}

TEST_CASE("each benchmark of Savina gives on the CPU engine what a plain loop gives") {
  REQUIRE(benchmarks().size() == 8);
  for (const Benchmark& benchmark : benchmarks()) {
    check_on_engine(benchmark, small_size(benchmark), 1, on_cpu(1));
    check_on_engine(benchmark, small_size(benchmark), 5, on_cpu(3));
  }
}

TEST_CASE(
    "rows of several requests under way give the same results, and so does a last row that is shorter") {
  for (const char* name : {"big", "concurrent-dictionary"}) {
    for (const uint32_t under_way : {2u, 31u}) {
      check_on_engine(find(name), small_size(find(name), under_way), 3, on_cpu(2));
    }
  }
}

TEST_CASE("results of instances differ where the benchmark computes something of its own in each") {
  for (const char* name : {"ping-pong", "fork-join-throughput", "fork-join-create", "big",
                           "concurrent-dictionary", "bank-transaction"}) {
    INFO(name);
    const std::vector<uint64_t> values = expected_values(find(name), small_size(find(name)), 2);
    CHECK(values[0] != values[1]);
  }
}

TEST_CASE("a wrong result is an error that names the benchmark, the engine, the instance and both numbers") {
  const Benchmark& fib = find("fib");
  CHECK_NOTHROW(check_values(fib, "cpu", {55, 55}, {55, 55}));
  CHECK_THROWS_WITH(check_values(fib, "cpu", {55, 55}, {55, 56}),
                    containing("fib") && containing("cpu gave 56 for instance 1, not 55"));
  CHECK_THROWS_WITH(check_values(fib, "cpu", {55, 55}, {55}), containing("1 results, not 2"));
}

TEST_CASE(
    "a bank with more transfers than its workers have room for is refused, and says how many it takes") {
  const Benchmark& bank = find("bank-transaction");
  const Outcome outcome = run_on_engine(bank, small_size(bank), 1000, on_cpu(2));
  CHECK(outcome.values.empty());
  CHECK_THAT(outcome.refused, containing("give it 8 workers"));
}

TEST_CASE("a launch that is refused is an outcome, and no error") {
  Options options = on_cpu(1);
  options.region_budget = 4096;
  const Outcome outcome = run_on_engine(find("counting"), small_size(find("counting")), 1, options);
  CHECK(outcome.values.empty());
  CHECK_THAT(outcome.refused, containing("4096"));
}

TEST_CASE("a percentage of fib is the largest number with so many nodes") {
  const Benchmark& fib = find("fib");
  CHECK(fib.full.messages == 25);
  CHECK(fib.scaled(fib.full, 100).messages == 25);
  CHECK(fib.scaled(fib.full, 10).messages == 20);
  CHECK(gyre_savina::fib::nodes_of(20) <= gyre_savina::fib::nodes_of(25) / 10);
  CHECK(gyre_savina::fib::nodes_of(21) > gyre_savina::fib::nodes_of(25) / 10);
  CHECK(gyre_savina::fib::nodes_of(25) == 150'049);
}

TEST_CASE("an answer of a dictionary is possible only if it was written to that entry, or nothing was yet") {
  using namespace gyre_savina::dictionary;
  uint32_t step = 0;
  while (operation(3, step).value == 0) ++step;
  const Operation written = operation(3, step);
  CHECK(is_possible(0, written.key, written.value));
  CHECK(is_possible(0, written.key, 0));
  CHECK_FALSE(is_possible(0, written.key + 1, written.value));
  CHECK_FALSE(is_possible(0, written.key, written.value + 1));
}

#if defined(GYRE_BENCH_CAF)
TEST_CASE("each benchmark of Savina gives on CAF what a plain loop gives") {
  for (const Benchmark& benchmark : benchmarks()) {
    for (const char* policy : {"stealing", "sharing"}) {
      const Size size = small_size(benchmark, policy == std::string("sharing") ? 7 : 1);
      INFO(benchmark.name << ", work " << policy);
      const Outcome outcome = run_on_caf(benchmark, size, 3, {policy, 2}, std::chrono::minutes(1));
      CHECK(outcome.refused == "");
      CHECK(outcome.values == expected_values(benchmark, size, 3));
    }
  }
}
#endif

#if defined(GYRE_WITH_CUDA)
// A test each, for each compiles for many seconds.
void check_kernel(const char* name) {
  if (gyre_test::without_nvrtc()) return;
  const cuda::CompiledKernel kernel = cuda::compile(find(name).actors(), 90, 32);
  CHECK(kernel.log == "");
  CHECK(!kernel.cubin.empty());
}

TEST_CASE("Savina's ping-pong compiles for a GPU", "[.kernel]") { check_kernel("ping-pong"); }
TEST_CASE("Savina's counting compiles for a GPU", "[.kernel]") { check_kernel("counting"); }
TEST_CASE("Savina's fork-join-throughput compiles for a GPU", "[.kernel]") {
  check_kernel("fork-join-throughput");
}
TEST_CASE("Savina's fork-join-create compiles for a GPU", "[.kernel]") { check_kernel("fork-join-create"); }
TEST_CASE("Savina's fib compiles for a GPU", "[.kernel]") { check_kernel("fib"); }
TEST_CASE("Savina's big compiles for a GPU", "[.kernel]") { check_kernel("big"); }
TEST_CASE("Savina's concurrent-dictionary compiles for a GPU", "[.kernel]") {
  check_kernel("concurrent-dictionary");
}
TEST_CASE("Savina's bank-transaction compiles for a GPU", "[.kernel]") { check_kernel("bank-transaction"); }
#endif

}  // namespace
