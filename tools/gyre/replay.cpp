// gyre replay: sends the messages of a recording to actors again, and compares what they answer.
#include <fmt/format.h>
#include <gyre/runtime/builtin_actors.hpp>

#include <memory>

#include "actor_file.hpp"
#include "common_options.hpp"
#include "replaying.hpp"
#include "subcommands.hpp"

namespace gyre::tools {

namespace {

struct ReplaySettings {
  std::string file;
  ActorFileOptions actors;
  std::optional<uint32_t> seed;
  uint32_t most = 10;
  Tolerance tolerance;
  std::vector<std::string> ignored;
  std::string json_file;
};

int replay_file(const ReplaySettings& settings) {
  if (settings.file.empty())
    throw BadOptions("replaying a recording: no file is named; give one that a program wrote with --record");
  const Recording recording = read_recording(settings.file);
  const ActorsOfFile actors = settings.actors.file.empty() ? ActorsOfFile{builtin_actors(), {}}
                                                           : build_and_load_actors(settings.actors);
  std::optional<MessageSchemas> schemas;
  if (!actors.schemas.empty()) schemas.emplace(actors.schemas);
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  fmt::print(out, "{}: {} messages and {} outcomes, by Gyre {} on {}, {} worker{}\n", settings.file,
             recording.sent, recording.outcomes, recording.gyre, recording.device, recording.workers,
             recording.workers == 1 ? "" : "s");
  if (!recording.dropped) {
    fmt::print(out, "the recording has no end: its program did not terminate its runtime\n");
  } else if (*recording.dropped != 0) {
    fmt::print(out, "{} records found no room on their way to the file, and are missing\n",
               *recording.dropped);
  }
  ReplayOptions options;
  options.seed = settings.seed;
  options.most = settings.most;
  options.tolerance = settings.tolerance;
  options.ignored = {settings.ignored.begin(), settings.ignored.end()};
  options.schemas = schemas ? &*schemas : nullptr;
  const Replay replayed = replay(recording, actors.actors, options);
  for (const std::string& difference : replayed.differences) fmt::print(out, "{}\n", difference);
  if (replayed.different() > replayed.differences.size())
    fmt::print(out, "and {} more; --most says how many are shown\n",
               replayed.different() - replayed.differences.size());
  fmt::print(out, "replayed {} messages: {} outcomes are the same, {} differ\n", replayed.sent, replayed.same,
             replayed.different());
  Json not_compared;
  for (const auto& [status, count] : replayed.not_compared) {
    fmt::print(out, "not compared, for they came from the run and not from the actors: {} {}\n", count,
               name(status));
    not_compared[name(status)] = count;
  }
  if (replayed.without_buffers != 0) {
    fmt::print(out, "not compared, for buffers are not recorded: {} messages that name one\n",
               replayed.without_buffers);
  }
  Json document = {{"recorded", {{"messages", recording.sent}, {"outcomes", recording.outcomes}}},
                   {"replayed", replayed.sent},
                   {"same", replayed.same},
                   {"different", replayed.different()},
                   {"differences", replayed.differences},
                   {"not_compared", not_compared},
                   {"without_buffers", replayed.without_buffers}};
  document["recorded"]["dropped"] = recording.dropped ? Json(*recording.dropped) : Json(nullptr);
  write_json(settings.json_file, document);
  return replayed.different() == 0 ? all_passed : case_failed;
}

}  // namespace

void add_replay(ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<ReplaySettings>();
  const ProgramCommand command = app.add_subcommand(
      "replay", "Send the messages of a recording (--record) to actors again, step by step, and compare.");
  command.add_option("file", settings->file, "the recording");
  add_actor_file_options(command, settings->actors,
                         "library of the actors, or a header that defines them (default: the built-in ones)");
  command.add_option("--seed", settings->seed,
                     "let workers move in a random order (default: one after the other)");
  command
      .add_option("--atol", settings->tolerance.absolute,
                  "absolute difference of floating point numbers to let pass")
      .show_default()
      .not_negative();
  command
      .add_option("--rtol", settings->tolerance.relative,
                  "relative difference to let pass, as a fraction of the recorded number")
      .show_default()
      .not_negative();
  command.add_option("--ignore", settings->ignored, "field not to compare, by its name; repeatable")
      .type_name("FIELD")
      .one_value_each();
  command.add_option("--most", settings->most, "differences to show").show_default();
  add_json_option(command, settings->json_file);
  command.footer(
      "  gyre replay production.gyre --actors libcounters.so\n"
      "Timeouts, cancelled asks and what ended with the engine are not compared.\n"
      "Exit: 0 every outcome that is compared is the same, 1 one differs, 2 bad usage, no recording or "
      "other\n"
      "actors, 3 the actors do not run on the CPU engine.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return replay_file(*settings); }; });
}

}  // namespace gyre::tools
