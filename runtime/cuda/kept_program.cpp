#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/cuda/kept_program.hpp>

#include <filesystem>
#include <fstream>

namespace gyre::cuda {

namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& path, std::string_view text) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), std::streamsize(text.size()));
  if (!file.flush()) {
    throw Error(
        fmt::format("keeping the compiled program: the file {} cannot be written; check the path that "
                    "--keep-program gives",
                    path.string()));
  }
}

// Of a result: an empty one has no file.
void write_result(const fs::path& path, std::string_view bytes) {
  std::error_code ignored;
  if (bytes.empty()) {
    fs::remove(path, ignored);
  } else {
    write_file(path, bytes);
  }
}

bool stays_below(const fs::path& name) {
  return name.is_relative() && *name.lexically_normal().begin() != "..";
}

}  // namespace

void keep(const KeptProgram& kept, const std::string& folder) {
  const fs::path root = folder;
  write_file(root / "kernel.cu", kept.program.text);
  for (const SourceFile& header : kept.program.headers) {
    if (stays_below(fs::path(header.name))) write_file(root / "include" / fs::path(header.name), header.text);
  }
  std::string options;
  for (const std::string& option : kept.program.options) options += option + "\n";
  options += fmt::format("# NVRTC {}\n# kernel: {}\n# its name: {}\n", kept.compiler, kept.program.kernel,
                         kept.kernel.lowered_name);
  if (!kept.program.toolkit.empty()) {
    options +=
        fmt::format("# needs headers of the CUDA toolkit: {}, in the folders of -I\n", kept.program.toolkit);
  }
  write_file(root / "options.txt", options);
  write_file(root / "compile.log", kept.log);
  write_result(root / "kernel.ptx", kept.ptx);
  write_result(root / "kernel.cubin", kept.kernel.cubin);
}

}  // namespace gyre::cuda
