// gyre doctor: what this machine has and lacks for Gyre, and whether a planned launch would work on it.
#include "doctor.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>

#include "common_options.hpp"
#include "subcommands.hpp"

namespace gyre::tools {

namespace {

struct DoctorSettings {
  Plan plan;
  bool planned = false;  // something of the plan was given
  bool launch = false;
  std::string architecture;
  std::string json_file;
};

void print(std::FILE* out, const Finding& finding) {
  fmt::print(out, "{:<5} {:<22} {}\n", name(finding.health), finding.what, finding.found);
  if (!finding.remedy.empty()) fmt::print(out, "{:<5} {:<22} → {}\n", "", "", finding.remedy);
}

nlohmann::json to_json(const Findings& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"what", finding.what},
                    {"health", finding.health == Health::unknown ? "unknown" : name(finding.health)},
                    {"found", finding.found},
                    {"remedy", finding.remedy}});
  }
  return list;
}

nlohmann::json to_json(const LaunchVerdict& verdict) {
  nlohmann::json document = {{"ok", verdict.ok()},
                             {"device", verdict.device},
                             {"grid", verdict.grid},
                             {"block", verdict.block},
                             {"cluster", verdict.cluster},
                             {"dynamic_shared_bytes", verdict.dynamic_shared_bytes},
                             {"region_bytes", verdict.region_bytes},
                             {"problems", verdict.problems},
                             {"fits", verdict.fits},
                             {"unchecked", verdict.unchecked},
                             {"kernel", nullptr}};
  if (verdict.kernel) {
    const KernelFacts& kernel = *verdict.kernel;
    document["kernel"] = {{"name", kernel.name},
                          {"architecture", kernel.architecture},
                          {"registers", kernel.registers},
                          {"static_shared_bytes", kernel.static_shared_bytes},
                          {"local_bytes", kernel.local_bytes}};
    if (kernel.blocks_a_multiprocessor) {
      document["kernel"]["blocks_a_multiprocessor"] = *kernel.blocks_a_multiprocessor;
    }
    if (kernel.max_grid) document["kernel"]["max_grid"] = *kernel.max_grid;
  }
  return document;
}

int judge_plan(const DoctorSettings& settings, std::FILE* out) {
  const LaunchVerdict verdict = judge(settings.plan);
  fmt::print(out, "{}", verdict.text());
  write_json(settings.json_file, {{"verdict", to_json(verdict)}});
  if (verdict.ok()) return all_passed;
  return verdict.engine_missing ? engine_unavailable : case_failed;
}

int examine(const DoctorSettings& settings, std::FILE* out) {
  Findings findings;
  const auto take = [&](const Findings& more) {
    for (const Finding& finding : more) {
      print(out, finding);
      findings.push_back(finding);
    }
    std::fflush(out);
  };
  bool usable = false;
  take(check_host());
  take(check_cuda(usable));
  if (settings.launch) take({check_smallest_kernel(settings.plan.device)});
  size_t bad = 0, warnings = 0;
  for (const Finding& finding : findings) {
    bad += finding.health == Health::bad;
    warnings += finding.health == Health::warn;
  }
  fmt::print(out, "\n{} bad, {} warnings; the CUDA engine {}; the CPU engine (--engine cpu) {}\n", bad,
             warnings, usable ? "can be launched" : "cannot be launched here",
             __builtin_cpu_supports("avx") ? "works" : "does not work without AVX");
  write_json(settings.json_file,
             {{"checks", to_json(findings)}, {"cuda_usable", usable}, {"bad", bad}, {"warnings", warnings}});
  if (!usable) return engine_unavailable;
  return bad == 0 ? all_passed : case_failed;
}

int doctor(DoctorSettings& settings) {
  std::FILE* const out = settings.json_file == "-" ? stderr : stdout;
  std::smatch number;
  if (!settings.architecture.empty()) {
    if (!std::regex_match(settings.architecture, number, std::regex("(sm_|compute_)?([0-9]{2,3})"))) {
      throw BadOptions(fmt::format("--architecture {}: must be like sm_90", settings.architecture));
    }
    settings.plan.architecture = std::stoi(number[2]);
  }
  return settings.planned ? judge_plan(settings, out) : examine(settings, out);
}

}  // namespace

void add_doctor(CLI::App& app, std::function<int()>& chosen) {
  auto settings = std::make_shared<DoctorSettings>();
  Plan& plan = settings->plan;
  CLI::App* const command = app.add_subcommand(
      "doctor",
      "Check this machine for what Gyre needs, each finding with its remedy; or check a planned launch.");
  command->add_option("--device", plan.device, "CUDA device number")->capture_default_str();
  CLI::Option* const launch =
      command->add_flag("--launch", settings->launch,
                        "also run the smallest cooperative kernel there is: one block of 32 threads");
  add_json_option(*command, settings->json_file);
  const std::string group = "A planned launch: any of these asks for its verdict instead";
  const auto planned = [&](CLI::Option* option) { return option->group(group)->excludes(launch); };
  planned(command->add_option("--actors", plan.actors_file,
                              "header that defines the actors (default: the built-in Echo and VectorAdd)"))
      ->type_name("FILE");
  planned(command->add_option("--types", plan.types, "its actors: \"my::Counter,my::Sum\""))
      ->type_name("NAMES");
  planned(command->add_option("--include", plan.include_dirs,
                              "folder for its includes: generated views, other headers; repeatable"))
      ->type_name("DIR")
      ->allow_extra_args(false);
  planned(command->add_option("--schema", plan.schemas, "schema of its messages; repeatable"))
      ->type_name("FILE")
      ->allow_extra_args(false);
  planned(command->add_option("--grid", plan.grid, "workers (blocks)")->capture_default_str());
  planned(command->add_option("--block", plan.block, "threads a worker")->capture_default_str());
  planned(command->add_option("--shared", plan.shared,
                              "bytes of dynamic shared memory a block (default: what the slots need)"));
  planned(command->add_option("--cluster", plan.cluster, "blocks a cluster; 1: no clusters")
              ->capture_default_str());
  planned(command->add_option("--architecture", settings->architecture,
                              "compile for it where there is no GPU: sm_90"))
      ->type_name("NAME");
  command->footer(
      "Alone it looks at processor, memory, driver, device files, toolkit and each GPU, and starts no "
      "kernel.\n"
      "  gyre doctor --grid 1056 --block 256                      would the built-in actors fit so?\n"
      "  gyre doctor --actors counter.hpp --types my::Counter --include build/generated --block 128\n"
      "  gyre doctor --grid 132 --architecture sm_90              on a machine without a GPU\n"
      "A verdict says everything that is wrong at once (number asked, limit, where the limit comes from), "
      "what would\n"
      "fit, and what could not be checked here. gyre errors explains error codes.\n"
      "Exit: 0 all well, 1 something is bad or wrong, 2 bad usage, 3 no CUDA engine here (--engine cpu may "
      "do).");
  command->callback([settings, command, &chosen] {
    for (const char* const option : {"--actors", "--types", "--include", "--schema", "--grid", "--block",
                                     "--shared", "--cluster", "--architecture"}) {
      settings->planned = settings->planned || command->count(option) != 0;
    }
    chosen = [settings] { return doctor(*settings); };
  });
}

}  // namespace gyre::tools
