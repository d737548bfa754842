// Memory that two processes map: a region, a buffer, and what an engine process says by plain stores.
#pragma once

#include <gyre/bridge/descriptor.hpp>
#include <gyre/bridge/fork.hpp>

#include <cstddef>

namespace gyre {

/// Owns a mapping of a memfd, and its descriptor. The file is close-on-exec and sealed: nobody can resize it
/// and so take pages from the other process. A child of fork() has no such mapping. Move-only.
class SharedMemory {
 public:
  /// Makes an object without memory.
  SharedMemory() = default;
  /// Makes zeroed memory of at least `bytes`, in whole pages.
  /// @param name     shown in /proc/PID/maps, at most 200 characters
  /// @param touched  bytes at the start whose pages are made at once; the others are at their first access
  /// @throws Error  if the system has no memory or no descriptor left
  SharedMemory(const char* name, size_t bytes, size_t touched);
  /// Maps the first `bytes` of memory that another process made.
  /// @throws Error  if the file is smaller or is not sealed
  SharedMemory(Descriptor file, size_t bytes);
  SharedMemory(SharedMemory&& other) noexcept
      : fork_(other.fork_),
        file_(std::move(other.file_)),
        address_(std::exchange(other.address_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    if (this != &other) {
      unmap();
      fork_ = other.fork_;
      file_ = std::move(other.file_);
      address_ = std::exchange(other.address_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
  }
  ~SharedMemory() { unmap(); }

  void* address() const { return address_; }
  /// Returns the mapped bytes, a multiple of 4096.
  size_t bytes() const { return bytes_; }
  int descriptor() const { return file_.get(); }
  explicit operator bool() const { return address_ != nullptr; }
  /// Leaves the memory mapped for good: another still writes to it.
  void leak() { address_ = nullptr; }

 private:
  void map(size_t bytes, const char* doing);
  void unmap() noexcept;

  ForkGuard fork_;
  Descriptor file_;
  void* address_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace gyre
