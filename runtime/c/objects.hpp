// What handles of the C interface are of.
#pragma once

#include <gyre/runtime/async/completion_queue.hpp>
#include <gyre/runtime/c/handle_table.hpp>
#include <gyre/runtime/c/schema.hpp>
#include <gyre/runtime/c/status.hpp>
#include <gyre/runtime/runtime.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gyre::c {

/// The right to use something alone; moved, it is nobody's.
class Claim {
 public:
  Claim() = default;
  Claim(Claim&&) noexcept {}
  bool take() { return !taken_.exchange(true, std::memory_order_acquire); }
  void give_back() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

struct RuntimeObject {
  Runtime runtime;
  Client client;
};

/// An ask. Used by one thread at a time, see CallUse; `canceller` by any.
struct Call {
  using Answer = Reply<capnp::AnyPointer>;
  Future<Answer> future;
  std::optional<StreamFuture<capnp::AnyPointer>> held = {};  // in place of `future`: a stream waits
  Canceller canceller = {};
  bool watched = false;  // `future` is in a queue
  uint64_t tag = 0;      // there
  bool taken = false;    // from `future`: it is in `reply`, or failed as `failure` says
  std::optional<Answer> reply = {};
  Failure failure = {};
  Claim claim = {};

  bool ready() const { return held ? held->ready() : future.ready(); }
  void wait() const { held ? held->wait() : future.wait(); }
  bool wait_for(std::chrono::nanoseconds timeout) const {
    return held ? held->wait_for(timeout) : future.wait_for(timeout);
  }
  /// GYRE_NOT_READY, or the outcome, which is taken.
  gyre_status outcome();
};

/// Calls as they become done. Taken from by one thread at a time.
struct QueueObject {
  CompletionQueue queue;
  Claim claim = {};
};

struct BufferObject {
  detail::BufferOwner owner;
  gyre_element element;
  uint64_t element_bytes;
  int64_t timeout_ns;  // the runtime's
};

/// A copy of a buffer. Used by any thread.
struct CopyObject {
  std::shared_ptr<detail::Core> core;
  std::shared_ptr<detail::CopyState> copy;
};

struct DeadLetterList {
  std::vector<DeadLetter> letters;
  std::vector<std::string> texts;
};

template <class T, uint8_t number, bool is_exclusive>
struct ObjectKind {
  using Object = T;
  using Table = HandleTable<T, number, is_exclusive>;
  /// Never destroyed: what was not released at the end of the process is left alone.
  static Table& table() { return the_table; }

 private:
  // Made when the library is loaded: a child of fork() would wait for ever for the guard of a function's
  // static, if another thread of its parent was making it.
  static inline Table& the_table = *new Table;
};
struct Runtimes : ObjectKind<RuntimeObject, 1, false> {
  static constexpr const char* what = "runtime";
};
struct Calls : ObjectKind<Call, 2, false> {
  static constexpr const char* what = "call";
};
struct BufferObjects : ObjectKind<BufferObject, 3, true> {
  static constexpr const char* what = "buffer";
};
struct Schemas : ObjectKind<Schema, 4, false> {
  static constexpr const char* what = "schema";
};
struct ActorSets : ObjectKind<ActorSet, 5, false> {
  static constexpr const char* what = "set of actors";
};
struct DeadLetterLists : ObjectKind<DeadLetterList, 6, true> {
  static constexpr const char* what = "list of dead letters";
};

struct Exports : ObjectKind<std::shared_ptr<void>, 8, false> {
  static constexpr const char* what = "export";
};
struct Queues : ObjectKind<QueueObject, 7, false> {
  static constexpr const char* what = "queue";
};
struct Copies : ObjectKind<CopyObject, 9, false> {
  static constexpr const char* what = "copy";
};

template <class Kind>
using Use = typename Kind::Table::Use;

/// Uses what the handle is of.
template <class Kind>
gyre_status use(const char* doing, uint64_t handle, Use<Kind>& use) {
  return bad_handle(Kind::table().use(handle, use), doing, Kind::what, handle);
}
template <class Kind>
gyre_status release(const char* doing, uint64_t handle) {
  return guarded(doing, [&] { return bad_handle(Kind::table().remove(handle), doing, Kind::what, handle); });
}

template <class Kind>
gyre_status busy(const char* doing, uint64_t handle) {
  return bad_handle(GYRE_BUSY, doing, Kind::what, handle);
}

/// Use of an object with a claim, by one thread. Move-only.
template <class Kind>
class AloneUse {
 public:
  AloneUse() = default;
  AloneUse(AloneUse&&) = delete;
  ~AloneUse() {
    if (claimed_) use_->claim.give_back();
  }
  typename Kind::Object* operator->() const { return use_.operator->(); }
  /// GYRE_BUSY where another thread has begun.
  gyre_status begin(const char* doing, uint64_t handle) {
    GYRE_C_TRY(c::use<Kind>(doing, handle, use_));
    claimed_ = use_->claim.take();
    return claimed_ ? gyre_status(GYRE_OK) : busy<Kind>(doing, handle);
  }
  /// As release<Kind>, of an object whose use began: nobody can begin another meanwhile.
  gyre_status release(const char* doing, uint64_t handle) {
    const gyre_status removed = Kind::table().remove(handle);
    if (removed == GYRE_OK) claimed_ = false;
    return bad_handle(removed, doing, Kind::what, handle);
  }

 private:
  Use<Kind> use_;
  bool claimed_ = false;
};

/// A Result as a function's status.
template <class T>
gyre_status status_of(const Result<T>& result) {
  return result ? gyre_status(GYRE_OK) : refuse(result.error());
}

/// GYRE_INVALID_ARGUMENT unless it is an Encoding.
gyre_status read_encoding(const char* doing, gyre_encoding given, Encoding& encoding);
/// Bytes that `name` says; null is good for none.
gyre_status read_bytes(const char* doing, const char* name, const void* given, size_t size,
                       std::span<const std::byte>& bytes);

}  // namespace gyre::c
