// gyre-compile-ahead: compiles sets of actors when a project is built. gyre_add_actors(… ARCHITECTURES …)
// runs it once for each architecture.
//
//   gyre-compile-ahead --name TARGET --bundle FILE --architecture 90 --out FILE
//                      (--set TYPES | --grid-set TYPES)… (--threads N)… [--optional]
//
// The bundle has the headers, as embed_sources.cmake writes them. The output is a list of initialisers of
// CompiledAhead, each with a comma behind it. Its first line names what it was made of: where that is the
// same, the file stays as it is, and nothing is compiled. Exit: 0 well, 1 it does not compile, 2 bad usage.
#include <fmt/format.h>
#include <unistd.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/cuda/ahead.hpp>
#include <gyre/runtime/cuda/nvrtc.hpp>
#include <gyre/runtime/cuda/toolkit.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace {

using namespace gyre;

struct Wanted {
  std::string types;  // "my::Counter, my::Sum"
  bool grid_scoped;
};
struct Settings {
  std::string name, bundle, out;
  int architecture = 0;
  std::vector<Wanted> sets;
  std::vector<uint32_t> blocks;
  bool optional = false;
};

struct BadUsage : Error {
  using Error::Error;
};

template <class Number>
Number number_of(const std::string& option, std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw BadUsage(fmt::format("{} {}: that is no number", option, text));
  return number;
}

Settings settings_of(int count, char** arguments) {
  Settings settings;
  for (int n = 1; n < count; ++n) {
    const std::string option = arguments[n];
    if (option == "--optional") {
      settings.optional = true;
      continue;
    }
    if (++n == count) throw BadUsage(option + " needs a value");
    const char* const value = arguments[n];
    if (option == "--name") {
      settings.name = value;
    } else if (option == "--bundle") {
      settings.bundle = value;
    } else if (option == "--out") {
      settings.out = value;
    } else if (option == "--architecture") {
      settings.architecture = number_of<int>(option, value);
    } else if (option == "--threads") {
      settings.blocks.push_back(number_of<uint32_t>(option, value));
    } else if (option == "--set" || option == "--grid-set") {
      settings.sets.push_back({value, option == "--grid-set"});
    } else {
      throw BadUsage(option + " is no option");
    }
  }
  if (settings.bundle.empty() || settings.out.empty() || settings.architecture == 0 ||
      settings.sets.empty() || settings.blocks.empty())
    throw BadUsage("--bundle, --architecture, --out, --set or --grid-set, and --threads must be given");
  return settings;
}

// "my::Pair<int, long>, my::Sum" has two types.
std::vector<std::string> types_in(const std::string& list) {
  std::vector<std::string> types(1);
  int depth = 0;
  for (const char c : list) {
    depth += (c == '<') - (c == '>');
    if (c == ',' && depth == 0) {
      types.emplace_back();
    } else if (c != ' ' || !types.back().empty()) {
      types.back() += c;
    }
  }
  for (std::string& type : types) {
    type.erase(type.find_last_not_of(' ') + 1);
    if (type.empty())
      throw BadUsage(fmt::format("--set \"{}\": a name is missing; give types with commas", list));
  }
  return types;
}

struct Bundle {
  std::vector<SourceText> headers;
  std::vector<std::string> actor_headers;
};

Bundle read_bundle(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Bundle bundle;
  std::string kind, name;
  for (size_t bytes = 0; file >> kind >> bytes && file.get() && std::getline(file, name);) {
    std::string text(bytes, '\0');
    if (!file.read(text.data(), std::streamsize(bytes)) || file.get() != '\n') break;
    if (kind == "SOURCES") bundle.actor_headers.push_back(name);
    bundle.headers.push_back({name, std::move(text)});
  }
  if (bundle.actor_headers.empty() || !file.eof())
    throw Error(
        fmt::format("reading the actors' headers from {}: it is not there, or damaged; build again", path));
  return bundle;
}

// Why nothing can be compiled here that --optional leaves out; empty if it can.
std::string obstacle(const std::vector<ActorSet>& sets, int architecture) {
  try {
    const cuda::Nvrtc nvrtc = cuda::Nvrtc::load();
    const std::vector<int> known = nvrtc.architectures();
    if (std::find(known.begin(), known.end(), architecture) == known.end())
      return fmt::format("NVRTC {} does not compile for it", nvrtc.identity);
    for (const ActorSet& actors : sets) {
      const cuda::Program program = cuda::program_without_toolkit(actors, architecture, 32);
      if (!cuda::outside_headers(program.text, program.headers).empty() &&
          cuda::find_toolkit_headers(nvrtc.version.major).folders.empty())
        return cuda::explain_toolkit_search(nvrtc.version.major);
    }
    return {};
  } catch (const EngineUnavailable& error) {
    return error.what();
  }
}

std::string key_of(const std::vector<ActorSet>& sets, const Settings& settings) {
  uint64_t hash = fnv1a("2");  // of the output's form
  const std::string compiler = cuda::Nvrtc::load().identity;
  for (const ActorSet& actors : sets) {
    for (const uint32_t block : settings.blocks) {
      hash = fnv1a(cuda::inputs_of(cuda::program_of(actors, settings.architecture, block), compiler), hash);
    }
  }
  return fmt::format("// {:016x}: what this was compiled from\n", hash);
}

void write(const std::string& path, const std::string& text) {
  const std::string unfinished = fmt::format("{}.{}", path, getpid());
  std::ofstream file(unfinished, std::ios::binary);
  if (!(file << text).flush() || std::rename(unfinished.c_str(), path.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    std::remove(unfinished.c_str());
    throw Error(fmt::format("writing {}: {}", path, why));
  }
}

void run(const Settings& settings) {
  const Bundle bundle = read_bundle(settings.bundle);
  std::vector<ActorSet> sets;
  for (const auto& [types, grid_scoped] : settings.sets) {
    sets.push_back(
        ActorSet::for_engine(types_in(types), bundle.headers, bundle.actor_headers, grid_scoped, {}));
  }
  if (settings.optional) {
    if (const std::string why = obstacle(sets, settings.architecture); !why.empty()) {
      std::printf("%s is not compiled ahead for compute capability %d.%d, but at launch: %s\n",
                  settings.name.c_str(), settings.architecture / 10, settings.architecture % 10, why.c_str());
      return write(settings.out, "// not compiled\n");
    }
  }
  const std::string key = key_of(sets, settings);
  std::string first;
  if (std::ifstream before(settings.out); std::getline(before, first) && first + "\n" == key) return;
  // Compilers warn of string literals as long as a cubin, but not of a system header's.
  std::string text = key + "#pragma GCC system_header\n";
  for (const ActorSet& actors : sets) {
    for (const uint32_t block : settings.blocks)
      text += cuda::ahead_initialiser(actors, settings.architecture, block) + ",\n";
  }
  write(settings.out, text);
}

}  // namespace

int main(int count, char** arguments) {
  std::string name;
  try {
    const Settings settings = settings_of(count, arguments);
    name = settings.name;
    run(settings);
    return 0;
  } catch (const BadUsage& error) {
    std::fprintf(stderr, "gyre-compile-ahead: %s\n", error.what());
    return 2;
  } catch (const EngineUnavailable& error) {
    std::fprintf(stderr, "gyre-compile-ahead: compiling %s ahead: %s; or leave ARCHITECTURES out\n",
                 name.c_str(), error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gyre-compile-ahead: compiling %s ahead: %s\n", name.c_str(), error.what());
  }
  return 1;
}
