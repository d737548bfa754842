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
GYRE_TEST_API void* gyre_fake_make_stream() { return fake->make_stream_for_program(); }
/// Work that sets a float, once it is its turn.
GYRE_TEST_API void gyre_fake_give_store(void* stream, float* to, float value) {
  fake->give_work(
      static_cast<CUstream>(stream), [to, value] { *to = value; }, true);
}
/// Work that copies a float, likewise.
GYRE_TEST_API void gyre_fake_give_copy(void* stream, float* to, const float* from) {
  fake->give_work(
      static_cast<CUstream>(stream), [to, from] { *to = *from; }, true);
}
/// Work that does not end.
GYRE_TEST_API void gyre_fake_give_endless(void* stream) {
  fake->give_work(static_cast<CUstream>(stream), [] {});
}
GYRE_TEST_API void gyre_fake_finish_work(void* stream) { fake->finish_work(static_cast<CUstream>(stream)); }
GYRE_TEST_API int32_t gyre_fake_stream_is_done(void* stream) {
  return fake->stream_is_done(static_cast<CUstream>(stream));
}
GYRE_TEST_API uint64_t gyre_fake_waits() { return fake->default_stream_waits(); }
GYRE_TEST_API uint64_t gyre_fake_misuse() { return fake->misuse().size(); }
