#include <pthread.h>
#include <gyre/runtime/system/per_thread.hpp>

#include <atomic>
#include <cstdint>

namespace gyre::detail {

namespace {

constinit thread_local AtThreadEnd* endings = nullptr;

// glibc destroys thread_local objects first and then calls the destructors of keys, in several rounds as long
// as they set values.
void end_thread(void*) {
  while (AtThreadEnd* const ending = endings) {
    endings = ending->next;
    ending->run(ending->object);
  }
}

// The key and 1; 0: not made yet. Made without a lock, which a thread that fork() does not copy could hold.
constinit std::atomic<uint64_t> key_and_1{0};

// True and `key`, or false: the process has no key left.
bool find_key(pthread_key_t& key) noexcept {
  uint64_t known = key_and_1.load(std::memory_order_acquire);  // pairs with the exchange below
  if (known == 0) {
    if (pthread_key_create(&key, end_thread) != 0) return false;
    const uint64_t made = uint64_t(key) + 1;
    if (key_and_1.compare_exchange_strong(known, made, std::memory_order_acq_rel)) {
      known = made;
    } else {
      pthread_key_delete(key);  // another thread was first
    }
  }
  key = pthread_key_t(known - 1);
  return true;
}

}  // namespace

void at_thread_end(AtThreadEnd& ending) noexcept {
  ending.next = endings;
  endings = &ending;
  pthread_key_t key{};
  if (find_key(key)) pthread_setspecific(key, &endings);
}

}  // namespace gyre::detail
