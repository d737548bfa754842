#include <fcntl.h>
#include <fmt/format.h>
#include <gyre/runtime/c/gyre.h>
#include <kj/exception.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/region.hpp>
#include <gyre/runtime/cuda/engine.hpp>
#include <gyre/runtime/errors.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/process/channel.hpp>
#include <gyre/runtime/process/engine_page.hpp>
#include <gyre/runtime/process/engine_service.hpp>
#include <gyre/runtime/process/launch_message.hpp>
#include <gyre/runtime/process/mps.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace gyre::process {

namespace {

using std::chrono::milliseconds;

// Those that write_launch() sends of a program's options that were checked.
void check_launch(const ActorSet& actors, const Options& options) {
  std::string problems = options.problems() + actors.problems(options);
  if (options.transport == TransportKind::unified || options.transport == TransportKind::heap)
    problems += fmt::format("  --transport {}: no other process can map it\n", name(options.transport));
  if (!problems.empty())
    throw BadOptions("launching for another process: these options are wrong:\n" + problems);
}

// Without MPS nobody minds that the workers die with the process.
[[noreturn]] void end_process(int socket) {
  if (mps_runs()) {
    shutdown(socket, SHUT_RD);  // serve_engine() then stops the workers and ends the process
    std::this_thread::sleep_for(milliseconds(stop_grace_ms));
  }
  _exit(0);
}

// Ends with the program, or when asked to, whatever the other threads wait for. Makes no CUDA call, so that
// its heartbeat says that the process is scheduled, and nothing more. Goes on to the process's end: it has
// its own copies.
void guard(int socket, int program, EnginePage& page, pid_t parent) {
  pthread_setname_np(pthread_self(), "gyre-guardian");
  page.guardian_thread.store(gettid(), std::memory_order_relaxed);
  for (;;) {
    page.heartbeat.fetch_add(1, std::memory_order_relaxed);
    pollfd polled[] = {{socket, POLLRDHUP, 0}, {program, POLLIN, 0}};
    poll(polled, 2, heartbeat_interval_ms);
    // After exec the program is there, its threads are not.
    const int64_t thread = page.program_thread.load(std::memory_order_relaxed);
    const bool thread_gone = thread != 0 && syscall(SYS_tgkill, parent, thread, 0) != 0 && errno == ESRCH;
    const bool closed = (polled[0].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    if (closed || polled[1].revents != 0 || thread_gone || getppid() != parent ||
        page.stop.load(std::memory_order_relaxed) != 0) {
      end_process(socket);
    }
  }
}

void close_from(int first) {
  if (syscall(SYS_close_range, first, ~0u, 0) == 0) return;
  // Before Linux 5.9, or refused by a filter for system calls.
  std::vector<int> open;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", none))
    open.push_back(std::atoi(entry.path().filename().c_str()));
  for (const int descriptor : open) {
    if (descriptor >= first) close(descriptor);
  }
}

// Standard error stays: what a crash prints must not be lost.
bool keep_own_descriptors() {
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) return false;
  dup2(nowhere, STDIN_FILENO);
  dup2(nowhere, STDOUT_FILENO);
  close_from(page_descriptor + 1);
  for (const int own : {socket_descriptor, program_descriptor, page_descriptor})
    fcntl(own, F_SETFD, FD_CLOEXEC);
  return fcntl(socket_descriptor, F_GETFD) >= 0 && fcntl(page_descriptor, F_GETFD) >= 0;
}

}  // namespace

struct EngineService::Answer {
  capnp::MallocMessageBuilder message;
  control::FromEngine::Builder from = message.initRoot<control::FromEngine>();
};

EngineService::~EngineService() {
  ending_.store(true, std::memory_order_relaxed);
  if (watcher_.joinable()) watcher_.join();
  if (copies_ && !engine_->finished()) copies_->leak();
}

void EngineService::hello() {
  Answer answer;
  auto hello = answer.from.initHello();
  hello.setVersion(control::VERSION);
  hello.setRegionVersion(region_version);
  hello.setGyre(GYRE_VERSION);
  channel_.send(answer.message);
}

namespace {

uint64_t stopping(uint64_t command) {
  const CommandWord last{uint32_t(command)};
  return CommandLine::both(last.next(Command::stop), CommandLine::host_us_in(command));
}

}  // namespace

void EngineService::stop_workers(milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  try {
    // Again and again: a thread of the program that publishes the time stores its own last command with it.
    while (engine_ && !engine_->finished() && std::chrono::steady_clock::now() < end) {
      command_stop();
      std::this_thread::sleep_for(milliseconds(1));
    }
  } catch (const Error&) {  // the context is dead, and so are the workers
  }
}

void EngineService::command_stop() {
  const RegionLayout& layout = engine_->layout();
  for (uint32_t worker = 0; worker < layout.workers; ++worker) {
    if (engine_->bar() != nullptr) {
      const MemoryBlock line{MemoryKind::device, sizeof(uint64_t),
                             engine_->bar()->device_address() + layout.command_line_elsewhere(worker),
                             nullptr};
      uint64_t command = 0;
      buffers().copy_out(line, 0, &command, sizeof command);
      command = stopping(command);
      buffers().copy_in(line, 0, &command, sizeof command);
    } else {
      uint64_t& command = Bridge::of(engine_->region(), layout, worker).command_line->command;
      // Pairs with the worker's load of its command line.
      Memory::store_release(command, stopping(Memory::load_relaxed(command)));
    }
  }
}

bool EngineService::serve(Received received) {
  try {
    const auto message = received.root<control::ToEngine>();
    if (message.isEnd()) return false;
    if (message.isRelease()) {
      release(message.getRelease());
    } else {
      take(message, received);
    }
    return true;
  } catch (const kj::Exception& error) {
    throw MalformedMessage(error);
  }
}

void EngineService::refuse(control::Refusal::Kind kind, const char* text) {
  Answer answer;
  auto refusal = answer.from.initRefused();
  refusal.setKind(kind);
  refusal.setText(text);
  channel_.send(answer.message);
}

cuda::CudaEngine& EngineService::engine() {
  if (!engine_) throw Error("serving a program: it asked before it launched");
  return *engine_;
}

// With memory_mutex_. A wrong address would be another's memory, or a fault.
MemoryBlock EngineService::part_of(MemoryKind kind, const char* doing, uint64_t address,
                                   uint64_t bytes) const {
  auto found = blocks_.upper_bound(address);
  if (found != blocks_.begin()) {
    const MemoryBlock& block = (--found)->second;
    const uint64_t offset = address - block.address;
    if (block.kind == kind && offset <= block.bytes && bytes <= block.bytes - offset)
      return {kind, bytes, address,
              block.host == nullptr ? nullptr : static_cast<char*>(block.host) + offset};
  }
  if (kind == MemoryKind::device && engine_ && engine_->cuda_buffers().imports().has(address, bytes))
    return {MemoryKind::device, bytes, address, nullptr, 0};
  throw Error(fmt::format("{} a buffer for a program: {} bytes at {:#x} are of no buffer in {} memory", doing,
                          bytes, address, name(kind)));
}

void EngineService::take(control::ToEngine::Reader message, Received& received) {
  try {
    Answer answer;
    switch (message.which()) {
      case control::ToEngine::LAUNCH:
        return launch(message.getLaunch());
      case control::ToEngine::JUDGE: {
        const auto judged = message.getJudge();
        answer.from.setJudged(device_problems(actors_of(judged), options_of(judged)));
        break;
      }
      case control::ToEngine::MAP_BAR:
        map_bar(message.getMapBar(), received.take_descriptor());
        answer.from.setDone();
        break;
      case control::ToEngine::BAR_STORED:
        bar_stored(message.getBarStored());
        answer.from.setDone();
        break;
      case control::ToEngine::DEVICES:
        set_devices(answer);
        break;
      case control::ToEngine::START:
        start(message.getStart());
        answer.from.setDone();
        break;
      case control::ToEngine::ALLOCATE:
        return allocate(message.getAllocate());
      case control::ToEngine::IMPORT:
        answer.from.setImported(import(message.getImport(), received));
        break;
      case control::ToEngine::EXPORT:
        return export_block(message.getExport());
      case control::ToEngine::ZERO: {
        const auto span = message.getZero();
        const std::lock_guard lock(memory_mutex_);
        const MemoryBlock part = part_of(MemoryKind::device, "zeroing", span.getAddress(), span.getBytes());
        buffers().zero(part, part.bytes);
        answer.from.setDone();
        break;
      }
      case control::ToEngine::SET_ENTRY:
        set_entry(message.getSetEntry());
        answer.from.setDone();
        break;
      default:
        throw Error(fmt::format("serving a program: message {} is not known", int(message.which())));
    }
    channel_.send(answer.message);
  } catch (const kj::Exception&) {  // some are std::exception too
    throw;
  } catch (const BadOptions& error) {
    refuse(control::Refusal::Kind::BAD_OPTIONS, error.what());
  } catch (const EngineUnavailable& error) {
    refuse(control::Refusal::Kind::ENGINE_UNAVAILABLE, error.what());
  } catch (const std::bad_alloc&) {
    refuse(control::Refusal::Kind::NO_MEMORY, "there is not enough memory");
  } catch (const std::exception& error) {
    refuse(control::Refusal::Kind::ERROR, error.what());
  }
}

void EngineService::set_devices(Answer& answer) {
  const int count = cuda::Driver::device_count();
  auto devices = answer.from.initDevices(uint32_t(count));
  if (count == 0) return;
  const cuda::Driver driver = cuda::Driver::load();
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int multiprocessors = 0;
    driver.check(driver.cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                             cuda::find_device(driver, ordinal)),
                 fmt::format("reading the multiprocessors of CUDA device {}", ordinal));
    devices.set(uint32_t(ordinal), uint32_t(multiprocessors));
  }
}

void EngineService::map_bar(uint64_t bytes, Descriptor memory) {
  if (watcher_.joinable() || bar_ || bytes < engine().layout().inbound_bytes_elsewhere()) {
    throw Error(
        fmt::format("serving a program: BAR is mapped once, before the start, and {} bytes are needed; "
                    "it gave {}",
                    engine().layout().inbound_bytes_elsewhere(), bytes));
  }
  bar_ = std::make_unique<cuda::BarMapping>(engine().context(), std::move(memory), bytes);
}

void EngineService::bar_stored(uint32_t how) {
  if (how > uint32_t(LineStore::movdir64b) || !bar_)
    throw Error("serving a program: BAR is tested once it is mapped, by the stores that there are");
  bar_->expect_test_lines(LineStore(how));
}

void EngineService::start(bool over_bar) {
  if (watcher_.joinable()) throw Error("serving a program: it started the workers before");
  if (over_bar && !bar_)
    throw Error("serving a program: it started the workers over BAR that it did not give");
  if (over_bar) {
    engine().use_bar(std::move(bar_));
  } else {
    bar_.reset();
  }
  engine().launch();
  watcher_ = std::thread([this] { watch(); });
}

void EngineService::set_entry(control::Entry::Reader entry) {
  BufferEntry bytes;
  if (entry.getBytes().size() != sizeof bytes || entry.getIndex() >= buffers().entries()) {
    throw Error(
        fmt::format("setting entry {} of the buffers' table: {} bytes; the table has {} "
                    "entries of {} bytes",
                    entry.getIndex(), entry.getBytes().size(), buffers().entries(), sizeof bytes));
  }
  std::memcpy(static_cast<void*>(&bytes), entry.getBytes().begin(), sizeof bytes);
  const std::lock_guard lock(memory_mutex_);
  const auto found = blocks_.find(bytes.address);
  if (bytes.address != 0 && (found == blocks_.end() || bytes.bytes > found->second.bytes) &&
      !buffers().imports().has(bytes.address, bytes.bytes)) {
    throw Error(fmt::format("setting entry {} of the buffers' table: {} bytes at {:#x} are of no buffer",
                            entry.getIndex(), bytes.bytes, bytes.address));
  }
  buffers().set_entry(entry.getIndex(), bytes);
}

void EngineService::launch(control::Launch::Reader message) {
  if (engine_) throw Error("serving a program: it launched before");
  set_log_level(LogLevel(std::min<uint32_t>(message.getOptions().getLogLevel(), uint32_t(LogLevel::off))));
  const Options options = options_of(message);
  const ActorSet actors = actors_of(message);
  check_launch(actors, options);
  engine_ =
      std::make_unique<cuda::CudaEngine>(actors, options, std::max<uint32_t>(message.getRuntimeTag(), 1));
  copies_.emplace(engine_->context(), memory_mutex_,
                  [this](MemoryKind kind, const char* doing, uint64_t address, uint64_t bytes) {
                    return part_of(kind, doing, address, bytes);
                  });
  Answer answer;
  auto launched = answer.from.initLaunched();
  launched.setDevice(engine_->device_name());
  const cuda::DeviceUuid uuid = cuda::uuid_of(engine_->context().driver(), engine_->context().device());
  launched.setDeviceUuid({uuid.data(), uuid.size()});
  launched.setCompileMs(engine_->compile_ms());
  launched.setFromCache(engine_->compiled_from_cache());
  launched.setCompiledAhead(engine_->compiled_ahead());
  const std::vector<std::byte> description = write_description(engine_->description());
  launched.setDescription(as_data(description));
  launched.setRegionBytes(engine_->layout().region_bytes());
  launched.setStagingBytes(copies_->staging().bytes());
  const MemoryStats memory = engine_->memory();
  publish(memory);
  launched.setActorBytes(memory.actors);
  launched.setModuleBytes(memory.modules);
  launched.setBufferTableBytes(memory.buffer_table + copies_->staging().bytes());
  launched.setRegisterMs(engine_->register_ms());
  launched.setMultiprocessors(engine_->multiprocessors());
  channel_.send(answer.message, {engine_->region_descriptor(), copies_->staging().descriptor()});
}

void EngineService::allocate(control::Block::Reader asked) {
  const auto kind = MemoryKind(asked.getKind());
  if (kind != MemoryKind::device && kind != MemoryKind::pinned) {
    throw Error(
        fmt::format("allocating a buffer of memory kind {}: an engine process has device and "
                    "pinned ones (0 and 1)",
                    asked.getKind()));
  }
  const MemoryBlock block = buffers().allocate(kind, asked.getBytes());
  {
    const std::lock_guard lock(memory_mutex_);
    blocks_.insert_or_assign(block.address, block);
  }
  Answer answer;
  answer.from.setAllocated(block.address);
  if (kind == MemoryKind::pinned) {
    channel_.send(answer.message, {buffers().descriptor_of(block)});
  } else {
    channel_.send(answer.message);
  }
}

uint64_t EngineService::import(control::Import::Reader asked, Received& received) {
  cuda::PeerAllocation allocation;
  allocation.base = asked.getBase();
  allocation.id = asked.getId();
  allocation.bytes = asked.getAllocationBytes();
  if (const auto handle = asked.getIpcHandle(); handle.size() == 0) {
    allocation.descriptor = received.take_descriptor();
  } else if (handle.size() == sizeof(CUipcMemHandle)) {
    std::memcpy(&allocation.ipc.emplace(), handle.begin(), sizeof(CUipcMemHandle));
  } else {
    throw Error(fmt::format("importing memory of a program: an IPC handle has {} bytes, and this one {}",
                            sizeof(CUipcMemHandle), handle.size()));
  }
  // Without memory_mutex_: CUDA may take long to open the memory, and copies go on meanwhile.
  return buffers().imports().import(allocation, asked.getOffset(), asked.getBytes());
}

void EngineService::export_block(uint64_t address) {
  cuda::ShareableMemory::Shared shared;
  {
    const std::lock_guard lock(memory_mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end() || found->second.kind != MemoryKind::device) {
      throw Error(
          fmt::format("exporting a buffer for a program: there is no device buffer at {:#x}", address));
    }
    shared = buffers().shareable().share(address);
  }
  Answer answer;
  auto exported = answer.from.initExported();
  exported.setAllocationBytes(shared.bytes);
  exported.setOffset(shared.offset);
  channel_.send(answer.message, {shared.descriptor.get()});
}

void EngineService::release(control::Block::Reader block) {
  const std::lock_guard lock(memory_mutex_);
  if (block.getKind() == uint32_t(MemoryKind::imported) &&
      buffers().imports().release(block.getAddress(), block.getBytes())) {
    return;
  }
  const auto found = blocks_.find(block.getAddress());
  if (found == blocks_.end() || found->second.bytes != block.getBytes() ||
      uint32_t(found->second.kind) != block.getKind()) {
    throw Error(fmt::format("freeing a buffer for a program: there is none of {} bytes at {:#x}",
                            block.getBytes(), block.getAddress()));
  }
  buffers().release(found->second);
  blocks_.erase(found);
}

void EngineService::publish(const MemoryStats& memory) {
  page_.device_total.store(memory.device_total, std::memory_order_relaxed);
  page_.device_free.store(memory.device_free, std::memory_order_relaxed);
}

// Says that the workers have left, or why they died. After a fault the process is of no use: it ends.
void EngineService::watch() {
  pthread_setname_np(pthread_self(), "gyre-watcher");
  for (int turn = 0; !ending_.load(std::memory_order_relaxed); ++turn) {
    // Asked before failure(): workers that a fault ends in between have not finished.
    const bool finished = engine_->finished();
    if (const auto cause = engine_->failure()) {
      constexpr std::string_view prefix = "running the workers: ";
      say_failed(cause->starts_with(prefix) ? cause->substr(prefix.size()) : *cause);
      _exit(1);
    }
    if (finished) {
      page_.finished.store(1, std::memory_order_release);  // pairs with ProcessEngine::finished()
      return;
    }
    if (turn % 100 == 0) publish(engine_->memory());
    std::this_thread::sleep_for(milliseconds(1));
  }
}

void EngineService::send_log(Channel& channel, LogLevel level, std::string_view line) {
  Answer answer;
  auto log = answer.from.initLog();
  log.setLevel(uint32_t(level));
  log.setText(std::string(line));
  channel.send(answer.message);
}

void EngineService::say_failed(const std::string& why) {
  Answer answer;
  answer.from.setFailed(why);
  channel_.send(answer.message);
}

int serve_engine(int count, char** arguments) {
  const char* const parent = count > 1 ? arguments[1] : "";
  const bool has_pidfd = count == 2;
  if (count >= 2 && std::atol(parent) != getppid()) return 0;  // the program is gone already
  if (count < 2 || !keep_own_descriptors()) {
    std::fputs("gyre-engine: started by hand; programs of Gyre start it with --isolation process\n", stderr);
    return 2;
  }
  // The program decides when it ends, though a service manager signals every process.
  for (const int signal : {SIGINT, SIGHUP, SIGPIPE, SIGTERM}) ::signal(signal, SIG_IGN);
  Channel channel{Descriptor(socket_descriptor)};
  try {
    SharedMemory mapped(Descriptor(page_descriptor), sizeof(EnginePage));
    EnginePage& shared = *static_cast<EnginePage*>(mapped.address());
    mapped.leak();  // the guardian's thread goes on to the end
    std::thread([&page = shared, has_pidfd, parent = getppid()] {
      guard(socket_descriptor, has_pidfd ? program_descriptor : -1, page, parent);
    }).detach();
    set_logger(
        [&channel](LogLevel level, std::string_view line) { EngineService::send_log(channel, level, line); });
    {
      EngineService service(channel, shared);
      service.hello();
      try {
        while (std::optional<Received> received = channel.receive()) {
          if (!service.serve(*std::move(received))) break;
        }
      } catch (const Error& error) {
        service.say_failed(fmt::format("the engine process {} ended: {}", getpid(), error.what()));
        throw;
      }
      if (mps_runs()) service.stop_workers(milliseconds(stop_grace_ms));
    }
    set_logger({});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gyre-engine: %s\n", error.what());
  } catch (const kj::Exception& error) {
    std::fprintf(stderr, "gyre-engine: %s\n", error.getDescription().cStr());
  }
  set_logger({});
  return 1;
}

}  // namespace gyre::process
