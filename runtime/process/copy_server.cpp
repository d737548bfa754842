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
}

CopyServer::CopyServer(const cuda::Context& context, StagingBlock& block, CopyDirection direction,
                       std::mutex& memory, PartOf part_of)
    : context_(context),
      driver_(context.driver()),
      block_(block),
      lane_(block.lanes[uint32_t(direction)]),
      direction_(direction),
      memory_(memory),
      part_of_(std::move(part_of)) {
  const cuda::Context::Current current(context_);
  try {
    driver_.check(driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "creating a stream of copies");
    for (CUevent& end : ends_)
      driver_.check(driver_.cuEventCreate(&end, CU_EVENT_DISABLE_TIMING), "creating an event of copies");
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
  for (const CUevent end : ends_) {
    if (end != nullptr)
      driver_.check_or_log(driver_.cuEventDestroy(end), "ending an event of copies (cuEventDestroy)");
  }
  if (stream_ != nullptr)
    driver_.check_or_log(driver_.cuStreamDestroy(stream_), "ending a stream of copies (cuStreamDestroy)");
}

void CopyServer::serve() noexcept {
  pthread_setname_np(pthread_self(), direction_ == CopyDirection::in ? "gyre-copy-in" : "gyre-copy-out");
  const cuda::Context::Current current(context_, std::nothrow);
  uint32_t taken = 0, done = 0;
  int64_t spin_until_ns = 0;
  while (!ending_.load(std::memory_order_relaxed)) {
    bool worked = false;
    // Pairs with the program's store: the command is seen.
    if (lane_.asked.load(std::memory_order_seq_cst) != taken && taken - done < CopyLane::slots) {
      begin(taken++);
      worked = true;
    }
    if (done != taken && ended(done)) {
      count_done(++done);
      worked = true;
    }
    if (worked) {
      spin_until_ns = detail::host_now_ns() + copy_spin_ns;
    } else if (done != taken) {
      // The driver's lock is left to the other direction's thread.
      for (int i = 0; i < 4; ++i) __builtin_ia32_pause();
    } else if (detail::host_now_ns() >= spin_until_ns) {
      sleep(taken);
    }
  }
  if (done != taken)
    driver_.check_or_log(driver_.cuStreamSynchronize(stream_), "waiting for copies (cuStreamSynchronize)");
}

void CopyServer::begin(uint32_t number) noexcept {
  const uint32_t slot = number % CopyLane::slots;
  begun_[slot] = false;
  try {
    // Copied first: the program may change it at any time.
    CopyCommand command;
    std::memcpy(&command, &lane_.slot(number).command, sizeof command);
    copy(command, ends_[slot]);
    begun_[slot] = true;
  } catch (const std::exception& error) {
    refuse(number, error.what());
  }
}

void CopyServer::copy(const CopyCommand& command, CUevent end) {
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
  driver_.check(driver_.cuEventRecord(end, stream_), "marking the end of a copy");
}

bool CopyServer::ended(uint32_t number) noexcept {
  const uint32_t slot = number % CopyLane::slots;
  if (!begun_[slot]) return true;
  const CUresult result = driver_.cuEventQuery(ends_[slot]);
  if (result == CUDA_ERROR_NOT_READY) return false;
  if (result != CUDA_SUCCESS) {
    try {
      driver_.check(result, direction_ == CopyDirection::in ? "writing a buffer" : "reading a buffer");
    } catch (const std::exception& error) {
      refuse(number, error.what());
    }
  }
  return true;
}

void CopyServer::refuse(uint32_t number, const char* why) noexcept {
  CopyLane::Slot& slot = lane_.slot(number);
  const size_t length = std::min(std::strlen(why), CopyLane::most_text - 1);
  std::memcpy(slot.why.data(), why, length);
  slot.why[length] = '\0';
  slot.refused.store(1, std::memory_order_relaxed);
}

void CopyServer::count_done(uint32_t done) noexcept {
  // Pairs with the program's load of it. Before the load of program_sleeps: one side sees the other's store.
  lane_.done.store(done, std::memory_order_seq_cst);
  if (lane_.program_sleeps.load(std::memory_order_seq_cst) != 0)
    detail::futex_wake_shared(detail::whole(lane_.done), INT_MAX);
}

void CopyServer::sleep(uint32_t taken) noexcept {
  lane_.engine_sleeps.store(1, std::memory_order_seq_cst);
  if (!ending_.load(std::memory_order_seq_cst))
    detail::futex_wait_shared(detail::whole(lane_.asked), taken, detail::host_now_ns() + sleep_ns);
  lane_.engine_sleeps.store(0, std::memory_order_relaxed);
}

CopyService::Staging::Staging(const cuda::Context& context)
    : context(context), memory("gyre-staging", sizeof(StagingBlock), sizeof(StagingBlock)) {
  const cuda::Context::Current current(context);
  (void)cuda::lock_shared(context.driver(), memory, "copies of buffers");
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
      in_(context, staging_.block(), CopyDirection::in, memory, part_of),
      out_(context, staging_.block(), CopyDirection::out, memory, part_of) {}

}  // namespace gyre::process
