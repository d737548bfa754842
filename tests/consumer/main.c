/* Asks this project's actors from C, and checks what they answer: consumer_c PLUGIN PROJECT_FOLDER [cuda] */
#include <gyre/gyre.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(gyre_status status) {
  if (status == GYRE_OK) return;
  fprintf(stderr, "FAILED: %s\n", gyre_last_error());
  exit(1);
}

static gyre_text read_text(const char* folder, const char* path, const char* name) {
  char file_name[1024];
  snprintf(file_name, sizeof file_name, "%s/%s", folder, path);
  FILE* const file = fopen(file_name, "rb");
  if (file == NULL) {
    perror(file_name);
    exit(1);
  }
  char* const text = malloc(65536);
  if (text == NULL) exit(1);
  const size_t length = fread(text, 1, 65536, file);
  fclose(file);
  return (gyre_text){name, text, length};
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const gyre_text files[] = {read_text(argv[2], "schemas/order.capnp", "till/schemas/order.capnp"),
                             read_text(argv[2], "schemas/rounding.capnp", "till/schemas/rounding.capnp"),
                             read_text(argv[2], "imports/shop/units.capnp", "shop/units.capnp")};
  gyre_schema schema;
  must(gyre_schema_parse(files, 3, &schema));
  uint64_t request_id, response_id;
  must(gyre_schema_type_id(schema, "OrderRequest", &request_id));
  must(gyre_schema_type_id(schema, "OrderResponse", &response_id));

  gyre_actors actors;
  must(gyre_actors_load(argv[1], "till", &actors));
  must(gyre_actors_check_schema(actors, schema));
  gyre_options options;
  must(gyre_options_init(&options, sizeof options));
  options.engine = argc > 3 && strcmp(argv[3], "cuda") == 0 ? GYRE_ENGINE_CUDA : GYRE_ENGINE_CPU;
  gyre_runtime runtime;
  must(gyre_launch(actors, &options, &runtime));

  const char* const order = "{\"amount\": 2, \"unit\": \"dozen\"}";
  char request[256], reply[256];
  size_t request_size, body_size, reply_size;
  must(gyre_message_from_json(schema, request_id, order, strlen(order), GYRE_BODY, request, sizeof request,
                              &request_size));
  gyre_call call;
  must(gyre_ask_and_wait(runtime, "till::Till", 1, request_id, request, request_size, NULL, &call));
  const void* body;
  must(gyre_call_reply(call, &body, &body_size));
  must(gyre_message_to_json(schema, response_id, body, body_size, GYRE_BODY, reply, sizeof reply, &reply_size));
  must(gyre_call_release(call));
  printf("%s\n", reply);

  gyre_termination report = {.struct_size = sizeof report};
  must(gyre_terminate(runtime, GYRE_DEFAULT_TIMEOUT, &report));
  must(gyre_runtime_release(runtime));
  must(gyre_actors_release(actors));
  must(gyre_schema_release(schema));
  for (size_t i = 0; i < 3; ++i) free((void*)(uintptr_t)files[i].text);
  return report.balanced && strstr(reply, "\"pieces\":24") != NULL ? 0 : 1;
}
