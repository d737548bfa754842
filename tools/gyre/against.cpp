#include "against.hpp"

#include <capnp/serialize.h>
#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/actors/actor_library.hpp>
#include <gyre/runtime/actors/actor_schemas.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>

#include "common_options.hpp"

namespace gyre::tools {

namespace {

using Clock = std::chrono::steady_clock;

// A reply, or why there is none.
struct Outcome {
  Failure failure;
  kj::Array<capnp::word> body;
  double us = 0;
};

Outcome ask(const Client& client, const Handler& handler, const TestMessage& message) {
  const auto begin = Clock::now();
  auto future = Client(client).ask_by_number(handler.actor_type, handler.message_type, message.key,
                                             Encoded{message.stream, Encoding::stream});
  const auto reply = future.get();
  Outcome outcome;
  outcome.us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  if (!reply) {
    outcome.failure = reply.error();
    return outcome;
  }
  const std::span<const std::byte> body = reply.value().body();
  outcome.body = kj::heapArray<capnp::word>(body.size() / sizeof(capnp::word));
  std::memcpy(outcome.body.begin(), body.data(), outcome.body.size() * sizeof(capnp::word));
  return outcome;
}

double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The handler with the same number and the same messages.
const Handler& same_handler(const ActorSet& actors, const Handler& handler, const MessageSchemas& schemas) {
  for (const Handler& other : actors.handlers()) {
    if (other.actor_type == handler.actor_type && other.request == handler.request &&
        other.response == handler.response) {
      return other;
    }
  }
  throw BadOptions(
      fmt::format("comparing actors: of those to compare with, actor {} does not answer {} by {}; name "
                  "actors of the same "
                  "messages, in the same order",
                  handler.actor_type, schemas.name_of(handler.request), schemas.name_of(handler.response)));
}

// A name that no field of a reply has is a misspelt one: ignoring it would compare what was to be ignored.
void check_ignored(const std::vector<std::string>& ignored, const ActorSet& actors,
                   const MessageSchemas& schemas) {
  if (ignored.empty()) return;
  std::vector<capnp::StructSchema> replies;
  for (const Handler& handler : actors.handlers()) {
    if (handler.response != 0) replies.push_back(schemas.of(handler.response));
  }
  std::set<std::string> names;
  for (const auto& [id, schema] : schemas_below(replies)) {
    if (!schema.getProto().isStruct()) continue;
    for (const auto field : schema.asStruct().getFields()) names.insert(field.getProto().getName().cStr());
  }
  for (const std::string& name : ignored) {
    if (names.count(name) != 0) continue;
    throw BadOptions(fmt::format("--ignore {}: no reply has a field of that name; replies have {}", name,
                                 fmt::join(names, ", ")));
  }
}

// Answered, or how not: what must be the same on both sides. Lines and numbers of a failure may differ.
std::string what_became(const Outcome& outcome) {
  return outcome.failure.status == Status::ok ? "answered" : std::string(name(outcome.failure.status));
}

void print_largest(std::FILE* out, const char* what, const std::optional<Largest>& largest) {
  if (!largest) return;
  fmt::print(out, "  largest {:<9} {:<12.6g} message {}, {}: {} and {}\n", what, largest->value,
             largest->where.message, largest->where.path, largest->where.tested, largest->where.reference);
}

Json to_json(const std::optional<Difference>& difference) {
  if (!difference) return nullptr;
  return {{"message", difference->message},
          {"path", difference->path},
          {"tested", difference->tested},
          {"reference", difference->reference}};
}
Json to_json(const std::optional<Largest>& largest) {
  if (!largest) return nullptr;
  Json document = to_json(std::optional(largest->where));
  document["value"] = largest->value;
  return document;
}

std::string described(const Runtime& runtime) {
  const std::string device = runtime.engine() == EngineKind::cuda
                                 ? fmt::format(" ({}, {})", runtime.device_name(), name(runtime.transport()))
                                 : "";
  return std::string(name(runtime.engine())) + device;
}

}  // namespace

void add_against_options(ProgramCommand command, AgainstSettings& settings) {
  const std::string group = "Actors of a file, the same messages to two engines, every reply compared";
  const auto ours = [&group](CommandOption option) { return option.group(group); };
  const CommandOption against =
      ours(command.add_option("--against", settings.engine, "compare with this engine: cpu"));
  against.one_of({"cpu"}).type_name("ENGINE");
  add_actor_file_options(command, settings.actors,
                         "header that defines the actors, or a library of them (.so)", group);
  ours(command.add_option("--other", settings.other,
                          "actors to compare with, header or library (default: the same)"))
      .type_name("FILE");
  ours(command.add_option("--other-types", settings.other_types, "their names (default: --types)"))
      .type_name("NAMES");
  ours(command.add_option("--build-library", settings.library,
                          "make a library of the actors for both engines, for machines without compilers"))
      .type_name("FILE");
  ours(command.add_option(
           "--architecture", settings.architectures,
           "compile the library's actors ahead for this compute capability, 90 for 9.0, and --block "
           "threads; repeatable"))
      .type_name("NUMBER")
      .one_value_each();
  ours(command.add_flag("--grid-scoped", settings.grid_scoped, "on CUDA one worker is the whole grid"));
  ours(command.add_option("--atol", settings.tolerance.absolute,
                          "absolute difference of floating point numbers to let pass"))
      .show_default()
      .not_negative();
  ours(command.add_option("--rtol", settings.tolerance.relative,
                          "relative difference to let pass, as a fraction of the CPU's number"))
      .show_default()
      .not_negative();
  ours(command.add_option("--ignore", settings.ignored, "field not to compare, by its name; repeatable"))
      .type_name("FIELD")
      .one_value_each();
  ours(command.add_option("--messages-file", settings.source.file,
                          "send these: Cap'n Proto messages one behind the other, or JSON, one a line"))
      .type_name("FILE");
  ours(command.add_option("--request", settings.source.request, "send messages of this name only"))
      .type_name("NAME");
  ours(command.add_option("--random", settings.source.count, "send so many random messages"))
      .show_default()
      .positive();
  ours(command.add_option("--seed", settings.source.seed, "of the random messages")).show_default();
  ours(command.add_option("--list-length", settings.source.values.longest_list,
                          "longest list in a random message; all lists of one have one length"))
      .show_default();
  ours(command.add_flag(
      "--any-bits", [&settings] { settings.source.values.ordinary = false; },
      "random values of any bits and lists of any lengths (default: floats in [-1, 1), integers below 100)"));
  ours(command.add_option("--keys", settings.source.keys, "number of keys: message n goes to key n mod this"))
      .show_default()
      .positive();
}

EngineComparison compare_engines(Runtime& tested, Runtime& reference, const ActorSet& reference_actors,
                                 const std::vector<TestMessage>& messages, const MessageSchemas& schemas,
                                 const AgainstSettings& settings) {
  EngineComparison result{
      Comparison(settings.tolerance, {settings.ignored.begin(), settings.ignored.end()}), 0, 0, 0, {}, 0, 0};
  const Client ours = tested.client(), theirs = reference.client();
  std::vector<double> tested_us, reference_us;
  for (const TestMessage& message : messages) {
    if (interrupt_requested()) break;
    const uint64_t number = result.messages++;
    const Outcome a = ask(ours, *message.handler, message);
    const Outcome b = ask(theirs, same_handler(reference_actors, *message.handler, schemas), message);
    tested_us.push_back(a.us);
    reference_us.push_back(b.us);
    if (a.failure.status != b.failure.status) {
      result.comparison.add_difference(number, "the outcome", what_became(a), what_became(b));
      const Status status = a.failure.status;
      if (status == Status::engine_failed || status == Status::terminated) break;  // nothing more will come
      continue;
    }
    if (a.failure.status != Status::ok) {
      if (result.error_replies++ == 0) result.first_failure = a.failure.message();
      ++result.same;
      continue;
    }
    const capnp::StructSchema schema = schemas.of(message.handler->response);
    const auto root = [&schema](capnp::SegmentArrayMessageReader& reader) {
      return reader.getRoot<capnp::DynamicStruct>(schema);
    };
    const kj::ArrayPtr<const capnp::word> tested_segment = a.body, reference_segment = b.body;
    capnp::SegmentArrayMessageReader x(kj::arrayPtr(&tested_segment, 1)),
        y(kj::arrayPtr(&reference_segment, 1));
    result.same += result.comparison.add(number, root(x), root(y)) ? 1 : 0;
  }
  result.tested_us = median(tested_us);
  result.reference_us = median(reference_us);
  return result;
}

int run_against(const AgainstSettings& settings, const Options& options, const std::string& json_file,
                std::FILE* out) {
  if (settings.actors.file.empty()) {
    throw BadOptions("--against and --build-library need actors: --actors FILE --types \"my::Counter\"");
  }
  if (!settings.library.empty()) {
    build_actor_library(read_actor_text(settings.actors), settings.library,
                        {settings.architectures, options.block});
    const bool on_cpu = load_actor_library(settings.library).make_worker != nullptr;
    fmt::print(out, "✓ made {} for {}\n", settings.library,
               on_cpu ? "both engines" : "the CUDA engine alone (cuda_only)");
    if (settings.engine.empty()) return all_passed;
  }
  catch_interrupts();
  Options tested_options = options;
  if (options.engine == EngineKind::automatic) tested_options.engine = EngineKind::cuda;
  Options reference_options = options;
  reference_options.engine = EngineKind::cpu;
  reference_options.transport = TransportKind::automatic;
  reference_options.workers = 1;
  reference_options.record.clear();  // the tested engine's
  reference_options.actors_per_worker = options.actors_per_worker * options.workers;

  ActorFileOptions of_actors = settings.actors;
  if (!settings.library.empty()) of_actors.file = settings.library;
  const ActorsOfFile actors = build_and_load_actors(of_actors);
  ActorsOfFile other = actors;
  if (!settings.other.empty()) {
    ActorFileOptions of_other = settings.actors;
    of_other.file = settings.other;
    if (!settings.other_types.empty()) of_other.types = settings.other_types;
    other = build_and_load_actors(of_other);
  }
  const MessageSchemas schemas(actors.schemas);
  check_ignored(settings.ignored, actors.actors, schemas);
  const std::vector<TestMessage> messages = make_messages(actors.actors, schemas, settings.source);
  Runtime tested =
      Runtime::launch(settings.grid_scoped ? actors.actors.grid_scoped() : actors.actors, tested_options);
  Runtime reference = Runtime::launch(other.actors, reference_options);
  fmt::print(out, "✓ {} on {} against {} on {}\n", actors.actors.type_list(), described(tested),
             settings.other.empty() ? "the same" : settings.other, described(reference));
  std::fflush(out);
  const EngineComparison result =
      compare_engines(tested, reference, other.actors, messages, schemas, settings);
  const std::string failure = tested.failure();
  const bool balanced = tested.terminate(options.timeout).books.balanced();
  const bool interrupted_early = interrupt_requested();
  const Comparison& comparison = result.comparison;
  const bool equal = comparison.differences() == 0 && result.messages == messages.size() && balanced;

  fmt::print(
      out, "{} {} messages ({}, {} key{}): {} answered alike, {} not\n", equal ? "✓" : "✗", result.messages,
      settings.source.file.empty() ? fmt::format("random, seed {}", settings.source.seed)
                                   : settings.source.file,
      settings.source.keys, settings.source.keys == 1 ? "" : "s", result.same, result.messages - result.same);
  if (result.error_replies != 0) {
    fmt::print(out, "  {} of them by the same failure, the first: {}\n", result.error_replies,
               result.first_failure);
  }
  fmt::print(out,
             "  {} floating point numbers compared, {} not equal; {} values beyond --atol {:g} --rtol {:g}\n",
             comparison.floats(), comparison.inexact(), comparison.differences(), settings.tolerance.absolute,
             settings.tolerance.relative);
  print_largest(out, "absolute", comparison.absolute());
  print_largest(out, "relative", comparison.relative());
  print_largest(out, "ULP", comparison.ulps());
  if (const auto& first = comparison.first()) {
    fmt::print(out, "  first difference: message {}, {}: {} on {}, {} on {}\n", first->message, first->path,
               first->tested, name(tested.engine()), first->reference,
               settings.other.empty() ? std::string(name(reference.engine())) : settings.other);
  }
  if (!failure.empty()) fmt::print(out, "  the engine failed: {}\n", failure);
  if (!balanced) fmt::print(out, "  the books do not balance\n");
  fmt::print(out, "  median round trip: {:.1f} us on {}, {:.1f} us on {}\n", result.tested_us,
             name(tested.engine()), result.reference_us,
             settings.other.empty() ? std::string(name(reference.engine())) : settings.other);
  write_json(json_file, {{"actors", actors.actors.type_list()},
                         {"tested", described(tested)},
                         {"reference", described(reference)},
                         {"other", settings.other},
                         {"equal", equal},
                         {"messages", result.messages},
                         {"alike", result.same},
                         {"error_replies", result.error_replies},
                         {"floats", comparison.floats()},
                         {"inexact", comparison.inexact()},
                         {"differences", comparison.differences()},
                         {"first_difference", to_json(comparison.first())},
                         {"largest_absolute", to_json(comparison.absolute())},
                         {"largest_relative", to_json(comparison.relative())},
                         {"largest_ulp", to_json(comparison.ulps())},
                         {"atol", settings.tolerance.absolute},
                         {"rtol", settings.tolerance.relative},
                         {"seed", settings.source.seed},
                         {"tested_us", result.tested_us},
                         {"reference_us", result.reference_us}});
  if (interrupted_early) return interrupted;
  return equal ? all_passed : case_failed;
}

}  // namespace gyre::tools
