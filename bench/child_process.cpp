#include "child_process.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gyre/bridge/errors/error.hpp>

#include <csignal>
#include <cstring>
#include <ctime>

extern char** environ;

namespace gyre::bench {

namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string name_of(const std::string& assignment) { return assignment.substr(0, assignment.find('=') + 1); }

std::string read_all(int file) {
  std::string text;
  char part[4096];
  for (ssize_t got; (got = read(file, part, sizeof part)) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    text.append(part, size_t(got));
  }
  return text;
}

}  // namespace

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

ChildOutput run_self(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  std::vector<std::string> argument_texts = {"gyre-bench"};
  argument_texts.insert(argument_texts.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment_texts = environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool replaced = false;
    for (const std::string& ours : environment) replaced |= name_of(*entry) == name_of(ours);
    if (!replaced) environment_texts.push_back(*entry);
  }
  int ends[2];
  if (pipe(ends) != 0) throw Error(fmt::format("starting a process: no pipe: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);  // this process blocks SIGINT; the other shall not
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  ChildOutput output;
  pid_t child = 0;
  output.started_ns = monotonic_ns();
  const int error = posix_spawn(&child, "/proc/self/exe", &actions, &attributes,
                                pointers(argument_texts).data(), pointers(environment_texts).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    throw Error(fmt::format("starting gyre-bench {}: {}", arguments.front(), std::strerror(error)));
  }
  output.text = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Error(
        fmt::format("a process started to be measured (gyre-bench {}) ended with {}; its own message, if "
                    "any, is above",
                    arguments.front(),
                    WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                                      : fmt::format("signal {}", WTERMSIG(status))));
  }
  return output;
}

}  // namespace gyre::bench
