// What became of a message: the one list of outcomes that workers, error replies and results use.
#pragma once

#include <gyre/messages/fixed_width.hpp>

namespace gyre {

/// The outcome of a message or an operation. Values travel in error replies and stand in the C interface:
/// they are never renumbered. What each means, with numbers and a remedy, is said by
/// gyre::Failure::message().
///
/// One list, though workers answer only the first group: Failure, Error, gyre.h and the error catalogue take
/// any of them, and handlers compare Context::status() with the same type. A list of its own for workers
/// would repeat that group, and every reply would convert between the two.
enum class Status : uint32_t {
  ok = 0,
  // What a worker answers: in an error reply, or in the report of a tell that failed.
  unknown_actor = 4,        ///< the actor type is not in the launched actor set; the client refuses it first
  malformed = 21,           ///< the body is not a valid Cap'n Proto message; of Encoded bytes also a refusal
  unknown_message = 22,     ///< the actor has no handler for the message type
  reply_too_large = 23,     ///< the handler's response does not fit the room that its ask made for it
  handler_failed = 24,      ///< the handler called Context::fail
  check_failed = 25,        ///< a GYRE_CHECK in the handler did not hold
  expired = 26,             ///< the message's deadline had passed before a worker took it: it was not handled
  inactive = 27,            ///< the runtime is deactivated: the message was taken and not handled
  no_such_actor = 28,       ///< no actor lives at that key, and messages do not create one
  actor_table_full = 29,    ///< the worker has no room for another actor of that type
  bad_buffer = 30,          ///< a buffer's handle is stale, another runtime's, too short, or of another type
  scratch_full = 32,        ///< the handler asked for more scratch memory than its actor says it needs
  mailbox_full = 34,        ///< no memory to keep a message between actors: it was refused
  open_calls_full = 35,     ///< the handler asked or promised more than its worker has room for
  actor_stopped = 36,       ///< the actor that was to answer later was stopped before
  timers_full = 37,         ///< the handler set a timer that its worker has no room for
  subscriptions_full = 38,  ///< the handler subscribed to a topic, and its worker has no room for more
  body_pool_full = 39,       ///< no memory for the body of a message between actors that does not fit a slot
  // The host's own, which never cross the bus. Refused by the client: nothing was accepted, nothing was sent.
  ring_full = 1,  ///< no room in the worker's H2D ring (or in its prepaid D2H ring) within the time allowed
  call_table_full = 2,  ///< every call slot is taken by a call in flight or a reply that nobody released
  too_large = 3,        ///< the request's body does not fit the arena, or the reply's room does not
  nested_fill = 5,      ///< a fill function sent a message of its own
  draining = 6,         ///< the runtime accepts no more messages
  arena_full = 9,       ///< no room in the arena for a body larger than a slot within the time allowed
  // The host's own: outcomes of an accepted message or of an operation on the whole runtime.
  terminated = 7,     ///< the runtime has ended
  engine_failed = 8,  ///< the engine died; its cause is in Runtime::failure()
  buffer_lost = 33,   ///< the engine process that had the buffer is gone
  forked = 10,        ///< the process was forked: the workers are the parent's
  timed_out = 20,     ///< no reply before the deadline
  cancelled = 31,     ///< the ask was given up by its sender; a worker may handle it all the same
  worker_stuck = 40,  ///< a worker did not answer a control command before its deadline
};

}  // namespace gyre
