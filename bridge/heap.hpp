// Plain memory for a region whose engine runs on the CPU.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace gyre {

/// Owns `bytes` of page-aligned memory, the first `zeroed_bytes` of them zeroed. Move-only. Throws
/// std::bad_alloc.
class HeapRegion {
 public:
  HeapRegion(size_t bytes, size_t zeroed_bytes)
      : memory_(std::aligned_alloc(page, (bytes + page - 1) / page * page)) {
    if (!memory_) throw std::bad_alloc();
    std::memset(memory_.get(), 0, zeroed_bytes);
  }
  void* address() const { return memory_.get(); }
  /// Gives the memory up without freeing it: a worker may still write to it.
  void leak() { (void)memory_.release(); }

 private:
  static constexpr size_t page = 4096;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
};

}  // namespace gyre
