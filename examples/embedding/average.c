/* The first tutorial's actor, asked from C: example_average_c PLUGIN [cpu].
   docs/tutorials/05-embedding-from-c-and-python.md explains it. */
#include <gyre/gyre.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with the library's own words, unless all is well. */
static void must(gyre_status status) {
  if (status == GYRE_OK) return;
  fprintf(stderr, "%s\n", gyre_last_error());
  exit(1);
}

static void ask(gyre_runtime runtime, gyre_schema schema, uint64_t key, const char* json) {
  uint64_t add, mean;
  must(gyre_schema_type_id(schema, "Add", &add));
  must(gyre_schema_type_id(schema, "Mean", &mean));

  char request[1024], reply[1024];
  size_t request_size, reply_size, body_size;
  must(gyre_message_from_json(schema, add, json, strlen(json), GYRE_BODY, request, sizeof request,
                              &request_size));
  gyre_call call;
  if (gyre_ask_and_wait(runtime, "averages::Average", key, add, request, request_size, NULL, &call) !=
      GYRE_OK) {
    printf("%s\n", gyre_last_error());
    return;
  }
  const void* body;
  must(gyre_call_reply(call, &body, &body_size));
  must(gyre_message_to_json(schema, mean, body, body_size, GYRE_BODY, reply, sizeof reply, &reply_size));
  printf("%s\n", reply);
  must(gyre_call_release(call));
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "use: %s PLUGIN [cpu]\n", argv[0]);
    return 2;
  }
  gyre_actors actors;
  gyre_schema schema; /* messages are made and read by it; the plugin carries it */
  must(gyre_actors_load(argv[1], NULL, &actors));
  must(gyre_actors_schema(actors, &schema));

  gyre_options options;
  must(gyre_options_init(&options, sizeof options));
  if (argc > 2 && strcmp(argv[2], "cpu") == 0) options.engine = GYRE_ENGINE_CPU;
  gyre_runtime runtime;
  must(gyre_launch(actors, &options, &runtime));

  ask(runtime, schema, 1, "{\"numbers\": [1, 2, 3]}");
  ask(runtime, schema, 1, "{\"numbers\": [10]}");
  ask(runtime, schema, 2, "{\"numbers\": []}");

  gyre_termination report = {.struct_size = sizeof report};
  must(gyre_terminate(runtime, -1, &report));
  must(gyre_runtime_release(runtime));
  must(gyre_actors_release(actors));
  must(gyre_schema_release(schema));
  return report.balanced ? 0 : 1;
}
