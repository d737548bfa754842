// How functions of the C interface end: a status, and the text of a failure for gyre_last_error.
#pragma once

#include <gyre/runtime/c/gyre.h>
#include <gyre/runtime/errors.hpp>
#include <gyre/runtime/system/cancellation.hpp>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace gyre::c {

/// Keeps the text for gyre_last_error on this thread, and returns the status.
gyre_status refuse(gyre_status status, std::string text) noexcept;
/// The same; the text is written when it is asked for. Allocates nothing.
gyre_status refuse(const Failure& failure) noexcept;
/// "<doing>: <argument> <is>": GYRE_INVALID_ARGUMENT.
gyre_status invalid(const char* doing, std::string_view argument_is);
/// What HandleTable said of `handle`, which should be of `what` ("runtime").
gyre_status bad_handle(gyre_status status, const char* doing, const char* what, uint64_t handle);
/// What is being thrown, as a status with its text. To be called where it was caught.
gyre_status of_current_exception(const char* doing) noexcept;

/// Runs `body`, which returns a gyre_status and has no cancellation point; what it throws becomes a status.
template <class Body>
gyre_status guarded_on_message_path(const char* doing, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    return of_current_exception(doing);
  }
}
/// The same of any body: the thread is not cancelled meanwhile. Cancelling would unwind the stack, and what
/// is caught here would end the process.
template <class Body>
gyre_status guarded(const char* doing, Body&& body) noexcept {
  const detail::CancellationDeferred deferred;
  return guarded_on_message_path(doing, std::forward<Body>(body));
}

/// No struct of the interface is as large.
inline constexpr size_t largest_struct = 4096;
/// Whether a struct of the first version's size or more was given; 0, or its address, is named in the text.
gyre_status check_struct(const char* doing, const char* name, const void* given, size_t first_size);

/// Copies a struct that begins with struct_size: the fields both sides know. Those that only the caller knows
/// must be 0.
template <class T>
gyre_status read_struct(const char* doing, const char* name, const T* given, T& known) {
  if (const gyre_status status = check_struct(doing, name, given, sizeof(T)); status != GYRE_OK)
    return status;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof(T); i < given->struct_size; ++i) {
    if (bytes[i] != 0) {
      return invalid(doing, std::string(name) + " sets fields that this library, " + gyre_version() +
                                ", does not know; set them to 0, or use a later library");
    }
  }
  std::memcpy(&known, given, sizeof(T));
  return GYRE_OK;
}

/// Fills the caller's struct; fields that only the caller knows are 0 then. check_struct was called.
template <class T>
void write_struct(T* given, T filled) {
  const size_t size = given->struct_size;
  filled.struct_size = size;
  std::memcpy(given, &filled, sizeof(T));
  std::memset(reinterpret_cast<unsigned char*>(given) + sizeof(T), 0, size - sizeof(T));
}

/// Conventions 6: hands out bytes.
gyre_status give_bytes(const char* doing, const void* bytes, size_t count, void* buffer, size_t capacity,
                       size_t* size);
/// Conventions 6: hands out text, with a 0 behind it.
gyre_status give_text(const char* doing, std::string_view text, char* buffer, size_t capacity, size_t* size);

/// A 0-terminated string, of at most 2^26 bytes: `text` is null or longer: GYRE_INVALID_ARGUMENT.
gyre_status read_text(const char* doing, const char* name, const char* given, std::string_view& text);
/// `length` bytes; null is good for none.
gyre_status read_text(const char* doing, const char* name, const char* given, size_t length,
                      std::string_view& text);
inline constexpr size_t most_text = size_t(1) << 26;
inline constexpr size_t most_listed = 4096;

/// -1 is `standard`. GYRE_INVALID_ARGUMENT below that.
gyre_status read_timeout(const char* doing, int64_t given_ns, int64_t standard_ns, int64_t& ns);

}  // namespace gyre::c

/// Ends the function with the status of `call`, unless that is GYRE_OK.
#define GYRE_C_TRY(call) \
  if (const gyre_status gyre_c_status = (call); gyre_c_status != GYRE_OK) return gyre_c_status
