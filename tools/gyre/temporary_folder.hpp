// A folder for what a program needs on disk for a while.
#pragma once

#include <string>

namespace gyre::tools {

/// A folder of its own for temporary files, removed with all that is in it.
class TemporaryFolder {
 public:
  /// Throws Error.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Removes all that is in it. Throws Error.
  void empty() const;

 private:
  std::string path_;
};

}  // namespace gyre::tools
