#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/cuda/ahead.hpp>
#include <gyre/runtime/cuda/nvrtc.hpp>

#include <algorithm>
#include <chrono>

namespace gyre::cuda {

namespace {

std::string capability(int architecture) {
  return fmt::format("{}.{}", architecture / 10, architecture % 10);
}

bool is_for(const CompiledAhead& compiled, const ActorSet& actors, uint32_t block) {
  return compiled.kernel == actors.kernel() && compiled.block == block;
}

// What is wrong with those that were compiled ahead, and what would be right.
std::string explain_ahead(const ActorSet& actors, int architecture, uint32_t block) {
  const auto& ahead = actors.sources().ahead;
  const bool changed = std::any_of(ahead.begin(), ahead.end(), [&](const CompiledAhead& compiled) {
    return is_for(compiled, actors, block) && runs_on(compiled.architecture, architecture);
  });
  if (changed) {
    return fmt::format(
        "{} was compiled ahead with {} threads a block, and from another text than this; build the program "
        "again",
        actors.type_list(), block);
  }
  return fmt::format(
      "Compiled ahead were {}. This launch needs {} with {} threads a block for compute capability {}: add "
      "ARCHITECTURES {}, {} \"{}\" and THREADS {} to gyre_add_actors",
      list_of_ahead(ahead), actors.type_list(), block, capability(architecture), architecture,
      actors.is_grid_scoped() ? "GRID_SETS" : "SETS", actors.type_list(), block);
}

// What `work` returns. Where NVRTC is missing, the error says what was compiled ahead.
template <class Work>
auto explained(const ActorSet& actors, int architecture, uint32_t block, Work work) {
  try {
    return work();
  } catch (const EngineUnavailable& error) {
    if (actors.sources().ahead.empty()) throw;
    throw EngineUnavailable(fmt::format("{}. {}", error.what(), explain_ahead(actors, architecture, block)));
  }
}

// The bytes as adjacent literals, one a line.
std::string literal(std::string_view bytes) {
  constexpr size_t a_line = 120;
  if (bytes.empty()) return "\"\"sv";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += a_line) {
    text += "\n\"";
    for (const char byte : bytes.substr(at, a_line)) {
      const bool plain = byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\' && byte != '?';
      // Three digits, so that a digit behind them is not read with them. Two ? begin a trigraph.
      text += plain ? std::string(1, byte) : fmt::format("\\{:03o}", unsigned(uint8_t(byte)));
    }
    text += '"';
  }
  return text + "sv";
}

}  // namespace

uint64_t ahead_inputs(const ActorSet& actors, int architecture, uint32_t block) {
  const Program program = program_without_toolkit(actors, architecture, block);
  uint64_t hash = fnv1a("");
  // Behind its length, so that no two programs make one text.
  const auto add = [&hash](std::string_view piece) {
    hash = fnv1a(piece, fnv1a(fmt::format("{} ", piece.size()), hash));
  };
  add(std::to_string(program.architecture));
  for (const std::string& option : program.options) add(option);
  add(program.kernel);
  add(program.description);
  add(program.text);
  for (const SourceFile& header : program.headers) {
    add(header.name);
    add(header.text);
  }
  return hash;
}

std::optional<CompiledKernel> find_ahead(const ActorSet& actors, int architecture, uint32_t block) {
  const auto began = std::chrono::steady_clock::now();
  std::vector<const CompiledAhead*> fitting;
  for (const CompiledAhead& compiled : actors.sources().ahead) {
    if (is_for(compiled, actors, block) && runs_on(compiled.architecture, architecture) &&
        !compiled.cubin.empty()) {
      fitting.push_back(&compiled);
    }
  }
  std::sort(fitting.begin(), fitting.end(),
            [](const CompiledAhead* a, const CompiledAhead* b) { return a->architecture > b->architecture; });
  for (const CompiledAhead* const compiled : fitting) {
    // A set of the same types, launched grid-scoped and not, differs in its inputs alone.
    if (compiled->inputs != ahead_inputs(actors, compiled->architecture, block)) continue;
    CompiledKernel kernel;
    kernel.cubin = compiled->cubin;
    kernel.lowered_name = compiled->lowered_name;
    kernel.lowered_description = compiled->lowered_description;
    kernel.ahead = true;
    kernel.compile_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
    return kernel;
  }
  return std::nullopt;
}

std::optional<CompiledKernel> find_compiled(const ActorSet& actors, int architecture, uint32_t block,
                                            const CompileOptions& options) {
  if (options.keep_program.empty()) {
    if (auto kernel = find_ahead(actors, architecture, block)) return kernel;
  }
  return explained(actors, architecture, block,
                   [&] { return find_compiled(program_of(actors, architecture, block), options); });
}

CompiledKernel compile_not_found(const ActorSet& actors, int architecture, uint32_t block,
                                 const CompileOptions& options) {
  return explained(actors, architecture, block,
                   [&] { return compile_not_found(program_of(actors, architecture, block), options); });
}

std::string list_of_ahead(std::span<const CompiledAhead> ahead) {
  // By set and block, in the order in which they come.
  std::vector<std::pair<std::string, std::string>> list;
  for (const CompiledAhead& compiled : ahead) {
    std::string_view types = compiled.kernel;
    types.remove_prefix(std::min(types.size(), types.find('<') + 1));
    types.remove_suffix(std::min<size_t>(types.size(), 1));
    const std::string what = fmt::format("{} with {} threads a block for", types, compiled.block);
    auto found =
        std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == what; });
    if (found == list.end()) found = list.insert(found, {what, {}});
    found->second += (found->second.empty() ? " " : ", ") + capability(compiled.architecture);
  }
  std::string text;
  for (const auto& [what, architectures] : list) text += (text.empty() ? "" : "; ") + what + architectures;
  return text;
}

std::string ahead_initialiser(const ActorSet& actors, int architecture, uint32_t block) {
  const CompiledKernel kernel = compile(actors, architecture, block);
  return fmt::format("{{{}, {}, {:#x}u, {}, {}, {}, {}, {}}}", architecture, block,
                     ahead_inputs(actors, architecture, block), literal(actors.kernel()),
                     literal(kernel.lowered_name), literal(kernel.lowered_description),
                     literal(Nvrtc::load().identity), literal(kernel.cubin));
}

}  // namespace gyre::cuda
