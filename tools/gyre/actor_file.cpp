#include "actor_file.hpp"

#include <fmt/format.h>
#include <gyre/runtime/c/gyre.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/actors/actor_library.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <optional>
#include <sstream>

#include "patterns.hpp"
#include "programs.hpp"

#if defined(GYRE_WITH_CUDA)
#include <gyre/runtime/cuda/ahead.hpp>
#endif

namespace gyre::tools {

namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& file) { return fs::absolute(file).parent_path().string(); }

// "actors.so", or "actors.so:name": the file, and the name of the actors that it exports.
struct LibraryName {
  std::string file, name;
};
std::optional<LibraryName> library_name(const std::string& given) {
  if (given.ends_with(".so")) return LibraryName{given, {}};
  const size_t end = given.rfind(".so:");
  if (end == std::string::npos) return {};
  return LibraryName{given.substr(0, end + 3), given.substr(end + 4)};
}

std::vector<std::string> split_types(const std::string& list) {
  std::vector<std::string> types;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t begin = part.find_first_not_of(" \t");
    if (begin == std::string::npos) continue;
    types.push_back(part.substr(begin, part.find_last_not_of(" \t") - begin + 1));
  }
  return types;
}

// Follows a header's includes. Kernels find headers by their full names alone, so #include "sibling.hpp" is
// spelt out.
class Includes {
 public:
  Includes(const std::vector<std::string>& folders, const std::vector<std::string>& schemas,
           const std::string& views)
      : folders_(folders), schemas_(schemas), views_(views), own_(actor_library_headers()) {}

  std::vector<SourceText> of(const std::string& name, const fs::path& path) {
    add(name, path);
    while (!waiting_.empty()) {
      const auto [next, at] = waiting_.front();
      waiting_.pop_front();
      headers_.push_back({next, spelt_out(next, at)});
    }
    return std::move(headers_);
  }

 private:
  void add(const std::string& name, const fs::path& path) {
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) return;
    names_.push_back(name);
    waiting_.emplace_back(name, path);
  }

  std::string spelt_out(const std::string& name, const fs::path& path) {
    std::istringstream lines(read_file(path.string(), "reading actors"));
    std::string text;
    for (std::string line; std::getline(lines, line); text += line + "\n") {
      const Found found = search(line, "^([ \t]*#[ \t]*include[ \t]*)([<\"])([^>\"]+)[>\"]");
      if (found.empty()) continue;
      const std::string& include = found[3];
      const fs::path sibling = path.parent_path() / include;
      if (found[2] == "\"" && fs::is_regular_file(sibling)) {
        const std::string full = below(fs::path(name).parent_path() / include);
        add(full, sibling);
        line = fmt::format("{}<{}>{}", found[1], full, line.substr(found[0].size()));
      } else if (!is_own(include)) {
        if (const fs::path file = find(include); !file.empty()) add(include, file);
      }
    }
    return text;
  }

  // A header above the actors' own folder gets a name without "..".
  static std::string below(const fs::path& name) {
    fs::path kept;
    for (const fs::path& part : name.lexically_normal()) {
      if (part != "..") kept /= part;
    }
    return kept.string();
  }

  bool is_own(const std::string& name) const {
    return std::any_of(own_.begin(), own_.end(),
                       [&name](const SourceFile& file) { return file.name == name; });
  }

  // A view is known by its schema's file, whatever folder #include names before it.
  fs::path find(const std::string& include) const {
    for (const std::string& schema : schemas_) {
      const fs::path view = fs::path(schema).stem().string() + ".view.hpp";
      if (fs::path(include).filename() == view) return fs::path(views_) / view;
    }
    for (const std::string& folder : folders_) {
      if (fs::is_regular_file(fs::path(folder) / include)) return fs::path(folder) / include;
    }
    return {};
  }

  std::vector<std::string> folders_, schemas_;
  std::string views_;
  std::vector<SourceFile> own_;
  std::vector<std::string> names_;
  std::deque<std::pair<std::string, fs::path>> waiting_;
  std::vector<SourceText> headers_;
};

// A C++ literal of it.
std::string literal(std::string_view text, const std::string& what) {
  if (text.find(")gyre_text\"") != std::string_view::npos) {
    throw Error(
        fmt::format("making an actor library: {} contains )gyre_text\", which ends the literal that it is "
                    "put in; write it "
                    "otherwise",
                    what));
  }
  return fmt::format("R\"gyre_text({})gyre_text\"", text);
}

// The initialisers of the library's CompiledAhead.
std::string compile_ahead(const ActorText& actors, const AheadOptions& ahead) {
  if (ahead.architectures.empty()) return {};
#if defined(GYRE_WITH_CUDA)
  // The set that from_library() makes of the library: the text that a launch would compile.
  const std::vector<std::string_view> types(actors.types.begin(), actors.types.end());
  std::vector<SourceFile> headers;
  for (const SourceText& header : actors.headers) headers.push_back({header.name, header.text});
  ActorLibrary library{};
  library.types = types;
  library.text = actors.text;
  library.headers = headers;
  const ActorSet set = ActorSet::from_library(library);
  std::string initialisers;
  for (const int architecture : ahead.architectures)
    initialisers += "    " + cuda::ahead_initialiser(set, architecture, ahead.block) + ",\n";
  return initialisers;
#else
  throw EngineUnavailable(
      "making an actor library with --architecture: this Gyre was built without the CUDA toolkit; install "
      "the "
      "toolkit (12 or 13) and build again, or leave --architecture out");
#endif
}

std::string library_text(const ActorText& actors, const AheadOptions& ahead) {
  std::string type_list, type_names, headers;
  for (const std::string& type : actors.types) {
    type_list += (type_list.empty() ? "" : ", ") + type;
    type_names += fmt::format("    \"{}\",\n", type);
  }
  for (const SourceText& header : actors.headers) {
    headers += fmt::format("    {{\"{}\", {}}},\n", header.name, literal(header.text, header.name));
  }
  std::string schemas;
  for (const char byte : actors.schemas) schemas += fmt::format("{},", unsigned(uint8_t(byte)));
  return fmt::format(
      "// Generated by gyre; do not edit.\n"
      "#include <gyre/runtime/actors/export_actor_library.hpp>\n"
      "#include <iterator>\n"
      "{}\n"
      "namespace {{\n"
      "constexpr std::string_view types[] = {{\n{}}};\n"
      "constexpr gyre::SourceFile headers[] = {{\n{}}};\n"
      "constexpr unsigned char schemas[] = {{{}0}};\n"
      "constexpr auto description = gyre::describe<{}>();\n"
      "using namespace std::string_view_literals;\n"
      "constexpr gyre::CompiledAhead ahead[] = {{\n{}    {{}}}};  // the last one is none\n"
      "constexpr gyre::ActorLibrary library = {{\n"
      "    types, &description, sizeof description,\n"
      "    {}, headers, {}, {}, gyre::make_worker_of<{}>(), false,\n"
      "    {{}}, {{ahead, std::size(ahead) - 1}}}};\n"
      "}}  // namespace\n"
      "GYRE_EXPORT_ACTOR_LIBRARY(actors, {:#x}u, \"{}, \" __VERSION__, +[] {{ return &library; }})\n",
      actors.text, type_names, headers, schemas, type_list, compile_ahead(actors, ahead),
      literal(actors.text, "the main text"), actors.schemas.empty() ? "nullptr" : "schemas",
      actors.schemas.size(), type_list, actor_library_headers_hash(), GYRE_VERSION);
}

std::string find_compiler() {
  if (const char* const named = std::getenv("CXX"); named != nullptr && *named != '\0') {
    const std::string found = *named == '/' ? std::string(named) : find_program(named);
    if (found.empty()) {
      throw EngineUnavailable(fmt::format(
          "compiling actors for the CPU engine: CXX is {}, and there is no such program; correct CXX",
          named));
    }
    return found;
  }
  for (const char* const name : {"c++", "g++", "clang++"}) {
    if (std::string found = find_program(name); !found.empty()) return found;
  }
  throw EngineUnavailable(
      "compiling actors for the CPU engine: there is no C++ compiler (c++, g++, clang++) on the PATH; "
      "install "
      "g++ 12 or clang 14 or later, set CXX, or make a library where there is one (gyre validate "
      "--build-library actors.so) and give that as --actors actors.so");
}

ActorsOfFile load(const LibraryName& from) {
  const ActorLibrary& library = load_actor_library(from.file, from.name);
  return {ActorSet::from_library(library),
          std::string(static_cast<const char*>(library.schemas), library.schemas_bytes)};
}

}  // namespace

CommandOption add_actor_file_options(const ProgramCommand& command, ActorFileOptions& options,
                                     const std::string& help, const std::string& group) {
  const CommandOption actors = command.add_option("--actors", options.file, help).type_name("FILE");
  const CommandOption all[] = {
      actors,
      command.add_option("--types", options.types, "a header's actors: \"my::Counter,my::Sum\"")
          .type_name("NAMES"),
      command.add_option("--schema", options.schemas, "schema of a header's messages; repeatable")
          .type_name("FILE")
          .one_value_each(),
      command.add_option("--include", options.include_dirs, "folder for includes and imports; repeatable")
          .type_name("DIR")
          .one_value_each()};
  for (const CommandOption& option : all) {
    if (!group.empty()) option.group(group);
  }
  return actors;
}

CompiledSchemas compile_schemas(const std::vector<std::string>& schemas,
                                const std::vector<std::string>& import_dirs, const std::string& views) {
  CompiledSchemas compiled{{}, views};
  if (schemas.empty()) return compiled;
  const std::string compiler = find_program("capnp"), plugin = find_program("capnpc-gyre");
  if (compiler.empty() || plugin.empty()) {
    throw EngineUnavailable(
        fmt::format("compiling the schema {}: there is no {} on the PATH; install {}, or make a library "
                    "where there is one "
                    "(gyre validate --build-library) and give that as --actors",
                    schemas.front(), compiler.empty() ? "capnp" : "capnpc-gyre",
                    compiler.empty() ? "Cap'n Proto's compiler (Debian: capnproto)" : "it beside gyre"));
  }
  fs::create_directories(views);
  const std::string request = (fs::path(views) / "schemas.request").string();
  const auto run = [&](const std::vector<std::string>& files, const std::string& output, std::string prefix,
                       const std::string& to) {
    std::vector<std::string> command = {compiler, "compile", output};
    if (!prefix.empty()) command.push_back("--src-prefix=" + prefix);
    for (const std::string& dir : import_dirs) command.push_back("-I" + dir);
    for (const std::string& file : files) command.push_back(fs::absolute(file).string());
    const ProgramResult result = run_program({.command = command, .output_file = to});
    if (result.exit_code != 0) {
      throw Error(fmt::format("compiling the schema {} by {}:\n{}", files.front(), compiler, result.output));
    }
  };
  for (const std::string& schema : schemas) {
    if (!fs::is_regular_file(schema)) {
      throw BadOptions(fmt::format("reading --schema {}: there is no such file", schema));
    }
    run({schema}, "-o" + plugin + ":" + views, folder_of(schema), {});
  }
  run(schemas, "-o-", {}, request);
  compiled.request = read_file(request, "reading what capnp wrote");
  return compiled;
}

ActorText read_actor_text(const ActorFileOptions& options) {
  if (!fs::is_regular_file(options.file)) {
    throw BadOptions(fmt::format("reading the actors of --actors {}: there is no such file", options.file));
  }
  ActorText actors;
  actors.types = split_types(options.types);
  if (actors.types.empty()) {
    throw BadOptions(
        fmt::format("--actors {}: say which of its types are actors: --types "
                    "\"my::Counter,my::Sum\"",
                    options.file));
  }
  const TemporaryFolder folder;
  std::vector<std::string> folders = {folder_of(options.file)};
  folders.insert(folders.end(), options.include_dirs.begin(), options.include_dirs.end());
  const CompiledSchemas schemas =
      compile_schemas(options.schemas, options.include_dirs, (fs::path(folder.path()) / "views").string());
  const std::string name = fs::path(options.file).filename().string();
  actors.text = fmt::format("#include <{}>\n", name);
  actors.headers = Includes(folders, options.schemas, schemas.views).of(name, fs::absolute(options.file));
  for (SourceText& header : builtin_actor_headers()) actors.headers.push_back(std::move(header));
  actors.schemas = schemas.request;
  return actors;
}

void build_actor_library(const ActorText& actors, const std::string& file, const AheadOptions& ahead) {
  const std::string doing = "making the actor library " + file;
  // Checks the names, and that no header is two.
  ActorSet::from_source(actors.text, actors.types, actors.headers);
  const std::string compiler = find_compiler();
  const TemporaryFolder folder;
  const fs::path include = fs::path(folder.path()) / "include";
  for (const SourceFile& header : actor_library_headers()) {
    write_file((include / header.name).string(), std::string(header.text), doing);
  }
  for (const SourceText& header : actors.headers) {
    write_file((include / header.name).string(), header.text, doing);
  }
  const std::string source = (fs::path(folder.path()) / "library.cpp").string();
  write_file(source, library_text(actors, ahead), doing);
  // Flags that engines agree by, as everything that includes Gyre's headers is compiled; of the C++ library
  // its own copy, so that it can be carried to another machine.
  const ProgramResult result = run_program(
      {.command = {compiler, "-std=c++20", "-O2", "-g1", "-fPIC", "-shared", "-fvisibility=hidden",
                   "-ffp-contract=off", "-fno-strict-aliasing", "-static-libstdc++", "-static-libgcc",
                   "-I" + include.string(), "-o", fs::absolute(file).string(), source}});
  if (result.exit_code != 0) {
    throw Error(fmt::format("{} by {}: exit code {}:\n{}", doing, compiler, result.exit_code, result.output));
  }
}

ActorsOfFile read_actors(const ActorFileOptions& options) {
  if (const auto library = library_name(options.file)) return load(*library);
  ActorText text = read_actor_text(options);
  return {ActorSet::from_source(std::move(text.text), std::move(text.types), std::move(text.headers)),
          std::move(text.schemas)};
}

ActorsOfFile build_and_load_actors(const ActorFileOptions& options) {
  if (const auto library = library_name(options.file)) return load(*library);
  const TemporaryFolder folder;  // a loaded library needs its file no more
  const std::string library = (fs::path(folder.path()) / "actors.so").string();
  build_actor_library(read_actor_text(options), library);
  return load({library, {}});
}

}  // namespace gyre::tools
