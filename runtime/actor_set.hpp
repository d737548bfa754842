// Which actor types run in a runtime's workers: the handlers' numbers that both sides agree on, the CPU's
// compiled worker, and the source text that NVRTC compiles for the GPU.
#pragma once

#include <capnp/schema.h>
#include <gyre/device/dispatch.hpp>
#include <gyre/messages/official.hpp>
#include <gyre/runtime/actor_sources.hpp>
#include <gyre/runtime/cpu/worker.hpp>
#include <gyre/runtime/errors.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gyre_type_name {
// Outside namespace gyre: g++ leaves out of a name what encloses the function that asks for it.
template <class T>
constexpr std::string_view of() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr size_t begin = text.find("T = ") + 4;
  constexpr size_t end = text.find_first_of(";]", begin);
  return text.substr(begin, end - begin);
}
}  // namespace gyre_type_name

namespace gyre {

/// The type's qualified name, as the compiler writes it.
template <class T>
constexpr std::string_view type_name() {
  return gyre_type_name::of<T>();
}

/// 64-bit FNV-1a (Fowler, Noll, Vo).
constexpr uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ uint8_t(c)) * 0x100000001b3u;
  return hash;
}

/// An actor type's identity on the host.
template <class Actor>
inline constexpr uint64_t actor_id = fnv1a(type_name<Actor>());

/// One handler of one actor: its identities on the host and its numbers in envelopes.
struct Handler {
  uint64_t actor;
  uint64_t request;   ///< Cap'n Proto type id
  uint64_t response;  ///< Cap'n Proto type id; 0: takes tells only
  uint16_t actor_type;
  uint16_t message_type;
  capnp::StructSchema request_schema;  ///< empty where the official class was not included
};

/// A struct and one of its fields as their schema names them; null where they are not known, a null field too
/// for a message's root pointer. Static memory.
struct FieldName {
  const char* struct_name = nullptr;
  const char* field_name = nullptr;
};

/// A value: copy it freely.
class ActorSet {
 public:
  /// The set of `Actors`; `sources` must embed the headers that define them.
  template <class... Actors>
  static ActorSet of(const ActorSources& sources) {
    static_assert(sizeof...(Actors) > 0, "an actor set needs at least one actor type");
    ActorSet set;
    set.sources_ = sources;
    set.make_worker_ = [](const Bridge& bridge, const EngineMemory& memory,
                          WaitPolicy wait) -> std::unique_ptr<CpuWorker> {
      return std::make_unique<CpuWorkerOf<Actors...>>(bridge, memory, wait);
    };
    set.actor_bytes_ = [](uint32_t actors_per_worker) {
      return ActorTables<Actors...>::bytes(actors_per_worker);
    };
    set.kernel_ = "gyre::worker_kernel<";
    uint16_t actor_type = 0;
    (set.add<Actors>(actor_type++, HandlesOf<Actors>{}), ...);
    set.kernel_ += ">";
    return set;
  }

  /// The same set, of which on CUDA one worker is the whole grid: every handler is run by all threads of all
  /// blocks, and Context::sync is a barrier of the grid, which costs microseconds. On the CPU nothing
  /// changes.
  ActorSet grid_scoped() const {
    ActorSet set = *this;
    set.grid_scoped_ = true;
    return set;
  }
  bool is_grid_scoped() const { return grid_scoped_; }

  /// Null where the set has no such handler.
  const Handler* find(uint64_t actor, uint64_t request) const {
    for (const Handler& handler : handlers_) {
      if (handler.actor == actor && handler.request == request) return &handler;
    }
    return nullptr;
  }

  const std::vector<Handler>& handlers() const { return handlers_; }
  /// What a worker's report of a malformed field is about. Never throws.
  FieldName name_of(uint16_t actor_type, uint16_t message_type, MalformedField field) const;
  /// The actor type's qualified name; empty for a number that is none. Static memory.
  std::string_view actor_name(uint16_t actor_type) const;
  /// The message's name in its schema, "start" or "stop"; empty where it is not known. Static memory.
  std::string_view message_name(uint16_t actor_type, uint16_t message_type) const;
  /// What an error reply says. Never throws.
  Failure failure_of(const Envelope& envelope, const ErrorBody& error) const;
  /// The NVRTC name expression of the kernel: "gyre::worker_kernel<my::Counter, my::Sum>".
  const std::string& kernel() const { return kernel_; }
  const ActorSources& sources() const { return sources_; }
  /// Bytes of the tables of one worker's actors, with room for so many of each type.
  uint64_t actor_bytes(uint32_t actors_per_worker) const { return actor_bytes_(actors_per_worker); }
  std::unique_ptr<CpuWorker> make_cpu_worker(const Bridge& bridge, const EngineMemory& memory,
                                             WaitPolicy wait) const {
    return make_worker_(bridge, memory, wait);
  }

 private:
  ActorSet() = default;

  template <class Actor, class... Requests>
  void add(uint16_t actor_type, Handles<Requests...>) {
    if (actor_type != 0) kernel_ += ", ";
    kernel_ += type_name<Actor>();
    actor_names_.push_back(type_name<Actor>());
    uint16_t message_type = 0;
    (handlers_.push_back({actor_id<Actor>, Requests::type_id, response_id<Actor, Requests>(), actor_type,
                          message_type++, schema_of<Requests>()}),
     ...);
  }
  template <class Request>
  static capnp::StructSchema schema_of() {
    if constexpr (requires { typename OfficialOf<Request>::type; }) {
      return capnp::Schema::from<typename OfficialOf<Request>::type>();
    }
    return {};
  }

  ActorSources sources_;
  std::unique_ptr<CpuWorker> (*make_worker_)(const Bridge&, const EngineMemory&, WaitPolicy) = nullptr;
  uint64_t (*actor_bytes_)(uint32_t) = nullptr;
  bool grid_scoped_ = false;
  std::string kernel_;
  std::vector<std::string_view> actor_names_;
  std::vector<Handler> handlers_;
};

}  // namespace gyre
