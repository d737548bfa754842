// How a message ends whose handler was called.
#pragma once

#include <gyre/device/actor/handlers.hpp>
#include <gyre/device/actor/working_memory.hpp>
#include <gyre/device/context.hpp>
#include <gyre/messages/view.hpp>

namespace gyre {

/// What a handler left behind, in one thread.
struct Handled {
  Status status;
  uint32_t detail;
  uint64_t where;  ///< see ErrorBody::where
  uint32_t response_bytes;
};

namespace detail {

// How a message ends in the calling thread, once its handler has returned. Refers to what the handler worked
// on. handled() computes why a message failed, apart from failure_bits(): the fast path has no branch for it.
class Ending {
 public:
  GYRE_DEVICE Ending(const wire::Message& message, const Context& context, const wire::Body& reply,
                     uint32_t response_capacity)
      : message_(message), context_(context), reply_(reply), response_capacity_(response_capacity) {}

  /// 0 where the message ends well. Bits, not a bool: a lone warp waits longer for a predicate than for a
  /// word.
  GYRE_DEVICE uint32_t failure_bits() const {
    return uint32_t(message_.reason()) | uint32_t(context_.status()) | uint32_t(reply_.full());
  }
  GYRE_DEVICE uint32_t response_bytes() const { return reply_.used_bytes(); }
  GYRE_DEVICE Handled handled() const {
    if (message_.failed()) {
      const wire::Field field = message_.failed_field();
      return {Status::malformed, message_.failed_word(),
              MalformedField::of(field.type_id, uint8_t(message_.reason()), field.index).packed,
              response_bytes()};
    }
    if (context_.status() != Status::ok) {
      return {context_.status(), context_.detail(), context_.where(), response_bytes()};
    }
    if (reply_.full()) return {Status::reply_too_large, response_capacity_, 0, response_bytes()};
    return {Status::ok, 0, 0, response_bytes()};
  }

 private:
  const wire::Message& message_;
  const Context& context_;
  const wire::Body& reply_;
  uint32_t response_capacity_;
};

// Ending of a message to one handler.
template <class Actor, class Request>
struct EndingOf : Ending {
  using Ending::Ending;
  // Its handler answers, and never sends.
  static constexpr bool only_answers = most_sent_by<Actor, Request>() == 0 && requires {
    typename ResponseOf<Actor, Request>::Builder;
  };
};

// Notes why the calling thread failed, if it did. Of several threads the first to set the status counts, with
// all that it says.
GYRE_DEVICE inline void note_failure(MessageVerdict& verdict, const Handled& handled) {
  if (handled.status == Status::ok) return;
  verdict.exceptional = 1;
  if (!HandlerGroup::first_to_set(verdict.status, handled.status)) return;
  verdict.detail = handled.detail;
  verdict.where = handled.where;
}

// What a worker sets in a Context, and reads of it, around a handler or a hook.
class ContextAccess {
 public:
  template <class Actor>
  GYRE_DEVICE static void begin_hook(Context& context) {
    if constexpr (scratch_bytes<Actor>() != 0) {
      context.device_scratch_.begin = rollback_bytes<Actor>() + place_of(context) * scratch_bytes<Actor>();
      context.device_scratch_.bytes = context.device_scratch_.left = scratch_bytes<Actor>();
    }
    if constexpr (shared_scratch_bytes<Actor>() != 0) {
      context.shared_scratch_.begin = place_of(context) * shared_scratch_bytes<Actor>();
      context.shared_scratch_.bytes = context.shared_scratch_.left = shared_scratch_bytes<Actor>();
    }
  }
  template <class Actor>
  GYRE_DEVICE static void begin_handler(Context& context, const wire::Message& message,
                                        const wire::Body& reply, uint32_t response_capacity) {
    begin_hook<Actor>(context);
    context.message_ = &message;
    context.reply_ = &reply;
    context.reply_capacity_ = response_capacity;
  }
  // How the message would end if the handler returned now.
  GYRE_DEVICE static Handled handled(const Context& context) {
    if (context.message_ == nullptr) return {context.status(), context.detail(), context.where(), 0};
    return Ending(*context.message_, context, *context.reply_, context.reply_capacity_).handled();
  }

 private:
  // The message's number in its batch; 0 of a message that is handled alone.
  GYRE_DEVICE static uint64_t place_of(const Context& context) {
    const bool alone = context.verdict_ == &context.shared_->verdict;
    return alone ? 0 : uint64_t(context.verdict_ - context.shared_->batch_verdicts);
  }
};

}  // namespace detail

GYRE_DEVICE inline const void* Context::body_in_hand() const { return message_->body(); }
GYRE_DEVICE inline uint32_t Context::body_in_hand_bytes() const { return message_->body_bytes(); }

// No thread sets the status between the two barriers.
GYRE_DEVICE inline bool Context::ok() {
  detail::note_failure(*verdict_, detail::ContextAccess::handled(*this));
  sync();
  const bool sound = verdict_->status == Status::ok;
  sync();
  return sound;
}

}  // namespace gyre

#include <gyre/device/actor/on_batch.hpp>
