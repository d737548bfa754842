/* What the tests in C check with: they say what failed and go on. */
#ifndef GYRE_TESTS_C_EXPECT_H
#define GYRE_TESTS_C_EXPECT_H

#include <gyre/gyre.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks = 0, failures = 0;

static inline void expect_at(int line, int holds, const char* what) {
  ++checks;
  if (holds) return;
  ++failures;
  printf("FAILED, line %d: %s (the last error: %s)\n", line, what, gyre_last_error());
}
#define EXPECT(condition) expect_at(__LINE__, (condition), #condition)

/* A failure has its status, and a text. */
static inline void expect_status_at(int line, gyre_status expected, gyre_status status, const char* call) {
  ++checks;
  const char* const text = gyre_last_error();
  if (status == expected && (status == GYRE_OK || strlen(text) > 10)) return;
  ++failures;
  printf("FAILED, line %d: %s\n  is %s (%d), and should be %s (%d); the last error: %s\n", line, call,
         gyre_status_name(status), (int)status, gyre_status_name(expected), (int)expected, text);
}
#define EXPECT_STATUS(expected, call) expect_status_at(__LINE__, (expected), (call), #call)
/* What the test goes on with: without it nothing more can be said. */
#define REQUIRE_OK(call)                                \
  do {                                                  \
    const int failures_before = failures;               \
    expect_status_at(__LINE__, GYRE_OK, (call), #call); \
    if (failures != failures_before) exit(1);           \
  } while (0)

static inline int report(void) {
  printf("%d checks, %d failures\n", checks, failures);
  return failures != 0;
}

#define ECHO "gyre::actors::Echo"
#define VECTOR_ADD "gyre::actors::VectorAdd"

#endif
