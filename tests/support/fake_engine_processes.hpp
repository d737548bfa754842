// Engine processes on the fake driver: $GYRE_ENGINE names them, and each reports what it did wrong.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "support/temporary_folder.hpp"

namespace gyre_test {

/// True with GYRE_TEST_TRANSPORT=bar in the environment: there is a fake Vulkan too, and `auto` is BAR.
inline bool transport_is_bar() {
  const char* const wanted = std::getenv("GYRE_TEST_TRANSPORT");
  return wanted != nullptr && std::string_view(wanted) == "bar";
}

/// While one lives, every engine process that this process starts is `program`, fake-gyre-engine. One at a
/// time.
class FakeEngineProcesses {
 public:
  explicit FakeEngineProcesses(const char* program) {
    setenv("GYRE_ENGINE", program, 1);
    setenv("GYRE_TEST_ENGINE_REPORTS", folder_.path().c_str(), 1);
  }
  ~FakeEngineProcesses() {
    unsetenv("GYRE_ENGINE");
    unsetenv("GYRE_TEST_ENGINE_REPORTS");
  }
  FakeEngineProcesses(const FakeEngineProcesses&) = delete;
  FakeEngineProcesses& operator=(const FakeEngineProcesses&) = delete;

  /// What a real driver would have blocked on or crashed by, and what was left: a line each. Of processes
  /// that ended as asked; a process that was killed reports nothing.
  std::string reports() const {
    std::string all;
    for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
      std::ostringstream text;
      text << std::ifstream(file.path()).rdbuf();
      all += text.str();
    }
    return all;
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace gyre_test
