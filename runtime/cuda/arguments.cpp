#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/cuda/arguments.hpp>

#include <algorithm>

namespace gyre::cuda {

namespace {

// The bytes as 32-bit words, the last one padded.
std::string words_of(const std::byte* value, size_t size) {
  std::string text;
  for (size_t at = 0; at < size; at += sizeof(uint32_t)) {
    uint32_t word = 0;
    std::memcpy(&word, value + at, std::min(sizeof word, size - at));
    text += fmt::format("{}{:08x}", at == 0 ? "" : " ", word);
  }
  return text;
}

}  // namespace

void ArgumentBlock::append(std::string name, std::string type, const void* value, size_t size,
                           std::string shown) {
  auto copy = std::make_unique<std::byte[]>(size);
  std::memcpy(copy.get(), value, size);
  if (shown.empty()) shown = words_of(copy.get(), size);
  addresses_.push_back(copy.get());
  arguments_.push_back({std::move(name), std::move(type), size, std::move(copy), std::move(shown)});
}

void ArgumentBlock::push_pointer(std::string name, CUdeviceptr address, uint64_t bytes) {
  refer_to(name, address, bytes);
  append(std::move(name), "address", &address, sizeof address,
         fmt::format("{:#x}, {} bytes", address, bytes));
}

std::string ArgumentBlock::problem_of(const Driver& driver, const Pointer& pointer) {
  const auto& [name, address, bytes] = pointer;
  if (address == 0) {
    return bytes == 0 ? std::string() : fmt::format("null, where the kernel touches {} bytes", bytes);
  }
  CUdeviceptr base = 0;
  size_t size = 0;
  CUresult found = driver.cuMemGetAddressRange(&base, &size, address);
  if (found != CUDA_SUCCESS) {  // not every driver knows pinned and managed memory there
    void* start = nullptr;
    found = driver.cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address);
    if (found == CUDA_SUCCESS) {
      base = reinterpret_cast<CUdeviceptr>(start);
      found = driver.cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address);
    }
  }
  if (found != CUDA_SUCCESS && found != CUDA_ERROR_INVALID_VALUE && found != CUDA_ERROR_NOT_FOUND) {
    return fmt::format("asking which allocation {:#x} lies in: {}", address, driver.explain(found));
  }
  if (found != CUDA_SUCCESS || base == 0) {
    return fmt::format(
        "{:#x} lies in no live allocation (cuMemGetAddressRange, cuPointerGetAttribute); was it freed?",
        address);
  }
  // Without sums that could wrap.
  if (address < base || address - base > size || bytes > size - (address - base)) {
    return fmt::format(
        "the kernel touches {} bytes from {:#x}, and the allocation at {:#x} of {} bytes has {} from there",
        bytes, address, base, size, address >= base && address - base <= size ? size - (address - base) : 0);
  }
  return {};
}

void ArgumentBlock::check(const Driver& driver, CUfunction function, const std::string& kernel) const {
  std::string problems;
  for (const Pointer& pointer : pointers_) {
    if (const std::string problem = problem_of(driver, pointer); !problem.empty()) {
      problems += fmt::format("  {}: {}\n", pointer.name, problem);
    }
  }
  for (size_t n = 0; n < arguments_.size(); ++n) {
    const Argument& argument = arguments_[n];
    const auto wrong = [&](const std::string& what) {
      problems += fmt::format("  argument {}, {}: {}\n", n, argument.name, what);
    };
    if (driver.cuFuncGetParamInfo == nullptr) continue;
    size_t offset = 0, size = 0;
    const CUresult found = driver.cuFuncGetParamInfo(function, n, &offset, &size);
    if (found == CUDA_ERROR_INVALID_VALUE) {
      wrong(fmt::format("the kernel has no parameter {}", n));
    } else if (found != CUDA_SUCCESS) {
      wrong(fmt::format("asking for the kernel's parameter {}: {}", n, driver.explain(found)));
    } else if (size != argument.size) {
      wrong(fmt::format("{} is {} bytes, and the kernel's parameter is {} (cuFuncGetParamInfo)",
                        argument.type, argument.size, size));
    }
  }
  if (driver.cuFuncGetParamInfo != nullptr) {
    size_t offset = 0, size = 0;
    if (driver.cuFuncGetParamInfo(function, arguments_.size(), &offset, &size) == CUDA_SUCCESS) {
      problems +=
          fmt::format("  the kernel has more parameters than the {} arguments: one of {} bytes is next\n",
                      arguments_.size(), size);
    }
  }
  if (!problems.empty()) throw Error("passing arguments to " + kernel + ":\n" + problems);
}

std::vector<std::string> ArgumentBlock::describe() const {
  std::vector<std::string> described;
  for (size_t n = 0; n < arguments_.size(); ++n) {
    const Argument& argument = arguments_[n];
    described.push_back(fmt::format("{} {}: {}, {} bytes: {}", n, argument.name, argument.type, argument.size,
                                    argument.shown));
  }
  return described;
}

}  // namespace gyre::cuda
