// What clients read of actors without a message to them.
#include <gyre/runtime/client.hpp>

#include <algorithm>
#include <cstring>

namespace gyre {

namespace {

using detail::Core;
using Slot = ActorTableLayout::Slot;

// Slots that a worker copies for one answer, between two messages.
constexpr uint32_t slots_at_once = 1000;

// Of Failure::detail, with no_such_actor: see errors.cpp.
constexpr uint32_t has_no_state = 2;

class Reading {
 public:
  Reading(Core& core, ActorName type, std::chrono::nanoseconds timeout)
      : core_(core), type_(core.actors().type_number(type.id())), timeout_(timeout) {}

  /// What keeps the type from being read.
  Failure refusal() const {
    if (!type_) return Failure{Status::unknown_actor};
    return state_bytes() == 0 ? Failure{Status::no_such_actor, has_no_state} : Failure{};
  }
  /// In a table: rounded up to 16.
  uint32_t state_bytes() const { return core_.actors().description()[*type_].state_bytes; }
  uint32_t slots_to_begin_with() const {
    const uint32_t in_slot = slots_in(core_.shape().body_capacity());
    return core_.arena().could_hold(0, bytes_of(slots_at_once)) ? std::max(in_slot, slots_at_once) : in_slot;
  }

  Result<std::vector<std::byte>> state(uint64_t key) {
    return ask(core_.worker_of(key), Control::read_state, key, uint32_t(sizeof(ActorsRead)) + state_bytes());
  }
  Result<std::vector<std::byte>> slots(uint32_t worker, SlotRange range) {
    return ask(worker, Control::read_slots, range.key(), bytes_of(range.count));
  }

 private:
  static uint32_t bytes_of(uint32_t slots) { return uint32_t(sizeof(ActorsRead) + slots * sizeof(Slot)); }
  static uint32_t slots_in(uint32_t bytes) {
    return bytes < bytes_of(1) ? 1 : uint32_t((bytes - sizeof(ActorsRead)) / sizeof(Slot));
  }

  Result<std::vector<std::byte>> ask(uint32_t worker, Control what, uint64_t key, uint32_t reply_bytes) {
    const int64_t now_ns = detail::host_now_ns();
    if (deadline_ns_ == 0) deadline_ns_ = detail::after(now_ns, timeout_);
    const std::chrono::nanoseconds left(std::max<int64_t>(1, deadline_ns_ - now_ns));
    auto body = core_.read_actors({worker, *type_, uint16_t(what), key}, {left, reply_bytes});
    // Every answer has these; anything else came of memory that was overwritten.
    if (body && body.value().size() < sizeof(ActorsRead)) return Failure{Status::malformed};
    return body;
  }

  Core& core_;
  const std::optional<uint16_t> type_;
  const std::chrono::nanoseconds timeout_;
  int64_t deadline_ns_ = 0;
};

ActorsRead head_of(const std::vector<std::byte>& body) {
  ActorsRead head;
  std::memcpy(&head, body.data(), sizeof head);
  return head;
}

std::vector<Slot> slots_of(const std::vector<std::byte>& body) {
  std::vector<Slot> slots((body.size() - sizeof(ActorsRead)) / sizeof(Slot));
  if (!slots.empty())
    std::memcpy(slots.data(), body.data() + sizeof(ActorsRead), slots.size() * sizeof(Slot));
  return slots;
}

// A key, and the slot where it would lie in an empty table. It never changes while its actor lives, though
// the actor may move to other slots: so a listing goes by it.
struct Placed {
  uint32_t home;
  uint64_t key;
  auto operator<=>(const Placed&) const = default;
};

// The actors of one worker whose home is `from.slot` or one behind it, as far as one answer shows all of
// them.
struct PartOfTable {
  std::vector<Placed> actors;  // sorted
  uint32_t end = 0;            // all with homes below it are there; 0: all of the worker's
};

// An actor lies at its home or behind it, with no empty slot between (ActorTable): of the slots from `first`
// to an empty one, all actors with homes between these two are there.
Result<PartOfTable> read_part(Reading& reading, const ActorCursor& from) {
  for (uint32_t count = reading.slots_to_begin_with();; count *= 2) {
    const auto body = reading.slots(from.worker, {from.slot, count});
    if (!body) return body.error();
    const uint32_t all = head_of(body.value()).slots;
    const std::vector<Slot> slots = slots_of(body.value());
    PartOfTable part;
    if (from.slot >= all) return part;  // a cursor of another runtime
    const auto last_empty =
        std::find_if(slots.rbegin(), slots.rend(), [](const Slot& s) { return s.state == 0; });
    const auto seen = uint64_t(slots.rend() - last_empty);  // up to that one
    const bool whole_table = slots.size() >= all;
    if (seen == 0 && !whole_table) continue;
    const uint64_t end = whole_table ? all : std::min<uint64_t>(from.slot + seen, all);
    for (const Slot& slot : slots) {
      const Placed actor{ActorTableLayout::home_of(slot.key, all), slot.key};
      if (slot.state != 0 && actor.home < end && Placed{from.slot, from.key} <= actor)
        part.actors.push_back(actor);
    }
    std::sort(part.actors.begin(), part.actors.end());
    part.end = end == all ? 0 : uint32_t(end);
    return part;
  }
}

}  // namespace

Result<std::vector<std::byte>> Client::read_state(const NamedAddress& to,
                                                  std::optional<std::chrono::nanoseconds> timeout) const {
  const detail::Entered core(*incarnations_);
  Reading reading(*core, to.actor, timeout.value_or(core->options().timeout));
  if (const Failure refusal = reading.refusal(); refusal.status != Status::ok) return refusal;
  auto body = reading.state(to.key);
  if (!body) return body;
  std::vector<std::byte>& bytes = body.value();
  const uint32_t state_bytes = head_of(bytes).bytes;
  bytes.erase(bytes.begin(), bytes.begin() + sizeof(ActorsRead));
  bytes.resize(std::min<size_t>(state_bytes, bytes.size()));
  return body;
}

Result<ActorPage> Client::list_actors(ActorName type, const ActorCursor& from, size_t most,
                                      std::optional<std::chrono::nanoseconds> timeout) const {
  const detail::Entered core(*incarnations_);
  Reading reading(*core, type, timeout.value_or(core->options().timeout));
  if (const Failure refusal = reading.refusal(); refusal.status != Status::ok) return refusal;
  most = std::max<size_t>(most, 1);
  ActorPage page;
  ActorCursor at = from;
  while (at.worker < core->layout().workers) {
    const auto part = read_part(reading, at);
    if (!part) return part.error();
    for (const Placed& actor : part.value().actors) {
      if (page.keys.size() == most) {
        page.next = ActorCursor{at.worker, actor.home, actor.key};
        return page;
      }
      page.keys.push_back(actor.key);
    }
    at = part.value().end == 0 ? ActorCursor{at.worker + 1} : ActorCursor{at.worker, part.value().end};
  }
  return page;
}

Result<uint64_t> Client::count_actors(ActorName type, std::optional<std::chrono::nanoseconds> timeout) const {
  const detail::Entered core(*incarnations_);
  Reading reading(*core, type, timeout.value_or(core->options().timeout));
  if (const Failure refusal = reading.refusal(); refusal.status != Status::ok) return refusal;
  uint64_t count = 0;
  for (uint32_t worker = 0; worker < core->layout().workers; ++worker) {
    const auto body = reading.slots(worker, {0, 0});
    if (!body) return body.error();
    count += head_of(body.value()).living;
  }
  return count;
}

}  // namespace gyre
