// pthread_cancel() interrupts no operation of Gyre. A cancelled thread unwinds its stack at the next
// cancellation point (pthreads(7)), also through functions that must not throw. The message path has no
// cancellation points: waiting threads call futex and nanosleep as system calls. Other code defers
// cancellation (CancellationDeferred).
#pragma once

#include <pthread.h>

namespace gyre::detail {

/// Defers cancellation of the calling thread while it lives. Costs two locked instructions (glibc 2.36): not
/// for the message path.
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
