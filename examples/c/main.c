/* Asks Gyre's built-in actor to add two vectors: on the GPU where there is one, else on CPU threads. */
#include <gyre/gyre.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(gyre_status status) {
  if (status == GYRE_OK) return;
  fprintf(stderr, "%s\n", gyre_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  gyre_options options;
  check(gyre_options_init(&options, sizeof options));
  if (argc > 1 && strcmp(argv[1], "cpu") == 0) options.engine = GYRE_ENGINE_CPU;
  gyre_runtime runtime;
  check(gyre_launch(0, &options, &runtime));

  gyre_schema schema; /* Gyre's own messages; a program's own are given as text */
  uint64_t request, response;
  check(gyre_schema_parse(NULL, 0, &schema));
  check(gyre_schema_type_id(schema, "VectorAddRequest", &request));
  check(gyre_schema_type_id(schema, "VectorAddResponse", &response));

  const char* json = "{\"a\": [1, 2, 3], \"b\": [9, 38, 87]}";
  char message[256], text[512];
  size_t size;
  check(
      gyre_message_from_json(schema, request, json, strlen(json), GYRE_BODY, message, sizeof message, &size));
  gyre_call call;
  check(gyre_ask_and_wait(runtime, "gyre::actors::VectorAdd", 1, request, message, size, NULL, &call));
  const void* body; /* good until the call is released */
  check(gyre_call_reply(call, &body, &size));
  check(gyre_message_to_json(schema, response, body, size, GYRE_BODY, text, sizeof text, &size));
  printf("%s\n", text);

  check(gyre_call_release(call));
  check(gyre_schema_release(schema));
  check(gyre_runtime_release(runtime));
  return 0;
}
