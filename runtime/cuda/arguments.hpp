// The arguments of a kernel launch: typed values with storage of their own, checked against the kernel and
// against the memory they point to.
#pragma once

#include <gyre/bridge/cuda/driver.hpp>
#include <gyre/runtime/actor_set.hpp>

#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace gyre::cuda {

/// The driver takes the arguments of a launch as addresses of values. This owns the values; their addresses
/// do not change as more are pushed. Keep it until the kernel has ended. One thread's. Move-only.
class ArgumentBlock {
 public:
  ArgumentBlock() = default;
  ArgumentBlock(ArgumentBlock&&) noexcept = default;
  ArgumentBlock& operator=(ArgumentBlock&&) noexcept = default;

  /// Appends a copy of `value`, the kernel's next parameter. `shown`: the value as a log shows it; numbers
  /// are shown in decimal and others by their words where it is empty.
  template <class T>
  void push(std::string name, const T& value, std::string shown = {}) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                  "kernel parameters are plain values; addresses go through push_pointer");
    static_assert(alignof(T) <= alignof(std::max_align_t));
    if constexpr (std::is_integral_v<T>) {
      if (shown.empty()) shown = std::to_string(value);
    }
    append(std::move(name), std::string(type_name<T>()), &value, sizeof value, std::move(shown));
  }

  /// Appends an address in the device's address space, of `bytes` bytes that the kernel will touch. Null only
  /// with 0 bytes.
  void push_pointer(std::string name, CUdeviceptr address, uint64_t bytes);

  /// An address within a value that was pushed, of `bytes` bytes that the kernel will touch: checked as
  /// push_pointer's are.
  void refer_to(std::string name, CUdeviceptr address, uint64_t bytes) {
    pointers_.push_back({std::move(name), address, bytes});
  }

  /// Throws Error, with everything that is wrong at once, unless each pointer with its bytes lies within one
  /// live allocation, and the values have the number and sizes of the parameters of `function`, which
  /// `kernel` names (where the driver can tell: CUDA 12.4). The context must be current.
  void check(const Driver& driver, CUfunction function, const std::string& kernel) const;

  /// What cuLaunchKernel takes. Valid until the next push or the end of this.
  void** addresses() { return addresses_.data(); }
  size_t size() const { return arguments_.size(); }
  /// A line each: number, name, type, size and value.
  std::vector<std::string> describe() const;

 private:
  struct Argument {
    std::string name, type;
    size_t size;
    std::unique_ptr<std::byte[]> value;
    std::string shown;
  };
  struct Pointer {
    std::string name;
    CUdeviceptr address;
    uint64_t bytes;  // from the address on, that the kernel touches
  };

  void append(std::string name, std::string type, const void* value, size_t size, std::string shown);
  static std::string problem_of(const Driver& driver, const Pointer& pointer);

  std::vector<Argument> arguments_;
  std::vector<Pointer> pointers_;
  std::vector<void*> addresses_;
};

}  // namespace gyre::cuda
