// Engine processes that run, by /proc.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace gyre_test {

/// Lists the engine processes that `parent` started, without those that have ended and were not waited for.
inline std::vector<pid_t> engines_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    if (!std::getline(file, line)) continue;
    const std::string rest = line.substr(line.rfind(')') + 2);  // "S 123 …": state and parent
    if (line.find("gyre-engin") != std::string::npos && rest[0] != 'Z' &&
        std::stol(rest.substr(2)) == parent) {
      found.push_back(pid_t(std::stol(name)));
    }
  }
  return found;
}

/// Returns false if there is no such process, or it has ended and was not waited for.
inline bool lives(pid_t id) {
  std::ifstream file("/proc/" + std::to_string(id) + "/stat");
  std::string line;
  return std::getline(file, line) && line[line.rfind(')') + 2] != 'Z';
}

/// Stops a process, and returns once every thread of it stands still.
inline void stop_process(pid_t id) {
  kill(id, SIGSTOP);
  const auto stands = [](const std::filesystem::path& thread) {
    std::ifstream file(thread / "stat");
    std::string line;
    return !std::getline(file, line) || line[line.rfind(')') + 2] == 'T';
  };
  const auto all_stand = [&] {
    for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(id) + "/task")) {
      if (!stands(thread.path())) return false;
    }
    return true;
  };
  while (!all_stand()) std::this_thread::yield();
}

}  // namespace gyre_test
