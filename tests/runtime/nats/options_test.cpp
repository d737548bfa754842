#include <gyre/runtime/nats/counts.hpp>
#include <gyre/runtime/nats/gateway.hpp>

#include <set>
#include <string>
#include <string_view>

#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre::nats;
using namespace std::chrono_literals;

namespace {

/// Returns what BadOptions says of the options; empty: it is not thrown.
std::string refusal_of(const GatewayOptions& options) {
  static Runtime runtime = Runtime::launch(gyre_test::probe_actors(), {.engine = EngineKind::cpu});
  try {
    const Gateway gateway(runtime, options);
  } catch (const BadOptions& error) {
    return error.what();
  } catch (const Error&) {  // no server is there
  }
  return {};
}

GatewayOptions nowhere() {
  GatewayOptions options;
  options.connection.servers = {"nats://127.0.0.1:1"};
  options.node = "node1";
  return options;
}

}  // namespace

TEST_CASE(
    "everything that is wrong with a gateway's options is said at once, each in a line with its number") {
  GatewayOptions options;
  options.connection.servers = {};
  options.connection.certificate_file = "certificate.pem";
  options.namespace_name = "a.b";
  options.node = std::string(33, 'n').append("\n");
  options.shards = 1025;
  options.lease = 299ms;
  options.clock_error = -1ms;
  options.replicas = 6;
  options.durable_in_flight = 0;
  options.acknowledge_wait = 999ms;
  options.handover_timeout = 0ms;
  options.threads = 65;
  CHECK(refusal_of(options) ==
        "the namespace is \"a.b\"; give 1 to 32 letters, digits, _ and -\n"
        "the node's name is \"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn \"; give 1 to 32 letters, digits, _ and -\n"
        "no server is given; give the URL of one\n"
        "a certificate and its key go together; give both files or neither\n"
        "the number of shards is 1025; give 0 to 1024\n"
        "the lease in ms is 299; give 300 to 3600000\n"
        "the clock error in ms is -1; give 1 to 3600000\n"
        "the number of replicas is 6; give 1 to 5\n"
        "the number of durable tells in flight is 0; give 1 to 1000\n"
        "the wait for an acknowledgement in ms is 999; give 1000 to 86400000\n"
        "the timeout of a handover in ms is 0; give 1 to 3600000\n"
        "the number of threads is 65; give 1 to 64");
}

TEST_CASE("a gateway's limits are inclusive on both ends, and what is left to the namespace is 0") {
  const auto with = [](auto set) {
    GatewayOptions options = nowhere();
    set(options);
    return refusal_of(options);
  };
  CHECK(with([](auto& o) { o.shards = 1024, o.lease = 300ms, o.clock_error = 1ms, o.replicas = 1; }).empty());
  CHECK(with([](auto& o) {
          o.lease = 1h, o.clock_error = 1h, o.replicas = 5, o.durable_in_flight = 1000;
        }).empty());
  CHECK(with([](auto& o) { o.acknowledge_wait = 1s, o.handover_timeout = 1ms, o.threads = 1; }).empty());
  CHECK(with([](auto& o) {
          o.acknowledge_wait = 24h, o.handover_timeout = 1h, o.durable_in_flight = 1;
        }).empty());
  CHECK(with([](auto& o) { o.lease = -1ms; }) == "the lease in ms is -1; give 300 to 3600000");
  CHECK(with([](auto& o) { o.connection.key_file = "key.pem"; }) ==
        "a certificate and its key go together; give both files or neither");
}

TEST_CASE("a gateway whose server is not there says which servers it tried, without their passwords") {
  static Runtime runtime = Runtime::launch(gyre_test::probe_actors(), {.engine = EngineKind::cpu});
  GatewayOptions options = nowhere();
  options.connection.servers = {"nats://user:secret@127.0.0.1:1", "nats://127.0.0.1:2"};
  std::string said;
  try {
    const Gateway gateway(runtime, options);
  } catch (const Error& error) {
    said = error.what();
  }
  CHECK_THAT(said, gyre_test::containing("connecting to NATS (nats://127.0.0.1:1, nats://127.0.0.1:2)"));
  CHECK_THAT(said, gyre_test::containing("start nats-server there, or give another server"));
  CHECK(said.find("secret") == said.npos);
}

TEST_CASE("every count of a gateway has a field with its name, and balanced books are those without a rest") {
  std::set<std::string> names;
  GatewayBooks books;
  for (const CountField& field : count_fields()) {
    CHECK(names.insert(field.name).second);
    CHECK(std::string_view(field.help).ends_with("."));
    CHECK(books.*field.count == 0);
    books.*field.count = names.size();
  }
  CHECK(names.size() == sizeof(GatewayBooks) / sizeof(uint64_t));
  CHECK(books.asks_received == 1);
  CHECK(books.shards_handed == names.size());

  books = {};
  CHECK(books.balanced());
  books.asks_received = 21;
  books.asks_answered = 1, books.asks_error_replies = 2, books.asks_refused = 3;
  books.asks_expired = 4, books.asks_lost = 5;
  CHECK(books.asks_in_flight() == 6);
  CHECK_FALSE(books.balanced());
  books.asks_forwarded = 6;
  CHECK(books.balanced());
  books.tells_received = 6;
  books.tells_accepted = 1, books.tells_refused = 2;
  CHECK(books.tells_in_flight() == 3);
  books.tells_forwarded = 3;
  books.durable_received = 21;
  books.durable_processed = 1, books.durable_failed = 2, books.durable_refused = 3;
  books.durable_expired = 4, books.durable_delayed = 5;
  CHECK(books.durable_in_flight() == 6);
  CHECK_FALSE(books.balanced());
  books.durable_duplicates = 6;
  books.durable_redelivered = 7;
  CHECK(books.balanced());
  books.dropped = 1;
  CHECK_FALSE(books.balanced());
}

TEST_CASE("counts that several threads add to are read as one set of books") {
  gyre::nats::detail::Counts counts;
  counts.add(&GatewayBooks::asks_received);
  counts.add(&GatewayBooks::asks_answered, 3);
  counts.add(&GatewayBooks::shards_handed, 0);
  const GatewayBooks books = counts.books();
  CHECK(books.asks_received == 1);
  CHECK(books.asks_answered == 3);
  CHECK(books.shards_handed == 0);
}
