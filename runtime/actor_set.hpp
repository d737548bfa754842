// The actor types that run in a runtime's workers. An ActorSet holds the handlers' numbers in envelopes,
// the CPU's compiled worker, and the source text that NVRTC compiles for the GPU. A set made from source
// text given at run time has only this text.
#pragma once

#include <capnp/schema.h>
#include <gyre/device/actor/dispatch.hpp>
#include <gyre/messages/official.hpp>
#include <gyre/runtime/actors/actor_description.hpp>
#include <gyre/runtime/actors/actor_library.hpp>
#include <gyre/runtime/actors/actor_sources.hpp>
#include <gyre/runtime/address.hpp>
#include <gyre/runtime/cpu/worker.hpp>
#include <gyre/runtime/errors.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

/// Describes one handler of one actor: its identities on the host and its numbers in envelopes.
struct Handler {
  uint64_t actor;     ///< actor_id of the actor type
  uint64_t request;   ///< Cap'n Proto type id
  uint64_t response;  ///< Cap'n Proto type id; 0: takes tells only
  uint16_t actor_type;
  uint16_t message_type;
  /// Bytes that an ask reserves for the reply unless AskOptions says; 0: the actor declares none.
  uint32_t max_reply_bytes;
  capnp::StructSchema request_schema;   ///< empty if the program did not include the official class
  capnp::StructSchema response_schema;  ///< empty if the program did not include the official class
};

/// Names a struct and one of its fields as their schema does. Points to static memory.
struct FieldName {
  const char* struct_name = nullptr;  ///< null if unknown
  const char* field_name = nullptr;   ///< null if unknown, and for a message's root pointer
};

struct Options;

/// Holds a set of actor types for Runtime::launch(). Copyable.
class ActorSet {
 public:
  /// Makes the set of `Actors`, which are compiled into the program.
  /// @param sources  must embed the headers that define the actors: see gyre_add_actors
  template <class... Actors>
  static ActorSet of(const ActorSources& sources) {
    static_assert(sizeof...(Actors) > 0, "an actor set needs at least one actor type");
    ActorSet set;
    set.sources_ = sources;
    set.compiled_in_ = true;
    set.make_worker_ = make_worker_of<Actors...>();
    set.types_ = {std::string(type_name<Actors>())...};
    set.describe(description_of<Actors...>());
    auto handler = set.handlers_.begin();
    (add_schemas<Actors>(handler, HandlesOf<Actors>{}), ...);
    return set;
  }

  /// Makes a set of actor types from C++ text given at run time. Only the CUDA engine runs the set: it
  /// compiles the text at launch. Clients address the actors by NamedAddress. The handlers are known once
  /// the engine has compiled the text.
  /// @param text     the content of a header that defines the actors
  /// @param types    the actors' qualified names, for example "my::Counter"; no template instances
  /// @param headers  the headers that `text` includes, for example the messages' `<schema>.view.hpp`.
  ///                 Gyre's own device headers and messages need not be given; those of the built-in actors
  ///                 are builtin_actor_headers(). NVRTC finds no other headers.
  /// @throws BadOptions  if a name cannot be a type's name, or two headers have one name
  static ActorSet from_source(std::string text, std::vector<std::string> types,
                              std::vector<SourceText> headers = {});

  /// Makes the set of the actor types of a loaded library, for both engines. CUDA compiles the text that
  /// the library was made from. Clients address the actors by NamedAddress. The schemas of the messages
  /// are known if the library has them.
  /// @throws BadOptions  if the library was built with the headers of another Gyre
  static ActorSet from_library(const ActorLibrary& library);

  /// Makes the set of an engine process: what the program's set has that CUDA needs.
  /// @param headers        all that the kernel's text includes, Gyre's own too
  /// @param actor_headers  the names of those that a kernel includes
  /// @param description    empty while only the compiled module knows it
  /// @param ahead          sets compiled ahead; copied
  /// @throws Error  if the description has another number of actor types
  static ActorSet for_engine(std::vector<std::string> types, std::vector<SourceText> headers,
                             std::vector<std::string> actor_headers, bool grid_scoped,
                             std::vector<ActorDescription> description,
                             std::span<const CompiledAhead> ahead = {});

  /// Returns true if the actors are compiled into the program or a loaded library: their handlers are known
  /// then, and the CPU engine can run them unless one is cuda_only.
  bool compiled_in() const { return compiled_in_; }
  /// Throws EngineUnavailable unless the CPU engine can run the actors.
  void require_cpu_worker() const;
  /// Returns a copy with the description that the compiled module of a set made from source text gives.
  /// @throws Error  if the description has another number of actor types
  ActorSet described(std::vector<ActorDescription> description) const;

  /// Returns a copy whose single worker on CUDA is the whole grid. All threads of all blocks run each
  /// handler, and Context::sync is a barrier of the grid, which costs microseconds. The CPU engine ignores
  /// this.
  ActorSet grid_scoped() const {
    ActorSet set = *this;
    set.grid_scoped_ = true;
    return set;
  }
  bool is_grid_scoped() const { return grid_scoped_; }

  /// Finds a handler; null if the set has none.
  /// @param actor    actor_id of the actor type
  /// @param request  the request's Cap'n Proto type id
  const Handler* find(uint64_t actor, uint64_t request) const {
    for (const Handler& handler : handlers_) {
      if (handler.actor == actor && handler.request == request) return &handler;
    }
    return nullptr;
  }
  /// Returns true if the actor type is in the set.
  bool has(uint64_t actor) const { return type_number(actor).has_value(); }
  /// Returns the actor_type number of a type in envelopes; empty if it is not in the set.
  std::optional<uint16_t> type_number(uint64_t actor) const;
  /// Lists what these options have no room for, one line each. Empty if all is well, or if the handlers
  /// are not known yet.
  std::string problems(const Options& options) const;

  const std::vector<Handler>& handlers() const { return handlers_; }
  /// Returns the known schemas of requests and responses, in the order of handlers(). They lie in static
  /// memory.
  std::vector<capnp::StructSchema> message_schemas() const;
  /// Returns Handler::max_reply_bytes of the handler with these numbers in envelopes; 0 if there is none.
  uint32_t max_reply_bytes(uint16_t actor_type, uint16_t message_type) const;
  /// Returns true if the handler with these numbers in envelopes has a response; false if there is none.
  bool has_response(uint16_t actor_type, uint16_t message_type) const;
  /// Returns one entry per actor type, in the order of actor_type numbers; empty until it is known.
  const std::vector<ActorDescription>& description() const { return description_; }
  /// Names the struct and the field of a worker's report of a malformed field. Never throws.
  FieldName name_of(uint16_t actor_type, uint16_t message_type, MalformedField field) const;
  /// Returns the actor type's qualified name; empty for an unknown number. The text belongs to the set.
  std::string_view actor_name(uint16_t actor_type) const;
  /// Returns the message's name in its schema, "start" or "stop"; empty if unknown. Static memory.
  std::string_view message_name(uint16_t actor_type, uint16_t message_type) const;
  /// Makes a Failure of an error reply. Never throws.
  Failure failure_of(const Envelope& envelope, const ErrorBody& error) const;
  /// Returns the actor types' qualified names, in the order of actor_type numbers.
  const std::vector<std::string>& types() const { return types_; }
  /// Returns the actor types' names, for example "my::Counter, my::Sum".
  std::string type_list() const;
  /// Returns the NVRTC name expression of the kernel, for example "gyre::worker_kernel<my::Counter,
  /// my::Sum>".
  std::string kernel() const { return "gyre::worker_kernel<" + type_list() + ">"; }
  const ActorSources& sources() const { return sources_; }
  /// Returns the bytes of one worker's working memory and actor tables.
  /// @param actors_per_worker  number of actors of each type that the tables have room for
  uint64_t actor_bytes(uint32_t actors_per_worker) const;
  /// Returns how many messages a handler of the set may send, at most; 0 if none sends, or if the handlers
  /// are not known yet.
  uint32_t most_sent() const;
  /// Returns what handlers of the set may do; nothing if the handlers are not known yet.
  Rights rights() const { return rights_of(description_); }
  /// Returns the bytes of all workers' mailboxes; 0 if no handler sends.
  uint64_t mail_bytes(const Options& options) const;
  /// Returns how many of these bytes, the last ones, the engine need not zero.
  uint64_t mail_bytes_not_zeroed(const Options& options) const;
  /// Makes a CPU worker of these actors. Throws as require_cpu_worker().
  std::unique_ptr<CpuWorker> make_cpu_worker(const Bridge& bridge, const EngineMemory& memory,
                                             WaitPolicy wait) const {
    require_cpu_worker();
    return make_worker_(bridge, memory, wait);
  }

 private:
  struct OwnedSources;

  ActorSet() = default;
  void describe(std::vector<ActorDescription> description);

  // Keeps these headers, Gyre's own headers, and `text` under the name `text_name`, which a kernel
  // includes.
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

  std::shared_ptr<const OwnedSources> owned_;  // what sources_ refers to; null if sources_ is static
  ActorSources sources_;
  bool compiled_in_ = false;
  MakeCpuWorker* make_worker_ = nullptr;
  bool grid_scoped_ = false;
  std::vector<std::string> types_;
  std::vector<ActorDescription> description_;
  std::vector<Handler> handlers_;
};

/// Holds a set in the form that a shared object exports: see GYRE_EXPORT_ACTORS. Neither copyable nor
/// movable.
class LibraryOfActors {
 public:
  /// Makes the exported form of `set`.
  /// @throws std::bad_alloc   if there is no memory
  /// @throws kj::Exception    if the official library refuses a schema
  explicit LibraryOfActors(ActorSet set);
  LibraryOfActors(const LibraryOfActors&) = delete;
  LibraryOfActors& operator=(const LibraryOfActors&) = delete;
  /// Returns the exported form. It lives as long as this object.
  const ActorLibrary& library() const { return library_; }

 private:
  const ActorSet set_;
  std::vector<std::string_view> types_;
  std::string text_;
  std::vector<std::byte> description_, schemas_;
  ActorLibrary library_;
};

}  // namespace gyre
