// Per-thread objects that exist whenever the thread runs code.
#pragma once

#include <cstddef>
#include <new>

namespace gyre::detail {

/// An action for the end of a thread. It lies in constant-initialised thread_local memory of the thread.
struct AtThreadEnd {
  void (*run)(void* object) = nullptr;
  void* object = nullptr;
  AtThreadEnd* next = nullptr;
};
/// Calls ending.run(ending.object) once, when the calling thread ends: after the destructors of its
/// thread_local objects. In the thread that ends the process, never. Lock-free, allocates nothing. Where the
/// process has no thread-specific key left (PTHREAD_KEYS_MAX) it is never called.
void at_thread_end(AtThreadEnd& ending) noexcept;

/// Makes one T per thread at the thread's first use. Unlike a `thread_local T` it exists in destructors of
/// other thread_local objects, in atexit() functions and in destructors of static objects; it is made anew if
/// code runs after it was destroyed. Declare it `constinit thread_local`.
template <class T>
class PerThread {
 public:
  constexpr PerThread() = default;
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  /// Returns the calling thread's T. Throws what T's constructor throws.
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
