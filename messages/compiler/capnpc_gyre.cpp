// capnpc-gyre, a Cap'n Proto compiler plugin. For every requested schema F.capnp it writes, below the current
// directory:
//   F.view.hpp      views of the structs for workers, one text for g++, clang and NVRTC
//   F.official.hpp  host only: which view belongs to which official class
// What the views do not cover is refused, each offending field by name, and then nothing is written.
//
// Use: capnp compile -o capnpc-gyre:DIR --src-prefix=SOURCE_DIR F.capnp
#include <capnp/serialize.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

#include "names.hpp"
#include "official_writer.hpp"
#include "refusals.hpp"
#include "view_writer.hpp"

namespace gyre::compiler {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) {
    throw std::runtime_error("writing " + std::filesystem::absolute(path).string() + ": " +
                             std::strerror(errno));
  }
}

int run() {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = uint64_t(1) << 30;  // the compiler is trusted, however large its schemas
  capnp::StreamFdMessageReader message(STDIN_FILENO, options);
  const auto request = message.getRoot<CodeGeneratorRequest>();
  const Schema schema(request);

  bool refused = false;
  std::map<std::filesystem::path, std::string> headers;
  for (const auto requested : request.getRequestedFiles()) {
    const auto problems = refusals(schema, requested);
    for (const std::string& problem : problems) std::fprintf(stderr, "capnpc-gyre: %s\n", problem.c_str());
    refused = refused || !problems.empty();
    if (refused) continue;
    const std::string name = requested.getFilename();
    const auto header = [&](const char* ending) -> std::string& {
      return headers[std::filesystem::path(header_name(name, ending)).relative_path()];
    };
    header(".view.hpp") = view_header(schema, requested);
    header(".official.hpp") = official_header(schema, requested);
  }
  if (refused) return 1;
  for (const auto& [path, text] : headers) write(path, text);
  return 0;
}

}  // namespace
}  // namespace gyre::compiler

int main(int argc, char**) {
  if (argc > 1 || isatty(STDIN_FILENO)) {
    std::fputs(
        "capnpc-gyre: a plugin of the Cap'n Proto compiler, which starts it and gives it its input. Use:\n"
        "  capnp compile -o path/to/capnpc-gyre:OUTPUT_DIR --src-prefix=SOURCE_DIR SOURCE_DIR/file.capnp\n",
        stderr);
    return 2;
  }
  try {
    return gyre::compiler::run();
  } catch (const kj::Exception& exception) {
    std::fprintf(
        stderr,
        "capnpc-gyre: reading the compiler's request from standard input: %s; is it capnp that started "
        "this?\n",
        exception.getDescription().cStr());
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "capnpc-gyre: %s\n", exception.what());
  }
  return 1;
}
