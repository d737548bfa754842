#include "client.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static natsConnection* connection;
static const char* name_space;
static double timeout_s;
static unsigned shards;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t* leases; /* the highest that a reply of each shard has had; guarded by the mutex */

static void require(natsStatus status, const char* doing) {
  if (status == NATS_OK) return;
  const char* last = nats_GetLastError(NULL);
  fprintf(stderr, "%s: %s%s%s\n", doing, natsStatus_GetText(status), last ? ": " : "", last ? last : "");
  exit(1);
}

static void connect_to(const char* server) {
  static char urls[4096]; /* with commas */
  const char* each[16];
  int count = 0;
  snprintf(urls, sizeof urls, "%s", server);
  for (char *rest, *url = strtok_r(urls, ",", &rest); url && count < 16; url = strtok_r(NULL, ",", &rest))
    each[count++] = url;
  natsOptions* options;
  require(natsOptions_Create(&options), "making options");
  require(natsOptions_SetServers(options, each, count), "reading --server");
  require(natsOptions_SetMaxReconnect(options, -1), "setting reconnects");
  require(natsConnection_Connect(&connection, options), "connecting to the NATS server");
  natsOptions_Destroy(options);
}

/* Reads the number of shards from the entry `config`: shards=64 lease_ms=3000 ... */
static unsigned read_shards(void) {
  char bucket[64], doing[160];
  snprintf(bucket, sizeof bucket, "gyre_%s", name_space);
  snprintf(doing, sizeof doing, "reading config in bucket %s, which the namespace's first node makes",
           bucket);
  jsCtx* jet_stream;
  kvStore* store;
  kvEntry* entry;
  require(natsConnection_JetStream(&jet_stream, connection, NULL), doing);
  require(js_KeyValue(&store, jet_stream, bucket), doing);
  require(kvStore_Get(&entry, store, "config"), doing);
  const char* pair = strstr(kvEntry_ValueString(entry), "shards=");
  const unsigned count = pair ? (unsigned)strtoul(pair + strlen("shards="), NULL, 10) : 0;
  kvEntry_Destroy(entry);
  kvStore_Destroy(store);
  jsCtx_Destroy(jet_stream);
  if (count == 0) require(NATS_ERR, doing);
  return count;
}

static unsigned shard_of(const char* name, uint64_t key) {
  uint64_t hash = 0xcbf29ce484222325;
  for (; *name; ++name) hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
  for (int k = 0; k < 8; ++k) hash = (hash ^ (key >> (8 * k) & 0xff)) * 0x100000001b3;
  return (unsigned)((hash >> 32) % shards);
}

static struct outcome failed(const char* status, const char* reason) {
  struct outcome outcome = {.lease = 0};
  snprintf(outcome.status, sizeof outcome.status, "%s", status);
  snprintf(outcome.reason, sizeof outcome.reason, "%s", reason);
  return outcome;
}

struct outcome ask(const char* actor, uint64_t key, uint64_t type_id, const void* body, size_t size) {
  const unsigned shard = shard_of(actor, key);
  char subject[256], text[32];
  snprintf(subject, sizeof subject, "gyre.%s.%s.%u", name_space, actor, shard);
  natsMsg* request;
  require(natsMsg_Create(&request, subject, NULL, body, (int)size), "making a message");
  snprintf(text, sizeof text, "%016" PRIx64, type_id);
  require(natsMsgHeader_Set(request, "Gyre-Type", text), "setting a header");
  snprintf(text, sizeof text, "%" PRIu64, key);
  require(natsMsgHeader_Set(request, "Gyre-Key", text), "setting a header");
  snprintf(text, sizeof text, "%" PRIu64, (uint64_t)(timeout_s * 1e6));
  require(natsMsgHeader_Set(request, "Gyre-Timeout", text), "setting a header");
  natsMsg* reply = NULL;
  /* 500 ms more, so that the node's own timed_out comes first. */
  const natsStatus status =
      natsConnection_RequestMsg(&reply, connection, request, (int64_t)(timeout_s * 1e3) + 500);
  natsMsg_Destroy(request);
  if (status == NATS_NO_RESPONDERS) return failed("no_such_node", "no node owns the shard now");
  if (status != NATS_OK) return failed("no_reply", natsStatus_GetText(status));

  const char *lease = NULL, *gyre_status = "no_status", *reason = "";
  natsMsgHeader_Get(reply, "Gyre-Lease", &lease);
  natsMsgHeader_Get(reply, "Gyre-Status", &gyre_status);
  natsMsgHeader_Get(reply, "Gyre-Reason", &reason);
  struct outcome outcome = failed(gyre_status, reason);
  if (lease) { /* no_such_node comes without one */
    outcome.lease = strtoull(lease, NULL, 10);
    pthread_mutex_lock(&mutex);
    if (outcome.lease < leases[shard]) {
      /* From a node that was suspended, and does not know that another one has the shard. */
      outcome = failed("old_lease", "a reply came under a lower lease than one before");
    } else {
      leases[shard] = outcome.lease;
    }
    pthread_mutex_unlock(&mutex);
  }
  if (strcmp(outcome.status, "ok") == 0) {
    outcome.message = reply;
  } else {
    natsMsg_Destroy(reply);
  }
  return outcome;
}

void client_start(const char* servers, const char* namespace_name, double seconds) {
  name_space = namespace_name;
  timeout_s = seconds;
  connect_to(servers);
  shards = read_shards();
  leases = calloc(shards, sizeof *leases);
  if (!leases) require(NATS_NO_MEMORY, "remembering leases");
}

void client_end(void) {
  natsConnection_Destroy(connection);
  free(leases);
  nats_Close();
}
