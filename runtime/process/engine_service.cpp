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
#include <new>
#include <thread>

namespace gyre::process {

namespace {

using std::chrono::milliseconds;

struct Answer {
  capnp::MallocMessageBuilder message;
  control::FromEngine::Builder from = message.initRoot<control::FromEngine>();
};

// Ends with the program, or when asked to, whatever the other threads wait for. Makes no CUDA call, so that
// its heartbeat says that the process is scheduled, and nothing more.
class Guardian {
 public:
  Guardian(int socket, int program, EnginePage& page, pid_t parent)
      : socket_(socket), program_(program), page_(page), parent_(parent) {
    std::thread([this] { run(); }).detach();
  }

 private:
  void run() {
    pthread_setname_np(pthread_self(), "gyre-guardian");
    for (;;) {
      page_.heartbeat.fetch_add(1, std::memory_order_relaxed);
      pollfd polled[] = {{socket_, POLLRDHUP, 0}, {program_, POLLIN, 0}};
      poll(polled, 2, heartbeat_interval_ms);
      // After exec the program is there, its threads are not.
      const int64_t thread = page_.program_thread.load(std::memory_order_relaxed);
      const bool thread_gone = thread != 0 && syscall(SYS_tgkill, parent_, thread, 0) != 0 && errno == ESRCH;
      if (polled[0].revents != 0 || polled[1].revents != 0 || thread_gone || getppid() != parent_ ||
          page_.stop.load(std::memory_order_relaxed) != 0) {
        end();
      }
    }
  }
  // Without MPS nobody minds that the workers die with the process.
  [[noreturn]] void end() {
    if (mps_runs()) {
      shutdown(socket_, SHUT_RD);  // serve_engine() then stops the workers and ends the process
      std::this_thread::sleep_for(milliseconds(stop_grace_ms));
    }
    _exit(0);
  }

  const int socket_, program_;
  EnginePage& page_;
  const pid_t parent_;
};

class EngineService {
 public:
  EngineService(Channel& channel, EnginePage& page) : channel_(channel), page_(page) {}
  ~EngineService() {
    ending_.store(true, std::memory_order_relaxed);
    if (watcher_.joinable()) watcher_.join();
  }
  EngineService(const EngineService&) = delete;
  EngineService& operator=(const EngineService&) = delete;

  void hello() {
    Answer answer;
    auto hello = answer.from.initHello();
    hello.setVersion(control::VERSION);
    hello.setRegionVersion(region_version);
    hello.setGyre(GYRE_VERSION);
    channel_.send(answer.message);
  }

  // Makes the workers leave, and waits for that, at most for `timeout`.
  void stop_workers(milliseconds timeout) {
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

  // False once the program asked to end.
  bool serve(Received received) {
    const auto message = received.root<control::ToEngine>();
    if (message.isEnd()) return false;
    if (message.isRelease()) {
      if (engine_) engine_->buffer_memory().release(block_of(message.getRelease()));
      return true;
    }
    Answer answer;
    try {
      take(message, answer);
    } catch (const BadOptions& error) {
      refuse(control::Refusal::Kind::BAD_OPTIONS, error.what());
    } catch (const EngineUnavailable& error) {
      refuse(control::Refusal::Kind::ENGINE_UNAVAILABLE, error.what());
    } catch (const std::bad_alloc&) {
      refuse(control::Refusal::Kind::NO_MEMORY, "there is not enough memory");
    } catch (const std::exception& error) {
      refuse(control::Refusal::Kind::ERROR, error.what());
    }
    return true;
  }

 private:
  void refuse(control::Refusal::Kind kind, const char* text) {
    Answer answer;
    auto refusal = answer.from.initRefused();
    refusal.setKind(kind);
    refusal.setText(text);
    channel_.send(answer.message);
  }

  static uint64_t stopping(uint64_t command) {
    const CommandWord last{uint32_t(command)};
    return CommandLine::both(last.next(Command::stop), CommandLine::host_us_in(command));
  }
  void command_stop() {
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
  static MemoryBlock block_of(control::Block::Reader block) {
    const auto kind = MemoryKind(std::min<uint32_t>(block.getKind(), memory_kinds - 1));
    // Pinned blocks have one address for both sides where the driver has unified addressing: every platform
    // that Gyre supports.
    void* const host = kind == MemoryKind::pinned ? reinterpret_cast<void*>(block.getAddress()) : nullptr;
    return {kind, block.getBytes(), block.getAddress(), host};
  }
  static MemoryBlock device_block(control::Copy::Reader copy) {
    return {MemoryKind::device, copy.getBytes(), copy.getAddress(), nullptr};
  }

  cuda::CudaEngine& engine() {
    if (!engine_) throw Error("serving a program: it asked before it launched");
    return *engine_;
  }
  cuda::BarMemory& bar() {
    if (engine().bar() == nullptr) throw Error("serving a program: it asked for BAR, and has none");
    return *engine().bar();
  }
  cuda::CudaBufferMemory& buffers() { return engine().cuda_buffers(); }
  uint64_t staged(control::Copy::Reader copy) const {
    if (copy.getBytes() > cuda::CudaBufferMemory::staging_bytes) {
      throw Error(fmt::format("copying a buffer: {} bytes at a time, and the staging block has {}",
                              copy.getBytes(), cuda::CudaBufferMemory::staging_bytes));
    }
    return copy.getBytes();
  }

  void take(control::ToEngine::Reader message, Answer& answer) {
    switch (message.which()) {
      case control::ToEngine::LAUNCH:
        return launch(message.getLaunch());
      case control::ToEngine::JUDGE: {
        const auto judged = message.getJudge();
        answer.from.setJudged(device_problems(actors_of(judged), options_of(judged)));
        break;
      }
      case control::ToEngine::BAR_STORED:
        bar().expect_test_lines(LineStore(message.getBarStored()));
        answer.from.setDone();
        break;
      case control::ToEngine::DEVICES:
        return devices();
      case control::ToEngine::START:
        if (!message.getStart() && engine().bar() != nullptr) engine().give_up_bar();
        engine().launch();
        watcher_ = std::thread([this] { watch(); });
        answer.from.setDone();
        break;
      case control::ToEngine::ALLOCATE:
        return allocate(message.getAllocate());
      case control::ToEngine::COPY_IN:
        buffers().copy_in(device_block(message.getCopyIn()), 0, buffers().staging(),
                          staged(message.getCopyIn()));
        answer.from.setDone();
        break;
      case control::ToEngine::COPY_OUT:
        buffers().copy_out(device_block(message.getCopyOut()), 0, buffers().staging(),
                           staged(message.getCopyOut()));
        answer.from.setDone();
        break;
      case control::ToEngine::ZERO:
        buffers().zero(device_block(message.getZero()), message.getZero().getBytes());
        answer.from.setDone();
        break;
      case control::ToEngine::SET_ENTRY: {
        const auto entry = message.getSetEntry();
        BufferEntry bytes;
        if (entry.getBytes().size() != sizeof bytes || entry.getIndex() >= buffers().entries()) {
          throw Error(
              fmt::format("setting entry {} of the buffers' table: {} bytes; the table has {} "
                          "entries of {} bytes",
                          entry.getIndex(), entry.getBytes().size(), buffers().entries(), sizeof bytes));
        }
        std::memcpy(static_cast<void*>(&bytes), entry.getBytes().begin(), sizeof bytes);
        buffers().set_entry(entry.getIndex(), bytes);
        answer.from.setDone();
        break;
      }
      default:
        throw Error(fmt::format("serving a program: message {} is not known", int(message.which())));
    }
    channel_.send(answer.message);
  }

  void devices() {
    const int count = cuda::Driver::device_count();
    Answer answer;
    auto devices = answer.from.initDevices(uint32_t(count));
    if (count != 0) {
      const cuda::Driver driver = cuda::Driver::load();
      for (int ordinal = 0; ordinal < count; ++ordinal) {
        int multiprocessors = 0;
        driver.check(driver.cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                                 cuda::find_device(driver, ordinal)),
                     fmt::format("reading the multiprocessors of CUDA device {}", ordinal));
        devices.set(uint32_t(ordinal), uint32_t(multiprocessors));
      }
    }
    channel_.send(answer.message);
  }

  void launch(control::Launch::Reader message) {
    if (engine_) throw Error("serving a program: it launched before");
    set_log_level(LogLevel(std::min<uint32_t>(message.getOptions().getLogLevel(), uint32_t(LogLevel::off))));
    const Options options = options_of(message);
    engine_ = std::make_unique<cuda::CudaEngine>(actors_of(message), options,
                                                 std::max<uint32_t>(message.getRuntimeTag(), 1));
    Answer answer;
    auto launched = answer.from.initLaunched();
    launched.setDevice(engine_->device_name());
    launched.setTransport(uint32_t(engine_->transport()));
    launched.setTransportReason(engine_->transport_reason());
    launched.setCompileMs(engine_->compile_ms());
    launched.setFromCache(engine_->compiled_from_cache());
    const std::vector<std::byte> description = write_description(engine_->description());
    launched.setDescription(as_data(description));
    launched.setRegionBytes(engine_->layout().region_bytes());
    launched.setStagingBytes(cuda::CudaBufferMemory::staging_bytes);
    const MemoryStats memory = engine_->memory();
    publish(memory);
    launched.setActorBytes(memory.actors);
    launched.setModuleBytes(memory.modules);
    launched.setBufferTableBytes(memory.buffer_table);
    launched.setRegisterMs(engine_->register_ms());
    launched.setMultiprocessors(engine_->multiprocessors());
    if (engine_->bar() == nullptr) {
      channel_.send(answer.message, {engine_->region_descriptor(), buffers().staging_descriptor()});
      return;
    }
    const cuda::Driver driver = cuda::Driver::load();
    const CUuuid uuid = cuda::uuid_of(driver, cuda::find_device(driver, options.device));
    launched.setDeviceUuid({reinterpret_cast<const kj::byte*>(uuid.bytes), sizeof uuid.bytes});
    launched.setBarBytes(memory.bar);
    launched.setMemoryType(engine_->bar()->memory_type());
    const Descriptor exported = engine_->bar()->export_memory();
    channel_.send(answer.message,
                  {engine_->region_descriptor(), buffers().staging_descriptor(), exported.get()});
  }

  void allocate(control::Block::Reader asked) {
    const auto kind = MemoryKind(asked.getKind());
    if (kind != MemoryKind::device && kind != MemoryKind::pinned) {
      throw Error(
          fmt::format("allocating a buffer of memory kind {}: an engine process has device and "
                      "pinned ones (0 and 1)",
                      asked.getKind()));
    }
    const MemoryBlock block = buffers().allocate(kind, asked.getBytes());
    Answer answer;
    answer.from.setAllocated(block.address);
    if (kind == MemoryKind::pinned) {
      channel_.send(answer.message, {buffers().descriptor_of(block)});
    } else {
      channel_.send(answer.message);
    }
  }

  void publish(const MemoryStats& memory) {
    page_.device_total.store(memory.device_total, std::memory_order_relaxed);
    page_.device_free.store(memory.device_free, std::memory_order_relaxed);
  }

  // Says that the workers have left, or why they died. After a fault the process is of no use: it ends.
  void watch() {
    pthread_setname_np(pthread_self(), "gyre-watcher");
    for (int turn = 0; !ending_.load(std::memory_order_relaxed); ++turn) {
      if (const auto cause = engine_->failure()) {
        Answer answer;
        constexpr std::string_view prefix = "running the workers: ";
        answer.from.setFailed(cause->starts_with(prefix) ? cause->substr(prefix.size()) : *cause);
        channel_.send(answer.message);
        _exit(1);
      }
      if (engine_->finished()) {
        page_.finished.store(1, std::memory_order_release);  // pairs with ProcessEngine::finished()
        return;
      }
      if (turn % 100 == 0) publish(engine_->memory());
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

  Channel& channel_;
  EnginePage& page_;
  std::unique_ptr<cuda::CudaEngine> engine_;
  std::atomic<bool> ending_{false};
  std::thread watcher_;
};

// Standard error stays: what a crash prints must not be lost.
bool keep_own_descriptors() {
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) return false;
  dup2(nowhere, STDIN_FILENO);
  dup2(nowhere, STDOUT_FILENO);
  syscall(SYS_close_range, page_descriptor + 1, ~0u, 0);
  for (const int own : {socket_descriptor, program_descriptor, page_descriptor})
    fcntl(own, F_SETFD, FD_CLOEXEC);
  return fcntl(socket_descriptor, F_GETFD) >= 0 && fcntl(page_descriptor, F_GETFD) >= 0;
}

}  // namespace

int serve_engine(int count, char** arguments) {
  const char* const parent = count > 1 ? arguments[1] : "";
  const bool has_pidfd = count == 2;
  if (count >= 2 && std::atol(parent) != getppid()) return 0;  // the program is gone already
  if (count < 2 || !keep_own_descriptors()) {
    std::fputs("gyre-engine: started by hand; programs of Gyre start it with --isolation process\n", stderr);
    return 2;
  }
  for (const int signal : {SIGINT, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  Channel channel{Descriptor(socket_descriptor)};
  try {
    SharedMemory page(Descriptor(page_descriptor), sizeof(EnginePage));
    EnginePage& shared = *static_cast<EnginePage*>(page.address());
    page.leak();  // the guardian's thread goes on to the end
    const Guardian guardian(socket_descriptor, has_pidfd ? program_descriptor : -1, shared, getppid());
    set_logger([&channel](LogLevel level, std::string_view line) {
      Answer answer;
      auto log = answer.from.initLog();
      log.setLevel(uint32_t(level));
      const std::string text(line);
      log.setText(text);
      channel.send(answer.message);
    });
    {
      EngineService service(channel, shared);
      service.hello();
      while (std::optional<Received> received = channel.receive()) {
        if (!service.serve(*std::move(received))) break;
      }
      if (mps_runs()) service.stop_workers(milliseconds(stop_grace_ms));
    }
    set_logger({});
    return 0;
  } catch (const kj::Exception& error) {
    std::fprintf(stderr, "gyre-engine: %s\n", error.getDescription().cStr());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gyre-engine: %s\n", error.what());
  }
  set_logger({});
  return 1;
}

}  // namespace gyre::process
