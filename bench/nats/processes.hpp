// What a benchmark on NATS starts: a server, a node, and a bare echo, each a process of its own.
#pragma once

#include <gyre/runtime/options.hpp>

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "temporary_folder.hpp"

namespace gyre::bench {

/// A process that lives as long as this object: it is asked to end, then killed. It also ends with the
/// thread that started it. Its output is in a file.
class Child {
 public:
  /// @param command  a program's path and its arguments
  /// @param log      the file that gets its standard output and standard error
  /// @throws Error   if it cannot be started
  Child(std::vector<std::string> command, std::string log);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t id() const { return id_; }
  /// Asks the process to end, waits until it has, and kills it after half a minute. Returns its exit code, or
  /// 128 and the number of the signal that ended it.
  int end();
  /// Throws Error, with its output, if the process has ended. `doing`: what the caller waits for.
  void expect_running(const std::string& doing);

 private:
  const std::string program_, log_;
  pid_t id_ = 0;
};

/// Returns the path of nats-server: $NATS_SERVER, or the one in this program's folder, on $PATH or in
/// /usr/sbin. Empty if there is none.
std::string find_nats_server();

/// A nats-server with JetStream on a free port of this machine.
class NatsServer {
 public:
  /// Starts find_nats_server(), and blocks until it listens.
  /// @param max_payload  bytes; 0: the server's default
  /// @throws Error       if it does not start
  explicit NatsServer(uint64_t max_payload);

  const std::string& url() const { return url_; }

 private:
  const tools::TemporaryFolder folder_;
  Child process_;
  std::string url_;
};

inline constexpr const char* node_namespace = "bench";
inline constexpr uint32_t node_shards = 64;

/// A gyre-nats with the built-in actors, alone in its namespace.
class NatsNode {
 public:
  /// Starts it; waits for nothing.
  /// @param program  the path of gyre-nats
  NatsNode(const std::string& program, const std::string& url, const Options& options);

  /// Throws Error, with its output, if it has ended.
  void expect_running() { process_.expect_running("waiting for a node on NATS"); }
  /// Ends it. Throws Error, with its output, unless its books balance.
  void end();

 private:
  const tools::TemporaryFolder folder_;
  Child process_;
};

}  // namespace gyre::bench
