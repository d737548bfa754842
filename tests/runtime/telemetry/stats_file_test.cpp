// Stats of stepped workers, published stats, and the log.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/telemetry/stats_file.hpp>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "support/catch.hpp"
#include "support/stepped.hpp"
#include "support/temporary_folder.hpp"

using namespace gyre;
using namespace gyre_test;

namespace {

// The log's lines, while it lives.
class Lines {
 public:
  Lines() {
    set_logger([this](LogLevel level, std::string_view line) {
      const std::lock_guard lock(mutex_);
      text_ += std::string(name(level)) + " " + std::string(line) + "\n";
    });
  }
  ~Lines() {
    set_logger({});
    set_log_level(LogLevel::warning);
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

Stats some_stats() {
  Stepped s;
  for (uint64_t i = 0; i < 3; ++i) REQUIRE(s.client->tell<ProbeNote>(probe, noting(i)));
  s.work();
  s.core->terminate(5s);
  Stats stats = s.core->stats();
  stats.timings = {1.5, 2.5, true};
  stats.workers[0].heartbeat_age_s = 0.25;
  stats.workers[0].mail = {40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 70, 71, 72};
  stats.workers[0].actors[0].living = 66;
  stats.workers[0].actors[0].created = 67;
  stats.workers[0].actors[0].mail_sent = 68;
  stats.workers[0].actors[0].mail_processed = 69;
  stats.books.mail = {53, 54, 55, 56, 57};
  stats.books.told = {58, 59, 60, 61};
  stats.books.timers = {62, 63, 64, 65};
  stats.writes = {1, 2, 3};
  stats.memory.modules = 31;
  stats.restarts = 34;
  stats.log_lines = 35;
  stats.log_lines_dropped = 36;
  stats.memory.buffers_freed[2] = 32;
  stats.memory.device_free = 33;
  stats.books.asks.cancelled = 4;
  stats.program = {
      {"nats", {{"received", "Requests.", CountKind::counter, 37}}},
      {"cache", {{"hits", "Hits.", CountKind::counter, 38}, {"size", "Entries.", CountKind::gauge, 39}}}};
  return stats;
}

}  // namespace

TEST_CASE("a ring's depth is what lies in it, and its high water the most that was found there") {
  Stepped s({.slots = 8, .timeout = 5s});
  for (uint64_t i = 0; i < 5; ++i) REQUIRE(s.client->tell<ProbeNote>(probe, noting(i)));
  CHECK(s.core->stats().workers[0].depth == 5);
  CHECK(s.core->stats().workers[0].depth_high_water == 5);
  s.work();
  REQUIRE(s.client->tell<ProbeNote>(probe, noting(1)));
  CHECK(s.core->stats().workers[0].depth == 1);
  CHECK(s.core->stats().workers[0].depth_high_water == 5);
  s.core->terminate(5s);
  const Stats stats = s.core->stats();
  CHECK(stats.workers[0].handlers[1].processed == 5);
  CHECK(stats.workers[0].handlers[1].dead_letters == 1);
}

TEST_CASE("a time is counted in the bin of its power of two") {
  CHECK(HandlerCounts::bin_of(0) == 0);
  CHECK(HandlerCounts::bin_of(1) == 0);
  CHECK(HandlerCounts::bin_of(2) == 1);
  CHECK(HandlerCounts::bin_of(1023) == 9);
  CHECK(HandlerCounts::bin_of(1024) == 10);
  CHECK(HandlerCounts::bin_of(~uint64_t(0)) == HandlerCounts::bins - 1);
  HandlerStats stats;
  CHECK(stats.longest_ns_below() == 0);
  stats.times[9] = 1;
  stats.times[3] = 7;
  CHECK(stats.longest_ns_below() == 1024);
}

TEST_CASE("stats come back from their bytes as they were") {
  const Stats stats = some_stats();
  const std::vector<std::byte> bytes = detail::write_stats(stats);
  const Stats back = detail::read_stats(bytes);
  CHECK(detail::write_stats(back) == bytes);
  CHECK(back.workers[0].handlers[1].message == "ProbeNote");
  CHECK(back.workers[0].handlers[1].processed == 3);
  CHECK(back.workers[0].heartbeat_age_s == 0.25);
  CHECK(back.workers[0].mail.sent == 40);
  CHECK(back.workers[0].mail.spilled == 44);
  CHECK(back.workers[0].mail.outbox_high_water == 47);
  CHECK(back.workers[0].mail.timers_cancelled == 52);
  REQUIRE(back.actors().size() == stats.workers[0].actors.size());
  CHECK(back.actors()[0].actor == "gyre_test::Probe");
  CHECK(back.actors()[0].has_state);
  CHECK(back.actors()[0].living == 66);
  CHECK(back.actors()[0].created == 67);
  CHECK(back.actors()[0].mail_sent == 68);
  CHECK(back.actors()[0].mail_processed == 69);
  CHECK(back.workers[0].mail.bodies_refused == 72);
  CHECK(back.books.mail.lost == 57);
  CHECK(back.books.told.refused == 61);
  CHECK(back.books.timers.cancelled == 64);
  CHECK(back.books.timers.lost == 65);
  CHECK(back.timings.compiled_from_cache);
  CHECK_FALSE(back.timings.compiled_ahead);
  CHECK(back.state == Lifecycle::terminated);
  CHECK(back.books.tells.processed == 3);
  CHECK(back.writes.ns == 3);
  CHECK(back.memory.region == stats.memory.region);
  CHECK(back.memory.region != 0);
  CHECK(back.memory.modules == 31);
  CHECK(back.restarts == 34);
  CHECK(back.log_lines == 35);
  CHECK(back.log_lines_dropped == 36);
  CHECK(back.memory.buffers_freed[2] == 32);
  CHECK(back.memory.device_free == 33);
  CHECK(back.books.asks.cancelled == 4);
  REQUIRE(back.program.size() == 2);
  CHECK(back.program[1].name == "cache");
  REQUIRE(back.program[1].counts.size() == 2);
  CHECK(back.program[1].counts[1].name == "size");
  CHECK(back.program[1].counts[1].help == "Entries.");
  CHECK(back.program[1].counts[1].kind == CountKind::gauge);
  CHECK(back.program[1].counts[1].value == 39);

  Stats ahead = stats;
  ahead.timings.compiled_from_cache = false;
  ahead.timings.compiled_ahead = true;
  const Timings timings = detail::read_stats(detail::write_stats(ahead)).timings;
  CHECK(timings.compiled_ahead);
  CHECK_FALSE(timings.compiled_from_cache);
}

TEST_CASE(
    "bytes that are no stats are refused or read, whatever they are, and never followed out of bounds") {
  const std::vector<std::byte> bytes = detail::write_stats(some_stats());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + long(size));
    REQUIRE_THROWS_AS(detail::read_stats(cut), Error);
  }
  std::mt19937_64 random(11);
  uint64_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> damaged = bytes;
    for (int n = 0; n < 3; ++n) {
      const size_t word = random() % (damaged.size() / 8);
      const uint64_t value = random() >> (random() % 64);
      std::memcpy(&damaged[word * 8], &value, sizeof value);
    }
    try {
      const Stats read = detail::read_stats(damaged);
      (void)read.handlers();
      (void)read.actors();
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 0);
}

TEST_CASE("published counts of a program are refused where a name or a help text is none") {
  const auto refused = [](CountSection section) {
    Stats stats;
    stats.program = {std::move(section)};
    try {
      (void)detail::read_stats(detail::write_stats(stats));
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  const NamedCount good{"hits", "Hits.", CountKind::counter, 1};
  CHECK_FALSE(refused({"cache", {good}}));
  CHECK(refused({"cache", {}}));
  CHECK(refused({"", {good}}));
  CHECK(refused({"\x1b[2J", {good}}));
  CHECK(refused({"cache", {good, good}}));
  CHECK(refused({"cache", {{"Hits", "Hits.", CountKind::counter, 1}}}));
  CHECK(refused({"cache", {{"hits_total", "Hits.", CountKind::counter, 1}}}));
  CHECK(refused({"cache", {{std::string(65, 'a'), "Hits.", CountKind::counter, 1}}}));
  CHECK(refused({"cache", {{"hits", "", CountKind::counter, 1}}}));
  CHECK(refused({"cache", {{"hits", "two\nlines", CountKind::counter, 1}}}));
  CHECK(refused({"cache", {{"hits", std::string(201, 'a'), CountKind::counter, 1}}}));
  CHECK(refused({"cache", {{"hits", "Hits.", CountKind(2), 1}}}));
  CHECK(refused({"cache", std::vector<NamedCount>(257, good)}));
  Stats twice;
  twice.program = {{"cache", {good}}, {"cache", {good}}};
  CHECK_THROWS_AS(detail::read_stats(detail::write_stats(twice)), Error);
}

TEST_CASE("counts of a program are in its runtime's stats while their guard lives") {
  Runtime runtime = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu});
  CHECK(runtime.stats().program.empty());
  std::atomic<uint64_t> hits{3};
  AddedCounts cache = runtime.add_counts(
      {"cache", {{"hits", "Hits.", CountKind::counter}, {"size", "Entries.", CountKind::gauge, 99}}},
      [&hits](std::span<uint64_t> values) {
        values[0] = hits.load();
        REQUIRE(values[1] == 0);
      });
  {
    const AddedCounts nats = runtime.add_counts({"nats", {{"received", "Requests."}}},
                                                [](std::span<uint64_t> values) { values[0] = 7; });
    hits = 4;
    const Stats stats = runtime.stats();
    REQUIRE(stats.program.size() == 2);
    CHECK(stats.program[0].name == "cache");
    CHECK(stats.program[0].counts[0].value == 4);
    CHECK(stats.program[0].counts[1].value == 0);
    CHECK(stats.program[1].counts[0].name == "received");
    CHECK(stats.program[1].counts[0].value == 7);
  }
  CHECK(runtime.stats().program.size() == 1);
  AddedCounts moved = std::move(cache);
  CHECK(runtime.stats().program.size() == 1);
  runtime.terminate();
  CHECK(runtime.stats().program.size() == 1);
  moved = runtime.add_counts({"other", {{"hits", "Hits."}}}, [](std::span<uint64_t>) {});
  REQUIRE(runtime.stats().program.size() == 1);
  CHECK(runtime.stats().program[0].name == "other");
  moved.remove();
  CHECK(runtime.stats().program.empty());
}

TEST_CASE("a guard of counts may outlive its runtime, and waits for a read on its way") {
  AddedCounts left;
  std::function<Stats()> reader;
  std::promise<void> reading, go_on;
  std::atomic<bool> removed{false}, removed_early{false};
  {
    Runtime runtime = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu});
    reader = runtime.stats_reader();
    left = runtime.add_counts({"cache", {{"hits", "Hits."}}}, [&](std::span<uint64_t> values) {
      reading.set_value();
      go_on.get_future().wait();
      removed_early = removed.load();
      values[0] = 1;
    });
  }
  std::thread thread([&] { CHECK(reader().program.size() == 1); });
  reading.get_future().wait();
  std::thread remover([&] {
    left.remove();
    removed = true;
  });
  go_on.set_value();
  thread.join();
  remover.join();
  CHECK_FALSE(removed_early);
  CHECK(reader().program.empty());
}

TEST_CASE("a section whose function throws is left out, and the log says so once") {
  Lines lines;
  Runtime runtime = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu});
  const AddedCounts bad = runtime.add_counts(
      {"bad", {{"hits", "Hits."}}}, [](std::span<uint64_t>) { throw std::runtime_error("not today"); });
  const AddedCounts good =
      runtime.add_counts({"good", {{"hits", "Hits."}}}, [](std::span<uint64_t> values) { values[0] = 5; });
  for (int n = 0; n < 3; ++n) {
    const Stats stats = runtime.stats();
    REQUIRE(stats.program.size() == 1);
    CHECK(stats.program[0].name == "good");
    CHECK(stats.program[0].counts[0].value == 5);
  }
  CHECK(lines.text() == "warning reading the counts of section bad: not today; the stats are without them\n");
}

TEST_CASE("counts that cannot be added are refused by name") {
  Runtime runtime = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu});
  const auto read = [](std::span<uint64_t>) {};
  const auto problem_of = [&](CountSection section) -> std::string {
    try {
      const AddedCounts added = runtime.add_counts(std::move(section), read);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  CHECK(problem_of({"cache", {{"hits", "Hits."}}}).empty());
  CHECK(
      problem_of({"my cache", {{"hits", "Hits."}}}) ==
      "adding counts to the stats: \"my cache\" is no name; use 1 to 64 of a-z, 0-9 and _, beginning with a "
      "letter and not ending with _total");
  CHECK(problem_of({"cache", {}}) == "adding counts to the stats: section cache has 0 counts; add 1 to 256");
  CHECK(problem_of({"cache", {{"hits", ""}}}).find("the help text of hits in section cache has 0 bytes") !=
        std::string::npos);
  CHECK(problem_of({"cache", {{"hits", "Hits."}, {"hits", "Hits."}}}).find("has hits twice") !=
        std::string::npos);
  const AddedCounts cache = runtime.add_counts({"cache", {{"hits", "Hits."}}}, read);
  CHECK(problem_of({"cache", {{"hits", "Hits."}}}).find("a section cache is there") != std::string::npos);
  CHECK_THROWS_AS(runtime.add_counts({"none", {{"hits", "Hits."}}}, {}), Error);
  std::vector<AddedCounts> all;
  for (int n = 1; n < 64; ++n)
    all.push_back(runtime.add_counts({"section_" + std::to_string(n), {{"hits", "Hits."}}}, read));
  CHECK(problem_of({"more", {{"hits", "Hits."}}}).find("there are 64 sections, the most") !=
        std::string::npos);
}

TEST_CASE("a runtime publishes its stats in a file of its own, and takes it away") {
  const TemporaryFolder folder;
  const Environment there("GYRE_STATS_DIR", (folder.path() / "stats").c_str());
  CHECK(stats_files().empty());
  {
    Runtime runtime = Runtime::launch(
        probe_actors(),
        {.engine = EngineKind::cpu, .publish_stats = true, .stats_interval = std::chrono::milliseconds(10)});
    REQUIRE(stats_files().size() == 1);
    const std::string file = stats_files().front();
    struct stat status {};
    REQUIRE(stat(file.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0600);
    REQUIRE(stat(stats_folder().c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0700);
    REQUIRE(runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get());
    const auto processed = [&] { return read_stats_file(file).stats.workers[0].handlers[0].processed; };
    while (processed() == 0) std::this_thread::yield();
    CHECK(processed() == 1);
    const PublishedStats published = read_stats_file(file);
    CHECK(published.pid == uint64_t(getpid()));
    CHECK(published.interval_ms == 10);
    CHECK(published.process_there);
    CHECK(published.age_s >= 0);

    Runtime moved = std::move(runtime);  // the file is the runtime's, wherever that is
    CHECK(stats_files().size() == 1);
    Runtime second = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .publish_stats = true});
    CHECK(stats_files().size() == 2);
    moved = std::move(second);
    CHECK(stats_files().size() == 1);
  }
  CHECK(stats_files().empty());
}

TEST_CASE("another process lists a runtime's actors by its stats file", "[actors]") {
  const TemporaryFolder folder;
  const Environment there("GYRE_STATS_DIR", folder.path().c_str());
  const auto problem_of = [](const std::string& file, std::string_view type) -> std::string {
    try {
      (void)list_published_actors(file, type);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  std::string file;
  {
    Runtime runtime = Runtime::launch(
        probe_actors(), {.engine = EngineKind::cpu,
                         .workers = 2,
                         .publish_stats = true,
                         .stats_interval = std::chrono::hours(1)});  // a request does not wait for it
    file = stats_files().front();
    const Client client = runtime.client();
    std::set<uint64_t> keys;
    for (uint64_t n = 0; n < 50; ++n) {
      keys.insert(n * n * n);
      REQUIRE(runtime.client().ask<ProbeRequest>(Address<Probe>{n * n * n}, asking(Action::ANSWER, 1)).get());
    }
    std::vector<uint64_t> listed;
    for (std::optional<ActorCursor> at = ActorCursor{}; at;) {
      const ActorPage page = list_published_actors(file, "gyre_test::Probe", *at, 20);
      CHECK(page.keys.size() <= 20);
      listed.insert(listed.end(), page.keys.begin(), page.keys.end());
      at = page.next;
    }
    std::sort(listed.begin(), listed.end());
    CHECK(listed == std::vector<uint64_t>(keys.begin(), keys.end()));
    CHECK(problem_of(file, "gyre_test::Nobody").find("actor type is not in the actor set") !=
          std::string::npos);
    CHECK(problem_of(file + "-none", "gyre_test::Probe").find("No such file") != std::string::npos);
  }
  write_file(file, "");
  CHECK(problem_of(file, "gyre_test::Probe").find("its process does not listen") != std::string::npos);
}

TEST_CASE("a damaged stats file is refused by name") {
  const TemporaryFolder folder;
  const Environment there("GYRE_STATS_DIR", folder.path().c_str());
  const auto publisher = detail::StatsPublisher::start([] { return Stats{}; }, std::chrono::hours(1));
  REQUIRE(publisher);
  const std::string good = read_file(publisher->path());
  const std::string copy = (folder.path() / "copy.gyre-stats").string();
  const auto problem_of = [&](const std::string& content) -> std::string {
    write_file(copy, content);
    try {
      (void)read_stats_file(copy);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  CHECK(problem_of(good).empty());
  CHECK(problem_of(good + "behind it").empty());
  CHECK(problem_of("").find("it has 0 bytes") != std::string::npos);
  for (const size_t at : {size_t(0), size_t(8), size_t(16), size_t(40), size_t(48), good.size() - 1}) {
    std::string damaged = good;
    damaged[at] = char(damaged[at] + 1);
    INFO("byte " << at);
    CHECK(problem_of(damaged).find("reading published stats from " + copy) == 0);
  }
  CHECK(problem_of(good.substr(0, good.size() - 1)).find("damaged, or cut short") != std::string::npos);
  std::filesystem::create_symlink(publisher->path(), folder.path() / "link.gyre-stats");
  CHECK_THROWS_AS(read_stats_file((folder.path() / "link.gyre-stats").string()), Error);
  CHECK_THROWS_AS(read_stats_file((folder.path() / "none").string()), Error);
  CHECK_THROWS_AS(read_stats_file("/dev/zero"), Error);
}

TEST_CASE("a folder that others may write to is not used, and the runtime works all the same") {
  const TemporaryFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  const Environment there("GYRE_STATS_DIR", folder.path().c_str());
  Lines lines;
  Runtime runtime = Runtime::launch(probe_actors(), {.engine = EngineKind::cpu, .publish_stats = true});
  CHECK(runtime.client().ask<ProbeRequest>(probe, asking(Action::ANSWER, 1)).get());
  CHECK(lines.text().find("warning the stats are not published: others may write to folder") == 0);
  CHECK(stats_files().empty());
}

#if !defined(GYRE_THREAD_SANITIZER)
TEST_CASE("the file of a process that died says so, and a forked child leaves its parent's alone") {
  const TemporaryFolder folder;
  const Environment there("GYRE_STATS_DIR", folder.path().c_str());
  const pid_t child = fork();
  if (child == 0) {
    const auto publisher = detail::StatsPublisher::start([] { return Stats{}; }, std::chrono::hours(1));
    _exit(publisher ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  REQUIRE(stats_files().size() == 1);
  const PublishedStats published = read_stats_file(stats_files().front());
  CHECK(published.pid == uint64_t(child));
  CHECK_FALSE(published.process_there);
  CHECK(published.stale());
  std::filesystem::remove(stats_files().front());

  auto publisher = detail::StatsPublisher::start([] { return Stats{}; }, std::chrono::hours(1));
  REQUIRE(publisher);
  const pid_t second = fork();
  if (second == 0) {
    alarm(30);
    publisher.reset();
    _exit(0);
  }
  REQUIRE(waitpid(second, &status, 0) == second);
  CHECK(status == 0);
  CHECK(stats_files().size() == 1);
}
#endif

#if !defined(GYRE_THREAD_SANITIZER)
namespace {

auto publish() {
  return detail::StatsPublisher::start([] { return Stats{}; }, std::chrono::hours(1));
}

// A child that publishes until it is killed. With one of its own, if it is to, that lives on.
class PublishingProcess {
 public:
  explicit PublishingProcess(bool forks = false) {
    int ready[2], stay[2];
    REQUIRE(pipe(ready) == 0);
    REQUIRE(pipe(stay) == 0);
    child_ = fork();
    if (child_ == 0) {
      const auto publisher = publish();
      if (!publisher) _exit(1);
      close(stay[1]);
      const bool lives_on = forks && fork() == 0;
      const std::string path = publisher->path();
      // With a child of its own, that one says where the file is: it has closed it by then.
      if (forks == lives_on && write(ready[1], path.data(), path.size()) != ssize_t(path.size())) _exit(1);
      close(ready[1]);
      if (lives_on) {
        char byte;
        while (read(stay[0], &byte, 1) > 0) {  // until the test ends it
        }
        _exit(0);
      }
      for (;;) pause();
    }
    close(ready[1]);
    close(stay[0]);
    stay_ = stay[1];
    char path[4096];
    const ssize_t bytes = read(ready[0], path, sizeof path);
    close(ready[0]);
    REQUIRE(bytes > 0);
    path_.assign(path, size_t(bytes));
  }
  ~PublishingProcess() {
    kill_it();
    close(stay_);
  }
  const std::string& path() const { return path_; }
  void kill_it() {
    if (child_ == 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }

 private:
  pid_t child_ = 0;
  int stay_ = -1;
  std::string path_;
};

}  // namespace

TEST_CASE("the next runtime that publishes removes the files of processes that were killed, and no others") {
  const TemporaryFolder folder;
  const Environment there("GYRE_STATS_DIR", folder.path().c_str());
  PublishingProcess killed, lives, in_another_namespace;
  killed.kill_it();
  REQUIRE(stats_files().size() == 3);
  {
    // As it looks from another pid namespace: its number says nothing here. 0x7fffffff is no process's.
    std::fstream file(in_another_namespace.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(16);
    file.write("\xff\xff\xff\x7f", 4);
  }
  const std::string earlier = (folder.path() / "1-1.gyre-stats").string();
  std::string header = read_file(lives.path()).substr(0, 56);
  header[8] = 2;  // earlier versions lock nothing: whose file it is nobody knows
  write_file(earlier, header);
  const std::string other = (folder.path() / "other.gyre-stats").string();
  write_file(other, "somebody's own");
  const std::string begun = (folder.path() / "2-1.gyre-stats").string();
  write_file(begun, "");
  const std::string never_written = (folder.path() / "3-1.gyre-stats").string();
  write_file(never_written, "");
  const timespec hour_ago[] = {{time(nullptr) - 3600, 0}, {time(nullptr) - 3600, 0}};
  REQUIRE(utimensat(AT_FDCWD, never_written.c_str(), hour_ago, 0) == 0);

  const auto publisher = publish();
  REQUIRE(publisher);
  std::set<std::string> left;
  for (const std::string& file : stats_files()) left.insert(file);
  CHECK(left == std::set<std::string>{lives.path(), in_another_namespace.path(), earlier, other, begun,
                                      publisher->path()});
  CHECK(read_stats_file(lives.path()).process_there);
}

TEST_CASE("a killed process's file goes, whatever children of fork() it left") {
  const TemporaryFolder folder;
  const Environment there("GYRE_STATS_DIR", folder.path().c_str());
  PublishingProcess killed(true);
  CHECK(read_stats_file(killed.path()).process_there);
  killed.kill_it();
  CHECK_FALSE(read_stats_file(killed.path()).process_there);
  const auto publisher = publish();
  REQUIRE(publisher);
  CHECK(stats_files() == std::vector<std::string>{publisher->path()});
}

TEST_CASE(
    "a process of another namespace with the same number keeps its file, and this one takes another name") {
  const TemporaryFolder folder;
  const Environment there("GYRE_STATS_DIR", folder.path().c_str());
  const auto first = publish();
  REQUIRE(first);
  const std::filesystem::path path = first->path();
  const std::string name = path.filename().string();  // PID-N.gyre-stats
  const size_t dash = name.find('-');
  const std::string next =
      path.parent_path() /
      (name.substr(0, dash + 1) + std::to_string(std::stoull(name.substr(dash + 1)) + 1) + ".gyre-stats");
  write_file(next, read_file(first->path()));
  const int others = open(next.c_str(), O_RDWR | O_CLOEXEC);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  REQUIRE(fcntl(others, F_OFD_SETLK, &lock) == 0);
  const auto second = publish();
  REQUIRE(second);
  CHECK(second->path() != next);
  CHECK(stats_files().size() == 3);
  close(others);
  const auto third = publish();
  REQUIRE(third);
  CHECK(stats_files().size() == 3);
  CHECK_FALSE(std::filesystem::exists(next));
}
#endif

TEST_CASE("a logger that was replaced is destroyed once nobody logs by it") {
  const auto alive = [](const std::shared_ptr<int>& token) {
    return [token](LogLevel, std::string_view) { ++*token; };
  };
  auto first = std::make_shared<int>(0), second = std::make_shared<int>(0);
  set_logger(alive(first));
  detail::log_line(LogLevel::error, "one");
  CHECK(*first == 1);
  CHECK(first.use_count() == 2);
  set_logger(alive(second));
  CHECK(first.use_count() == 1);
  // One that replaces itself goes on until it returns.
  auto third = std::make_shared<int>(0);
  set_logger([third](LogLevel, std::string_view) {
    set_logger({});
    *third = int(third.use_count());
  });
  CHECK(second.use_count() == 1);
  detail::log_line(LogLevel::error, "two");
  CHECK(*third == 2);
  CHECK(third.use_count() == 1);
}

TEST_CASE("threads log while others replace the logger: each line goes to one that is alive") {
  struct Alive {
    std::atomic<bool>* dead;
    explicit Alive(std::atomic<bool>* dead) : dead(dead) {}
    ~Alive() { *dead = true; }
  };
  constexpr int rounds = 2000;
  std::vector<std::atomic<bool>> dead(rounds);
  std::atomic<uint64_t> lines{0}, late{0};
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  set_logger([](LogLevel, std::string_view) {});
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!ends) detail::log_line(LogLevel::error, "a line");
    });
  }
  for (int round = 0; round < rounds; ++round) {
    set_logger([&, alive = std::make_shared<Alive>(&dead[size_t(round)]), round](LogLevel, std::string_view) {
      ++lines;
      if (dead[size_t(round)]) ++late;
    });
    const uint64_t before = lines;
    while (round % 100 == 0 && lines == before) std::this_thread::yield();
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  set_logger({});
  CHECK(late == 0);
  for (int round = 0; round < rounds; ++round) CHECK(dead[size_t(round)]);
}

TEST_CASE("the log goes to the embedder's logger, from the level that was set") {
  Lines lines;
  set_log_level(LogLevel::warning);
  int made = 0;
  const auto line = [&made](const char* text) {
    return [&made, text] {
      ++made;
      return std::string(text);
    };
  };
  detail::log(LogLevel::info, line("not asked for"));
  CHECK(made == 0);
  detail::log(LogLevel::info, line("asked for"), true);
  detail::log(LogLevel::error, line("wrong"));
  set_log_level(LogLevel::debug);
  detail::log(LogLevel::debug, line("detail"));
  set_log_level(LogLevel::off);
  detail::log(LogLevel::error, line("not heard"));
  CHECK(lines.text() == "info asked for\nerror wrong\ndebug detail\n");
  CHECK(made == 3);
  set_log_level(LogLevel::info);
  set_logger([](LogLevel, std::string_view) { throw std::runtime_error("no"); });
  detail::log(LogLevel::error, line("dropped"));
  CHECK(made == 4);
}

TEST_CASE("a launch and a failed engine are logged") {
  Lines lines;
  set_log_level(LogLevel::info);
  Runtime::launch(probe_actors(), {.engine = EngineKind::cpu}).terminate();
  CHECK(lines.text().find("info launched on CPU, 1 worker thread, transport heap: ") == 0);
  Stepped s;
  auto pending = s.ask(Action::ANSWER, 1);
  s.engine->fail("it was told to");
  CHECK(pending.get().error().status == Status::engine_failed);
  CHECK(lines.text().find("error the engine failed: it was told to") != std::string::npos);
}
