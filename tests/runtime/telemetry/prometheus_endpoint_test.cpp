#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <gyre/runtime/telemetry/prometheus_endpoint.hpp>

#include <algorithm>
#include <cctype>
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

// A scrape's samples: of each name, the label pairs `name="value"` of all its samples together.
std::map<std::string, std::set<std::string>> samples_of(const std::string& answer) {
  std::map<std::string, std::set<std::string>> samples;
  std::istringstream lines(answer);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("gyre_", 0) != 0) continue;
    const size_t name_end = line.find_first_of("{ ");
    auto& labels = samples[line.substr(0, name_end)];
    if (line[name_end] != '{') continue;
    for (size_t at = name_end + 1; line[at - 1] != '}';) {
      const size_t end = line.find('"', line.find('"', at) + 1) + 1;
      labels.insert(line.substr(at, end - at));
      at = end + 1;
    }
  }
  return samples;
}

// Prometheus itself adds these to each sample that it scrapes.
bool is_prometheus_own(const std::string& label) { return label == "instance" || label == "job"; }

bool has_label(const std::set<std::string>& labels, const std::string& name) {
  return is_prometheus_own(name) || std::any_of(labels.begin(), labels.end(), [&](const std::string& label) {
           return label.rfind(name + "=", 0) == 0;
         });
}

// What an expression names and a scrape does not have: metrics, labels of a metric, values of a label that
// are given as they are. Empty: nothing. `metrics` counts what it names.
std::string unknown_in(const std::string& expression,
                       const std::map<std::string, std::set<std::string>>& samples, size_t& metrics) {
  const auto is_name = [](char c) { return std::isalnum(uint8_t(c)) != 0 || c == '_'; };
  const auto name_at = [&](size_t at) {
    size_t end = at;
    while (end < expression.size() && is_name(expression[end])) ++end;
    return expression.substr(at, end - at);
  };
  std::string unknown;
  std::set<std::string> all_labels;
  for (size_t at = 0; (at = expression.find("gyre_", at)) != std::string::npos;) {
    const std::string metric = name_at(at);
    at += metric.size();
    ++metrics;
    const auto sample = samples.find(metric);
    if (sample == samples.end()) {
      unknown += "no metric " + metric + "\n";
      continue;
    }
    all_labels.insert(sample->second.begin(), sample->second.end());
    const bool selects = expression[at] == '{';
    while (selects && (expression[at] == '{' || expression[at] == ',')) {
      const std::string label = name_at(++at);
      if (!has_label(sample->second, label)) unknown += metric + " has no label " + label + "\n";
      const size_t quote = expression.find('"', at), end = expression.find('"', quote + 1);
      const std::string pair = label + "=" + expression.substr(quote, end + 1 - quote);
      const bool exact = !is_prometheus_own(label) && expression.compare(at + label.size(), 2, "=\"") == 0;
      if (exact && sample->second.count(pair) == 0) unknown += metric + " has no " + pair + "\n";
      at = end + 1;
    }
  }
  for (size_t at = 0; (at = expression.find("by (", at)) != std::string::npos;) {
    at += 3;
    while (expression[at] == '(' || expression[at] == ',') {
      at = expression.find_first_not_of(" ", at + 1);
      const std::string label = name_at(at);
      if (!has_label(all_labels, label)) unknown += "by (" + label + "): no metric of it has that label\n";
      at += label.size();
    }
  }
  return unknown;
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

  const auto documented = families_of_page(read_file(GYRE_TEST_METRICS_PAGE));
  CHECK(documented.size() >= 20);
  auto served = families_of(answer);
  served.insert({"gyre_worker_heartbeat_age_seconds", "gauge"});  // of workers that have not stopped
  served.insert({"gyre_device_memory_bytes", "gauge"});           // of GPUs
  served.insert({"gyre_device_memory_free_bytes", "gauge"});
  CHECK(served == documented);
}

TEST_CASE("a scrape says what actors send, by worker and outcome") {
  const auto read = [] {
    Stats stats;
    stats.workers.resize(2);
    stats.workers[1].mail = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
    stats.books.told = {20, 21, 22, 23};
    stats.workers[1].actors = {{"my::Counter", true, 24, 25, 26, 27}};
    stats.workers[0].actors = {{"my::Empty", false, 0, 0, 28, 29}};
    return stats;
  };
  const PrometheusEndpoint endpoint(read, {.address = "127.0.0.1:0"});
  const std::string answer = scrape(endpoint.port());
  CHECK(value_of(answer, R"(gyre_mail_sent_total{worker="0"})") == 0);
  CHECK(value_of(answer, R"(gyre_mail_sent_total{worker="1"})") == 1);
  CHECK(value_of(answer, R"(gyre_actors{actor="my::Counter",worker="1"})") == 24);
  CHECK(value_of(answer, R"(gyre_actors_created_total{actor="my::Counter",worker="1"})") == 25);
  CHECK(value_of(answer, R"(gyre_mail_actor_sent_total{actor="my::Counter",worker="1"})") == 26);
  CHECK(value_of(answer, R"(gyre_mail_actor_processed_total{actor="my::Counter",worker="1"})") == 27);
  CHECK(value_of(answer, R"(gyre_mail_actor_sent_total{actor="my::Empty",worker="0"})") == 28);
  CHECK(answer.find(R"(gyre_actors{actor="my::Empty")") == std::string::npos);
  CHECK(value_of(answer, R"(gyre_mail_total{worker="1",outcome="processed"})") == 2);
  CHECK(value_of(answer, R"(gyre_mail_total{worker="1",outcome="failed"})") == 3);
  CHECK(value_of(answer, R"(gyre_mail_total{worker="1",outcome="refused"})") == 4);
  CHECK(value_of(answer, R"(gyre_mail_spilled_total{worker="1"})") == 5);
  CHECK(value_of(answer, R"(gyre_mailbox_depth{worker="1"})") == 6);
  CHECK(value_of(answer, R"(gyre_mailbox_depth_high_water{worker="1"})") == 7);
  CHECK(value_of(answer, R"(gyre_outbox_high_water{worker="1"})") == 8);
  CHECK(value_of(answer, R"(gyre_told_sent_total{worker="1"})") == 9);
  CHECK(value_of(answer, R"(gyre_told_refused_total{worker="1"})") == 10);
  CHECK(value_of(answer, R"(gyre_timers_set_total{worker="1"})") == 11);
  CHECK(value_of(answer, R"(gyre_timers_total{worker="1",outcome="done"})") == 12);
  CHECK(value_of(answer, R"(gyre_timers_total{worker="1",outcome="cancelled"})") == 13);
  CHECK(value_of(answer, R"(gyre_told_total{outcome="handled"})") == 21);
  CHECK(value_of(answer, R"(gyre_told_total{outcome="dropped"})") == 22);
  const auto families = families_of(answer);
  CHECK(families.at("gyre_mail_total") == "counter");
  CHECK(families.at("gyre_mailbox_depth") == "gauge");
  const std::string help = "# HELP gyre_mail_total ";
  CHECK(answer.find(help) == answer.rfind(help));
}

TEST_CASE("a scrape has the counts of the program, by section, each metric once") {
  const auto read = [] {
    Stats stats;
    stats.program = {
        {"nats",
         {{"received", "Requests.", CountKind::counter, 3}, {"held", "Held now.", CountKind::gauge, 4}}},
        {"http", {{"received", "Requests by HTTP.", CountKind::counter, 5}}},
    };
    return stats;
  };
  const PrometheusEndpoint endpoint(read, {.address = "127.0.0.1:0"});
  const std::string answer = scrape(endpoint.port());
  CHECK(value_of(answer, R"(gyre_program_received_total{section="nats"})") == 3);
  CHECK(value_of(answer, R"(gyre_program_received_total{section="http"})") == 5);
  CHECK(value_of(answer, R"(gyre_program_held{section="nats"})") == 4);
  const auto families = families_of(answer);
  CHECK(families.at("gyre_program_received_total") == "counter");
  CHECK(families.at("gyre_program_held") == "gauge");
  const std::string help = "# HELP gyre_program_received_total ";
  const size_t first = answer.find(help);
  REQUIRE(first != std::string::npos);
  CHECK(answer.compare(first + help.size(), 9, "Requests.") == 0);
  CHECK(answer.find(help, first + 1) == std::string::npos);
}

TEST_CASE("the page on deployment says of each alert what it means, and of no other") {
  std::set<std::string> rules, rows;
  std::istringstream file(read_file(GYRE_TEST_MONITORING_FOLDER "/alerts.yml"));
  const std::string rule = "- alert: ", row = "| `Gyre";
  for (std::string line; std::getline(file, line);) {
    const size_t at = line.find(rule);
    if (at != std::string::npos) rules.insert(line.substr(at + rule.size()));
  }
  std::istringstream page(read_file(GYRE_TEST_MONITORING_FOLDER "/../how-to/deployment.md"));
  for (std::string line; std::getline(page, line);) {
    if (line.rfind(row, 0) == 0) rows.insert(line.substr(3, line.find('`', 3) - 3));
  }
  CHECK(rules.size() >= 10);
  CHECK(rows == rules);
}

TEST_CASE("the alert rules and the dashboard name what a scrape has: metrics, labels and values") {
  Stepped s;
  auto good = s.ask(Action::ANSWER, 1);
  s.work();
  REQUIRE(good.get());
  const auto on_a_gpu = [core = s.core] {
    Stats stats = core->stats();
    stats.memory.device_total = stats.memory.device_free = 1;
    for (WorkerStats& worker : stats.workers) worker.heartbeat_age_s = 0;
    return stats;
  };
  const PrometheusEndpoint endpoint(on_a_gpu, {.address = "127.0.0.1:0"});
  const auto samples = samples_of(scrape(endpoint.port()));
  REQUIRE(samples.size() >= 26);

  // A line of the rules, or of the dashboard's JSON, has an expression or a part of one.
  for (const std::string file : {"alerts.yml", "grafana.json"}) {
    size_t metrics = 0;
    std::istringstream lines(read_file(GYRE_TEST_MONITORING_FOLDER "/" + file));
    for (std::string line; std::getline(lines, line);) {
      for (size_t at = 0; (at = line.find("\\\"", at)) != std::string::npos;) line.erase(at, 1);
      INFO(file << ": " << line);
      CHECK(unknown_in(line, samples, metrics) == "");
    }
    CHECK(metrics >= 12);
  }

  size_t metrics = 0;
  CHECK(unknown_in(R"(gyre_worker_depth{worker="0",job="a"} > gyre_ring_slots)", samples, metrics) == "");
  CHECK(metrics == 2);
  CHECK(unknown_in("rate(gyre_asks[5m])", samples, metrics) == "no metric gyre_asks\n");
  CHECK(unknown_in(R"(gyre_asks_total{outcome="lost"})", samples, metrics) ==
        "gyre_asks_total has no outcome=\"lost\"\n");
  CHECK(unknown_in(R"(gyre_asks_total{job="a",worker=~"1.*"})", samples, metrics) ==
        "gyre_asks_total has no label worker\n");
  CHECK(unknown_in("sum by (instance, actor) (gyre_ring_slots)", samples, metrics) ==
        "by (actor): no metric of it has that label\n");
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
