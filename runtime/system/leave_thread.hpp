// How a runtime's destructor leaves a thread of its own.
#pragma once

#include <new>
#include <thread>
#include <utility>

namespace gyre::detail {

/// Joins a thread that keeps the Core alive and so is past its work when the Core is destroyed. On that
/// thread itself it detaches it. In a child of fork() (`forked`), where the thread is not, the object is left
/// as it is: its number may be that of a thread which the child has started since.
inline void leave_thread(std::thread& thread, bool forked) {
  if (!thread.joinable()) return;
  if (forked) {
    (void)new (std::nothrow) std::thread(std::move(thread));
  } else if (thread.get_id() == std::this_thread::get_id()) {
    thread.detach();
  } else {
    thread.join();
  }
}

}  // namespace gyre::detail
