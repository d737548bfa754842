// gyre.h: asks and tells.
#include <fmt/format.h>
#include <gyre/runtime/c/objects.hpp>

namespace gyre::c {

gyre_status Call::outcome() {
  if (!taken) {
    if (!future.ready())
      return refuse(GYRE_NOT_READY, "the call's outcome is not there yet; wait, or poll again");
    auto result = future.get();
    if (result) {
      reply.emplace(std::move(result).value());
    } else {
      failure = result.error();
    }
    taken = true;
  }
  return reply ? gyre_status(GYRE_OK) : refuse(failure);
}

}  // namespace gyre::c

using namespace gyre;
using namespace gyre::c;

namespace {

constexpr gyre_send_options defaults{sizeof(gyre_send_options), GYRE_BODY, GYRE_WHEN_FULL_WAIT, -1, 0, 0, 0};

// What all messages are sent by.
struct Sending {
  Use<Runtimes> runtime;
  MessageNumbers numbers;
  Encoded content;
  gyre_send_options options;
  std::chrono::nanoseconds timeout;

  detail::WhenFull when_full() const {
    return options.when_full == GYRE_WHEN_FULL_REFUSE ? detail::WhenFull::refuse : detail::WhenFull::wait;
  }
};

std::chrono::nanoseconds timeout_of(const Runtime& runtime) { return runtime.options().timeout; }

gyre_status read_sending(const char* doing, gyre_runtime runtime, const char* actor, uint64_t type,
                         const void* bytes, size_t bytes_size, const gyre_send_options* options,
                         Sending& sending) {
  GYRE_C_TRY(use<Runtimes>(doing, runtime, sending.runtime));
  std::string_view actor_name;
  GYRE_C_TRY(read_text(doing, "actor", actor, actor_name));
  sending.options = defaults;
  if (options != nullptr) GYRE_C_TRY(read_struct(doing, "options", options, sending.options));
  const gyre_send_options& given = sending.options;
  GYRE_C_TRY(read_encoding(doing, given.encoding, sending.content.encoding));
  if (given.when_full < GYRE_WHEN_FULL_WAIT || given.when_full > GYRE_WHEN_FULL_REFUSE ||
      given.reserved != 0 || given.expires_after_ns < 0) {
    return invalid(
        doing, fmt::format("options->when_full is {} (0 or 1 is good), ->expires_after_ns {} (0 and more), "
                           "->reserved {} (0)",
                           given.when_full, given.expires_after_ns, given.reserved));
  }
  int64_t timeout_ns = 0;
  GYRE_C_TRY(read_timeout(doing, given.timeout_ns, timeout_of(sending.runtime->runtime).count(), timeout_ns));
  sending.timeout = std::chrono::nanoseconds(timeout_ns);
  if (bytes == nullptr && bytes_size != 0) return invalid(doing, "bytes is null, and bytes_size is not 0");
  // No message that can be sent is as large in any encoding.
  const uint64_t most = sending.runtime->client.max_body_bytes();
  if (bytes_size > 2 * most + 65536) return refuse(Failure{Status::too_large, 0, bytes_size, most});
  if (sending.content.encoding == Encoding::body && bytes_size % 8 != 0)
    return refuse(Failure{Status::malformed});
  sending.content.bytes = {static_cast<const std::byte*>(bytes), bytes_size};
  const auto numbers = sending.runtime->client.numbers_of(actor_name, type);
  if (!numbers) return refuse(numbers.error());
  sending.numbers = numbers.value();
  return GYRE_OK;
}

gyre_status send_ask(const char* doing, gyre_runtime runtime, const char* actor, uint64_t key,
                     uint64_t request, const void* bytes, size_t bytes_size, const gyre_send_options* options,
                     gyre_call* call, Call& asked) {
  if (call == nullptr) return invalid(doing, "call is null");
  Sending sending;
  GYRE_C_TRY(read_sending(doing, runtime, actor, request, bytes, bytes_size, options, sending));
  if (sending.options.expires_after_ns != 0) {
    return invalid(doing, "options->expires_after_ns is for tells; an ask expires with its timeout");
  }
  const AskOptions limits{sending.timeout, sending.options.max_reply_bytes};
  asked.wait = sending.runtime->runtime.options().wait;
  auto sent = sending.runtime->client.send_ask_by_number(sending.numbers, key, sending.content, limits,
                                                         sending.when_full());
  if (!sent) return refuse(sent.error());
  asked.future = std::move(sent).value();
  return GYRE_OK;
}

gyre_status lifecycle(const char* doing, gyre_runtime runtime, const char* actor, uint64_t key,
                      int64_t timeout_ns, bool start) {
  return guarded(doing, [&]() -> gyre_status {
    Use<Runtimes> used;
    GYRE_C_TRY(use<Runtimes>(doing, runtime, used));
    std::string_view name;
    GYRE_C_TRY(read_text(doing, "actor", actor, name));
    int64_t ns = 0;
    GYRE_C_TRY(read_timeout(doing, timeout_ns, timeout_of(used->runtime).count(), ns));
    const NamedAddress to{name, key};
    const std::chrono::nanoseconds timeout(ns);
    return status_of(start ? used->client.start(to, timeout) : used->client.stop(to, timeout));
  });
}

}  // namespace

gyre_status gyre_send_options_init(gyre_send_options* options, size_t struct_size) {
  const char* const doing = "gyre_send_options_init";
  return guarded(doing, [&]() -> gyre_status {
    if (options == nullptr) return invalid(doing, "options is null");
    GYRE_C_TRY(check_struct(doing, "options", &struct_size, sizeof *options));
    options->struct_size = struct_size;
    write_struct(options, defaults);
    return GYRE_OK;
  });
}

gyre_status gyre_ask(gyre_runtime runtime, const char* actor, uint64_t key, uint64_t request,
                     const void* bytes, size_t bytes_size, const gyre_send_options* options,
                     gyre_call* call) {
  const char* const doing = "gyre_ask";
  return guarded(doing, [&]() -> gyre_status {
    Call asked;
    GYRE_C_TRY(send_ask(doing, runtime, actor, key, request, bytes, bytes_size, options, call, asked));
    *call = Calls::table().add(std::move(asked));
    return GYRE_OK;
  });
}

gyre_status gyre_ask_and_wait(gyre_runtime runtime, const char* actor, uint64_t key, uint64_t request,
                              const void* bytes, size_t bytes_size, const gyre_send_options* options,
                              gyre_call* call) {
  const char* const doing = "gyre_ask_and_wait";
  return guarded(doing, [&]() -> gyre_status {
    Call asked;
    GYRE_C_TRY(send_ask(doing, runtime, actor, key, request, bytes, bytes_size, options, call, asked));
    asked.future.wait();
    GYRE_C_TRY(asked.outcome());
    *call = Calls::table().add(std::move(asked));
    return GYRE_OK;
  });
}

gyre_status gyre_call_poll(gyre_call call, int32_t* done) {
  const char* const doing = "gyre_call_poll";
  return guarded(doing, [&]() -> gyre_status {
    Use<Calls> used;
    GYRE_C_TRY(use<Calls>(doing, call, used));
    if (done == nullptr) return invalid(doing, "done is null");
    *done = used->taken || used->future.ready();
    return GYRE_OK;
  });
}

gyre_status gyre_call_wait(gyre_call call, int64_t timeout_ns) {
  const char* const doing = "gyre_call_wait";
  return guarded(doing, [&]() -> gyre_status {
    Use<Calls> used;
    GYRE_C_TRY(use<Calls>(doing, call, used));
    int64_t ns = 0;
    GYRE_C_TRY(read_timeout(doing, timeout_ns, -1, ns));
    if (used->taken) return GYRE_OK;
    if (ns == -1) {
      used->future.wait();
      return GYRE_OK;
    }
    const int64_t deadline_ns = detail::after(detail::host_now_ns(), std::chrono::nanoseconds(ns));
    Backoff backoff(used->wait);
    while (!used->future.ready()) {
      if (detail::host_now_ns() >= deadline_ns) {
        return refuse(GYRE_NOT_READY,
                      fmt::format("{}: no outcome within {} ns; wait longer, or again", doing, ns));
      }
      backoff.pause();
    }
    return GYRE_OK;
  });
}

gyre_status gyre_call_reply(gyre_call call, const void** body, size_t* body_size) {
  const char* const doing = "gyre_call_reply";
  return guarded(doing, [&]() -> gyre_status {
    Use<Calls> used;
    GYRE_C_TRY(use<Calls>(doing, call, used));
    if (body == nullptr || body_size == nullptr) {
      return invalid(doing, body == nullptr ? "body is null" : "body_size is null");
    }
    GYRE_C_TRY(used->outcome());
    const auto bytes = used->reply->body();
    *body = bytes.data();
    *body_size = bytes.size();
    return GYRE_OK;
  });
}

gyre_status gyre_call_release(gyre_call call) { return release<Calls>("gyre_call_release", call); }

gyre_status gyre_tell(gyre_runtime runtime, const char* actor, uint64_t key, uint64_t message,
                      const void* bytes, size_t bytes_size, const gyre_send_options* options) {
  const char* const doing = "gyre_tell";
  return guarded(doing, [&]() -> gyre_status {
    Sending sending;
    GYRE_C_TRY(read_sending(doing, runtime, actor, message, bytes, bytes_size, options, sending));
    if (sending.options.max_reply_bytes != 0) {
      return invalid(doing, "options->max_reply_bytes is for asks; a tell has no reply");
    }
    const TellOptions limits{sending.timeout, std::chrono::nanoseconds(sending.options.expires_after_ns)};
    return status_of(sending.runtime->client.send_tell_by_number(sending.numbers, key, sending.content,
                                                                 limits, sending.when_full()));
  });
}

gyre_status gyre_start_actor(gyre_runtime runtime, const char* actor, uint64_t key, int64_t timeout_ns) {
  return lifecycle("gyre_start_actor", runtime, actor, key, timeout_ns, true);
}
gyre_status gyre_stop_actor(gyre_runtime runtime, const char* actor, uint64_t key, int64_t timeout_ns) {
  return lifecycle("gyre_stop_actor", runtime, actor, key, timeout_ns, false);
}
