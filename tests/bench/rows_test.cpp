// Rows of several rounds, and what each is compared with.
#include "bench/rows.hpp"

#include "bench/gyre_run.hpp"
#include "bench/vector_message.hpp"
#include "gyre/runtime/builtin_actors.hpp"
#include "support/catch.hpp"

namespace {

using namespace gyre::bench;

Row row(const std::string& name, uint32_t size, uint64_t ns, bool random_gaps = false) {
  Row row{.name = name, .size = size};
  row.random_gaps = random_gaps;
  row.record(std::vector<uint64_t>(10, ns));
  return row;
}

TEST_CASE("a row's figures are its median round's, and its histogram is all rounds'") {
  Rows rows("raw");
  for (const uint64_t ns : {30u, 10u, 20u}) rows.add(row("gyre", 64, ns));
  REQUIRE(rows.all().size() == 1);
  const Row& only = rows.all()[0];
  CHECK(only.summary.p50_ns == 20);
  CHECK(only.rounds.size() == 3);
  CHECK(only.histogram.text() == "10:10 20:10 30:10");
}

TEST_CASE("rounds on chosen CPUs say which they were, and how many were not as quick throughout") {
  Rows rows("raw");
  CHECK(rows.speed_of_cpus() == "no round was measured on a CPU that was chosen for it");
  const RoundCpu cpus[] = {{3, 4, 200, 190}, {5, 6, 210, 400}, {1, 2, 230, 238}};
  for (const RoundCpu& cpu : cpus) {
    Row round = row("gyre", 64, 10);
    round.cpus.push_back(cpu);
    rows.add(round);
  }
  const auto rounds = rows.to_json()[0]["rounds"];
  REQUIRE(rounds.elements().size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(rounds[i]["cpu"] == cpus[i].cpu);
    CHECK(rounds[i]["baseline_cpu"] == cpus[i].baseline_cpu);
    CHECK(rounds[i]["arithmetic_ns"][0] == cpus[i].arithmetic_before_ns);
    CHECK(rounds[i]["arithmetic_ns"][1] == cpus[i].arithmetic_after_ns);
  }
  CHECK(rows.speed_of_cpus() ==
        "CPUs: before and after the 3 rounds a piece of arithmetic took 190 to 400 ns; in 2 of them more "
        "than 1.25 times 190: most likely others worked on the same core then");
}

TEST_CASE("rows of other sizes, gaps and workers are rows of their own") {
  Rows rows("raw");
  rows.add(row("gyre", 64, 1));
  rows.add(row("gyre", 128, 1));
  rows.add(row("gyre", 64, 1, true));
  Row many = row("gyre", 64, 1);
  many.workers = 8;
  rows.add(many);
  CHECK(rows.all().size() == 4);
}

TEST_CASE("a row is compared with the reference of its gaps, and of its size if there is one") {
  Rows rows("raw");
  rows.add(row("raw", 64, 10));
  rows.add(row("raw", 128, 20));
  rows.add(row("raw", 64, 30, true));
  rows.add(row("gyre", 128, 40));
  rows.add(row("gyre", 64, 60, true));
  rows.add(row("floor", 8, 5));
  const auto json = rows.to_json();
  CHECK(json[3]["p50_ratio"] == 2.0);
  CHECK(json[4]["p50_ratio"] == 2.0);
  CHECK(json[5]["p50_ratio"] == 0.5);
  CHECK(json[1]["p50_to_gyre"] == 0.5);
}

TEST_CASE("a round that was interrupted adds no row, and no round is begun after it") {
  Rows rows("raw");
  Row empty{.name = "gyre"};
  empty.record({});
  rows.add(empty);
  CHECK(rows.all().empty());
  int calls = 0;
  CHECK(measure_interleaved(rows, 3,
                            {[&] { return ++calls, row("a", 1, 1); }, [&] { return row("b", 1, 2); }}));
  CHECK(calls == 3);
  CHECK(rows.all().size() == 2);
}

TEST_CASE("a wrong sum is named with its row, message and element") {
  VectorMessage message("some row", 25);
  message.next();
  message.expect(3, message.a(3) + message.b(3));
  try {
    message.expect(3, message.a(3) + message.b(3) + 1);
    FAIL("it passed");
  } catch (const gyre::Error& error) {
    CHECK(std::string(error.what()).find("some row, message 1: element 3 of 25") == 0);
  }
  CHECK_THROWS_AS(message.expect_size(24), gyre::Error);
  const float before = message.a(3) + message.b(3);
  message.next();
  CHECK_THROWS_AS(message.expect(3, before), gyre::Error);
}

TEST_CASE("a launch whose asks failed is no row") {
  gyre::Options options;
  options.engine = gyre::EngineKind::cpu;
  gyre::Termination fine = run_on_gyre(gyre::builtin_actors(), options, "a row", [](gyre::Runtime& runtime) {
    gyre::Client client = runtime.client();
    const auto fill = [](gyre::messages::EchoRequest::Builder request) { request.setSequence(7); };
    CHECK(client.ask<gyre::messages::EchoRequest>(gyre::Address<gyre::actors::Echo>{}, fill).get());
  });
  CHECK(fine.books.asks.answered == 1);
  const auto with_an_error = [&] {
    run_on_gyre(gyre::builtin_actors(), options, "a row", [](gyre::Runtime& runtime) {
      REQUIRE(runtime.deactivate());
      gyre::Client client = runtime.client();
      const auto fill = [](gyre::messages::EchoRequest::Builder request) { request.setSequence(7); };
      CHECK(!client.ask<gyre::messages::EchoRequest>(gyre::Address<gyre::actors::Echo>{}, fill).get());
    });
  };
  CHECK_THROWS_AS(with_an_error(), gyre::Error);
}

}  // namespace
