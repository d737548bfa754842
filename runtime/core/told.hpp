// What the program does with messages of actors to the host: the handlers of Runtime::on(), and their calls.
#pragma once

#include <capnp/common.h>
#include <gyre/runtime/books.hpp>
#include <gyre/runtime/core/host_side.hpp>
#include <gyre/runtime/from_actor.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

namespace gyre {

/// Handles a message of an actor to the host, whose type is known only at run time.
/// @param body  one Cap'n Proto segment, valid until the call returns
using ToldHandler = std::function<void(const FromActor& from, std::span<const capnp::word> body)>;

namespace detail {

/// The handlers of a runtime, by the Cap'n Proto type id of their message. Thread-safe.
class ToldHandlers {
 public:
  /// Sets the handler of a message, in place of an earlier one; an empty one removes it.
  void set(uint64_t type_id, ToldHandler handler);
  /// Returns it; null if there is none.
  std::shared_ptr<const ToldHandler> find(uint64_t type_id) const;

 private:
  mutable std::mutex mutex_;  // held for moments
  std::unordered_map<uint64_t, std::shared_ptr<const ToldHandler>> handlers_;
};

/// Calls the handlers for what the actors of one engine send. The poller's, but for the counts.
class ToldMessages {
 public:
  /// `host` must outlive this.
  explicit ToldMessages(HostSide& host) : host_(host) {}

  /// Before the first message.
  void use(std::shared_ptr<ToldHandlers> handlers) { handlers_ = std::move(handlers); }

  /// Whether a message waits to be handled.
  bool any() const;
  /// Handles what has arrived, in its order for each worker, at most a queue of each; returns how many
  /// messages. What a handler throws goes to `failed(const char* text)`.
  template <class Failed>
  uint32_t handle(Failed&& failed) {
    uint32_t count = 0;
    for (uint32_t worker = 0; worker < host_.layout.workers; ++worker) {
      ToldQueue& queue = host_.bridges[worker].told();
      for (uint32_t n = told_slots(host_.shape()); n != 0 && queue.front() != nullptr; --n, ++count) {
        try {
          // Pairs with end().
          if (ended_.load(std::memory_order_acquire)) {
            drop();
          } else {
            handle_one(worker, queue.front());
          }
        } catch (const std::exception& error) {
          failed(error.what());
        } catch (...) {
          failed("what is no std::exception");
        }
        queue.pop();
      }
    }
    return count;
  }

  /// Has no handler called any more: what is left is dropped. Any thread.
  void end() { ended_.store(true, std::memory_order_release); }

  /// Returns the counts; exact once the poller has ended. Any thread.
  ToldAccounts accounts() const;

 private:
  void handle_one(uint32_t worker, const std::byte* message);
  void drop() { dropped_.fetch_add(1, std::memory_order_relaxed); }

  HostSide& host_;
  std::shared_ptr<ToldHandlers> handlers_;
  std::atomic<bool> ended_{false};
  std::atomic<uint64_t> dropped_{0};  // for which no handler was called; a count alone, relaxed
};

}  // namespace detail
}  // namespace gyre
