// A folder of a test's own.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace gyre_test {

/// Empty, with mode 0700; removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "gyre-test-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("making the folder " + path);
    path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// An environment variable for a scope; null: unset.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* const before = getenv(name)) before_ = before, was_set_ = true;
    set(value);
  }
  ~Environment() { set(was_set_ ? before_.c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(const char* value) { value != nullptr ? setenv(name_, value, 1) : unsetenv(name_); }

  const char* name_;
  std::string before_;
  bool was_set_ = false;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("reading " + path.string());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) throw std::runtime_error("writing " + path.string());
}

}  // namespace gyre_test
