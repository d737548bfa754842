// What handles of the C interface are of.
#pragma once

#include <gyre/runtime/c/handle_table.hpp>
#include <gyre/runtime/c/schema.hpp>
#include <gyre/runtime/c/status.hpp>
#include <gyre/runtime/runtime.hpp>

#include <optional>
#include <string>
#include <vector>

namespace gyre::c {

struct RuntimeObject {
  Runtime runtime;
  Client client;
};

struct Call {
  using Answer = Reply<capnp::AnyPointer>;
  Future<Answer> future;
  WaitPolicy wait = WaitPolicy::polite;
  bool taken = false;  // from `future`: it is in `reply`, or failed as `failure` says
  std::optional<Answer> reply = {};
  Failure failure = {};

  /// GYRE_NOT_READY, or the outcome, which is taken.
  gyre_status outcome();
};

struct BufferObject {
  detail::BufferOwner owner;
  gyre_element element;
  uint64_t element_bytes;
  int64_t timeout_ns;  // the runtime's
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
  static Table& table() {
    static Table& the_table = *new Table;
    return the_table;
  }
};
struct Runtimes : ObjectKind<RuntimeObject, 1, false> {
  static constexpr const char* what = "runtime";
};
struct Calls : ObjectKind<Call, 2, true> {
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
