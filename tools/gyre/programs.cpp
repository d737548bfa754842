#include "programs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gyre/bridge/errors/error.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

extern char** environ;

namespace gyre::tools {

namespace fs = std::filesystem;

namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string find_program(const std::string& name, const std::vector<std::string>& folders) {
  std::vector<std::string> all;
  std::error_code failed;
  if (const fs::path self = fs::read_symlink("/proc/self/exe", failed); !failed) {
    all.push_back(self.parent_path().string());
  }
  all.insert(all.end(), folders.begin(), folders.end());
  if (const char* const path = std::getenv("PATH"); path != nullptr) {
    std::istringstream parts(path);
    for (std::string part; std::getline(parts, part, ':');) all.push_back(part);
  }
  for (const std::string& folder : all) {
    if (folder.empty()) continue;
    const fs::path file = fs::path(folder) / name;
    if (fs::is_regular_file(file, failed) && access(file.c_str(), X_OK) == 0) return file.string();
  }
  return {};
}

ProgramResult run_program(const ProgramRun& run) {
  const std::string& program = run.command.front();
  std::vector<std::string> arguments = run.command, environment = run.environment;
  const auto name_of = [](std::string_view assignment) { return assignment.substr(0, assignment.find('=')); };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const auto replaces = [&](const std::string& ours) { return name_of(ours) == name_of(*entry); };
    if (std::none_of(run.environment.begin(), run.environment.end(), replaces)) environment.push_back(*entry);
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(fmt::format("starting {}: no pipe: {}", program, std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (run.output_file.empty()) {
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, run.output_file.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
  }
  if (run.keeps_errors) posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);  // this process may block SIGINT; the other shall not
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  ProgramResult result;
  pid_t child = 0;
  // Not fork(), which copies the page tables of this process: of 400 MB it takes some 60 ms.
  result.started = std::chrono::steady_clock::now();
  const int error = posix_spawn(&child, program.c_str(), &actions, &attributes, pointers(arguments).data(),
                                pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    throw Error(fmt::format("starting {}: {}", program, std::strerror(error)));
  }
  char part[4096];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    result.output.append(part, size_t(got));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.exit_code = result.signal == 0 ? WEXITSTATUS(status) : 128 + result.signal;
  return result;
}

std::string read_file(const std::string& path, const std::string& doing) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  // An empty file sets failbit on `text` alone.
  if (!file) throw Error(fmt::format("{}: the file {} cannot be read; check its path", doing, path));
  return text.str();
}

void write_file(const std::string& path, const std::string& text, const std::string& doing) {
  std::error_code failed;
  fs::create_directories(fs::path(path).parent_path(), failed);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), std::streamsize(text.size()));
  if (!file.flush()) {
    throw Error(fmt::format("{}: the file {} cannot be written; check its path", doing, path));
  }
}

}  // namespace gyre::tools
