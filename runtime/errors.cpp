#include <fmt/format.h>
#include <gyre/bridge/errors/catalogue.hpp>
#include <gyre/device/buffer.hpp>
#include <gyre/messages/buffer.view.hpp>
#include <gyre/messages/wire.hpp>
#include <gyre/runtime/errors.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <memory>

namespace gyre {

std::string_view name(Status status) {
  if (const ErrorEntry* const entry = find_error(ErrorSource::gyre, uint32_t(status))) return entry->name;
  return "unknown status";
}

namespace {

std::string_view text_of(wire::Malformed reason) {
  switch (reason) {
    case wire::Malformed::none:
      return "is no message in this encoding";
    case wire::Malformed::out_of_bounds:
      return "points out of the message";
    case wire::Malformed::not_a_struct:
      return "does not point at a struct of this message";
    case wire::Malformed::not_a_list:
      return "does not point at a list of this message";
    case wire::Malformed::wrong_elements:
      return "points at a list of other elements";
    case wire::Malformed::bad_tag:
      return "points at a list whose structs overrun it";
    case wire::Malformed::bad_text:
      return "points at a Text without a 0 at its end";
    case wire::Malformed::too_deep:
      return "is nested more than 64 deep";
    case wire::Malformed::traversal:
      return "leads through more words than may be read in all (keep a list that a getter gave instead of "
             "asking for it again; or give the actor a larger traversal_words)";
  }
  return "is wrong";
}

std::string malformed_text(const Failure& failure) {
  const auto reason = wire::Malformed(failure.malformed_reason);
  if (reason == wire::Malformed::none) {
    return "reading a message: the bytes are no Cap'n Proto message in the encoding they were said to have; "
           "check who made them";
  }
  const std::string where = failure.struct_name == nullptr ? std::string("a pointer")
                            : failure.field_name == nullptr
                                ? fmt::format("the root pointer of {}", failure.struct_name)
                                : fmt::format("field {} of {}", failure.field_name, failure.struct_name);
  return fmt::format("reading a message: {}, at word {} of the body, {}; check who made it", where,
                     failure.detail, text_of(reason));
}

std::string_view name_of(uint64_t element) {
  constexpr std::string_view names[] = {"none",   "int8",  "uint8",  "int16",   "uint16", "int32",
                                        "uint32", "int64", "uint64", "float32", "float64"};
  static_assert(std::size(names) == size_t(messages::view::ElementType::FLOAT64) + 1);
  return element < std::size(names) ? names[element] : "unknown";
}

std::string bad_buffer_text(const Failure& failure) {
  const BadHandle bad = BadHandle::of(failure.detail, 0);
  const uint64_t asked = failure.asked, there = failure.limit;
  const std::string handle = fmt::format("handling a message: a buffer's handle (index {}) ", bad.index);
  switch (bad.fault) {
    case BufferFault::none:
      break;
    case BufferFault::foreign:
      if (asked == 0) return "handling a message: a buffer's handle was never set; use Buffer::set";
      return handle +
             fmt::format(
                 "is of another runtime (tag {:#x}, here {:#x}); send it to the runtime that made the buffer",
                 asked, there);
    case BufferFault::no_such_index:
      return handle + fmt::format("names no buffer: there may be {}; fill handles with Buffer::set", there);
    case BufferFault::stale:
      return handle + fmt::format(
                          "is stale: its buffer was freed (generation {}, now {}); keep the Buffer until the "
                          "reply has come",
                          asked, there);
    case BufferFault::wrong_type:
      return handle +
             fmt::format("is of {} elements, and the handler wants {}; allocate a buffer of that type",
                         name_of(there), name_of(asked));
    case BufferFault::read_only:
      return handle + fmt::format(
                          "is of a read-only buffer, and the handler may write; ask for "
                          "Context::buffer<const T> in the handler, or copy the elements to a buffer");
    case BufferFault::too_short:
      return handle + fmt::format(
                          "is too short: {} elements are wanted, and there are {}; allocate a larger buffer, "
                          "or ask for less",
                          asked, there);
  }
  return handle + "is not good for what the handler wants of it";
}

std::string too_large_text(const Failure& failure) {
  if (failure.detail == Failure::unpacks_to_too_much) {
    return fmt::format(
        "reading a packed message: it claims to unpack to {} bytes, and so few packed bytes may unpack to {} "
        "at most; send it unpacked, as a stream",
        failure.asked, failure.limit);
  }
  return fmt::format(
      "sending a message: it needs at least {} bytes, its reply's room included, and the most there can be "
      "is {}; launch with larger --arena-bytes (and --slot-bytes of 128 at least)",
      failure.asked, failure.limit);
}

std::string engine_failed_text(const Failure& failure) {
  const char* const message = failure.struct_name == nullptr ? "of an unknown type" : failure.struct_name;
  const std::string busy_with =
      failure.actor_name == nullptr
          ? std::string()
          : fmt::format(" (its worker was last busy with {}, message {})", failure.actor_name, message);
  return fmt::format("the engine failed while the message was in flight{}; Runtime::failure() says why",
                     busy_with);
}

std::string actor_table_full_text(const Failure& failure) {
  if (failure.actor_name != nullptr) {
    return fmt::format(
        "handling a message: its worker has all the {} actors of type {} that the type allows "
        "(max_per_worker); stop some, launch with more --workers, or raise the type's max_per_worker",
        failure.limit, failure.actor_name);
  }
  return fmt::format(
      "handling a message: its worker has all the {} actors of that type it has room for; stop some, or "
      "launch with larger --actors-per-worker",
      failure.limit);
}

std::string text_of(const Failure& failure) {
  switch (failure.status) {
    case Status::ok:
      return "nothing failed";
    case Status::ring_full:
      return fmt::format(
          "sending a message: the worker's ring had no room for it within {} us (it has {} slots); read "
          "replies, send less, or launch with more --slots",
          failure.asked, failure.limit);
    case Status::call_table_full:
      return fmt::format(
          "sending a request: all {} call slots are taken by requests in flight and replies not yet "
          "released; read and release replies, or launch with more --slots",
          failure.limit);
    case Status::too_large:
      return too_large_text(failure);
    case Status::unknown_actor:
      return "addressing a message: the actor type is not in the actor set that was launched; add it to "
             "ActorSet::of<…>()";
    case Status::nested_fill:
      return "building a message: the fill function sent a message of its own; send it before or after";
    case Status::draining:
      return "using the runtime: it is draining or drained, accepts no more messages, and can only be "
             "terminated; launch a new one";
    case Status::terminated:
      return "the runtime has terminated: the message was not delivered or not answered; launch a new "
             "runtime";
    case Status::engine_failed:
      return engine_failed_text(failure);
    case Status::arena_full:
      return fmt::format(
          "sending a message larger than a slot: the arena has no room for {} bytes now (it has {} in "
          "all); read and release replies, send less at a time, or launch with larger --arena-bytes",
          failure.asked, failure.limit);
    case Status::timed_out:
      return fmt::format(
          "waiting for a reply: none came within {} us; the handler may be slow or the worker busy",
          failure.limit);
    case Status::malformed:
      return malformed_text(failure);
    case Status::unknown_message:
      return "handling a message: the actor has no handler for its type; add an on(…) for it, or send "
             "another";
    case Status::reply_too_large:
      return fmt::format(
          "answering a message: the response does not fit the {} bytes there are for it; ask with larger "
          "AskOptions::max_reply_bytes, have the actor say a larger max_reply_bytes, or launch with larger "
          "--max-reply-bytes or --slot-bytes",
          failure.limit);
    case Status::handler_failed:
      return fmt::format("handling a message: the handler failed with code {}", failure.detail);
    case Status::forked:
      return "using a runtime after fork(): its workers belong to the parent process; launch a runtime in "
             "the child, or fork before launching";
    case Status::check_failed:
      return fmt::format(
          "handling a message: a GYRE_CHECK did not hold, {} line {}",
          failure.file == nullptr ? "in a file that is not among the actors' sources," : failure.file,
          failure.detail);
    case Status::expired:
      return fmt::format(
          "handling a message: its deadline had passed {} us before the worker came to it; send less, or "
          "allow longer",
          failure.detail);
    case Status::inactive:
      return "handling a message: the runtime is deactivated; call Runtime::activate()";
    case Status::no_such_actor:
      if (failure.detail == 1)
        return "reading an actor: none of its type lives at its key, and reading creates none; send it a "
               "message first, or start it with Client::start";
      if (failure.detail == 2)
        return "reading actors: their type has no state, so no worker keeps any; read actors of a type with "
               "data members";
      return "handling a message: no actor lives at its key, and this type is not created by messages; "
             "start it with Client::start";
    case Status::actor_table_full:
      return actor_table_full_text(failure);
    case Status::bad_buffer:
      return bad_buffer_text(failure);
    case Status::scratch_full:
      return fmt::format(
          "handling a message: the handler wants {} bytes of scratch memory, and its actor says that it "
          "needs {}; have the actor say a larger scratch_bytes (for shared memory shared_scratch_bytes)",
          failure.asked, failure.limit);
    case Status::mailbox_full:
      return fmt::format(
          "forwarding a message to another actor: worker {} has no memory to keep more; launch with more "
          "--spill-bytes, or let actors send less than they receive",
          failure.detail);
    case Status::open_calls_full:
      return fmt::format(
          "handling a message: the handler asks another actor, or promises an answer, and its worker has {} "
          "such calls open already; launch with more --workers, or have actors wait for replies before they "
          "ask again",
          failure.detail);
    case Status::timers_full:
      return fmt::format(
          "handling a message: the handler sets a timer, and its worker has {} already; launch with more "
          "--workers, or have actors cancel timers that they do not need",
          failure.detail);
    case Status::subscriptions_full:
      return fmt::format(
          "handling a message: the handler subscribes to a topic, and its worker has {} subscriptions "
          "already; launch with more --workers, or have actors unsubscribe from topics that they do not need",
          failure.detail);
    case Status::body_pool_full:
      return fmt::format(
          "sending a message between actors that does not fit a slot: worker {} found no free memory for its "
          "body, for the actor with key {:#x}; launch with more --body-pool-bytes, with smaller "
          "--body-bytes, "
          "or with larger --slot-bytes, or let fewer such messages wait",
          failure.detail, failure.asked);
    case Status::actor_stopped:
      return "waiting for a reply: the actor that was to answer later was stopped before; stop it after it "
             "has answered";
    case Status::buffer_lost:
      return "using a buffer: the engine process that had it is gone, and its content with it; allocate "
             "another "
             "after Runtime::relaunch()";
    case Status::cancelled:
      return "waiting for a reply: its sender cancelled the ask; a worker may handle it all the same";
    case Status::worker_stuck:
      return fmt::format(
          "waiting for the workers: one did not answer within {} ms; a handler is slow or does not return. "
          "Wait longer, or have it ask ctx.should_stop()",
          failure.limit);
  }
  return "an unknown failure";
}

}  // namespace

// Without a lock, which a thread that fork() does not copy could hold; never destroyed.
const char* static_text(std::string_view text) noexcept try {
  struct Entry {
    const std::string text;
    const Entry* next;
  };
  static constinit std::array<std::atomic<const Entry*>, 256> lists{};
  std::atomic<const Entry*>& list = lists[std::hash<std::string_view>()(text) % lists.size()];
  std::unique_ptr<Entry> made;
  // Pairs with the exchange below, as that exchange's own acquire: the entries are whole.
  const Entry* first = list.load(std::memory_order_acquire);
  for (;;) {
    for (const Entry* entry = first; entry != nullptr; entry = entry->next) {
      if (entry->text == text) return entry->text.c_str();
    }
    if (!made) made.reset(new Entry{std::string(text), nullptr});
    made->next = first;
    if (list.compare_exchange_weak(first, made.get(), std::memory_order_release, std::memory_order_acquire))
      return made.release()->text.c_str();
  }
} catch (const std::bad_alloc&) {
  return nullptr;
}

std::string Failure::message() const { return fmt::format("{}: {}", name(status), text_of(*this)); }

}  // namespace gyre
