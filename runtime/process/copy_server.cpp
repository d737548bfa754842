#include <fmt/format.h>
#include <pthread.h>
#include <gyre/bridge/cuda/pinned.hpp>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/core/deadline.hpp>
#include <gyre/runtime/process/copy_server.hpp>
#include <gyre/runtime/system/futex.hpp>

#include <algorithm>
#include <climits>
#include <cstring>

namespace gyre::process {

namespace {
constexpr int64_t sleep_ns = 1'000'000'000;
// How long copies are under way until the driver is asked whether they fail.
constexpr int64_t check_ns = 1'000'000;
}  // namespace

CopyServer::CopyServer(const cuda::Context& context, StagingBlock& block, CUdeviceptr address,
                       CopyDirection direction, std::mutex& memory, PartOf part_of)
    : context_(context),
      driver_(context.driver()),
      block_(block),
      lane_(block.lanes[uint32_t(direction)]),
      done_word_(address + (reinterpret_cast<char*>(&lane_.done) - reinterpret_cast<char*>(&block))),
      direction_(direction),
      memory_(memory),
      part_of_(std::move(part_of)) {
  const cuda::Context::Current current(context_);
  try {
    driver_.check(driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "creating a stream of copies");
    thread_ = std::thread([this] { serve(); });
  } catch (...) {
    free();
    throw;
  }
}

CopyServer::~CopyServer() {
  ending_.store(true, std::memory_order_seq_cst);  // pairs with the load in sleep()
  detail::futex_wake_shared(detail::whole(lane_.asked));
  thread_.join();
  const cuda::Context::Current current(context_, std::nothrow);
  free();
}

// Where the context is dead the calls fail, and all went with it.
void CopyServer::free() noexcept {
  if (stream_ != nullptr)
    driver_.check_or_log(driver_.cuStreamDestroy(stream_), "ending a stream of copies (cuStreamDestroy)");
}

void CopyServer::serve() noexcept {
  pthread_setname_np(pthread_self(), direction_ == CopyDirection::in ? "gyre-copy-in" : "gyre-copy-out");
  const cuda::Context::Current current(context_, std::nothrow);
  int64_t worked_at_ns = 0, checked_at_ns = 0;
  while (!ending_.load(std::memory_order_relaxed)) {
    bool worked = false;
    // Pairs with the program's store: the command is seen.
    if (lane_.asked.load(std::memory_order_seq_cst) != taken_ && taken_ - done_ < CopyLane::slots) {
      begin(taken_++);
      worked = true;
    }
    worked |= see_done();
    if (worked) {
      checked_at_ns = worked_at_ns = detail::host_now_ns();
      continue;
    }
    __builtin_ia32_pause();
    const int64_t now = detail::host_now_ns();
    if (done_ != taken_) {
      if (now - checked_at_ns < check_ns) continue;
      checked_at_ns = now;
      const CUresult state = driver_.cuStreamQuery(stream_);
      if (state != CUDA_SUCCESS && state != CUDA_ERROR_NOT_READY) end_all(state);
    } else if (now - worked_at_ns >= copy_spin_ns) {
      sleep();
    }
  }
  if (done_ != taken_)
    driver_.check_or_log(driver_.cuStreamSynchronize(stream_), "waiting for copies (cuStreamSynchronize)");
}

// Begins a copy, behind which the stream itself counts it. One that is refused is counted in its turn too.
void CopyServer::begin(uint32_t number) noexcept {
  try {
    // Copied first: the program may change it at any time.
    CopyCommand command;
    std::memcpy(&command, &lane_.slot(number).command, sizeof command);
    copy(command);
  } catch (const std::exception& error) {
    refuse(number, error.what());
  }
  if (driver_.cuStreamWriteValue32(stream_, done_word_, number + 1, CU_STREAM_WRITE_VALUE_DEFAULT) !=
      CUDA_SUCCESS) {
    end_all(driver_.cuStreamSynchronize(stream_));
  }
}

// Returns true if copies have ended since the last call. Wakes the program's threads.
bool CopyServer::see_done() noexcept {
  // Before the load of program_sleeps, as the program counts a sleeper before it loads `done`: one side sees
  // the other's store.
  const uint32_t done = lane_.done.load(std::memory_order_seq_cst);
  // The program may have written anything there.
  if (done == done_ || done - done_ > taken_ - done_) return false;
  done_ = done;
  if (lane_.program_sleeps.load(std::memory_order_seq_cst) != 0)
    detail::futex_wake_shared(detail::whole(lane_.done), INT_MAX);
  return true;
}

// Counts all that is under way, once the stream counts nothing more.
// @param result  of the stream: unless it is CUDA_SUCCESS, they are refused
void CopyServer::end_all(CUresult result) noexcept {
  see_done();
  try {
    driver_.check(result, direction_ == CopyDirection::in ? "writing a buffer" : "reading a buffer");
  } catch (const std::exception& error) {
    for (uint32_t number = done_; number != taken_; ++number) refuse(number, error.what());
  }
  lane_.done.store(taken_, std::memory_order_seq_cst);
}

void CopyServer::copy(const CopyCommand& command) {
  const bool in = direction_ == CopyDirection::in;
  const char* const doing = in ? "writing" : "reading";
  const std::lock_guard lock(memory_);
  const MemoryBlock device = part_of_(MemoryKind::device, doing, command.device, command.bytes);
  char* host = nullptr;
  if (command.pinned != 0) {
    host = static_cast<char*>(part_of_(MemoryKind::pinned, doing, command.pinned, command.bytes).host);
  } else if (command.staged <= StagingBlock::lane_bytes &&
             command.bytes <= StagingBlock::lane_bytes - command.staged) {
    host = block_.memory[uint32_t(direction_)].data() + command.staged;
  } else {
    throw Error(
        fmt::format("{} a buffer for a program: {} bytes from byte {} of the staging memory on, which "
                    "has {}",
                    doing, command.bytes, command.staged, StagingBlock::lane_bytes));
  }
  driver_.check(in ? driver_.cuMemcpyHtoDAsync(device.address, host, command.bytes, stream_)
                   : driver_.cuMemcpyDtoHAsync(host, device.address, command.bytes, stream_),
                in ? "writing a buffer" : "reading a buffer");
}

void CopyServer::refuse(uint32_t number, const char* why) noexcept {
  CopyLane::Slot& slot = lane_.slot(number);
  const size_t length = std::min(std::strlen(why), CopyLane::most_text - 1);
  std::memcpy(slot.why.data(), why, length);
  slot.why[length] = '\0';
  slot.refused.store(1, std::memory_order_relaxed);
}

void CopyServer::sleep() noexcept {
  lane_.engine_sleeps.store(1, std::memory_order_seq_cst);
  if (!ending_.load(std::memory_order_seq_cst))
    detail::futex_wait_shared(detail::whole(lane_.asked), taken_, detail::host_now_ns() + sleep_ns);
  lane_.engine_sleeps.store(0, std::memory_order_relaxed);
}

CopyService::Staging::Staging(const cuda::Context& context)
    : context(context), memory("gyre-staging", sizeof(StagingBlock), sizeof(StagingBlock)) {
  const cuda::Context::Current current(context);
  address = cuda::lock_shared(context.driver(), memory, "copies of buffers");
}

CopyService::Staging::~Staging() {
  if (leaked) {
    memory.leak();
    return;
  }
  const cuda::Context::Current current(context, std::nothrow);
  const cuda::Driver& driver = context.driver();
  driver.check_or_log(driver.cuMemHostUnregister(memory.address()),
                      "unlocking the copies' staging block (cuMemHostUnregister)");
}

CopyService::CopyService(const cuda::Context& context, std::mutex& memory, const CopyServer::PartOf& part_of)
    : staging_(context),
      in_(context, staging_.block(), staging_.address, CopyDirection::in, memory, part_of),
      out_(context, staging_.block(), staging_.address, CopyDirection::out, memory, part_of) {}

}  // namespace gyre::process
