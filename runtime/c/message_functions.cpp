// gyre.h: asks and tells.
#include <fmt/format.h>
#include <gyre/runtime/c/objects.hpp>

#include <thread>

namespace gyre::c {

gyre_status Call::outcome() {
  if (!taken) {
    if (watched || !ready()) {
      return refuse(GYRE_NOT_READY, "the call's outcome is not there yet; wait, or poll again");
    }
    auto result = held ? held->get() : future.get();
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

constexpr gyre_send_options default_send_options{
    sizeof(gyre_send_options), GYRE_BODY, GYRE_WHEN_FULL_WAIT, -1, 0, 0, 0};

// What all messages are sent by.
struct MessageToSend {
  Use<Runtimes> runtime;
  MessageNumbers numbers;
  Encoded content;
  gyre_send_options options;
  std::chrono::nanoseconds timeout;

  detail::WhenFull when_full() const {
    return options.when_full == GYRE_WHEN_FULL_REFUSE ? detail::WhenFull::refuse : detail::WhenFull::wait;
  }
};

std::string watched_text(const char* doing) {
  return fmt::format("{}: the call is in a queue; take it from there first", doing);
}

std::chrono::nanoseconds timeout_of(const Runtime& runtime) { return runtime.options().timeout; }

gyre_status read_sending(const char* doing, gyre_runtime runtime, const char* actor, uint64_t type,
                         const void* bytes, size_t bytes_size, const gyre_send_options* options,
                         MessageToSend& sending) {
  GYRE_C_TRY(use<Runtimes>(doing, runtime, sending.runtime));
  std::string_view actor_name;
  GYRE_C_TRY(read_text(doing, "actor", actor, actor_name));
  sending.options = default_send_options;
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
  MessageToSend sending;
  GYRE_C_TRY(read_sending(doing, runtime, actor, request, bytes, bytes_size, options, sending));
  if (sending.options.expires_after_ns != 0) {
    return invalid(doing, "options->expires_after_ns is for tells; an ask expires with its timeout");
  }
  const AskOptions limits{sending.timeout, sending.options.max_reply_bytes};
  auto sent = sending.runtime->client.send_ask_by_number(sending.numbers, key, sending.content, limits,
                                                         sending.when_full());
  if (!sent) return refuse(sent.error());
  asked.future = std::move(sent).value();
  asked.canceller = asked.future.canceller();
  return GYRE_OK;
}

gyre_status refuse_room_for_reply(const char* doing, const MessageToSend& sending) {
  if (sending.options.max_reply_bytes == 0) return GYRE_OK;
  return invalid(doing, "options->max_reply_bytes is for asks; a tell has no reply");
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
    write_struct(options, default_send_options);
    return GYRE_OK;
  });
}

gyre_status gyre_ask(gyre_runtime runtime, const char* actor, uint64_t key, uint64_t request,
                     const void* bytes, size_t bytes_size, const gyre_send_options* options,
                     gyre_call* call) {
  const char* const doing = "gyre_ask";
  return guarded_on_message_path(doing, [&]() -> gyre_status {
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
  return guarded_on_message_path(doing, [&]() -> gyre_status {
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
  return guarded_on_message_path(doing, [&]() -> gyre_status {
    AloneUse<Calls> used;
    GYRE_C_TRY(used.begin(doing, call));
    if (done == nullptr) return invalid(doing, "done is null");
    *done = used->taken || (!used->watched && used->ready());
    return GYRE_OK;
  });
}

gyre_status gyre_call_wait(gyre_call call, int64_t timeout_ns) {
  const char* const doing = "gyre_call_wait";
  return guarded_on_message_path(doing, [&]() -> gyre_status {
    AloneUse<Calls> used;
    GYRE_C_TRY(used.begin(doing, call));
    int64_t ns = 0;
    GYRE_C_TRY(read_timeout(doing, timeout_ns, -1, ns));
    if (used->taken) return GYRE_OK;
    if (used->watched) return refuse(GYRE_BUSY, watched_text(doing));
    if (ns == -1) {
      used->wait();
      return GYRE_OK;
    }
    if (used->wait_for(std::chrono::nanoseconds(ns))) return GYRE_OK;
    return refuse(GYRE_NOT_READY,
                  fmt::format("{}: no outcome within {} ns; wait longer, or again", doing, ns));
  });
}

gyre_status gyre_call_reply(gyre_call call, const void** body, size_t* body_size) {
  const char* const doing = "gyre_call_reply";
  return guarded_on_message_path(doing, [&]() -> gyre_status {
    AloneUse<Calls> used;
    GYRE_C_TRY(used.begin(doing, call));
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

gyre_status gyre_call_cancel(gyre_call call, int32_t* cancelled) {
  const char* const doing = "gyre_call_cancel";
  return guarded_on_message_path(doing, [&]() -> gyre_status {
    Use<Calls> used;
    GYRE_C_TRY(use<Calls>(doing, call, used));
    const bool decided = used->canceller.cancel();
    if (cancelled != nullptr) *cancelled = decided;
    return GYRE_OK;
  });
}

gyre_status gyre_call_wait_on(gyre_call call, void* stream) {
  const char* const doing = "gyre_call_wait_on";
  return guarded(doing, [&]() -> gyre_status {
    AloneUse<Calls> used;
    GYRE_C_TRY(used.begin(doing, call));
    if (used->watched) return refuse(GYRE_BUSY, watched_text(doing));
    if (used->taken) return GYRE_OK;
    if (used->held)
      return invalid(doing, "a stream waits for the call already; let others wait for that one");
    used->held.emplace(std::move(used->future).wait_on(stream));
    return GYRE_OK;
  });
}

gyre_status gyre_wait_for_stream(gyre_runtime runtime, void* stream, int64_t timeout_ns) {
  const char* const doing = "gyre_wait_for_stream";
  return guarded(doing, [&]() -> gyre_status {
    Use<Runtimes> used;
    GYRE_C_TRY(use<Runtimes>(doing, runtime, used));
    int64_t ns = 0;
    GYRE_C_TRY(read_timeout(doing, timeout_ns,
                            std::chrono::nanoseconds(used->runtime.options().timeout).count(), ns));
    used->client.wait_for_stream(stream, std::chrono::nanoseconds(ns));
    return GYRE_OK;
  });
}

gyre_status gyre_call_release(gyre_call call) {
  const char* const doing = "gyre_call_release";
  return guarded_on_message_path(doing, [&]() -> gyre_status {
    AloneUse<Calls> used;
    GYRE_C_TRY(used.begin(doing, call));
    return used.release(doing, call);
  });
}

gyre_status gyre_queue_create(gyre_queue* queue) {
  const char* const doing = "gyre_queue_create";
  return guarded(doing, [&]() -> gyre_status {
    if (queue == nullptr) return invalid(doing, "queue is null");
    *queue = Queues::table().add({CompletionQueue()});
    return GYRE_OK;
  });
}

gyre_status gyre_queue_fd(gyre_queue queue, int32_t* fd) {
  const char* const doing = "gyre_queue_fd";
  return guarded(doing, [&]() -> gyre_status {
    Use<Queues> used;
    GYRE_C_TRY(use<Queues>(doing, queue, used));
    if (fd == nullptr) return invalid(doing, "fd is null");
    *fd = used->queue.fd();
    return GYRE_OK;
  });
}

gyre_status gyre_queue_watch(gyre_queue queue, gyre_call call, uint64_t tag) {
  const char* const doing = "gyre_queue_watch";
  return guarded(doing, [&]() -> gyre_status {
    Use<Queues> used;
    GYRE_C_TRY(use<Queues>(doing, queue, used));
    AloneUse<Calls> watched;
    GYRE_C_TRY(watched.begin(doing, call));
    if (watched->watched) return refuse(GYRE_BUSY, watched_text(doing));
    if (watched->taken) return invalid(doing, "the call's outcome was taken already; watch it before");
    if (watched->held) return invalid(doing, "a stream waits for the call; wait for it, or poll it");
    watched->tag = tag;
    watched->watched = true;
    try {
      used->queue.watch(std::move(watched->future), call);
    } catch (...) {
      watched->watched = false;
      throw;
    }
    return GYRE_OK;
  });
}

gyre_status gyre_queue_take(gyre_queue queue, gyre_call* call, uint64_t* tag) {
  const char* const doing = "gyre_queue_take";
  return guarded(doing, [&]() -> gyre_status {
    AloneUse<Queues> used;
    GYRE_C_TRY(used.begin(doing, queue));
    if (call == nullptr || tag == nullptr)
      return invalid(doing, call == nullptr ? "call is null" : "tag is null");
    while (auto done = used->queue.take()) {
      // Who has the call does not keep it: in a queue it cannot be waited for.
      Use<Calls> taken;
      while (Calls::table().use(done->tag, taken) == GYRE_OK && !taken->claim.take()) {
        taken = {};
        std::this_thread::yield();
      }
      if (!taken) continue;  // released
      taken->future = std::move(done->outcome);
      taken->watched = false;
      const uint64_t given = taken->tag;
      taken->claim.give_back();
      *call = done->tag;
      *tag = given;
      return GYRE_OK;
    }
    return refuse(GYRE_NOT_READY,
                  fmt::format("{}: no call in the queue is done; poll its descriptor", doing));
  });
}

gyre_status gyre_queue_release(gyre_queue queue) { return release<Queues>("gyre_queue_release", queue); }

gyre_status gyre_tell(gyre_runtime runtime, const char* actor, uint64_t key, uint64_t message,
                      const void* bytes, size_t bytes_size, const gyre_send_options* options) {
  const char* const doing = "gyre_tell";
  return guarded_on_message_path(doing, [&]() -> gyre_status {
    MessageToSend sending;
    GYRE_C_TRY(read_sending(doing, runtime, actor, message, bytes, bytes_size, options, sending));
    GYRE_C_TRY(refuse_room_for_reply(doing, sending));
    const TellOptions limits{sending.timeout, std::chrono::nanoseconds(sending.options.expires_after_ns)};
    return status_of(sending.runtime->client.send_tell_by_number(sending.numbers, key, sending.content,
                                                                 limits, sending.when_full()));
  });
}

gyre_status gyre_tell_with_receipt(gyre_runtime runtime, const char* actor, uint64_t key, uint64_t message,
                                   const void* bytes, size_t bytes_size, const gyre_send_options* options,
                                   gyre_call* call) {
  const char* const doing = "gyre_tell_with_receipt";
  return guarded_on_message_path(doing, [&]() -> gyre_status {
    if (call == nullptr) return invalid(doing, "call is null");
    MessageToSend sending;
    GYRE_C_TRY(read_sending(doing, runtime, actor, message, bytes, bytes_size, options, sending));
    GYRE_C_TRY(refuse_room_for_reply(doing, sending));
    const ReceiptOptions limits{sending.timeout, std::chrono::nanoseconds(sending.options.expires_after_ns)};
    auto sent = sending.runtime->client.send_tell_with_receipt_by_number(
        sending.numbers, key, sending.content, limits, sending.when_full());
    if (!sent) return refuse(sent.error());
    Call told;
    told.future = std::move(sent).value().as<capnp::AnyPointer>();
    told.canceller = told.future.canceller();
    *call = Calls::table().add(std::move(told));
    return GYRE_OK;
  });
}

gyre_status gyre_start_actor(gyre_runtime runtime, const char* actor, uint64_t key, int64_t timeout_ns) {
  return lifecycle("gyre_start_actor", runtime, actor, key, timeout_ns, true);
}
gyre_status gyre_stop_actor(gyre_runtime runtime, const char* actor, uint64_t key, int64_t timeout_ns) {
  return lifecycle("gyre_stop_actor", runtime, actor, key, timeout_ns, false);
}
gyre_status gyre_read_state(gyre_runtime runtime, const char* actor, uint64_t key, int64_t timeout_ns,
                            void* buffer, size_t capacity, size_t* size) {
  const char* const doing = "gyre_read_state";
  return guarded(doing, [&]() -> gyre_status {
    if (size == nullptr) return invalid(doing, "size is null");
    Use<Runtimes> used;
    GYRE_C_TRY(use<Runtimes>(doing, runtime, used));
    std::string_view name;
    GYRE_C_TRY(read_text(doing, "actor", actor, name));
    int64_t ns = 0;
    GYRE_C_TRY(read_timeout(doing, timeout_ns, timeout_of(used->runtime).count(), ns));
    const auto state = used->client.read_state(NamedAddress{name, key}, std::chrono::nanoseconds(ns));
    if (!state) return refuse(state.error());
    return give_bytes(doing, state.value().data(), state.value().size(), buffer, capacity, size);
  });
}
gyre_status gyre_list_actors(gyre_runtime runtime, const char* actor, gyre_actor_cursor* cursor,
                             uint64_t* keys, size_t capacity, size_t* count, int64_t timeout_ns) {
  const char* const doing = "gyre_list_actors";
  return guarded(doing, [&]() -> gyre_status {
    if (cursor == nullptr) return invalid(doing, "cursor is null");
    if (keys == nullptr) return invalid(doing, "keys is null");
    if (count == nullptr) return invalid(doing, "count is null");
    if (capacity == 0) return invalid(doing, "capacity is 0; give room for a key at least");
    Use<Runtimes> used;
    GYRE_C_TRY(use<Runtimes>(doing, runtime, used));
    std::string_view name;
    GYRE_C_TRY(read_text(doing, "actor", actor, name));
    int64_t ns = 0;
    GYRE_C_TRY(read_timeout(doing, timeout_ns, timeout_of(used->runtime).count(), ns));
    ActorPage page;
    if (cursor->ended == 0) {
      auto listed = used->client.list_actors(name, ActorCursor{cursor->worker, cursor->slot, cursor->key},
                                             capacity, std::chrono::nanoseconds(ns));
      if (!listed) return refuse(listed.error());
      page = std::move(listed).value();
    }
    std::copy(page.keys.begin(), page.keys.end(), keys);
    *count = page.keys.size();
    const ActorCursor next = page.next.value_or(ActorCursor{});
    *cursor = {next.worker, next.slot, next.key, page.next ? 0 : 1, 0};
    return GYRE_OK;
  });
}
