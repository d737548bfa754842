// pthread_cancel() at the first cancellation point that a thread meets.
#pragma once

#include <pthread.h>

#include <functional>
#include <string>

namespace gyre_test {

/// Runs `act` on a thread of its own, with a cancellation pending all the time. Returns what it returned, and
/// whether the thread was cancelled behind it.
inline std::string cancelled_while(const std::function<std::string()>& act) {
  struct Act {
    const std::function<std::string()>& act;
    std::string said = "not done";
  } run{act};
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void* argument) -> void* {
        pthread_cancel(pthread_self());
        static_cast<Act*>(argument)->said = static_cast<Act*>(argument)->act();
        pthread_testcancel();
        return nullptr;
      },
      &run);
  void* result = nullptr;
  pthread_join(thread, &result);
  return run.said + (result == PTHREAD_CANCELED ? ", then cancelled" : ", not cancelled");
}

}  // namespace gyre_test
