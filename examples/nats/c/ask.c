/* Asks the actors of a gyre-nats node from C, by libnats and Cap'n Proto: none of Gyre's code is here.

   It asks averages::Average, the first tutorial's actor: one number goes in, and the mean and the count of
   all numbers that the actor was sent come out. As each actor is always sent one number, the mean must be
   that number, and each count must come once.

       ./build.sh /tmp/c && /tmp/c/ask --server nats://127.0.0.1:4222 --namespace default --asks 10 --keys 2
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "body.h"
#include "client.h"

static const char* const actor = "averages_Average"; /* in a subject: averages::Average */

/* What the command line gives. */
static const char* server = "nats://127.0.0.1:4222";
static const char* name_space = "default";
static long asks = 10, keys = 2, in_flight = 64, retries = 0;
static double timeout_s = 5;

/* What the threads share. `mutex` guards all that is below it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long next, attempts, wrong, answered;
static long* sent; /* asks to each key, with those that were not answered */
static struct reply {
  long key;
  uint64_t lease, count;
} * replies; /* the first `answered` */
static struct error {
  char status[64];
  long count;
} errors[64];

/* These may go well the next time. After no_reply, timed_out and engine_failed the actor may have had the
   message, so retry only what may be handled twice: a count is then left out. */
static const char* const transient[] = {"no_such_node", "ring_full",     "call_table_full", "draining",
                                        "timed_out",    "engine_failed", "no_reply",        "old_lease"};

static void* array(long elements, size_t size) {
  void* zeros = calloc(elements > 0 ? (size_t)elements : 1, size);
  if (!zeros) {
    fprintf(stderr, "no memory for %ld elements of %zu bytes\n", elements, size);
    exit(1);
  }
  return zeros;
}

/* Checks a reply, and keeps its count for check_counts(). The mutex is held. */
static void check_reply(long key, const struct outcome* outcome) {
  double mean = 0;
  uint64_t count = 0;
  const int size = natsMsg_GetDataLength(outcome->message);
  if (!read_mean(natsMsg_GetData(outcome->message), (size_t)size, &mean, &count)) {
    ++wrong;
    fprintf(stderr, "key %ld: a reply of %d bytes is no message\n", key, size);
    count = UINT64_MAX; /* of no reply */
  } else if (mean != (double)key + 0.5) {
    ++wrong;
    fprintf(stderr, "key %ld: mean %g of %" PRIu64 " numbers; each number sent was %g\n", key, mean, count,
            (double)key + 0.5);
  } else if (asks <= 10) {
    printf("key %ld: the mean of %" PRIu64 " numbers is %g\n", key, count, mean);
  }
  replies[answered++] = (struct reply){key, outcome->lease, count};
}

static int in_order(const void* left, const void* right) {
  const struct reply *a = left, *b = right;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  if (a->lease != b->lease) return a->lease < b->lease ? -1 : 1;
  return a->count < b->count ? -1 : a->count > b->count;
}

/* Of one actor's life, which a lease begins, the counts must be numbers in a row, each once. */
static void check_counts(void) {
  qsort(replies, (size_t)answered, sizeof *replies, in_order);
  for (long i = 0, first = 0; i < answered; ++i) {
    const struct reply *reply = &replies[i], *before = i > 0 ? &replies[i - 1] : NULL;
    if (reply->count == UINT64_MAX) continue;
    if (!before || before->key != reply->key || before->lease != reply->lease) {
      first = i;
    } else if (before->count == reply->count) {
      ++wrong;
      fprintf(stderr, "key %ld: the count %" PRIu64 " came twice\n", reply->key, reply->count);
    }
    const bool last = i + 1 == answered || replies[i + 1].key != reply->key ||
                      replies[i + 1].lease != reply->lease || replies[i + 1].count == UINT64_MAX;
    const uint64_t handled = reply->count - replies[first].count + 1;
    if (last && handled > (uint64_t)sent[reply->key]) {
      ++wrong;
      fprintf(stderr, "key %ld, lease %" PRIu64 ": %" PRIu64 " messages were handled, and %ld were sent\n",
              reply->key, reply->lease, handled, sent[reply->key]);
    }
  }
}

/* Counts an error, shows the first of its kind, and returns whether another attempt may go well. The mutex is
 * held. */
static bool note_error(long key, const struct outcome* outcome) {
  const size_t kinds = sizeof errors / sizeof *errors;
  for (size_t k = 0; k < kinds; ++k) {
    if (errors[k].count == 0) {
      memcpy(errors[k].status, outcome->status, sizeof outcome->status);
      fprintf(stderr, "key %ld: %s: %s\n", key, outcome->status, outcome->reason);
    }
    if (strcmp(errors[k].status, outcome->status) != 0) continue;
    ++errors[k].count;
    break;
  }
  for (size_t k = 0; k < sizeof transient / sizeof *transient; ++k) {
    if (strcmp(transient[k], outcome->status) == 0) return true;
  }
  return false;
}

/* One thread has one ask in flight. */
static void* ask_until_none_are_left(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  while (next < asks) {
    const long key = next++ % keys;
    char body[256];
    const size_t size = write_add((double)key + 0.5, body, sizeof body);
    bool again = true;
    for (long attempt = 0; again && attempt <= retries; ++attempt) {
      if (attempt > 0) {
        pthread_mutex_unlock(&mutex);
        nats_Sleep(attempt < 5 ? 50 << (attempt - 1) : 1000);
        pthread_mutex_lock(&mutex);
      }
      ++attempts;
      ++sent[key];
      pthread_mutex_unlock(&mutex);
      struct outcome outcome = ask(actor, (uint64_t)key, add_type_id(), body, size);
      pthread_mutex_lock(&mutex);
      if (outcome.message) {
        check_reply(key, &outcome);
        natsMsg_Destroy(outcome.message);
        break;
      }
      again = note_error(key, &outcome);
    }
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

int main(int arguments, char** argument) {
  for (int i = 1; i < arguments; i += 2) {
    const char *name = argument[i], *value = i + 1 < arguments ? argument[i + 1] : "";
    if (strcmp(name, "--server") == 0)
      server = value;
    else if (strcmp(name, "--namespace") == 0)
      name_space = value;
    else if (strcmp(name, "--asks") == 0)
      asks = atol(value);
    else if (strcmp(name, "--keys") == 0)
      keys = atol(value);
    else if (strcmp(name, "--in-flight") == 0)
      in_flight = atol(value);
    else if (strcmp(name, "--timeout") == 0)
      timeout_s = atof(value); /* seconds */
    else if (strcmp(name, "--retry") == 0)
      retries = atol(value); /* most attempts beyond the first */
    else
      return fprintf(stderr, "unknown option %s\n", name), 2;
  }
  if (asks < 1 || keys < 1 || in_flight < 1 || retries < 0 || !(timeout_s > 0))
    return fprintf(stderr, "bad number\n"), 2;

  client_start(server, name_space, timeout_s);
  sent = array(keys, sizeof *sent);
  replies = array(asks, sizeof *replies);
  pthread_t* threads = array(in_flight, sizeof *threads);
  for (long i = 0; i < in_flight; ++i) {
    if (pthread_create(&threads[i], NULL, ask_until_none_are_left, NULL) != 0) {
      return fprintf(stderr, "only %ld threads could be started\n", i), 1;
    }
  }
  for (long i = 0; i < in_flight; ++i) pthread_join(threads[i], NULL);
  check_counts();
  printf("asked=%ld answered=%ld wrong=%ld attempts=%ld", asks, answered, wrong, attempts);
  for (size_t k = 0; k < sizeof errors / sizeof *errors && errors[k].count > 0; ++k) {
    printf(" %s=%ld", errors[k].status, errors[k].count);
  }
  printf("\n");
  const bool right = answered == asks && wrong == 0;
  free(threads);
  free(replies);
  free(sent);
  client_end();
  return right ? 0 : 1;
}
