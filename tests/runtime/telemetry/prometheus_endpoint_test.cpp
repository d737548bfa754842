#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <gyre/runtime/telemetry/prometheus_endpoint.hpp>

#include <map>
#include <set>
#include <sstream>

#include "support/cancelled.hpp"
#include "support/catch.hpp"
#include "support/stepped.hpp"
#include "support/temporary_folder.hpp"
#include "support/thread_signals.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

// What a GET of /metrics on this machine's port answers, with its head.
std::string scrape(int port) {
  const int socket_file = socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(socket_file >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(socket_file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  const std::string request = "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
  REQUIRE(write(socket_file, request.data(), request.size()) == ssize_t(request.size()));
  std::string answer;
  char part[4096];
  for (ssize_t count; (count = read(socket_file, part, sizeof part)) > 0;) answer.append(part, size_t(count));
  close(socket_file);
  return answer;
}

// Names and types, of Gyre's own.
std::map<std::string, std::string> families_of(const std::string& answer) {
  std::map<std::string, std::string> families;
  std::istringstream lines(answer);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash, what, name, type;
    if (words >> hash >> what >> name >> type && hash == "#" && what == "TYPE" && name.rfind("gyre_", 0) == 0)
      families[name] = type;
  }
  return families;
}

std::map<std::string, std::string> families_of_page(const std::string& page) {
  std::map<std::string, std::string> families;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("| `gyre_", 0) != 0) continue;
    const size_t end = line.find('`', 3);
    const std::string name = line.substr(3, end - 3);
    std::istringstream rest(line.substr(end + 1));
    std::string bar, type;
    rest >> bar >> type;
    families[name] = type;
  }
  return families;
}

double value_of(const std::string& answer, const std::string& sample) {
  const size_t at = answer.find("\n" + sample + " ");
  INFO(sample << " in\n" << answer);
  REQUIRE(at != std::string::npos);
  return std::stod(answer.substr(at + sample.size() + 2));
}

}  // namespace

TEST_CASE("a scrape says what the stats say, under the names of the page") {
  Stepped s;
  for (uint64_t i = 0; i < 3; ++i) REQUIRE(s.client->tell<ProbeNote>(probe, noting(i)));
  auto good = s.ask(Action::ANSWER, 1);
  s.work();
  auto bad = s.ask(Action::FAIL, 1);
  s.work();
  REQUIRE(good.get());
  REQUIRE_FALSE(bad.get());
  REQUIRE(s.ask(Action::ANSWER, 2).cancel());
  s.core->terminate(5s);

  const PrometheusEndpoint endpoint([core = s.core] { return core->stats(); }, {.address = "127.0.0.1:0"});
  REQUIRE(endpoint.port() > 0);
  const std::string answer = scrape(endpoint.port());
  CHECK(answer.find("HTTP/1.1 200") == 0);
  const std::string labels = R"(actor="gyre_test::Probe",message="ProbeNote")";
  CHECK(value_of(answer, "gyre_messages_total{" + labels + R"(,worker="0",outcome="processed"})") == 3);
  CHECK(value_of(answer, "gyre_handler_seconds_count{" + labels + "}") == 3);
  CHECK(value_of(answer, "gyre_handler_seconds_bucket{" + labels + R"(,le="+Inf"})") == 3);
  CHECK(value_of(answer, R"(gyre_asks_total{outcome="error_reply"})") == 1);
  CHECK(value_of(answer, R"(gyre_asks_total{outcome="cancelled"})") == 1);
  CHECK(value_of(answer, R"(gyre_tells_total{outcome="processed"})") == 3);
  CHECK(value_of(answer, R"(gyre_runtime_state{state="terminated"})") == 1);
  CHECK(value_of(answer, "gyre_tells_accepted_total") == 3);
  CHECK(value_of(answer, R"(gyre_memory_bytes{kind="region"})") == double(s.core->region_bytes()));
  CHECK(value_of(answer, R"(gyre_memory_bytes{kind="actors"})") > 0);

  const auto documented = families_of_page(read_file(GYRE_TEST_WATCHING_PAGE));
  CHECK(documented.size() >= 20);
  auto served = families_of(answer);
  served.insert({"gyre_worker_heartbeat_age_seconds", "gauge"});  // of workers that have not stopped
  served.insert({"gyre_device_memory_bytes", "gauge"});           // of GPUs
  served.insert({"gyre_device_memory_free_bytes", "gauge"});
  CHECK(served == documented);
}

TEST_CASE("an endpoint's threads take none of the program's signals, and SIGPIPE stays as it was") {
  struct sigaction before {
  }, after{};
  REQUIRE(sigaction(SIGPIPE, nullptr, &before) == 0);
  const PrometheusEndpoint endpoint([] { return Stats{}; }, {.address = "127.0.0.1:0"});
  CHECK(scrape(endpoint.port()).find("HTTP/1.1 200") == 0);
  CHECK(threads_that_take_signals() == "");
  REQUIRE(sigaction(SIGPIPE, nullptr, &after) == 0);
  CHECK(after.sa_handler == before.sa_handler);
}

TEST_CASE("a cancelled thread starts, replaces and ends an endpoint") {
  CHECK(cancelled_while([] {
          const PrometheusOptions anywhere{.address = "127.0.0.1:0"};
          PrometheusEndpoint endpoint([] { return Stats{}; }, anywhere);
          endpoint = PrometheusEndpoint([] { return Stats{}; }, anywhere);
          return endpoint.port() != 0 ? "listens" : "does not listen";
        }) == "listens, then cancelled");
}

TEST_CASE("an endpoint that cannot listen says where") {
  const PrometheusEndpoint first([] { return Stats{}; }, {.address = "127.0.0.1:0"});
  const std::string taken = "127.0.0.1:" + std::to_string(first.port());
  try {
    const PrometheusEndpoint second([] { return Stats{}; }, {.address = taken});
    FAIL("it listens");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("serving metrics on " + taken) == 0);
  }
}

TEST_CASE("a scrape that finds no stats is answered, without any") {
  const PrometheusEndpoint endpoint([]() -> Stats { throw Error("gone"); }, {.address = "127.0.0.1:0"});
  const std::string answer = scrape(endpoint.port());
  CHECK(answer.find("HTTP/1.1 200") == 0);
  CHECK(families_of(answer).empty());
}
