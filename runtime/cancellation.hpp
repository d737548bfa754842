// pthread_cancel(): what Gyre does is done whole.
#pragma once

#include <pthread.h>

namespace gyre::detail {

/// While one lives, the calling thread is not cancelled; a cancellation that came meanwhile waits. Costs two
/// stores to the thread's own memory (glibc 2.34 and later).
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
