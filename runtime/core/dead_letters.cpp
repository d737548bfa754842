#include <fmt/format.h>
#include <gyre/runtime/core/dead_letters.hpp>

#include <cstring>
#include <memory>

namespace gyre {

std::string DeadLetter::text() const {
  const std::string to = actor.empty() ? fmt::format("actor type {}", envelope.actor_type) : actor;
  const std::string what =
      message_type.empty() ? fmt::format("message type {}", envelope.message_type) : message_type;
  const std::string size =
      envelope.body_bytes == 0 ? std::string() : fmt::format(" of {} bytes", envelope.body_bytes);
  return fmt::format("{} at key {}, {}{}: {}", to, envelope.key, what, size, failure);
}

namespace detail {

Envelope as_sent(const Envelope& envelope, const uint32_t* payload) {
  if ((envelope.flags & envelope_flags::out_of_line) == 0) return envelope;
  OutOfLine head;
  std::memcpy(&head, payload + sizeof(Envelope) / sizeof(uint32_t), sizeof head);
  Envelope sent = envelope;
  sent.body_bytes =
      head.request_bytes != 0 ? head.request_bytes : envelope.body_bytes - uint32_t(sizeof head);
  return sent;
}

std::span<const std::byte> body_in_slot(const Envelope& envelope, const uint32_t* payload) {
  if ((envelope.flags & envelope_flags::out_of_line) != 0) return {};
  return {reinterpret_cast<const std::byte*>(payload + sizeof(Envelope) / sizeof(uint32_t)),
          envelope.body_bytes};
}

void DeadLetters::add(const Envelope& envelope, const ErrorBody& error,
                      std::span<const std::byte> body) noexcept {
  try {
    auto letter = std::make_unique<DeadLetter>(DeadLetter{
        envelope, error.status, error.detail, error.where,
        std::string(actors_.actor_name(envelope.actor_type)),
        std::string(actors_.message_name(envelope.actor_type, envelope.message_type)),
        std::vector<std::byte>(body.begin(), body.end()), actors_.failure_of(envelope, error).message()});
    if (letters_.bounded_push(letter.get())) {
      (void)letter.release();
      return;
    }
  } catch (const std::exception&) {  // no memory
  }
  dropped_.fetch_add(1, std::memory_order_relaxed);
}

void DeadLetters::collect(const Bridge& bridge, uint64_t seen, uint64_t failed) noexcept {
  std::vector<uint32_t> words;
  try {
    words.resize(FailureLog::entry_packets(bridge.shape) * words_a_packet);
  } catch (const std::bad_alloc&) {
    dropped_.fetch_add(failed - seen, std::memory_order_relaxed);
    return;
  }
  if (const uint64_t entries = FailureLog::entries(bridge.shape); failed - seen > entries) {
    dropped_.fetch_add(failed - seen - entries, std::memory_order_relaxed);
    seen = failed - entries;
  }
  for (uint64_t n = seen + 1; n <= failed; ++n) {
    const Packet* const entry = bridge.failure_log + FailureLog::first_packet(bridge.shape, n);
    // Packet k into words; false if it is of another failure by now.
    const auto read = [&](uint32_t k) {
      const Packet packet = Memory::load(entry[k]);
      std::memcpy(&words[k * words_a_packet], packet.data, sizeof packet.data);
      return packet.stamp == uint32_t(n);
    };
    constexpr uint32_t head = FailureLog::error_packets + packets_for(0);
    bool whole = true;
    for (uint32_t k = 0; k < head; ++k) whole = read(k) && whole;
    const uint32_t* const payload = &words[FailureLog::error_packets * words_a_packet];
    Envelope envelope;
    std::memcpy(&envelope, payload, sizeof envelope);
    whole = whole && envelope.body_bytes <= bridge.shape.body_capacity();
    for (uint32_t k = head; whole && k < FailureLog::error_packets + packets_for(envelope.body_bytes); ++k) {
      whole = read(k);
    }
    if (whole) {
      ErrorBody error;
      std::memcpy(static_cast<void*>(&error), words.data(), sizeof error);
      add(as_sent(envelope, payload), error, body_in_slot(envelope, payload));
    } else {
      dropped_.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

std::vector<DeadLetter> DeadLetters::take() {
  std::vector<DeadLetter> letters;
  letters.reserve(kept);
  DeadLetter* letter = nullptr;
  while (letters.size() < kept && letters_.pop(letter)) {
    const std::unique_ptr<DeadLetter> owned(letter);
    letters.push_back(std::move(*owned));
  }
  return letters;
}

}  // namespace detail
}  // namespace gyre
