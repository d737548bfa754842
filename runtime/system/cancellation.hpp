// pthread_cancel(): what Gyre does is done whole. A cancelled thread unwinds its stack at the next
// cancellation point (pthreads(7)), through what must not throw. On the message path there are none: whoever
// waits there sleeps by system calls of its own, futex and nanosleep. Elsewhere a CancellationDeferred stands
// before them.
#pragma once

#include <pthread.h>

namespace gyre::detail {

/// While one lives, the calling thread is not cancelled; a cancellation that came meanwhile waits. Costs two
/// locked instructions (glibc 2.36): not for the message path.
class CancellationDeferred {
 public:
  CancellationDeferred() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~CancellationDeferred() { pthread_setcancelstate(before_, nullptr); }
  CancellationDeferred(const CancellationDeferred&) = delete;
  CancellationDeferred& operator=(const CancellationDeferred&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace gyre::detail
