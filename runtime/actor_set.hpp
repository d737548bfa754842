// Which actor types run in a runtime's workers: the handlers' numbers that both sides agree on, the CPU's
// compiled worker, and the source text that NVRTC compiles for the GPU. Or that text alone, given at run
// time.
#pragma once

#include <capnp/schema.h>
#include <gyre/device/actor/dispatch.hpp>
#include <gyre/messages/official.hpp>
#include <gyre/runtime/actors/actor_description.hpp>
#include <gyre/runtime/actors/actor_library.hpp>
#include <gyre/runtime/actors/actor_sources.hpp>
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

/// 64-bit FNV-1a (Fowler, Noll, Vo); `hash`: of what comes before `text`.
constexpr uint64_t fnv1a(std::string_view text, uint64_t hash = 0xcbf29ce484222325u) {
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
  /// Room in bytes that an ask makes for the reply where it does not say itself; 0: the actor does not say.
  uint32_t max_reply_bytes;
  capnp::StructSchema request_schema;  ///< empty where the official class was not included
  capnp::StructSchema response_schema;
};

/// A struct and one of its fields as their schema names them; null where they are not known, a null field too
/// for a message's root pointer. Static memory.
struct FieldName {
  const char* struct_name = nullptr;
  const char* field_name = nullptr;
};

struct Options;

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
    set.types_ = {std::string(type_name<Actors>())...};
    set.describe(description_of<Actors...>());
    auto handler = set.handlers_.begin();
    (add_schemas<Actors>(handler, HandlesOf<Actors>{}), ...);
    return set;
  }

  /// The set of the actor types that a header defines which is given at run time; for CUDA alone, where it is
  /// compiled at launch. `text`: what the header's file would hold. `types`: the actors' qualified names,
  /// "my::Counter", of types that are no template's. `headers`: what `text` includes but for Gyre's own
  /// device headers and messages, `<schema>.view.hpp` of its own messages for one. NVRTC finds no other
  /// headers. The handlers are known once the engine has compiled it; clients address its actors by
  /// NamedAddress. Throws BadOptions where a name is no type's name, or two headers have one name.
  static ActorSet from_source(std::string text, std::vector<std::string> types,
                              std::vector<SourceText> headers = {});

  /// The set of the actor types of a loaded library, for both engines; on CUDA they are compiled from the
  /// text that the library was made from. Clients address them by NamedAddress. The schemas of their messages
  /// are known where the library has them. Throws BadOptions where its headers are not this Gyre's.
  static ActorSet from_library(const ActorLibrary& library);

  /// True for actors that this program, or a library that it loaded, is compiled with: the CPU engine can run
  /// them, and their handlers are known.
  bool compiled_in() const { return make_worker_ != nullptr; }
  /// Throws EngineUnavailable, unless compiled_in().
  void require_compiled_in() const;
  /// A set given as source text with what its compiled module says of it. Throws Error where that is of
  /// another number of actor types.
  ActorSet described(std::vector<ActorDescription> description) const;

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
  /// True where the actor type is in the set.
  bool has(uint64_t actor) const;
  /// What these options have no room for, a line each; empty if all is well, or the handlers are not known
  /// yet.
  std::string problems(const Options& options) const;

  const std::vector<Handler>& handlers() const { return handlers_; }
  /// The schemas of requests and responses that are known, in the order of handlers. Static memory.
  std::vector<capnp::StructSchema> message_schemas() const;
  /// Of the handler with these numbers in envelopes; 0 where there is none.
  uint32_t max_reply_bytes(uint16_t actor_type, uint16_t message_type) const;
  /// One entry an actor type, in the order of actor_type numbers; empty while it is not known.
  const std::vector<ActorDescription>& description() const { return description_; }
  /// What a worker's report of a malformed field is about. Never throws.
  FieldName name_of(uint16_t actor_type, uint16_t message_type, MalformedField field) const;
  /// The actor type's qualified name; empty for a number that is none. The set's memory.
  std::string_view actor_name(uint16_t actor_type) const;
  /// The message's name in its schema, "start" or "stop"; empty where it is not known. Static memory.
  std::string_view message_name(uint16_t actor_type, uint16_t message_type) const;
  /// What an error reply says. Never throws.
  Failure failure_of(const Envelope& envelope, const ErrorBody& error) const;
  /// "my::Counter, my::Sum"
  std::string type_list() const;
  /// The NVRTC name expression of the kernel: "gyre::worker_kernel<my::Counter, my::Sum>".
  std::string kernel() const { return "gyre::worker_kernel<" + type_list() + ">"; }
  const ActorSources& sources() const { return sources_; }
  /// Bytes of one worker's working memory and of its actors' tables, with room for so many of each type.
  uint64_t actor_bytes(uint32_t actors_per_worker) const;
  /// Throws EngineUnavailable, unless compiled_in().
  std::unique_ptr<CpuWorker> make_cpu_worker(const Bridge& bridge, const EngineMemory& memory,
                                             WaitPolicy wait) const {
    require_compiled_in();
    return make_worker_(bridge, memory, wait);
  }

 private:
  struct OwnedSources;

  ActorSet() = default;
  void describe(std::vector<ActorDescription> description);

  // Keeps these headers, Gyre's own and `text` under `text_name`, which is what a kernel includes.
  void own(std::string text_name, std::string text, std::vector<SourceText> headers);

  template <class Actor, class... Requests>
  static void add_schemas(std::vector<Handler>::iterator& handler, Handles<Requests...>) {
    ((handler->request_schema = schema_of<Requests>(),
      (handler++)->response_schema = schema_of<ResponseOf<Actor, Requests>>()),
     ...);
  }
  template <class View>
  static capnp::StructSchema schema_of() {
    if constexpr (requires { typename OfficialOf<View>::type; }) {
      return capnp::Schema::from<typename OfficialOf<View>::type>();
    }
    return {};
  }

  friend class LibraryOfActors;

  std::shared_ptr<const OwnedSources> owned_;  // what sources_ refers to; null where that is static memory
  ActorSources sources_;
  std::unique_ptr<CpuWorker> (*make_worker_)(const Bridge&, const EngineMemory&, WaitPolicy) = nullptr;
  bool grid_scoped_ = false;
  std::vector<std::string> types_;
  std::vector<ActorDescription> description_;
  std::vector<Handler> handlers_;
};

/// A set as a shared object exports it: see GYRE_EXPORT_ACTORS. Neither copied nor moved.
class LibraryOfActors {
 public:
  /// Throws std::bad_alloc, and kj::Exception for a schema that the official library finds fault with.
  explicit LibraryOfActors(ActorSet set);
  LibraryOfActors(const LibraryOfActors&) = delete;
  LibraryOfActors& operator=(const LibraryOfActors&) = delete;
  /// Good while this is.
  const ActorLibrary& library() const { return library_; }

 private:
  const ActorSet set_;
  std::vector<std::string_view> types_;
  std::string text_;
  std::vector<std::byte> description_, schemas_;
  ActorLibrary library_;
};

}  // namespace gyre
