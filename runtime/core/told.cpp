#include <gyre/runtime/core/told.hpp>

#include <cstring>

namespace gyre::detail {

void ToldHandlers::set(uint64_t type_id, ToldHandler handler) {
  auto added = handler ? std::make_shared<const ToldHandler>(std::move(handler)) : nullptr;
  std::shared_ptr<const ToldHandler> former;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  former = std::move(handlers_[type_id]);
  if (added) {
    handlers_[type_id] = std::move(added);
  } else {
    handlers_.erase(type_id);
  }
}

std::shared_ptr<const ToldHandler> ToldHandlers::find(uint64_t type_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = handlers_.find(type_id);
  return found == handlers_.end() ? nullptr : found->second;
}

bool ToldMessages::any() const {
  for (HostBridge& bridge : host_.bridges) {
    if (bridge.told().front() != nullptr) return true;
  }
  return false;
}

void ToldMessages::handle_one(uint32_t worker, const std::byte* message) {
  Envelope envelope;
  std::memcpy(&envelope, message, sizeof envelope);
  const auto handler = handlers_->find(envelope.correlation);
  if (!handler) return drop();
  (*handler)(FromActor{host_.actors.actor_name(envelope.actor_type), envelope.key, worker},
             {reinterpret_cast<const capnp::word*>(message + sizeof envelope),
              envelope.body_bytes / sizeof(capnp::word)});
}

ToldAccounts ToldMessages::accounts() const {
  ToldAccounts told;
  told.dropped = dropped_.load(std::memory_order_relaxed);
  for (HostBridge& bridge : host_.bridges) told.handled += bridge.told().done();
  told.handled -= std::min(told.handled, told.dropped);
  for (const HostBridge& bridge : host_.bridges) {
    const WorkerLine& line = *bridge.bridge().worker_line;
    told.sent += Memory::load_relaxed(line.told_sent);
    told.refused += Memory::load_relaxed(line.told_refused);
  }
  return told;
}

}  // namespace gyre::detail
