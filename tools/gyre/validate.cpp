// gyre validate: sends VectorAdd requests to running workers and checks every element of every response.
#include <fmt/format.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "against.hpp"
#include "bad_handles.hpp"
#include "bad_messages.hpp"
#include "common_options.hpp"
#include "subcommands.hpp"
#include "vectors.hpp"
#include "watching.hpp"

namespace gyre::tools {

namespace {

using messages::Operation;
using messages::VectorAddRequest;
using messages::VectorAddResponse;
using Clock = std::chrono::steady_clock;

constexpr Address<actors::VectorAdd> vector_add{};

struct ValidateSettings {
  Options options;
  std::string json_file;
  uint32_t random_messages = 100'000;
  AgainstSettings against;
  bool slots_given = false;
};

// One row.
struct Case {
  std::string name;
  size_t n = 0;
  std::string operation;
  std::string path = "inline";
  bool passed = false;
  bool skipped = false;  // this machine cannot; the remark says why
  uint64_t messages = 0;
  double send_ns = 0, receive_ns = 0, latency_ns = 0;  // medians over the case's messages
  std::string remark = {};
};

// The times of a case's messages, in nanoseconds.
struct Samples {
  std::vector<double> send, receive, latency;

  void add(Clock::time_point begin, Clock::time_point sent, Clock::time_point received) {
    const auto ns = [](auto duration) { return std::chrono::duration<double, std::nano>(duration).count(); };
    send.push_back(ns(sent - begin));
    receive.push_back(ns(received - sent));
    latency.push_back(ns(received - begin));
  }
  void add(const Samples& other) {
    send.insert(send.end(), other.send.begin(), other.send.end());
    receive.insert(receive.end(), other.receive.begin(), other.receive.end());
    latency.insert(latency.end(), other.latency.begin(), other.latency.end());
  }
  static double median(std::vector<double>& values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + ptrdiff_t(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }
  void summarise(Case& row) {
    row.messages = latency.size();
    row.send_ns = median(send);
    row.receive_ns = median(receive);
    row.latency_ns = median(latency);
  }
};

// All cases on one launched runtime.
class Validation {
 public:
  Validation(Runtime& runtime, const ValidateSettings& settings, std::FILE* out)
      : runtime_(runtime),
        client_(runtime.client()),
        settings_(settings),
        slots_(runtime.options().slots),
        small_(std::min<size_t>(10, largest_inline(client_.body_capacity()))),
        out_(out) {}

  std::vector<Case> run() {
    const size_t largest = largest_inline(client_.body_capacity());
    arena_bytes_ = client_.max_body_bytes();
    std::fprintf(out_, "\n  %-34s %6s %-9s %8s %8s %9s %9s %9s\n", "case", "n", "operation", "path",
                 "messages", "send us", "recv us", "total us");
    one("empty vector", 0, 2, Operation::ADD);
    one("single element", 1, 2, Operation::ADD);
    one("small vector", 10, 2, Operation::ADD);
    one("boundary vector", 25, 3, Operation::ADD);
    one("large vector", 100, 4, Operation::ADD);
    one("largest that fits a slot", largest, 5, Operation::ADD);
    one("one more than fits a slot", largest + 1, 5, Operation::ADD);
    one("8 Ki elements", 8192, 6, Operation::ADD);
    one("1 Mi elements", 1 << 20, 7, Operation::ADD);
    for (const Operation operation : {Operation::SUBTRACT, Operation::MULTIPLY, Operation::DIVIDE}) {
      one("boundary vector", 25, 3, operation);
      one("8 Ki elements", 8192, 6, operation);
    }
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::unified}) {
      for (const Operation operation :
           {Operation::ADD, Operation::SUBTRACT, Operation::MULTIPLY, Operation::DIVIDE}) {
        in_buffers("large vector", 100, 4, operation, kind);
      }
      in_buffers("1 Mi elements", 1 << 20, 7, Operation::ADD, kind);
    }
    for (const Operation operation :
         {Operation::ADD, Operation::SUBTRACT, Operation::MULTIPLY, Operation::DIVIDE}) {
      special_values(operation, largest);
    }
    three_laps();
    random_from_threads(largest);
    bad("truncated after each word", 25, [](const Client& client) { return send_truncated(client); });
    bad("bits flipped", 25, [&](const Client& client) {
      return send_bit_flipped(client, std::max(settings_.random_messages / 10, 100u), 25);
    });
    if (3 * request_bytes(8192) + 4096 <= arena_bytes_) {  // with room for whatever the reply may be
      bad("bits flipped", 8192, [](const Client& client) { return send_bit_flipped(client, 100, 8192); });
    }
    if (carries_handles()) {
      bad("bad handles of buffers", 20, [&](const Client&) { return send_bad_handles(runtime_, 20); });
    }
    bad("unknown message and actor types", 5, [](const Client& client) { return send_unknown(client); });
    return std::move(cases_);
  }
  /// Error replies that the bad messages got, as they must.
  uint64_t error_replies() const { return error_replies_; }

 private:
  // The reply is never larger than the request; --max-reply-bytes must not make it too large.
  static AskOptions room_for(const Vectors& vectors) {
    return {{}, uint32_t(request_bytes(vectors.a.size()))};
  }

  // Empty if the reply came and every element is right.
  std::string round_trip(const Vectors& vectors, Samples& samples) {
    const auto begin = Clock::now();
    auto future = client_.ask<VectorAddRequest>(
        vector_add, [&](VectorAddRequest::Builder request) { fill(vectors, request); }, room_for(vectors));
    const auto sent = Clock::now();
    const auto reply = future.get();
    const auto received = Clock::now();
    if (!reply) return reply.error().message();
    samples.add(begin, sent, received);
    return check(vectors, *reply.value());
  }

  void one(const std::string& name, size_t n, float factor, Operation operation) {
    if (interrupt_requested()) return;
    Case row{.name = name, .n = n, .operation = std::string(name_of(operation))};
    const Vectors vectors = ramp(n, factor, operation);
    const bool fits_slot = request_bytes(n) <= client_.body_capacity();
    if (!fits_slot) row.path = "arena";
    if (!fits_slot &&
        2 * request_bytes(n) + 2048 > arena_bytes_) {  // the request, its reply's room, units of 1 KiB
      must_be_refused(vectors, row);
    } else {
      Samples samples;
      finish(row, samples, round_trip(vectors, samples));
    }
    print(row);
  }

  bool carries_handles() const { return request_bytes_in_buffers() <= client_.max_body_bytes(); }

  // The elements lie in buffers, and the request carries their handles.
  void in_buffers(const std::string& name, size_t n, float factor, Operation operation, MemoryKind kind) {
    if (interrupt_requested()) return;
    Case row{.name = name,
             .n = n,
             .operation = std::string(name_of(operation)),
             .path = std::string(gyre::name(kind))};
    row.remark = carries_handles() ? runtime_.refusal(kind) : "no slot and no arena has room for the handles";
    row.skipped = !row.remark.empty();
    if (!row.skipped) {
      Samples samples;
      std::string wrong;
      try {
        wrong = round_trip_in_buffers(ramp(n, factor, operation), kind, samples);
      } catch (const Error& error) {
        wrong = error.what();
      }
      finish(row, samples, wrong);
    }
    print(row);
  }

  // Empty if the reply came and every element is right. The times are with copying in and out.
  std::string round_trip_in_buffers(const Vectors& vectors, MemoryKind kind, Samples& samples) {
    const size_t n = vectors.a.size();
    auto a = runtime_.allocate<float>(kind, n), b = runtime_.allocate<float>(kind, n),
         result = runtime_.allocate<float>(kind, n);
    result.write(std::vector<float>(n, -1));
    const auto begin = Clock::now();
    a.write(vectors.a);
    b.write(vectors.b);
    auto future = client_.ask<VectorAddRequest>(vector_add, [&](VectorAddRequest::Builder request) {
      request.setOperation(vectors.operation);
      request.setLength(n);
      a.set(request.initABuffer());
      b.set(request.initBBuffer());
      result.set(request.initResultBuffer());
    });
    const auto sent = Clock::now();
    const auto reply = future.get();
    if (!reply) return reply.error().message();
    std::vector<float> got(n);
    if (kind == MemoryKind::unified) {
      const auto view = result.view(settings_.options.timeout);
      if (!view) return view.error().message();
      got.assign(view.value().begin(), view.value().end());
    } else if (kind == MemoryKind::pinned) {
      const auto there = result.host();
      got.assign(there.begin(), there.end());
    } else {
      result.read(got);
    }
    samples.add(begin, sent, Clock::now());
    return check_in_buffer(vectors, *reply.value(), got);
  }

  // A request that does not fit must be refused by name, with its numbers, and nothing sent.
  void must_be_refused(const Vectors& vectors, Case& row) {
    const auto refused = client_.try_ask<VectorAddRequest>(
        vector_add, [&](VectorAddRequest::Builder r) { fill(vectors, r); }, room_for(vectors));
    row.passed = !refused && refused.error().status == Status::too_large;
    row.remark = refused ? "was accepted, and cannot fit" : refused.error().message();
  }

  void special_values(Operation operation, size_t largest) {
    if (interrupt_requested()) return;
    using Limits = std::numeric_limits<float>;
    const float values[] = {0.0f,
                            -0.0f,
                            1.0f,
                            -1.0f,
                            1.0f / 3,
                            Limits::max(),
                            Limits::min(),
                            Limits::denorm_min(),
                            -Limits::denorm_min(),
                            Limits::infinity(),
                            -Limits::infinity(),
                            Limits::quiet_NaN()};
    Case row{.name = "zeros, denormals, infinities, NaN",
             .n = largest,
             .operation = std::string(name_of(operation))};
    Samples samples;
    std::string wrong;
    Vectors pairs{operation, {}, {}};
    for (const float a : values) {
      for (const float b : values) {
        pairs.a.push_back(a);
        pairs.b.push_back(b);
        if (pairs.a.size() < largest) continue;
        if (wrong.empty()) wrong = round_trip(pairs, samples);
        pairs = Vectors{operation, {}, {}};
      }
    }
    if (!pairs.a.empty() && wrong.empty()) wrong = round_trip(pairs, samples);
    finish(row, samples, wrong);
    print(row);
  }

  void three_laps() {
    if (interrupt_requested()) return;
    Case row{.name = fmt::format("three laps of {} slots", slots_), .n = small_, .operation = "add"};
    Samples samples;
    std::string wrong;
    for (uint32_t i = 0; i < 3 * slots_ && wrong.empty() && !interrupt_requested(); ++i) {
      wrong = round_trip(ramp(small_, float(i), Operation::ADD), samples);
    }
    finish(row, samples, wrong);
    print(row);
  }

  void random_from_threads(size_t largest) {
    if (interrupt_requested()) return;
    constexpr uint32_t threads = 4;
    Case row{.name = "random sizes, 4 threads", .n = largest, .operation = "all"};
    Samples samples;
    std::string wrong;
    std::mutex mutex;
    std::vector<std::jthread> senders;
    for (uint32_t t = 0; t < threads; ++t) {
      const uint32_t share =
          settings_.random_messages / threads + (t < settings_.random_messages % threads ? 1 : 0);
      senders.emplace_back([&, t, share] {
        Samples own;
        const std::string own_wrong = random_messages(t, share, largest, own);
        const std::lock_guard lock(mutex);
        samples.add(own);
        if (wrong.empty()) wrong = own_wrong;
      });
    }
    senders.clear();
    if (wrong.empty() && samples.latency.size() != settings_.random_messages && !interrupt_requested()) {
      wrong =
          fmt::format("{} of {} messages were answered", samples.latency.size(), settings_.random_messages);
    }
    finish(row, samples, wrong);
    print(row);
  }

  // Messages that nobody should send.
  template <class Send>
  void bad(const std::string& name, size_t n, Send&& send) {
    if (interrupt_requested()) return;
    Case row{.name = name, .n = n, .operation = "-"};
    if (request_bytes(n) > client_.body_capacity()) row.path = "arena";
    const BadMessages bad = send(client_);
    row.messages = bad.sent + bad.good;
    row.passed = bad.wrong.empty();
    row.remark = bad.wrong;
    if (bad.wrong.empty()) {
      row.remark = fmt::format("{} bad: {} error replies, {} good after all; {} good between them", bad.sent,
                               bad.error_replies, bad.sent - bad.error_replies, bad.good);
    }
    error_replies_ += bad.error_replies;
    print(row);
  }

  // Some in flight at a time; each reply is checked against the request it belongs to.
  std::string random_messages(uint32_t seed, uint32_t count, size_t largest, Samples& samples) {
    struct InFlight {
      Vectors vectors;
      Clock::time_point begin, sent;
      Future<Reply<VectorAddResponse>> future;
    };
    std::mt19937 random(seed);
    std::deque<InFlight> in_flight;
    Client client = client_;
    const auto settle = [&]() -> std::string {
      InFlight oldest = std::move(in_flight.front());
      in_flight.pop_front();
      const auto reply = oldest.future.get();
      const auto received = Clock::now();
      if (!reply) return reply.error().message();
      samples.add(oldest.begin, oldest.sent, received);
      return check(oldest.vectors, *reply.value());
    };
    for (uint32_t i = 0; i < count && !interrupt_requested(); ++i) {
      const size_t n = random() % (largest + 1);
      Vectors vectors{Operation(random() % 4), std::vector<float>(n), std::vector<float>(n)};
      for (float& value : vectors.a) value = std::bit_cast<float>(uint32_t(random()));
      for (float& value : vectors.b) value = std::bit_cast<float>(uint32_t(random()));
      const auto begin = Clock::now();
      auto future = client.ask<VectorAddRequest>(
          vector_add, [&](VectorAddRequest::Builder request) { fill(vectors, request); }, room_for(vectors));
      const auto sent = Clock::now();
      in_flight.push_back({std::move(vectors), begin, sent, std::move(future)});
      if (in_flight.size() == 8) {
        if (std::string wrong = settle(); !wrong.empty()) return wrong;
      }
    }
    while (!in_flight.empty()) {
      if (std::string wrong = settle(); !wrong.empty()) return wrong;
    }
    return {};
  }

  static void finish(Case& row, Samples& samples, const std::string& wrong) {
    samples.summarise(row);
    row.passed = wrong.empty();
    row.remark = wrong;
  }

  void print(const Case& row) {
    std::fprintf(out_, "%s %-34s %6zu %-9s %8s %8llu %9.2f %9.2f %9.2f%s%s\n",
                 row.passed    ? "✓"
                 : row.skipped ? "–"
                               : "✗",
                 row.name.c_str(), row.n, row.operation.c_str(), row.path.c_str(),
                 static_cast<unsigned long long>(row.messages), row.send_ns * 1e-3, row.receive_ns * 1e-3,
                 row.latency_ns * 1e-3, row.remark.empty() ? "" : "  ", row.remark.c_str());
    std::fflush(out_);
    cases_.push_back(row);
  }

  Runtime& runtime_;
  Client client_;
  const ValidateSettings& settings_;
  const uint32_t slots_;
  const size_t small_;  // elements, where any number will do
  std::FILE* out_;
  uint64_t arena_bytes_ = 0;
  uint64_t error_replies_ = 0;
  std::vector<Case> cases_;
};

// What one launch contributes to the report.
struct LaunchReport {
  std::string engine, device, transport;
  Options options;
  uint64_t region_bytes = 0;
  Timings timings;
  double first_reply_ms = 0;
  Termination termination;
  std::vector<Case> cases;
  bool interrupted = false;
};

// Drains in short steps, so that an interrupt is not kept waiting. Empty if all is done.
std::string drain(Runtime& runtime) {
  const auto deadline = Clock::now() + runtime.options().timeout;
  for (;;) {
    const auto drained = runtime.drain(std::chrono::milliseconds(100));
    if (drained) return {};
    if (drained.error().status != Status::worker_stuck || Clock::now() > deadline)
      return drained.error().message();
    if (interrupt_requested()) return "interrupted";
  }
}

LaunchReport validate_one_launch(const ValidateSettings& settings, const Options& options, std::FILE* out) {
  const auto step = [out](const std::string& text) {
    std::fprintf(out, "✓ %s\n", text.c_str());
    std::fflush(out);
  };
  const auto begin = Clock::now();
  Runtime runtime = Runtime::launch(builtin_actors(), options);
  const auto metrics = serve_metrics(runtime);
  LaunchReport report;
  report.engine = std::string(name(runtime.engine()));
  report.device = runtime.device_name();
  report.transport = std::string(name(runtime.transport()));
  report.options = options;
  report.region_bytes = runtime.region_bytes();
  report.timings = runtime.timings();
  step(fmt::format("engine {} on {}, transport {}{}", report.engine, report.device, report.transport,
                   runtime.transport_reason().empty() ? "" : "; bar: no, " + runtime.transport_reason()));
  if (runtime.engine() == EngineKind::cuda)
    step(fmt::format("actors {} in {:.1f} ms", how_compiled(report.timings), report.timings.compile_ms));
  step(fmt::format(
      "launched {} worker{}: rings of {} slots of {} bytes ({} body bytes), region {} bytes, {:.1f} ms",
      options.workers, options.workers == 1 ? "" : "s", options.slots, options.slot_bytes,
      options.ring_shape().body_capacity(), report.region_bytes, report.timings.launch_ms));

  {  // the reply keeps its room in the arena while it lives
    Client client = runtime.client();
    const Vectors hello = ramp(1, 2, Operation::ADD);
    const auto first =
        client.ask<VectorAddRequest>(vector_add, [&](VectorAddRequest::Builder r) { fill(hello, r); }).get();
    report.first_reply_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    if (!first)
      throw Error("waiting for the first reply: " + first.error().message() + "\n" + runtime.failure());
    if (const std::string wrong = check(hello, *first.value()); !wrong.empty())
      throw Error("the first reply: " + wrong);
  }
  step(fmt::format("first reply, checked, {:.1f} ms after the start", report.first_reply_ms));

  Validation validation(runtime, settings, out);
  report.cases = validation.run();
  std::fprintf(out, "\n");

  Case books{.name = "drained, books balanced", .operation = "-", .path = "-"};
  books.remark = drain(runtime);
  report.interrupted = interrupt_requested();
  report.termination = runtime.terminate(options.timeout);
  const Books& b = report.termination.books;
  if (books.remark.empty() && !b.balanced()) books.remark = "the books do not balance";
  if (books.remark.empty() && (b.asks.error_replies != validation.error_replies() ||
                               b.asks.answered + b.asks.error_replies != b.asks.accepted)) {
    books.remark =
        fmt::format("of {} asks {} were answered, and {} got error replies where {} had to", b.asks.accepted,
                    b.asks.answered, b.asks.error_replies, validation.error_replies());
  }
  if (report.termination.worker_stuck) books.remark = "a worker did not stop";
  if (books.remark.empty() && !runtime.ledger().empty()) books.remark = "memory of buffers is left";
  books.passed = books.remark.empty();
  if (books.passed) {
    step("drained");
    step(fmt::format("terminated in {:.2f} ms, uptime {:.2f} s", report.termination.terminate_ms,
                     report.termination.uptime_s));
  } else {
    std::fprintf(out, "✗ ending: %s %s\n", books.remark.c_str(), runtime.failure().c_str());
  }
  report.cases.push_back(books);
  return report;
}

Json to_json(const std::vector<LaunchReport>& launches) {
  const LaunchReport& first = launches.front();
  Json cases = Json::array(), runs = Json::array();
  uint64_t passed = 0, failed = 0, skipped = 0;
  Books total;
  double uptime_s = 0;
  for (const LaunchReport& launch : launches) {
    for (const Case& row : launch.cases) {
      ++(row.passed ? passed : row.skipped ? skipped : failed);
      Json entry = {{"name", row.name},
                    {"n", row.n},
                    {"operation", row.operation},
                    {"path", row.path},
                    {"passed", row.passed},
                    {"skipped", row.skipped},
                    {"messages", row.messages},
                    {"send_ns", row.send_ns},
                    {"receive_ns", row.receive_ns},
                    {"latency_ns", row.latency_ns},
                    {"slots", launch.options.slots}};
      if (!row.remark.empty()) entry["remark"] = row.remark;
      cases.push_back(entry);
    }
    const Books& books = launch.termination.books;
    total.asks.accepted += books.asks.accepted;
    total.asks.answered += books.asks.answered;
    total.asks.error_replies += books.asks.error_replies;
    total.asks.timed_out += books.asks.timed_out;
    total.asks.dead_letters += books.asks.dead_letters;
    total.asks.late_replies += books.asks.late_replies;
    total.tells.accepted += books.tells.accepted;
    total.tells.processed += books.tells.processed;
    total.tells.dead_letters += books.tells.dead_letters;
    uptime_s += launch.termination.uptime_s;
    runs.push_back({{"slots", launch.options.slots},
                    {"slot_bytes", launch.options.slot_bytes},
                    {"region_bytes", launch.region_bytes},
                    {"uptime_s", launch.termination.uptime_s},
                    {"terminate_ms", launch.termination.terminate_ms}});
  }
  return {{"engine", first.engine},
          {"device", first.device},
          {"transport", first.transport},
          {"workers", first.options.workers},
          {"region_bytes", first.region_bytes},
          {"uptime_s", uptime_s},
          {"timings",
           {{"compile_ms", first.timings.compile_ms},
            {"compiled_from_cache", first.timings.compiled_from_cache},
            {"compiled_ahead", first.timings.compiled_ahead},
            {"launch_ms", first.timings.launch_ms},
            {"first_reply_ms", first.first_reply_ms},
            {"terminate_ms", first.termination.terminate_ms}}},
          {"cases", cases},
          {"passed", passed},
          {"failed", failed},
          {"skipped", skipped},
          {"asks",
           {{"accepted", total.asks.accepted},
            {"answered", total.asks.answered},
            {"error_replies", total.asks.error_replies},
            {"timed_out", total.asks.timed_out},
            {"dead_letters", total.asks.dead_letters},
            {"late_replies", total.asks.late_replies}}},
          {"tells",
           {{"accepted", total.tells.accepted},
            {"processed", total.tells.processed},
            {"dead_letters", total.tells.dead_letters}}},
          {"launches", runs}};
}

int validate(const ValidateSettings& settings) {
  const AgainstSettings& against = settings.against;
  if (!against.engine.empty() || !against.library.empty()) {
    return run_against(against, settings.options, settings.json_file,
                       settings.json_file == "-" ? stderr : stdout);
  }
  if (!against.actors.file.empty()) {
    throw BadOptions(
        fmt::format("--actors {}: say what to do with them: --against cpu, or --build-library FILE",
                    against.actors.file));
  }
  if (settings.options.problems().empty() &&
      largest_inline(settings.options.ring_shape().body_capacity()) == 0) {
    throw BadOptions(fmt::format(
        "validating with --slot-bytes {}: a request of one element needs {} body bytes, and a "
        "slot carries {}; use --slot-bytes 192 or more",
        settings.options.slot_bytes, request_bytes(1), settings.options.ring_shape().body_capacity()));
  }
  catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  std::vector<uint32_t> slots = {settings.options.slots};
  if (!settings.slots_given) slots = {256, 4096};

  std::vector<LaunchReport> launches;
  for (const uint32_t count : slots) {
    if (interrupt_requested()) break;
    Options options = settings.options;
    options.slots = count;
    if (!launches.empty()) std::fprintf(out, "\n");
    launches.push_back(validate_one_launch(settings, options, out));
    if (launches.back().interrupted) break;
  }
  if (launches.empty()) {
    fmt::print(out, "interrupted: no case ran\n");
    return interrupted;
  }

  const Json document = to_json(launches);
  const auto& asks = document["asks"];
  const auto& tells = document["tells"];
  fmt::print(out, "\n{} passed, {} failed, {} skipped; uptime {:.2f} s\n", document["passed"].as_uint64(),
             document["failed"].as_uint64(), document["skipped"].as_uint64(),
             document["uptime_s"].as_double());
  fmt::print(out,
             "asks: {} accepted = {} answered + {} error replies + {} timed out + {} dead letters; {} late "
             "replies\n",
             asks["accepted"].as_uint64(), asks["answered"].as_uint64(), asks["error_replies"].as_uint64(),
             asks["timed_out"].as_uint64(), asks["dead_letters"].as_uint64(),
             asks["late_replies"].as_uint64());
  fmt::print(out, "tells: {} accepted = {} processed + {} dead letters\n", tells["accepted"].as_uint64(),
             tells["processed"].as_uint64(), tells["dead_letters"].as_uint64());
  write_json(settings.json_file, document);
  if (launches.back().interrupted || launches.size() != slots.size()) {
    fmt::print(out, "interrupted: not all cases ran\n");
    return interrupted;
  }
  return document["failed"].as_uint64() == 0 ? all_passed : case_failed;
}

}  // namespace

void add_validate(ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<ValidateSettings>();
  const ProgramCommand command = app.add_subcommand(
      "validate",
      "Send VectorAdd requests to running workers and check every element of every response; or compare "
      "actors of your own on two engines.");
  add_common_options(command, settings->options, settings->json_file);
  command.add_option("--messages", settings->random_messages, "messages of the random case").show_default();
  add_against_options(command, settings->against);
  command.footer(
      "Without --slots it runs twice, with rings of 256 and of 4096 slots.\n"
      "  gyre validate --against cpu --actors counter.hpp --types my::Counter --schema counter.capnp\n"
      "compiles the actors for both engines (--engine cuda unless another is named) and sends them random "
      "messages;\n"
      "  gyre validate --build-library counter.so --actors counter.hpp --types my::Counter --schema "
      "counter.capnp\n"
      "makes a file for machines without compilers: gyre validate --against cpu --actors counter.so.\n"
      "  gyre validate --engine cpu --against cpu --actors new.hpp --other old.hpp … compares two versions.\n"
      "Exit: 0 all passed or the same, 1 a case failed or a difference, 2 bad usage, 3 engine not available "
      "here.");
  command.when_chosen([settings, command, &chosen] {
    settings->slots_given = command.count("--slots") != 0;
    chosen = [settings] { return validate(*settings); };
  });
}

}  // namespace gyre::tools
