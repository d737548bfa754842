// Objects that each thread has one of, there whenever the thread runs code.
#pragma once

#include <cstddef>
#include <new>

namespace gyre::detail {

/// What is to be done when a thread ends. The thread's own, in constant-initialised thread_local memory.
struct AtThreadEnd {
  void (*run)(void* object) = nullptr;
  void* object = nullptr;
  AtThreadEnd* next = nullptr;
};
/// Calls ending.run(ending.object) once, when the calling thread ends: after the destructors of its
/// thread_local objects. In the thread that ends the process, never. Lock-free, allocates nothing. Where the
/// process has no thread-specific key left (PTHREAD_KEYS_MAX) it is never called.
void at_thread_end(AtThreadEnd& ending) noexcept;

/// A T for each thread, made at the thread's first use. A `thread_local T` would be gone where destructors of
/// other thread_local objects, functions of atexit() and destructors of static objects run; this is there,
/// and is made anew for what runs later still. To be declared `constinit thread_local`.
template <class T>
class PerThread {
 public:
  constexpr PerThread() = default;
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  /// The calling thread's. Throws what T's constructor throws.
  T& get() {
    if (!made_) [[unlikely]]
      make();
    return *std::launder(reinterpret_cast<T*>(place_));
  }

 private:
  [[gnu::noinline]] void make() {
    new (place_) T;
    made_ = true;
    ending_ = {[](void* object) { static_cast<PerThread*>(object)->end(); }, this};
    at_thread_end(ending_);
  }
  void end() {
    T* const object = std::launder(reinterpret_cast<T*>(place_));
    made_ = false;
    object->~T();
  }

  bool made_ = false;
  AtThreadEnd ending_;
  alignas(T) std::byte place_[sizeof(T)]{};
};

}  // namespace gyre::detail
