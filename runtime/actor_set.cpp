#include <fmt/format.h>
#include <kj/exception.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/fork.hpp>
#include <gyre/device/worker/mail_memory.hpp>
#include <gyre/device/worker/staging.hpp>
#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/actors/actor_schemas.hpp>
#include <gyre/runtime/options.hpp>
#include <gyre_device_headers_sources.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

namespace gyre {

namespace {

// The struct or group with these low bits of its id, among `schema` and all that its fields are made of.
capnp::StructSchema find_struct(capnp::StructSchema schema, uint64_t type_id_low_40,
                                std::set<uint64_t>& seen) {
  const uint64_t id = schema.getProto().getId();
  if ((id & ((uint64_t(1) << 40) - 1)) == type_id_low_40) return schema;
  if (!seen.insert(id).second) return {};
  for (const auto field : schema.getFields()) {
    capnp::Type type = field.getType();
    while (type.isList()) type = type.asList().getElementType();
    if (!type.isStruct()) continue;
    const capnp::StructSchema found = find_struct(type.asStruct(), type_id_low_40, seen);
    if (found != capnp::StructSchema()) return found;
  }
  return {};
}

[[noreturn]] void refuse(const std::string& what) {
  throw BadOptions("making an actor set from source text: " + what);
}

// A library's schemas, loaded once.
const std::map<uint64_t, capnp::Schema>& schemas_of(const ActorLibrary& library) {
  const detail::ForkDeferred deferred;
  static std::mutex mutex;
  static auto& loaded = *new std::map<const void*, std::map<uint64_t, capnp::Schema>>;
  const std::lock_guard lock(mutex);
  const auto found = loaded.find(library.schemas);
  if (found != loaded.end()) return found->second;
  std::map<uint64_t, capnp::Schema> schemas;
  if (library.schemas != nullptr) {
    try {
      schemas = load_schemas({static_cast<const std::byte*>(library.schemas), library.schemas_bytes});
    } catch (const kj::Exception& error) {
      throw Error(fmt::format("reading the schemas of the actors' messages: {}; build the library again",
                              error.getDescription().cStr()));
    }
  }
  return loaded.emplace(library.schemas, std::move(schemas)).first->second;
}

// "my::Counter": identifiers with :: between them.
bool is_type_name(std::string_view name) {
  const auto identifier = [](std::string_view part) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    return !part.empty() && letter(part.front()) &&
           std::all_of(part.begin(), part.end(), [&](char c) { return letter(c) || digit(c); });
  };
  for (size_t end = name.find("::"); end != std::string_view::npos; end = name.find("::")) {
    if (!identifier(name.substr(0, end))) return false;
    name.remove_prefix(end + 2);
  }
  return identifier(name);
}

MailLayout mail_layout(const Options& options, const ActorSet& actors) {
  return MailLayout::of(options.workers, options.slot_bytes, options.mail_chunks(), actors.rights());
}

}  // namespace

struct ActorSet::OwnedSources {
  std::vector<SourceText> texts;
  std::vector<std::string> names;  // of actor_headers, unless these are names of texts
  std::vector<SourceFile> files;
  std::vector<std::string_view> actor_headers;
  std::string ahead_text;  // what `ahead` refers to
  std::vector<CompiledAhead> ahead;

  void keep(std::span<const CompiledAhead> compiled) {
    constexpr std::string_view CompiledAhead::*texts[] = {
        &CompiledAhead::kernel, &CompiledAhead::lowered_name, &CompiledAhead::lowered_description,
        &CompiledAhead::compiler, &CompiledAhead::cubin};
    size_t bytes = 0;
    for (const CompiledAhead& each : compiled)
      for (const auto text : texts) bytes += (each.*text).size();
    ahead_text.reserve(bytes);  // it moves no more: views refer to it
    for (CompiledAhead each : compiled) {
      for (const auto text : texts) {
        const size_t begin = ahead_text.size();
        ahead_text += each.*text;
        each.*text = std::string_view(ahead_text).substr(begin);
      }
      ahead.push_back(each);
    }
  }
};

ActorSet ActorSet::from_source(std::string text, std::vector<std::string> types,
                               std::vector<SourceText> headers) {
  if (types.empty()) refuse("no actor types are named; name those that the text defines");
  for (size_t n = 0; n < types.size(); ++n) {
    if (!is_type_name(types[n])) {
      refuse(
          fmt::format("actor type {} is named \"{}\", and that is no qualified type name like my::Counter; "
                      "give an instance of a template a name of its own by using",
                      n, types[n]));
    }
    if (std::find(types.begin(), types.begin() + std::ptrdiff_t(n), types[n]) !=
        types.begin() + std::ptrdiff_t(n)) {
      refuse(fmt::format("actor type {} is named twice; name each once", types[n]));
    }
  }
  ActorSet set;
  set.own("actors_from_source.hpp", std::move(text), std::move(headers));
  set.types_ = std::move(types);
  return set;
}

void ActorSet::own(std::string text_name, std::string text, std::vector<SourceText> headers) {
  auto owned = std::make_shared<OwnedSources>();
  owned->texts = std::move(headers);
  owned->texts.push_back({std::move(text_name), std::move(text)});
  owned->actor_headers = {owned->texts.back().name};
  const auto& own = gyre_device_headers::sources.files;
  owned->files.assign(own.begin(), own.end());
  for (const SourceText& given : owned->texts) {
    const auto same_name = std::find_if(owned->files.begin(), owned->files.end(),
                                        [&given](const SourceFile& file) { return file.name == given.name; });
    if (same_name == owned->files.end()) {
      owned->files.push_back({given.name, given.text});
    } else if (same_name->text != given.text) {
      refuse(
          fmt::format("there are two headers {} of different text, or it is one of this Gyre's own and not "
                      "the same; give it once, or under another name",
                      given.name));
    }
  }
  sources_ = {owned->files, owned->actor_headers};
  owned_ = std::move(owned);
}

ActorSet ActorSet::for_engine(std::vector<std::string> types, std::vector<SourceText> headers,
                              std::vector<std::string> actor_headers, bool grid_scoped,
                              std::vector<ActorDescription> description,
                              std::span<const CompiledAhead> ahead) {
  auto owned = std::make_shared<OwnedSources>();
  owned->texts = std::move(headers);
  owned->names = std::move(actor_headers);
  for (const SourceText& header : owned->texts) owned->files.push_back({header.name, header.text});
  owned->actor_headers = {owned->names.begin(), owned->names.end()};
  owned->keep(ahead);
  ActorSet set;
  set.sources_ = {owned->files, owned->actor_headers, owned->ahead};
  set.owned_ = std::move(owned);
  set.types_ = std::move(types);
  set.grid_scoped_ = grid_scoped;
  return description.empty() ? set : set.described(std::move(description));
}

ActorSet ActorSet::from_library(const ActorLibrary& library) {
  std::vector<SourceText> headers;
  for (const SourceFile& file : library.headers) {
    headers.push_back({std::string(file.name), std::string(file.text)});
  }
  ActorSet set;
  if (library.actor_headers.empty()) {
    set.own("actors_from_library.hpp", std::string(library.text), std::move(headers));
  } else {
    set.sources_ = {library.headers, library.actor_headers};
  }
  set.sources_.ahead = library.ahead;
  set.types_ = {library.types.begin(), library.types.end()};
  set.grid_scoped_ = library.grid_scoped;
  if (library.description_bytes == 0) return set;
  set.compiled_in_ = true;
  set.make_worker_ = library.make_worker;
  set = set.described(
      read_description({static_cast<const std::byte*>(library.description), library.description_bytes}));
  const std::map<uint64_t, capnp::Schema>& schemas = schemas_of(library);
  const auto schema = [&](uint64_t id) {
    const auto found = schemas.find(id);
    return found == schemas.end() || !found->second.getProto().isStruct() ? capnp::StructSchema()
                                                                          : found->second.asStruct();
  };
  for (Handler& handler : set.handlers_) {
    handler.request_schema = schema(handler.request);
    handler.response_schema = schema(handler.response);
  }
  return set;
}

LibraryOfActors::LibraryOfActors(ActorSet set)
    : set_(std::move(set)), types_(set_.types_.begin(), set_.types_.end()), library_{} {
  for (const std::string_view header : set_.sources_.actor_headers)
    text_ += fmt::format("#include <{}>\n", header);
  if (set_.compiled_in()) description_ = write_description(set_.description_);
  const auto schemas = schemas_below(set_.message_schemas());
  if (!schemas.empty()) schemas_ = encode_schemas(schemas);
  library_ = {types_,
              description_.data(),
              description_.size(),
              text_,
              set_.sources_.files,
              schemas_.empty() ? nullptr : schemas_.data(),
              schemas_.size(),
              set_.make_worker_,
              set_.grid_scoped_,
              set_.sources_.actor_headers,
              set_.sources_.ahead};
}

std::vector<capnp::StructSchema> ActorSet::message_schemas() const {
  std::vector<capnp::StructSchema> schemas;
  for (const Handler& handler : handlers_) {
    for (const capnp::StructSchema& schema : {handler.request_schema, handler.response_schema}) {
      if (schema != capnp::StructSchema()) schemas.push_back(schema);
    }
  }
  return schemas;
}

void ActorSet::require_cpu_worker() const {
  if (make_worker_ != nullptr) return;
  std::string cuda_only;
  for (size_t n = 0; n < description_.size(); ++n) {
    if (description_[n].cuda_only != 0) cuda_only += (cuda_only.empty() ? "" : ", ") + types_[n];
  }
  if (!cuda_only.empty()) {
    throw EngineUnavailable(
        fmt::format("launching on the CPU engine: {} can run on CUDA only (cuda_only); use --engine cuda on "
                    "a machine with "
                    "an NVIDIA GPU, or give the handlers a path for the host's compiler (#if "
                    "!defined(__CUDACC_RTC__)) and "
                    "remove cuda_only",
                    cuda_only));
  }
  throw EngineUnavailable(
      "launching on the CPU engine: actors given as source text run on CUDA only, where they are compiled at "
      "launch; use --engine cuda on a machine with an NVIDIA GPU, or compile the actors into the program and "
      "launch ActorSet::of, or into a library (gyre validate --build-library) and launch "
      "ActorSet::from_library");
}

ActorSet ActorSet::described(std::vector<ActorDescription> description) const {
  if (description.size() != types_.size()) {
    throw Error(fmt::format("reading the actors' description: it is of {} actor types, and the set has {}",
                            description.size(), types_.size()));
  }
  ActorSet set = *this;
  set.describe(std::move(description));
  return set;
}

void ActorSet::describe(std::vector<ActorDescription> description) {
  description_ = std::move(description);
  handlers_.clear();
  for (size_t actor = 0; actor < types_.size(); ++actor) {
    uint16_t message_type = 0;
    for (const HandlerTypes& types : description_[actor].types) {
      const uint32_t max_reply_bytes = description_[actor].max_reply_bytes[message_type];
      handlers_.push_back({fnv1a(types_[actor]),
                           types.request,
                           types.response,
                           uint16_t(actor),
                           message_type++,
                           max_reply_bytes,
                           {},
                           {}});
    }
  }
}

std::optional<uint16_t> ActorSet::type_number(uint64_t actor) const {
  for (size_t n = 0; n < types_.size(); ++n) {
    if (fnv1a(types_[n]) == actor) return uint16_t(n);
  }
  return std::nullopt;
}

uint32_t ActorSet::max_reply_bytes(uint16_t actor_type, uint16_t message_type) const {
  if (actor_type >= description_.size()) return 0;
  const std::vector<uint32_t>& of_actor = description_[actor_type].max_reply_bytes;
  return message_type < of_actor.size() ? of_actor[message_type] : 0;
}

bool ActorSet::has_response(uint16_t actor_type, uint16_t message_type) const {
  if (actor_type >= description_.size()) return false;
  const std::vector<HandlerTypes>& types = description_[actor_type].types;
  return message_type < types.size() && types[message_type].response != 0;
}

uint64_t ActorSet::actor_bytes(uint32_t actors_per_worker) const {
  uint64_t bytes = 0;
  WorkingMemory working;
  const bool lists_keys = rights().sends_to_many;
  for (const ActorDescription& actor : description_) {
    if (__builtin_add_overflow(bytes, actor.table(actors_per_worker, lists_keys).bytes(), &bytes))
      return ~uint64_t(0);
    working.make_room(actor.rollback_bytes, actor.scratch_bytes, actor.has_side_by_side());
  }
  if (__builtin_add_overflow(bytes, working.bytes(), &bytes)) return ~uint64_t(0);
  return bytes;
}

uint32_t ActorSet::most_sent() const {
  uint32_t most = 0;
  for (const ActorDescription& actor : description_) most = std::max<uint32_t>(most, actor.most_sent);
  return most;
}

uint64_t ActorSet::mail_bytes(const Options& options) const {
  if (most_sent() == 0) return 0;
  return mail_layout(options, *this).reserved_bytes();
}

uint64_t ActorSet::mail_bytes_not_zeroed(const Options& options) const {
  if (most_sent() == 0) return 0;
  return mail_bytes(options) - mail_layout(options, *this).zeroed_bytes();
}

std::string ActorSet::problems(const Options& options) const {
  std::string problems;
  const uint32_t slot = options.ring_shape().body_capacity();
  for (const Handler& handler : handlers_) {
    const uint32_t room = handler.max_reply_bytes;
    if (room <= slot || (slot >= sizeof(OutOfLine) && room <= options.arena_bytes)) continue;
    problems += fmt::format(
        "  --arena-bytes {} --slot-bytes {}: actor {} says that replies to its message {} take up to {} "
        "bytes "
        "(max_reply_bytes), and those larger than a slot lie in the arena; ask for a larger arena, and for "
        "slots of 128 bytes at least\n",
        options.arena_bytes, options.slot_bytes, types_[handler.actor_type], handler.message_type, room);
  }
  if (most_sent() != 0 && options.workers > MailHead::most_workers) {
    problems += fmt::format(
        "  --workers {}: a handler of these actors sends, and messages between actors can name {} workers; "
        "ask for no more than those\n",
        options.workers, uint32_t(MailHead::most_workers));
  }
  if (rights().tells_host && told_slots(options.ring_shape()) == 0) {
    problems += fmt::format(
        "  --slots {}: a handler of these actors tells the host, and a quarter of the ring is kept for its "
        "messages; ask for 4 slots at least\n",
        options.slots);
  }
  return problems;
}

std::string ActorSet::type_list() const {
  std::string list;
  for (const std::string& type : types_) list += (list.empty() ? "" : ", ") + type;
  return list;
}

FieldName ActorSet::name_of(uint16_t actor_type, uint16_t message_type, MalformedField field) const {
  for (const Handler& handler : handlers_) {
    if (handler.actor_type != actor_type || handler.message_type != message_type) continue;
    if (handler.request_schema == capnp::StructSchema()) return {};
    try {
      std::set<uint64_t> seen;
      const capnp::StructSchema found = find_struct(handler.request_schema, field.type_id_low_40(), seen);
      if (found == capnp::StructSchema()) return {};
      FieldName name{found.getShortDisplayName().cStr(), nullptr};
      const auto fields = found.getFields();
      if (field.index() < fields.size()) name.field_name = fields[field.index()].getProto().getName().cStr();
      return name;
    } catch (const std::bad_alloc&) {  // the names are a courtesy
      return {};
    } catch (const kj::Exception&) {  // a schema that the library finds fault with
      return {};
    }
  }
  return {};
}

std::string_view ActorSet::actor_name(uint16_t actor_type) const {
  return actor_type < types_.size() ? std::string_view(types_[actor_type]) : std::string_view();
}

std::string_view ActorSet::message_name(uint16_t actor_type, uint16_t message_type) const {
  if (message_type == lifecycle_message::start) return "start";
  if (message_type == lifecycle_message::stop) return "stop";
  for (const Handler& handler : handlers_) {
    if (handler.actor_type != actor_type || handler.message_type != message_type) continue;
    if (handler.request_schema == capnp::StructSchema()) return {};
    return handler.request_schema.getShortDisplayName().cStr();
  }
  return {};
}

Failure ActorSet::failure_of(const Envelope& envelope, const ErrorBody& error) const {
  Failure failure{error.status, error.detail, 0, error.detail};
  if (error.status == Status::malformed) {
    const MalformedField field{error.where};
    const FieldName name = name_of(envelope.actor_type, envelope.message_type, field);
    failure.struct_name = name.struct_name;
    failure.field_name = name.field_name;
    failure.malformed_reason = field.reason();
  } else if (error.status == Status::check_failed) {
    for (const SourceFile& file : sources_.files) {
      const char* const name = static_text(file.name);
      if (name != nullptr && source_name_hash(name) == error.where) failure.file = name;
    }
  } else if (error.status == Status::bad_buffer) {
    const BadHandle bad = BadHandle::of(error.detail, error.where);
    failure.asked = bad.asked;
    failure.limit = bad.there;
  } else if (error.status == Status::actor_table_full && envelope.actor_type < description_.size() &&
             description_[envelope.actor_type].max_per_worker <= error.detail) {
    failure.actor_name = static_text(types_[envelope.actor_type]);
  } else if (error.status == Status::scratch_full || error.status == Status::body_pool_full) {
    failure.asked = error.where;
  }
  return failure;
}

}  // namespace gyre
