#include <fmt/format.h>
#include <gyre/runtime/core/engine_failure.hpp>
#include <gyre/runtime/core/receive.hpp>
#include <gyre/runtime/log.hpp>

namespace gyre::detail {

EngineFailure::~EngineFailure() {
  // Pairs with the exchange in record(), as the next two loads.
  if (const std::string* const first = first_.load(std::memory_order_acquire); first != &out_of_memory_)
    delete first;
}

void EngineFailure::check() noexcept {
  const Lifecycle state = state_.get();
  if (state == Lifecycle::failed || state == Lifecycle::terminated) {
    receiver_.end_calls_in_flight();
  } else if (!state_.terminating()) {
    ask_engine();
  }
}

void EngineFailure::ask_engine() noexcept {
  if (state_.get() == Lifecycle::failed) return;
  try {
    if (const auto cause = host_.engine->failure()) fail(*cause);
  } catch (const std::exception&) {
    fail("out of memory");
  }
}

void EngineFailure::fail(std::string_view cause) noexcept {
  if (const Lifecycle now = state_.get(); now == Lifecycle::failed || now == Lifecycle::terminated) return;
  const bool first = record(cause);
  state_.change(Lifecycle::failed);
  for (HostBridge& bridge : host_.bridges) bridge.close();
  receiver_.drain_replies();
  receiver_.end_calls_in_flight();
  if (first) log(LogLevel::error, [this] { return "the engine failed: " + text(); });
}

std::string EngineFailure::text() const {
  const std::string* const first = first_.load(std::memory_order_acquire);  // pairs with record()
  return first == nullptr ? std::string() : *first;
}

Failure EngineFailure::of_worker(uint32_t worker) const {
  Failure failure{Status::engine_failed};
  const Packet said = Memory::load(host_.bridges[worker].bridge().last_words->packet);
  if (said.stamp == 0) return failure;
  const uint16_t actor_type = uint16_t(said.data[2]), message_type = uint16_t(said.data[2] >> 16);
  const auto actor = host_.actors.actor_name(actor_type);
  if (!actor.empty()) failure.actor_name = static_text(actor);
  const auto message = host_.actors.message_name(actor_type, message_type);
  if (!message.empty()) failure.struct_name = static_text(message);
  return failure;
}

// Records the first cause. Returns false if there is one already.
bool EngineFailure::record(std::string_view cause) noexcept {
  if (first_.load(std::memory_order_acquire) != nullptr) return false;
  const std::string* text = &out_of_memory_;
  try {
    text = new std::string(std::string(cause) + last_words());
  } catch (const std::exception&) {
  }
  const std::string* none = nullptr;
  // Pairs with the loads of first_: they see the whole text.
  if (first_.compare_exchange_strong(none, text, std::memory_order_acq_rel)) return true;
  if (text != &out_of_memory_) delete text;
  return false;
}

// Describes the last message of each worker that still had work.
std::string EngineFailure::last_words() const {
  std::string text;
  for (uint32_t worker = 0; worker < host_.layout.workers; ++worker) {
    const HostBridge& bridge = host_.bridges[worker];
    if (!bridge.may_have_work()) continue;
    const Packet said = Memory::load(bridge.bridge().last_words->packet);
    if (said.stamp == 0) continue;
    const Failure last = of_worker(worker);
    const uint64_t key = uint64_t(said.data[0]) | uint64_t(said.data[1]) << 32;
    text +=
        fmt::format("; worker {} was last busy with {}, {}, message {}", worker,
                    last.actor_name == nullptr ? "an actor of no known type" : last.actor_name,
                    said.stamp == LastWords::several ? "several keys at once" : fmt::format("key {}", key),
                    last.struct_name == nullptr ? "of no known type" : last.struct_name);
  }
  return text;
}

}  // namespace gyre::detail
