// A program that uses its device beside Gyre, on the fake driver.
#pragma once

#include <gyre/gyre.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/core/deadline.hpp>
#include <gyre/runtime/memory/release_later.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "support/fake_driver.hpp"
#include "support/fake_engine_processes.hpp"

namespace gyre_test {

using namespace gyre;
using messages::Operation;
using messages::VectorAddRequest;
using ProgramMemory = FakeDriver::ProgramMemory;

inline bool within_a_minute(const auto& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Exports are released by a thread of the runtime: waits for it.
inline bool exports_are_released() {
  return detail::wait_for_releases(detail::after(detail::host_now_ns(), std::chrono::minutes(1)));
}

/// A program with memory of its own on the device, which it frees when the owner is released. Its buffers are
/// vectors that VectorAdd adds.
class Program {
 public:
  explicit Program(Isolation isolation) {
    if (isolation == Isolation::process) processes.emplace(GYRE_TEST_FAKE_ENGINE);
    options.engine = EngineKind::cuda;
    options.isolation = isolation;
    options.slots = 8;
  }
  ~Program() { (void)exports_are_released(); }  // they use the driver
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Runtime launch() const { return Runtime::launch(builtin_actors(), options); }

  float* allocate(size_t elements, ProgramMemory kind = ProgramMemory::malloc, int ordinal = 0) {
    auto* const there =
        reinterpret_cast<float*>(fake.allocate_for_program(kind, elements * sizeof(float), ordinal));
    for (size_t i = 0; i < elements; ++i) there[i] = float(i);
    ++owners;
    return there;
  }
  std::shared_ptr<void> owner(float* there) {
    return {there, [this](void* memory) {
              fake.free_for_program(reinterpret_cast<uintptr_t>(memory));
              --owners;
              ++released;
            }};
  }

  FakeDriver fake{{builtin_actors()}};
  std::optional<FakeEngineProcesses> processes;
  Options options;
  std::atomic<int> owners{0}, released{0};
};

/// result = a + b
inline auto adding(const Buffer<float>& a, const Buffer<float>& b, const Buffer<float>& result) {
  return [&, length = result.size()](VectorAddRequest::Builder request) {
    request.setOperation(Operation::ADD);
    request.setLength(length);
    a.set(request.initABuffer());
    b.set(request.initBBuffer());
    result.set(request.initResultBuffer());
  };
}
inline auto add(Runtime& runtime, const Buffer<float>& a, const Buffer<float>& b,
                const Buffer<float>& result) {
  auto reply =
      runtime.client().ask<VectorAddRequest>(Address<actors::VectorAdd>{}, adding(a, b, result)).get();
  Memory::fence();  // a program reads device memory by CUDA's calls; tests read the fake's at once
  return reply;
}

inline std::string refusal(const auto& use) {
  try {
    use();
  } catch (const Error& error) {
    return error.what();
  }
  return "it was taken";
}

inline Status status_of(const auto& use) {
  try {
    use();
  } catch (const Error& error) {
    return error.status();
  }
  return Status::ok;
}

}  // namespace gyre_test
