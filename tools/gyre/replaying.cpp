#include "replaying.hpp"

#include <capnp/dynamic.h>
#include <fmt/format.h>
#include <kj/exception.h>
#include <kj/string.h>
#include <gyre/testing.hpp>

#include <algorithm>
#include <set>
#include <unordered_map>

namespace gyre::tools {

namespace {

using testing::Order;
using testing::SteppedRuntime;

// No outcome is to come from the time that a step takes.
constexpr std::chrono::hours patience{24 * 365};

// Whether an outcome came from the run: its load, its time, its end.
bool is_of_the_run(Status status) {
  switch (status) {
    case Status::timed_out:
    case Status::expired:
    case Status::cancelled:
    case Status::inactive:
    case Status::terminated:
    case Status::engine_failed:
    case Status::draining:
      return true;
    default:
      return false;
  }
}

Options options_of(const Recording& recording) {
  Options options;
  options.engine = EngineKind::cpu;
  options.workers = recording.workers;
  options.slot_bytes = recording.slot_bytes;
  options.arena_bytes = recording.arena_bytes;
  options.max_reply_bytes = recording.max_reply_bytes;
  options.actors_per_worker = recording.actors_per_worker;
  options.spill_bytes = recording.spill_bytes;
  options.body_bytes = recording.body_bytes;
  options.body_pool_bytes = recording.body_pool_bytes;
  options.region_budget = ~uint64_t(0);
  return options;
}

uint32_t numbers_of(uint16_t actor_type, uint16_t message_type) {
  return uint32_t(actor_type) << 16 | message_type;
}

// The recorded numbers' handlers here.
std::map<uint32_t, Handler> handlers_of(const Recording& recording, const ActorSet& actors) {
  std::map<uint32_t, Handler> handlers;
  std::string missing;
  for (const RecordedHandler& recorded : recording.handlers) {
    const Handler* const found = actors.find(ActorName(recorded.actor).id(), recorded.request);
    if (found != nullptr) {
      handlers.emplace(numbers_of(recorded.actor_type, recorded.message_type), *found);
    } else {
      missing +=
          fmt::format("  {}, message {} ({:#018x})\n", recorded.actor,
                      recorded.message.empty() ? "of no known name" : recorded.message, recorded.request);
    }
  }
  if (!missing.empty()) {
    throw BadOptions(
        "replaying a recording: these actors have no such handlers; give those of the program by "
        "--actors:\n" +
        missing);
  }
  return handlers;
}

// The message as text by its schema, or what is known of it.
std::string text_of(std::span<const std::byte> body, capnp::StructSchema schema) {
  if (schema == capnp::StructSchema()) return fmt::format("{} bytes", body.size());
  if (body.empty()) return "()";
  try {
    SegmentReader message(reinterpret_cast<const capnp::word*>(body.data()),
                          body.size() / sizeof(capnp::word));
    return kj::str(message.getRoot<capnp::DynamicStruct>(schema)).cStr();
  } catch (const kj::Exception&) {
    return fmt::format("{} bytes that are no message", body.size());
  }
}

std::string short_text(std::string text) {
  constexpr size_t most = 200;
  if (text.size() > most) text = text.substr(0, most) + "…";
  return text;
}

// How a message ended, here or in the recording.
struct Ending {
  Status status = Status::ok;
  uint32_t detail = 0;
  std::vector<std::byte> body;

  std::string text(capnp::StructSchema schema) const {
    if (status == Status::ok) return short_text(text_of(body, schema));
    return detail == 0 ? std::string(name(status)) : fmt::format("{} ({})", name(status), detail);
  }
};

class Replayer {
 public:
  Replayer(const Recording& recording, const ActorSet& actors, const ReplayOptions& options)
      : recording_(recording),
        options_(options),
        handlers_(handlers_of(recording, actors)),
        kit_(actors, options_of(recording),
             options.seed ? Order::random(*options.seed) : Order::round_robin()),
        client_(kit_.client()) {}

  Replay run() {
    for (const RecordedEvent& event : recording_.events)
      std::visit([this](const auto& recorded) { replay(recorded); }, event);
    replay_.steps += kit_.run_until_idle();
    return std::move(replay_);
  }

 private:
  // A message whose outcome is to come.
  struct Open {
    const RecordedMessage* message;
    std::optional<Ending> ended;  // of what ended at once
    Future<Reply<capnp::AnyPointer>> reply;
    Future<Receipt> receipt;

    bool ready() const { return ended || (reply.ready() && receipt.ready()); }
  };

  void replay(const RecordedMessage& message) {
    pass_until(message.time_ns);
    ++replay_.sent;
    Open open{&message, {}, {}, {}};
    if (message.message_type == lifecycle_message::start || message.message_type == lifecycle_message::stop) {
      open.ended = start_or_stop(message);
    } else {
      send(message, numbers_here(message), open);
    }
    open_.emplace(message.number, std::move(open));
  }
  void replay(const RecordedOutcome& outcome) {
    pass_until(outcome.time_ns);
    const auto found = open_.find(outcome.number);
    if (found == open_.end()) return;
    Open open = std::move(found->second);
    open_.erase(found);
    if (is_of_the_run(outcome.status)) {
      ++replay_.not_compared[outcome.status];
      return;
    }
    const Ending recorded{outcome.status, outcome.detail, {outcome.body.begin(), outcome.body.end()}};
    compare(open, recorded);
  }
  void replay(const RecordedRelaunch&) {
    open_.clear();
    kit_.fail_engine("the recorded program launched its engine again");
    kit_.runtime().relaunch();
  }

  void pass_until(uint64_t time_ns) {
    const auto time = std::chrono::nanoseconds(int64_t(time_ns));
    if (time > kit_.now()) kit_.advance(time - kit_.now());
  }
  Ending start_or_stop(const RecordedMessage& message) {
    std::string_view actor;
    for (const RecordedHandler& handler : recording_.handlers) {
      if (handler.actor_type == message.actor_type) actor = handler.actor;
    }
    const NamedAddress address{actor, message.key};
    const auto done = message.message_type == lifecycle_message::start ? client_.start(address, patience)
                                                                       : client_.stop(address, patience);
    return done ? Ending{} : Ending{done.error().status, done.error().detail, {}};
  }
  // Of a message that no actor knew, numbers that none has.
  MessageNumbers numbers_here(const RecordedMessage& message) const {
    constexpr uint16_t nobodys = 0xff00;
    MessageNumbers numbers{nobodys, nobodys};
    for (const auto& [recorded, handler] : handlers_) {
      if (recorded >> 16 != message.actor_type) continue;
      numbers.actor_type = handler.actor_type;
      if (uint16_t(recorded) != message.message_type) continue;
      return {handler.actor_type, handler.message_type, handler.max_reply_bytes};
    }
    return numbers;
  }
  // Blocks by stepping the workers where a ring is full.
  void send(const RecordedMessage& message, const MessageNumbers& numbers, Open& open) {
    const Encoded content{message.body, Encoding::body};
    const auto wait = detail::WhenFull::wait;
    Failure refusal{Status::ok};
    switch (message.kind) {
      case messages::recording::Kind::ASK: {
        auto sent = client_.send_ask_by_number(numbers, message.key, content, AskOptions{patience, 0}, wait);
        if (!sent) refusal = sent.error();
        if (sent) open.reply = std::move(sent.value());
        break;
      }
      case messages::recording::Kind::RECEIPT: {
        auto sent = client_.send_tell_with_receipt_by_number(numbers, message.key, content,
                                                             ReceiptOptions{.timeout = patience}, wait);
        if (!sent) refusal = sent.error();
        if (sent) open.receipt = std::move(sent.value());
        break;
      }
      case messages::recording::Kind::TELL:
        if (const auto sent =
                client_.send_tell_by_number(numbers, message.key, content, TellOptions{patience, {}}, wait);
            !sent)
          refusal = sent.error();
        break;
    }
    if (refusal.status != Status::ok) open.ended = Ending{refusal.status, refusal.detail, {}};
  }

  void compare(Open& open, const Ending& recorded) {
    const RecordedMessage& message = *open.message;
    capnp::StructSchema request, response;
    if (const auto found = handlers_.find(numbers_of(message.actor_type, message.message_type));
        found != handlers_.end()) {
      request = schema_of(found->second.request_schema, found->second.request);
      response = schema_of(found->second.response_schema, found->second.response);
    }
    std::optional<std::string> difference;
    try {
      while (!open.ready() && kit_.step()) ++replay_.steps;
      // Where no worker can move, it lets time pass until the next timer is due.
      const Ending replayed = ending_of(open);
      if (replayed.status == Status::bad_buffer) {
        ++replay_.without_buffers;
        return;
      }
      difference = difference_of(message.number, replayed, recorded, response);
    } catch (const Error& error) {
      difference = fmt::format("recorded {}, replayed no outcome: {}", recorded.text(response), error.what());
    }
    ++replay_.compared;
    if (!difference) ++replay_.same;
    if (!difference || replay_.differences.size() >= options_.most) return;
    replay_.differences.push_back(fmt::format("message {}, {} of {} {}, {} {}: {}", message.number,
                                              message.kind == messages::recording::Kind::ASK ? "ask" : "tell",
                                              actor_name(message), message.key, message_name(message),
                                              short_text(text_of(message.body, request)), *difference));
  }
  capnp::StructSchema schema_of(capnp::StructSchema known, uint64_t id) const {
    if (known != capnp::StructSchema() || options_.schemas == nullptr || id == 0) return known;
    return options_.schemas->of(id);
  }
  // Empty if they are the same.
  std::optional<std::string> difference_of(uint64_t number, const Ending& replayed, const Ending& recorded,
                                           capnp::StructSchema schema) const {
    const bool same_end = replayed.status == recorded.status && replayed.detail == recorded.detail;
    if (same_end && replayed.body == recorded.body) return std::nullopt;
    if (same_end && schema != capnp::StructSchema()) {
      try {
        const auto field = different_field(number, replayed, recorded, schema);
        if (!field) return std::nullopt;
        return fmt::format("{} recorded {}, replayed {}", field->path, short_text(field->reference),
                           short_text(field->tested));
      } catch (const kj::Exception&) {  // one is no message of the schema
      }
    }
    return fmt::format("recorded {}, replayed {}", recorded.text(schema), replayed.text(schema));
  }
  std::optional<Difference> different_field(uint64_t number, const Ending& replayed, const Ending& recorded,
                                            capnp::StructSchema schema) const {
    SegmentReader here(words_of(replayed.body), replayed.body.size() / sizeof(capnp::word));
    SegmentReader there(words_of(recorded.body), recorded.body.size() / sizeof(capnp::word));
    Comparison comparison(options_.tolerance, options_.ignored);
    comparison.add(number, here.getRoot<capnp::DynamicStruct>(schema),
                   there.getRoot<capnp::DynamicStruct>(schema));
    return comparison.first();
  }
  static const capnp::word* words_of(const std::vector<std::byte>& body) {
    return reinterpret_cast<const capnp::word*>(body.data());
  }
  Ending ending_of(Open& open) {
    if (open.ended) return *open.ended;
    if (open.message->kind == messages::recording::Kind::RECEIPT) {
      const auto receipt = open.receipt.get();
      return receipt ? Ending{} : Ending{receipt.error().status, receipt.error().detail, {}};
    }
    const auto reply = open.reply.get();
    if (!reply) return {reply.error().status, reply.error().detail, {}};
    const auto body = reply.value().body();
    return {Status::ok, 0, {body.begin(), body.end()}};
  }
  const RecordedHandler* handler_of(const RecordedMessage& message) const {
    for (const RecordedHandler& handler : recording_.handlers) {
      if (handler.actor_type == message.actor_type && handler.message_type == message.message_type)
        return &handler;
    }
    return nullptr;
  }
  std::string actor_name(const RecordedMessage& message) const {
    for (const RecordedHandler& handler : recording_.handlers) {
      if (handler.actor_type == message.actor_type) return handler.actor;
    }
    return fmt::format("actor type {}", message.actor_type);
  }
  std::string message_name(const RecordedMessage& message) const {
    if (message.message_type == lifecycle_message::start) return "start";
    if (message.message_type == lifecycle_message::stop) return "stop";
    const RecordedHandler* const handler = handler_of(message);
    return handler == nullptr || handler->message.empty() ? fmt::format("#{}", message.message_type)
                                                          : handler->message;
  }

  const Recording& recording_;
  const ReplayOptions& options_;
  const std::map<uint32_t, Handler> handlers_;
  SteppedRuntime kit_;
  Client client_;
  std::unordered_map<uint64_t, Open> open_;
  Replay replay_;
};

}  // namespace

Replay replay(const Recording& recording, const ActorSet& actors, const ReplayOptions& options) {
  return Replayer(recording, actors, options).run();
}

}  // namespace gyre::tools
