// gyre actors: which actors the runtimes of other processes have.
#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/telemetry/actor_requests.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "common_options.hpp"
#include "published.hpp"
#include "subcommands.hpp"

namespace gyre::tools {

namespace {

struct ActorsSettings {
  std::string which;  // a process's number, or a file; empty: all
  std::string type;   // whose keys are listed; empty: none are
  uint64_t most = 1000;
  std::string json_file;
};

struct ListedKeys {
  std::vector<uint64_t> keys;  // sorted
  bool more = false;           // there are others
};

ListedKeys list(const std::string& file, const ActorsSettings& settings) {
  ListedKeys listed;
  std::optional<ActorCursor> at = ActorCursor{};
  while (at && listed.keys.size() < settings.most) {
    const ActorPage page =
        list_published_actors(file, settings.type, *at, size_t(settings.most - listed.keys.size()));
    listed.keys.insert(listed.keys.end(), page.keys.begin(), page.keys.end());
    at = page.next;
  }
  listed.more = at.has_value();
  std::sort(listed.keys.begin(), listed.keys.end());
  return listed;
}

void print_counts(const std::string& file, const PublishedStats& published) {
  const Stats& stats = published.stats;
  std::cout << fmt::format("process {}, {} on {}, {} worker{} ({})\n", published.pid, name(stats.state),
                           stats.device, stats.workers.size(), stats.workers.size() == 1 ? "" : "s", file);
  if (published.stale()) {
    std::cout << fmt::format("  {}: this is what it said {:.1f} s ago\n",
                             published.process_there ? "nothing was written since" : "the process is gone",
                             published.age_s);
  }
  std::cout << fmt::format("  {:<51} {:>12} {:>12}\n", "actor", "living", "created");
  for (const ActorStats& actors : stats.actors()) {
    std::cout << fmt::format("  {:<51} {:>12} {:>12}\n", actors.actor,
                             actors.has_state ? std::to_string(actors.living) : "no state",
                             actors.has_state ? std::to_string(actors.created) : "");
  }
}

void print_keys(const ActorsSettings& settings, const ListedKeys& listed) {
  std::cout << fmt::format(
      "  {} key{} of {}{}\n", listed.keys.size(), listed.keys.size() == 1 ? "" : "s", settings.type,
      listed.more ? fmt::format(", and there are more than --most {}", settings.most) : std::string());
  for (const uint64_t key : listed.keys) std::cout << fmt::format("    {}\n", key);
}

Json json_of(const std::string& file, const PublishedStats& published, const ActorsSettings& settings,
             const ListedKeys& listed) {
  Json types = Json::array();
  const std::vector<ActorStats> all = published.stats.actors();
  for (size_t n = 0; n < all.size(); ++n) {
    const auto count = [&](uint64_t value) { return all[n].has_state ? Json(value) : Json(); };
    Json workers = Json::array();
    for (const WorkerStats& worker : published.stats.workers)
      workers.push_back(count(worker.actors[n].living));
    types.push_back({{"actor", all[n].actor},
                     {"living", count(all[n].living)},
                     {"created", count(all[n].created)},
                     {"workers", workers}});
  }
  Json json = {{"file", file},
               {"pid", published.pid},
               {"process_there", published.process_there},
               {"stale", published.stale()},
               {"actors", types}};
  if (!settings.type.empty()) {
    json["type"] = settings.type;
    json["keys"] = listed.keys;
    json["more"] = listed.more;
  }
  return json;
}

void check_type(const std::string& file, const PublishedStats& published, const std::string& type) {
  std::string types;
  for (const ActorStats& actors : published.stats.actors()) {
    if (actors.actor == type) return;
    types += (types.empty() ? "" : ", ") + actors.actor;
  }
  throw Error(
      fmt::format("listing actors: the runtime with the stats file {} has no actor type {}; it has {}", file,
                  type, types));
}

int run(const ActorsSettings& settings) {
  Json document = Json::array();
  const size_t shown =
      for_each_published(settings.which, [&](const std::string& file, const PublishedStats& published) {
        ListedKeys listed;
        if (!settings.type.empty()) {
          check_type(file, published, settings.type);
          listed = list(file, settings);
        }
        if (!settings.json_file.empty()) {
          document.push_back(json_of(file, published, settings, listed));
          return;
        }
        print_counts(file, published);
        if (!settings.type.empty()) print_keys(settings, listed);
      });
  write_json(settings.json_file, document);
  if (shown != 0) return all_passed;
  report_none_published(settings.which);
  return case_failed;
}

}  // namespace

void add_actors(ProgramCommand app, std::function<int()>& chosen) {
  const ProgramCommand command = app.add_subcommand(
      "actors",
      "Count the actors of this user's processes by their type, and list the keys of one type. Of the "
      "runtimes that gyre stat shows.");
  auto settings = std::make_shared<ActorsSettings>();
  command.add_option("which", settings->which, "a process's number, or a stats file (default: all there are)")
      .type_name("PID|FILE");
  command.add_option("--type", settings->type, "list keys of this actor type, by its qualified name")
      .type_name("NAME");
  command.add_option("--most", settings->most, "list so many keys of a runtime at most")
      .range(1u, 100'000'000u)
      .show_default();
  add_json_option(command, settings->json_file);
  command.when_chosen([settings, &chosen] { chosen = [settings] { return run(*settings); }; });
}

}  // namespace gyre::tools
