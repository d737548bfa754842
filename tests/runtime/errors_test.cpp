#include <gyre/runtime/errors.hpp>

#include <set>
#include <string>

#include "support/catch.hpp"

using namespace gyre;

namespace {
constexpr Status every_status[] = {Status::ok,
                                   Status::ring_full,
                                   Status::call_table_full,
                                   Status::too_large,
                                   Status::unknown_actor,
                                   Status::nested_fill,
                                   Status::draining,
                                   Status::terminated,
                                   Status::engine_failed,
                                   Status::timed_out,
                                   Status::malformed,
                                   Status::unknown_message,
                                   Status::reply_too_large,
                                   Status::handler_failed,
                                   Status::worker_stuck,
                                   Status::arena_full,
                                   Status::forked,
                                   Status::check_failed,
                                   Status::expired,
                                   Status::inactive,
                                   Status::no_such_actor,
                                   Status::actor_table_full,
                                   Status::bad_buffer,
                                   Status::cancelled,
                                   Status::scratch_full,
                                   Status::buffer_lost,
                                   Status::mailbox_full,
                                   Status::open_calls_full,
                                   Status::actor_stopped,
                                   Status::timers_full,
                                   Status::subscriptions_full,
                                   Status::body_pool_full};
}

TEST_CASE("each status has a name of its own, and its message begins with it") {
  std::set<std::string> names;
  for (const Status status : every_status) {
    const std::string text(name(status));
    CHECK(text != "unknown status");
    CHECK(names.insert(text).second);
    CHECK(Failure{status}.message().rfind(text + ": ", 0) == 0);
  }
}

TEST_CASE("messages carry the actual numbers") {
  CHECK(Failure{Status::too_large, 0, 840, 352}.message().find("840") != std::string::npos);
  CHECK(Failure{Status::too_large, 0, 840, 352}.message().find("352") != std::string::npos);
  CHECK(Failure{Status::handler_failed, 17}.message().find("17") != std::string::npos);
  CHECK(Failure{Status::timed_out, 0, 2500, 2500}.message().find("2500") != std::string::npos);
  CHECK(Failure{Status::call_table_full, 0, 0, 1024}.message().find("1024") != std::string::npos);
  CHECK(Failure{Status::mailbox_full, 12}.message().find("worker 12") != std::string::npos);
  CHECK(Failure{Status::open_calls_full, 256}.message().find("256") != std::string::npos);
  CHECK(Failure{Status::timers_full, 256}.message().find("256") != std::string::npos);
  CHECK(Failure{Status::subscriptions_full, 1024}.message().find("1024") != std::string::npos);
  CHECK(Failure{Status::body_pool_full, 12, 0x77}.message().find("worker 12") != std::string::npos);
  CHECK(Failure{Status::body_pool_full, 12, 0x77}.message().find("key 0x77") != std::string::npos);
  CHECK(Failure{Status::scratch_full, 64, 80, 64}.message().find("80 bytes of scratch") != std::string::npos);
}

TEST_CASE(
    "a malformed message's failure says which field of which struct, where, and what is wrong with it") {
  const std::string field = Failure{Status::malformed, 3, 0, 0, "Pair", "left", 1}.message();
  CHECK(field ==
        "malformed: reading a message: field left of Pair, at word 3 of the body, points out of the message; "
        "check who made it");
  const std::string root = Failure{Status::malformed, 0, 0, 0, "Pair", nullptr, 2}.message();
  CHECK(root.find("the root pointer of Pair") != std::string::npos);
  const std::string unnamed = Failure{Status::malformed, 9, 0, 0, nullptr, nullptr, 7}.message();
  CHECK(unnamed.find("a pointer, at word 9") != std::string::npos);
  std::set<std::string> texts;
  for (uint8_t reason = 0; reason <= 8; ++reason) {
    texts.insert(Failure{Status::malformed, 0, 0, 0, "Pair", "left", reason}.message());
  }
  CHECK(texts.size() == 9);
}

TEST_CASE("a result without a value throws its failure when asked for the value") {
  const Result<int> failed = Failure{Status::malformed, 3, 0, 0, "Pair", "left", 1};
  REQUIRE_FALSE(failed);
  try {
    (void)failed.value();
    FAIL("value() returned");
  } catch (const Error& error) {
    CHECK(error.status() == Status::malformed);
    CHECK(std::string(error.what()).find("word 3") != std::string::npos);
  }
  const Result<int> fine = 5;
  CHECK(fine.value() == 5);
  CHECK_THROWS_AS((void)fine.error(), Error);
}
