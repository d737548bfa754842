#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gyre/runtime/c/gyre.h>
#include <kj/exception.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/region.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/process/engine_process.hpp>
#include <gyre/runtime/process/mps.hpp>
#include <gyre/runtime/system/cancellation.hpp>
#include <gyre/runtime/system/leave_thread.hpp>
#include <gyre/runtime/system/signals_blocked.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

extern char** environ;

namespace gyre::process {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int first_own_descriptor = 10;  // above those that the engine process gets
constexpr int poll_ms = 100;              // between two looks at the heartbeat
constexpr int poll_without_pidfd_ms = 2;

std::string because(int error) { return std::generic_category().message(error); }

[[noreturn]] void not_started(const std::string& what) {
  throw EngineUnavailable("starting the engine process: " + what + "; or launch with --isolation in_process");
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

Descriptor above_fixed(int descriptor, const char* what) {
  const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, first_own_descriptor);
  if (copy < 0)
    not_started(fmt::format("{}: {}; close descriptors, or raise their limit", what, because(errno)));
  return Descriptor(copy);
}

int open_pidfd(pid_t id) { return int(syscall(SYS_pidfd_open, id, 0)); }

// The program's environment with another percentage: the variable is the engine process's alone.
std::vector<char*> environment_with(std::string& percentage) {
  const std::string_view name = std::string_view(percentage).substr(0, percentage.find('=') + 1);
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with(name)) variables.push_back(*variable);
  }
  variables.push_back(percentage.data());
  variables.push_back(nullptr);
  return variables;
}

SharedMemory make_page() {
  try {
    return SharedMemory("gyre-engine", sizeof(EnginePage), sizeof(EnginePage));
  } catch (const Error& error) {
    not_started(error.what());
  }
}

std::string how_it_ended(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return fmt::format("it ended with exit code {}", info.si_status);
  return fmt::format("it was ended by signal {} ({})", info.si_status, strsignal(info.si_status));
}

}  // namespace

std::vector<std::string> engine_paths() {
  if (const char* const named = secure_getenv("GYRE_ENGINE"); named != nullptr && *named != '\0')
    return {named};
  std::vector<std::string> folders, paths;
  char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length > 0) folders.push_back(folder_of(std::string(program, size_t(length))));
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&engine_paths), &library) != 0 && library.dli_fname != nullptr) {
    char real[PATH_MAX];
    if (realpath(library.dli_fname, real) != nullptr) folders.push_back(folder_of(real));
  }
  for (const std::string& folder : folders) {
    for (const char* const below : {"/", "/../libexec/gyre/", "/../../libexec/gyre/"}) {
      const std::string path = folder + below + "gyre-engine";
      if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
    }
  }
  paths.push_back("/usr/libexec/gyre/gyre-engine");
  return paths;
}

EngineProcess::EngineProcess(milliseconds heartbeat_timeout, uint32_t mps_percentage)
    : heartbeat_timeout_(heartbeat_timeout), mps_(mps_runs()), page_(make_page()) {
  const std::vector<std::string> paths = engine_paths();
  const auto found = std::find_if(paths.begin(), paths.end(),
                                  [](const std::string& path) { return access(path.c_str(), X_OK) == 0; });
  if (found == paths.end()) {
    std::string list;
    for (const std::string& path : paths) list += (list.empty() ? "" : ", ") + path;
    not_started(
        fmt::format("there is no program gyre-engine at {}; install Gyre's package gyre-runtime, or name "
                    "the program by $GYRE_ENGINE",
                    list));
  }
  path_ = *found;
  spawn(mps_percentage);
  try {
    const detail::SignalsBlocked blocked;
    supervisor_ = std::thread([this] { supervise(); });
  } catch (const std::system_error& error) {
    kill_now();
    reap();
    not_started(
        fmt::format("there can be no thread to watch it: {}; end other threads or raise their limit "
                    "(ulimit -u)",
                    error.what()));
  }
  pthread_setname_np(supervisor_.native_handle(), "gyre-supervisor");
  try {
    wait_for_hello();
  } catch (...) {
    kill_now();
    supervisor_.join();
    throw;
  }
}

// Nothing of the program runs in the child: posix_spawn shares memory with it until it executes the engine.
void EngineProcess::spawn(uint32_t mps_percentage) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    not_started(fmt::format("there can be no socket pair: {}; close descriptors, or raise their limit",
                            because(errno)));
  }
  Descriptor ours(sockets[0]);
  const Descriptor theirs = above_fixed(Descriptor(sockets[1]).get(), "copying its socket");
  const Descriptor page = above_fixed(page_.descriptor(), "copying its page");
  Descriptor program(open_pidfd(getpid()));  // none before Linux 5.3
  if (program) program = above_fixed(program.get(), "copying the program's pidfd");

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, theirs.get(), socket_descriptor);
  if (program) posix_spawn_file_actions_adddup2(&files, program.get(), program_descriptor);
  posix_spawn_file_actions_adddup2(&files, page.get(), page_descriptor);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // A session of its own: Ctrl-C in the program's terminal is the program's.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  std::string name = "gyre-engine", parent = std::to_string(getpid());
  char* arguments[] = {name.data(), parent.data(), program ? nullptr : const_cast<char*>("no-pidfd"),
                       nullptr};
  std::string percentage = fmt::format("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE={}", mps_percentage);
  std::vector<char*> variables;
  if (mps_percentage != 0) variables = environment_with(percentage);
  const int error = posix_spawn(&id_, path_.c_str(), &files, &attributes, arguments,
                                mps_percentage != 0 ? variables.data() : environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    not_started(
        fmt::format("the system does not start {}: {}; see its permissions, and what limits processes "
                    "(ulimit -u)",
                    path_, because(error)));
  }
  process_ = Descriptor(open_pidfd(id_));
  if (process_) fcntl(process_.get(), F_SETFD, FD_CLOEXEC);
  channel_.emplace(std::move(ours));
}

void EngineProcess::wait_for_hello() {
  std::unique_lock lock(mutex_);
  const bool came = answered_.wait_for(lock, hello_timeout, [this] { return answer_ || gone(); });
  awaiting_ = false;
  if (!came || !answer_) {
    not_started(fmt::format("{} did not say which Gyre it is of{}; name the right program by $GYRE_ENGINE",
                            path_, failure_.empty() ? " within 10 s" : ": " + failure_));
  }
  Received received = *std::exchange(answer_, std::nullopt);
  std::string theirs = "what is no hello";
  try {
    const auto message = received.root<control::FromEngine>();
    if (message.isHello()) {
      const auto hello = message.getHello();
      if (hello.getVersion() == control::VERSION && hello.getRegionVersion() == region_version &&
          hello.getGyre() == GYRE_VERSION) {
        return;
      }
      theirs = fmt::format("Gyre {}, control version {}, region version {}", hello.getGyre().cStr(),
                           hello.getVersion(), hello.getRegionVersion());
    }
  } catch (const kj::Exception& error) {
    theirs = error.getDescription().cStr();
  }
  not_started(
      fmt::format("{} is of another Gyre: it says {}, and this is Gyre {}, control version {}, region "
                  "version {}; install both from one package",
                  path_, theirs, GYRE_VERSION, uint32_t(control::VERSION), uint32_t(region_version)));
}

void EngineProcess::end() noexcept {
  if (!supervisor_.joinable()) return;
  if (!fork_.forked()) {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      end_by_ = std::min(end_by_, steady_clock::now() + end_grace);
    }
    capnp::MallocMessageBuilder message;
    message.initRoot<control::ToEngine>().setEnd();
    post(message);
  }
  detail::leave_thread(supervisor_, fork_.forked());
}

Received EngineProcess::call(capnp::MessageBuilder& request, control::FromEngine::Which expected,
                             std::initializer_list<int> descriptors) {
  const detail::CancellationDeferred deferred;
  const std::lock_guard one_at_a_time(call_mutex_);
  {
    const std::lock_guard lock(mutex_);
    awaiting_ = true;
    answer_.reset();
  }
  // False: the process is gone or will be, or answered before it had read the whole request.
  channel_->send(request, descriptors, [this] {
    const std::lock_guard lock(mutex_);
    return answer_.has_value();
  });
  std::unique_lock lock(mutex_);
  answered_.wait(lock, [this] { return answer_ || gone(); });
  awaiting_ = false;
  if (!answer_) {
    throw Error(fmt::format("asking the engine process: {}; launch anew",
                            failure_.empty() ? "it has ended" : failure_));
  }
  Received received = *std::exchange(answer_, std::nullopt);
  lock.unlock();
  std::string problem;
  try {
    const auto message = received.root<control::FromEngine>();
    if (message.which() == expected) return received;
    if (message.isRefused()) {
      const std::string text = message.getRefused().getText();
      switch (message.getRefused().getKind()) {
        case control::Refusal::Kind::ENGINE_UNAVAILABLE:
          throw EngineUnavailable(text);
        case control::Refusal::Kind::BAD_OPTIONS:
          throw BadOptions(text);
        case control::Refusal::Kind::NO_MEMORY:
          throw std::bad_alloc();
        default:
          throw Error(text);
      }
    }
    problem = fmt::format("it answered with message {} instead of {}", int(message.which()), int(expected));
  } catch (const kj::Exception& error) {
    problem = MalformedMessage(error).what();
  }
  throw condemned(problem);
}

Error EngineProcess::condemned(const std::string& why) {
  fail(fmt::format("the engine process {} was killed: {}", id_, why));
  kill();
  return Error(fmt::format("asking the engine process: {}; it was killed, launch anew", why));
}

void EngineProcess::post(capnp::MessageBuilder& request) noexcept {
  try {
    const detail::CancellationDeferred deferred;
    channel_->send(request);
  } catch (const std::exception&) {  // the process ends with the socket
  } catch (const kj::Exception&) {
  }
}

// By a word of memory: the socket may be full, and whoever sends on it waiting.
void EngineProcess::kill() noexcept {
  if (!mps_) return kill_now();
  static_cast<EnginePage*>(page_.address())->stop.store(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  end_by_ = std::min(end_by_, steady_clock::now() + milliseconds(kill_grace_ms));
}

void EngineProcess::kill_now() noexcept {
  if (process_) {
    // A filter for system calls may refuse it (seccomp).
    if (syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0) == 0 || errno == ESRCH) return;
  }
  if (gone() || ::kill(id_, SIGKILL) == 0) return;
  // The program has given up its rights since: the process ends itself.
  static_cast<EnginePage*>(page_.address())->stop.store(1, std::memory_order_relaxed);
}

void EngineProcess::kill(std::string_view cause) noexcept {
  try {
    fail(std::string(cause));
  } catch (const std::bad_alloc&) {  // how it ended is said instead
  }
  kill();
}

std::optional<std::string> EngineProcess::failure() const {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) return std::nullopt;
  return "running the workers: " + failure_ +
         (mps_ ? "; MPS runs: a device fault ends every process that uses the GPU through it, and its server "
                 "takes new ones once all of them are gone"
               : "");
}

void EngineProcess::supervise() noexcept {
  static_cast<EnginePage*>(page_.address())->program_thread.store(gettid(), std::memory_order_relaxed);
  int waited_ms = 0;
  while (!reap()) {
    pollfd polled[] = {{socket_open_ ? channel_->descriptor() : -1, POLLIN, 0}, {process_.get(), POLLIN, 0}};
    const int timeout_ms = process_ ? poll_ms : poll_without_pidfd_ms;
    const int ready = poll(polled, 2, timeout_ms);
    if (ready > 0 && polled[0].revents != 0 && !take_message()) socket_open_ = false;
    check_end();
    if (ready == 0 && (waited_ms += timeout_ms) >= poll_ms) {
      waited_ms = 0;
      check_heartbeat();
    }
    const std::lock_guard lock(mutex_);
    if (steady_clock::now() >= end_by_) kill_now();
  }
}

// False where no more will come. Does not wait: the process may have been stopped within a message.
bool EngineProcess::take_message() noexcept {
  try {
    try {
      if (std::optional<Received> received = channel_->receive_if_there()) deliver(*std::move(received));
      return !channel_->closed();
    } catch (const kj::Exception& error) {
      (void)condemned(MalformedMessage(error).what());
    } catch (const std::exception& error) {
      (void)condemned(error.what());
    }
  } catch (const std::exception&) {  // no memory: how it ended is said instead
  }
  kill();
  return false;
}

// One that ends closes its socket shortly before, and nothing can be asked of one that goes on without, or
// that said why it failed.
void EngineProcess::check_end() noexcept {
  const auto now = steady_clock::now();
  if (!socket_open_ && must_end_by_ == steady_clock::time_point{}) must_end_by_ = now + end_grace;
  if (must_end_by_ == steady_clock::time_point{} || now < must_end_by_) return;
  try {
    fail(fmt::format("the engine process {} closed its socket and was killed", id_));
  } catch (const std::exception&) {  // no memory: how it ended is said instead
  }
  kill();
}

void EngineProcess::deliver(Received received) {
  const auto message = received.root<control::FromEngine>();
  if (message.isLog()) {
    const auto line = message.getLog();
    detail::log_line(LogLevel(std::min<uint32_t>(line.getLevel(), uint32_t(LogLevel::error))),
                     std::string(line.getText()));
    return;
  }
  if (message.isFailed()) {
    must_end_by_ = steady_clock::now() + end_grace;
    return fail(message.getFailed());
  }
  const std::lock_guard lock(mutex_);
  if (!awaiting_ || answer_) throw MalformedMessage("nobody asked for it");
  answer_.emplace(std::move(received));
  answered_.notify_all();
}

// True while the guardian could run and has no processor: on a busy machine for seconds.
bool EngineProcess::guardian_waits_for_processor() const noexcept {
  const int64_t guardian = page().guardian_thread.load(std::memory_order_relaxed);
  char text[512];
  std::snprintf(text, sizeof text, "/proc/%d/task/%lld/stat", int(id_),
                static_cast<long long>(guardian != 0 ? guardian : id_));
  const Descriptor file(open(text, O_RDONLY | O_CLOEXEC));
  const ssize_t length = file ? read(file.get(), text, sizeof text - 1) : -1;
  if (length <= 0) return false;
  text[length] = '\0';
  const char* const name_end = std::strrchr(text, ')');  // "number (name) state …"
  return name_end != nullptr && name_end[1] == ' ' && name_end[2] == 'R';
}

// Counts polls rather than time: both processes may have been frozen.
void EngineProcess::check_heartbeat() noexcept {
  const uint64_t heartbeat = page().heartbeat.load(std::memory_order_relaxed);
  missed_ = heartbeat == last_heartbeat_ ? missed_ + 1 : 0;
  last_heartbeat_ = heartbeat;
  if (heartbeat_timeout_.count() == 0 || missed_ * poll_ms < heartbeat_timeout_.count()) return;
  if (guardian_waits_for_processor()) return;
  try {
    fail(
        fmt::format("the engine process {} gave no heartbeat for {} ms and was killed; was it stopped? "
                    "Options::heartbeat_timeout sets how long it may be silent",
                    id_, heartbeat_timeout_.count()));
  } catch (const std::exception&) {  // no memory: how it ended is said instead
  }
  kill();
}

// True once the process has ended.
bool EngineProcess::reap() noexcept {
  siginfo_t info{};
  const int result = waitid(P_PID, id_t(id_), &info, WEXITED | WNOHANG);
  if (result == 0 && info.si_pid == 0) return false;
  if (result != 0 && errno == EINTR) return false;
  while (socket_open_) {  // what it said last
    pollfd polled{channel_->descriptor(), POLLIN, 0};
    if (poll(&polled, 1, 0) <= 0 || !take_message()) socket_open_ = false;
  }
  try {
    conclude(fmt::format(
        "the engine process {} is gone: {}", id_,
        result == 0 ? how_it_ended(info) : "the program waited for it (waitpid) and knows how it ended"));
  } catch (const std::exception&) {
    conclude("the engine process is gone");
  }
  return true;
}

void EngineProcess::conclude(std::string how) noexcept {
  channel_->shut_down();  // a child of fork() may hold the other end, and a thread wait there for room
  const std::lock_guard lock(mutex_);
  if (failure_.empty() && !ending_) failure_ = std::move(how);
  gone_.store(true, std::memory_order_release);  // pairs with the load in gone()
  answered_.notify_all();
}

// The first cause counts.
void EngineProcess::fail(std::string why) noexcept {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = std::move(why);
}

}  // namespace gyre::process
