// A CUDA driver in ordinary memory: the whole CUDA engine runs on it where there is no GPU. Its kernels are
// the CPU's workers, a thread each; it counts what it gave out, and notes what a real driver would not
// forgive. NVRTC is the real one.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/runtime/actor_set.hpp>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gyre_test {

/// What the fake's devices are said to be: by default an H200.
struct FakeDevice {
  FakeDevice();
  std::string name = "NVIDIA H200";
  int devices = 1;
  size_t memory_bytes = size_t(141) << 30;      ///< of the device
  size_t host_memory_bytes = size_t(64) << 30;  ///< that may be pinned or managed
  std::map<int, int> attributes;                ///< by CUdevice_attribute
  int registers_a_thread = 64;                  ///< of every kernel
  int static_shared_bytes = 48;                 ///< of every kernel
  bool has_mem_advise = true;
  bool refuses_registering = false;     ///< host memory that it did not allocate
  bool streams_write_no_words = false;  ///< cuStreamWriteValue32 is refused
  bool copies_never_end = false;        ///< of an engine
  bool opening_awaits_copy = false;     ///< another process's handle is opened after the next copy
};

/// While one lives, Driver::load() gives its functions. One at a time. Thread-safe, but for `device`, which
/// is for the time before a launch.
class FakeDriver {
 public:
  /// Kernels of these actor sets can be launched.
  explicit FakeDriver(std::vector<gyre::ActorSet> actors);
  /// Ends what still runs and frees what was not.
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  FakeDevice device;

  /// What was given out and not given back.
  struct Live {
    size_t allocations = 0, bytes = 0, streams = 0, events = 0, modules = 0, retains = 0, imports = 0,
           contexts = 0, workers = 0;
    bool operator==(const Live&) const = default;
    std::string text() const;
  };
  Live live() const;
  /// Device memory of the program, not of an engine, as CUDA has it in the primary context of a device. The
  /// fake gives each its file once another process opens it.
  enum class ProgramMemory { malloc, pool, mapped, mapped_shareable, managed, pinned };
  uintptr_t allocate_for_program(ProgramMemory kind, size_t bytes, int ordinal = 0);
  /// How often a default stream's work was waited for.
  size_t default_stream_waits() const;
  /// A stream of the program. Its work is done in order when somebody looks: each once finish_work() was
  /// called for it, or at once when it is its turn.
  CUstream make_stream_for_program();
  void give_work(CUstream stream, std::function<void()> work, bool at_once = false);
  void finish_work(CUstream stream);
  /// The work that the stream has fails: `code`.
  void fail_stream(CUstream stream, CUresult code);
  bool stream_is_done(CUstream stream);
  /// The program captures a stream in global mode, or no more: calls of threads that did not change to
  /// relaxed mode are refused, and are misuse.
  void capture(bool yes);
  /// How often an event was recorded in a stream.
  size_t recorded_events() const;
  /// How often the work of a context was waited for.
  size_t context_waits() const;
  /// The primary context of the program: it keeps one, or gives it up.
  void make_context_for_program();
  void end_context_of_program();
  /// As cudaFree: mappings of other processes keep the memory, and the next at this address is another.
  void free_for_program(uintptr_t address);
  /// Objects that were there when their context was ended, which took them along.
  size_t reclaimed() const;
  /// Of each of its devices.
  static const std::array<unsigned char, 16>& uuid();
  /// There is no Vulkan beside it: as it is from the start, and once a FakeVulkan has gone.
  static void without_vulkan();
  /// Whether a thread that takes SIGTERM initialised it or made its context: those a driver starts there
  /// would take it too.
  bool threads_take_signals() const;
  /// True while the calling thread is in one of the fake's functions.
  static bool in_call();
  /// Contexts that the calling thread has pushed and not popped.
  static size_t current_contexts();
  /// What a real driver would have blocked for ever on, or crashed: a line each.
  std::string misuse() const;

  /// A device fault: the workers are dead after the message in hand, and every call gives `code`. A handler
  /// that throws is one too, in the middle of its message.
  void fault(CUresult code = CUDA_ERROR_ILLEGAL_ADDRESS);
  /// The fault comes with the next launch, before a worker starts.
  void fault_at_launch(bool yes);
  /// Workers stop polling, as in a handler that does not return, until told to go on. Returns when they do.
  void hold(bool yes);

 private:
  struct State;
  friend struct FakeCalls;
  std::unique_ptr<State> state_;
};

}  // namespace gyre_test
