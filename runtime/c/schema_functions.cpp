// gyre.h: schemas, and messages by them.
#include <fmt/format.h>
#include <gyre/runtime/c/objects.hpp>

namespace gyre::c {

gyre_status read_encoding(const char* doing, gyre_encoding given, Encoding& encoding) {
  if (given < GYRE_BODY || given > GYRE_PACKED) {
    return invalid(doing,
                   fmt::format("encoding is {}; give GYRE_BODY, GYRE_STREAM or GYRE_PACKED (0 to 2)", given));
  }
  encoding = Encoding(given);
  return GYRE_OK;
}

gyre_status read_bytes(const char* doing, const char* name, const void* given, size_t size,
                       std::span<const std::byte>& bytes) {
  constexpr size_t most = size_t(1) << 40;
  if (size > most)
    return invalid(doing, fmt::format("{} has {} bytes, and {} are the most", name, size, most));
  if (given == nullptr && size != 0) return invalid(doing, fmt::format("{} is null", name));
  bytes = {static_cast<const std::byte*>(given), size};
  return GYRE_OK;
}

namespace {

static_assert(GYRE_BODY == int(Encoding::body) && GYRE_STREAM == int(Encoding::stream) &&
              GYRE_PACKED == int(Encoding::packed));

// As guarded, of what a Schema throws too.
template <class Body>
gyre_status guarded_schema(const char* doing, Body&& body) noexcept {
  return guarded(doing, [&]() -> gyre_status {
    try {
      return body();
    } catch (const BadSchema& error) {
      return refuse(GYRE_BAD_SCHEMA,
                    fmt::format("{}: this is wrong with the schemas:\n{}", doing, error.what()));
    } catch (const UnknownType& error) {
      return refuse(GYRE_UNKNOWN_TYPE, fmt::format("{}: {}", doing, error.what()));
    } catch (const BadJson& error) {
      return refuse(GYRE_BAD_JSON, fmt::format("{}: {}", doing, error.what()));
    } catch (const BadMessage& error) {
      return refuse(GYRE_MALFORMED, fmt::format("{}: {}", doing, error.what()));
    }
  });
}

}  // namespace
}  // namespace gyre::c

using namespace gyre;
using namespace gyre::c;

gyre_status gyre_schema_parse(const gyre_text* files, size_t count, gyre_schema* schema) {
  const char* const doing = "gyre_schema_parse";
  return guarded_schema(doing, [&]() -> gyre_status {
    if (schema == nullptr) return invalid(doing, "schema is null");
    if (count > most_listed) {
      return invalid(doing, fmt::format("{} files are given, and {} are the most", count, most_listed));
    }
    if (files == nullptr && count != 0) return invalid(doing, "files is null, and count is not 0");
    std::vector<SourceText> texts;
    for (size_t i = 0; i < count; ++i) {
      std::string_view name, text;
      GYRE_C_TRY(read_text(doing, "a file's name", files[i].name, name));
      GYRE_C_TRY(read_text(doing, "a file's text", files[i].text, files[i].text_length, text));
      texts.push_back({std::string(name), std::string(text)});
    }
    *schema = Schemas::table().add(Schema(texts));
    return GYRE_OK;
  });
}

gyre_status gyre_schema_type_id(gyre_schema schema, const char* name, uint64_t* id) {
  const char* const doing = "gyre_schema_type_id";
  return guarded_schema(doing, [&]() -> gyre_status {
    Use<Schemas> used;
    GYRE_C_TRY(use<Schemas>(doing, schema, used));
    std::string_view text;
    GYRE_C_TRY(read_text(doing, "name", name, text));
    if (id == nullptr) return invalid(doing, "id is null");
    *id = used->type_id(text);
    return GYRE_OK;
  });
}

gyre_status gyre_schema_describe(gyre_schema schema, char* buffer, size_t capacity, size_t* size) {
  const char* const doing = "gyre_schema_describe";
  return guarded_schema(doing, [&]() -> gyre_status {
    Use<Schemas> used;
    GYRE_C_TRY(use<Schemas>(doing, schema, used));
    return give_text(doing, used->description(), buffer, capacity, size);
  });
}

gyre_status gyre_schema_view(gyre_schema schema, size_t index, gyre_text* view) {
  const char* const doing = "gyre_schema_view";
  return guarded_schema(doing, [&]() -> gyre_status {
    Use<Schemas> used;
    GYRE_C_TRY(use<Schemas>(doing, schema, used));
    if (view == nullptr) return invalid(doing, "view is null");
    const auto& views = used->views();
    if (index >= views.size()) {
      return invalid(doing, fmt::format("there is no view {}: the schema has {}", index, views.size()));
    }
    *view = {views[index].name.c_str(), views[index].text.c_str(), views[index].text.size()};
    return GYRE_OK;
  });
}

gyre_status gyre_actors_schema(gyre_actors actors, gyre_schema* schema) {
  const char* const doing = "gyre_actors_schema";
  return guarded_schema(doing, [&]() -> gyre_status {
    Use<ActorSets> used;
    GYRE_C_TRY(use<ActorSets>(doing, actors, used));
    if (schema == nullptr) return invalid(doing, "schema is null");
    const auto roots = used->message_schemas();
    if (roots.empty()) {
      return refuse(
          GYRE_BAD_SCHEMA,
          fmt::format("{}: the actors carry no schema: they are source text, or the source that exports them "
                      "does not include the .official.hpp of their messages; parse its text",
                      doing));
    }
    *schema = Schemas::table().add(Schema(roots));
    return GYRE_OK;
  });
}

gyre_status gyre_actors_check_schema(gyre_actors actors, gyre_schema schema) {
  const char* const doing = "gyre_actors_check_schema";
  return guarded_schema(doing, [&]() -> gyre_status {
    Use<ActorSets> used;
    GYRE_C_TRY(use<ActorSets>(doing, actors, used));
    Use<Schemas> given;
    GYRE_C_TRY(use<Schemas>(doing, schema, given));
    given->check_against(used->message_schemas());
    return GYRE_OK;
  });
}

gyre_status gyre_schema_release(gyre_schema schema) {
  return release<Schemas>("gyre_schema_release", schema);
}

gyre_status gyre_message_from_json(gyre_schema schema, uint64_t type_id, const char* json, size_t json_length,
                                   gyre_encoding encoding, void* buffer, size_t capacity, size_t* size) {
  const char* const doing = "gyre_message_from_json";
  return guarded_schema(doing, [&]() -> gyre_status {
    Use<Schemas> used;
    GYRE_C_TRY(use<Schemas>(doing, schema, used));
    constexpr size_t most_json = size_t(1) << 28;
    if (json == nullptr) return invalid(doing, "json is null");
    if (json_length > most_json) {
      return invalid(doing, fmt::format("json has {} bytes, and {} are the most", json_length, most_json));
    }
    Encoding known{};
    GYRE_C_TRY(read_encoding(doing, encoding, known));
    const auto bytes = used->from_json(type_id, {json, json_length}, known);
    return give_bytes(doing, bytes.data(), bytes.size(), buffer, capacity, size);
  });
}

gyre_status gyre_message_to_json(gyre_schema schema, uint64_t type_id, const void* bytes, size_t bytes_size,
                                 gyre_encoding encoding, char* buffer, size_t capacity, size_t* size) {
  const char* const doing = "gyre_message_to_json";
  return guarded_schema(doing, [&]() -> gyre_status {
    Use<Schemas> used;
    GYRE_C_TRY(use<Schemas>(doing, schema, used));
    Encoded message;
    GYRE_C_TRY(read_encoding(doing, encoding, message.encoding));
    GYRE_C_TRY(read_bytes(doing, "bytes", bytes, bytes_size, message.bytes));
    return give_text(doing, used->to_json(type_id, message), buffer, capacity, size);
  });
}

gyre_status gyre_message_encode(const void* body, size_t body_size, gyre_encoding encoding, void* buffer,
                                size_t capacity, size_t* size) {
  const char* const doing = "gyre_message_encode";
  return guarded_schema(doing, [&]() -> gyre_status {
    Encoding known{};
    GYRE_C_TRY(read_encoding(doing, encoding, known));
    std::span<const std::byte> bytes;
    GYRE_C_TRY(read_bytes(doing, "body", body, body_size, bytes));
    if (body_size % 8 != 0) {
      return refuse(GYRE_MALFORMED,
                    fmt::format("{}: body has {} bytes, and a body is whole words of 8", doing, body_size));
    }
    // The library reads words where they are.
    std::vector<uint64_t> words(body_size / 8);
    if (body_size != 0) std::memcpy(words.data(), body, body_size);
    const auto encoded = encode(std::as_bytes(std::span(words)), known);
    return give_bytes(doing, encoded.data(), encoded.size(), buffer, capacity, size);
  });
}
