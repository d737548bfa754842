// Lines of handlers on the host: their text, and entries that no worker writes.
#include <gyre/runtime/log.hpp>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;
using namespace gyre_test;
using detail::HandlerLog;

namespace {

struct Argument {
  LogKind kind;
  uint64_t word;
  std::string text = {};
};

HandlerLog::Words entry_of(const std::string& format, const std::vector<Argument>& arguments) {
  HandlerLog::Words words{};
  words[3] = arguments.size() | uint64_t(format.size()) << 32;
  std::string bytes = format;
  uint64_t kinds = 0;
  for (size_t n = 0; n < arguments.size(); ++n) {
    words[LogEntry::head_words + n] = arguments[n].word;
    kinds |= uint64_t(arguments[n].kind) << (4 * n);
    bytes += arguments[n].text;
  }
  words[2] = kinds << 32;
  std::memcpy(words.data() + LogEntry::head_words + arguments.size(), bytes.data(), bytes.size());
  return words;
}
std::string text_of(const std::string& format, const std::vector<Argument>& arguments) {
  return HandlerLog::text_of(entry_of(format, arguments));
}

constexpr LogKind number = LogKind::unsigned_number, text = LogKind::text;

}  // namespace

TEST_CASE("a logged line has its arguments where the braces are, as the format says") {
  CHECK(text_of("nothing", {}) == "nothing");
  CHECK(text_of("{} and {}", {{number, 7}, {LogKind::signed_number, uint64_t(-7)}}) == "7 and -7");
  CHECK(text_of("{:x} {:>4}|", {{number, 255}, {text, 2, "ab"}}) == "ff   ab|");
  CHECK(text_of("{{}} {}", {{number, 1}}) == "{} 1");
  CHECK(text_of("{} {}", {{number, 1}}) == "1 {}");
  CHECK(text_of("{}", {{number, 1}, {number, 2}}) == "1 2");
  CHECK(text_of("{} {}", {{LogKind::boolean, 1}, {LogKind::boolean, 0}}) == "true false");
  CHECK(text_of("{:s} {", {{number, 1}}) == "1 {");               // no format of a number
  CHECK(text_of("{:999999999}", {{number, 1}}) == "1");           // no line of a gigabyte
  CHECK(text_of("{:{}}", {{number, 1}, {number, 2}}) == "1} 2");  // no width from an argument
  CHECK(text_of("a{}", {{text, 3, "\n\x1b\t"}}) == "a???");       // one line
}

TEST_CASE("a logger that does not return delays no message") {
  struct Logged {
    std::atomic<bool> entered{false}, by_asker{false}, go_on{false};
  };
  const auto logged = std::make_shared<Logged>();
  set_logger([logged, asker = std::this_thread::get_id()](LogLevel, std::string_view line) {
    if (line.find("gyre_test::Probe") == line.npos) return;
    logged->entered = true;
    if (std::this_thread::get_id() == asker) {
      logged->by_asker = true;
    } else {
      while (!logged->go_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  Runtime runtime =
      Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .timeout = std::chrono::minutes(1)});
  Client client = runtime.client();
  const auto ask = [&](Action action, uint64_t argument) {
    return client.ask<ProbeRequest>(Address<Probe>{7}, asking(action, argument)).get();
  };
  REQUIRE(ask(Action::LOG, 1));
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!logged->entered && std::chrono::steady_clock::now() < end) REQUIRE(ask(Action::WORK, 2'000'000));
  CHECK(logged->entered);
  for (int n = 0; n < 3; ++n) CHECK(ask(Action::WORK, 2'000'000));  // each does due work
  CHECK_FALSE(logged->by_asker);
  logged->go_on = true;
  CHECK(runtime.terminate().books.balanced());
  CHECK(runtime.stats().log_lines == 1);
  set_logger({});
}

TEST_CASE("a damaged entry of the log is counted, and the lines behind it are logged") {
  HandlerLog::Words words = entry_of("{}", {{text, 2, "ab"}});
  CHECK(HandlerLog::text_of(words) == "ab");
  words[LogEntry::head_words] = 1'000'000;  // bytes of the text
  CHECK(HandlerLog::text_of(words).empty());
  words = entry_of("{}", {{LogKind(9), 2}});
  CHECK(HandlerLog::text_of(words).empty());
  words = entry_of("{}", {{number, 2}});
  words[3] = 100;  // arguments
  CHECK(HandlerLog::text_of(words).empty());
  words[3] = 1 | uint64_t(217) << 32;  // bytes of the format: 216 are left
  CHECK(HandlerLog::text_of(words).empty());

  std::vector<std::string> lines;
  set_logger([&lines](LogLevel, std::string_view line) { lines.emplace_back(line); });
  Stepped s;
  const Bridge bridge = Bridge::of(s.engine->region(), s.core->layout(), 0);
  const auto put = [&](uint64_t line, const HandlerLog::Words& entry) {
    uint64_t* const content = bridge.log[line % LogEntry::room].content;
    for (uint32_t k = 1; k < LogEntry::words; ++k) content[k] = entry[k];
    content[0] = line + 1;
  };
  put(0, words);
  words = entry_of("well", {});
  words[2] |= 1000;  // no such actor
  put(1, words);
  put(2, entry_of("well", {}));
  put(4, entry_of("line 3 was not written yet", {}));
  s.core->host().handler_log.take();
  set_logger({});
  CHECK(lines == std::vector<std::string>{"worker 0, gyre_test::Probe, key 0: well"});
  CHECK(s.core->stats().log_lines == 1);
  CHECK(s.core->stats().log_lines_dropped == 2);
  CHECK(bridge.host_line->log_taken == 3);
}
