#include <kj/exception.h>
#include <gyre/runtime/actor_set.hpp>

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

}  // namespace

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
    } catch (const kj::Exception&) {  // a schema that the library finds fault with: the names are a courtesy
      return {};
    }
  }
  return {};
}

std::string_view ActorSet::actor_name(uint16_t actor_type) const {
  return actor_type < actor_names_.size() ? actor_names_[actor_type] : std::string_view();
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
      const std::string name(file.name);
      if (source_name_hash(name.c_str()) == error.where) failure.file = static_text(name);
    }
  } else if (error.status == Status::bad_buffer) {
    const BadHandle bad = BadHandle::of(error.detail, error.where);
    failure.asked = bad.asked;
    failure.limit = bad.there;
  }
  return failure;
}

}  // namespace gyre
