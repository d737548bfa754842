/* Threads: many of one runtime, and one where only one may be. Its argument is the shared object of the
   tests' actors. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "expect.h"

enum { THREADS = 4, ROUNDS = 500 };

static gyre_runtime runtime;
static gyre_schema own;
static uint64_t echo;

/* Asks, and makes and releases handles of every kind meanwhile. Returns how many things were wrong. */
static void* asks(void* argument) {
  const uint64_t thread = (uint64_t)(uintptr_t)argument;
  uintptr_t wrong = 0;
  for (uint64_t i = 0; i < ROUNDS; ++i) {
    const uint64_t words[] = {(uint64_t)1 << 32 | (uint64_t)1 << 48, thread << 32 | i, 0};
    gyre_call call;
    const void* body = NULL;
    size_t size = 0;
    if (gyre_ask_and_wait(runtime, ECHO, thread, echo, words, sizeof words, NULL, &call) != GYRE_OK) {
      ++wrong;
      continue;
    }
    wrong += gyre_call_reply(call, &body, &size) != GYRE_OK || ((const uint64_t*)body)[1] != words[1];
    wrong += gyre_call_release(call) != GYRE_OK;
    wrong += gyre_call_release(call) != GYRE_STALE_HANDLE;
    uint64_t id;
    wrong += gyre_schema_type_id(own, "EchoRequest", &id) != GYRE_OK || id != echo;
    gyre_buffer buffer;
    wrong += gyre_buffer_create(runtime, GYRE_MEMORY_DEVICE, GYRE_UINT64, 3, &buffer) != GYRE_OK;
    uint64_t read[3] = {0, 0, 0};
    wrong += gyre_buffer_write(buffer, 0, words, sizeof words) != GYRE_OK;
    wrong +=
        gyre_buffer_read(buffer, 0, read, sizeof read) != GYRE_OK || memcmp(read, words, sizeof read) != 0;
    wrong += gyre_buffer_release(buffer) != GYRE_OK;
  }
  return (void*)wrong;
}

static void threads_share_a_runtime(void) {
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; ++i) {
    if (pthread_create(&threads[i], NULL, asks, (void*)i) != 0) exit(1);
  }
  for (int i = 0; i < THREADS; ++i) {
    void* wrong = NULL;
    pthread_join(threads[i], &wrong);
    EXPECT(wrong == NULL);
  }
  gyre_stats stats = {.struct_size = sizeof stats};
  REQUIRE_OK(gyre_runtime_stats(runtime, &stats));
  EXPECT(stats.asks_answered == THREADS * ROUNDS && stats.asks_accepted == THREADS * ROUNDS);
  EXPECT(stats.buffers_in_use[GYRE_MEMORY_DEVICE] == 0);
}

static gyre_call long_call;
static void* waits(void* outcome) {
  const void* body;
  size_t size;
  gyre_status waited;
  while ((waited = gyre_call_wait(long_call, -1)) == GYRE_BUSY) sched_yield(); /* the other looks */
  if (waited == GYRE_OK) *(gyre_status*)outcome = gyre_call_reply(long_call, &body, &size);
  return NULL;
}

/* One thread waits for an ask that takes a minute; another is told that it is busy, and cancels it. */
static void a_call_is_one_threads_and_any_cancels_it(const char* plugin, const gyre_options* options) {
  gyre_actors probes;
  REQUIRE_OK(gyre_actors_load(plugin, "probes", &probes));
  gyre_runtime slow;
  REQUIRE_OK(gyre_launch(probes, options, &slow));
  REQUIRE_OK(gyre_actors_release(probes));
  gyre_handler handler = {sizeof handler, NULL, NULL, 0, 0};
  REQUIRE_OK(gyre_runtime_handler(slow, 0, &handler));
  EXPECT(strcmp(handler.actor, "gyre_test::Probe") == 0);
  /* ProbeRequest: action work (3), 60 s. */
  const uint64_t words[] = {(uint64_t)2 << 32 | (uint64_t)1 << 48, 3, 60000000000, 0};
  gyre_send_options sending;
  REQUIRE_OK(gyre_send_options_init(&sending, sizeof sending));
  sending.timeout_ns = 60000000000;
  REQUIRE_OK(
      gyre_ask(slow, "gyre_test::Probe", 0, handler.request, words, sizeof words, &sending, &long_call));
  EXPECT_STATUS(GYRE_NOT_READY, gyre_call_wait(long_call, 1000));
  gyre_status outcome = GYRE_OK;
  pthread_t waiter;
  if (pthread_create(&waiter, NULL, waits, &outcome) != 0) exit(1);
  int32_t done = 7;
  while (gyre_call_poll(long_call, &done) != GYRE_BUSY) sched_yield(); /* until it waits */
  const void* body;
  size_t size;
  EXPECT_STATUS(GYRE_BUSY, gyre_call_reply(long_call, &body, &size));
  EXPECT_STATUS(GYRE_BUSY, gyre_call_wait(long_call, 0));
  EXPECT_STATUS(GYRE_BUSY, gyre_call_release(long_call));
  int32_t cancelled = 0;
  EXPECT_STATUS(GYRE_OK, gyre_call_cancel(long_call, &cancelled));
  EXPECT(cancelled == 1);
  pthread_join(waiter, NULL);
  EXPECT(outcome == GYRE_CANCELLED);
  EXPECT_STATUS(GYRE_CANCELLED, gyre_call_reply(long_call, &body, &size));
  EXPECT_STATUS(GYRE_OK, gyre_call_release(long_call));
  EXPECT_STATUS(GYRE_OK, gyre_runtime_release(slow));
}

/* A thread that is cancelled in `wait`, and what that returned. */
struct cancelled {
  gyre_status (*wait)(struct cancelled*);
  gyre_runtime runtime;
  gyre_call call;
  uint64_t request;
  atomic_int begun, may_wait, returned;
};
static const uint64_t long_work[] = {(uint64_t)2 << 32 | (uint64_t)1 << 48, 3, 60000000000, 0};
static gyre_status waits_for_a_call(struct cancelled* c) {
  gyre_status status;
  do status = gyre_call_wait(c->call, -1);
  while (status == GYRE_BUSY); /* the other thread polls it */
  return status;
}
static gyre_status asks_and_waits(struct cancelled* c) {
  gyre_send_options sending;
  gyre_send_options_init(&sending, sizeof sending);
  sending.timeout_ns = 300000000;
  gyre_call call;
  return gyre_ask_and_wait(c->runtime, "gyre_test::Probe", 0, c->request, long_work, sizeof long_work,
                           &sending, &call);
}
static gyre_status drains(struct cancelled* c) { return gyre_drain(c->runtime, 300000000); }
static gyre_status terminates(struct cancelled* c) { return gyre_terminate(c->runtime, 300000000, NULL); }

static void* is_cancelled(void* argument) {
  struct cancelled* const c = argument;
  atomic_store(&c->begun, 1);
  while (!atomic_load(&c->may_wait)) sched_yield();
  const gyre_status status = c->wait(c);
  atomic_store(&c->returned, 1 + status);
  pthread_testcancel();
  return NULL;
}

/* pthread_cancel() of a thread that waits in the library: it waits on, the function returns what it would
   have, and then the thread is cancelled. */
static void cancelling_a_thread_waits_until_the_function_returns(const char* plugin, gyre_options options) {
  gyre_actors probes;
  REQUIRE_OK(gyre_actors_load(plugin, "probes", &probes));
  options.workers = 1;
  struct cancelled c = {.returned = 0};
  REQUIRE_OK(gyre_launch(probes, &options, &c.runtime));
  REQUIRE_OK(gyre_actors_release(probes));
  gyre_handler handler = {sizeof handler, NULL, NULL, 0, 0};
  REQUIRE_OK(gyre_runtime_handler(c.runtime, 0, &handler));
  c.request = handler.request;
  gyre_send_options sending;
  REQUIRE_OK(gyre_send_options_init(&sending, sizeof sending));
  sending.timeout_ns = 60000000000;
  REQUIRE_OK(gyre_ask(c.runtime, "gyre_test::Probe", 0, handler.request, long_work, sizeof long_work,
                      &sending, &c.call));
  const struct {
    gyre_status (*wait)(struct cancelled*);
    int needs_an_end;
    gyre_status expected;
  } waits[] = {{waits_for_a_call, 1, GYRE_OK},
               {asks_and_waits, 0, GYRE_TIMED_OUT},
               {drains, 0, GYRE_WORKER_STUCK},
               {terminates, 0, GYRE_OK}};
  for (size_t i = 0; i < sizeof waits / sizeof *waits; ++i) {
    c.wait = waits[i].wait;
    atomic_store(&c.begun, 0);
    atomic_store(&c.returned, 0);
    atomic_store(&c.may_wait, waits[i].needs_an_end);
    pthread_t thread;
    if (pthread_create(&thread, NULL, is_cancelled, &c) != 0) exit(1);
    while (!atomic_load(&c.begun)) sched_yield();
    if (waits[i].needs_an_end) {
      int32_t done;
      while (gyre_call_poll(c.call, &done) != GYRE_BUSY) sched_yield(); /* until it waits */
    }
    pthread_cancel(thread);
    atomic_store(&c.may_wait, 1); /* what ends soon has its cancellation before it begins */
    if (waits[i].needs_an_end) EXPECT_STATUS(GYRE_OK, gyre_call_cancel(c.call, NULL));
    void* result = NULL;
    pthread_join(thread, &result);
    EXPECT(result == PTHREAD_CANCELED);
    EXPECT(atomic_load(&c.returned) == 1 + waits[i].expected);
  }
  EXPECT_STATUS(GYRE_OK, gyre_call_release(c.call));
  EXPECT_STATUS(GYRE_OK, gyre_runtime_release(c.runtime));
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  gyre_options options;
  REQUIRE_OK(gyre_options_init(&options, sizeof options));
  options.engine = GYRE_ENGINE_CPU;
  options.workers = 2;
  REQUIRE_OK(gyre_schema_parse(NULL, 0, &own));
  REQUIRE_OK(gyre_schema_type_id(own, "EchoRequest", &echo));
  REQUIRE_OK(gyre_launch(0, &options, &runtime));
  threads_share_a_runtime();
  EXPECT_STATUS(GYRE_OK, gyre_runtime_release(runtime));
  EXPECT_STATUS(GYRE_OK, gyre_schema_release(own));
  a_call_is_one_threads_and_any_cancels_it(argv[1], &options);
  cancelling_a_thread_waits_until_the_function_returns(argv[1], options);
  return report();
}
