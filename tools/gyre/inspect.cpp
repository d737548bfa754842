// gyre inspect: what a GPU would run of actors, and what it would take of the GPU.
#include <fmt/format.h>
#include <gyre/runtime/builtin_actors.hpp>

#include <filesystem>
#include <memory>

#include "actor_file.hpp"
#include "common_options.hpp"
#include "subcommands.hpp"

#if defined(GYRE_WITH_CUDA)
#include <gyre/runtime/cuda/engine.hpp>

#include "inspection.hpp"
#include "programs.hpp"
#endif

namespace gyre::tools {

namespace {

struct InspectSettings {
  ActorFileOptions actors;
  std::string program;  // a folder that was kept
  std::string architecture;
  Options options;
  uint32_t multiprocessors = 0;
  bool grid_scoped = false;
  bool print_ptx = false;
  std::string keep;
  std::string diff, diff_types;
  std::string json_file;
};

#if defined(GYRE_WITH_CUDA)

namespace fs = std::filesystem;

// A folder that is there already, or one with what is compiled now.
struct Inspected {
  std::unique_ptr<TemporaryFolder> own;
  std::string folder;
  Inspection inspection;
};

Inspected inspect_actors(const ActorSet& actors, const std::string& from, int architecture, uint32_t block,
                         const std::string& keep) {
  Inspected inspected;
  if (keep.empty()) inspected.own = std::make_unique<TemporaryFolder>();
  inspected.folder = keep.empty() ? inspected.own->path() : keep;
  compile_into(actors, architecture, block, inspected.folder);
  inspected.inspection = read_inspection(inspected.folder);
  inspected.inspection.from = from;
  return inspected;
}

Inspected inspect_folder(const std::string& folder) { return {nullptr, folder, read_inspection(folder)}; }

ActorSet actors_of(const InspectSettings& settings, const std::string& file, const std::string& types) {
  ActorSet actors = builtin_actors();
  if (!file.empty()) {
    ActorFileOptions options = settings.actors;
    options.file = file;
    options.types = types;
    actors = read_actors(options).actors;
  }
  return settings.grid_scoped ? actors.grid_scoped() : actors;
}

int chosen_architecture(const InspectSettings& settings, const std::optional<DeviceFacts>& device,
                        std::string& note) {
  if (settings.architecture.empty()) {
    if (device) return device->architecture;
    note = "no GPU here, and no --arch: compiled for sm_90";
    return 90;
  }
  return read_architecture("--arch", settings.architecture);
}

void print(std::FILE* out, const Inspection& it, uint32_t dynamic_shared_bytes) {
  fmt::print(out, "kernel {}\n", it.kernel);
  fmt::print(out, "  lowered name      {}\n", it.lowered_name);
  fmt::print(out, "  compiled          for sm_{}, {} threads a block, by NVRTC {}\n", it.architecture,
             it.block, it.compiler);
  fmt::print(out, "  registers         {} a thread\n", it.registers());
  fmt::print(out, "  stack frame       {} bytes a thread, in local memory\n", it.cubin.frame_bytes);
  if (it.report) {
    const FunctionReport all = it.report->total();
    fmt::print(out, "  spills            {} bytes stored, {} bytes loaded\n", all.spill_store_bytes,
               all.spill_load_bytes);
    fmt::print(out, "  shared memory     {} bytes static and {} dynamic a block\n",
               it.report->static_shared_bytes, dynamic_shared_bytes);
  } else {
    fmt::print(out,
               "  spills, shared    not known: the log has no report of the assembler's, and there is no "
               "ptxas here; inspect the actors' file instead of the folder\n");
  }
  if (it.working_bytes() != 0) {
    fmt::print(out, "  device memory     {} bytes a worker, for the message in hand\n", it.working_bytes());
  }
  fmt::print(out, "  code              {} bytes; constants {} bytes, parameters {} bytes\n",
             it.cubin.code_bytes, it.cubin.constant_bytes, it.cubin.parameter_bytes);
  uint64_t instructions = 0;
  const OpcodeCounts counts = total(it.functions);
  for (const uint64_t count : counts) instructions += count;
  fmt::print(out,
             "  PTX               {} functions, {} instructions: {} of local memory, {} calls, {} barriers\n",
             it.functions.size(), instructions, counts[size_t(OpcodeClass::local)],
             counts[size_t(OpcodeClass::call)], counts[size_t(OpcodeClass::barrier)]);
  fmt::print(out, "{}", functions_text(it));
}

// True unless ptxas refuses the PTX.
bool print_ptxas(std::FILE* out, const Inspection& it) {
  const PtxasRun& run = it.ptxas;
  if (run.program.empty()) {
    fmt::print(out,
               "ptxas: not found in $CUDA_HOME/bin (or /usr/local/cuda/bin) or on the PATH: the PTX was not "
               "checked again\n");
    return true;
  }
  const auto report = read_ptxas_report(run.log);
  if (!run.accepted || !report) {
    fmt::print(out, "ptxas: {} {} does not take the PTX:\n{}", run.program, run.version, run.log);
    return false;
  }
  fmt::print(out, "ptxas: release {} takes the PTX: {} registers, {} bytes spilled{}\n", run.version,
             report->registers, report->total().spill_store_bytes,
             report->registers == it.registers() ? ", as NVRTC" : ", NVRTC otherwise");
  return true;
}

int inspect(const InspectSettings& settings) {
  if (const std::string problems = settings.options.problems(); !problems.empty()) {
    throw BadOptions("inspecting actors: these options are wrong:\n" + problems);
  }
  std::FILE* const out = settings.json_file == "-" || settings.print_ptx ? stderr : stdout;
  const auto device = find_device_facts(settings.options.device);
  std::string note;
  Inspected inspected;
  ActorSet actors = builtin_actors();
  if (settings.program.empty()) {
    const int architecture = chosen_architecture(settings, device, note);
    actors = actors_of(settings, settings.actors.file, settings.actors.types);
    inspected =
        inspect_actors(actors, settings.actors.file, architecture, settings.options.block, settings.keep);
  } else {
    inspected = inspect_folder(settings.program);
  }
  const Inspection& it = inspected.inspection;
  const bool is_grid = actors.is_grid_scoped(), is_warp = !is_grid && it.block == 32;
  const uint32_t dynamic = cuda::shared_scratch_bytes(is_warp, it.actors) +
                           (is_grid ? 0
                                    : cuda::message_bytes(settings.options.ring_shape(),
                                                          settings.options.workers, is_warp, it.actors));
  if (settings.print_ptx) fmt::print("{}", it.ptx);
  if (!note.empty()) fmt::print(out, "{}\n", note);
  print(out, it, dynamic);

  const auto driver = ask_driver(it, inspected.folder, settings.options.device, dynamic);
  uint32_t blocks = 0;
  Json document = {{"inspection", to_json(it)}, {"dynamic_shared_bytes", dynamic}};
  if (find_multiprocessor(it.architecture) != nullptr) {
    const Occupancy found =
        occupancy(it.architecture, {it.block, it.registers(), it.static_shared_bytes(), dynamic});
    blocks = found.blocks;
    fmt::print(
        out,
        "occupancy: {} blocks a multiprocessor by NVIDIA's calculator: {} of {} threads; no more by {}\n",
        found.blocks, found.threads, found.most_threads, found.limited_by);
    document["occupancy"] = {{"blocks", found.blocks}, {"limited_by", found.limited_by}};
  } else {
    fmt::print(out, "occupancy: not worked out, what a multiprocessor of sm_{} has is not known here\n",
               it.architecture);
  }
  uint32_t multiprocessors = settings.multiprocessors;
  if (!driver) {
    fmt::print(out, "           the driver was not asked: there is no GPU here\n");
  } else if (!driver->problem.empty()) {
    fmt::print(out, "           the driver could not be asked: {}\n", driver->problem);
  } else {
    fmt::print(out, "           {} blocks a multiprocessor by the driver, for {}\n", driver->blocks,
               driver->device);
    document["driver_occupancy"] = driver->blocks;
    blocks = driver->blocks;
    if (multiprocessors == 0) multiprocessors = driver->multiprocessors;
  }
  if (multiprocessors != 0) {
    fmt::print(
        out, "grid: at most {} blocks on {} multiprocessors, since a cooperative launch needs all resident\n",
        uint64_t(blocks) * multiprocessors, multiprocessors);
    document["max_grid"] = uint64_t(blocks) * multiprocessors;
  } else {
    fmt::print(out,
               "grid: at most {} times the GPU's multiprocessors; --sms says how many (an H200 has 132)\n",
               blocks);
  }
  const bool accepted = print_ptxas(out, it);
  if (!settings.keep.empty())
    fmt::print(out, "kept in {}; cuobjdump --dump-sass shows its machine code\n", settings.keep);

  if (!settings.diff.empty()) {
    const std::string types = settings.diff_types.empty() ? settings.actors.types : settings.diff_types;
    const Inspected old = fs::is_directory(settings.diff)
                              ? inspect_folder(settings.diff)
                              : inspect_actors(actors_of(settings, settings.diff, types), settings.diff,
                                               it.architecture, it.block, {});
    fmt::print(out, "from {} to {}\n{}", settings.diff,
               it.from.empty() ? std::string("the built-in actors") : it.from,
               difference_text(old.inspection, it));
    document["difference"] = difference_json(old.inspection, it);
  }
  write_json(settings.json_file, document);
  return accepted ? all_passed : case_failed;
}

#else

int inspect(const InspectSettings&) {
  throw EngineUnavailable(
      "inspecting actors: this Gyre was built without the CUDA toolkit; install the toolkit (12 or 13) and "
      "build again");
}

#endif

}  // namespace

void add_inspect(ProgramCommand app, std::function<int()>& chosen) {
  auto settings = std::make_shared<InspectSettings>();
  const ProgramCommand command =
      app.add_subcommand("inspect",
                         "Compile actors for a GPU, which need not be here, and show "
                         "the kernel: names, registers, spills, shared "
                         "memory, occupancy.");
  const CommandOption actors = add_actor_file_options(
      command, settings->actors,
      "header that defines the actors, or a library of them (default: the built-in ones)");
  command
      .add_option("--program", settings->program,
                  "read a folder that --keep-program or --keep wrote, instead of compiling")
      .type_name("DIR")
      .excludes(actors);
  command.add_option("--arch", settings->architecture, "architecture, sm_90 for one (default: this GPU's)")
      .type_name("NAME");
  command.add_option("--device", settings->options.device, "CUDA device number").show_default();
  command.add_option("--block", settings->options.block, "threads a block, a multiple of 32").show_default();
  command
      .add_option("--slot-bytes", settings->options.slot_bytes,
                  "of the launch: the messages in hand lie in dynamic shared memory")
      .show_default();
  command.add_flag("--grid-scoped", settings->grid_scoped, "one worker is the whole grid");
  command.add_option("--sms", settings->multiprocessors,
                     "multiprocessors of the GPU, for the grid's limit (default: this GPU's)");
  command.add_flag("--ptx", settings->print_ptx, "PTX to standard output, all else to standard error");
  command.add_option("--keep", settings->keep, "write source, options, log, PTX and cubin there")
      .type_name("DIR");
  command
      .add_option("--diff", settings->diff,
                  "compare with an older version: header, library, or a folder that was kept")
      .type_name("OLD");
  command.add_option("--diff-types", settings->diff_types, "the older header's actors (default: --types)")
      .type_name("NAMES");
  add_json_option(command, settings->json_file);
  command.footer(
      "  gyre inspect --actors counter.hpp --types my::Counter --schema counter.capnp --arch sm_90 --sms "
      "132\n"
      "  gyre inspect --actors new.hpp --types my::Counter --include views --diff old.hpp\n"
      "  gyre inspect --program kept/          what a launch with --keep-program kept compiled\n"
      "Spills and large stack frames lie in local memory, and cost a memory access each; barriers and local "
      "memory\n"
      "of a handler show in the PTX's counts. gyre doctor says whether a launch would be accepted.\n"
      "Exit: 0 all well, 1 it does not compile or ptxas refuses it, 2 bad usage, 3 no NVRTC here.");
  command.when_chosen([settings, &chosen] { chosen = [settings] { return inspect(*settings); }; });
}

}  // namespace gyre::tools
