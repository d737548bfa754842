/* Every function of gyre.h with null, wrong, stale and oversized arguments: an error code each time, no
   crash, and nothing written. tests/c/calls_all_test.sh holds this file against what the library exports. */
#include <sched.h>
#include <stdatomic.h>

#include "expect.h"

/* A message of a null root: all its fields are the defaults. */
static const uint64_t nothing[1] = {0};

enum { BAD_HANDLES = 5 };

/* Handles that are good for nothing: the last is of what was released. */
typedef struct Wrong {
  uint64_t handle[BAD_HANDLES];
} Wrong;

static Wrong wrong_for(uint64_t of_something_else, uint64_t stale) {
  const Wrong wrong = {{0, 1, UINT64_MAX, of_something_else, stale}};
  return wrong;
}

/* `call` uses `h`. */
#define EXPECT_HANDLES_REFUSED(wrong, call)                                                \
  for (int which = 0; which < BAD_HANDLES; ++which) {                                      \
    const uint64_t h = (wrong).handle[which];                                              \
    EXPECT_STATUS(which == BAD_HANDLES - 1 ? GYRE_STALE_HANDLE : GYRE_BAD_HANDLE, (call)); \
  }

/* A struct whose size nobody knows: too small, too large, and nothing at all. `call` uses what `size` is a
 * field of. */
#define EXPECT_SIZES_REFUSED(size, call)                  \
  for (int which = 0; which < 4; ++which) {               \
    static const size_t sizes[] = {0, 8, 4097, SIZE_MAX}; \
    (size) = sizes[which];                                \
    EXPECT_STATUS(GYRE_INVALID_ARGUMENT, (call));         \
  }

/* More than a string may have. */
static char* endless_text(void) {
  const size_t size = ((size_t)1 << 26) + 2;
  char* const text = malloc(size);
  if (text == NULL) exit(1);
  memset(text, 'a', size - 1);
  text[size - 1] = 0;
  return text;
}

static void errors(void) {
  EXPECT(strcmp(gyre_version(), GYRE_VERSION) == 0);
  EXPECT(strcmp(gyre_status_name(GYRE_RING_FULL), "ring_full") == 0);
  EXPECT(strcmp(gyre_status_name(GYRE_STALE_HANDLE), "stale_handle") == 0);
  EXPECT(strcmp(gyre_status_name(GYRE_BAD_JSON), "bad_json") == 0);
  static const gyre_status strange[] = {-1, INT32_MIN, INT32_MAX, 999, 41};
  for (size_t i = 0; i < sizeof strange / sizeof strange[0]; ++i) {
    EXPECT(strcmp(gyre_status_name(strange[i]), "unknown status") == 0);
  }
  EXPECT(strcmp(gyre_last_error(), "") == 0);

  gyre_error_entry entry = {sizeof entry, NULL, NULL, NULL};
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_find_error(GYRE_SOURCE_GYRE, GYRE_RING_FULL, NULL));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_find_error(-1, 1, &entry));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_find_error(3, 1, &entry));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_find_error(INT32_MAX, 1, &entry));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_find_error(GYRE_SOURCE_CUDA, UINT32_MAX, &entry));
  EXPECT_SIZES_REFUSED(entry.struct_size, gyre_find_error(GYRE_SOURCE_GYRE, GYRE_RING_FULL, &entry));
  EXPECT(entry.name == NULL && entry.meaning == NULL && entry.check == NULL);
  entry.struct_size = sizeof entry;
  EXPECT_STATUS(GYRE_OK, gyre_find_error(GYRE_SOURCE_CUDA, 700, &entry));
  EXPECT(strcmp(entry.name, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0 && entry.meaning[0] != 0);
}

static void schemas(const char* endless, uint64_t of_something_else) {
  static const char text[] =
      "@0xf1e2d3c4b5a69788;\n"
      "using Cxx = import \"/capnp/c++.capnp\";\n"
      "$Cxx.namespace(\"test\");\n"
      "struct Point { x @0 :Int32; name @1 :Text; }\n";
  const gyre_text file = {"point.capnp", text, sizeof text - 1};
  gyre_schema schema = 99;
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_schema_parse(&file, 1, NULL));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_schema_parse(NULL, 1, &schema));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_schema_parse(&file, 4097, &schema));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_schema_parse(&file, SIZE_MAX, &schema));
  static const gyre_text refused[] = {
      {NULL, "", 0}, {"a.capnp", NULL, 1}, {"a.capnp", "", SIZE_MAX}, {"a.capnp", "", ((size_t)1 << 26) + 1}};
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; ++i) {
    EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_schema_parse(&refused[i], 1, &schema));
  }
  const gyre_text endless_name = {endless, "", 0};
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_schema_parse(&endless_name, 1, &schema));
  static const char* const bad[] = {
      "",
      "struct",
      "@0xf1e2d3c4b5a69788; struct Point { x @0 :Int32; }",
      "@0xf1e2d3c4b5a69788; struct A { x @0 :B; }",
      "@0xf1e2d3c4b5a69788; using B = import \"nowhere.capnp\"; struct A { x @0 :B.C; }",
      "\xff\xfe\0"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
    const gyre_text bad_file = {"bad.capnp", bad[i], strlen(bad[i])};
    EXPECT_STATUS(GYRE_BAD_SCHEMA, gyre_schema_parse(&bad_file, 1, &schema));
  }
  // Deep enough to overflow the stack of who follows it.
  static char deep[100000];
  static const struct {
    const char* text;
    const char* again;
  } nested[] = {{"const a :Text = ", "("}, {"const a :Text = \"#\"", "("}, {"const a :Text = # )\n", "["},
                {"", "struct A {"},        {"struct A { x @0 :", "List("}, {"struct A { x @0 :A", ".A"}};
  for (size_t i = 0; i < sizeof nested / sizeof nested[0]; ++i) {
    strcpy(deep, "@0xf1e2d3c4b5a69788; using Cxx = import \"/capnp/c++.capnp\"; $Cxx.namespace(\"a\");");
    strcat(deep, nested[i].text);
    size_t length = strlen(deep);
    const size_t more = strlen(nested[i].again);
    while (length + more < sizeof deep) {
      memcpy(deep + length, nested[i].again, more);
      length += more;
    }
    EXPECT_STATUS(GYRE_BAD_SCHEMA, gyre_schema_parse(&(gyre_text){"deep.capnp", deep, length}, 1, &schema));
    EXPECT(strstr(gyre_last_error(), "deep.capnp:") != NULL);
  }
  EXPECT_STATUS(GYRE_BAD_SCHEMA,
                gyre_schema_parse(&(gyre_text){"no_ending", text, sizeof text - 1}, 1, &schema));
  EXPECT_STATUS(GYRE_BAD_SCHEMA, gyre_schema_parse(&(gyre_text){"", text, sizeof text - 1}, 1, &schema));
  EXPECT_STATUS(GYRE_BAD_SCHEMA,
                gyre_schema_parse(&(gyre_text){"capnp/c++.capnp", text, sizeof text - 1}, 1, &schema));
  const gyre_text twice[] = {file, file};
  EXPECT_STATUS(GYRE_BAD_SCHEMA, gyre_schema_parse(twice, 2, &schema));
  EXPECT(schema == 99);

  gyre_schema stale;
  REQUIRE_OK(gyre_schema_parse(&file, 1, &stale));
  REQUIRE_OK(gyre_schema_release(stale));
  const Wrong wrong = wrong_for(of_something_else, stale);
  REQUIRE_OK(gyre_schema_parse(&file, 1, &schema));
  EXPECT(schema != stale);

  uint64_t id = 77;
  EXPECT_HANDLES_REFUSED(wrong, gyre_schema_type_id(h, "Point", &id));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_schema_type_id(schema, NULL, &id));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_schema_type_id(schema, endless, &id));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_schema_type_id(schema, "Point", NULL));
  EXPECT_STATUS(GYRE_UNKNOWN_TYPE, gyre_schema_type_id(schema, "Nobody", &id));
  EXPECT_STATUS(GYRE_UNKNOWN_TYPE, gyre_schema_type_id(schema, "", &id));
  EXPECT_STATUS(GYRE_UNKNOWN_TYPE, gyre_schema_type_id(schema, "other.capnp:Point", &id));
  EXPECT(id == 77);
  REQUIRE_OK(gyre_schema_type_id(schema, "point.capnp:Point", &id));

  char buffer[64] = "untouched";
  size_t size = 0;
  EXPECT_HANDLES_REFUSED(wrong, gyre_schema_describe(h, buffer, sizeof buffer, &size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_schema_describe(schema, buffer, sizeof buffer, NULL));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_schema_describe(schema, NULL, 1 << 20, &size));
  EXPECT_STATUS(GYRE_TOO_SMALL, gyre_schema_describe(schema, buffer, sizeof buffer, &size));
  EXPECT_STATUS(GYRE_TOO_SMALL, gyre_schema_describe(schema, NULL, 0, &size));
  EXPECT(size > sizeof buffer && strcmp(buffer, "untouched") == 0);

  gyre_text view = {NULL, NULL, 5};
  EXPECT_HANDLES_REFUSED(wrong, gyre_schema_view(h, 0, &view));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_schema_view(schema, 0, NULL));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_schema_view(schema, 1, &view));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_schema_view(schema, SIZE_MAX, &view));
  EXPECT(view.name == NULL && view.text_length == 5);

  static const char json[] = "{\"x\": 3, \"name\": \"p\"}";
  unsigned char message[64] = {7};
  size = 55;
  EXPECT_HANDLES_REFUSED(wrong,
                         gyre_message_from_json(h, id, json, strlen(json), GYRE_BODY, message, 64, &size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_message_from_json(schema, id, NULL, 3, GYRE_BODY, message, 64, &size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_message_from_json(schema, id, json, SIZE_MAX, GYRE_BODY, message, 64, &size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_message_from_json(schema, id, json, strlen(json), 3, message, 64, &size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_message_from_json(schema, id, json, strlen(json), -1, message, 64, &size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_message_from_json(schema, id, json, strlen(json), GYRE_BODY, message, 64, NULL));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_message_from_json(schema, id, json, strlen(json), GYRE_BODY, NULL, 64, &size));
  EXPECT_STATUS(GYRE_UNKNOWN_TYPE,
                gyre_message_from_json(schema, 5, json, strlen(json), GYRE_BODY, message, 64, &size));
  static const char* const bad_json[] = {"",
                                         "{",
                                         "[]",
                                         "3",
                                         "{\"x\": \"three\"}",
                                         "{\"y\": 3}",
                                         "{\"x\": 1e30}",
                                         "\xff",
                                         "{\"name\": \"\\ud800\"}",
                                         "{\"name\": \"\\ude00\\ud83d\"}",
                                         "{\"name\": \"\\u12"};
  for (size_t i = 0; i < sizeof bad_json / sizeof bad_json[0]; ++i) {
    EXPECT_STATUS(GYRE_BAD_JSON, gyre_message_from_json(schema, id, bad_json[i], strlen(bad_json[i]),
                                                        GYRE_BODY, message, 64, &size));
  }
  EXPECT(size == 55 && message[0] == 7);
  EXPECT_STATUS(GYRE_TOO_SMALL,
                gyre_message_from_json(schema, id, json, strlen(json), GYRE_BODY, message, 8, &size));
  EXPECT(size == 32 && message[0] == 7);
  REQUIRE_OK(
      gyre_message_from_json(schema, id, json, strlen(json), GYRE_BODY, message, sizeof message, &size));

  size_t text_size = 44;
  EXPECT_HANDLES_REFUSED(wrong,
                         gyre_message_to_json(h, id, message, size, GYRE_BODY, buffer, 64, &text_size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_message_to_json(schema, id, NULL, size, GYRE_BODY, buffer, 64, &text_size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_message_to_json(schema, id, message, SIZE_MAX, GYRE_BODY, buffer, 64, &text_size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_message_to_json(schema, id, message, size, 9, buffer, 64, &text_size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_message_to_json(schema, id, message, size, GYRE_BODY, buffer, 64, NULL));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_message_to_json(schema, id, message, size, GYRE_BODY, NULL, 64, &text_size));
  EXPECT_STATUS(GYRE_UNKNOWN_TYPE,
                gyre_message_to_json(schema, 0, message, size, GYRE_BODY, buffer, 64, &text_size));
  EXPECT_STATUS(GYRE_MALFORMED,
                gyre_message_to_json(schema, id, message, size, GYRE_STREAM, buffer, 64, &text_size));
  EXPECT_STATUS(GYRE_MALFORMED,
                gyre_message_to_json(schema, id, message, 16, GYRE_BODY, buffer, 64, &text_size));
  static const unsigned char noise[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                          0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
  for (gyre_encoding encoding = GYRE_BODY; encoding <= GYRE_PACKED; ++encoding) {
    EXPECT_STATUS(GYRE_MALFORMED,
                  gyre_message_to_json(schema, id, noise, 16, encoding, buffer, 64, &text_size));
  }
  EXPECT(text_size == 44 && strcmp(buffer, "untouched") == 0);
  EXPECT_STATUS(GYRE_TOO_SMALL,
                gyre_message_to_json(schema, id, message, size, GYRE_BODY, buffer, 3, &text_size));
  EXPECT(text_size > 3 && strcmp(buffer, "untouched") == 0);

  unsigned char encoded[64] = {9};
  size_t encoded_size = 33;
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_message_encode(NULL, 8, GYRE_STREAM, encoded, 64, &encoded_size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_message_encode(message, SIZE_MAX, GYRE_STREAM, encoded, 64, &encoded_size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_message_encode(message, size, -7, encoded, 64, &encoded_size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_message_encode(message, size, GYRE_STREAM, NULL, 64, &encoded_size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_message_encode(message, size, GYRE_STREAM, encoded, 64, NULL));
  EXPECT_STATUS(GYRE_MALFORMED, gyre_message_encode(message, 7, GYRE_STREAM, encoded, 64, &encoded_size));
  EXPECT(encoded_size == 33 && encoded[0] == 9);
  EXPECT_STATUS(GYRE_TOO_SMALL, gyre_message_encode(message, size, GYRE_STREAM, encoded, 1, &encoded_size));
  EXPECT(encoded_size == size + 8 && encoded[0] == 9);

  EXPECT_HANDLES_REFUSED(wrong, gyre_schema_release(h));
  EXPECT_STATUS(GYRE_OK, gyre_schema_release(schema));
  EXPECT_STATUS(GYRE_STALE_HANDLE, gyre_schema_release(schema));
}

static void actors(const char* endless, uint64_t of_something_else) {
  gyre_actors set = 98;
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_actors_builtin(NULL));
  gyre_actors stale;
  REQUIRE_OK(gyre_actors_builtin(&stale));
  REQUIRE_OK(gyre_actors_release(stale));
  const Wrong wrong = wrong_for(of_something_else, stale);

  const char* const types[] = {"my::Actor"};
  const char* const null_types[] = {NULL};
  const char* const endless_types[] = {endless};
  const char* const bad_types[] = {"not a type<>"};
  const gyre_text header = {"a.hpp", "", 0};
  const gyre_source good = {sizeof good, "", 0, types, 1, NULL, 0, 0};
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_actors_from_source(NULL, &set));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_actors_from_source(&good, NULL));
  gyre_source source = good;
  EXPECT_SIZES_REFUSED(source.struct_size, gyre_actors_from_source(&source, &set));
#define EXPECT_SOURCE_REFUSED(status, change)                      \
  do {                                                             \
    source = good;                                                 \
    change;                                                        \
    EXPECT_STATUS(status, gyre_actors_from_source(&source, &set)); \
  } while (0)
  EXPECT_SOURCE_REFUSED(GYRE_INVALID_ARGUMENT, source.text = NULL);
  EXPECT_SOURCE_REFUSED(GYRE_INVALID_ARGUMENT, source.text_length = SIZE_MAX);
  EXPECT_SOURCE_REFUSED(GYRE_INVALID_ARGUMENT, source.types = NULL);
  EXPECT_SOURCE_REFUSED(GYRE_INVALID_ARGUMENT, source.types = null_types);
  EXPECT_SOURCE_REFUSED(GYRE_INVALID_ARGUMENT, source.types = endless_types);
  EXPECT_SOURCE_REFUSED(GYRE_INVALID_ARGUMENT, source.type_count = SIZE_MAX);
  EXPECT_SOURCE_REFUSED(GYRE_INVALID_ARGUMENT, source.header_count = 1);
  EXPECT_SOURCE_REFUSED(GYRE_INVALID_ARGUMENT, (source.headers = &header, source.header_count = SIZE_MAX));
  EXPECT_SOURCE_REFUSED(GYRE_BAD_OPTIONS, source.type_count = 0);
  EXPECT_SOURCE_REFUSED(GYRE_BAD_OPTIONS, source.types = bad_types);
  for (int which = 1; which < BAD_HANDLES; ++which) {
    EXPECT_SOURCE_REFUSED(GYRE_BAD_HANDLE,
                          source.schema = wrong.handle[which]); /* sets of actors, if anything */
  }

  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_actors_load(NULL, "a", &set));
  EXPECT_STATUS(GYRE_FAILED, gyre_actors_load("/no/such/file.so", NULL, &set));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_actors_load("a.so", "a", NULL));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_actors_load(endless, "a", &set));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_actors_load("a.so", endless, &set));
  EXPECT_STATUS(GYRE_FAILED, gyre_actors_load("/no/such/file.so", "a", &set));
  EXPECT_STATUS(GYRE_FAILED, gyre_actors_load("", "a", &set));
  EXPECT_STATUS(GYRE_FAILED, gyre_actors_load("libc.so.6", "a", &set));
  EXPECT(set == 98);

  /* What the actors carry. */
  gyre_schema carried = 96, parsed;
  gyre_actors builtin;
  REQUIRE_OK(gyre_actors_builtin(&builtin));
  REQUIRE_OK(gyre_schema_parse(NULL, 0, &parsed));
  EXPECT_HANDLES_REFUSED(wrong, gyre_actors_schema(h, &carried));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_actors_schema(builtin, NULL));
  EXPECT_HANDLES_REFUSED(wrong, gyre_actors_check_schema(h, parsed));
  EXPECT_STATUS(GYRE_BAD_HANDLE, gyre_actors_check_schema(builtin, builtin));
  EXPECT(carried == 96);
  REQUIRE_OK(gyre_actors_schema(builtin, &carried));
  EXPECT_STATUS(GYRE_OK, gyre_actors_check_schema(builtin, carried));
  EXPECT_STATUS(GYRE_OK, gyre_actors_check_schema(builtin, parsed));
  EXPECT_STATUS(GYRE_OK, gyre_schema_release(carried));
  EXPECT_STATUS(GYRE_OK, gyre_schema_release(parsed));
  EXPECT_STATUS(GYRE_OK, gyre_actors_release(builtin));

  /* Source text runs on CUDA alone, and carries no schema. */
  REQUIRE_OK(gyre_actors_from_source(&good, &set));
  EXPECT_STATUS(GYRE_BAD_SCHEMA, gyre_actors_schema(set, &carried));
  gyre_options options;
  REQUIRE_OK(gyre_options_init(&options, sizeof options));
  options.engine = GYRE_ENGINE_CPU;
  gyre_runtime runtime = 97;
  EXPECT_STATUS(GYRE_ENGINE_UNAVAILABLE, gyre_launch(set, &options, &runtime));
  for (int which = 1; which < BAD_HANDLES; ++which) { /* 0 is the built-in actors */
    EXPECT_STATUS(which == BAD_HANDLES - 1 ? GYRE_STALE_HANDLE : GYRE_BAD_HANDLE,
                  gyre_launch(wrong.handle[which], &options, &runtime));
  }
  EXPECT(runtime == 97);

  EXPECT_HANDLES_REFUSED(wrong, gyre_actors_release(h));
  EXPECT_STATUS(GYRE_OK, gyre_actors_release(set));
  EXPECT_STATUS(GYRE_STALE_HANDLE, gyre_actors_release(set));
}

static void launches(const char* endless) {
  gyre_options options;
  memset(&options, 0x55, sizeof options);
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_options_init(NULL, sizeof options));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_options_init(&options, 0));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_options_init(&options, sizeof options - 1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_options_init(&options, SIZE_MAX));
  EXPECT(options.workers == 0x55555555);
  gyre_options good;
  REQUIRE_OK(gyre_options_init(&good, sizeof good));
  good.engine = GYRE_ENGINE_CPU;

  gyre_runtime runtime = 96;
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_launch(0, &good, NULL));
  options = good;
  EXPECT_SIZES_REFUSED(options.struct_size, gyre_launch(0, &options, &runtime));
#define EXPECT_OPTIONS_REFUSED(change)                                   \
  do {                                                                   \
    options = good;                                                      \
    change;                                                              \
    EXPECT_STATUS(GYRE_BAD_OPTIONS, gyre_launch(0, &options, &runtime)); \
  } while (0)
  EXPECT_OPTIONS_REFUSED(options.engine = 3);
  EXPECT_OPTIONS_REFUSED(options.engine = -1);
  EXPECT_OPTIONS_REFUSED(options.device = -1);
  EXPECT_OPTIONS_REFUSED(options.device = INT32_MIN);
  EXPECT_OPTIONS_REFUSED(options.transport = 5);
  EXPECT_OPTIONS_REFUSED(options.transport = GYRE_TRANSPORT_BAR); /* not on the CPU */
  EXPECT_OPTIONS_REFUSED(options.wait = 2);
  EXPECT_OPTIONS_REFUSED(options.workers = 0);
  EXPECT_OPTIONS_REFUSED(options.workers = UINT32_MAX);
  EXPECT_OPTIONS_REFUSED(options.slots = 3);
  EXPECT_OPTIONS_REFUSED(options.slots = 0);
  EXPECT_OPTIONS_REFUSED(options.slot_bytes = 1);
  EXPECT_OPTIONS_REFUSED(options.slot_bytes = UINT32_MAX);
  EXPECT_OPTIONS_REFUSED(options.arena_bytes = 1);
  EXPECT_OPTIONS_REFUSED(options.arena_bytes = UINT64_MAX);
  EXPECT_OPTIONS_REFUSED(options.region_budget = 1);
  EXPECT_OPTIONS_REFUSED(options.max_buffers = UINT32_MAX);
  EXPECT_OPTIONS_REFUSED(options.timeout_ms = 0);
  EXPECT_OPTIONS_REFUSED(options.timeout_ms = -1);
  EXPECT_OPTIONS_REFUSED(options.timeout_ms = INT64_MAX);
  EXPECT_OPTIONS_REFUSED(options.timeout_ms = INT64_MIN);
  EXPECT_OPTIONS_REFUSED(options.isolation = 2);
  EXPECT_OPTIONS_REFUSED(options.isolation = -1);
  EXPECT_OPTIONS_REFUSED(options.context = 3);
  EXPECT_OPTIONS_REFUSED(options.context = -1);
  EXPECT_OPTIONS_REFUSED(options.context = GYRE_CONTEXT_GIVEN);
  EXPECT_OPTIONS_REFUSED(options.cuda_context = &options);
  EXPECT_OPTIONS_REFUSED(options.reserved = 1);
  EXPECT_OPTIONS_REFUSED(options.heartbeat_timeout_ms = 99);
  EXPECT_OPTIONS_REFUSED(options.restart_within_ms = 0);
  EXPECT_OPTIONS_REFUSED(options.stall_after_ms = 9);
  EXPECT_OPTIONS_REFUSED(options.stall_after_ms = 1000); /* there is no engine process */
  EXPECT_OPTIONS_REFUSED(options.restart_within_ms = INT64_MAX);
  EXPECT_OPTIONS_REFUSED(options.heartbeat_timeout_ms = -1);
  EXPECT_OPTIONS_REFUSED(options.heartbeat_timeout_ms = INT64_MAX);
  EXPECT_OPTIONS_REFUSED(options.pin_worker_count = 1);
  EXPECT_OPTIONS_REFUSED(options.pin_worker_count = SIZE_MAX);
  const int32_t no_such_processor = -1;
  EXPECT_OPTIONS_REFUSED((options.pin_workers = &no_such_processor, options.pin_worker_count = 1));
  options = good;
  options.keep_program = endless;
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_launch(0, &options, &runtime));
  /* A later version's field, which this one does not know. */
  struct {
    gyre_options known;
    uint64_t later;
  } longer = {good, 1};
  longer.known.struct_size = sizeof longer;
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_launch(0, &longer.known, &runtime));
  EXPECT(runtime == 96);
}

static void messages(gyre_runtime runtime, const Wrong wrong, const char* endless, uint64_t request) {
  gyre_send_options good;
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_send_options_init(NULL, sizeof good));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_send_options_init(&good, 3));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_send_options_init(&good, SIZE_MAX));
  REQUIRE_OK(gyre_send_options_init(&good, sizeof good));
  uint64_t body[32] = {0};
  const size_t size = sizeof body;
  gyre_call call = 95;

  typedef gyre_status Ask(gyre_runtime, const char*, uint64_t, uint64_t, const void*, size_t,
                          const gyre_send_options*, gyre_call*);
  Ask* const asks[] = {gyre_ask, gyre_ask_and_wait};
  for (int form = 0; form < 2; ++form) {
    Ask* const ask = asks[form];
    EXPECT_HANDLES_REFUSED(wrong, ask(h, ECHO, 0, request, body, size, NULL, &call));
    EXPECT_STATUS(GYRE_INVALID_ARGUMENT, ask(runtime, NULL, 0, request, body, size, NULL, &call));
    EXPECT_STATUS(GYRE_INVALID_ARGUMENT, ask(runtime, endless, 0, request, body, size, NULL, &call));
    EXPECT_STATUS(GYRE_INVALID_ARGUMENT, ask(runtime, ECHO, 0, request, NULL, size, NULL, &call));
    EXPECT_STATUS(GYRE_INVALID_ARGUMENT, ask(runtime, ECHO, 0, request, body, size, NULL, NULL));
    EXPECT_STATUS(GYRE_UNKNOWN_ACTOR, ask(runtime, "", 0, request, body, size, NULL, &call));
    EXPECT_STATUS(GYRE_UNKNOWN_ACTOR,
                  ask(runtime, "gyre::actors::Nobody", 0, request, body, size, NULL, &call));
    EXPECT_STATUS(GYRE_UNKNOWN_MESSAGE, ask(runtime, ECHO, 0, 1, body, size, NULL, &call));
    EXPECT_STATUS(GYRE_UNKNOWN_MESSAGE, ask(runtime, VECTOR_ADD, 0, request, body, size, NULL, &call));
    EXPECT_STATUS(GYRE_TOO_LARGE, ask(runtime, ECHO, 0, request, body, SIZE_MAX, NULL, &call));
    EXPECT_STATUS(GYRE_TOO_LARGE, ask(runtime, ECHO, 0, request, body, (size_t)1 << 40, NULL, &call));
    EXPECT_STATUS(GYRE_MALFORMED, ask(runtime, ECHO, 0, request, body, 7, NULL, &call));
    gyre_send_options options = good;
    EXPECT_SIZES_REFUSED(options.struct_size, ask(runtime, ECHO, 0, request, body, size, &options, &call));
#define EXPECT_SENDING_REFUSED(status, change, sent) \
  do {                                               \
    options = good;                                  \
    change;                                          \
    EXPECT_STATUS(status, sent);                     \
  } while (0)
#define EXPECT_ASK_REFUSED(status, change) \
  EXPECT_SENDING_REFUSED(status, change, ask(runtime, ECHO, 0, request, body, size, &options, &call))
    EXPECT_ASK_REFUSED(GYRE_INVALID_ARGUMENT, options.encoding = 3);
    EXPECT_ASK_REFUSED(GYRE_INVALID_ARGUMENT, options.encoding = -1);
    EXPECT_ASK_REFUSED(GYRE_INVALID_ARGUMENT, options.when_full = 2);
    EXPECT_ASK_REFUSED(GYRE_INVALID_ARGUMENT, options.when_full = INT32_MIN);
    EXPECT_ASK_REFUSED(GYRE_INVALID_ARGUMENT, options.timeout_ns = -2);
    EXPECT_ASK_REFUSED(GYRE_INVALID_ARGUMENT, options.timeout_ns = INT64_MIN);
    EXPECT_ASK_REFUSED(GYRE_INVALID_ARGUMENT, options.expires_after_ns = 1);
    EXPECT_ASK_REFUSED(GYRE_INVALID_ARGUMENT, options.expires_after_ns = -1);
    EXPECT_ASK_REFUSED(GYRE_INVALID_ARGUMENT, options.reserved = 1);
    EXPECT_ASK_REFUSED(GYRE_TOO_LARGE, options.max_reply_bytes = UINT32_MAX);
    memset(body, 0xff, sizeof body);
    EXPECT_ASK_REFUSED(GYRE_MALFORMED, options.encoding = GYRE_STREAM);
    EXPECT_ASK_REFUSED(GYRE_MALFORMED, options.encoding = GYRE_PACKED);
    memset(body, 0, sizeof body);
  }
  EXPECT(call == 95);

  gyre_send_options options = good;
  EXPECT_HANDLES_REFUSED(wrong, gyre_tell(h, ECHO, 0, request, body, size, NULL));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_tell(runtime, NULL, 0, request, body, size, NULL));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_tell(runtime, endless, 0, request, body, size, NULL));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_tell(runtime, ECHO, 0, request, NULL, size, NULL));
  EXPECT_STATUS(GYRE_UNKNOWN_ACTOR, gyre_tell(runtime, "nobody", 0, request, body, size, NULL));
  EXPECT_STATUS(GYRE_UNKNOWN_MESSAGE, gyre_tell(runtime, ECHO, 0, UINT64_MAX, body, size, NULL));
  EXPECT_STATUS(GYRE_TOO_LARGE, gyre_tell(runtime, ECHO, 0, request, body, SIZE_MAX, NULL));
  EXPECT_STATUS(GYRE_MALFORMED, gyre_tell(runtime, ECHO, 0, request, body, 1, NULL));
  EXPECT_SIZES_REFUSED(options.struct_size, gyre_tell(runtime, ECHO, 0, request, body, size, &options));
#define EXPECT_TELL_REFUSED(change)                     \
  EXPECT_SENDING_REFUSED(GYRE_INVALID_ARGUMENT, change, \
                         gyre_tell(runtime, ECHO, 0, request, body, size, &options))
  EXPECT_TELL_REFUSED(options.encoding = INT32_MAX);
  EXPECT_TELL_REFUSED(options.when_full = -1);
  EXPECT_TELL_REFUSED(options.timeout_ns = -2);
  EXPECT_TELL_REFUSED(options.expires_after_ns = -1);
  EXPECT_TELL_REFUSED(options.max_reply_bytes = 1);
  EXPECT_TELL_REFUSED(options.reserved = 1);

  EXPECT_HANDLES_REFUSED(wrong, gyre_tell_with_receipt(h, ECHO, 0, request, body, size, NULL, &call));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_tell_with_receipt(runtime, NULL, 0, request, body, size, NULL, &call));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_tell_with_receipt(runtime, endless, 0, request, body, size, NULL, &call));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_tell_with_receipt(runtime, ECHO, 0, request, NULL, size, NULL, &call));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_tell_with_receipt(runtime, ECHO, 0, request, body, size, NULL, NULL));
  EXPECT_STATUS(GYRE_UNKNOWN_ACTOR,
                gyre_tell_with_receipt(runtime, "nobody", 0, request, body, size, NULL, &call));
  EXPECT_STATUS(GYRE_UNKNOWN_MESSAGE,
                gyre_tell_with_receipt(runtime, ECHO, 0, UINT64_MAX, body, size, NULL, &call));
  EXPECT_STATUS(GYRE_TOO_LARGE,
                gyre_tell_with_receipt(runtime, ECHO, 0, request, body, SIZE_MAX, NULL, &call));
  EXPECT_STATUS(GYRE_MALFORMED, gyre_tell_with_receipt(runtime, ECHO, 0, request, body, 1, NULL, &call));
  options = good;
  EXPECT_SIZES_REFUSED(options.struct_size,
                       gyre_tell_with_receipt(runtime, ECHO, 0, request, body, size, &options, &call));
#define EXPECT_RECEIPT_REFUSED(change)                  \
  EXPECT_SENDING_REFUSED(GYRE_INVALID_ARGUMENT, change, \
                         gyre_tell_with_receipt(runtime, ECHO, 0, request, body, size, &options, &call))
  EXPECT_RECEIPT_REFUSED(options.encoding = 3);
  EXPECT_RECEIPT_REFUSED(options.when_full = 2);
  EXPECT_RECEIPT_REFUSED(options.timeout_ns = -2);
  EXPECT_RECEIPT_REFUSED(options.expires_after_ns = -1);
  EXPECT_RECEIPT_REFUSED(options.max_reply_bytes = 1);
  EXPECT_RECEIPT_REFUSED(options.reserved = 1);
  EXPECT(call == 95);

  EXPECT_HANDLES_REFUSED(wrong, gyre_wait_for_stream(h, NULL, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_wait_for_stream(runtime, NULL, -2));
  EXPECT_STATUS(GYRE_FAILED, gyre_wait_for_stream(runtime, NULL, -1)); /* the CPU engine */

  EXPECT_HANDLES_REFUSED(wrong, gyre_start_actor(h, ECHO, 0, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_start_actor(runtime, NULL, 0, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_start_actor(runtime, endless, 0, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_start_actor(runtime, ECHO, 0, -2));
  EXPECT_STATUS(GYRE_UNKNOWN_ACTOR, gyre_start_actor(runtime, "nobody", UINT64_MAX, -1));
  EXPECT_HANDLES_REFUSED(wrong, gyre_stop_actor(h, ECHO, 0, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_stop_actor(runtime, NULL, 0, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_stop_actor(runtime, endless, 0, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_stop_actor(runtime, ECHO, 0, INT64_MIN));
  EXPECT_STATUS(GYRE_UNKNOWN_ACTOR, gyre_stop_actor(runtime, "nobody", UINT64_MAX, -1));

  char state[16];
  size_t state_size = 96;
  EXPECT_HANDLES_REFUSED(wrong, gyre_read_state(h, ECHO, 0, -1, state, sizeof state, &state_size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_read_state(runtime, NULL, 0, -1, state, 16, &state_size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_read_state(runtime, endless, 0, -1, state, 16, &state_size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_read_state(runtime, ECHO, 0, -2, state, 16, &state_size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_read_state(runtime, ECHO, 0, -1, state, 16, NULL));
  EXPECT_STATUS(GYRE_UNKNOWN_ACTOR, gyre_read_state(runtime, "nobody", 0, -1, state, 16, &state_size));
  EXPECT_STATUS(GYRE_NO_SUCH_ACTOR, gyre_read_state(runtime, ECHO, 0, -1, state, 16, &state_size));
  EXPECT(state_size == 96);

  gyre_actor_cursor cursor = {0, 0, 0, 0, 0};
  uint64_t keys[2];
  size_t keys_listed = 97;
  EXPECT_HANDLES_REFUSED(wrong, gyre_list_actors(h, ECHO, &cursor, keys, 2, &keys_listed, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_list_actors(runtime, NULL, &cursor, keys, 2, &keys_listed, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_list_actors(runtime, ECHO, NULL, keys, 2, &keys_listed, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_list_actors(runtime, ECHO, &cursor, NULL, 2, &keys_listed, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_list_actors(runtime, ECHO, &cursor, keys, 0, &keys_listed, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_list_actors(runtime, ECHO, &cursor, keys, 2, NULL, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_list_actors(runtime, ECHO, &cursor, keys, 2, &keys_listed, -2));
  EXPECT_STATUS(GYRE_NO_SUCH_ACTOR, gyre_list_actors(runtime, ECHO, &cursor, keys, 2, &keys_listed, -1));
  EXPECT(keys_listed == 97 && cursor.ended == 0);
  cursor.ended = 1;
  REQUIRE_OK(gyre_list_actors(runtime, ECHO, &cursor, keys, 2, &keys_listed, -1));
  EXPECT(keys_listed == 0 && cursor.ended != 0);
}

static void calls(gyre_runtime runtime, uint64_t request) {
  gyre_call stale, call;
  REQUIRE_OK(gyre_ask_and_wait(runtime, ECHO, 0, request, nothing, 8, NULL, &stale));
  REQUIRE_OK(gyre_call_release(stale));
  REQUIRE_OK(gyre_ask(runtime, ECHO, 0, request, nothing, 8, NULL, &call));
  const Wrong wrong = wrong_for(runtime, stale);
  int32_t done = 94;
  EXPECT_HANDLES_REFUSED(wrong, gyre_call_poll(h, &done));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_call_poll(call, NULL));
  EXPECT(done == 94);
  EXPECT_HANDLES_REFUSED(wrong, gyre_call_wait(h, 0));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_call_wait(call, -2));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_call_wait(call, INT64_MIN));
  EXPECT_STATUS(GYRE_OK, gyre_call_wait(call, INT64_MAX));
  const void* body = &call;
  size_t size = 93;
  EXPECT_HANDLES_REFUSED(wrong, gyre_call_reply(h, &body, &size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_call_reply(call, NULL, &size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_call_reply(call, &body, NULL));
  EXPECT(body == &call && size == 93);
  int32_t cancelled = 88;
  EXPECT_HANDLES_REFUSED(wrong, gyre_call_cancel(h, &cancelled));
  EXPECT(cancelled == 88);
  EXPECT_STATUS(GYRE_OK, gyre_call_cancel(call, NULL)); /* its outcome is there: nothing happens */
  EXPECT_STATUS(GYRE_OK, gyre_call_reply(call, &body, &size));

  gyre_queue stale_queue, queue;
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_queue_create(NULL));
  REQUIRE_OK(gyre_queue_create(&stale_queue));
  REQUIRE_OK(gyre_queue_release(stale_queue));
  REQUIRE_OK(gyre_queue_create(&queue));
  const Wrong wrong_queue = wrong_for(call, stale_queue);
  int32_t fd = 87;
  EXPECT_HANDLES_REFUSED(wrong_queue, gyre_queue_fd(h, &fd));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_queue_fd(queue, NULL));
  EXPECT(fd == 87);
  EXPECT_HANDLES_REFUSED(wrong_queue, gyre_queue_watch(h, call, 1));
  EXPECT_HANDLES_REFUSED(wrong, gyre_queue_watch(queue, h, 1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_queue_watch(queue, call, UINT64_MAX)); /* its outcome was taken */
  gyre_call taken = 86;
  uint64_t tag = 85;
  EXPECT_HANDLES_REFUSED(wrong_queue, gyre_queue_take(h, &taken, &tag));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_queue_take(queue, NULL, &tag));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_queue_take(queue, &taken, NULL));
  EXPECT_STATUS(GYRE_NOT_READY, gyre_queue_take(queue, &taken, &tag));
  EXPECT(taken == 86 && tag == 85);
  gyre_call watched;
  REQUIRE_OK(gyre_ask(runtime, ECHO, 0, request, nothing, 8, NULL, &watched));
  REQUIRE_OK(gyre_queue_watch(queue, watched, 1));
  EXPECT_STATUS(GYRE_BUSY, gyre_queue_watch(queue, watched, 1));
  EXPECT_STATUS(GYRE_BUSY, gyre_call_wait(watched, -1));
  EXPECT_STATUS(GYRE_NOT_READY, gyre_call_reply(watched, &body, &size));
  EXPECT_STATUS(GYRE_OK, gyre_call_release(watched));
  EXPECT_STATUS(GYRE_STALE_HANDLE, gyre_queue_watch(queue, watched, 1));
  EXPECT_HANDLES_REFUSED(wrong_queue, gyre_queue_release(h));
  EXPECT_STATUS(GYRE_OK, gyre_queue_release(queue));
  EXPECT_STATUS(GYRE_STALE_HANDLE, gyre_queue_release(queue));

  EXPECT_HANDLES_REFUSED(wrong, gyre_call_wait_on(h, NULL));
  EXPECT_STATUS(GYRE_OK, gyre_call_wait_on(call, NULL)); /* it has its outcome */
  EXPECT_HANDLES_REFUSED(wrong, gyre_call_release(h));
  EXPECT_STATUS(GYRE_OK, gyre_call_release(call));
  EXPECT_STATUS(GYRE_STALE_HANDLE, gyre_call_release(call));
}

static void count_release(void* owner) { ++*(int*)owner; }

static void note_copy(void* context, gyre_status outcome) { atomic_store((atomic_int*)context, outcome); }

static void buffers(gyre_runtime runtime, const Wrong wrong_runtime) {
  gyre_buffer buffer = 92;
  EXPECT_HANDLES_REFUSED(wrong_runtime, gyre_buffer_create(h, GYRE_MEMORY_PINNED, GYRE_INT8, 1, &buffer));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_create(runtime, -1, GYRE_INT8, 1, &buffer));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_create(runtime, 3, GYRE_INT8, 1, &buffer));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_create(runtime, GYRE_MEMORY_PINNED, 0, 1, &buffer));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_create(runtime, GYRE_MEMORY_PINNED, 11, 1, &buffer));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT,
                gyre_buffer_create(runtime, GYRE_MEMORY_PINNED, INT32_MIN, 1, &buffer));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_create(runtime, GYRE_MEMORY_PINNED, GYRE_INT8, 1, NULL));
  EXPECT_STATUS(GYRE_FAILED, gyre_buffer_create(runtime, GYRE_MEMORY_PINNED, GYRE_INT8, 0, &buffer));
  EXPECT_STATUS(GYRE_FAILED,
                gyre_buffer_create(runtime, GYRE_MEMORY_PINNED, GYRE_INT64, UINT64_MAX, &buffer));
  EXPECT_STATUS(GYRE_FAILED,
                gyre_buffer_create(runtime, GYRE_MEMORY_DEVICE, GYRE_FLOAT64, UINT64_MAX / 8, &buffer));
  int owner = 0;
  gyre_import import = {sizeof import, &owner, GYRE_INT32, GYRE_READ_WRITE, 1, -1, count_release, &owner};
  EXPECT_HANDLES_REFUSED(wrong_runtime, gyre_buffer_import(h, &import, &buffer));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_import(runtime, NULL, &buffer));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_import(runtime, &import, NULL));
  EXPECT_STATUS(GYRE_FAILED, gyre_buffer_import(runtime, &import, &buffer)); /* the CPU engine */
#define EXPECT_IMPORT_REFUSED(status, change)                             \
  do {                                                                    \
    const gyre_import good = import;                                      \
    change;                                                               \
    EXPECT_STATUS(status, gyre_buffer_import(runtime, &import, &buffer)); \
    import = good;                                                        \
  } while (0)
  EXPECT_IMPORT_REFUSED(GYRE_INVALID_ARGUMENT, import.struct_size = 8);
  EXPECT_IMPORT_REFUSED(GYRE_INVALID_ARGUMENT, import.element = 0);
  EXPECT_IMPORT_REFUSED(GYRE_INVALID_ARGUMENT, import.element = 11);
  EXPECT_IMPORT_REFUSED(GYRE_INVALID_ARGUMENT, import.access = 2);
  EXPECT_IMPORT_REFUSED(GYRE_INVALID_ARGUMENT, import.stream = 0);
  EXPECT_IMPORT_REFUSED(GYRE_INVALID_ARGUMENT, import.stream = -2);
  EXPECT_IMPORT_REFUSED(GYRE_FAILED, import.elements = NULL);
  EXPECT_IMPORT_REFUSED(GYRE_FAILED, import.count = 0);
  EXPECT_IMPORT_REFUSED(GYRE_FAILED, import.count = UINT64_MAX);
  EXPECT_IMPORT_REFUSED(GYRE_FAILED, import.elements = (char*)&owner + 1);
  EXPECT(owner == 0); /* nothing was imported: the owner is the caller's */
  EXPECT(buffer == 92);
  gyre_buffer stale;
  REQUIRE_OK(gyre_buffer_create(runtime, GYRE_MEMORY_DEVICE, GYRE_INT8, 1, &stale));
  REQUIRE_OK(gyre_buffer_release(stale));
  const Wrong wrong = wrong_for(runtime, stale);
  REQUIRE_OK(gyre_buffer_create(runtime, GYRE_MEMORY_DEVICE, GYRE_INT32, 4, &buffer));

  gyre_buffer_info info = {sizeof info, 9, 9, 9, 9, 9, 9};
  EXPECT_HANDLES_REFUSED(wrong, gyre_buffer_get_info(h, &info));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_get_info(buffer, NULL));
  EXPECT_SIZES_REFUSED(info.struct_size, gyre_buffer_get_info(buffer, &info));
  EXPECT(info.memory == 9 && info.bytes == 9);

  gyre_buffer_handle handle = {8, 8, 8, 8, 8, 8};
  EXPECT_HANDLES_REFUSED(wrong, gyre_buffer_get_handle(h, 0, &handle));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_get_handle(buffer, 0, NULL));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_get_handle(buffer, 5, &handle));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_get_handle(buffer, UINT64_MAX, &handle));
  EXPECT(handle.index == 8 && handle.length == 8);

  unsigned char bytes[17] = {1, 2, 3};
  EXPECT_HANDLES_REFUSED(wrong, gyre_buffer_write(h, 0, bytes, 1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_write(buffer, 0, NULL, 1));
  EXPECT_STATUS(GYRE_FAILED, gyre_buffer_write(buffer, 0, bytes, 17));
  EXPECT_STATUS(GYRE_FAILED, gyre_buffer_write(buffer, 16, bytes, 1));
  EXPECT_STATUS(GYRE_FAILED, gyre_buffer_write(buffer, UINT64_MAX, bytes, 2));
  EXPECT_STATUS(GYRE_FAILED, gyre_buffer_write(buffer, 1, bytes, UINT64_MAX));
  EXPECT_HANDLES_REFUSED(wrong, gyre_buffer_read(h, 0, bytes, 1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_read(buffer, 0, NULL, 1));
  EXPECT_STATUS(GYRE_FAILED, gyre_buffer_read(buffer, 0, bytes, 17));
  EXPECT_STATUS(GYRE_FAILED, gyre_buffer_read(buffer, 17, bytes, 0));
  EXPECT_STATUS(GYRE_FAILED, gyre_buffer_read(buffer, 2, bytes, UINT64_MAX));
  EXPECT(bytes[0] == 1 && bytes[1] == 2 && bytes[2] == 3);

  gyre_copy copy = 94;
  EXPECT_HANDLES_REFUSED(wrong, gyre_buffer_write_async(h, 0, bytes, 1, &copy));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_write_async(buffer, 0, NULL, 1, &copy));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_write_async(buffer, 0, bytes, 1, NULL));
  EXPECT_STATUS(GYRE_FAILED, gyre_buffer_write_async(buffer, 0, bytes, 17, &copy));
  EXPECT_STATUS(GYRE_FAILED, gyre_buffer_write_async(buffer, 1, bytes, UINT64_MAX, &copy));
  EXPECT_HANDLES_REFUSED(wrong, gyre_buffer_read_async(h, 0, bytes, 1, &copy));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_read_async(buffer, 0, NULL, 1, &copy));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_read_async(buffer, 0, bytes, 1, NULL));
  EXPECT_STATUS(GYRE_FAILED, gyre_buffer_read_async(buffer, 17, bytes, 0, &copy));
  EXPECT(copy == 94);
  const unsigned char sent[4] = {11, 12, 13, 14};
  unsigned char got[4] = {0};
  gyre_copy read_back;
  REQUIRE_OK(gyre_buffer_write_async(buffer, 3, sent, 4, &copy));
  REQUIRE_OK(gyre_buffer_read_async(buffer, 3, got, 4, &read_back));
  gyre_copy stale_copy;
  REQUIRE_OK(gyre_buffer_write_async(buffer, 16, NULL, 0, &stale_copy));
  EXPECT_STATUS(GYRE_OK, gyre_copy_release(stale_copy));
  const Wrong wrong_copy = wrong_for(runtime, stale_copy);
  EXPECT_HANDLES_REFUSED(wrong_copy, gyre_copy_wait(h, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_copy_wait(read_back, -2));
  EXPECT_STATUS(GYRE_OK, gyre_copy_wait(read_back, -1));
  EXPECT_STATUS(GYRE_OK, gyre_copy_wait(copy, 0)); /* it was begun before */
  EXPECT(memcmp(sent, got, 4) == 0);
  EXPECT_HANDLES_REFUSED(wrong_copy, gyre_copy_notify(h, note_copy, got));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_copy_notify(copy, NULL, got));
  atomic_int outcome = -1;
  REQUIRE_OK(gyre_copy_notify(copy, note_copy, &outcome));
  EXPECT_STATUS(GYRE_BUSY, gyre_copy_notify(copy, note_copy, &outcome));
  while (atomic_load(&outcome) == -1) sched_yield();
  EXPECT(atomic_load(&outcome) == GYRE_OK);
  EXPECT_STATUS(GYRE_OK, gyre_copy_release(copy));
  EXPECT_HANDLES_REFUSED(wrong_copy, gyre_copy_release(h));
  EXPECT_STATUS(GYRE_OK, gyre_copy_release(read_back));

  void* elements = bytes;
  EXPECT_HANDLES_REFUSED(wrong, gyre_buffer_view(h, -1, &elements));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_view(buffer, -1, NULL));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_view(buffer, -2, &elements));
  EXPECT_STATUS(GYRE_FAILED, gyre_buffer_view(buffer, -1, &elements)); /* device memory */
  EXPECT(elements == bytes);

  gyre_export export = 95;
  int32_t device = 95;
  EXPECT_HANDLES_REFUSED(wrong, gyre_buffer_export(h, &export, &elements, &device));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_export(buffer, NULL, &elements, &device));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_export(buffer, &export, NULL, &device));
  void* tensor = bytes;
  EXPECT_HANDLES_REFUSED(wrong, gyre_buffer_to_dlpack(h, 1, &tensor));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_to_dlpack(buffer, 2, &tensor));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_to_dlpack(buffer, -1, &tensor));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_buffer_to_dlpack(buffer, 1, NULL));
  EXPECT(export == 95 && device == 95 && elements == bytes && tensor == bytes);
  REQUIRE_OK(gyre_buffer_export(buffer, &export, &elements, &device));
  EXPECT(device == -1); /* the CPU engine's memory is the host's */
  ((int32_t*)elements)[3] = 77;
  REQUIRE_OK(gyre_buffer_read(buffer, 12, bytes, 4));
  EXPECT(bytes[0] == 77);
  EXPECT_STATUS(GYRE_OK, gyre_export_release(export));
  const Wrong wrong_export = wrong_for(runtime, export);
  EXPECT_HANDLES_REFUSED(wrong_export, gyre_export_release(h));
  struct { /* DLManagedTensor */
    void* data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
    void* manager_ctx;
    void (*deleter)(void*);
  } * old;
  REQUIRE_OK(gyre_buffer_to_dlpack(buffer, 0, &tensor));
  old = tensor;
  EXPECT(old->data == elements && old->device_type == 1 && old->ndim == 1 && old->shape[0] == 4);
  EXPECT(old->code == 0 && old->bits == 32 && old->lanes == 1 && old->byte_offset == 0);
  old->deleter(old);

  EXPECT_HANDLES_REFUSED(wrong, gyre_buffer_release(h));
  EXPECT_STATUS(GYRE_OK, gyre_buffer_release(buffer));
  EXPECT_STATUS(GYRE_STALE_HANDLE, gyre_buffer_release(buffer));
}

static void reports(gyre_runtime runtime, const Wrong wrong) {
  gyre_info info;
  memset(&info, 0x33, sizeof info);
  info.struct_size = sizeof info;
  EXPECT_HANDLES_REFUSED(wrong, gyre_runtime_info(h, &info));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_runtime_info(runtime, NULL));
  EXPECT_SIZES_REFUSED(info.struct_size, gyre_runtime_info(runtime, &info));
  EXPECT(info.workers == 0x33333333);

  char text[8] = "before";
  size_t size = 91;
  EXPECT_HANDLES_REFUSED(wrong, gyre_runtime_text(h, GYRE_TEXT_STATS, text, sizeof text, &size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_runtime_text(runtime, -1, text, sizeof text, &size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_runtime_text(runtime, 4, text, sizeof text, &size));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_runtime_text(runtime, GYRE_TEXT_STATS, text, sizeof text, NULL));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_runtime_text(runtime, GYRE_TEXT_STATS, NULL, 1 << 20, &size));
  EXPECT(size == 91);
  EXPECT_STATUS(GYRE_TOO_SMALL, gyre_runtime_text(runtime, GYRE_TEXT_STATS, text, sizeof text, &size));
  EXPECT_STATUS(GYRE_TOO_SMALL, gyre_runtime_text(runtime, GYRE_TEXT_FAILURE, text, 0, &size));
  EXPECT(size == 0 && strcmp(text, "before") == 0);

  gyre_handler handler = {sizeof handler, NULL, NULL, 6, 6};
  EXPECT_HANDLES_REFUSED(wrong, gyre_runtime_handler(h, 0, &handler));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_runtime_handler(runtime, 0, NULL));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_runtime_handler(runtime, 2, &handler));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_runtime_handler(runtime, SIZE_MAX, &handler));
  EXPECT_SIZES_REFUSED(handler.struct_size, gyre_runtime_handler(runtime, 0, &handler));
  EXPECT(handler.actor == NULL && handler.request == 6);

  gyre_stats stats;
  memset(&stats, 0x33, sizeof stats);
  stats.struct_size = sizeof stats;
  EXPECT_HANDLES_REFUSED(wrong, gyre_runtime_stats(h, &stats));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_runtime_stats(runtime, NULL));
  EXPECT_SIZES_REFUSED(stats.struct_size, gyre_runtime_stats(runtime, &stats));
  EXPECT(stats.asks_accepted == 0x3333333333333333);

  gyre_dead_letters letters = 90;
  size_t count = 89;
  EXPECT_HANDLES_REFUSED(wrong, gyre_take_dead_letters(h, &letters, &count));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_take_dead_letters(runtime, NULL, &count));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_take_dead_letters(runtime, &letters, NULL));
  EXPECT(letters == 90 && count == 89);
  gyre_dead_letters stale;
  REQUIRE_OK(gyre_take_dead_letters(runtime, &stale, &count));
  REQUIRE_OK(gyre_dead_letters_release(stale));
  const Wrong wrong_letters = wrong_for(runtime, stale);
  REQUIRE_OK(gyre_take_dead_letters(runtime, &letters, &count));
  gyre_dead_letter letter = {sizeof letter, 7, 7, 7, NULL, NULL, NULL, NULL, 7};
  EXPECT_HANDLES_REFUSED(wrong_letters, gyre_dead_letter_at(h, 0, &letter));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_dead_letter_at(letters, 0, NULL));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_dead_letter_at(letters, count, &letter));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_dead_letter_at(letters, SIZE_MAX, &letter));
  EXPECT_SIZES_REFUSED(letter.struct_size, gyre_dead_letter_at(letters, 0, &letter));
  EXPECT(letter.key == 7 && letter.text == NULL);
  EXPECT_HANDLES_REFUSED(wrong_letters, gyre_dead_letters_release(h));
  EXPECT_STATUS(GYRE_OK, gyre_dead_letters_release(letters));
  EXPECT_STATUS(GYRE_STALE_HANDLE, gyre_dead_letters_release(letters));
}

static void ends(gyre_runtime runtime, const Wrong wrong, uint64_t request) {
  EXPECT_HANDLES_REFUSED(wrong, gyre_set_active(h, 1, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_set_active(runtime, 1, -2));
  EXPECT_HANDLES_REFUSED(wrong, gyre_drain(h, -1));
  EXPECT_HANDLES_REFUSED(wrong, gyre_on_told(h, 1, NULL, NULL));
  EXPECT_STATUS(GYRE_FAILED, gyre_on_told(runtime, 1, NULL, NULL)); /* its actors do not tell the host */
  EXPECT_HANDLES_REFUSED(wrong, gyre_relaunch(h, -1));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_relaunch(runtime, INT64_MIN));
  EXPECT_STATUS(GYRE_FAILED, gyre_relaunch(runtime, -1)); /* its engine works */
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_drain(runtime, INT64_MIN));
  gyre_termination report = {sizeof report, 5, 5, 5, 5, 5, 5, 5, 5};
  EXPECT_HANDLES_REFUSED(wrong, gyre_terminate(h, -1, &report));
  EXPECT_STATUS(GYRE_INVALID_ARGUMENT, gyre_terminate(runtime, -2, &report));
  EXPECT_SIZES_REFUSED(report.struct_size, gyre_terminate(runtime, -1, &report));
  EXPECT(report.balanced == 5);

  /* What is left of a runtime that ended: calls and buffers of it are errors, or still read. */
  gyre_call call, in_time;
  gyre_buffer buffer;
  REQUIRE_OK(gyre_buffer_create(runtime, GYRE_MEMORY_PINNED, GYRE_INT8, 8, &buffer));
  REQUIRE_OK(gyre_ask_and_wait(runtime, ECHO, 0, request, nothing, 8, NULL, &in_time));
  EXPECT_STATUS(GYRE_OK, gyre_drain(runtime, INT64_MAX));
  EXPECT_STATUS(GYRE_DRAINING, gyre_ask(runtime, ECHO, 0, request, nothing, 8, NULL, &call));
  EXPECT_STATUS(GYRE_DRAINING, gyre_tell(runtime, ECHO, 0, request, nothing, 8, NULL));
  EXPECT_STATUS(GYRE_OK, gyre_terminate(runtime, INT64_MAX, NULL));
  EXPECT_STATUS(GYRE_TERMINATED, gyre_ask(runtime, ECHO, 0, request, nothing, 8, NULL, &call));
  EXPECT_STATUS(GYRE_TERMINATED, gyre_tell(runtime, ECHO, 0, request, nothing, 8, NULL));
  EXPECT_STATUS(GYRE_TERMINATED, gyre_tell_with_receipt(runtime, ECHO, 0, request, nothing, 8, NULL, &call));
  EXPECT_STATUS(GYRE_TERMINATED, gyre_start_actor(runtime, ECHO, 0, -1));
  EXPECT_STATUS(GYRE_TERMINATED, gyre_set_active(runtime, 1, -1));
  EXPECT_STATUS(GYRE_TERMINATED, gyre_drain(runtime, -1));
  EXPECT_STATUS(GYRE_TERMINATED, gyre_relaunch(runtime, -1));
  EXPECT_HANDLES_REFUSED(wrong, gyre_runtime_release(h));
  EXPECT_STATUS(GYRE_OK, gyre_runtime_release(runtime));
  EXPECT_STATUS(GYRE_STALE_HANDLE, gyre_runtime_release(runtime));
  EXPECT_STATUS(GYRE_STALE_HANDLE, gyre_ask(runtime, ECHO, 0, request, nothing, 8, NULL, &call));
  const void* body;
  size_t size;
  EXPECT_STATUS(GYRE_OK, gyre_call_reply(in_time, &body, &size));
  EXPECT_STATUS(GYRE_OK, gyre_call_release(in_time));
  unsigned char bytes[8] = {0};
  EXPECT_STATUS(GYRE_OK, gyre_buffer_read(buffer, 0, bytes, 8));
  EXPECT_STATUS(GYRE_OK, gyre_buffer_release(buffer));
}

int main(void) {
  errors();
  char* const endless = endless_text();
  launches(endless);
  gyre_options options;
  REQUIRE_OK(gyre_options_init(&options, sizeof options));
  options.engine = GYRE_ENGINE_CPU;
  gyre_runtime stale, runtime;
  REQUIRE_OK(gyre_launch(0, &options, &stale));
  REQUIRE_OK(gyre_runtime_release(stale));
  REQUIRE_OK(gyre_launch(0, &options, &runtime));
  gyre_schema own;
  uint64_t request;
  REQUIRE_OK(gyre_schema_parse(NULL, 0, &own));
  REQUIRE_OK(gyre_schema_type_id(own, "EchoRequest", &request));
  const Wrong wrong = wrong_for(own, stale);

  schemas(endless, runtime);
  actors(endless, runtime);
  messages(runtime, wrong, endless, request);
  calls(runtime, request);
  buffers(runtime, wrong);
  reports(runtime, wrong);
  ends(runtime, wrong, request);
  EXPECT_STATUS(GYRE_OK, gyre_schema_release(own));
  free(endless);
  return report();
}
