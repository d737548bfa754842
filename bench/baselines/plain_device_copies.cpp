#include <fmt/format.h>
#include <gyre/bridge/cuda/pinned.hpp>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/memory/copy_threads.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <vector>

#include "baselines/cuda_kernel.hpp"
#include "baselines/launches.hpp"
#include "baselines/plain_copies.hpp"
#include "threads.hpp"

namespace gyre::bench {

namespace {

using Clock = std::chrono::steady_clock;

// A stream, and as much device memory and pinned memory as it copies.
class Line {
 public:
  Line(const CudaKernel& kernel, uint64_t bytes) : kernel_(kernel), pinned_(kernel.context(), bytes, bytes) {
    try {
      check(driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "creating a stream of copies");
      check(driver().cuMemAlloc(&device_, bytes), "allocating device memory");
    } catch (...) {
      free();
      throw;
    }
  }
  ~Line() { free(); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  char* pinned() { return static_cast<char*>(pinned_.host_address()); }
  void begin_in(const void* from, uint64_t bytes, uint64_t offset = 0) {
    check(driver().cuMemcpyHtoDAsync(device_ + offset, from, bytes, stream_), "copying to the device");
  }
  void begin_out(void* to, uint64_t bytes, uint64_t offset = 0) {
    check(driver().cuMemcpyDtoHAsync(to, device_ + offset, bytes, stream_), "copying from the device");
  }
  void wait() { check(driver().cuStreamSynchronize(stream_), "waiting for copies"); }

 private:
  const cuda::Driver& driver() const { return kernel_.driver(); }
  void check(CUresult result, const char* doing) const { kernel_.check(result, doing); }
  void free() {
    if (stream_ != nullptr) {
      driver().cuStreamSynchronize(stream_);
      driver().cuStreamDestroy(stream_);
    }
    if (device_ != 0) driver().cuMemFree(device_);
  }

  const CudaKernel& kernel_;
  cuda::PinnedRegion pinned_;
  CUstream stream_ = nullptr;
  CUdeviceptr device_ = 0;
};

class DeviceCopies final : public PlainCopies {
 public:
  DeviceCopies(int device, uint64_t bytes, uint32_t depth)
      : kernel_(device, compile_empty_kernel), bytes_(bytes), depth_(depth), from_(bytes), to_(bytes) {
    for (uint64_t i = 0; i < bytes; ++i) from_[i] = char(i * 31 + i / 4096);
    in_.emplace(kernel_, bytes);
    out_.emplace(kernel_, bytes);
    out_half_.emplace(kernel_, bytes);
    std::memcpy(in_->pinned(), from_.data(), bytes);
    for (Line* line : {&*out_, &*out_half_}) {
      line->begin_in(in_->pinned(), bytes);
      line->wait();
    }
  }

  double copies(Direction direction, HostMemory memory, uint64_t times) override {
    if (memory == HostMemory::pinned)
      return measured(direction, times,
                      [&](bool in) { in ? direct_in(in_->pinned()) : direct_out(out_->pinned()); });
    const double by_driver =
        measured(direction, times, [&](bool in) { in ? direct_in(from_.data()) : direct_out(to_.data()); });
    check_pageable(direction);
    const double staged = measured(direction, times, [&](bool in) { in ? staged_in() : staged_out(); });
    check_pageable(direction);
    return std::min(by_driver, staged);
  }

  double payloads(Direction direction, uint64_t times) override {
    const bool in = direction != Direction::out, out = direction != Direction::in;
    std::vector<std::unique_ptr<Line>> ins, outs;
    for (uint32_t i = 0; i < depth_; ++i) {
      if (in) ins.push_back(std::make_unique<Line>(kernel_, bytes_));
      if (!out) continue;
      outs.push_back(std::make_unique<Line>(kernel_, bytes_));
      outs.back()->begin_in(in_->pinned(), bytes_);
      outs.back()->wait();
    }
    std::fill(to_.begin(), to_.end(), char(0));
    const auto run = [&](uint64_t n) {
      for (uint64_t k = 0; k < n + depth_; ++k) {
        const uint64_t slot = k % depth_;
        if (k >= depth_) {
          if (in) ins[slot]->wait();
          if (out) {
            outs[slot]->wait();
            threads_->copy(to_.data(), outs[slot]->pinned(), bytes_);
          }
        }
        if (k >= n) continue;
        if (in) {
          threads_->copy(ins[slot]->pinned(), from_.data(), bytes_);
          ins[slot]->begin_in(ins[slot]->pinned(), bytes_);
        }
        if (out) outs[slot]->begin_out(outs[slot]->pinned(), bytes_);
      }
    };
    run(depth_);
    const auto begin = Clock::now();
    run(times);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (out) expect_equal(to_.data(), from_.data(), bytes_, "copying payloads from the device");
    if (in) {
      ins[0]->begin_out(ins[0]->pinned(), bytes_);
      ins[0]->wait();
      expect_equal(ins[0]->pinned(), from_.data(), bytes_, "copying payloads to the device");
    }
    return seconds;
  }

 private:
  // A copy through pinned memory goes in so many parts, so that filling one overlaps copying another.
  uint64_t part_bytes() const { return std::clamp<uint64_t>(bytes_ / 4, 128 << 10, 4 << 20); }

  template <class Copy>
  double measured(Direction direction, uint64_t times, Copy&& copy) {
    const auto work = [&](uint32_t t, uint64_t n) {
      const cuda::Context::Current current(kernel_.context());
      const bool in = direction == Direction::in || (direction == Direction::both && t == 0);
      for (uint64_t i = 0; i < n; ++i) copy(in);
    };
    std::fill(to_.begin(), to_.end(), char(0));
    return run_together(
        direction == Direction::both ? 2 : 1, [&](uint32_t t) { work(t, 1); },
        [&](uint32_t t) { work(t, times); });
  }
  void check_pageable(Direction direction) {
    if (direction != Direction::in) expect_equal(to_.data(), from_.data(), bytes_, "copying from the device");
    if (direction == Direction::out) return;
    std::vector<char> there(bytes_);
    in_->begin_out(there.data(), bytes_);
    in_->wait();
    expect_equal(there.data(), from_.data(), bytes_, "copying to the device");
  }
  void direct_in(const void* from) {
    in_->begin_in(from, bytes_);
    in_->wait();
  }
  void direct_out(void* to) {
    out_->begin_out(to, bytes_);
    out_->wait();
  }
  // Each part has its own place in the pinned block, so filling one waits for nothing.
  void staged_in() {
    const uint64_t part = part_bytes();
    for (uint64_t done = 0; done < bytes_; done += part) {
      const uint64_t bytes = std::min(part, bytes_ - done);
      threads_->copy(in_->pinned() + done, from_.data() + done, bytes);
      in_->begin_in(in_->pinned() + done, bytes, done);
    }
    in_->wait();
  }
  void staged_out() {
    const uint64_t part = part_bytes();
    Line* const lines[] = {&*out_, &*out_half_};
    const auto take = [&](uint64_t done, uint64_t n) {
      lines[n % 2]->wait();
      threads_->copy(to_.data() + done, lines[n % 2]->pinned() + done, std::min(part, bytes_ - done));
    };
    uint64_t done = 0, n = 0;
    for (; done < bytes_; done += part, ++n) {
      lines[n % 2]->begin_out(lines[n % 2]->pinned() + done, std::min(part, bytes_ - done), done);
      if (n != 0) take(done - part, n - 1);
    }
    take(done - part, n - 1);
  }

  CudaKernel kernel_;
  const std::shared_ptr<gyre::detail::CopyThreads> threads_ = gyre::detail::CopyThreads::shared();
  const uint64_t bytes_;
  const uint32_t depth_;
  std::vector<char> from_, to_;
  std::optional<Line> in_, out_, out_half_;
};

}  // namespace

std::unique_ptr<PlainCopies> plain_copies_of_device(int device, uint64_t bytes, uint32_t depth) {
  return std::make_unique<DeviceCopies>(device, bytes, depth);
}

}  // namespace gyre::bench
