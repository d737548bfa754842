// What waits gives up at its deadline, with its name, though the workers do nothing at all.
#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;

TEST_CASE("with 1 ms, whatever waits for a worker that does nothing ends by name, and loses nothing") {
  Stepped s({.slots = 4, .timeout = 5s});
  auto buffer = Buffer<uint64_t>(s.core, MemoryKind::unified, 10);

  auto late = s.ask(Action::ANSWER, 1, 1ms);
  CHECK(late.get().error().status == Status::timed_out);
  CHECK(s.client->start(probe, 1ms).error().status == Status::timed_out);
  while (s.client->try_tell<ProbeNote>(probe, noting(1))) {
  }
  CHECK(s.ask(Action::ANSWER, 2, 1ms).get().error().status == Status::ring_full);
  CHECK(s.client->tell<ProbeNote>(probe, noting(1), TellOptions{1ms, {}}).error().status ==
        Status::ring_full);
  CHECK(buffer.view(1ms).error().status == Status::worker_stuck);
  CHECK(s.core->set_active(false, 1ms).error().status == Status::worker_stuck);
  CHECK(s.core->set_active(true, 1ms).error().status == Status::worker_stuck);
  CHECK(s.core->drain(1ms).error().status == Status::worker_stuck);

  s.work();
  CHECK(s.core->drain(1ms).error().status == Status::worker_stuck);  // its message had no room before
  s.work();
  CHECK(s.core->drain(60s));
  const Termination report = s.core->terminate(1ms);
  CHECK_FALSE(report.worker_stuck);
  CHECK(report.books.balanced());
  CHECK(report.books.asks.timed_out == 2);
  CHECK(report.books.tells.processed + report.books.tells.dead_letters == report.books.tells.accepted);
}
