#include "inspection.hpp"

#include <fmt/format.h>
#include <gyre/bridge/cuda/device_lease.hpp>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/cuda/engine.hpp>
#include <gyre/runtime/cuda/loaded_kernel.hpp>
#include <gyre/runtime/cuda/program.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "patterns.hpp"
#include "programs.hpp"

namespace gyre::tools {

namespace {

namespace fs = std::filesystem;

std::string option(const std::string& options, const std::string& pattern) {
  const Found found = search(options, pattern);
  return found.empty() ? std::string() : found[1];
}

// "A, B" of "gyre::worker_kernel<A, B>".
std::vector<std::string> types_of(const std::string& kernel) {
  std::vector<std::string> types;
  const size_t open = kernel.find('<'), close = kernel.rfind('>');
  if (open == std::string::npos || close == std::string::npos) return types;
  std::istringstream parts(kernel.substr(open + 1, close - open - 1));
  for (std::string part; std::getline(parts, part, ',');) {
    types.push_back(part.substr(std::min(part.size(), part.find_first_not_of(' '))));
  }
  return types;
}

std::vector<ActorDescription> describe(std::string_view cubin) {
  for (const auto& [name, content] : cubin_variables(cubin)) {
    if (demangled(name).find("gyre::description<") != std::string::npos) return read_description(content);
  }
  return {};
}

// NVRTC names what is in no namespace, or static, after the file and the process that compiles.
std::string without_process(const std::string& text) {
  return replace_all(text, "_ZN[0-9]+_INTERNAL_[0-9a-f]+_[0-9]+_gyre_kernel_cu_[0-9a-f]+_[0-9]+",
                     "_internal_");
}

// The kernel by one name in all versions: its mangled name has its actors' in it.
std::string plain_name(const Inspection& inspection, const std::string& function) {
  return function == inspection.lowered_name ? std::string("the kernel")
                                             : demangled(without_process(function));
}

std::string number(uint64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

struct NumberRow {
  std::string what;
  uint64_t before, after;
};

std::vector<NumberRow> numbers(const Inspection& before, const Inspection& after) {
  std::vector<NumberRow> rows = {
      {"registers a thread", before.registers(), after.registers()},
      {"stack frame a thread, bytes", before.cubin.frame_bytes, after.cubin.frame_bytes}};
  if (before.report && after.report) {
    const FunctionReport a = before.report->total(), b = after.report->total();
    rows.push_back({"spill stores, bytes", a.spill_store_bytes, b.spill_store_bytes});
    rows.push_back({"spill loads, bytes", a.spill_load_bytes, b.spill_load_bytes});
    rows.push_back(
        {"static shared a block, bytes", before.static_shared_bytes(), after.static_shared_bytes()});
  }
  rows.push_back({"constants, bytes", before.cubin.constant_bytes, after.cubin.constant_bytes});
  rows.push_back({"code, bytes", before.cubin.code_bytes, after.cubin.code_bytes});
  return rows;
}

// What became of the functions of the PTX, by their names.
struct FunctionChanges {
  std::vector<std::string> added, removed, changed;
  size_t same = 0;
};

FunctionChanges changes(const Inspection& before, const Inspection& after) {
  const auto bodies = [](const Inspection& inspection) {
    std::map<std::string, const PtxFunction*> all;
    for (const PtxFunction& function : inspection.functions) {
      all[plain_name(inspection, function.name)] = &function;
    }
    return all;
  };
  // Labels and parameters are named after the function.
  const auto body = [](const PtxFunction& function) {
    std::string text = function.body;
    for (size_t at; (at = text.find(function.name)) != std::string::npos;)
      text.erase(at, function.name.size());
    return without_process(text);
  };
  FunctionChanges found;
  const auto old = bodies(before), now = bodies(after);
  for (const auto& [name, function] : now) {
    const auto other = old.find(name);
    if (other == old.end()) {
      found.added.push_back(fmt::format("{} ({} instructions)", name, number(function->instructions)));
    } else if (body(*other->second) != body(*function)) {
      found.changed.push_back(fmt::format("{} ({} instructions, {} before)", name,
                                          number(function->instructions),
                                          number(other->second->instructions)));
    } else {
      ++found.same;
    }
  }
  for (const auto& [name, function] : old) {
    if (now.count(name) == 0) {
      found.removed.push_back(fmt::format("{} ({} instructions)", name, number(function->instructions)));
    }
  }
  return found;
}

Json to_json(const OpcodeCounts& counts) {
  Json document = Json();
  for (size_t n = 0; n < opcode_classes; ++n) document[std::string(name(OpcodeClass(n)))] = counts[n];
  return document;
}

}  // namespace

void compile_into(const ActorSet& actors, int architecture, uint32_t block, const std::string& folder) {
  cuda::Program program = cuda::program_of(actors, architecture, block);
  program.options.push_back("--ptxas-options=-v");
  cuda::compile(program, {.cache = false, .keep_program = folder});
}

Inspection read_inspection(const std::string& folder) {
  const std::string doing = fmt::format("inspecting the program in {}", folder);
  const auto file = [&](const char* name) { return (fs::path(folder) / name).string(); };
  for (const char* const needed : {"kernel.ptx", "kernel.cubin", "options.txt", "compile.log"}) {
    if (fs::is_regular_file(file(needed))) continue;
    throw Error(
        fmt::format("{}: it has no {}; give a folder that --keep-program, or gyre inspect --keep, has "
                    "written of a program that compiled",
                    doing, needed));
  }
  Inspection inspection;
  inspection.from = folder;
  const std::string options = read_file(file("options.txt"), doing);
  inspection.kernel = option(options, "# kernel: ([^\n]*)");
  inspection.lowered_name = option(options, "# its name: ([^\n]*)");
  inspection.compiler = option(options, "# NVRTC ([^\n]*)");
  const std::string architecture = option(options, "--gpu-architecture=sm_([0-9]+)");
  const std::string block = option(options, "-DGYRE_BLOCK=([0-9]+)");
  if (inspection.lowered_name.empty() || architecture.empty()) {
    throw Error(fmt::format("{}: its options.txt does not name a kernel and an architecture", doing));
  }
  inspection.architecture = std::stoi(architecture);
  inspection.block = block.empty() ? 0 : uint32_t(std::stoul(block));
  inspection.ptx = read_file(file("kernel.ptx"), doing);
  inspection.functions = parse_ptx(inspection.ptx);
  const std::string cubin = read_file(file("kernel.cubin"), doing);
  inspection.cubin = read_cubin(cubin, inspection.lowered_name);
  inspection.actors = describe(cubin);
  inspection.actor_types = types_of(inspection.kernel);
  inspection.report = read_ptxas_report(read_file(file("compile.log"), doing));
  inspection.ptxas = run_ptxas(file("kernel.ptx"), inspection.architecture);
  if (!inspection.report) inspection.report = read_ptxas_report(inspection.ptxas.log);
  return inspection;
}

std::optional<DeviceFacts> find_device_facts(int device) {
  try {
    const cuda::Driver driver = cuda::Driver::load();
    const cuda::DeviceLimits limits = cuda::read_limits(driver, device);
    return DeviceFacts{limits.name, 10 * limits.compute_major + limits.compute_minor, limits.multiprocessors};
  } catch (const EngineUnavailable&) {
    return std::nullopt;
  }
}

std::optional<DriverOccupancy> ask_driver(const Inspection& inspection, const std::string& folder, int device,
                                          uint32_t dynamic_shared_bytes) {
  const auto facts = find_device_facts(device);
  if (!facts) return std::nullopt;
  DriverOccupancy answer{facts->name, facts->multiprocessors, 0, {}};
  if (facts->architecture != inspection.architecture) {
    answer.problem = fmt::format("device {} is an sm_{}, and the kernel is for sm_{}", device,
                                 facts->architecture, inspection.architecture);
    return answer;
  }
  try {
    const cuda::Driver driver = cuda::Driver::load();
    const cuda::DeviceLimits limits = cuda::read_limits(driver, device);
    cuda::DeviceLease lease(device);
    const cuda::Context context(driver, device, lease, cuda::ContextKind::own);
    cuda::CompiledKernel compiled;
    compiled.cubin = read_file((fs::path(folder) / "kernel.cubin").string(), "loading the kernel");
    compiled.lowered_name = inspection.lowered_name;
    cuda::LaunchRequest request;
    request.block = inspection.block;
    request.dynamic_shared_bytes = dynamic_shared_bytes;
    answer.blocks = cuda::LoadedKernel(context, compiled).limits(request, limits).blocks_a_multiprocessor;
  } catch (const Error& error) {
    answer.problem = error.what();
  }
  return answer;
}

uint64_t Inspection::working_bytes() const {
  WorkingMemory memory;
  for (const ActorDescription& actor : actors) {
    memory.make_room(actor.rollback_bytes, actor.scratch_bytes, actor.has_side_by_side());
  }
  return memory.bytes();
}

std::string functions_text(const Inspection& inspection) {
  std::string text;
  std::set<size_t> of_handlers;
  const auto& functions = inspection.cubin.functions;
  const auto stack = [&](const std::string& name) -> std::string {
    if (!inspection.report) return {};
    const auto found = inspection.report->functions.find(name);
    if (found == inspection.report->functions.end()) return {};
    const FunctionReport& report = found->second;
    return fmt::format(", {} of stack, {} spilled", number(report.stack_bytes),
                       number(report.spill_store_bytes));
  };
  for (size_t actor = 0; actor < inspection.actor_types.size(); ++actor) {
    const std::string& type = inspection.actor_types[actor];
    text += fmt::format("  actor {}", type);
    if (actor < inspection.actors.size()) {
      const ActorDescription& description = inspection.actors[actor];
      text += fmt::format(": {} bytes of state, {} handler{}", number(description.state_bytes),
                          description.types.size(), description.types.size() == 1 ? "" : "s");
      if (description.scratch_bytes != 0) {
        text += fmt::format(", {} bytes of scratch memory a message", number(description.scratch_bytes));
      }
      if (description.shared_scratch_bytes != 0) {
        text += fmt::format(", {} bytes of shared scratch memory a message",
                            number(description.shared_scratch_bytes));
      }
      if (description.rollback_bytes != 0) text += ", rolled back on errors";
    }
    size_t own = 0;
    std::string lines;
    for (size_t n = 0; n < functions.size(); ++n) {
      const std::string name = demangled(functions[n].name);
      if (name.substr(0, type.size() + 4) != type + "::on(") continue;
      of_handlers.insert(n);
      ++own;
      lines += fmt::format("    {} bytes  {}{}\n", number(functions[n].code_bytes), name,
                           stack(functions[n].name));
    }
    text += own == 0 ? ", inlined into the kernel\n" : ", of functions of their own:\n" + lines;
  }
  if (functions.size() == of_handlers.size()) return text;
  text += "  other functions that are called:\n";
  for (size_t n = 0; n < functions.size(); ++n) {
    if (of_handlers.count(n) != 0) continue;
    text += fmt::format("    {} bytes  {}{}\n", number(functions[n].code_bytes), demangled(functions[n].name),
                        stack(functions[n].name));
  }
  return text;
}

std::string difference_text(const Inspection& before, const Inspection& after) {
  std::string text = fmt::format("  {:<30} {:>12} {:>12}\n", "", "before", "after");
  const auto row = [&text](const std::string& what, uint64_t a, uint64_t b) {
    text +=
        fmt::format("  {:<30} {:>12} {:>12}{}\n", what, number(a), number(b),
                    a == b ? "" : fmt::format("  {}{}", b > a ? "+" : "-", number(b > a ? b - a : a - b)));
  };
  for (const NumberRow& line : numbers(before, after)) row(line.what, line.before, line.after);
  const OpcodeCounts a = total(before.functions), b = total(after.functions);
  text += "PTX instructions\n";
  for (size_t n = 0; n < opcode_classes; ++n) {
    if (a[n] != 0 || b[n] != 0) row(std::string(name(OpcodeClass(n))), a[n], b[n]);
  }
  const FunctionChanges found = changes(before, after);
  text += fmt::format("PTX functions: {} added, {} removed, {} changed, {} the same\n", found.added.size(),
                      found.removed.size(), found.changed.size(), found.same);
  const auto list = [&text](char sign, const std::vector<std::string>& names) {
    for (const std::string& name : names) text += fmt::format("  {} {}\n", sign, name);
  };
  list('+', found.added);
  list('-', found.removed);
  list('~', found.changed);
  return text;
}

Json to_json(const Inspection& inspection) {
  Json functions = Json::array();
  for (const CubinFunction& function : inspection.cubin.functions) {
    Json entry = {{"lowered_name", function.name},
                  {"name", demangled(function.name)},
                  {"code_bytes", function.code_bytes}};
    if (inspection.report && inspection.report->functions.count(function.name) != 0) {
      const FunctionReport& report = inspection.report->functions.at(function.name);
      entry["stack_bytes"] = report.stack_bytes;
      entry["spill_store_bytes"] = report.spill_store_bytes;
      entry["spill_load_bytes"] = report.spill_load_bytes;
    }
    functions.push_back(entry);
  }
  Json actors = Json::array();
  for (size_t n = 0; n < inspection.actor_types.size(); ++n) {
    Json entry = {{"type", inspection.actor_types[n]}};
    if (n < inspection.actors.size()) {
      const ActorDescription& description = inspection.actors[n];
      entry["state_bytes"] = description.state_bytes;
      entry["rollback_bytes"] = description.rollback_bytes;
      entry["scratch_bytes"] = description.scratch_bytes;
      entry["shared_scratch_bytes"] = description.shared_scratch_bytes;
      for (size_t handler = 0; handler < description.types.size(); ++handler) {
        entry["handlers"].push_back(
            {{"request", fmt::format("{:#018x}", description.types[handler].request)},
             {"response", fmt::format("{:#018x}", description.types[handler].response)},
             {"max_reply_bytes", description.max_reply_bytes[handler]}});
      }
    }
    actors.push_back(entry);
  }
  Json document = {{"kernel", inspection.kernel},
                   {"lowered_name", inspection.lowered_name},
                   {"architecture", inspection.architecture},
                   {"block", inspection.block},
                   {"compiler", inspection.compiler},
                   {"registers", inspection.registers()},
                   {"frame_bytes", inspection.cubin.frame_bytes},
                   {"code_bytes", inspection.cubin.code_bytes},
                   {"constant_bytes", inspection.cubin.constant_bytes},
                   {"parameter_bytes", inspection.cubin.parameter_bytes},
                   {"working_bytes", inspection.working_bytes()},
                   {"actors", actors},
                   {"functions", functions},
                   {"ptx_instructions", to_json(total(inspection.functions))}};
  if (inspection.report) {
    const FunctionReport all = inspection.report->total();
    document["static_shared_bytes"] = inspection.report->static_shared_bytes;
    document["spill_store_bytes"] = all.spill_store_bytes;
    document["spill_load_bytes"] = all.spill_load_bytes;
    document["barriers"] = inspection.report->barriers;
  }
  document["ptxas"] = nullptr;
  if (!inspection.ptxas.program.empty()) {
    document["ptxas"] = {{"version", inspection.ptxas.version},
                         {"accepted", inspection.ptxas.accepted},
                         {"log", inspection.ptxas.log}};
  }
  return document;
}

Json difference_json(const Inspection& before, const Inspection& after) {
  Json rows = Json::array();
  for (const NumberRow& line : numbers(before, after)) {
    rows.push_back({{"what", line.what}, {"before", line.before}, {"after", line.after}});
  }
  const FunctionChanges found = changes(before, after);
  return {{"numbers", rows},
          {"ptx_instructions_before", to_json(total(before.functions))},
          {"ptx_instructions_after", to_json(total(after.functions))},
          {"added", found.added},
          {"removed", found.removed},
          {"changed", found.changed},
          {"same", found.same}};
}

}  // namespace gyre::tools
