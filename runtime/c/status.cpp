#include <fmt/format.h>
#include <kj/exception.h>
#include <gyre/bridge/errors/catalogue.hpp>
#include <gyre/runtime/c/status.hpp>
#include <gyre/runtime/system/per_thread.hpp>

#include <algorithm>
#include <new>

namespace gyre::c {

namespace {

struct LastError {
  std::string text;
  Failure failure;
  bool written = true;  // else the text is failure's, when it is asked for
  bool no_memory = false;
};
constinit thread_local detail::PerThread<LastError> last_errors;

LastError& last_error() noexcept { return last_errors.get(); }

constexpr const char* no_memory_text =
    "there is no memory left for what was asked, or for the text that says so; use less, or give the process "
    "more";

struct Name {
  gyre_status status;
  const char* name;
};
constexpr Name names[] = {{GYRE_INVALID_ARGUMENT, "invalid_argument"},
                          {GYRE_BAD_HANDLE, "bad_handle"},
                          {GYRE_STALE_HANDLE, "stale_handle"},
                          {GYRE_BUSY, "busy"},
                          {GYRE_NOT_READY, "not_ready"},
                          {GYRE_TOO_SMALL, "too_small"},
                          {GYRE_BAD_OPTIONS, "bad_options"},
                          {GYRE_ENGINE_UNAVAILABLE, "engine_unavailable"},
                          {GYRE_FAILED, "failed"},
                          {GYRE_OUT_OF_MEMORY, "out_of_memory"},
                          {GYRE_BAD_SCHEMA, "bad_schema"},
                          {GYRE_UNKNOWN_TYPE, "unknown_type"},
                          {GYRE_BAD_JSON, "bad_json"}};

#define GYRE_C_SAME(c_name, cxx_name) static_assert(c_name == gyre_status(Status::cxx_name))
GYRE_C_SAME(GYRE_OK, ok);
GYRE_C_SAME(GYRE_RING_FULL, ring_full);
GYRE_C_SAME(GYRE_CALL_TABLE_FULL, call_table_full);
GYRE_C_SAME(GYRE_TOO_LARGE, too_large);
GYRE_C_SAME(GYRE_UNKNOWN_ACTOR, unknown_actor);
GYRE_C_SAME(GYRE_NESTED_FILL, nested_fill);
GYRE_C_SAME(GYRE_DRAINING, draining);
GYRE_C_SAME(GYRE_TERMINATED, terminated);
GYRE_C_SAME(GYRE_ENGINE_FAILED, engine_failed);
GYRE_C_SAME(GYRE_ARENA_FULL, arena_full);
GYRE_C_SAME(GYRE_FORKED, forked);
GYRE_C_SAME(GYRE_TIMED_OUT, timed_out);
GYRE_C_SAME(GYRE_MALFORMED, malformed);
GYRE_C_SAME(GYRE_UNKNOWN_MESSAGE, unknown_message);
GYRE_C_SAME(GYRE_REPLY_TOO_LARGE, reply_too_large);
GYRE_C_SAME(GYRE_HANDLER_FAILED, handler_failed);
GYRE_C_SAME(GYRE_CHECK_FAILED, check_failed);
GYRE_C_SAME(GYRE_EXPIRED, expired);
GYRE_C_SAME(GYRE_INACTIVE, inactive);
GYRE_C_SAME(GYRE_NO_SUCH_ACTOR, no_such_actor);
GYRE_C_SAME(GYRE_ACTOR_TABLE_FULL, actor_table_full);
GYRE_C_SAME(GYRE_BAD_BUFFER, bad_buffer);
GYRE_C_SAME(GYRE_CANCELLED, cancelled);
GYRE_C_SAME(GYRE_SCRATCH_FULL, scratch_full);
GYRE_C_SAME(GYRE_BUFFER_LOST, buffer_lost);
GYRE_C_SAME(GYRE_MAILBOX_FULL, mailbox_full);
GYRE_C_SAME(GYRE_OPEN_CALLS_FULL, open_calls_full);
GYRE_C_SAME(GYRE_ACTOR_STOPPED, actor_stopped);
GYRE_C_SAME(GYRE_TIMERS_FULL, timers_full);
GYRE_C_SAME(GYRE_SUBSCRIPTIONS_FULL, subscriptions_full);
GYRE_C_SAME(GYRE_BODY_POOL_FULL, body_pool_full);
GYRE_C_SAME(GYRE_WORKER_STUCK, worker_stuck);
#undef GYRE_C_SAME

}  // namespace

gyre_status refuse(gyre_status status, std::string text) noexcept {
  LastError& last = last_error();
  last.text = std::move(text);
  last.written = true;
  last.no_memory = false;
  return status;
}

gyre_status refuse(const Failure& failure) noexcept {
  LastError& last = last_error();
  last.failure = failure;
  last.written = false;
  last.no_memory = false;
  return gyre_status(failure.status);
}

gyre_status invalid(const char* doing, std::string_view argument_is) {
  return refuse(GYRE_INVALID_ARGUMENT, fmt::format("{}: {}", doing, argument_is));
}

gyre_status bad_handle(gyre_status status, const char* doing, const char* what, uint64_t handle) {
  switch (status) {
    case GYRE_OK:
      return GYRE_OK;
    case GYRE_STALE_HANDLE:
      return refuse(
          status, fmt::format("{}: the handle {:#x} is stale: that {} was released; use none after it", doing,
                              handle, what));
    case GYRE_BUSY:
      return refuse(status, fmt::format("{}: another thread is using the {} {:#x}; let one use it at a time",
                                        doing, what, handle));
    default:
      return refuse(status, fmt::format("{}: {:#x} is no handle of a {} of this process; use one that this "
                                        "library gave out for one",
                                        doing, handle, what));
  }
}

gyre_status of_current_exception(const char* doing) noexcept try {
  try {
    throw;
  } catch (const BadOptions& error) {
    return refuse(GYRE_BAD_OPTIONS, error.what());
  } catch (const EngineUnavailable& error) {
    return refuse(GYRE_ENGINE_UNAVAILABLE, error.what());
  } catch (const Error& error) {
    return refuse(error.status() == Status::ok ? GYRE_FAILED : gyre_status(error.status()), error.what());
  } catch (const kj::Exception& error) {
    return refuse(GYRE_FAILED, fmt::format("{}: {}", doing, error.getDescription().cStr()));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return refuse(GYRE_FAILED, fmt::format("{}: {}", doing, error.what()));
  }
} catch (const std::bad_alloc&) {
  last_error().no_memory = true;
  return GYRE_OUT_OF_MEMORY;
} catch (...) {
  return refuse(GYRE_FAILED, {});
}

gyre_status check_struct(const char* doing, const char* name, const void* given, size_t first_size) {
  if (given == nullptr) return invalid(doing, fmt::format("{} is null", name));
  size_t size;
  std::memcpy(&size, given, sizeof size);
  if (size >= first_size && size <= largest_struct) return GYRE_OK;
  return invalid(doing,
                 fmt::format("{}->struct_size is {}, and no version of that struct is as {} (this library's "
                             "has {} bytes); set it to sizeof the struct",
                             name, size, size < first_size ? "small" : "large", first_size));
}

gyre_status give_bytes(const char* doing, const void* bytes, size_t count, void* buffer, size_t capacity,
                       size_t* size) {
  if (size == nullptr) return invalid(doing, "size is null");
  if (count > capacity) {
    *size = count;
    return refuse(GYRE_TOO_SMALL,
                  fmt::format("{}: there are {} bytes, and the buffer has room for {}; give it as "
                              "much as *size says",
                              doing, count, capacity));
  }
  if (buffer == nullptr && count != 0) return invalid(doing, "buffer is null, and capacity is not 0");
  if (count != 0) std::memcpy(buffer, bytes, count);
  *size = count;
  return GYRE_OK;
}

gyre_status give_text(const char* doing, std::string_view text, char* buffer, size_t capacity, size_t* size) {
  if (size == nullptr) return invalid(doing, "size is null");
  if (text.size() >= capacity) {
    *size = text.size();
    return refuse(GYRE_TOO_SMALL,
                  fmt::format("{}: the text has {} bytes and a 0, and the buffer has room for {}; "
                              "give it one byte more than *size says",
                              doing, text.size(), capacity));
  }
  if (buffer == nullptr) return invalid(doing, "buffer is null, and capacity is not 0");
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = 0;
  *size = text.size();
  return GYRE_OK;
}

gyre_status read_text(const char* doing, const char* name, const char* given, size_t length,
                      std::string_view& text) {
  if (length > most_text) {
    return invalid(doing, fmt::format("{} has {} bytes, and {} are the most", name, length, most_text));
  }
  if (given == nullptr && length != 0) return invalid(doing, fmt::format("{} is null", name));
  text = length == 0 ? std::string_view() : std::string_view(given, length);
  return GYRE_OK;
}

gyre_status read_text(const char* doing, const char* name, const char* given, std::string_view& text) {
  if (given == nullptr) return invalid(doing, fmt::format("{} is null", name));
  return read_text(doing, name, given, strnlen(given, most_text + 1), text);
}

gyre_status read_timeout(const char* doing, int64_t given_ns, int64_t standard_ns, int64_t& ns) {
  if (given_ns < -1) {
    return invalid(
        doing, fmt::format("the timeout is {} ns; give 0 or more, or -1 for the runtime's own", given_ns));
  }
  ns = given_ns == -1 ? standard_ns : given_ns;
  return GYRE_OK;
}

}  // namespace gyre::c

using namespace gyre;
using namespace gyre::c;

const char* gyre_version(void) { return GYRE_VERSION; }

const char* gyre_status_name(gyre_status status) {
  for (const Name& entry : names) {
    if (entry.status == status) return entry.name;
  }
  return status < 0 ? "unknown status" : name(Status(status)).data();  // literals
}

const char* gyre_last_error(void) {
  LastError& last = last_error();
  if (last.no_memory) return no_memory_text;
  if (!last.written) {
    try {
      last.text = last.failure.message();
    } catch (...) {
      return no_memory_text;
    }
    last.written = true;
  }
  return last.text.c_str();
}

gyre_status gyre_find_error(int32_t source, uint32_t code, gyre_error_entry* entry) {
  const char* const doing = "gyre_find_error";
  return guarded(doing, [&] {
    GYRE_C_TRY(check_struct(doing, "entry", entry, sizeof *entry));
    if (source < GYRE_SOURCE_GYRE || source > GYRE_SOURCE_NVRTC) {
      return invalid(doing,
                     fmt::format("source is {}; give GYRE_SOURCE_GYRE, _CUDA or _NVRTC (0 to 2)", source));
    }
    const ErrorEntry* const found = find_error(ErrorSource(source), code);
    if (found == nullptr) {
      return invalid(doing,
                     fmt::format("the catalogue has no error {} of the {}", code, name(ErrorSource(source))));
    }
    write_struct(entry, gyre_error_entry{0, found->name.data(), found->meaning.data(), found->check.data()});
    return gyre_status(GYRE_OK);
  });
}
