#include <fmt/format.h>
#include <sys/mman.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/core/backoff.hpp>
#include <gyre/runtime/core/deadline.hpp>
#include <gyre/runtime/cuda/program_context.hpp>
#include <gyre/runtime/cuda/program_streams.hpp>

#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

namespace gyre::cuda {

namespace {

std::string text_of(void* stream) { return fmt::format("{:#x}", reinterpret_cast<uintptr_t>(stream)); }

// Words that streams wait for, in pages that are registered with the program's context once. They stay to the
// end of the process: a captured graph may wait for a word whenever it is launched.
class StreamWords {
 public:
  struct Word {
    std::atomic<uint32_t>* host;
    CUdeviceptr device;
    uint32_t awaited;  // the stream goes on once the word is as large, or larger
  };

  // With the program's context current. Throws Error.
  Word take(const Driver& driver) {
    const std::lock_guard lock(mutex_);
    for (auto free = free_.rbegin(); free != free_.rend(); ++free) {
      const CUdeviceptr page = address_of_page(driver, page_of(*free));
      if (page == 0) continue;
      const Word word = word_at(*free, page);
      free_.erase(std::next(free).base());
      return word;
    }
    const CUdeviceptr page = add_page(driver);
    const Word word = word_at(free_.back(), page);
    free_.pop_back();
    return word;
  }

  // Lets the streams go on that wait for it. The next wait is for a larger value, compared cyclically, so
  // that whoever waits for this one goes on then too.
  void release(const Word& word) noexcept {
    // After what the reply says was done.
    word.host->store(word.awaited, std::memory_order_release);
    const std::lock_guard lock(mutex_);
    free_.push_back(word.host);  // allocates nothing: see add_page()
  }

 private:
  static constexpr size_t page_bytes = 4096;
  static constexpr size_t words = page_bytes / sizeof(uint32_t);

  static char* page_of(std::atomic<uint32_t>* word) {
    return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(word) / page_bytes * page_bytes);
  }
  static Word word_at(std::atomic<uint32_t>* word, CUdeviceptr page) {
    const auto offset = CUdeviceptr(reinterpret_cast<char*>(word) - page_of(word));
    return {word, page + offset, word->load(std::memory_order_relaxed) + 1};
  }

  // Registers the page anew where the context that had it was ended. 0: it cannot be used here.
  static CUdeviceptr address_of_page(const Driver& driver, char* page) {
    CUdeviceptr address = 0;
    if (driver.cuMemHostGetDevicePointer(&address, page, 0) == CUDA_SUCCESS) return address;
    if (register_page(driver, page) != CUDA_SUCCESS ||
        driver.cuMemHostGetDevicePointer(&address, page, 0) != CUDA_SUCCESS) {
      return 0;
    }
    return address;
  }
  static CUresult register_page(const Driver& driver, char* page) {
    return driver.cuMemHostRegister(page, page_bytes,
                                    CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  }

  CUdeviceptr add_page(const Driver& driver) {
    free_.reserve((++pages_) * words);
    // Shared: fork() would give pages that are written later to one of both processes alone.
    void* const memory = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    auto* const page = static_cast<char*>(memory);
    CUdeviceptr address = 0;
    CUresult result = register_page(driver, page);
    if (result == CUDA_SUCCESS) result = driver.cuMemHostGetDevicePointer(&address, page, 0);
    if (result != CUDA_SUCCESS) {
      munmap(page, page_bytes);
      driver.check(result, "registering a page of words that CUDA streams wait for (cuMemHostRegister)");
    }
    auto* const first = reinterpret_cast<std::atomic<uint32_t>*>(page);
    for (size_t n = words; n > 0; --n) free_.push_back(first + n - 1);
    return address;
  }

  std::mutex mutex_;  // of what follows
  std::vector<std::atomic<uint32_t>*> free_;
  size_t pages_ = 0;
};

// Never destroyed: holds may outlive the static objects. Made when the library is loaded, as a child of
// fork() would wait for ever for a function's static that another thread of its parent was making.
StreamWords& stream_words = *new StreamWords;

class WordHold final : public StreamHold {
 public:
  explicit WordHold(const StreamWords::Word& word) : word_(word) {}
  ~WordHold() override {
    if (!fork_.forked()) stream_words.release(word_);  // else the parent's stream would go on
  }

 private:
  const ForkGuard fork_;
  const StreamWords::Word word_;
};

// An event that ends with its scope.
class Event {
 public:
  explicit Event(const Driver& driver) : driver_(driver) {
    driver.check(driver.cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING),
                 "making an event to wait for a stream by");
  }
  ~Event() { driver_.check_or_log(driver_.cuEventDestroy(event_), "ending an event (cuEventDestroy)"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  CUevent get() const { return event_; }

 private:
  const Driver& driver_;
  CUevent event_ = nullptr;
};

}  // namespace

void CudaProgramStreams::wait_for(void* stream, std::chrono::nanoseconds timeout) {
  const std::string doing = "waiting for the work of stream " + text_of(stream);
  const std::shared_ptr<const Driver> driver = driver_();
  const MaybeCurrent current(*driver, require_program_context(*driver, device_(), doing.c_str()));
  const auto asked = static_cast<CUstream>(stream);
  CUresult result = driver->cuStreamQuery(asked);
  if (result == CUDA_ERROR_NOT_READY) {
    // Not cuStreamSynchronize, which has no timeout, and waits for what other threads give the stream too.
    const Event event(*driver);
    driver->check(driver->cuEventRecord(event.get(), asked), doing);
    const int64_t deadline_ns = detail::after(detail::host_now_ns(), timeout);
    Backoff backoff(WaitPolicy::polite);
    while ((result = driver->cuEventQuery(event.get())) == CUDA_ERROR_NOT_READY) {
      if (backoff.should_read_clock() && detail::host_now_ns() >= deadline_ns) {
        throw Error(fmt::format("{}: it is not done after {} ms; give the ask a longer timeout", doing,
                                std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count()),
                    Status::timed_out);
      }
      backoff.pause();
    }
  }
  driver->check(result, doing);
}

std::unique_ptr<StreamHold> CudaProgramStreams::hold(void* stream) {
  const std::string doing = "making stream " + text_of(stream) + " wait for a reply";
  const std::shared_ptr<const Driver> driver = driver_();
  const MaybeCurrent current(*driver, require_program_context(*driver, device_(), doing.c_str()));
  const StreamWords::Word word = stream_words.take(*driver);
  std::unique_ptr<StreamHold> hold;
  try {
    hold = std::make_unique<WordHold>(word);
  } catch (...) {
    stream_words.release(word);
    throw;
  }
  driver->check(driver->cuStreamWaitValue32(static_cast<CUstream>(stream), word.device, word.awaited,
                                            CU_STREAM_WAIT_VALUE_GEQ),
                doing);
  return hold;
}

}  // namespace gyre::cuda
