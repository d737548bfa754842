/* What a program in C does with Gyre: messages by JSON and by hand, asks and tells, buffers, dead letters,
   the books. Its arguments are the folder of the tests' schemas, and that of the views that the build made of
   them. */
#define _POSIX_C_SOURCE 200809L

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>

#include "expect.h"

static uint64_t cancelled_asks = 0;

static const char numbers_schema[] =
    "@0xc1a2b3c4d5e6f701;\n"
    "using Cxx = import \"/capnp/c++.capnp\";\n"
    "$Cxx.namespace(\"test\");\n"
    "using VectorAdd = import \"/gyre/messages/vector_add.capnp\";\n"
    "using import \"deep/other.capnp\".Other;\n"
    "struct Numbers {\n"
    "  big @0 :Int64;\n  unsignedBig @1 :UInt64;\n  bytes @2 :Data;\n  ratio @3 :Float64;\n"
    "  inner @4 :Inner;\n  struct Inner { names @0 :List(Text); }\n"
    "  union { a @5 :Int8; b @6 :Other; }\n"
    "  place :group { x @7 :Int16; }\n"
    "  operation @8 :VectorAdd.Operation;\n"
    "}\n";
static const char other_schema[] =
    "@0xc1a2b3c4d5e6f702;\n"
    "using Cxx = import \"/capnp/c++.capnp\";\n"
    "$Cxx.namespace(\"test\");\n"
    "struct Other { flag @0 :Bool = true; }\n";

static gyre_runtime launch(const gyre_options* options) {
  gyre_runtime runtime = 0;
  REQUIRE_OK(gyre_launch(0, options, &runtime));
  return runtime;
}

static uint64_t type_id(gyre_schema schema, const char* name) {
  uint64_t id = 0;
  REQUIRE_OK(gyre_schema_type_id(schema, name, &id));
  return id;
}

/* The text of a reply, in static memory. */
static const char* json_of(gyre_schema schema, uint64_t type, const void* body, size_t size) {
  static char text[65536];
  size_t length = 0;
  REQUIRE_OK(gyre_message_to_json(schema, type, body, size, GYRE_BODY, text, sizeof text, &length));
  EXPECT(strlen(text) == length);
  return text;
}

static void json_messages_come_back_as_they_were(void) {
  const gyre_text files[] = {{"shop/numbers.capnp", numbers_schema, sizeof numbers_schema - 1},
                             {"/shop/deep/other.capnp", other_schema, sizeof other_schema - 1}};
  gyre_schema schema;
  REQUIRE_OK(gyre_schema_parse(files, 2, &schema));
  const uint64_t id = type_id(schema, "Numbers");
  EXPECT(type_id(schema, "shop/numbers.capnp:Numbers") == id);
  EXPECT(type_id(schema, "Numbers.Inner") != id);
  static const char json[] =
      "{\"big\":\"-9223372036854775808\",\"unsignedBig\":\"18446744073709551615\",\"bytes\":[0,255],"
      "\"ratio\":\"NaN\",\"inner\":{\"names\":[\"a\",\"\\\"b\\\"\","
      "\"\\u00f6\\u20ac\\ud83d\\ude00\\\\u00f6\\n\"]},\"b\":{\"flag\":false},"
      "\"place\":{\"x\":-3},\"operation\":\"divide\"}";
  for (gyre_encoding encoding = GYRE_BODY; encoding <= GYRE_PACKED; ++encoding) {
    unsigned char message[512];
    char text[512];
    size_t size = 0, length = 0;
    REQUIRE_OK(
        gyre_message_from_json(schema, id, json, sizeof json - 1, encoding, message, sizeof message, &size));
    REQUIRE_OK(gyre_message_to_json(schema, id, message, size, encoding, text, sizeof text, &length));
    EXPECT(strstr(text, "\"big\":\"-9223372036854775808\"") != NULL);
    EXPECT(strstr(text, "\"unsignedBig\":\"18446744073709551615\"") != NULL);
    EXPECT(strstr(text, "\"bytes\":[0,255]") != NULL);
    EXPECT(strstr(text, "\"ratio\":\"NaN\"") != NULL);
    EXPECT(strstr(text,
                  "\"names\":[\"a\",\"\\\"b\\\"\",\"\xc3\xb6\xe2\x82\xac\xf0\x9f\x98\x80\\\\u00f6\\n\"]") !=
           NULL);
    EXPECT(strstr(text, "\"b\":{\"flag\":false}") != NULL);
    EXPECT(strstr(text, "\"place\":{\"x\":-3}") != NULL);
    EXPECT(strstr(text, "\"operation\":\"divide\"") != NULL);
  }
  /* A body in the other encodings is what was made in them at once. */
  unsigned char body[512], made[512], encoded[512];
  size_t body_size, made_size, encoded_size;
  REQUIRE_OK(
      gyre_message_from_json(schema, id, json, sizeof json - 1, GYRE_BODY, body, sizeof body, &body_size));
  for (gyre_encoding encoding = GYRE_BODY; encoding <= GYRE_PACKED; ++encoding) {
    REQUIRE_OK(
        gyre_message_from_json(schema, id, json, sizeof json - 1, encoding, made, sizeof made, &made_size));
    REQUIRE_OK(gyre_message_encode(body, body_size, encoding, encoded, sizeof encoded, &encoded_size));
    EXPECT(encoded_size == made_size && memcmp(made, encoded, made_size) == 0);
  }

  /* The description, and the views, which name each other as actors include them. */
  char description[65536];
  size_t length = 0;
  REQUIRE_OK(gyre_schema_describe(schema, description, sizeof description, &length));
  EXPECT(strstr(description,
                "\"name\":\"Numbers\",\"fields\":{\"big\":\"Int64\",\"unsignedBig\":\"UInt64\",\"bytes\":"
                "\"Data\",\"ratio\":\"Float64\",\"inner\":{\"struct\":\"") != NULL);
  EXPECT(strstr(description, "\"names\":{\"list\":\"Text\"}") != NULL);
  /* Where the fields lie: of Gyre's own message, as its schema's order gives it. */
  EXPECT(
      strstr(description,
             "\"layout\":{\"words\":2,\"pointers\":5,\"fields\":{\"operation\":{\"at\":0},\"a\":{\"at\":0},"
             "\"b\":{\"at\":1},\"length\":{\"at\":1},\"aBuffer\":{\"at\":2},\"bBuffer\":{\"at\":3},"
             "\"resultBuffer\":{\"at\":4}}}") != NULL);
  EXPECT(strstr(description, "\"name\":\"VectorAddRequest\"") != NULL);
  gyre_text view;
  REQUIRE_OK(gyre_schema_view(schema, 0, &view));
  EXPECT(strcmp(view.name, "shop/numbers.view.hpp") == 0 && strlen(view.text) == view.text_length);
  EXPECT(strstr(view.text, "#include <shop/deep/other.view.hpp>\n") != NULL);
  EXPECT(strstr(view.text, "#include <gyre/messages/vector_add.view.hpp>\n") != NULL);
  EXPECT(strstr(view.text, "namespace test::view {") != NULL);
  REQUIRE_OK(gyre_schema_view(schema, 1, &view));
  EXPECT(strcmp(view.name, "shop/deep/other.view.hpp") == 0);
  EXPECT_STATUS(GYRE_OK, gyre_schema_release(schema));
}

/* What JSON holds that a field does not take is named by field, value and what is expected. */
static void wrong_json_is_named(void) {
  static const char text[] =
      "@0xf1e2d3c4b5a69799;\n"
      "using Cxx = import \"/capnp/c++.capnp\";\n"
      "$Cxx.namespace(\"test\");\n"
      "struct Batch { orders @0 :List(Order); raw @1 :Data; on @2 :Bool; note @3 :Text;\n"
      "  rate @4 :Float32; scale @5 :Float64; place :group { union { x @6 :Int8; y @7 :Text; } }\n"
      "  voids @8 :List(Void); batch @9 :Batch; tags @10 :List(List(Text)); }\n"
      "struct Order { id @0 :UInt64; price :group { cents @1 :Int16; unit @2 :Unit; }\n"
      "  union { limit @3 :Int32; market @4 :Void; } }\n"
      "enum Unit { euro @0; dollar @1; }\n";
  const gyre_text file = {"batch.capnp", text, sizeof text - 1};
  static const char* const cases[][2] = {
      {"{\"orders\": [{}, {\"price\": {\"cents\": \"x\"}}]}",
       "orders[1].price.cents is \"x\"; give an integer from -32768 to 32767, for a Int16"},
      {"{\"orders\": [{\"price\": {\"cents\": 40000}}]}", "orders[0].price.cents is 40000; give an integer"},
      {"{\"orders\": [{\"price\": {\"cents\": 1.5}}]}", "orders[0].price.cents is 1.5; give an integer"},
      {"{\"orders\": [{\"id\": -1}]}", "orders[0].id is -1; give an integer from 0 to 18446744073709551615"},
      {"{\"orders\": [{\"id\": \"18446744073709551616\"}]}",
       "orders[0].id is \"18446744073709551616\"; give"},
      {"{\"orders\": [{\"id\": 18446744073709551616}]}", "orders[0].id is 1.8446744073709552e+19; give"},
      {"{\"orders\": [{\"price\": {\"unit\": \"pound\"}}]}",
       "orders[0].price.unit is \"pound\"; give one of euro, dollar"},
      {"{\"orders\": [{\"limit\": 1, \"market\": null}]}",
       "orders[0]: limit and market are fields of one union of Order, which holds one of them; give one"},
      {"{\"orders\": [{\"prise\": 5}]}", "orders[0]: Order has no field prise (given 5); it has id, price"},
      {"{\"orders\": 3}", "orders is 3; give an array"},
      {"{\"orders\": [7]}", "orders[0] is 7; give an object of fields, for a Order"},
      {"{\"raw\": [256]}", "raw is 256; give an integer from 0 to 255, for a byte of Data"},
      {"{\"on\": 1}", "on is 1; give true or false"},
      {"{\"note\": null}", "note is null; give a string"},
      {"[]", "the message is an array; give an object of fields, for a Batch"},
      /* What the official codec takes for another value. */
      {"{\"raw\": [\"200\", \"7\"]}", "raw is \"200\"; give an integer from 0 to 255, for a byte of Data"},
      {"{\"orders\": [{\"id\": 9007199254740993}]}",
       "orders[0].id is 9007199254740992; give an integer from 0 to 18446744073709551615, for a UInt64, as a "
       "string of digits where it is 2^53 or more"},
      {"{\"orders\": [{\"id\": 1e16}]}", "as a string of digits"},
      {"{\"rate\": 1e300}", "rate is 1e+300; give a number that a Float32 holds"},
      {"{\"rate\": -3.4028236e38}", "rate is -3.4028236e+38; give a number that a Float32 holds"},
      {"{\"rate\": \"1e39\"}", "rate is \"1e39\"; give a number that a Float32 holds"},
      {"{\"rate\": \"x\"}", "rate is \"x\"; give a number that a Float32 holds"},
      {"{\"rate\": \"\"}", "rate is \"\"; give"},
      {"{\"rate\": null}", "rate is null; give"},
      {"{\"scale\": 1e400}", "scale is a number beyond all floats; give a number that a Float64 holds"},
      {"{\"scale\": \"1e400\"}", "scale is \"1e400\"; give a number that a Float64 holds"},
      {"{\"orders\": [{\"market\": 7}]}", "orders[0].market is 7; give null, for a Void"},
      {"{\"voids\": [null, false]}", "voids[1] is false; give null"},
      {"{\"place\": {\"x\": 1}, \"place\": {\"y\": \"a\"}}",
       "place stands twice, here as an object; give it once"},
      {"{\"orders\": [{\"id\": 1, \"id\": 2}]}", "orders[0]: id stands twice, here as 2; give it once"},
      {"{\"on\": true, \"note\": \"a\xff\"}", "byte 23, behind \"note\", is 0xff, and no UTF-8"},
      {"{\"note\": \"\xed\xa0\x80\"}", "byte 10, behind \"note\", is 0xed, and no UTF-8"},
      {"{\"note\": \"\xc0\x80\"}", "byte 10, behind \"note\", is 0xc0, and no UTF-8"},
      {"{\"note\": \"\xe2\x82\"}", "byte 10, behind \"note\", is 0xe2, and no UTF-8"},
      {"{\"note\": \"\\ud800\"}", "\\ud800, before byte 16, is half of a character"},
      {"{\"on\": true,}", "reading JSON as Batch: it is no JSON: "},
      {"", "it is no JSON: "}};
  gyre_schema schema;
  uint64_t id;
  char body[1024];
  size_t size;
  REQUIRE_OK(gyre_schema_parse(&file, 1, &schema));
  REQUIRE_OK(gyre_schema_type_id(schema, "Batch", &id));
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    EXPECT_STATUS(GYRE_BAD_JSON, gyre_message_from_json(schema, id, cases[i][0], strlen(cases[i][0]),
                                                        GYRE_BODY, body, sizeof body, &size));
    if (strstr(gyre_last_error(), cases[i][1]) == NULL) printf("%s: %s\n", cases[i][0], gyre_last_error());
    EXPECT(strstr(gyre_last_error(), cases[i][1]) != NULL);
  }
  static const char good[] =
      "{\"orders\": [{\"id\": \"18446744073709551615\", \"price\": {\"cents\": -32768, \"unit\": "
      "\"dollar\"}}, "
      "{\"id\": 9007199254740991, \"market\": null}], \"raw\": [0, 255], \"on\": true, "
      "\"note\": \"[\\\\{\\\"\xc2\x80\xed\x9f\xbf\xf4\x8f\xbf\xbf\", \"rate\": 3.4028235e38, \"scale\": "
      "\"-Infinity\", "
      "\"voids\": [null], \"place\": {\"x\": \"-128\"}}";
  REQUIRE_OK(gyre_message_from_json(schema, id, good, sizeof good - 1, GYRE_BODY, body, sizeof body, &size));
  static char whole[8192];
  REQUIRE_OK(gyre_message_to_json(schema, id, body, size, GYRE_BODY, whole, sizeof whole, &size));
  EXPECT(strstr(whole, "\"rate\":3.4028234663852886e38,\"scale\":\"-Infinity\"") != NULL);
  EXPECT(strstr(whole, "\"id\":\"9007199254740991\"") != NULL &&
         strstr(whole, "\"place\":{\"x\":-128}") != NULL);
  /* A NUL ends nothing: what is behind it would be lost. */
  static const char two[] = "{\"on\": true}\0{\"on\": false}";
  for (size_t length = strlen(two) + 1; length < sizeof two; length += sizeof two - strlen(two) - 2) {
    EXPECT_STATUS(GYRE_BAD_JSON,
                  gyre_message_from_json(schema, id, two, length, GYRE_BODY, body, sizeof body, &size));
    EXPECT(strstr(gyre_last_error(), "reading JSON as Batch: byte 12, behind \"on\", is NUL") != NULL);
  }
  /* 64 brackets in brackets, and one more. */
  static char deep[4096];
  for (int brackets = 64; brackets <= 66; brackets += 2) {
    char* at = deep;
    for (int i = 0; i < brackets - 1; ++i) at += sprintf(at, "{\"batch\":");
    at += sprintf(at, "{}");
    for (int i = 0; i < brackets - 1; ++i) at += sprintf(at, "}");
    const size_t length = (size_t)(at - deep);
    EXPECT_STATUS(brackets == 64 ? GYRE_OK : GYRE_BAD_JSON,
                  gyre_message_from_json(schema, id, deep, length, GYRE_BODY, whole, sizeof whole, &size));
  }
  EXPECT(strstr(gyre_last_error(), "byte 576, behind \"batch\", opens a bracket within 64 others") != NULL);
  EXPECT_STATUS(GYRE_OK, gyre_schema_release(schema));
}

/* A list of elements without a size is read as a worker reads it: 65,536 elements, or 64 times the message.
 */
static void lists_of_nothing_are_read_as_workers_read_them(void) {
  static const char text[] =
      "@0xf1e2d3c4b5a69798;\n"
      "using Cxx = import \"/capnp/c++.capnp\";\n"
      "$Cxx.namespace(\"test\");\n"
      "struct Empty {}\n"
      "struct Deep { next @0 :Deep; }\n"
      "struct Lists { voids @0 :List(Void); empties @1 :List(Empty); }\n";
  const gyre_text file = {"lists.capnp", text, sizeof text - 1};
  static char json[1 << 20];
  gyre_schema schema;
  size_t size;
  REQUIRE_OK(gyre_schema_parse(&file, 1, &schema));
  const uint64_t id = type_id(schema, "Lists");
  /* The root pointer, two pointers; the lists' sizes lie in the pointers. Of empty structs a tag is there. */
  const struct {
    uint64_t voids, empties;
    gyre_status status;
  } cases[] = {{1025, 0, GYRE_OK},
               {0, 1025, GYRE_OK},
               {30000, 30000, GYRE_OK},
               {65537, 0, GYRE_MALFORMED},
               {0, (uint64_t)1 << 28, GYRE_MALFORMED}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    const uint64_t words[] = {(uint64_t)2 << 48, 1 | cases[i].voids << 35, 1 | (uint64_t)7 << 32,
                              cases[i].empties << 2};
    EXPECT_STATUS(cases[i].status,
                  gyre_message_to_json(schema, id, words, sizeof words, GYRE_BODY, json, sizeof json, &size));
    if (cases[i].status != GYRE_OK) {
      EXPECT(strstr(gyre_last_error(), "reading 32 bytes as Lists: it leads through more than 65536 words") !=
             NULL);
      continue;
    }
    uint64_t nulls = 0, objects = 0;
    for (const char* at = json; (at = strstr(at, "null")) != NULL; at += 4) ++nulls;
    for (const char* at = json; (at = strstr(at, "{}")) != NULL; at += 2) ++objects;
    EXPECT(nulls == cases[i].voids && objects == cases[i].empties);
  }
  /* What cannot be read at all is said in Gyre's words: a pointer out of the message, and one to itself. */
  const uint64_t outside[] = {(uint64_t)2 << 48, 401 | (uint64_t)6 << 32 | (uint64_t)5 << 35, 0};
  EXPECT_STATUS(GYRE_MALFORMED, gyre_message_to_json(schema, id, outside, sizeof outside, GYRE_BODY, json,
                                                     sizeof json, &size));
  EXPECT(strstr(gyre_last_error(), "reading 24 bytes as Lists: a pointer in it leads out of it") != NULL);
  const uint64_t circle[] = {(uint64_t)1 << 48, 0xfffffffc | (uint64_t)1 << 48};
  EXPECT_STATUS(GYRE_MALFORMED, gyre_message_to_json(schema, type_id(schema, "Deep"), circle, sizeof circle,
                                                     GYRE_BODY, json, sizeof json, &size));
  EXPECT(strstr(gyre_last_error(), "reading 16 bytes as Deep: it nests deeper than 64") != NULL);
  EXPECT_STATUS(GYRE_OK, gyre_schema_release(schema));
}

static const char* text_of(const char* folder, const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* const file = fopen(path, "rb");
  if (file == NULL) {
    printf("cannot read %s\n", path);
    exit(1);
  }
  char* const text = calloc(1, 1 << 20);
  if (text == NULL) exit(1);
  const size_t length = fread(text, 1, (1 << 20) - 1, file);
  fclose(file);
  EXPECT(length > 100);
  return text;
}

/* The views made at run time are what capnpc-gyre wrote for the same files, but that includes are spelt out.
 */
static void views_are_those_of_the_compiler(const char* schemas, const char* generated) {
  static const char* const names[] = {"kinds.capnp", "kinds_old.capnp", "kinds_enums.capnp"};
  static const char* const views[] = {"kinds.view.hpp", "kinds_old.view.hpp", "kinds_enums.view.hpp"};
  gyre_text files[3];
  char full_names[3][64];
  for (int i = 0; i < 3; ++i) {
    snprintf(full_names[i], sizeof full_names[i], "tests/messages/%s", names[i]);
    const char* const text = text_of(schemas, names[i]);
    files[i] = (gyre_text){full_names[i], text, strlen(text)};
  }
  gyre_schema schema;
  REQUIRE_OK(gyre_schema_parse(files, 3, &schema));
  for (int i = 0; i < 3; ++i) {
    gyre_text view;
    REQUIRE_OK(gyre_schema_view(schema, (size_t)i, &view));
    const char* const expected_text = text_of(generated, views[i]);
    const char* expected = expected_text;
    const char* made = view.text;
    int lines = 0, same = 1;
    while (same && *made != 0 && *expected != 0) {
      const size_t made_line = strcspn(made, "\n") + 1, expected_line = strcspn(expected, "\n") + 1;
      same = (strncmp(made, "#include", 8) == 0 && strncmp(expected, "#include", 8) == 0) ||
             (made_line == expected_line && memcmp(made, expected, made_line) == 0);
      if (!same)
        printf("%s: «%.*s» should be «%.*s»\n", views[i], (int)made_line, made, (int)expected_line, expected);
      made += made_line;
      expected += expected_line;
      ++lines;
    }
    EXPECT(same && *made == 0 && *expected == 0 && lines > 10);
    free((void*)expected_text);
    free((void*)files[i].text);
  }
  EXPECT_STATUS(GYRE_OK, gyre_schema_release(schema));
}

static void asks_by_json_and_by_hand(gyre_runtime runtime, gyre_schema own) {
  const uint64_t request = type_id(own, "VectorAddRequest"), response = type_id(own, "VectorAddResponse");
  static const char json[] = "{\"operation\": \"multiply\", \"a\": [1, 2, 3.5], \"b\": [10, 20, 2]}";
  unsigned char message[256];
  size_t size;
  for (gyre_encoding encoding = GYRE_BODY; encoding <= GYRE_PACKED; ++encoding) {
    REQUIRE_OK(gyre_message_from_json(own, request, json, sizeof json - 1, encoding, message, sizeof message,
                                      &size));
    gyre_send_options options;
    REQUIRE_OK(gyre_send_options_init(&options, sizeof options));
    options.encoding = encoding;
    gyre_call call;
    REQUIRE_OK(
        gyre_ask_and_wait(runtime, VECTOR_ADD, (uint64_t)encoding, request, message, size, &options, &call));
    const void* body;
    REQUIRE_OK(gyre_call_reply(call, &body, &size));
    const char* const text = json_of(own, response, body, size);
    EXPECT(strstr(text, "\"result\":[10,40,7]") != NULL && strstr(text, "\"success\":true") != NULL);
    EXPECT(strstr(text, "\"processed\":3") != NULL);
    EXPECT_STATUS(GYRE_OK, gyre_call_release(call));
  }

  /* EchoRequest by hand: the root pointer (one data word, one pointer), the sequence, a list of two UInt64.
   */
  const uint64_t echo = type_id(own, "EchoRequest");
  const uint64_t words[] = {(uint64_t)1 << 32 | (uint64_t)1 << 48, 0x0123456789abcdef,
                            (uint64_t)1 | (uint64_t)5 << 32 | (uint64_t)2 << 35, 7, UINT64_MAX};
  gyre_call calls[16];
  for (int i = 0; i < 16; ++i) {
    REQUIRE_OK(gyre_ask(runtime, ECHO, (uint64_t)i, echo, words, sizeof words, NULL, &calls[i]));
  }
  for (int i = 15; i >= 0; --i) {
    EXPECT_STATUS(GYRE_OK, gyre_call_wait(calls[i], -1));
    int32_t done = 0;
    EXPECT_STATUS(GYRE_OK, gyre_call_poll(calls[i], &done));
    EXPECT(done == 1);
    const void* body;
    for (int time = 0; time < 2; ++time) {
      REQUIRE_OK(gyre_call_reply(calls[i], &body, &size));
      EXPECT(size == sizeof words && memcmp(body, words, size) == 0 && (uintptr_t)body % 8 == 0);
    }
    EXPECT_STATUS(GYRE_OK, gyre_call_release(calls[i]));
  }

  /* A call that nobody waits for; a message larger than a slot; one that the worker finds malformed. */
  REQUIRE_OK(gyre_ask(runtime, ECHO, 0, echo, words, sizeof words, NULL, &calls[0]));
  EXPECT_STATUS(GYRE_OK, gyre_call_release(calls[0]));
  const size_t elements = 10000;
  uint64_t* const large = calloc(3 + elements, 8);
  if (large == NULL) exit(1);
  large[0] = words[0];
  large[2] = (uint64_t)1 | (uint64_t)5 << 32 | (uint64_t)elements << 35;
  for (size_t i = 0; i < elements; ++i) large[3 + i] = i * i;
  REQUIRE_OK(gyre_ask_and_wait(runtime, ECHO, 3, echo, large, (3 + elements) * 8, NULL, &calls[0]));
  const void* body;
  REQUIRE_OK(gyre_call_reply(calls[0], &body, &size));
  EXPECT(size == (3 + elements) * 8 && memcmp(body, large, size) == 0);
  EXPECT_STATUS(GYRE_OK, gyre_call_release(calls[0]));
  free(large);
  const uint64_t truncated[] = {words[0], words[1], words[2]};
  EXPECT_STATUS(GYRE_MALFORMED,
                gyre_ask_and_wait(runtime, ECHO, 0, echo, truncated, sizeof truncated, NULL, &calls[0]));
  EXPECT(strstr(gyre_last_error(), "payload of EchoRequest") != NULL);
}

static void buffers_are_added(gyre_runtime runtime, gyre_schema own, gyre_memory memory) {
  enum { N = 1000 };
  float a[N], b[N], sum[N];
  for (int i = 0; i < N; ++i) {
    a[i] = (float)i;
    b[i] = (float)(3 * i);
  }
  gyre_buffer buffers[3];
  gyre_buffer_handle handles[3];
  for (int i = 0; i < 3; ++i) {
    REQUIRE_OK(gyre_buffer_create(runtime, memory, GYRE_FLOAT32, N, &buffers[i]));
    REQUIRE_OK(gyre_buffer_get_handle(buffers[i], 0, &handles[i]));
    EXPECT(handles[i].length == N && handles[i].element == GYRE_FLOAT32 && handles[i].reserved == 0);
  }
  gyre_buffer_info info = {sizeof info, 0, 0, 0, 0, 0, 0};
  REQUIRE_OK(gyre_buffer_get_info(buffers[0], &info));
  EXPECT(info.memory == memory && info.element == GYRE_FLOAT32 && info.elements == N && info.bytes == 4 * N);
  REQUIRE_OK(gyre_buffer_write(buffers[0], 0, a, sizeof a));
  REQUIRE_OK(gyre_buffer_write(buffers[1], 0, b, sizeof b / 2));
  REQUIRE_OK(gyre_buffer_write(buffers[1], sizeof b / 2, b + N / 2, sizeof b / 2));
  char json[1024];
  int length = snprintf(json, sizeof json, "{\"length\": %d", N);
  static const char* const fields[] = {"aBuffer", "bBuffer", "resultBuffer"};
  for (int i = 0; i < 3; ++i) {
    length +=
        snprintf(json + length, sizeof json - (size_t)length,
                 ", \"%s\": {\"index\": %u, \"generation\": %u, \"runtime\": %u, \"element\": \"float32\", "
                 "\"length\": \"%llu\"}",
                 fields[i], (unsigned)handles[i].index, (unsigned)handles[i].generation,
                 (unsigned)handles[i].runtime, (unsigned long long)handles[i].length);
  }
  length += snprintf(json + length, sizeof json - (size_t)length, "}");
  const uint64_t request = type_id(own, "VectorAddRequest");
  unsigned char message[512];
  size_t size;
  REQUIRE_OK(
      gyre_message_from_json(own, request, json, (size_t)length, GYRE_BODY, message, sizeof message, &size));
  /* The 24 bytes of a handle lie in the message as they are. */
  int found = 0;
  for (size_t at = 0; at + sizeof handles[2] <= size; at += 8) {
    found += memcmp(message + at, &handles[2], sizeof handles[2]) == 0;
  }
  EXPECT(found == 1);
  gyre_call call;
  REQUIRE_OK(gyre_ask_and_wait(runtime, VECTOR_ADD, 1, request, message, size, NULL, &call));
  EXPECT_STATUS(GYRE_OK, gyre_call_release(call));
  REQUIRE_OK(gyre_buffer_read(buffers[2], 0, sum, sizeof sum));
  for (int i = 0; i < N; ++i) EXPECT(sum[i] == a[i] + b[i]);
  if (memory == GYRE_MEMORY_DEVICE) {
    float half[2];
    REQUIRE_OK(gyre_buffer_read(buffers[2], 4 * 500, half, sizeof half));
    EXPECT(half[0] == 2000.0f && half[1] == 2004.0f);
  } else {
    void* elements = NULL;
    REQUIRE_OK(gyre_buffer_view(buffers[2], -1, &elements));
    EXPECT(memcmp(elements, sum, sizeof sum) == 0);
  }
  gyre_stats stats = {.struct_size = sizeof stats};
  REQUIRE_OK(gyre_runtime_stats(runtime, &stats));
  EXPECT(stats.region_bytes > 1 << 16 && stats.actor_bytes > 0 && stats.buffer_table_bytes > 0 &&
         stats.device_free_bytes <= stats.device_bytes);
  EXPECT(stats.buffers_in_use[memory] == 3 && stats.buffer_bytes_in_use[memory] >= 3 * 4 * N);
  EXPECT_STATUS(GYRE_OK, gyre_buffer_release(buffers[2]));
  EXPECT_STATUS(GYRE_BAD_BUFFER,
                gyre_ask_and_wait(runtime, VECTOR_ADD, 1, request, message, size, NULL, &call));
  EXPECT_STATUS(GYRE_OK, gyre_buffer_release(buffers[0]));
  EXPECT_STATUS(GYRE_OK, gyre_buffer_release(buffers[1]));
}

static void tells_and_dead_letters(gyre_runtime runtime, gyre_schema own) {
  const uint64_t echo = type_id(own, "EchoRequest");
  const uint64_t words[] = {(uint64_t)1 << 32 | (uint64_t)1 << 48, 42, 0};
  /* Echo answers asks: to a tell there is nothing to say, and it is processed. */
  EXPECT_STATUS(GYRE_OK, gyre_tell(runtime, ECHO, 9, echo, words, sizeof words, NULL));
  gyre_call call;
  EXPECT_STATUS(GYRE_OK,
                gyre_ask_and_wait(runtime, ECHO, 9, echo, words, sizeof words, NULL, &call)); /* after it */
  EXPECT_STATUS(GYRE_OK, gyre_call_release(call));
  EXPECT_STATUS(GYRE_OK, gyre_set_active(runtime, 0, -1));
  EXPECT_STATUS(GYRE_INACTIVE, gyre_ask_and_wait(runtime, ECHO, 9, echo, words, sizeof words, NULL, &call));
  EXPECT_STATUS(GYRE_OK, gyre_tell(runtime, ECHO, 77, echo, words, sizeof words, NULL));
  EXPECT_STATUS(GYRE_INACTIVE,
                gyre_ask_and_wait(runtime, ECHO, 77, echo, words, sizeof words, NULL, &call)); /* after it */
  EXPECT_STATUS(GYRE_OK, gyre_set_active(runtime, 1, -1));
  EXPECT_STATUS(GYRE_OK, gyre_ask_and_wait(runtime, ECHO, 9, echo, words, sizeof words, NULL, &call));
  EXPECT_STATUS(GYRE_OK, gyre_call_release(call));
  EXPECT_STATUS(GYRE_OK, gyre_drain(runtime, -1));
  gyre_dead_letters letters;
  size_t count = 0;
  REQUIRE_OK(gyre_take_dead_letters(runtime, &letters, &count));
  EXPECT(count == 1);
  gyre_dead_letter letter = {sizeof letter, 0, 0, 0, NULL, NULL, NULL, NULL, 0};
  REQUIRE_OK(gyre_dead_letter_at(letters, 0, &letter));
  EXPECT(letter.reason == GYRE_INACTIVE && letter.key == 77 && letter.is_ask == 0);
  EXPECT(strcmp(letter.actor, ECHO) == 0 && strcmp(letter.message, "EchoRequest") == 0);
  EXPECT(letter.body_size == sizeof words && memcmp(letter.body, words, sizeof words) == 0);
  EXPECT(strstr(letter.text, "at key 77") != NULL && strstr(letter.text, "inactive") != NULL);
  EXPECT_STATUS(GYRE_OK, gyre_dead_letters_release(letters));
}

static gyre_status outcome_of(gyre_call call, size_t* size) {
  const void* body;
  REQUIRE_OK(gyre_call_wait(call, -1));
  const gyre_status outcome = gyre_call_reply(call, &body, size);
  REQUIRE_OK(gyre_call_release(call));
  return outcome;
}

/* What speakers told. */
typedef struct Told {
  atomic_int count, wrong;
  uint64_t next, type_id;
  uint32_t workers;
  gyre_schema schema;
} Told;
static void take_number(void* context, const gyre_told* told) {
  Told* const all = context;
  char json[256], expected[256];
  size_t size;
  const int n = snprintf(expected, sizeof expected, "{\"number\":\"%llu\",\"filler\":[]}",
                         (unsigned long long)all->next++);
  const int right = told->struct_size == sizeof *told && strcmp(told->actor, "gyre_telling::Speaker") == 0 &&
                    told->key == 3 && told->type_id == all->type_id && told->worker == 3 % all->workers &&
                    gyre_message_to_json(all->schema, all->type_id, told->body, told->body_size, GYRE_BODY,
                                         json, sizeof json, &size) == GYRE_OK &&
                    size == (size_t)n && memcmp(json, expected, size) == 0;
  if (!right) atomic_fetch_add(&all->wrong, 1);
  atomic_fetch_add(&all->count, 1);
}
static void actors_tell_the_host(const char* plugin, const gyre_options* options) {
  gyre_actors speakers;
  gyre_schema schema;
  gyre_runtime runtime;
  REQUIRE_OK(gyre_actors_load(plugin, "speakers", &speakers));
  REQUIRE_OK(gyre_actors_schema(speakers, &schema));
  REQUIRE_OK(gyre_launch(speakers, options, &runtime));
  Told told = {.workers = options->workers};
  /* The types that a set carries are those that its handlers take and answer. */
  const char* const text =
      "@0xe8a2c5d17b90f346;\nusing Cxx = import \"/capnp/c++.capnp\";\n$Cxx.namespace(\"gyre_telling\");\n"
      "struct Number {\n  number @0 :UInt64;\n  filler @1 :List(UInt64);\n}\n";
  const gyre_text file = {"telling.capnp", text, strlen(text)};
  REQUIRE_OK(gyre_schema_parse(&file, 1, &told.schema));
  told.type_id = type_id(told.schema, "Number");
  REQUIRE_OK(gyre_on_told(runtime, told.type_id, take_number, &told));
  const uint64_t speak = type_id(schema, "Speak");
  const char* const json = "{\"count\": 4}";
  char body[256];
  size_t size;
  REQUIRE_OK(gyre_message_from_json(schema, speak, json, strlen(json), GYRE_BODY, body, sizeof body, &size));
  for (int i = 0; i < 5; ++i) {
    gyre_call call;
    size_t answered;
    REQUIRE_OK(gyre_ask(runtime, "gyre_telling::Speaker", 3, speak, body, size, NULL, &call));
    EXPECT_STATUS(GYRE_OK, outcome_of(call, &answered));
  }
  while (atomic_load(&told.count) < 20) sched_yield();
  EXPECT(atomic_load(&told.wrong) == 0);
  REQUIRE_OK(gyre_on_told(runtime, told.type_id, NULL, NULL)); /* from now on they are dropped */
  gyre_call call;
  REQUIRE_OK(gyre_ask(runtime, "gyre_telling::Speaker", 3, speak, body, size, NULL, &call));
  EXPECT_STATUS(GYRE_OK, outcome_of(call, &size));
  REQUIRE_OK(gyre_drain(runtime, -1));
  gyre_stats stats = {.struct_size = sizeof stats};
  REQUIRE_OK(gyre_runtime_stats(runtime, &stats));
  EXPECT(stats.told_handled == 20);
  EXPECT(stats.told_dropped > 0 && stats.told_sent == 20 + stats.told_dropped);
  EXPECT(stats.mail_lost == 0 && stats.timers_set == 0);
  gyre_termination ended = {.struct_size = sizeof ended};
  REQUIRE_OK(gyre_terminate(runtime, -1, &ended));
  EXPECT(ended.balanced == 1);
  EXPECT(atomic_load(&told.count) == 20);
  EXPECT_STATUS(GYRE_OK, gyre_runtime_release(runtime));
  EXPECT_STATUS(GYRE_OK, gyre_schema_release(told.schema));
  EXPECT_STATUS(GYRE_OK, gyre_schema_release(schema));
  EXPECT_STATUS(GYRE_OK, gyre_actors_release(speakers));
}

static void receipts_say_what_became_of_tells(const char* plugin, const gyre_options* options) {
  const char* const probe = "gyre_test::Probe";
  gyre_actors probes;
  gyre_schema schema;
  gyre_runtime runtime;
  REQUIRE_OK(gyre_actors_load(plugin, "probes", &probes));
  REQUIRE_OK(gyre_actors_schema(probes, &schema));
  REQUIRE_OK(gyre_launch(probes, options, &runtime));
  const uint64_t note = type_id(schema, "ProbeNote"), request = type_id(schema, "ProbeRequest");
  char note_body[256], work[256], failing[256];
  size_t note_size, work_size, failing_size, size = 0;
  const char* const note_json = "{\"value\": 7}";
  const char* const work_json = "{\"action\": \"work\", \"argument\": 30000000}";
  const char* const failing_json = "{\"action\": \"fail\", \"argument\": 42}";
  REQUIRE_OK(gyre_message_from_json(schema, note, note_json, strlen(note_json), GYRE_BODY, note_body,
                                    sizeof note_body, &note_size));
  REQUIRE_OK(gyre_message_from_json(schema, request, work_json, strlen(work_json), GYRE_BODY, work,
                                    sizeof work, &work_size));
  REQUIRE_OK(gyre_message_from_json(schema, request, failing_json, strlen(failing_json), GYRE_BODY, failing,
                                    sizeof failing, &failing_size));
  gyre_send_options days;
  REQUIRE_OK(gyre_send_options_init(&days, sizeof days));
  days.timeout_ns = INT64_C(172800) * 1000000000;
  gyre_call call, busy;

  REQUIRE_OK(gyre_tell_with_receipt(runtime, probe, 1, note, note_body, note_size, &days, &call));
  EXPECT_STATUS(GYRE_OK, outcome_of(call, &size));
  EXPECT(size == 0);
  REQUIRE_OK(gyre_tell_with_receipt(runtime, probe, 1, request, failing, failing_size, NULL, &call));
  EXPECT_STATUS(GYRE_HANDLER_FAILED, outcome_of(call, &size));
  EXPECT(strstr(gyre_last_error(), "42") != NULL);

  /* The worker is busy until the message's time is over. */
  REQUIRE_OK(gyre_ask(runtime, probe, 1, request, work, work_size, NULL, &busy));
  days.expires_after_ns = 1;
  REQUIRE_OK(gyre_tell_with_receipt(runtime, probe, 1, note, note_body, note_size, &days, &call));
  EXPECT_STATUS(GYRE_EXPIRED, outcome_of(call, &size));
  EXPECT_STATUS(GYRE_OK, outcome_of(busy, &size));

  /* An ask of a handler without a response has an empty reply. */
  REQUIRE_OK(gyre_ask(runtime, probe, 1, note, note_body, note_size, NULL, &call));
  size = 1;
  EXPECT_STATUS(GYRE_OK, outcome_of(call, &size));
  EXPECT(size == 0);

  gyre_termination ended = {.struct_size = sizeof ended};
  REQUIRE_OK(gyre_terminate(runtime, -1, &ended));
  EXPECT(ended.balanced == 1);
  gyre_stats stats = {.struct_size = sizeof stats};
  REQUIRE_OK(gyre_runtime_stats(runtime, &stats));
  EXPECT(stats.asks_accepted == 5 && stats.asks_answered == 3 && stats.asks_error_replies == 1 &&
         stats.asks_timed_out == 1 && stats.tells_accepted == 0);
  EXPECT_STATUS(GYRE_OK, gyre_runtime_release(runtime));
  EXPECT_STATUS(GYRE_OK, gyre_schema_release(schema));
  EXPECT_STATUS(GYRE_OK, gyre_actors_release(probes));
}

/* Sixteen asks through a queue and its descriptor, in whatever order they come; each with its own tag. */
static void queues_bring_each_outcome_once(gyre_runtime runtime, gyre_schema own) {
  enum { N = 16 };
  const uint64_t echo = type_id(own, "EchoRequest");
  uint64_t words[] = {(uint64_t)1 << 32 | (uint64_t)1 << 48, 0, 0};
  gyre_queue queue;
  int32_t fd = -1;
  REQUIRE_OK(gyre_queue_create(&queue));
  REQUIRE_OK(gyre_queue_fd(queue, &fd));
  gyre_call calls[N];
  for (uint64_t i = 0; i < N; ++i) {
    words[1] = 1000 + i;
    REQUIRE_OK(gyre_ask(runtime, ECHO, i, echo, words, sizeof words, NULL, &calls[i]));
    REQUIRE_OK(gyre_queue_watch(queue, calls[i], i));
  }
  int came[N] = {0};
  for (int taken = 0; taken < N;) {
    struct pollfd readable = {fd, POLLIN, 0};
    EXPECT(poll(&readable, 1, 10000) == 1);
    gyre_call call;
    uint64_t tag;
    while (gyre_queue_take(queue, &call, &tag) == GYRE_OK) {
      EXPECT(tag < N && call == calls[tag]);
      ++came[tag % N];
      const void* body;
      size_t size;
      REQUIRE_OK(gyre_call_reply(call, &body, &size));
      EXPECT(size >= 16 && ((const uint64_t*)body)[1] == 1000 + tag);
      EXPECT_STATUS(GYRE_OK, gyre_call_release(call));
      ++taken;
    }
  }
  for (int i = 0; i < N; ++i) EXPECT(came[i] == 1);

  /* One that is cancelled while it is in a queue comes by it, with that outcome or its reply; one released
   * never. */
  REQUIRE_OK(gyre_ask(runtime, ECHO, 1, echo, words, sizeof words, NULL, &calls[0]));
  REQUIRE_OK(gyre_ask(runtime, ECHO, 0, echo, words, sizeof words, NULL, &calls[1]));
  REQUIRE_OK(gyre_queue_watch(queue, calls[0], 0));
  REQUIRE_OK(gyre_queue_watch(queue, calls[1], 1));
  EXPECT_STATUS(GYRE_OK, gyre_call_release(calls[0]));
  int32_t cancelled = 9;
  REQUIRE_OK(gyre_call_cancel(calls[1], &cancelled));
  EXPECT(cancelled == 0 || cancelled == 1);
  cancelled_asks += cancelled == 1;
  for (int taken = 0; taken < 1;) {
    struct pollfd readable = {fd, POLLIN, 0};
    EXPECT(poll(&readable, 1, 10000) == 1);
    gyre_call call;
    uint64_t tag;
    while (gyre_queue_take(queue, &call, &tag) == GYRE_OK) {
      EXPECT(tag == 1 && call == calls[1]);
      ++taken;
    }
  }
  const void* body;
  size_t size;
  EXPECT_STATUS(cancelled ? GYRE_CANCELLED : GYRE_OK, gyre_call_reply(calls[1], &body, &size));
  EXPECT_STATUS(GYRE_OK, gyre_call_release(calls[1]));
  EXPECT_STATUS(GYRE_OK, gyre_queue_release(queue));
}

static void what_a_runtime_says_of_itself(gyre_runtime runtime, gyre_schema own) {
  gyre_info info = {.struct_size = sizeof info};
  REQUIRE_OK(gyre_runtime_info(runtime, &info));
  EXPECT(info.engine == GYRE_ENGINE_CPU && info.transport == GYRE_TRANSPORT_HEAP &&
         info.state == GYRE_ACTIVE);
  EXPECT(info.workers == 2 && info.slot_body_bytes == 352 && info.region_bytes > 0 && info.uptime_s > 0);
  char text[4096];
  size_t size = 0;
  REQUIRE_OK(gyre_runtime_text(runtime, GYRE_TEXT_DEVICE_NAME, text, sizeof text, &size));
  EXPECT(size > 0 && strlen(text) == size);
  REQUIRE_OK(gyre_runtime_text(runtime, GYRE_TEXT_FAILURE, text, sizeof text, &size));
  EXPECT(size == 0 && text[0] == 0);
  REQUIRE_OK(gyre_runtime_text(runtime, GYRE_TEXT_TRANSPORT_REASON, text, sizeof text, &size));
  REQUIRE_OK(gyre_runtime_text(runtime, GYRE_TEXT_STATS, text, sizeof text, &size));
  EXPECT(strstr(text, "{\"asks_accepted\": 0, ") == text &&
         strstr(text, "\"buffers_in_use\": [0, 0, 0]") != NULL);
  gyre_handler handler = {sizeof handler, NULL, NULL, 0, 0};
  REQUIRE_OK(gyre_runtime_handler(runtime, 0, &handler));
  EXPECT(strcmp(handler.actor, ECHO) == 0 && strcmp(handler.request_name, "EchoRequest") == 0);
  EXPECT(handler.request == type_id(own, "EchoRequest") && handler.response == type_id(own, "EchoResponse"));
  REQUIRE_OK(gyre_runtime_handler(runtime, 1, &handler));
  EXPECT(strcmp(handler.actor, VECTOR_ADD) == 0 && handler.request == type_id(own, "VectorAddRequest"));
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  gyre_options options;
  REQUIRE_OK(gyre_options_init(&options, sizeof options));
  options.engine = GYRE_ENGINE_CPU;
  options.workers = 2;
  gyre_schema own;
  REQUIRE_OK(gyre_schema_parse(NULL, 0, &own));

  json_messages_come_back_as_they_were();
  wrong_json_is_named();
  lists_of_nothing_are_read_as_workers_read_them();
  views_are_those_of_the_compiler(argv[1], argv[2]);
  const gyre_runtime runtime = launch(&options);
  what_a_runtime_says_of_itself(runtime, own);
  asks_by_json_and_by_hand(runtime, own);
  buffers_are_added(runtime, own, GYRE_MEMORY_DEVICE);
  buffers_are_added(runtime, own, GYRE_MEMORY_PINNED);
  buffers_are_added(runtime, own, GYRE_MEMORY_UNIFIED);
  queues_bring_each_outcome_once(runtime, own);
  tells_and_dead_letters(runtime, own);
  receipts_say_what_became_of_tells(argv[3], &options);
  actors_tell_the_host(argv[3], &options);

  gyre_termination report_of_end = {sizeof report_of_end, 9, 9, 0, 0, 9, 9, 9, 9};
  REQUIRE_OK(gyre_terminate(runtime, -1, &report_of_end));
  EXPECT(report_of_end.balanced == 1 && report_of_end.worker_stuck == 0);
  EXPECT(report_of_end.sender_stuck == 0 && report_of_end.reader_stuck == 0 &&
         report_of_end.unfinished == 0 && report_of_end.buffers_stuck == 0);
  gyre_stats stats = {.struct_size = sizeof stats};
  REQUIRE_OK(gyre_runtime_stats(runtime, &stats));
  /* 18 by the queue; 3 by JSON, 16 by hand, 1 dropped, 1 large, 1 malformed; of buffers 2 each; 2 inactive, 1
     before and 1 after it. */
  EXPECT(stats.asks_accepted == 50 && stats.asks_in_flight == 0 && stats.tells_in_flight == 0);
  EXPECT(stats.asks_answered + stats.asks_cancelled == 44 && stats.asks_cancelled == cancelled_asks &&
         stats.asks_error_replies == 6);
  EXPECT(stats.tells_accepted == 2 && stats.tells_processed == 1 && stats.tells_dead_letters == 1);
  EXPECT(stats.asks_inferred == 0 && stats.tells_inferred == 0);
  EXPECT(stats.corrupt_slots == 0 && stats.asks_late_replies <= stats.asks_cancelled &&
         stats.asks_timed_out == 0);
  EXPECT_STATUS(GYRE_OK, gyre_runtime_release(runtime));
  EXPECT_STATUS(GYRE_OK, gyre_schema_release(own));
  return report();
}
