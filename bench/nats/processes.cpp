#include "nats/processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gyre/bridge/errors/error.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "gyre_run.hpp"
#include "json.hpp"
#include "programs.hpp"

namespace gyre::bench {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto patience = std::chrono::seconds(30);

std::vector<std::string> server_command(const std::string& folder, uint64_t max_payload) {
  const std::string settings = folder + "/server.conf";
  tools::write_file(settings, max_payload == 0 ? "" : fmt::format("max_payload: {}\n", max_payload),
                    "configuring nats-server");
  // Port -1 is a free one, which the server writes into a file.
  return {find_nats_server(), "-c",  settings, "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", folder + "/store",
          "--ports_file_dir", folder};
}

std::vector<std::string> node_command(const std::string& program, const std::string& url,
                                      const Options& options, const std::string& folder) {
  std::vector<std::string> command = {program,       "--builtin",
                                      "--server",    url,
                                      "--namespace", node_namespace,
                                      "--node",      "node",
                                      "--shards",    std::to_string(node_shards),
                                      "--json",      folder + "/books.json"};
  const std::vector<std::string> more = arguments_of(options);
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

}  // namespace

Child::Child(std::vector<std::string> command, std::string log)
    : program_(command.front()), log_(std::move(log)) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int output = open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const pid_t parent = getpid();
  id_ = fork();
  if (id_ == 0) {
    // Only calls that are safe after a fork of a process with threads.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  const int error = errno;
  close(output);
  close(input);
  if (id_ < 0) throw Error(fmt::format("starting {}: {}", program_, std::strerror(error)));
}

Child::~Child() { end(); }

int Child::end() {
  if (id_ == 0) return 0;
  kill(id_, SIGTERM);
  int status = 0;
  for (const auto until = Clock::now() + patience; waitpid(id_, &status, WNOHANG) == 0;) {
    if (Clock::now() > until) kill(id_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  id_ = 0;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void Child::expect_running(const std::string& doing) {
  int status = 0;
  if (waitpid(id_, &status, WNOHANG) == 0) return;
  id_ = 0;
  throw Error(fmt::format(
      "{}: {} ended with {} {}; it said:\n{}", doing, program_, WIFSIGNALED(status) ? "signal" : "exit code",
      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), tools::read_file(log_, doing)));
}

std::string find_nats_server() {
  if (const char* const given = std::getenv("NATS_SERVER"); given != nullptr && *given != 0) return given;
  return tools::find_program("nats-server", {"/usr/sbin"});
}

NatsServer::NatsServer(uint64_t max_payload)
    : process_(server_command(folder_.path(), max_payload), folder_.path() + "/server.log") {
  const std::string doing = "starting nats-server",
                    ports = fmt::format("{}/nats-server_{}.ports", folder_.path(), process_.id());
  for (const auto until = Clock::now() + patience; url_.empty();) {
    process_.expect_running(doing);
    if (std::filesystem::exists(ports)) {
      const tools::Json json = tools::Json::parse(tools::read_file(ports, doing));
      if (json.has("nats")) url_ = json["nats"][0].as_string();  // else it is being written
    }
    if (Clock::now() > until) {
      throw Error(fmt::format("{}: it does not listen after {} s; it said:\n{}", doing, patience.count(),
                              tools::read_file(folder_.path() + "/server.log", doing)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

NatsNode::NatsNode(const std::string& program, const std::string& url, const Options& options)
    : process_(node_command(program, url, options, folder_.path()), folder_.path() + "/node.log") {}

void NatsNode::end() {
  const int code = process_.end();
  const std::string doing = "ending a node on NATS";
  const bool balanced = code == 0 && tools::Json::parse(tools::read_file(folder_.path() + "/books.json",
                                                                         doing))["balanced"] == true;
  if (balanced) return;
  throw Error(fmt::format("{}: its exit code is {}, or its books do not balance; it said:\n{}", doing, code,
                          tools::read_file(folder_.path() + "/node.log", doing)));
}

}  // namespace gyre::bench
