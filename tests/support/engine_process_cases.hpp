// What cases of engine processes on the fake driver share.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/process/channel.hpp>
#include <gyre/runtime/process/mps.hpp>

#include <chrono>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "support/catch.hpp"
#include "support/stepped.hpp"
#include "support/temporary_folder.hpp"

namespace gyre_test {

using namespace gyre;

#if defined(GYRE_THREAD_SANITIZER)
inline constexpr bool can_fork = false;  // ThreadSanitizer ends children that start threads
#else
inline constexpr bool can_fork = true;
#endif

inline Options in_a_process(Options options = {}) {
  options.engine = EngineKind::cuda;
  options.isolation = Isolation::process;
  // On a busy machine a process may have no turn for seconds.
  if (options.heartbeat_timeout == Options{}.heartbeat_timeout) options.heartbeat_timeout = 30s;
  options.slots = 8;
  return options;
}

template <class Holds>
bool within_a_minute(Holds holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

inline bool says(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

inline std::string refusal(const Options& options) {
  try {
    Runtime runtime = Runtime::launch(probe_actors(), options);
  } catch (const Error& error) {
    return error.what();
  }
  return "it launched";
}

// A program that is started as an engine process, and does what `text` says.
class Impostor {
 public:
  explicit Impostor(const std::string& text) : path_(folder_.path() / "gyre-engine") {
    std::ofstream(path_) << "#!/bin/sh\n" << text << "\n";
    chmod(path_.c_str(), 0700);
    environment_.emplace("GYRE_ENGINE", path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder folder_;
  std::string path_;
  std::optional<Environment> environment_;
};

// What CUDA and Gyre take for a running MPS daemon.
class FakeMps {
 public:
  FakeMps() : environment_("CUDA_MPS_PIPE_DIRECTORY", folder_.path().c_str()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_.path() / "control";
    REQUIRE(path.size() < sizeof address.sun_path);
    path.copy(address.sun_path, path.size());
    REQUIRE(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(socket_.get(), 1) == 0);
  }
  void die() { socket_.close(); }

 private:
  TemporaryFolder folder_;
  Environment environment_;
  Descriptor socket_{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

// No MPS, whatever runs on this machine.
class NoMps {
  Environment environment_{"CUDA_MPS_PIPE_DIRECTORY", "/nowhere"};
};

// What is logged at level info while it lives.
class Logged {
 public:
  Logged() {
    set_log_level(LogLevel::info);
    set_logger([this](LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex_);
      text_ += std::string(line) + "\n";
    });
  }
  ~Logged() {
    set_logger({});
    set_log_level(before_);
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  const LogLevel before_ = log_level();
  std::mutex mutex_;
  std::string text_;
};

}  // namespace gyre_test
