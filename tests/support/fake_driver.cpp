#include "support/fake_driver.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(GYRE_WITH_VULKAN)
#include <gyre/bridge/cuda/vulkan.hpp>
#endif
#include <gyre/bridge/cuda/device_lease.hpp>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/region.hpp>
#include <gyre/device/worker/engine_memory.hpp>
#include <gyre/runtime/core/backoff.hpp>
#include <gyre/runtime/system/per_thread.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <type_traits>

#include "tools/gyre/cubin.hpp"

namespace gyre_test {

using gyre::cuda::Driver;

FakeDevice::FakeDevice() {
  attributes = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
      {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
      {CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 0},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 << 10},
      {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1 << 10},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
      {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0},
      {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
  };
}

namespace {

enum class Kind { pinned, registered, managed, device, imported };

struct Allocation {
  Kind kind;
  size_t bytes;
  CUcontext context;
  // Of what the program allocated.
  bool programs = false, pool = false, virtual_memory = false, shareable = false;
  int ordinal = 0;
  uint64_t id = 0;
  int file = -1;  // its memory, once another process may open it
};
size_t in_pages(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }
// Puts the content into a file that other processes can map.
bool put_in_file(uintptr_t address, Allocation& allocation) {
  if (allocation.file >= 0) return true;
  void* const memory = reinterpret_cast<void*>(address);
  const size_t bytes = in_pages(allocation.bytes);
  const int file = memfd_create("fake device memory", MFD_CLOEXEC);
  if (file < 0) return false;
  if (ftruncate(file, off_t(bytes)) != 0 || pwrite(file, memory, bytes, 0) != ssize_t(bytes) ||
      mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
    close(file);
    return false;
  }
  allocation.file = file;
  return true;
}
// A fake CUipcMemHandle.
struct IpcHandle {
  char magic[8];
  pid_t process;
  int file;
  uint64_t bytes, id;
};
static_assert(sizeof(IpcHandle) <= sizeof(CUipcMemHandle));
constexpr char ipc_magic[8] = {'f', 'a', 'k', 'e', ' ', 'i', 'p', 'c'};
// Frees what a program has given back, or left.
void give_back(uintptr_t address, const Allocation& allocation) {
  if (allocation.kind == Kind::registered) return;  // it is the program's
  if (allocation.kind == Kind::imported) {
    munmap(reinterpret_cast<void*>(address), allocation.bytes);
  } else {
    if (allocation.file >= 0) {
      close(allocation.file);
      mmap(reinterpret_cast<void*>(address), in_pages(allocation.bytes), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    std::free(reinterpret_cast<void*>(address));
  }
}

// Memory of another interface, by its file.
struct Import {
  Import(int file, size_t bytes, CUcontext context) : file(file), bytes(bytes), context(context) {}
  ~Import() { close(file); }
  Import(const Import&) = delete;
  Import& operator=(const Import&) = delete;

  const int file;
  const size_t bytes;
  CUcontext const context;
};
struct Module {
  CUcontext context;
  std::map<std::string, std::vector<char>> globals;
};
struct Function {
  const gyre::ActorSet* actors;
  unsigned opted_in_bytes;  // of dynamic shared memory
};

// A launched kernel: its workers, and the threads that run them.
struct Kernel {
  CUcontext context;
  std::vector<std::unique_ptr<gyre::CpuWorker>> workers;
  std::vector<std::thread> threads;
  std::atomic<uint32_t> running{0};
};
struct Stream {
  CUcontext context;
  std::unique_ptr<Kernel> kernel;
};

// A stream of the program: what it was given is done in order, whenever somebody looks.
struct ProgramStream {
  struct Item {
    std::function<bool()> done;   // whether it may be passed
    std::function<void()> after;  // done once then; may be empty
  };
  std::deque<Item> items;
  CUresult failure = CUDA_SUCCESS;
  size_t allowed = 0, given = 0;  // works

  void advance() {
    while (failure == CUDA_SUCCESS && !items.empty() && items.front().done()) {
      const Item item = std::move(items.front());
      items.pop_front();
      if (item.after) item.after();
    }
  }
};

struct Event {
  CUcontext context;
  CUstream stream = nullptr;  // of the program
  std::shared_ptr<bool> reached = std::make_shared<bool>(true);
};

constinit thread_local gyre::detail::PerThread<std::vector<CUcontext>> contexts_of_each_thread;
std::vector<CUcontext>& contexts_of_this_thread() { return contexts_of_each_thread.get(); }
thread_local bool this_thread_is_in_call = false;
thread_local CUstreamCaptureMode capture_mode_of_this_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;

// The initialised variables of a cubin, by their names. CUDA's interface does not say where the file ends:
// its program headers are last in it.
std::map<std::string, std::vector<char>> globals_of(const void* image) {
  const auto& header = *static_cast<const Elf64_Ehdr*>(image);
  const size_t bytes = header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr);
  std::map<std::string, std::vector<char>> globals;
  for (const auto& [name, content] : gyre::tools::cubin_variables({static_cast<const char*>(image), bytes})) {
    const char* const first = reinterpret_cast<const char*>(content.data());
    globals[name].assign(first, first + content.size());
  }
  return globals;
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? text.get() : name;
}

}  // namespace

struct FakeDriver::State {
  std::vector<gyre::ActorSet> actors;
  mutable std::recursive_mutex mutex;
  std::atomic<CUresult> fault{CUDA_SUCCESS};
  std::atomic<bool> hold{false};
  std::atomic<uint32_t> held{0};  // workers that it holds
  std::atomic<bool> dead{false};  // every kernel ends where it is
  bool fault_at_launch = false;
  bool initialised = false;
  std::atomic<bool> threads_take_signals{false};
  size_t retains = 0;
  size_t reclaimed = 0;
  std::string misuse;
  std::map<uintptr_t, Allocation> allocations;
  std::set<std::unique_ptr<Stream>> streams;
  std::map<Module*, std::vector<std::unique_ptr<Function>>> modules;
  std::vector<std::unique_ptr<Kernel>> orphans;  // kernels whose stream is gone
  std::map<uintptr_t, Allocation> retired;       // freed while a kernel lived
  std::set<std::unique_ptr<Import>> imports;
  size_t default_stream_waits = 0, context_waits = 0;
  std::map<CUstream, ProgramStream> program_streams;
  std::map<CUevent, Event> events;
  size_t recorded = 0;
  bool captures = false;
  size_t copies = 0;                        // to the device
  uint64_t ids = 0;                         // of allocations for the program, so far
  std::map<std::string, uintptr_t> opened;  // by IPC handle
  std::map<uint64_t, int> handles;          // of virtual memory: files
  uint64_t last_handle = 0;
  std::map<uintptr_t, size_t> reservations;    // of addresses
  std::map<CUcontext, CUdevice> own_contexts;  // by names that are never used again

  CUcontext primary() { return reinterpret_cast<CUcontext>(this); }
  bool is_alive(CUcontext context) {
    return context == primary() ? retains != 0 : own_contexts.contains(context);
  }
  static CUcontext current() {
    return contexts_of_this_thread().empty() ? nullptr : contexts_of_this_thread().back();
  }
  // In any context, or in this one.
  bool kernel_lives(CUcontext context = nullptr) const {
    const auto runs = [context](const auto& kernel) {
      return kernel && kernel->running != 0 && (context == nullptr || kernel->context == context);
    };
    return std::any_of(streams.begin(), streams.end(), [&](const auto& s) { return runs(s->kernel); }) ||
           std::any_of(orphans.begin(), orphans.end(), runs);
  }
  void note(const std::string& line) { misuse += line + "\n"; }
  bool program_streams_are_done() {
    for (auto& [name, stream] : program_streams) {
      stream.advance();
      if (stream.failure == CUDA_SUCCESS && !stream.items.empty()) return false;
    }
    return true;
  }
  // In a call, which has the lock once: other calls go on.
  void wait_a_moment() {
    mutex.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    mutex.lock();
  }
  // What waits for the kernels of one context, or, ending one, for those of all.
  void blocks(const char* function, CUcontext context = current()) {
    if (kernel_lives(context))
      note(std::string(function) + " beside a live kernel: it would block until that ends");
  }
  auto find_allocation(uintptr_t address, size_t bytes) {
    auto at = allocations.upper_bound(address);
    if (at == allocations.begin()) return allocations.end();
    --at;
    return address - at->first + bytes <= at->second.bytes ? at : allocations.end();
  }
  CUresult room_for(Kind kind, size_t bytes) const {
    size_t used = 0;
    for (const auto& [at, allocation] : allocations) {
      const bool on_device = allocation.kind == Kind::device || allocation.kind == Kind::imported;
      if (on_device == (kind == Kind::device)) used += allocation.bytes;
    }
    const size_t most = kind == Kind::device ? owner->device.memory_bytes : owner->device.host_memory_bytes;
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    return bytes > most - used ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  }
  CUresult allocate(Kind kind, size_t bytes, uintptr_t& address) {
    if (const CUresult room = room_for(kind, bytes); room != CUDA_SUCCESS) return room;
    void* const memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    if (kind != Kind::managed) std::memset(memory, 0xa5, std::min<size_t>(bytes, 1 << 20));  // not zeroed
    address = reinterpret_cast<uintptr_t>(memory);
    allocations[address] = {kind, bytes, current()};
    return CUDA_SUCCESS;
  }
  CUresult free(const char* function, uintptr_t address, bool pinned) {
    const auto at = allocations.find(address);
    if (at == allocations.end() || (at->second.kind == Kind::pinned) != pinned) {
      note(std::string(function) + " of what it did not allocate");
      return CUDA_ERROR_INVALID_VALUE;
    }
    blocks(function, at->second.context);
    if (kernel_lives(at->second.context)) {
      retired.insert(*at);
    } else {
      give_back(at->first, at->second);
    }
    allocations.erase(at);
    return CUDA_SUCCESS;
  }
  // A context takes along what is in it.
  void destroy_context(const char* function, CUcontext context) {
    blocks(function, nullptr);
    for (const auto& [address, allocation] : allocations) {
      if (allocation.context == context) retired.emplace(address, allocation);
    }
    for (const auto& stream : streams) {
      if (stream->context == context && stream->kernel) orphans.push_back(std::move(stream->kernel));
    }
    reclaimed += std::erase_if(allocations, [&](const auto& each) { return each.second.context == context; });
    reclaimed += std::erase_if(streams, [&](const auto& each) { return each->context == context; });
    reclaimed += std::erase_if(modules, [&](const auto& each) { return each.first->context == context; });
    reclaimed += std::erase_if(imports, [&](const auto& each) { return each->context == context; });
  }

  FakeDriver* owner = nullptr;
};

namespace {
std::atomic<FakeDriver*> active{nullptr};
}  // namespace

// The functions. Each returns the fault's code once there was one.
struct FakeCalls {
  static FakeDriver::State& state() { return *active.load()->state_; }
  static FakeDevice& device() { return active.load()->device; }

  // What every call begins with: one at a time, and not after a fault.
  struct Call {
    std::unique_lock<std::recursive_mutex> lock{state().mutex};
    CUresult result;
    explicit Call(bool needs_context) : result(state().fault) {
      this_thread_is_in_call = true;
      if (result != CUDA_SUCCESS) return;
      if (!state().initialised) {
        result = CUDA_ERROR_NOT_INITIALIZED;
      } else if (needs_context && !state().is_alive(FakeDriver::State::current())) {
        result = CUDA_ERROR_INVALID_CONTEXT;
      } else if (needs_context && state().captures &&
                 capture_mode_of_this_thread != CU_STREAM_CAPTURE_MODE_RELAXED) {
        state().note("a call that spoils the program's capture");
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
      }
    }
    ~Call() { this_thread_is_in_call = false; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    explicit operator bool() const { return result == CUDA_SUCCESS; }
  };
#define GYRE_FAKE_CALL(needs_context) \
  const Call call(needs_context);     \
  if (!call) return call.result;      \
  [[maybe_unused]] FakeDriver::State& s = state()

  // Where a real driver starts threads.
  static void start_threads() {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    if (sigismember(&blocked, SIGTERM) != 1) state().threads_take_signals = true;
  }
  static CUresult cuInit(unsigned int) {
    start_threads();
    const std::lock_guard lock(state().mutex);
    if (state().fault != CUDA_SUCCESS) return state().fault;
    state().initialised = true;
    return CUDA_SUCCESS;
  }
  static CUresult cuDriverGetVersion(int* version) {
    *version = 13000;
    return CUDA_SUCCESS;
  }
  static CUresult cuGetErrorName(CUresult code, const char** name) {
    *name = nullptr;
    switch (code) {
#define GYRE_FAKE_NAME(code) \
  case code:                 \
    *name = #code;           \
    break;
      GYRE_FAKE_NAME(CUDA_SUCCESS)
      GYRE_FAKE_NAME(CUDA_ERROR_INVALID_VALUE)
      GYRE_FAKE_NAME(CUDA_ERROR_OUT_OF_MEMORY)
      GYRE_FAKE_NAME(CUDA_ERROR_NOT_INITIALIZED)
      GYRE_FAKE_NAME(CUDA_ERROR_NO_DEVICE)
      GYRE_FAKE_NAME(CUDA_ERROR_INVALID_DEVICE)
      GYRE_FAKE_NAME(CUDA_ERROR_INVALID_CONTEXT)
      GYRE_FAKE_NAME(CUDA_ERROR_INVALID_HANDLE)
      GYRE_FAKE_NAME(CUDA_ERROR_NOT_FOUND)
      GYRE_FAKE_NAME(CUDA_ERROR_NOT_READY)
      GYRE_FAKE_NAME(CUDA_ERROR_ILLEGAL_ADDRESS)
      GYRE_FAKE_NAME(CUDA_ERROR_LAUNCH_FAILED)
      GYRE_FAKE_NAME(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
      GYRE_FAKE_NAME(CUDA_ERROR_NOT_SUPPORTED)
      GYRE_FAKE_NAME(CUDA_ERROR_OPERATING_SYSTEM)
      GYRE_FAKE_NAME(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
      GYRE_FAKE_NAME(CUDA_ERROR_UNKNOWN)
#undef GYRE_FAKE_NAME
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  }
  static CUresult cuGetErrorString(CUresult, const char** text) {
    *text = "said by the fake driver";
    return CUDA_SUCCESS;
  }
  static CUresult cuDeviceGetCount(int* count) {
    GYRE_FAKE_CALL(false);
    *count = device().devices;
    return CUDA_SUCCESS;
  }
  static CUresult cuDeviceGet(CUdevice* result, int ordinal) {
    GYRE_FAKE_CALL(false);
    if (ordinal < 0 || ordinal >= device().devices) return CUDA_ERROR_INVALID_DEVICE;
    *result = ordinal;
    return CUDA_SUCCESS;
  }
  static CUresult cuDeviceGetName(char* name, int length, CUdevice) {
    GYRE_FAKE_CALL(false);
    std::strncpy(name, device().name.c_str(), size_t(length) - 1);
    return CUDA_SUCCESS;
  }
  static CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
    GYRE_FAKE_CALL(false);
    const auto at = device().attributes.find(attribute);
    *value = at != device().attributes.end() ? at->second : 0;
    return CUDA_SUCCESS;
  }
  static CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
    GYRE_FAKE_CALL(false);
    *bytes = device().memory_bytes;
    return CUDA_SUCCESS;
  }
  static CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice) {
    GYRE_FAKE_CALL(false);
    std::strncpy(text, "0000:01:00.0", size_t(length) - 1);
    return CUDA_SUCCESS;
  }

  static CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
    GYRE_FAKE_CALL(false);
    start_threads();
    ++s.retains;
    *context = s.primary();
    return CUDA_SUCCESS;
  }
  static CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned int* flags, int* active) {
    GYRE_FAKE_CALL(false);
    *flags = 0;
    *active = s.retains != 0;
    return CUDA_SUCCESS;
  }
  static CUresult cuDevicePrimaryCtxRelease(CUdevice) {
    GYRE_FAKE_CALL(false);
    if (s.retains == 0) {
      s.note("cuDevicePrimaryCtxRelease without a retain");
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (--s.retains == 0) s.destroy_context("cuDevicePrimaryCtxRelease", s.primary());
    return CUDA_SUCCESS;
  }
  static CUresult cuCtxCreate(CUcontext* context, unsigned int, CUdevice device) {
    static std::atomic<uintptr_t> names{0};
    GYRE_FAKE_CALL(false);
    start_threads();
    *context = reinterpret_cast<CUcontext>(++names);
    s.own_contexts[*context] = device;
    contexts_of_this_thread().push_back(*context);
    return CUDA_SUCCESS;
  }
  static CUresult cuCtxDestroy(CUcontext context) {
    GYRE_FAKE_CALL(false);
    if (s.own_contexts.erase(context) == 0) {
      s.note("cuCtxDestroy of what is no own context");
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    s.destroy_context("cuCtxDestroy", context);
    return CUDA_SUCCESS;
  }
  static CUresult cuCtxGetDevice(CUdevice* device) {
    GYRE_FAKE_CALL(true);
    const auto own = s.own_contexts.find(s.current());
    *device = own == s.own_contexts.end() ? 0 : own->second;
    return CUDA_SUCCESS;
  }
  static CUresult cuCtxGetCurrent(CUcontext* context) {
    GYRE_FAKE_CALL(false);
    *context = s.current();
    return CUDA_SUCCESS;
  }
  static CUresult cuCtxSynchronize() {
    GYRE_FAKE_CALL(true);
    s.blocks("cuCtxSynchronize");
    while (!s.program_streams_are_done()) s.wait_a_moment();
    ++s.context_waits;
    return CUDA_SUCCESS;
  }
  static CUresult cuCtxPushCurrent(CUcontext context) {
    GYRE_FAKE_CALL(false);
    if (!s.is_alive(context)) return CUDA_ERROR_INVALID_CONTEXT;
    contexts_of_this_thread().push_back(context);
    return CUDA_SUCCESS;
  }
  static CUresult cuCtxPopCurrent(CUcontext* context) {
    if (contexts_of_this_thread().empty()) return CUDA_ERROR_INVALID_CONTEXT;
    *context = contexts_of_this_thread().back();
    contexts_of_this_thread().pop_back();
    return state().fault;
  }

  static CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    std::swap(*mode, capture_mode_of_this_thread);
    return state().fault;
  }

  static CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned int) {
    GYRE_FAKE_CALL(true);
    uintptr_t address = 0;
    const CUresult result = s.allocate(Kind::pinned, bytes, address);
    if (result == CUDA_SUCCESS) *memory = reinterpret_cast<void*>(address);
    return result;
  }
  static CUresult cuMemFreeHost(void* memory) {
    GYRE_FAKE_CALL(true);
    return s.free("cuMemFreeHost", reinterpret_cast<uintptr_t>(memory), true);
  }
  static CUresult cuMemHostRegister(void* memory, size_t bytes, unsigned int) {
    GYRE_FAKE_CALL(true);
    if (device().refuses_registering) return CUDA_ERROR_NOT_SUPPORTED;
    const auto address = reinterpret_cast<uintptr_t>(memory);
    if (address % 4096 != 0 || s.find_allocation(address, bytes) != s.allocations.end()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const CUresult room = s.room_for(Kind::registered, bytes);
    if (room == CUDA_SUCCESS) s.allocations[address] = {Kind::registered, bytes, s.current()};
    return room;
  }
  static CUresult cuMemHostUnregister(void* memory) {
    GYRE_FAKE_CALL(true);
    const auto at = s.allocations.find(reinterpret_cast<uintptr_t>(memory));
    if (at == s.allocations.end() || at->second.kind != Kind::registered) {
      s.note("cuMemHostUnregister of what was not registered");
      return CUDA_ERROR_INVALID_VALUE;
    }
    s.blocks("cuMemHostUnregister", at->second.context);
    s.allocations.erase(at);
    return CUDA_SUCCESS;
  }
  static CUresult cuMemHostGetDevicePointer(CUdeviceptr* result, void* memory, unsigned int) {
    GYRE_FAKE_CALL(true);
    if (s.allocations.find(reinterpret_cast<uintptr_t>(memory)) == s.allocations.end()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *result = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
  }
  static CUresult cuMemAlloc(CUdeviceptr* memory, size_t bytes) {
    GYRE_FAKE_CALL(true);
    uintptr_t address = 0;
    const CUresult result = s.allocate(Kind::device, bytes, address);
    if (result == CUDA_SUCCESS) *memory = address;
    return result;
  }
  static CUresult cuMemAllocManaged(CUdeviceptr* memory, size_t bytes, unsigned int flags) {
    GYRE_FAKE_CALL(true);
    if (flags != CU_MEM_ATTACH_GLOBAL) return CUDA_ERROR_INVALID_VALUE;
    if (device().attributes[CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY] == 0) return CUDA_ERROR_NOT_SUPPORTED;
    uintptr_t address = 0;
    const CUresult result = s.allocate(Kind::managed, bytes, address);
    if (result == CUDA_SUCCESS) *memory = address;
    return result;
  }
  static CUresult cuMemFree(CUdeviceptr memory) {
    GYRE_FAKE_CALL(true);
    return s.free("cuMemFree", memory, false);
  }
  static CUresult advise(CUdeviceptr memory, size_t bytes, CUmem_advise, CUdevice) {
    GYRE_FAKE_CALL(true);
    const auto at = s.find_allocation(memory, bytes);
    return at != s.allocations.end() && at->second.kind == Kind::managed ? CUDA_SUCCESS
                                                                         : CUDA_ERROR_INVALID_VALUE;
  }
  static CUresult cuMemGetInfo(size_t* free, size_t* total) {
    GYRE_FAKE_CALL(true);
    *total = *free = device().memory_bytes;
    for (const auto& [at, allocation] : s.allocations) {
      if (allocation.kind == Kind::device || allocation.kind == Kind::imported) *free -= allocation.bytes;
    }
    return CUDA_SUCCESS;
  }
  static CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr memory) {
    GYRE_FAKE_CALL(true);
    const auto at = s.find_allocation(memory, 1);
    if (at == s.allocations.end() || at->second.kind == Kind::imported) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = at->first;
    if (bytes != nullptr) *bytes = at->second.bytes;
    return CUDA_SUCCESS;
  }
  static CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr memory) {
    GYRE_FAKE_CALL(false);
    const auto at = s.find_allocation(memory, 1);
    if (at == s.allocations.end() || at->second.kind == Kind::imported) return CUDA_ERROR_INVALID_VALUE;
    const Allocation& about = at->second;
    switch (attribute) {
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *static_cast<unsigned int*>(value) = about.kind == Kind::managed;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_CONTEXT:
        *static_cast<CUcontext*>(value) = about.pool || about.virtual_memory ? nullptr : about.context;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *static_cast<unsigned long long*>(value) = about.id;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(value) = about.ordinal;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *static_cast<unsigned int*>(value) =
            about.kind == Kind::device && !about.pool && !about.virtual_memory;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *static_cast<CUmemoryPool*>(value) = about.pool ? reinterpret_cast<CUmemoryPool>(&s) : nullptr;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *static_cast<unsigned long long*>(value) =
            about.shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *static_cast<uintptr_t*>(value) = at->first;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *static_cast<size_t*>(value) = about.bytes;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<unsigned int*>(value) =
            at->second.kind == Kind::pinned || at->second.kind == Kind::registered ? CU_MEMORYTYPE_HOST
                                                                                   : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *static_cast<uintptr_t*>(value) = at->first;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *static_cast<size_t*>(value) = at->second.bytes;
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  // Orders a copy and the workers' accesses before and after it, by the fences of theirs: messages say when
  // it was made, and may come by way of another process, which ThreadSanitizer does not see.
  struct Ordered {
    Ordered() { gyre::HostMemory::fence(); }
    ~Ordered() { gyre::HostMemory::fence(); }
  };
  static CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream) {
    GYRE_FAKE_CALL(true);
    if (s.find_allocation(to, bytes) == s.allocations.end()) return CUDA_ERROR_INVALID_VALUE;
    const Ordered ordered;
    std::memset(reinterpret_cast<void*>(to), byte, bytes);
    return CUDA_SUCCESS;
  }
  // Workers may read the words of small blocks while they are copied.
  static CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream) {
    GYRE_FAKE_CALL(true);
    if (s.find_allocation(to, bytes) == s.allocations.end()) return CUDA_ERROR_INVALID_VALUE;
    ++s.copies;
    const Ordered ordered;
    constexpr size_t word = sizeof(uint64_t), polled = sizeof(gyre::BufferEntry);
    if (bytes <= polled && bytes % word == 0 && to % word == 0) {
      for (size_t done = 0; done < bytes; done += word) {
        uint64_t value = 0;
        std::memcpy(&value, static_cast<const char*>(from) + done, word);
        gyre::HostMemory::store_release(*reinterpret_cast<uint64_t*>(to + done), value);
      }
    } else {
      std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    }
    return CUDA_SUCCESS;
  }
  static CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream) {
    GYRE_FAKE_CALL(true);
    if (s.find_allocation(from, bytes) == s.allocations.end()) return CUDA_ERROR_INVALID_VALUE;
    const Ordered ordered;
    std::memcpy(to, reinterpret_cast<void*>(from), bytes);
    return CUDA_SUCCESS;
  }

  // Memory of other processes.
  static CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr memory) {
    GYRE_FAKE_CALL(true);
    const auto at = s.find_allocation(memory, 1);
    if (at == s.allocations.end() || at->second.kind != Kind::device || at->second.pool ||
        at->second.virtual_memory || !put_in_file(at->first, at->second)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    IpcHandle filled{{}, getpid(), at->second.file, at->second.bytes, at->second.id};
    std::memcpy(filled.magic, ipc_magic, sizeof ipc_magic);
    std::memset(handle, 0, sizeof *handle);
    std::memcpy(handle, &filled, sizeof filled);
    return CUDA_SUCCESS;
  }
  // The file may be closed here.
  static CUresult map_file(FakeDriver::State& s, int file, size_t bytes, CUdeviceptr& address) {
    struct stat about;
    if (fstat(file, &about) != 0 || size_t(about.st_size) < bytes || bytes == 0)
      return CUDA_ERROR_INVALID_VALUE;
    void* const mapped = mmap(nullptr, in_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    address = reinterpret_cast<CUdeviceptr>(mapped);
    s.allocations[address] = {Kind::imported, in_pages(bytes), s.current()};
    return CUDA_SUCCESS;
  }
  static CUresult cuIpcOpenMemHandle(CUdeviceptr* result, CUipcMemHandle handle, unsigned int) {
    GYRE_FAKE_CALL(true);
    const std::string name(handle.reserved, sizeof handle.reserved);
    if (const auto at = s.opened.find(name); at != s.opened.end()) {
      *result = at->second;
      return CUDA_SUCCESS;
    }
    if (device().opening_awaits_copy) {
      const size_t before = s.copies;
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (s.copies == before && std::chrono::steady_clock::now() < end) s.wait_a_moment();
      if (s.copies == before) return CUDA_ERROR_NOT_READY;
    }
    IpcHandle asked;
    std::memcpy(&asked, &handle, sizeof asked);
    if (std::memcmp(asked.magic, ipc_magic, sizeof ipc_magic) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (asked.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
    const std::string path = "/proc/" + std::to_string(asked.process) + "/fd/" + std::to_string(asked.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return CUDA_ERROR_INVALID_VALUE;
    const CUresult mapped = map_file(s, file, asked.bytes, *result);
    close(file);
    if (mapped == CUDA_SUCCESS) s.opened[name] = *result;
    return mapped;
  }
  static CUresult cuIpcCloseMemHandle(CUdeviceptr memory) {
    GYRE_FAKE_CALL(true);
    s.blocks("cuIpcCloseMemHandle");
    const auto opened = std::find_if(s.opened.begin(), s.opened.end(),
                                     [memory](const auto& each) { return each.second == memory; });
    if (opened == s.opened.end()) {
      s.note("cuIpcCloseMemHandle of what is not open");
      return CUDA_ERROR_INVALID_VALUE;
    }
    s.opened.erase(opened);
    give_back(memory, s.allocations[memory]);
    s.allocations.erase(memory);
    return CUDA_SUCCESS;
  }
  static CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*,
                                                CUmemAllocationGranularity_flags) {
    GYRE_FAKE_CALL(false);
    *bytes = size_t(2) << 20;
    return CUDA_SUCCESS;
  }
  static CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                              const CUmemAllocationProp* asked, unsigned long long) {
    GYRE_FAKE_CALL(false);
    if (bytes == 0 || bytes % (size_t(2) << 20) != 0 || asked->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        asked->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (const CUresult room = s.room_for(Kind::device, bytes); room != CUDA_SUCCESS) return room;
    const int file = memfd_create("fake device memory", MFD_CLOEXEC);
    const std::vector<char> dirt(std::min<size_t>(bytes, 1 << 20), char(0xa5));  // not zeroed
    if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
    if (ftruncate(file, off_t(bytes)) != 0 ||
        pwrite(file, dirt.data(), dirt.size(), 0) != ssize_t(dirt.size())) {
      close(file);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    s.handles[*handle = ++s.last_handle] = file;
    return CUDA_SUCCESS;
  }
  static CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* memory) {
    GYRE_FAKE_CALL(false);
    const auto at = s.find_allocation(reinterpret_cast<uintptr_t>(memory), 1);
    if (at == s.allocations.end() || !at->second.virtual_memory || !put_in_file(at->first, at->second))
      return CUDA_ERROR_INVALID_VALUE;
    s.handles[*handle = ++s.last_handle] = at->second.shareable ? dup(at->second.file) : -1;
    return CUDA_SUCCESS;
  }
  static CUresult cuMemExportToShareableHandle(void* descriptor, CUmemGenericAllocationHandle handle,
                                               CUmemAllocationHandleType type, unsigned long long) {
    GYRE_FAKE_CALL(false);
    const auto at = s.handles.find(handle);
    if (at == s.handles.end() || at->second < 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
      return CUDA_ERROR_INVALID_VALUE;
    *static_cast<int*>(descriptor) = fcntl(at->second, F_DUPFD_CLOEXEC, 0);
    return CUDA_SUCCESS;
  }
  static CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* descriptor,
                                                 CUmemAllocationHandleType type) {
    GYRE_FAKE_CALL(true);
    struct stat about;
    const int file = fcntl(int(reinterpret_cast<intptr_t>(descriptor)), F_DUPFD_CLOEXEC, 0);
    if (file < 0) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fstat(file, &about) != 0 ||
        !S_ISREG(about.st_mode)) {
      close(file);
      return CUDA_ERROR_INVALID_VALUE;
    }
    s.handles[*handle = ++s.last_handle] = file;
    return CUDA_SUCCESS;
  }
  static CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    GYRE_FAKE_CALL(false);
    const auto at = s.handles.find(handle);
    if (at == s.handles.end()) {
      s.note("cuMemRelease of what is no handle");
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (at->second >= 0) close(at->second);
    s.handles.erase(at);
    return CUDA_SUCCESS;
  }
  static CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr,
                                      unsigned long long) {
    GYRE_FAKE_CALL(true);
    if (bytes == 0 || bytes % 4096 != 0) return CUDA_ERROR_INVALID_VALUE;
    void* const reserved =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = reinterpret_cast<CUdeviceptr>(reserved);
    s.reservations[*address] = bytes;
    return CUDA_SUCCESS;
  }
  static CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    GYRE_FAKE_CALL(true);
    const auto at = s.reservations.find(address);
    if (at == s.reservations.end() || at->second != bytes || s.allocations.contains(address)) {
      s.note("cuMemAddressFree of what is not reserved, or mapped");
      return CUDA_ERROR_INVALID_VALUE;
    }
    munmap(reinterpret_cast<void*>(address), bytes);
    s.reservations.erase(at);
    return CUDA_SUCCESS;
  }
  static CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                           CUmemGenericAllocationHandle handle, unsigned long long) {
    GYRE_FAKE_CALL(true);
    const auto reserved = s.reservations.find(address);
    const auto at = s.handles.find(handle);
    struct stat about;
    if (reserved == s.reservations.end() || reserved->second != bytes || at == s.handles.end() ||
        offset != 0 || s.allocations.contains(address) || fstat(at->second, &about) != 0 ||
        size_t(about.st_size) != bytes ||
        mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, at->second, 0) ==
            MAP_FAILED) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    s.allocations[address] = {Kind::imported, bytes, s.current()};
    return CUDA_SUCCESS;
  }
  static CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access,
                                 size_t count) {
    GYRE_FAKE_CALL(true);
    if (count != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
        !s.reservations.contains(address) || !s.allocations.contains(address)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE);
    return CUDA_SUCCESS;
  }
  // At once, also beside a live kernel.
  static CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
    GYRE_FAKE_CALL(true);
    const auto at = s.allocations.find(address);
    if (!s.reservations.contains(address) || at == s.allocations.end() || at->second.bytes != bytes) {
      s.note("cuMemUnmap of what is not mapped");
      return CUDA_ERROR_INVALID_VALUE;
    }
    mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    s.allocations.erase(at);
    return CUDA_SUCCESS;
  }

  static CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    GYRE_FAKE_CALL(false);
    std::memcpy(uuid->bytes, FakeDriver::uuid().data(), sizeof uuid->bytes);
    uuid->bytes[15] = char(uuid->bytes[15] + device);
    return CUDA_SUCCESS;
  }
  static CUresult cuImportExternalMemory(CUexternalMemory* result,
                                         const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* handle) {
    GYRE_FAKE_CALL(true);
    struct stat about;
    if (handle->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD || fstat(handle->handle.fd, &about) != 0 ||
        size_t(about.st_size) != handle->size) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    auto import = std::make_unique<Import>(handle->handle.fd, handle->size, s.current());
    *result = reinterpret_cast<CUexternalMemory>(import.get());
    s.imports.insert(std::move(import));
    return CUDA_SUCCESS;
  }
  static auto find_import(CUexternalMemory memory) {
    return std::find_if(state().imports.begin(), state().imports.end(), [&](const auto& each) {
      return reinterpret_cast<CUexternalMemory>(each.get()) == memory;
    });
  }
  static CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr* result, CUexternalMemory memory,
                                                  const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* buffer) {
    GYRE_FAKE_CALL(true);
    const auto at = find_import(memory);
    if (at == s.imports.end() || buffer->offset != 0 || buffer->size > (*at)->bytes) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    void* const mapped = mmap(nullptr, buffer->size, PROT_READ | PROT_WRITE, MAP_SHARED, (*at)->file, 0);
    if (mapped == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    *result = reinterpret_cast<CUdeviceptr>(mapped);
    s.allocations[*result] = {Kind::imported, buffer->size, s.current()};
    return CUDA_SUCCESS;
  }
  static CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
    GYRE_FAKE_CALL(true);
    s.blocks("cuDestroyExternalMemory");
    const auto at = find_import(memory);
    if (at == s.imports.end()) {
      s.note("cuDestroyExternalMemory of what was not imported");
      return CUDA_ERROR_INVALID_HANDLE;
    }
    s.imports.erase(at);
    return CUDA_SUCCESS;
  }

  static CUresult cuModuleLoadDataEx(CUmodule* result, const void* image, unsigned int, CUjit_option*,
                                     void**) {
    GYRE_FAKE_CALL(true);
    s.blocks("cuModuleLoadDataEx");
    if (std::memcmp(image, "\177ELF", 4) != 0) return CUDA_ERROR_INVALID_IMAGE;
    auto* const module = new Module{s.current(), globals_of(image)};
    s.modules[module];
    *result = reinterpret_cast<CUmodule>(module);
    return CUDA_SUCCESS;
  }
  static CUresult cuModuleUnload(CUmodule module) {
    GYRE_FAKE_CALL(true);
    s.blocks("cuModuleUnload");
    if (s.modules.erase(reinterpret_cast<Module*>(module)) == 0) {
      s.note("cuModuleUnload of what is not loaded");
      return CUDA_ERROR_INVALID_HANDLE;
    }
    delete reinterpret_cast<Module*>(module);
    return CUDA_SUCCESS;
  }
  static CUresult cuModuleGetFunction(CUfunction* result, CUmodule module, const char* name) {
    GYRE_FAKE_CALL(true);
    const auto at = s.modules.find(reinterpret_cast<Module*>(module));
    if (at == s.modules.end()) return CUDA_ERROR_INVALID_HANDLE;
    const std::string text = demangled(name);
    for (const gyre::ActorSet& actors : s.actors) {
      if (text.find(actors.kernel()) == std::string::npos) continue;
      at->second.push_back(std::make_unique<Function>(Function{&actors, 0}));
      *result = reinterpret_cast<CUfunction>(at->second.back().get());
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
  }
  static CUresult cuModuleGetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
    GYRE_FAKE_CALL(true);
    if (s.modules.find(reinterpret_cast<Module*>(module)) == s.modules.end())
      return CUDA_ERROR_INVALID_HANDLE;
    auto& globals = reinterpret_cast<Module*>(module)->globals;
    const auto found = globals.find(name);
    if (found == globals.end()) return CUDA_ERROR_NOT_FOUND;
    *address = reinterpret_cast<CUdeviceptr>(found->second.data());
    *bytes = found->second.size();
    return CUDA_SUCCESS;
  }
  static CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
    GYRE_FAKE_CALL(true);
    s.blocks("cuMemcpyDtoH");
    bool there = s.find_allocation(from, bytes) != s.allocations.end();
    for (const auto& [module, functions] : s.modules) {
      for (const auto& [name, global] : module->globals) {
        const auto begin = reinterpret_cast<CUdeviceptr>(global.data());
        there = there || (from >= begin && from + bytes <= begin + global.size());
      }
    }
    if (!there) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return CUDA_SUCCESS;
  }
  static CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
    GYRE_FAKE_CALL(true);
    switch (attribute) {
      case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = std::min(1024, 65536 / device().registers_a_thread / 32 * 32);
        return CUDA_SUCCESS;
      case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = device().registers_a_thread;
        return CUDA_SUCCESS;
      case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = device().static_shared_bytes;
        return CUDA_SUCCESS;
      default:
        *value = 0;
        return CUDA_SUCCESS;
    }
  }
  static CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    GYRE_FAKE_CALL(true);
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
      if (value > device().attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN]) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      reinterpret_cast<Function*>(function)->opted_in_bytes = unsigned(value);
    }
    return CUDA_SUCCESS;
  }
  static int resident(int block, size_t dynamic_shared_bytes) {
    const auto number = [](int attribute) { return device().attributes[attribute]; };
    const size_t shared = dynamic_shared_bytes + size_t(device().static_shared_bytes) +
                          size_t(number(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
    return std::min(
        {number(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
         number(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / block,
         number(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR) / (device().registers_a_thread * block),
         int(size_t(number(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)) / shared)});
  }
  static CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int block,
                                                              size_t dynamic_shared_bytes) {
    GYRE_FAKE_CALL(true);
    *blocks = resident(block, dynamic_shared_bytes);
    return CUDA_SUCCESS;
  }

  static CUresult cuStreamCreate(CUstream* result, unsigned int) {
    GYRE_FAKE_CALL(true);
    auto stream = std::make_unique<Stream>();
    stream->context = s.current();
    *result = reinterpret_cast<CUstream>(stream.get());
    s.streams.insert(std::move(stream));
    return CUDA_SUCCESS;
  }
  static auto find_stream(CUstream stream) {
    return std::find_if(state().streams.begin(), state().streams.end(),
                        [&](const auto& each) { return reinterpret_cast<CUstream>(each.get()) == stream; });
  }
  static CUresult cuStreamDestroy(CUstream stream) {
    GYRE_FAKE_CALL(false);
    const auto at = find_stream(stream);
    if (at == s.streams.end()) {
      s.note("cuStreamDestroy of what is no stream");
      return CUDA_ERROR_INVALID_HANDLE;
    }
    if ((*at)->kernel) s.orphans.push_back(std::move((*at)->kernel));
    s.streams.erase(at);
    return CUDA_SUCCESS;
  }
  // Null where it is an engine's, or none.
  static ProgramStream* program_stream(CUstream stream) {
    if (stream == nullptr || stream == CU_STREAM_LEGACY) return &state().program_streams[nullptr];
    const auto at = state().program_streams.find(stream);
    return at == state().program_streams.end() ? nullptr : &at->second;
  }
  static CUresult progress_of(ProgramStream& stream) {
    stream.advance();
    if (stream.failure != CUDA_SUCCESS) return stream.failure;
    return stream.items.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }
  static CUresult cuEventCreate(CUevent* event, unsigned int) {
    static std::atomic<uintptr_t> names{0};
    GYRE_FAKE_CALL(true);
    *event = reinterpret_cast<CUevent>(++names);
    s.events[*event] = Event{s.current()};
    return CUDA_SUCCESS;
  }
  static CUresult cuEventRecord(CUevent event, CUstream stream) {
    GYRE_FAKE_CALL(true);
    const auto at = s.events.find(event);
    if (at == s.events.end()) return CUDA_ERROR_INVALID_HANDLE;
    ProgramStream* const on = program_stream(stream);
    if (on == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    at->second = {s.current(), stream, std::make_shared<bool>(false)};
    on->items.push_back({[] { return true; }, [reached = at->second.reached] { *reached = true; }});
    ++s.recorded;
    return CUDA_SUCCESS;
  }
  static CUresult cuEventQuery(CUevent event) {
    GYRE_FAKE_CALL(true);
    const auto at = s.events.find(event);
    if (at == s.events.end()) return CUDA_ERROR_INVALID_HANDLE;
    if (ProgramStream* const on = program_stream(at->second.stream); !*at->second.reached && on != nullptr) {
      on->advance();
      if (on->failure != CUDA_SUCCESS) return on->failure;
    }
    return *at->second.reached ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }
  static CUresult cuEventDestroy(CUevent event) {
    GYRE_FAKE_CALL(false);
    if (s.events.erase(event) != 0) return CUDA_SUCCESS;
    s.note("cuEventDestroy of what is no event");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  static CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                      unsigned int flags) {
    GYRE_FAKE_CALL(true);
    ProgramStream* const on = program_stream(stream);
    const auto at = s.find_allocation(address, sizeof value);
    if (on == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (flags != CU_STREAM_WAIT_VALUE_GEQ || at == s.allocations.end() || at->second.kind != Kind::registered)
      return CUDA_ERROR_INVALID_VALUE;
    const auto* const word = reinterpret_cast<const std::atomic<uint32_t>*>(address);
    on->items.push_back({[word, value] {
                           return int32_t(word->load(std::memory_order_acquire) - value) >= 0;  // cyclic
                         },
                         {}});
    return CUDA_SUCCESS;
  }
  // On an engine's stream, whose copies are done when their call returns.
  static CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                       unsigned int flags) {
    GYRE_FAKE_CALL(true);
    if (find_stream(stream) == s.streams.end()) return CUDA_ERROR_INVALID_HANDLE;
    if (device().streams_write_no_words) return CUDA_ERROR_NOT_SUPPORTED;
    const auto at = s.find_allocation(address, sizeof value);
    if (flags != CU_STREAM_WRITE_VALUE_DEFAULT || at == s.allocations.end() || address % sizeof value != 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (!device().copies_never_end)
      reinterpret_cast<std::atomic<uint32_t>*>(address)->store(value, std::memory_order_seq_cst);
    return CUDA_SUCCESS;
  }
  static CUresult cuStreamQuery(CUstream stream) {
    GYRE_FAKE_CALL(true);
    if (ProgramStream* const on = program_stream(stream)) return progress_of(*on);
    const auto at = find_stream(stream);
    if (at == s.streams.end()) return CUDA_ERROR_INVALID_HANDLE;
    return (*at)->kernel && (*at)->kernel->running != 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  }
  static CUresult cuStreamSynchronize(CUstream stream) {
    GYRE_FAKE_CALL(true);
    if (stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
      ++s.default_stream_waits;
      return CUDA_SUCCESS;
    }
    const auto at = find_stream(stream);
    if (at == s.streams.end()) return CUDA_ERROR_INVALID_HANDLE;
    if ((*at)->kernel && (*at)->kernel->running != 0) {
      s.note("cuStreamSynchronize of a kernel that does not end");
      return CUDA_ERROR_NOT_READY;
    }
    return CUDA_SUCCESS;
  }

  static CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, CUstream, void**, void**) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  static CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid, unsigned grid_y,
                                            unsigned grid_z, unsigned block, unsigned block_y,
                                            unsigned block_z, unsigned dynamic_shared_bytes, CUstream stream,
                                            void** arguments) {
    GYRE_FAKE_CALL(true);
    const auto at = find_stream(stream);
    if (at == s.streams.end() || (*at)->kernel) return CUDA_ERROR_INVALID_HANDLE;
    const auto number = [](int attribute) { return unsigned(device().attributes[attribute]); };
    if (number(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) == 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (grid == 0 || grid_y != 1 || grid_z != 1 || block == 0 || block_y != 1 || block_z != 1 ||
        block > number(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) ||
        dynamic_shared_bytes > number(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (dynamic_shared_bytes + unsigned(device().static_shared_bytes) >
            number(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK) &&
        dynamic_shared_bytes > reinterpret_cast<Function*>(function)->opted_in_bytes) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (grid > unsigned(resident(int(block), dynamic_shared_bytes)) *
                   number(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)) {
      return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
    // device/worker/kernel.hpp: the parameters of worker_kernel.
    const CUdeviceptr region = *static_cast<const CUdeviceptr*>(arguments[0]);
    const CUdeviceptr inbound = *static_cast<const CUdeviceptr*>(arguments[1]);
    const auto layout = *static_cast<const gyre::RegionLayout*>(arguments[2]);
    const auto memory = *static_cast<const gyre::EngineMemory*>(arguments[3]);
    if (s.fault_at_launch || layout.workers > grid ||
        s.find_allocation(region, layout.region_bytes()) == s.allocations.end() ||
        s.find_allocation(inbound, inbound == region + layout.inbound()
                                       ? layout.inbound_bytes()
                                       : layout.inbound_bytes_elsewhere()) == s.allocations.end()) {
      s.fault = CUDA_ERROR_ILLEGAL_ADDRESS;
      return CUDA_SUCCESS;  // launches are asynchronous: the error comes later
    }
    const gyre::ActorSet& actors = *reinterpret_cast<Function*>(function)->actors;
    (*at)->kernel = std::make_unique<Kernel>();
    Kernel& kernel = *(*at)->kernel;
    kernel.context = (*at)->context;
    for (uint32_t worker = 0; worker < layout.workers; ++worker) {
      kernel.workers.push_back(actors.make_cpu_worker(
          gyre::Bridge::of(reinterpret_cast<void*>(region), reinterpret_cast<void*>(inbound), layout, worker),
          memory.of_worker(worker), gyre::WaitPolicy::polite));
    }
    kernel.running = layout.workers;
    for (const auto& worker : kernel.workers) {
      kernel.threads.emplace_back([&s, &kernel, worker = worker.get()] {
        work(s, *worker);
        --kernel.running;
      });
    }
    return CUDA_SUCCESS;
  }
  static void work(FakeDriver::State& s, gyre::CpuWorker& worker) {
    if (!worker.start()) return;
    gyre::Backoff backoff(gyre::WaitPolicy::polite);
    while (!s.dead) {
      if (s.hold) {
        ++s.held;
        while (s.hold && !s.dead) backoff.pause();
        --s.held;
        continue;
      }
      gyre::PollOutcome decision = gyre::PollOutcome::nothing;
      try {
        decision = worker.step();
      } catch (...) {
        s.fault = CUDA_ERROR_ILLEGAL_ADDRESS;
        s.dead = true;
        return;
      }
      if (decision == gyre::PollOutcome::stop) {
        worker.finish();
        return;
      }
      if (decision != gyre::PollOutcome::nothing) backoff.reset();
      backoff.pause();
    }
  }

  static CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig* config) {
    GYRE_FAKE_CALL(true);
    const unsigned cluster = config->numAttrs == 1 ? config->attrs[0].value.clusterDim.x : 1;
    *clusters = resident(int(config->blockDimX), config->sharedMemBytes) *
                device().attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] / int(cluster);
    return CUDA_SUCCESS;
  }
  static CUresult cuFuncGetParamInfo(CUfunction, size_t index, size_t* offset, size_t* bytes) {
    GYRE_FAKE_CALL(true);
    constexpr size_t sizes[] = {sizeof(CUdeviceptr), sizeof(CUdeviceptr), sizeof(gyre::RegionLayout),
                                sizeof(gyre::EngineMemory)};
    if (index >= std::size(sizes)) return CUDA_ERROR_INVALID_VALUE;
    if (bytes != nullptr) *bytes = sizes[index];
    if (offset != nullptr) *offset = 0;
    for (size_t i = 0; offset != nullptr && i < index; ++i) *offset += sizes[i];
    return CUDA_SUCCESS;
  }
#undef GYRE_FAKE_CALL
};

namespace {
// A function of the table that the fake does not have.
template <class Function>
struct Absent;
template <class... Arguments>
struct Absent<CUresult (*)(Arguments...)> {
  static CUresult call(Arguments...) { return CUDA_ERROR_NOT_SUPPORTED; }
};

// A template, so that it may ask what there is.
template <class Calls>
Driver table() {
  Driver driver;
#define GYRE_FAKE_ABSENT(name) driver.name = Absent<decltype(driver.name)>::call;
  GYRE_CUDA_FUNCTIONS(GYRE_FAKE_ABSENT)
#undef GYRE_FAKE_ABSENT
#define GYRE_FAKE(name) \
  if constexpr (requires { &Calls::name; }) driver.name = Calls::name;
  GYRE_CUDA_FUNCTIONS(GYRE_FAKE)
#undef GYRE_FAKE
  driver.cuOccupancyMaxActiveClusters = FakeCalls::cuOccupancyMaxActiveClusters;
  driver.cuCtxCreate = FakeCalls::cuCtxCreate;
  driver.cuFuncGetParamInfo = FakeCalls::cuFuncGetParamInfo;
  if (active.load()->device.has_mem_advise) driver.advise = FakeCalls::advise;
  return driver;
}

}  // namespace

FakeDriver::FakeDriver(std::vector<gyre::ActorSet> actors) : state_(std::make_unique<State>()) {
  state_->actors = std::move(actors);
  state_->owner = this;
  active = this;
  contexts_of_this_thread().clear();
  Driver::replace_loader(table<FakeCalls>);
  without_vulkan();
}

const std::array<unsigned char, 16>& FakeDriver::uuid() {
  static constexpr std::array<unsigned char, 16> uuid{'f', 'a', 'k', 'e', 1, 2,  3,  4,
                                                      5,   6,   7,   8,   9, 10, 11, 12};
  return uuid;
}

void FakeDriver::without_vulkan() {
#if defined(GYRE_WITH_VULKAN)
  gyre::cuda::Vulkan::replace_loader([]() -> gyre::cuda::Vulkan {
    throw gyre::EngineUnavailable("loading the Vulkan loader: the fake driver comes without one");
  });
#endif
}

CUstream FakeDriver::make_stream_for_program() {
  static std::atomic<uintptr_t> names{0x5000};
  const std::lock_guard lock(state_->mutex);
  const auto stream = reinterpret_cast<CUstream>(names.fetch_add(16));
  state_->program_streams[stream];
  return stream;
}

void FakeDriver::give_work(CUstream stream, std::function<void()> work, bool at_once) {
  const std::lock_guard lock(state_->mutex);
  ProgramStream& on = state_->program_streams[stream];
  if (at_once) return on.items.push_back({[] { return true; }, std::move(work)});
  on.items.push_back({[&on, number = ++on.given] { return on.allowed >= number; }, std::move(work)});
}

void FakeDriver::finish_work(CUstream stream) {
  const std::lock_guard lock(state_->mutex);
  ProgramStream& on = state_->program_streams[stream];
  ++on.allowed;
  on.advance();
}

void FakeDriver::fail_stream(CUstream stream, CUresult code) {
  const std::lock_guard lock(state_->mutex);
  state_->program_streams[stream].failure = code;
}

void FakeDriver::capture(bool yes) {
  const std::lock_guard lock(state_->mutex);
  state_->captures = yes;
}

bool FakeDriver::stream_is_done(CUstream stream) {
  const std::lock_guard lock(state_->mutex);
  state_->program_streams[stream].advance();
  return state_->program_streams[stream].items.empty();
}

size_t FakeDriver::recorded_events() const {
  const std::lock_guard lock(state_->mutex);
  return state_->recorded;
}

FakeDriver::~FakeDriver() {
  Driver::replace_loader({});
#if defined(GYRE_WITH_VULKAN)
  gyre::cuda::Vulkan::replace_loader({});
#endif
  state_->dead = true;
  std::vector<std::unique_ptr<Kernel>> kernels = std::move(state_->orphans);
  for (const auto& stream : state_->streams) {
    if (stream->kernel) kernels.push_back(std::move(stream->kernel));
  }
  for (const auto& kernel : kernels) {
    for (std::thread& thread : kernel->threads) thread.join();
  }
  for (const auto& [address, allocation] : state_->allocations) give_back(address, allocation);
  for (const auto& [address, allocation] : state_->retired) give_back(address, allocation);
  for (const auto& [module, functions] : state_->modules) delete module;
  for (const auto& [handle, file] : state_->handles) {
    if (file >= 0) close(file);
  }
  gyre::cuda::forget_contexts();
  active = nullptr;
}

FakeDriver::Live FakeDriver::live() const {
  const std::lock_guard lock(state_->mutex);
  Live live;
  live.allocations = state_->allocations.size();
  live.streams = state_->streams.size();
  live.events = state_->events.size();
  live.modules = state_->modules.size();
  live.retains = state_->retains;
  live.imports = state_->imports.size() + state_->handles.size() + state_->reservations.size();
  live.contexts = state_->own_contexts.size();
  for (const auto& [address, allocation] : state_->allocations) live.bytes += allocation.bytes;
  for (const auto& stream : state_->streams) {
    if (stream->kernel) live.workers += stream->kernel->running;
  }
  for (const auto& kernel : state_->orphans) live.workers += kernel->running;
  return live;
}

std::string FakeDriver::Live::text() const {
  return std::to_string(allocations) + " allocations of " + std::to_string(bytes) + " bytes, " +
         std::to_string(streams) + " streams, " + std::to_string(events) + " events, " +
         std::to_string(modules) + " modules, " + std::to_string(retains) + " retains, " +
         std::to_string(contexts) + " own contexts, " + std::to_string(imports) + " imports, " +
         std::to_string(workers) + " workers";
}

size_t FakeDriver::default_stream_waits() const {
  const std::lock_guard lock(state_->mutex);
  return state_->default_stream_waits;
}

size_t FakeDriver::context_waits() const {
  const std::lock_guard lock(state_->mutex);
  return state_->context_waits;
}

void FakeDriver::make_context_for_program() {
  const std::lock_guard lock(state_->mutex);
  state_->initialised = true;
  ++state_->retains;
}

void FakeDriver::end_context_of_program() {
  const std::lock_guard lock(state_->mutex);
  --state_->retains;
}

uintptr_t FakeDriver::allocate_for_program(ProgramMemory kind, size_t bytes, int ordinal) {
  const std::lock_guard lock(state_->mutex);
  state_->initialised = true;
  Allocation about{};
  about.programs = true;
  about.bytes = bytes;
  about.kind = kind == ProgramMemory::managed  ? Kind::managed
               : kind == ProgramMemory::pinned ? Kind::pinned
                                               : Kind::device;
  about.pool = kind == ProgramMemory::pool;
  about.shareable = kind == ProgramMemory::mapped_shareable;
  about.virtual_memory = kind == ProgramMemory::mapped || about.shareable;
  if (about.virtual_memory) about.bytes = in_pages(bytes);  // cuMemCreate has a granularity
  about.ordinal = ordinal;
  about.id = ++state_->ids;
  about.context = state_->primary();
  ++state_->retains;
  void* const memory = std::aligned_alloc(4096, in_pages(bytes));
  std::memset(memory, 0, in_pages(bytes));
  state_->allocations[reinterpret_cast<uintptr_t>(memory)] = about;
  return reinterpret_cast<uintptr_t>(memory);
}

void FakeDriver::free_for_program(uintptr_t address) {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->allocations.find(address);
  if (at == state_->allocations.end() || !at->second.programs) {
    state_->note("freeing memory of the program that there is not");
    return;
  }
  give_back(at->first, at->second);
  state_->allocations.erase(at);
  --state_->retains;
}

bool FakeDriver::threads_take_signals() const { return state_->threads_take_signals; }

bool FakeDriver::in_call() { return this_thread_is_in_call; }

size_t FakeDriver::current_contexts() { return contexts_of_this_thread().size(); }

size_t FakeDriver::reclaimed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->reclaimed;
}

std::string FakeDriver::misuse() const {
  const std::lock_guard lock(state_->mutex);
  return state_->misuse;
}

void FakeDriver::fault(CUresult code) {
  state_->fault = code;
  state_->dead = true;
}

void FakeDriver::fault_at_launch(bool yes) {
  const std::lock_guard lock(state_->mutex);
  state_->fault_at_launch = yes;
}

void FakeDriver::hold(bool yes) {
  state_->hold = yes;
  while (yes && state_->held != live().workers) std::this_thread::yield();
}

}  // namespace gyre_test
