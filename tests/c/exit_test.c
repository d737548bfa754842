/* What C programs may do where threads and processes end: everything, until the last of their code has run.
 */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>

#include "expect.h"

static gyre_runtime runtime;
static uint64_t echo;

/* An ask that succeeds and one that fails, with its text. */
static void asks(const char* where) {
  const uint64_t words[] = {(uint64_t)1 << 32 | (uint64_t)1 << 48, 7, 0};
  gyre_call call;
  const void* body = NULL;
  size_t size = 0;
  const int before = failures;
  EXPECT_STATUS(GYRE_OK, gyre_ask_and_wait(runtime, ECHO, 0, echo, words, sizeof words, NULL, &call));
  EXPECT(gyre_call_reply(call, &body, &size) == GYRE_OK && size >= 16 && ((const uint64_t*)body)[1] == 7);
  EXPECT_STATUS(GYRE_OK, gyre_call_release(call));
  EXPECT_STATUS(GYRE_STALE_HANDLE, gyre_call_release(call));
  EXPECT(strstr(gyre_last_error(), "is stale: that call was released") != NULL);
  EXPECT_STATUS(GYRE_UNKNOWN_ACTOR,
                gyre_ask_and_wait(runtime, "none", 0, echo, words, sizeof words, NULL, &call));
  EXPECT(strstr(gyre_last_error(), "none") != NULL || strlen(gyre_last_error()) > 20);
  printf("%s: %s\n", where, failures == before ? "well" : "not well");
  fflush(stdout);
}

static void at_exit(void) {
  asks("at exit");
  EXPECT_STATUS(GYRE_OK, gyre_runtime_release(runtime));
  if (failures != 0) _Exit(1);
}

static void in_key(void* where) { asks(where); }

static pthread_key_t earlier, later;
static void* uses_keys(void* nothing) {
  pthread_setspecific(earlier, "in the destructor of an earlier key");
  asks("in a thread");
  if (pthread_key_create(&later, in_key) != 0) exit(1);
  pthread_setspecific(later, "in the destructor of a later key");
  return nothing;
}

int main(void) {
  if (atexit(at_exit) != 0 || pthread_key_create(&earlier, in_key) != 0) return 1;
  gyre_options options;
  gyre_schema own;
  REQUIRE_OK(gyre_options_init(&options, sizeof options));
  options.engine = GYRE_ENGINE_CPU;
  REQUIRE_OK(gyre_schema_parse(NULL, 0, &own));
  REQUIRE_OK(gyre_schema_type_id(own, "EchoRequest", &echo));
  REQUIRE_OK(gyre_launch(0, &options, &runtime));
  asks("in main");
  pthread_t thread;
  if (pthread_create(&thread, NULL, uses_keys, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  return failures != 0;
}
