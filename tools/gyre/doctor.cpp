// gyre doctor: what this machine has and lacks for Gyre, and whether a planned launch would work on it.
#include "doctor.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

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

Json to_json(const Findings& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"what", finding.what},
                    {"health", finding.health == Health::unknown ? "unknown" : name(finding.health)},
                    {"found", finding.found},
                    {"remedy", finding.remedy}});
  }
  return list;
}

Json to_json(const LaunchVerdict& verdict) {
  Json document = {{"ok", verdict.ok()},
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
  if (!settings.architecture.empty()) {
    settings.plan.architecture = read_architecture("--architecture", settings.architecture);
  }
  return settings.planned ? judge_plan(settings, out) : examine(settings, out);
}

}  // namespace

void add_doctor(ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<DoctorSettings>();
  Plan& plan = settings->plan;
  const ProgramCommand command = app.add_subcommand(
      "doctor",
      "Check this machine for what Gyre needs, each finding with its remedy; or check a planned launch.");
  command.add_option("--device", plan.device, "CUDA device number").show_default();
  const CommandOption launch =
      command.add_flag("--launch", settings->launch,
                       "also run the smallest cooperative kernel there is: one block of 32 threads");
  add_json_option(command, settings->json_file);
  const std::string group = "A planned launch: any of these asks for its verdict instead";
  const auto planned = [&](CommandOption option) { return option.group(group).excludes(launch); };
  planned(command.add_option("--actors", plan.actors_file,
                             "header that defines the actors (default: the built-in Echo and VectorAdd)"))
      .type_name("FILE");
  planned(command.add_option("--types", plan.types, "its actors: \"my::Counter,my::Sum\""))
      .type_name("NAMES");
  planned(command.add_option("--include", plan.include_dirs,
                             "folder for its includes: generated views, other headers; repeatable"))
      .type_name("DIR")
      .one_value_each();
  planned(command.add_option("--schema", plan.schemas, "schema of its messages; repeatable"))
      .type_name("FILE")
      .one_value_each();
  planned(command.add_option("--grid", plan.grid, "workers (blocks)").show_default());
  planned(command.add_option("--block", plan.block, "threads a worker").show_default());
  planned(command.add_option("--shared", plan.shared,
                             "bytes of dynamic shared memory a block (default: what the slots need)"));
  planned(command.add_option("--cluster", plan.cluster, "blocks a cluster; 1: no clusters").show_default());
  planned(command.add_option("--architecture", settings->architecture,
                             "compile for this architecture if there is no GPU, for example sm_90"))
      .type_name("NAME");
  command.footer(
      "Without these options it checks processor, memory, driver, device files, toolkit and each GPU, and "
      "starts no "
      "kernel.\n"
      "  gyre doctor --grid 1056 --block 256                      would the built-in actors fit?\n"
      "  gyre doctor --actors counter.hpp --types my::Counter --include build/generated --block 128\n"
      "  gyre doctor --grid 132 --architecture sm_90              on a machine without a GPU\n"
      "A verdict says everything that is wrong at once (number asked, limit, where the limit comes from), "
      "what would\n"
      "fit, and what could not be checked here. gyre errors explains error codes.\n"
      "Exit: 0 all well, 1 something is bad or wrong, 2 bad usage, 3 no CUDA engine here (--engine cpu may "
      "do).");
  command.when_chosen([settings, command, &chosen] {
    for (const char* const option : {"--actors", "--types", "--include", "--schema", "--grid", "--block",
                                     "--shared", "--cluster", "--architecture"}) {
      settings->planned = settings->planned || command.count(option) != 0;
    }
    chosen = [settings] { return doctor(*settings); };
  });
}

}  // namespace gyre::tools
