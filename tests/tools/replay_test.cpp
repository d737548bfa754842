// Recordings: what programs send is written, read and replayed, and what differs is named.
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/recording/recorder.hpp>
#include <gyre_alarm_actors_sources.hpp>
#include <gyre_test_actors_sources.hpp>
#include <support/actors/alarm.official.hpp>
#include <support/actors/probe.official.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "recording.hpp"
#include "replaying.hpp"
#include "support/actors/alarm.hpp"
#include "support/actors/probe.hpp"
#include "support/catch.hpp"
#include "support/counters.hpp"
#include "support/temporary_folder.hpp"

using namespace gyre;
using namespace gyre_test;
using namespace gyre_counters;
using namespace std::chrono_literals;
using messages::recording::Kind;
using tools::RecordedMessage;
using tools::RecordedOutcome;
using tools::RecordedRelaunch;
using tools::Recording;
using tools::Replay;
using tools::ReplayOptions;

namespace {

struct Files {
  TemporaryFolder folder;
  std::string file = (folder.path() / "recording").string();
};

ActorSet probes() { return ActorSet::of<Probe>(gyre_test_actors::sources); }
Options recording_to(const std::string& file, uint32_t workers = 1) {
  Options options;
  options.engine = EngineKind::cpu;
  options.workers = workers;
  options.record = file;
  return options;
}
Address<Probe> probe_at(uint64_t key) { return {key}; }
auto asking(Action action, uint64_t argument = 0, uint32_t filler = 0) {
  return [=](ProbeRequest::Builder request) {
    request.setAction(action);
    request.setArgument(argument);
    auto numbers = request.initFiller(filler);
    for (uint32_t i = 0; i < filler; ++i) numbers.set(i, argument + i);
  };
}

std::vector<RecordedMessage> messages_of(const Recording& recording) {
  std::vector<RecordedMessage> messages;
  for (const auto& event : recording.events) {
    if (const auto* message = std::get_if<RecordedMessage>(&event)) messages.push_back(*message);
  }
  return messages;
}
std::vector<RecordedOutcome> outcomes_of(const Recording& recording) {
  std::vector<RecordedOutcome> outcomes;
  for (const auto& event : recording.events) {
    if (const auto* outcome = std::get_if<RecordedOutcome>(&event)) outcomes.push_back(*outcome);
  }
  return outcomes;
}
// Records an ask of an actor type's first handler. Calls are numbered from 1.
void record(detail::Recorder& recorder, CallId call, uint16_t actor_type, uint64_t key,
            capnp::MessageBuilder& message) {
  const auto words = message.getSegmentsForOutput()[0];
  uint64_t first = 0;
  std::memcpy(&first, words.begin(), sizeof first);
  recorder.sent({detail::Recorder::Kind::ask, 0, call - 1, call, key, actor_type, 0, 1s, 0s}, first,
                words.begin() + 1, uint32_t(words.size() * sizeof(capnp::word)));
}

}  // namespace

TEST_CASE("a recording has what a program sent, and the outcomes") {
  const Files files;
  {
    Runtime runtime = Runtime::launch(probes(), recording_to(files.file, 2));
    Client client = runtime.client();
    CHECK(client.ask<ProbeRequest>(probe_at(5), asking(Action::ANSWER, 20)).get().value()->getValue() == 41);
    REQUIRE(client.tell<ProbeNote>(
        probe_at(4), [](ProbeNote::Builder note) { note.setValue(6); }, TellOptions{{}, 90s}));
    CHECK(client.ask<ProbeRequest>(probe_at(4), asking(Action::FAIL, 8), 7s).get().error().detail == 8);
    CHECK(client.tell_with_receipt<ProbeNote>(probe_at(4), [](ProbeNote::Builder) {}).get());
    CHECK(client.ask<ProbeRequest>(probe_at(2), asking(Action::ECHO, 1, 3000)).get());
    CHECK(client.start(probe_at(9)));
    CHECK(runtime.terminate().books.balanced());
  }
  const Recording recording = tools::read_recording(files.file);
  CHECK(recording.workers == 2);
  CHECK(recording.slot_bytes == 512);
  CHECK(recording.device == "CPU, 2 worker threads");
  REQUIRE(recording.handlers.size() == 2);
  CHECK(recording.handlers[0].actor == "gyre_test::Probe");
  CHECK(recording.handlers[0].message == "ProbeRequest");
  CHECK(recording.handlers[1].message == "ProbeNote");
  CHECK(recording.dropped == 0u);
  const auto sent = messages_of(recording);
  REQUIRE(sent.size() == 6);
  for (size_t n = 0; n < sent.size(); ++n) CHECK(sent[n].number == n);
  CHECK(sent[0].kind == Kind::ASK);
  CHECK(sent[0].key == 5);
  CHECK(sent[0].worker == 1);
  CHECK(sent[0].ticket == 0);
  CHECK(sent[2].ticket == 1);  // of the other worker
  SegmentReader request(reinterpret_cast<const capnp::word*>(sent[0].body.data()),
                        sent[0].body.size() / sizeof(capnp::word));
  CHECK(request.getRoot<ProbeRequest>().getArgument() == 20);
  CHECK(sent[1].kind == Kind::TELL);
  CHECK(sent[3].kind == Kind::RECEIPT);
  CHECK(sent[4].body.size() > 3000 * sizeof(uint64_t));
  CHECK(sent[5].message_type == lifecycle_message::start);
  const auto outcomes = outcomes_of(recording);
  REQUIRE(outcomes.size() == 5);
  CHECK(outcomes[0].number == 0);
  CHECK(outcomes[0].status == Status::ok);
  SegmentReader response(reinterpret_cast<const capnp::word*>(outcomes[0].body.data()),
                         outcomes[0].body.size() / sizeof(capnp::word));
  CHECK(response.getRoot<ProbeResponse>().getValue() == 41);
  CHECK(outcomes[1].number == 2);
  CHECK(outcomes[1].status == Status::handler_failed);
  CHECK(outcomes[1].detail == 8);
  CHECK(outcomes[2].number == 3);
  CHECK(outcomes[3].body.size() > 3000 * sizeof(uint64_t));
  CHECK(outcomes[4].number == 5);

  const Replay replay = tools::replay(recording, probes());
  CHECK(replay.sent == 6);
  CHECK(replay.compared == 5);
  CHECK(replay.same == 5);
  CHECK(replay.differences.empty());
}

TEST_CASE("what several threads sent to actors with state is replayed in the order of each worker") {
  const Files files;
  {
    Runtime runtime = Runtime::launch(counter_actors(), recording_to(files.file, 3));
    std::vector<std::thread> threads;
    for (uint64_t thread = 0; thread < 4; ++thread) {
      threads.emplace_back([client = runtime.client(), thread]() mutable {
        for (uint64_t n = 0; n < 200; ++n) {
          const auto told = client.tell<Increment>(counter(n % 7), incrementing(thread));
          const auto sum = client.ask<Add>(counter(n % 7), adding(n)).get();  // refused where n is 13
          if (!told || sum.has_value() != (n != 13)) std::terminate();
          if (n % 50 != 0) continue;
          std::array<Future<Reply<Sum>>, 5> futures;
          client.ask_many<Add>(counter(n % 5), futures, [](size_t i, Add::Builder add) { add.setAmount(i); });
          for (auto& future : futures) {
            if (!future.get()) std::terminate();
          }
          client.tell_many<Increment>(counter(1), 5,
                                      [](size_t i, Increment::Builder add) { add.setAmount(i); });
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(runtime.drain());
    CHECK(runtime.terminate().books.balanced());
  }
  const Recording recording = tools::read_recording(files.file);
  CHECK(recording.dropped == 0u);
  CHECK(recording.sent == 4 * (400 + 4 * 10));
  std::map<uint32_t, uint64_t> tickets;
  for (const RecordedMessage& message : messages_of(recording)) {
    CHECK(message.ticket == tickets[message.worker]++);
  }
  for (const std::optional<uint64_t> seed : {std::optional<uint64_t>(), std::optional<uint64_t>(8)}) {
    ReplayOptions options;
    options.seed = seed;
    const Replay replay = tools::replay(recording, counter_actors(), options);
    for (const std::string& difference : replay.differences) UNSCOPED_INFO(difference);
    CHECK(replay.same == 4 * (200 + 4 * 5));
    CHECK(replay.different() == 0);
  }
}

TEST_CASE("asks that timers answer are replayed at the timers' virtual time") {
  const Files files;
  const auto alarms = [] { return ActorSet::of<gyre_alarm::Alarm>(gyre_alarm_actors::sources); };
  {
    Runtime runtime = Runtime::launch(alarms(), recording_to(files.file, 2));
    Client client = runtime.client();
    for (uint64_t round = 1; round <= 3; ++round) {
      std::vector<Future<Reply<gyre_alarm::Woken>>> asks;
      for (uint64_t key = 0; key < 8; ++key) {
        asks.push_back(client.ask<gyre_alarm::Wake>(
            Address<gyre_alarm::Alarm>{key}, [&](auto wake) { wake.setAfterNs(1'000'000 * (8 - key)); }));
      }
      for (auto& ask : asks) REQUIRE(ask.get().value()->getTimes() == round);
    }
    CHECK(runtime.terminate().books.balanced());
  }
  const Replay replay = tools::replay(tools::read_recording(files.file), alarms(), {});
  for (const std::string& difference : replay.differences) UNSCOPED_INFO(difference);
  CHECK(replay.same == 24);
  CHECK(replay.different() == 0);
}

TEST_CASE("an outcome that differs is named, with its message and the field") {
  const Files files;
  {
    Runtime runtime = Runtime::launch(probes(), recording_to(files.file));
    Client client = runtime.client();
    for (uint64_t n = 0; n < 3; ++n)
      CHECK(client.ask<ProbeRequest>(probe_at(n), asking(Action::ANSWER, n)).get());
    CHECK_FALSE(client.ask<ProbeRequest>(probe_at(3), asking(Action::FAIL, 4)).get());
  }
  Recording recording = tools::read_recording(files.file);
  std::vector<std::byte> changed;
  for (auto& event : recording.events) {
    auto* const outcome = std::get_if<RecordedOutcome>(&event);
    if (outcome == nullptr) continue;
    if (outcome->number == 1) {
      changed.assign(outcome->body.begin(), outcome->body.end());
      changed[8] = std::byte(77);  // the value of the response
      outcome->body = changed;
    }
    if (outcome->number == 2) outcome->status = Status::check_failed;
    if (outcome->number == 3) outcome->detail = 9;
  }
  Replay replay = tools::replay(recording, probes());
  CHECK(replay.same == 1);
  CHECK(replay.different() == 3);
  REQUIRE(replay.differences.size() == 3);
  CHECK(replay.differences[0] ==
        "message 1, ask of gyre_test::Probe 1, ProbeRequest (action = answer, argument = 1, filler = []): "
        "value recorded 77, replayed 3");
  CHECK_THAT(replay.differences[1], containing("ask of gyre_test::Probe 2, ProbeRequest"));
  CHECK_THAT(replay.differences[1], containing("recorded check_failed, replayed (value = 5, key = 2)"));
  CHECK_THAT(replay.differences[2], containing("recorded handler_failed (9), replayed handler_failed (4)"));
  ReplayOptions options;
  options.ignored = {"value"};
  options.most = 1;
  replay = tools::replay(recording, probes(), options);
  CHECK(replay.same == 2);
  CHECK(replay.differences.size() == 1);
}

TEST_CASE("outcomes that came from the run, and messages with buffers, are not compared") {
  const Files files;
  {
    detail::Recorder recorder(files.file);
    Options options;
    options.workers = 1;
    recorder.begin(builtin_actors(), options, "a device");
    capnp::MallocMessageBuilder message;
    auto request = message.initRoot<messages::VectorAddRequest>();
    request.setLength(1);
    request.initABuffer().setRuntime(77);
    request.initBBuffer().setRuntime(77);
    request.initResultBuffer().setRuntime(77);
    const Status statuses[] = {Status::timed_out, Status::cancelled, Status::timed_out, Status::expired,
                               Status::handler_failed};
    const uint16_t adder = builtin_actors()
                               .find(actor_id<actors::VectorAdd>, capnp::typeId<messages::VectorAddRequest>())
                               ->actor_type;
    uint64_t call = 0;
    for (const Status status : statuses) {
      record(recorder, ++call, adder, 2, message);
      recorder.outcome(call, status, 0);
    }
    recorder.end(INT64_MAX);
  }
  const Replay replay = tools::replay(tools::read_recording(files.file), builtin_actors());
  CHECK(replay.sent == 5);
  CHECK(replay.compared == 0);
  CHECK(replay.not_compared.at(Status::timed_out) == 2);
  CHECK(replay.not_compared.at(Status::cancelled) == 1);
  CHECK(replay.not_compared.at(Status::expired) == 1);
  CHECK(replay.without_buffers == 1);
}

TEST_CASE("actors begin anew in a replay where the recorded program launched its engine again") {
  const Files files;
  {
    detail::Recorder recorder(files.file);
    Options options;
    options.workers = 1;
    recorder.begin(counter_actors(), options, "a device");
    capnp::MallocMessageBuilder request;
    request.initRoot<Add>().setAmount(5);
    for (uint64_t n = 0; n < 4; ++n) {
      if (n == 2) recorder.relaunched();
      record(recorder, n + 1, 0, 3, request);
      capnp::MallocMessageBuilder message;
      auto sum = message.initRoot<Sum>();
      sum.setValue(100 + 5 * (n % 2 + 1));
      sum.setKey(3);
      sum.setStartedAt(100);
      sum.setGroup(1);
      const auto answer = message.getSegmentsForOutput()[0];
      recorder.answer(n + 1, answer.begin(), answer.size() * sizeof(capnp::word));
    }
    recorder.end(INT64_MAX);
  }
  const Recording recording = tools::read_recording(files.file);
  CHECK(std::count_if(recording.events.begin(), recording.events.end(), [](const auto& event) {
          return std::holds_alternative<RecordedRelaunch>(event);
        }) == 1);
  const Replay replay = tools::replay(recording, counter_actors());
  for (const std::string& difference : replay.differences) UNSCOPED_INFO(difference);
  CHECK(replay.same == 4);
}

TEST_CASE("what finds no room on its way to the file is dropped, counted, and said at the end") {
  const Files files;
  std::vector<std::string> lines;
  set_logger([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  {
    detail::Recorder recorder(files.file, 1024);
    for (uint64_t n = 0; n < 100; ++n)
      recorder.sent({detail::Recorder::Kind::tell, 0, n, 0, n, 0, 0, 0s, 0s}, 0, nullptr, 0);
    recorder.begin(probes(), Options(), "a device");  // its thread takes them from now on
    recorder.end(INT64_MAX);
  }
  set_logger({});
  const Recording recording = tools::read_recording(files.file);
  REQUIRE(recording.dropped);
  CHECK(recording.sent > 0);
  CHECK(recording.sent + *recording.dropped == 100);
  const auto sent = messages_of(recording);
  for (uint64_t n = 0; n < sent.size(); ++n) CHECK(sent[n].key == n);
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], containing("records found no room on their way to the file"));
}

TEST_CASE("a file that takes nothing more ends the recording, and not the program") {
  std::vector<std::string> lines;
  set_logger([&](LogLevel level, std::string_view line) {
    if (level == LogLevel::error) lines.emplace_back(line);
  });
  {
    Runtime runtime = Runtime::launch(probes(), recording_to("/dev/full"));
    Client client = runtime.client();
    for (int n = 0; n < 100; ++n)
      CHECK(client.ask<ProbeRequest>(probe_at(0), asking(Action::ANSWER, 1)).get());
    CHECK(runtime.terminate().books.balanced());
  }
  set_logger({});
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], containing("recording messages to /dev/full: writing: No space left on device"));
}

TEST_CASE("a file that cannot be made, or that another runtime records to, is refused at launch") {
  const Files files;
  const Runtime runtime = Runtime::launch(probes(), recording_to(files.file));
  CHECK_THROWS_WITH(Runtime::launch(probes(), recording_to(files.file)),
                    containing("another runtime records there"));
  CHECK_THROWS_WITH(Runtime::launch(probes(), recording_to("/nowhere/recording")),
                    containing("recording messages to /nowhere/recording: the file cannot be made"));
}

TEST_CASE("files that are no recording, of another version or damaged, are refused by name") {
  const Files files;
  {
    Runtime runtime = Runtime::launch(probes(), recording_to(files.file));
    Client client = runtime.client();
    for (int n = 0; n < 10; ++n)
      CHECK(client.ask<ProbeRequest>(probe_at(0), asking(Action::ANSWER, 1)).get());
  }
  const std::string whole = read_file(files.file);
  // Cut off anywhere it is what there is up to there.
  for (size_t bytes = whole.size() - 1; bytes > whole.size() / 2; bytes -= 97) {
    write_file(files.file, whole.substr(0, bytes));
    const Recording recording = tools::read_recording(files.file);
    CHECK_FALSE(recording.dropped);
    CHECK(recording.sent <= 10);
    CHECK(tools::replay(recording, probes()).different() == 0);
  }
  write_file(files.file, "Dear diary,\nnothing happened today, and nobody came. Tomorrow more.\n");
  CHECK_THROWS_WITH(tools::read_recording(files.file), containing("it does not begin as one"));
  write_file(files.file, "");
  CHECK_THROWS_WITH(tools::read_recording(files.file), containing("it does not begin as one"));
  CHECK_THROWS_WITH(tools::read_recording(files.file + "s"), containing("No such file"));
  for (size_t at = 0; at + 8 < whole.size(); at += 8) {
    std::string damaged = whole;
    damaged[at + at % 7] = char(damaged[at + at % 7] ^ 0x55);
    write_file(files.file, damaged);
    try {
      (void)tools::read_recording(files.file);
    } catch (const BadOptions&) {
    }
  }
  capnp::MallocMessageBuilder later;
  auto header = later.initRoot<messages::recording::Record>().initHeader();
  header.setVersion(2);
  header.setGyre("9.0.0");
  const auto words = capnp::messageToFlatArray(later);
  const auto bytes = words.asBytes();
  write_file(files.file, std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size()));
  CHECK_THROWS_WITH(tools::read_recording(files.file),
                    containing("it is of version 2, by Gyre 9.0.0, and this program reads version 1"));
}

TEST_CASE("a recording of other actors is refused, and each handler that is missing is named") {
  const Files files;
  { const Runtime runtime = Runtime::launch(counter_actors(), recording_to(files.file)); }
  CHECK_THROWS_WITH(tools::replay(tools::read_recording(files.file), probes()),
                    containing("these actors have no such handlers"));
  CHECK_THROWS_WITH(tools::replay(tools::read_recording(files.file), probes()),
                    containing("gyre_counters::Counter, message Add"));
}
