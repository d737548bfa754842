// Which signals the process's threads take.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace gyre_test {

/// The threads besides the calling one that take a signal, with the mask of those they take, a line each;
/// empty if there is none. Signals that say what a thread itself did wrong do not count, nor do those that
/// cannot be blocked and the C library's own.
inline std::string threads_that_take_signals() {
  uint64_t all = ~uint64_t(0);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGKILL, SIGSTOP, 32, 33, 34}) {
    if (signal < SIGRTMIN) all &= ~(uint64_t(1) << (signal - 1));
  }
  std::string text;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string id = task.path().filename().string();
    if (id == std::to_string(gettid())) continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("SigBlk:", 0) != 0) continue;
      const uint64_t taken = all & ~std::stoull(line.substr(7), nullptr, 16);
      if (taken != 0) text += "thread " + id + " takes " + std::to_string(taken) + "\n";
    }
  }
  return text;
}

}  // namespace gyre_test
