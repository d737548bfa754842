#include <gyre/runtime/nats/requests.hpp>

#include <fmt/format.h>

#include <array>
#include <utility>

namespace gyre::nats::detail {
namespace {

// The empty message as a stream: one segment of one word, a null pointer.
constexpr std::array<std::byte, 16> empty_message{std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0},
                                                  std::byte{1}};

// The server's own subjects, $KV and $JS.API among them, begin so. A node may publish to them, and a client
// may not: without this test a client's reply subject could have the node delete the namespace's data.
constexpr char first_of_server_subjects = '$';

constexpr const char* no_such_node_reason =
    "this node does not own the shard, or its lease has ended; ask again after a second";

void set_header(natsMsg* message, const char* name, std::string_view value) {
  natsMsgHeader_Set(message, name, std::string(value).c_str());
}

// `repeated` receives the name of a header that the message has more than once; null if there is none.
HeaderTexts texts_of(natsMsg* message, const char*& repeated) {
  repeated = nullptr;
  const auto read = [&](const char* name) {
    bool again = false;
    const auto value = header_of(message, name, &again);
    if (again && repeated == nullptr) repeated = name;
    return value;
  };
  return {read(header::type), read(header::key), read(header::timeout), read(header::id),
          read(header::trace)};
}

// Publishes a reply. Returns as Connection::publish().
// @param lease_number  Gyre-Lease; 0: the node does not own the shard
natsStatus publish_reply(Connection& connection, const char* subject, std::string_view id,
                         std::string_view trace, uint64_t lease_number, std::string_view status,
                         std::string_view reason, std::span<const std::byte> body) {
  natsMsg* made = nullptr;
  if (natsMsg_Create(&made, subject, nullptr, reinterpret_cast<const char*>(body.data()), int(body.size())) !=
      NATS_OK) {
    return NATS_NO_MEMORY;
  }
  const Message message(made);
  set_header(made, header::status, status);
  if (!reason.empty()) set_header(made, header::reason, header_text(reason));
  if (!id.empty()) set_header(made, header::id, id);
  if (!trace.empty()) set_header(made, header::trace, trace);
  // Without a lease, so that a client takes it whatever lease it has seen.
  if (lease_number != 0) set_header(made, header::lease, std::to_string(lease_number));
  return connection.publish(made);
}

// Takes the time that a request was held from what it has left; it keeps its timeout if it has none. Returns
// false if nothing is left.
bool spend(uint64_t& timeout_us, int64_t held_ns) {
  const uint64_t held_us = uint64_t(held_ns) / 1000;
  if (timeout_us == 0) return true;
  if (timeout_us <= held_us) return false;
  timeout_us -= held_us;
  return true;
}

bool is_expiry(Status status) { return status == Status::timed_out || status == Status::expired; }

}  // namespace

ActorNames::ActorNames(const ActorSet& actors) {
  std::map<std::string, std::string> types;
  for (const std::string& type : actors.types()) {
    const std::string name = name_in_subject(type);
    if (name == durable_token) {
      throw Error(fmt::format(
          "joining actors to NATS: {} is {} in a subject, which durable tells have; rename it", type, name));
    }
    const auto [other, added] = types.emplace(name, type);
    if (!added) {
      throw Error(
          fmt::format("joining actors to NATS: {} and {} are both {} in a subject; rename one of them",
                      other->second, type, name));
    }
    names_.emplace(name, ActorName(type));
    types_.emplace_back(type);
  }
  for (const ActorDescription& actor : actors.description()) has_state_.push_back(actor.state_bytes != 0);
}

const ActorName* ActorNames::find(std::string_view name_in_subject) const {
  const auto found = names_.find(name_in_subject);
  return found == names_.end() ? nullptr : &found->second;
}

std::string ActorNames::list() const {
  std::string list;
  for (const auto& [name, actor] : names_) list += (list.empty() ? "" : ",") + name;
  return list;
}

Context::Context(const Runtime& runtime, const GatewayOptions& given)
    : options(given),
      subjects(given.namespace_name),
      actors(runtime.actors()),
      client(runtime.client()),
      connection(given.connection, "gyre " + given.node, given.threads) {}

ParsedRequest parse_request(const Context& context, const Shard& shard, natsMsg* message) {
  ParsedRequest parsed;
  const auto refuse = [&](std::string_view status, std::string reason) {
    parsed.status = status;
    parsed.reason = std::move(reason);
    return parsed;
  };
  const char* repeated = nullptr;
  std::string problem = read_headers(texts_of(message, repeated), parsed.headers);
  if (repeated != nullptr) {
    return refuse(status::bad_header, fmt::format("the header {} is repeated; give it once", repeated));
  }
  if (!problem.empty()) return refuse(status::bad_header, std::move(problem));
  const std::string_view name = context.subjects.actor_in(natsMsg_GetSubject(message));
  const ActorName* const actor = context.actors.find(name);
  if (actor == nullptr) {
    return refuse(gyre::name(Status::unknown_actor),
                  fmt::format("no actor type is {} in a subject; there are {}", header_text(name, 64),
                              context.actors.list()));
  }
  const uint32_t shards = uint32_t(context.shards.size());
  const uint32_t right = shard_of(name, parsed.headers.key, shards);
  if (right != shard.number) {
    return refuse(status::wrong_shard, fmt::format("{} with key {} belongs to shard {} of {}, not to {}",
                                                   name, parsed.headers.key, right, shards, shard.number));
  }
  const auto numbers = context.client.numbers_of(*actor, parsed.headers.type);
  if (!numbers) return refuse(gyre::name(numbers.error().status), numbers.error().message());
  parsed.numbers = numbers.value();
  const std::span<const std::byte> body = body_of(message);
  parsed.body = {body.empty() ? std::span<const std::byte>(empty_message) : body, Encoding::stream};
  return parsed;
}

/// An ask that the runtime accepted. Its callback holds it alone, so that the callback fits the future.
struct Requests::Ask {
  std::shared_ptr<Requests> requests;
  Shard& shard;
  uint64_t lease_number;
  std::string reply, id, trace;
};

void Requests::take(Shard& shard, uint64_t group, Message message) {
  const char* const reply = reply_subject_of(message.get());
  context_->counts.add(reply != nullptr ? &GatewayBooks::asks_received : &GatewayBooks::tells_received);
  if (reply != nullptr && *reply == first_of_server_subjects) {
    context_->counts.add(&GatewayBooks::asks_refused);
    return;
  }
  uint64_t lease_number = 0;
  bool alone = false;  // no other node got the message
  {
    const std::lock_guard lock(shard.mutex);
    const bool in_group = shard.group == group;
    // Under the lock: who confirms the lease then serves the shard.
    const bool confirmed = context_->lease_is_confirmed();
    if (shard.state == Shard::State::serving && !confirmed) shard.state = Shard::State::holding;
    if (in_group && shard.state == Shard::State::serving && context_->lease.valid()) {
      lease_number = shard.lease_number;
      shard.in_flight.fetch_add(1, std::memory_order_relaxed);  // the lock orders it before hold()
    } else if (in_group && context_->lease.is_last()) {
      if (shard.state == Shard::State::holding && shard.held.size() < most_held &&
          held_bytes_.load(std::memory_order_relaxed) < most_held_bytes) {
        const size_t bytes = memory_of(message.get());
        shard.held.push_back({std::move(message), lease_clock_ns(), bytes});
        held_bytes_.fetch_add(bytes, std::memory_order_relaxed);
        return;
      }
      alone = confirmed;
    }
  }
  if (lease_number != 0) {
    handle(shard, message.get(), lease_number, 0);
  } else if (alone) {
    refuse_no_such_node(message.get());
  } else {
    count_dropped(message.get());
  }
}

// The request is counted in shard.in_flight; the count is given back once it has its outcome.
void Requests::handle(Shard& shard, natsMsg* message, uint64_t lease_number, int64_t held_ns) {
  ParsedRequest request = parse_request(*context_, shard, message);
  const char* const reply = reply_subject_of(message);
  const bool in_time = spend(request.headers.timeout_us, held_ns);
  const bool to_actor = request.status.empty() && in_time;
  if (to_actor) note_actor(shard, request);
  if (to_actor && reply != nullptr) {
    ask(shard, request, reply, lease_number);
    return;
  }
  if (to_actor) {
    tell(request);
  } else if (request.status.empty()) {
    refuse_expired(message, request.headers, lease_number, held_ns);
  } else {
    refuse_message(message, request.headers, lease_number, request.status, request.reason);
  }
  shard.in_flight.fetch_sub(1, std::memory_order_release);  // pairs with the load of who waits for 0
}

void Requests::ask(Shard& shard, const ParsedRequest& request, const char* reply, uint64_t lease_number) {
  AskOptions options;
  if (request.headers.timeout_us != 0)
    options.timeout = std::chrono::microseconds(request.headers.timeout_us);
  auto ask = std::make_unique<Ask>(Ask{shared_from_this(), shard, lease_number, reply,
                                       std::string(request.headers.id), std::string(request.headers.trace)});
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  auto sent = context_->client.send_ask_by_number(request.numbers, request.headers.key, request.body, options,
                                                  gyre::detail::WhenFull::refuse);
  if (!sent) {
    conclude(*ask, sent.error(), &GatewayBooks::asks_refused);
    return;
  }
  if (lone_asks_.note(lease_clock_ns())) {
    if (sent.value().wait_for(std::chrono::nanoseconds(LoneAsks::pause_ns))) {
      conclude(*ask, sent.value().get());
      return;
    }
    lone_asks_.note_wait(lease_clock_ns());
  }
  std::move(sent.value()).then([ask = std::move(ask)](Result<Reply<capnp::AnyPointer>> outcome) {
    ask->requests->conclude(*ask, outcome);
  });
}

void Requests::note_actor(Shard& shard, const ParsedRequest& request) {
  if (!context_->actors.has_state(request.numbers.actor_type)) return;
  const std::lock_guard lock(shard.mutex);
  shard.actors.emplace(request.numbers.actor_type, request.headers.key);
}

void Requests::note_actors(Shard& shard, std::set<std::pair<uint16_t, uint64_t>> actors) {
  const std::lock_guard lock(shard.mutex);
  shard.actors.merge(actors);
}

std::set<std::pair<uint16_t, uint64_t>> Requests::take_actors(Shard& shard) {
  const std::lock_guard lock(shard.mutex);
  return std::exchange(shard.actors, {});
}

void Requests::tell(const ParsedRequest& request) {
  TellOptions options;
  options.expires_after = std::chrono::microseconds(request.headers.timeout_us);
  const auto told = context_->client.send_tell_by_number(request.numbers, request.headers.key, request.body,
                                                         options, gyre::detail::WhenFull::refuse);
  context_->counts.add(told ? &GatewayBooks::tells_accepted : &GatewayBooks::tells_refused);
}

void Requests::conclude(const Ask& ask, const Result<Reply<capnp::AnyPointer>>& outcome) {
  if (!outcome) {
    conclude(
        ask, outcome.error(),
        is_expiry(outcome.error().status) ? &GatewayBooks::asks_expired : &GatewayBooks::asks_error_replies);
    return;
  }
  const Reply<capnp::AnyPointer>& reply = outcome.value();
  std::vector<std::byte> body;
  if (!reply.body().empty()) body = encode(reply.body(), Encoding::stream);
  const natsStatus sent = publish(ask, gyre::nats::status::ok, {}, body);
  if (sent != NATS_MAX_PAYLOAD) {
    end(ask, sent, &GatewayBooks::asks_answered);
    return;
  }
  const std::string reason = fmt::format(
      "publishing a reply of {} bytes: the server takes {}, headers included; raise its max_payload",
      body.size(), context_->connection.max_payload());
  end(ask, publish(ask, gyre::name(Status::reply_too_large), reason, {}), &GatewayBooks::asks_error_replies);
}

void Requests::conclude(const Ask& ask, const Failure& failure, uint64_t GatewayBooks::*count) {
  end(ask, publish(ask, gyre::name(failure.status), failure.message(), {}), count);
}

// Without the lease another node may own the actor: its outcomes are the ones that hold.
natsStatus Requests::publish(const Ask& ask, std::string_view status, std::string_view reason,
                             std::span<const std::byte> body) {
  if (!context_->lease.valid()) return NATS_ILLEGAL_STATE;
  return publish_reply(context_->connection, ask.reply.c_str(), ask.id, ask.trace, ask.lease_number, status,
                       reason, body);
}

void Requests::end(const Ask& ask, natsStatus sent, uint64_t GatewayBooks::*count) {
  context_->counts.add(sent == NATS_OK ? count : &GatewayBooks::asks_lost);
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
  ask.shard.in_flight.fetch_sub(1, std::memory_order_release);  // pairs with the load of who waits for 0
}

void Requests::refuse_message(natsMsg* message, const RequestHeaders& headers, uint64_t lease_number,
                              std::string_view status, std::string_view reason,
                              uint64_t GatewayBooks::*count) {
  const char* const reply = reply_subject_of(message);
  if (reply == nullptr) {
    context_->counts.add(&GatewayBooks::tells_refused);
    return;
  }
  const bool sent = publish_reply(context_->connection, reply, headers.id, headers.trace, lease_number,
                                  status, reason, {}) == NATS_OK;
  context_->counts.add(sent ? count : &GatewayBooks::asks_lost);
}

void Requests::refuse_expired(natsMsg* message, const RequestHeaders& headers, uint64_t lease_number,
                              int64_t held_ns) {
  refuse_message(message, headers, lease_number, gyre::name(Status::expired),
                 fmt::format("its shard moved or the connection was lost, and it waited {} ms; allow longer",
                             held_ns / 1'000'000),
                 &GatewayBooks::asks_expired);
}

void Requests::refuse_no_such_node(natsMsg* message) {
  RequestHeaders headers;
  const char* repeated = nullptr;
  read_headers(texts_of(message, repeated), headers);  // for what the reply repeats
  refuse_message(message, headers, 0, gyre::nats::status::no_such_node, no_such_node_reason);
}

void Requests::count_dropped(natsMsg* message) {
  context_->counts.add(reply_subject_of(message) != nullptr ? &GatewayBooks::asks_lost
                                                            : &GatewayBooks::tells_refused);
}

void Requests::serve(Shard& shard, uint64_t lease_number) {
  {
    const std::lock_guard lock(shard.mutex);
    shard.lease_number = lease_number;
  }
  resume(shard);
}

void Requests::resume(Shard& shard) {
  for (size_t handled = 0;; ++handled) {
    HeldRequest next;
    uint64_t lease_number = 0;
    {
      const std::lock_guard lock(shard.mutex);
      if (!context_->lease.valid() || !context_->lease_is_confirmed()) return;
      // While messages come faster than this thread handles them, the last ones held do not come first.
      if (shard.held.empty() || handled >= most_held) shard.state = Shard::State::serving;
      if (shard.held.empty()) return;
      lease_number = shard.lease_number;
      next = std::move(shard.held.front());
      shard.held.pop_front();
      held_bytes_.fetch_sub(next.bytes, std::memory_order_relaxed);
      shard.in_flight.fetch_add(1, std::memory_order_relaxed);
    }
    handle(shard, next.message.get(), lease_number, lease_clock_ns() - next.since_ns);
  }
}

void Requests::hold(Shard& shard, uint64_t group) {
  const std::lock_guard lock(shard.mutex);
  shard.state = Shard::State::holding;
  shard.group = group;
}

void Requests::forward(Shard& shard) {
  for (const auto& [message, since_ns, bytes] : end_service(shard)) {
    RequestHeaders headers;
    const char* repeated = nullptr;
    // The new owner refuses headers that cannot be read.
    const bool readable = read_headers(texts_of(message.get(), repeated), headers).empty();
    const int64_t held_ns = lease_clock_ns() - since_ns;
    if (readable && repeated == nullptr && headers.timeout_us != 0) {
      if (!spend(headers.timeout_us, held_ns)) {
        refuse_expired(message.get(), headers, 0, held_ns);
        continue;
      }
      set_header(message.get(), header::timeout, std::to_string(headers.timeout_us));
    }
    const bool wants_reply = reply_subject_of(message.get()) != nullptr;
    const bool sent = context_->connection.publish(message.get()) == NATS_OK;
    if (wants_reply) {
      context_->counts.add(sent ? &GatewayBooks::asks_forwarded : &GatewayBooks::asks_lost);
    } else {
      context_->counts.add(sent ? &GatewayBooks::tells_forwarded : &GatewayBooks::tells_refused);
    }
  }
}

void Requests::refuse(Shard& shard) {
  if (!context_->lease_is_confirmed()) {
    drop(shard, 0);
    return;
  }
  for (const HeldRequest& held : end_service(shard)) refuse_no_such_node(held.message.get());
}

void Requests::drop(Shard& shard, int64_t since_ns) {
  {
    const std::lock_guard lock(shard.mutex);
    shard.group.reset();
  }
  const bool confirmed = context_->lease_is_confirmed();
  for (const HeldRequest& held : end_service(shard)) {
    if (held.since_ns < since_ns && confirmed) {
      refuse_no_such_node(held.message.get());
    } else {
      count_dropped(held.message.get());
    }
  }
}

// Returns the messages that the shard holds.
std::deque<HeldRequest> Requests::end_service(Shard& shard) {
  const std::lock_guard lock(shard.mutex);
  shard.state = Shard::State::away;
  for (const HeldRequest& held : shard.held) held_bytes_.fetch_sub(held.bytes, std::memory_order_relaxed);
  return std::exchange(shard.held, {});
}

}  // namespace gyre::nats::detail
