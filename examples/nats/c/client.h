/* Asks of actors on a NATS server, from any number of threads. */
#ifndef CLIENT_H
#define CLIENT_H

#include <nats/nats.h>
#include <stddef.h>
#include <stdint.h>

/* Connects to one of the servers, and reads how many shards the namespace has. Ends the program if it cannot.
   servers: URLs with commas. namespace_name: is kept. timeout_s: of each ask, in seconds. */
void client_start(const char* servers, const char* namespace_name, double timeout_s);
void client_end(void);

/* The outcome of an ask. `message` has the reply's body if the status is "ok", and is the caller's to
 * destroy. */
struct outcome {
  char status[64], reason[256];
  uint64_t lease;
  natsMsg* message; /* else NULL */
};

/* Asks an actor. Blocks for the timeout and half a second at most.
   actor: its type's name in a subject, such as my_Counter for my::Counter. body: of type `type_id`, as a
   stream. */
struct outcome ask(const char* actor, uint64_t key, uint64_t type_id, const void* body, size_t size);

#endif
