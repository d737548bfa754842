#include "temporary_folder.hpp"

#include <stdlib.h>
#include <gyre/bridge/errors/error.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace gyre::tools {

TemporaryFolder::TemporaryFolder() {
  path_ = (std::filesystem::temp_directory_path() / "gyre-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) {
    throw Error("making a temporary folder " + path_ + ": " + std::strerror(errno) +
                "; TMPDIR says where it is made");
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TemporaryFolder::empty() const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    std::filesystem::remove_all(entry.path(), error);
    if (error) break;
  }
  if (error) throw Error("emptying the temporary folder " + path_ + ": " + error.message());
}

}  // namespace gyre::tools
