// The C library's parts beside the fake driver, for tests in other languages: the program's memory on a
// device.
#include <gyre/runtime/builtin_actors.hpp>

#include <memory>

#include "support/fake_driver.hpp"

namespace {
std::unique_ptr<gyre_test::FakeDriver> fake;
}  // namespace

#define GYRE_TEST_API extern "C" __attribute__((visibility("default")))

GYRE_TEST_API void gyre_fake_begin() { fake.reset(new gyre_test::FakeDriver({gyre::builtin_actors()})); }
/// @param kind  a FakeDriver::ProgramMemory
GYRE_TEST_API uint64_t gyre_fake_allocate(int32_t kind, uint64_t bytes) {
  return fake->allocate_for_program(gyre_test::FakeDriver::ProgramMemory(kind), bytes);
}
GYRE_TEST_API void gyre_fake_free(uint64_t address) { fake->free_for_program(address); }
GYRE_TEST_API void gyre_fake_make_context() { fake->make_context_for_program(); }
GYRE_TEST_API uint64_t gyre_fake_context_waits() { return fake->context_waits(); }
GYRE_TEST_API uint64_t gyre_fake_waits() { return fake->default_stream_waits(); }
GYRE_TEST_API uint64_t gyre_fake_misuse() { return fake->misuse().size(); }
