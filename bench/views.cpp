// gyre-bench views: what reading and writing a message in place costs, beside plain structs and the official
// library.
#include <capnp/message.h>
#include <fmt/format.h>
#include <gyre/gyre.hpp>
#include <gyre/messages/vector_add.official.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <cstring>
#include <vector>

#include "common_options.hpp"
#include "machine.hpp"
#include "measure.hpp"
#include "subcommands.hpp"
#include "views_work.hpp"

#if defined(GYRE_WITH_CUDA)
#include "baselines/views_on_gpu.hpp"
#endif

namespace gyre::bench {

namespace {

using messages::VectorAddRequest;
using messages::VectorAddResponse;
using Words = std::vector<uint64_t>;

struct ViewsSettings {
  Options options;
  uint32_t messages = 100'000;
  std::string json_file;
};

struct ViewsRow {
  std::string name;
  std::string unit;  // "ns" or "cycles"
  Summary summary;
  std::string remark = {};
};

float element(uint32_t i) { return float(i) * 0.5f + 1; }

// A message is shorter than the clock's step: so many are timed together, and each sample is their mean.
constexpr uint32_t batch = 64;
constexpr size_t response_words = 128;

void build_officially(capnp::MessageBuilder& message) {
  auto request = message.initRoot<VectorAddRequest>();
  auto a = request.initA(views_elements);
  for (uint32_t i = 0; i < views_elements; ++i) a.set(i, element(i));
}

Words request_body() {
  capnp::MallocMessageBuilder message;
  build_officially(message);
  const auto segment = message.getSegmentsForOutput()[0];
  const auto* const words = reinterpret_cast<const uint64_t*>(segment.begin());
  return {words, words + segment.size()};
}

Words plain_request() {
  PlainRequest request{0, views_elements, {}};
  for (uint32_t i = 0; i < views_elements; ++i) request.a[i] = element(i);
  Words words((sizeof request + 7) / 8);
  std::memcpy(words.data(), &request, sizeof request);
  return words;
}

// Throws unless the last response holds what was asked for.
void check(ViewsWork work, const Words& response, const std::string& row) {
  bool right = true;
  if (work == ViewsWork::plain_struct) {
    PlainResponse plain;
    std::memcpy(&plain, response.data(), sizeof plain);
    right = plain.success == 1 && plain.size == views_elements;
    for (uint32_t i = 0; i < views_elements && right; ++i) right = plain.result[i] == element(i);
  } else {
    SegmentReader reader(reinterpret_cast<const capnp::word*>(response.data()), response.size());
    const auto read = reader.getRoot<VectorAddResponse>();
    const auto result = read.getResult();
    right = read.getSuccess() && result.size() == views_elements;
    for (uint32_t i = 0; i < result.size() && right; ++i) right = result[i] == element(i);
  }
  if (!right) throw Error("timing " + row + ": its response is wrong; please report it");
}

// Mean nanoseconds of each batch of `one()`.
template <class One>
std::vector<uint64_t> time_batches(uint32_t messages, One&& one) {
  using Clock = std::chrono::steady_clock;
  std::vector<uint64_t> samples;
  const uint32_t batches = messages / batch + 1;
  for (uint32_t i = 0; i < batches + batches / 10 && !tools::interrupt_requested(); ++i) {
    const auto begin = Clock::now();
    for (uint32_t k = 0; k < batch; ++k) one();
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / batch;
    if (i >= batches / 10) samples.push_back(uint64_t(ns * 100));  // hundredths: a message takes a few ns
  }
  return samples;
}

template <ViewsWork work>
ViewsRow on_cpu(const std::string& name, uint32_t messages, const Words& request) {
  alignas(16) uint64_t response[response_words] = {};
  WorkerShared shared{};
  const Context ctx(0, true, shared);
  ViewsRow row{name, "ns", {}, fmt::format("means of {} messages", batch)};
  uint32_t dirty = sizeof response;
  row.summary = summarise(time_batches(messages, [&] {
    std::memset(response, 0, dirty);
    dirty = do_views_work<work>(ctx, request.data(), uint32_t(request.size() * 8), response, sizeof response);
    asm volatile("" : : "r"(response), "r"(request.data()) : "memory");
  }));
  check(work, Words(response, response + response_words), name);
  return row;
}

ViewsRow building_officially(uint32_t messages) {
  std::vector<capnp::word> memory(1024);
  std::memset(static_cast<void*>(memory.data()), 0, memory.size() * sizeof(capnp::word));
  ViewsRow row{"official build", "ns", {}, "the request, by the official library in place, and zeroed again"};
  row.summary = summarise(time_batches(messages, [&] {
    capnp::MallocMessageBuilder message(kj::arrayPtr(memory.data(), memory.size()));
    build_officially(message);
    asm volatile("" : : "r"(memory.data()) : "memory");
  }));  // the builder zeroes what it used
  return row;
}

double ratio(const ViewsRow& row, const ViewsRow& to) {
  return to.summary.p50_ns == 0 ? 0 : double(row.summary.p50_ns) / double(to.summary.p50_ns);
}

int views(const ViewsSettings& settings) {
  tools::catch_interrupts();
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  Runtime runtime = Runtime::launch(builtin_actors(), settings.options);
  const Machine machine = describe_machine(runtime);
  runtime.terminate();
  const Words body = request_body(), plain = plain_request();
  std::vector<ViewsRow> rows;
  rows.push_back(on_cpu<ViewsWork::plain_struct>("plain struct", settings.messages, plain));
  rows.push_back(on_cpu<ViewsWork::views>("views", settings.messages, body));
  rows.push_back(building_officially(settings.messages));
#if defined(GYRE_WITH_CUDA)
  if (machine.engine == EngineKind::cuda) {
    const auto on_gpu = [&](const std::string& name, ViewsWork work, const Words& request) {
      Words response;
      auto cycles = views_cycles(settings.options.device, work == ViewsWork::views, settings.messages,
                                 request, response);
      check(work, response, name);
      rows.push_back({name, "cycles", summarise(std::move(cycles)), "one warp, messages in shared memory"});
    };
    on_gpu("plain struct on GPU", ViewsWork::plain_struct, plain);
    on_gpu("views on GPU", ViewsWork::views, body);
  }
#endif
  if (tools::interrupt_requested()) return tools::interrupted;

  print(out, machine);
  fmt::print(
      out,
      "a list of {} floats read from one message and written to another, {} messages a row\nnot measured: "
      "rings, workers, clients; the CPU rows hold the zeroing of the response\n\n{:<22} {:>9} {:>9} {:>9} "
      "{:<7} "
      "{:>17}\n",
      views_elements, settings.messages, "row", "p50", "p99", "p99.9", "unit", "p50/plain struct");
  tools::Json json_rows = tools::Json::array();
  const ViewsRow* reference = nullptr;
  for (const ViewsRow& row : rows) {
    if (row.name.starts_with("plain struct")) reference = &row;
    const double scale = row.unit == "ns" ? 0.01 : 1;
    const auto value = [scale](uint64_t sample) { return double(sample) * scale; };
    fmt::print(out, "{:<22} {:>9.2f} {:>9.2f} {:>9.2f} {:<7} {:>17.2f}  {}\n", row.name,
               value(row.summary.p50_ns), value(row.summary.p99_ns), value(row.summary.p999_ns), row.unit,
               ratio(row, *reference), row.remark);
    json_rows.push_back({{"name", row.name},
                         {"unit", row.unit},
                         {"p50", value(row.summary.p50_ns)},
                         {"p99", value(row.summary.p99_ns)},
                         {"p999", value(row.summary.p999_ns)},
                         {"samples", row.summary.messages},
                         {"p50_ratio", ratio(row, *reference)},
                         {"remark", row.remark}});
  }
  tools::write_json(settings.json_file, {{"benchmark", "views"},
                                         {"machine", to_json(machine)},
                                         {"elements", views_elements},
                                         {"rows", json_rows}});
  return tools::all_passed;
}

}  // namespace

void add_views(tools::ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<ViewsSettings>();
  const tools::ProgramCommand command = app.add_subcommand(
      "views",
      "What reading and writing a message in place costs, beside plain structs and the official library.");
  tools::add_common_options(command, settings->options, settings->json_file);
  command.add_option("--messages", settings->messages, "messages a row; on the CPU a tenth more warm up")
      .range(1u, 10'000'000u)
      .type_name("N")
      .show_default();
  command.footer(
      "Exit: 0 every response right, 1 one wrong, 2 bad usage, 3 engine not available here, 130 "
      "interrupted.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return views(*settings); }; });
}

}  // namespace gyre::bench
