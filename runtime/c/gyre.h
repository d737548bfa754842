/* Gyre's C interface: actors on the GPU, and on CPU threads where there is none, for every language that can
   call C.

   Conventions
   1. Handles. A runtime, a call, a buffer, … is a 64-bit number, never a pointer, and 0 is none. A handle
   says what it is of and which use of its place it means: garbage, a handle of something else, one that was
   released, and one released twice are errors (GYRE_BAD_HANDLE, GYRE_STALE_HANDLE), not crashes. Handles are
   good in their process alone.
   2. Results. What can fail returns a gyre_status, GYRE_OK = 0 or why not; gyre_last_error() then has the
   text, on the same thread: what was being done, what is wrong with the actual numbers, what to do. No
   exception leaves the library, and no signal handler is touched.
   3. Output. Results come through pointers, and what those point at is changed only by success, but for the
   size that GYRE_TOO_SMALL reports. A null pointer is GYRE_INVALID_ARGUMENT, except where "or null" is said.
   4. Structs begin with struct_size, which the caller sets to sizeof, in those it reads results from too: so
   a program runs with a later library, and with an earlier one as long as fields that this one does not know
   are 0. A size that no version has is GYRE_INVALID_ARGUMENT. The gyre_…_init functions fill in the defaults.
   5. Memory. What the caller gives is read, or copied, before the function returns, and stays the caller's.
   What a handle shows (a reply's bytes, a dead letter's text, a schema's views) is the library's, and good
   until that handle is released. Each …_release ends one handle; what was made from it lives on by itself,
   but that a call or a buffer of a released runtime says GYRE_TERMINATED, and its reply, if it is there,
   stays readable.
   6. Text. Strings that go in are UTF-8, ended by a 0, or have a length; those that come out of a handle are
   both. Functions with `buffer`, `capacity` and `size` write at most `capacity` bytes, and set *size to how
   many there are; where they do not fit (buffer may then be null) the result is GYRE_TOO_SMALL and nothing is
   written. Text gets a 0 behind it, which `capacity` must have room for, and *size does not count.
   7. Messages are Cap'n Proto messages as bytes, in one of three encodings (gyre_encoding): any language with
   that library can make and read them. gyre_message_from_json and gyre_message_to_json serve those without.
   8. Threads. Every function may be called from any thread. Runtimes, actors and schemas may be used by many
   at once. A call, a buffer, a list of dead letters is used by one at a time: a second is told GYRE_BUSY. A
   thread that pthread_cancel() cancels in a function is cancelled once that has returned. Threads and the
   process may call functions until their last code has run: in atexit() functions and destructors too. Never
   in a signal handler.
   9. Blocking. Functions that may wait say so, with the longest time; all others never wait for a worker.
   Times are nanoseconds; -1 (GYRE_DEFAULT_TIMEOUT) is the runtime's own timeout, and below that is
   GYRE_INVALID_ARGUMENT.
   10. In a child of fork() runtimes are the parent's: what needs their workers, memory or counts is
   GYRE_FORKED. Release runtimes before the process ends. */
#ifndef GYRE_GYRE_H
#define GYRE_GYRE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GYRE_VERSION "0.1.0"

/** As a timeout: the runtime's own. */
#define GYRE_DEFAULT_TIMEOUT INT64_C(-1)

#if defined(__GNUC__)
#define GYRE_API __attribute__((visibility("default")))
#else
#define GYRE_API
#endif

/* ---- Errors */

typedef int32_t gyre_status;
enum {
  GYRE_OK = 0,
  /* A message was refused: nothing was accepted, nothing was sent. */
  GYRE_RING_FULL = 1,
  GYRE_CALL_TABLE_FULL = 2,
  GYRE_TOO_LARGE = 3,
  GYRE_UNKNOWN_ACTOR = 4,
  GYRE_NESTED_FILL = 5,
  GYRE_DRAINING = 6,
  GYRE_TERMINATED = 7,
  GYRE_ENGINE_FAILED = 8,
  GYRE_ARENA_FULL = 9,
  GYRE_FORKED = 10,
  /* Outcomes of a message that was accepted. */
  GYRE_TIMED_OUT = 20,
  GYRE_MALFORMED = 21,
  GYRE_UNKNOWN_MESSAGE = 22,
  GYRE_REPLY_TOO_LARGE = 23,
  GYRE_HANDLER_FAILED = 24,
  GYRE_CHECK_FAILED = 25,
  GYRE_EXPIRED = 26,
  GYRE_INACTIVE = 27,
  GYRE_NO_SUCH_ACTOR = 28,
  GYRE_ACTOR_TABLE_FULL = 29,
  GYRE_BAD_BUFFER = 30,
  GYRE_CANCELLED = 31,
  GYRE_SCRATCH_FULL = 32,
  /* Of the whole runtime. */
  GYRE_WORKER_STUCK = 40,
  /* Of this interface; the numbers above are gyre::Status's. */
  GYRE_INVALID_ARGUMENT = 1000, /* a null pointer, a number out of range, a struct_size that no version has */
  GYRE_BAD_HANDLE = 1001,       /* no handle of this library's, or one of something else */
  GYRE_STALE_HANDLE = 1002,     /* what it was of has been released */
  GYRE_BUSY = 1003,             /* another thread is using what only one may use at a time */
  GYRE_NOT_READY = 1004,        /* the outcome is not there yet */
  GYRE_TOO_SMALL = 1005,        /* the caller's buffer; *size says what is needed */
  GYRE_BAD_OPTIONS =
      1006, /* options or actors that are wrong on any machine: the text has all that is wrong */
  GYRE_ENGINE_UNAVAILABLE = 1007, /* no such engine here: the text says why, and what to install */
  GYRE_FAILED = 1008,             /* set-up, or an operation on memory, failed: the text says of what */
  GYRE_OUT_OF_MEMORY = 1009,
  GYRE_BAD_SCHEMA =
      1010, /* it does not parse, or has what workers cannot read: the text has file, line, column */
  GYRE_UNKNOWN_TYPE = 1011,
  GYRE_BAD_JSON = 1012 /* it is no JSON, or none of that type */
};

/** The library's version, "0.1.0". Static memory. */
GYRE_API const char* gyre_version(void);
/** The status as this header names it, without GYRE_ and in small letters: "ring_full"; "unknown status" for
   a number that is none. Static memory. */
GYRE_API const char* gyre_status_name(gyre_status status);
/** Why the last function that failed on this thread did; "" if none did. Good until the next call of this
   library on the thread. Never null. */
GYRE_API const char* gyre_last_error(void);

/** Whose number an error has. */
enum { GYRE_SOURCE_GYRE = 0, GYRE_SOURCE_CUDA = 1, GYRE_SOURCE_NVRTC = 2 };
typedef struct gyre_error_entry {
  size_t struct_size;
  const char* name;    /**< "ring_full", "CUDA_ERROR_ILLEGAL_ADDRESS" */
  const char* meaning; /**< in Gyre, not in general */
  const char* check;   /**< what to look at or do next; may be "" */
} gyre_error_entry;
/** What the catalogue (docs/errors.md) says of an error: of a gyre_status below 1000, a CUresult, or an
   nvrtcResult. Static memory. GYRE_INVALID_ARGUMENT where it has no such entry. */
GYRE_API gyre_status gyre_find_error(int32_t source, uint32_t code, gyre_error_entry* entry);

/* ---- Schemas, and messages by them */

/** A text and its name: of a schema or a C++ header. */
typedef struct gyre_text {
  const char* name;   /**< what import or #include says */
  const char* text;   /**< need not end in 0 */
  size_t text_length; /**< bytes, at most 2^26 */
} gyre_text;

/** How a message lies in bytes. */
typedef int32_t gyre_encoding;
enum {
  GYRE_BODY =
      0, /**< one unpacked segment and nothing else, whole words: as workers read it, and as replies come */
  GYRE_STREAM = 1, /**< the standard framing: `capnp encode`, writeMessage */
  GYRE_PACKED = 2  /**< the same, packed */
};

/** Schemas known at run time. */
typedef uint64_t gyre_schema;
/** Parses `count` schemas, at most 4,096. They may import each other (by name; import "/name" means the
   same), Gyre's own (/gyre/messages/buffer.capnp, echo.capnp, vector_add.capnp) and /capnp/c++.capnp. Gyre's
   own messages are in every schema: with count 0 and `files` null they are all it has. Each file needs
   $Cxx.namespace("…"), the C++ namespace of its views; brackets may lie 100 deep. GYRE_BAD_SCHEMA. */
GYRE_API gyre_status gyre_schema_parse(const gyre_text* files, size_t count, gyre_schema* schema);
/** The 64-bit id of a struct by its name, "VectorAddRequest", "Outer.Inner", or "file.capnp:Name" where
   several files have one of that name. GYRE_UNKNOWN_TYPE. */
GYRE_API gyre_status gyre_schema_type_id(gyre_schema schema, const char* name, uint64_t* id);
/** All structs, as JSON: {"<id in decimal>": {"name": …, "fields": {"<name>": <type>}, "union": ["<name>", …]}}, where
   a type is "Int32" and so on as schemas spell it, {"enum": ["<name>", …]}, {"list": <type>} or {"struct": "<id>"}; a
   group is a struct. "union" names the fields of which a message holds one; it is not there where there are none.
   Text (6). */
GYRE_API gyre_status gyre_schema_describe(gyre_schema schema, char* buffer, size_t capacity, size_t* size);
/** View number `index` of the files that were given: the C++ header that actors include, <file.view.hpp> for
    file.capnp. gyre_actors_from_source adds them by itself. *view belongs to the schema.
    GYRE_INVALID_ARGUMENT past the last. */
GYRE_API gyre_status gyre_schema_view(gyre_schema schema, size_t index, gyre_text* view);
GYRE_API gyre_status gyre_schema_release(gyre_schema schema);

/** A message of struct `type_id` from JSON in UTF-8, of at most 2^28 bytes and 64 brackets in brackets, as the
   official JsonCodec has it: fields by name, each once, 64-bit integers as strings (or as numbers, below 2^53),
   Data as a list of numbers, enums by name. What a field does not take is an error, whose text names the field,
   the value and what is expected. Bytes (6). GYRE_UNKNOWN_TYPE, GYRE_BAD_JSON. */
GYRE_API gyre_status gyre_message_from_json(gyre_schema schema, uint64_t type_id, const char* json,
                                            size_t json_length, gyre_encoding encoding, void* buffer,
                                            size_t capacity, size_t* size);
/** The message as JSON, all its fields but null pointers; 64-bit integers, NaN and infinities as strings.
   Pointers are followed as far as a worker follows them by default: 64 times the message, and 65,536 words at
   least, an element without a size counting as one. Text (6). GYRE_UNKNOWN_TYPE, GYRE_MALFORMED. */
GYRE_API gyre_status gyre_message_to_json(gyre_schema schema, uint64_t type_id, const void* bytes,
                                          size_t bytes_size, gyre_encoding encoding, char* buffer,
                                          size_t capacity, size_t* size);
/** A body (a reply's, a dead letter's) in another encoding. Bytes (6). */
GYRE_API gyre_status gyre_message_encode(const void* body, size_t body_size, gyre_encoding encoding,
                                         void* buffer, size_t capacity, size_t* size);

/* ---- Actors */

/** A set of actor types. */
typedef uint64_t gyre_actors;
typedef struct gyre_source {
  size_t struct_size;
  const char* text;         /**< C++: what the actors' header would hold */
  size_t text_length;       /**< bytes, at most 2^26 */
  const char* const* types; /**< the actors' qualified names, "my::Counter" */
  size_t type_count;        /**< at most 4,096 */
  const gyre_text*
      headers; /**< what the text includes besides Gyre's device headers and the schema's views; or null */
  size_t header_count; /**< at most 4,096 */
  gyre_schema schema;  /**< of the actors' messages; 0: Gyre's own are all they use */
} gyre_source;
/** Echo and VectorAdd, which come with Gyre. They run on every engine. */
GYRE_API gyre_status gyre_actors_builtin(gyre_actors* actors);
/** Actors given as source text, which is compiled when they are launched, for the CUDA engine alone. The text
   is not looked at before. GYRE_BAD_OPTIONS: what is wrong with names. GYRE_BAD_SCHEMA: with the schema. */
GYRE_API gyre_status gyre_actors_from_source(const gyre_source* source, gyre_actors* actors);
/** Actors from the shared object `path`, for every engine: one that has GYRE_EXPORT_ACTORS(name, …) of
   <gyre/runtime/c/export_actors.hpp>, or that `gyre validate --build-library` made (whose name is "actors"), with the
   same Gyre. `name` null: the only actors that it exports. It stays loaded until the process ends. GYRE_FAILED. */
GYRE_API gyre_status gyre_actors_load(const char* path, const char* name, gyre_actors* actors);
/** The schema that the actors carry: of their messages and all that these lead to, beside Gyre's own. No text of it is
   needed then; it has no views. GYRE_BAD_SCHEMA: they carry none, as source text does. */
GYRE_API gyre_status gyre_actors_schema(gyre_actors actors, gyre_schema* schema);
/** Whether messages made by `schema` are what the actors read: GYRE_BAD_SCHEMA names the first field of a struct, or
   enumerant, that is another in the schema that they carry. Fields that only one of both has are a revision's, and
   good. GYRE_OK of actors that carry none. */
GYRE_API gyre_status gyre_actors_check_schema(gyre_actors actors, gyre_schema schema);
GYRE_API gyre_status gyre_actors_release(gyre_actors actors);

/* ---- Runtimes */

typedef int32_t gyre_engine;
enum { GYRE_ENGINE_AUTO = 0, GYRE_ENGINE_CUDA = 1, GYRE_ENGINE_CPU = 2 };
typedef int32_t gyre_transport;
enum {
  GYRE_TRANSPORT_AUTO = 0,
  GYRE_TRANSPORT_BAR = 1,
  GYRE_TRANSPORT_PINNED = 2,
  GYRE_TRANSPORT_HEAP = 3,
  GYRE_TRANSPORT_UNIFIED = 4
};
enum { GYRE_WAIT_POLITE = 0, GYRE_WAIT_SPIN = 1 };

/** See gyre::Options (runtime/options.hpp), and --help of the tools: the names are the same. */
typedef struct gyre_options {
  size_t struct_size;
  gyre_engine engine;       /**< auto: CUDA where a device exists, else the CPU */
  int32_t device;           /**< CUDA device number */
  gyre_transport transport; /**< auto: on CUDA bar where it works, else pinned; on the CPU heap */
  int32_t wait;             /**< how threads wait: politely, or spinning at the cost of a core each */
  uint32_t workers;         /**< blocks on CUDA, threads on the CPU */
  uint32_t block;           /**< CUDA threads a block, a multiple of 32 */
  uint32_t blocks;          /**< with grid_scoped on CUDA: of the grid; 0: one a multiprocessor */
  uint32_t slots;           /**< a ring; a power of two */
  uint32_t slot_bytes;      /**< a multiple of 64 */
  uint32_t max_reply_bytes; /**< room that an ask makes for its reply; 0: what fits a slot, or as its request
                               has */
  uint32_t actors_per_worker; /**< with state, of each type */
  uint32_t max_buffers;       /**< at once, at most 65,535 */
  int32_t grid_scoped;        /**< not 0: one worker is the whole grid on CUDA */
  int32_t verbose;            /**< not 0: launch parameters go to stderr */
  int32_t cache;              /**< 0: compiled actors are not kept on disk, nor looked for */
  uint32_t reserved;          /**< 0 */
  int64_t timeout_ms;         /**< of an ask, and for room in a full ring; milliseconds */
  uint64_t arena_bytes;       /**< for messages larger than a slot; a multiple of 4096 */
  uint64_t region_budget;     /**< bytes; a larger region is refused */
  const char* keep_program;   /**< a folder to write the compiled actors to; or null */
  const int32_t* pin_workers; /**< CPU engine: processors for its workers; or null */
  size_t pin_worker_count;    /**< at most 65,536 */
} gyre_options;
/** Sets struct_size to `struct_size`, sizeof(gyre_options) of the caller, and all else to the defaults. */
GYRE_API gyre_status gyre_options_init(gyre_options* options, size_t struct_size);

/** Launched workers. */
typedef uint64_t gyre_runtime;
/** Launches workers for `actors` (0: the built-in ones), with `options` or null. Blocks: a CUDA launch takes
   some 100 ms, and compiling a second or more; at most the launch's own deadlines. GYRE_BAD_OPTIONS,
    GYRE_ENGINE_UNAVAILABLE, GYRE_FAILED. `actors` may be released, or launched again. */
GYRE_API gyre_status gyre_launch(gyre_actors actors, const gyre_options* options, gyre_runtime* runtime);

typedef int32_t gyre_lifecycle;
enum {
  GYRE_LAUNCHED = 0,
  GYRE_ACTIVE = 1,
  GYRE_LIFECYCLE_INACTIVE = 2,
  GYRE_LIFECYCLE_DRAINING = 3,
  GYRE_LIFECYCLE_TERMINATED = 4,
  GYRE_LIFECYCLE_FAILED = 5
};
typedef struct gyre_info {
  size_t struct_size;
  gyre_engine engine;
  gyre_transport transport;
  gyre_lifecycle state;
  uint32_t workers;
  uint32_t slot_body_bytes; /**< the largest body that fits a slot */
  int32_t from_cache;       /**< not 0: the actors were found compiled, on disk */
  uint64_t max_body_bytes;  /**< the largest body that can be sent at all */
  uint64_t region_bytes;
  double uptime_s;
  double compile_ms; /**< actors' source to machine code; 0 where they are compiled in */
  double launch_ms;  /**< all else of gyre_launch */
} gyre_info;
GYRE_API gyre_status gyre_runtime_info(gyre_runtime runtime, gyre_info* info);

enum {
  GYRE_TEXT_DEVICE_NAME = 0,
  GYRE_TEXT_TRANSPORT_REASON = 1, /**< where auto did not choose BAR on CUDA: why; else "" */
  GYRE_TEXT_FAILURE = 2,          /**< why the engine failed; "" if it did not */
  GYRE_TEXT_STATS = 3             /**< gyre_stats as a JSON object, its fields by their names */
};
/** What there is to say of a runtime. Text (6). */
GYRE_API gyre_status gyre_runtime_text(gyre_runtime runtime, int32_t which, char* buffer, size_t capacity,
                                       size_t* size);

/** One message type that an actor takes. */
typedef struct gyre_handler {
  size_t struct_size;
  const char* actor;        /**< the actor type's name; belongs to the runtime */
  const char* request_name; /**< in its schema; "" where that is not known; belongs to the runtime */
  uint64_t request;         /**< the request's type id */
  uint64_t response;        /**< 0: it takes tells only */
} gyre_handler;
/** Handler number `index`. GYRE_INVALID_ARGUMENT past the last. */
GYRE_API gyre_status gyre_runtime_handler(gyre_runtime runtime, size_t index, gyre_handler* handler);

/** `active` 0: from now on each message is answered GYRE_INACTIVE instead of being handled; else they are
   handled again. Blocks until every worker does so, at most the timeout: then GYRE_WORKER_STUCK. */
GYRE_API gyre_status gyre_set_active(gyre_runtime runtime, int32_t active, int64_t timeout_ns);
/** Refuses new messages, and blocks until all accepted ones are done, at most the timeout: then
   GYRE_WORKER_STUCK; call it again. */
GYRE_API gyre_status gyre_drain(gyre_runtime runtime, int64_t timeout_ns);

/** Where the messages are; exact once the runtime has terminated. */
typedef struct gyre_stats {
  size_t struct_size;
  uint64_t asks_accepted, asks_answered, asks_error_replies, asks_timed_out, asks_dead_letters,
      asks_cancelled;
  uint64_t asks_late_replies; /**< to asks that had another outcome: outside the sum */
  uint64_t asks_in_flight;
  uint64_t tells_accepted, tells_processed, tells_dead_letters;
  uint64_t tells_in_flight;
  uint64_t dead_letters_dropped; /**< that the bounded log had no room for */
  uint64_t corrupt_slots;        /**< 0 unless memory was overwritten */
  /** Memory of buffers by gyre_memory (device, pinned, unified), in use and freed: the latter until
   * termination. */
  uint64_t buffers_in_use[3], buffer_bytes_in_use[3], buffers_freed[3], buffer_bytes_freed[3];
  /** Memory that the runtime has taken: rings, counters and arena; device memory behind BAR; actors' tables;
   * compiled actors as loaded on the device; the buffers' table. */
  uint64_t region_bytes, bar_bytes, actor_bytes, module_bytes, buffer_table_bytes;
  uint64_t device_bytes, device_free_bytes; /**< of the device, at most 100 ms ago; 0: not known, or no GPU */
  /** Of the dead letters: those that a worker may or may not have handled, after a fault or where
      a worker or a thread was given up (gyre_termination). 0 wherever all ended well. */
  uint64_t asks_inferred, tells_inferred;
} gyre_stats;
GYRE_API gyre_status gyre_runtime_stats(gyre_runtime runtime, gyre_stats* stats);

typedef struct gyre_termination {
  size_t struct_size;
  int32_t worker_stuck; /**< not 0: a worker did not stop in time; its memory was left allocated */
  int32_t balanced;     /**< not 0: every message has its outcome, and no slot was corrupt */
  double uptime_s;
  double terminate_ms;
  int32_t sender_stuck; /**< not 0: a thread did not finish sending in time */
  int32_t reader_stuck; /**< not 0: a thread did not finish taking replies in time */
  int32_t unfinished;   /**< not 0: another call was still ending the workers when the time was up */
  /** Not 0: a thread did not finish allocating or freeing a buffer in time; memory of freed buffers stays
   * allocated until the runtime's last holder is gone. */
  int32_t buffers_stuck;
} gyre_termination;
/** Lets each worker finish the message in hand and ends them; the rest become dead letters, and every call in
   flight has its outcome. `report` or null. Blocks, at most the timeout, and 250 ms at least where that is
   shorter, whatever other threads do. Later calls report what the first did. Stats and dead letters can still
   be read. */
GYRE_API gyre_status gyre_terminate(gyre_runtime runtime, int64_t timeout_ns, gyre_termination* report);
/** gyre_terminate with the runtime's timeout, unless it was called, and gives all back. Memory that calls,
   replies and buffers refer to is freed with the last of them. */
GYRE_API gyre_status gyre_runtime_release(gyre_runtime runtime);

/* ---- Messages */

enum {
  GYRE_WHEN_FULL_WAIT = 0,  /**< where there is no room: wait, at most the timeout */
  GYRE_WHEN_FULL_REFUSE = 1 /**< fail at once: GYRE_RING_FULL, GYRE_ARENA_FULL, GYRE_CALL_TABLE_FULL */
};
typedef struct gyre_send_options {
  size_t struct_size;
  gyre_encoding encoding;
  int32_t when_full;
  int64_t timeout_ns;       /**< -1: the runtime's */
  int64_t expires_after_ns; /**< of a tell: later than this it is not handled, but a dead letter; 0: never */
  uint32_t max_reply_bytes; /**< of an ask: room for a reply larger than a slot; 0: the actor's, or the runtime's */
  uint32_t reserved;        /**< 0 */
} gyre_send_options;
/** Sets struct_size to `struct_size`, and all else to the defaults: GYRE_BODY, wait, the runtime's timeout.
 */
GYRE_API gyre_status gyre_send_options_init(gyre_send_options* options, size_t struct_size);

/** An ask and its outcome. It holds a slot of the runtime's call table until it is released. */
typedef uint64_t gyre_call;
/** Sends a request of type `request`, a 64-bit type id, to the actor of type `actor`
   ("gyre::actors::VectorAdd") with that key; `options` or null. Blocks only while there is no room, at most
   the timeout, and not at all with GYRE_WHEN_FULL_REFUSE. Without a call to release: what was refused, by the
   status's name; GYRE_UNKNOWN_ACTOR, GYRE_UNKNOWN_MESSAGE, GYRE_MALFORMED (bytes that are no message),
   GYRE_TOO_LARGE, and those of a full runtime. */
GYRE_API gyre_status gyre_ask(gyre_runtime runtime, const char* actor, uint64_t key, uint64_t request,
                              const void* bytes, size_t bytes_size, const gyre_send_options* options,
                              gyre_call* call);
/** gyre_ask, and gyre_call_wait to the end: returns the outcome. With GYRE_OK *call holds the reply, to be
   released; else there is none. Blocks at most the timeout, once for room and once for the reply. */
GYRE_API gyre_status gyre_ask_and_wait(gyre_runtime runtime, const char* actor, uint64_t key,
                                       uint64_t request, const void* bytes, size_t bytes_size,
                                       const gyre_send_options* options, gyre_call* call);
/** Sets *done to 1 where the outcome is there, else to 0. Completes what has arrived, for others too. */
GYRE_API gyre_status gyre_call_poll(gyre_call call, int32_t* done);
/** Blocks until the outcome is there, whatever it is, or until the timeout: GYRE_NOT_READY. -1: as long as
   the ask's own timeout lets it. The thread polls for others meanwhile. */
GYRE_API gyre_status gyre_call_wait(gyre_call call, int64_t timeout_ns);
/** The outcome: GYRE_OK and the reply's body, 8-aligned, good until the call is released; or why there is
   none. GYRE_NOT_READY before it is there. As often as wanted. */
GYRE_API gyre_status gyre_call_reply(gyre_call call, const void** body, size_t* body_size);
/** Gives the ask up, from any thread, also while another waits for it: its outcome is GYRE_CANCELLED, unless
   it has one. *cancelled, or null: 1 where this decided, else 0. A worker may handle the request all the
   same. */
GYRE_API gyre_status gyre_call_cancel(gyre_call call, int32_t* cancelled);
/** Gives the call back, at any time: an outcome that was not there yet is counted, and dropped. */
GYRE_API gyre_status gyre_call_release(gyre_call call);

/** Outcomes for poll loops. */
typedef uint64_t gyre_queue;
GYRE_API gyre_status gyre_queue_create(gyre_queue* queue);
/** An eventfd for poll() and epoll: readable while gyre_queue_take has something to give, and perhaps once
   more. The queue's own: do not read or close it. */
GYRE_API gyre_status gyre_queue_fd(gyre_queue queue, int32_t* fd);
/** The call's outcome, whatever it is, comes by gyre_queue_take. Until then gyre_call_poll says it is not
   there, and gyre_call_reply GYRE_NOT_READY; waiting for it, and watching it again, is GYRE_BUSY. From the
   first watch on a thread of the runtime's polls for outcomes. GYRE_INVALID_ARGUMENT of a call whose outcome
   was taken already. */
GYRE_API gyre_status gyre_queue_watch(gyre_queue queue, gyre_call call, uint64_t tag);
/** The call that has been done longest, with its tag; gyre_call_reply tells its outcome. Calls that were
   released meanwhile do not come. GYRE_NOT_READY where there is none. One thread at a time: a second is told
   GYRE_BUSY. */
GYRE_API gyre_status gyre_queue_take(gyre_queue queue, gyre_call* call, uint64_t* tag);
/** Calls in it stay calls, whose outcome never comes; release them. */
GYRE_API gyre_status gyre_queue_release(gyre_queue queue);

/** Sends a message that wants no reply; `options` or null. GYRE_OK: accepted, it will be processed or become
   a dead letter. Blocks and fails as gyre_ask. */
GYRE_API gyre_status gyre_tell(gyre_runtime runtime, const char* actor, uint64_t key, uint64_t message,
                               const void* bytes, size_t bytes_size, const gyre_send_options* options);

/** Creates an actor if it is not there / ends one, and blocks for the answer, at most the timeout.
    GYRE_ACTOR_TABLE_FULL, GYRE_CHECK_FAILED and so on: what its on_start or on_stop said. */
GYRE_API gyre_status gyre_start_actor(gyre_runtime runtime, const char* actor, uint64_t key,
                                      int64_t timeout_ns);
GYRE_API gyre_status gyre_stop_actor(gyre_runtime runtime, const char* actor, uint64_t key,
                                     int64_t timeout_ns);

/* ---- Buffers */

typedef int32_t gyre_memory;
enum {
  GYRE_MEMORY_DEVICE = 0, /**< the engine's own: fastest for workers; the host copies in and out */
  GYRE_MEMORY_PINNED = 1, /**< the host's, page-locked: both read and write it, workers over the bus */
  GYRE_MEMORY_UNIFIED = 2 /**< managed by the driver, where host and workers may use it at once */
};
typedef int32_t gyre_element;
enum {
  GYRE_INT8 = 1,
  GYRE_UINT8 = 2,
  GYRE_INT16 = 3,
  GYRE_UINT16 = 4,
  GYRE_INT32 = 5,
  GYRE_UINT32 = 6,
  GYRE_INT64 = 7,
  GYRE_UINT64 = 8,
  GYRE_FLOAT32 = 9,
  GYRE_FLOAT64 = 10
};
/** A typed block of memory that messages name by a handle. */
typedef uint64_t gyre_buffer;
/** `elements` zeroed elements, at least one. Blocks for as long as zeroing takes. GYRE_FAILED: no room, or no
   such memory here, with the numbers. */
GYRE_API gyre_status gyre_buffer_create(gyre_runtime runtime, gyre_memory memory, gyre_element element,
                                        uint64_t elements, gyre_buffer* buffer);
typedef struct gyre_buffer_info {
  size_t struct_size;
  gyre_memory memory;
  gyre_element element;
  uint64_t elements;
  uint64_t bytes;
} gyre_buffer_info;
GYRE_API gyre_status gyre_buffer_get_info(gyre_buffer buffer, gyre_buffer_info* info);
/** A BufferHandle (/gyre/messages/buffer.capnp), field by field; these 24 bytes are that struct's data
   section in a message. */
typedef struct gyre_buffer_handle {
  uint32_t index;
  uint32_t generation;
  uint32_t runtime;
  uint16_t element;
  uint16_t reserved; /**< 0 */
  uint64_t length;   /**< elements */
} gyre_buffer_handle;
/** What a message says to name the buffer's first `length` elements, 0: all; good until the buffer is
   released. What the host wrote before it is there when the message is handled. */
GYRE_API gyre_status gyre_buffer_get_handle(gyre_buffer buffer, uint64_t length, gyre_buffer_handle* handle);
/** Copies bytes in, from byte `offset` on, and returns when they are there / copies out: what a handler wrote
   is there once its reply is. Any kind of memory; does not wait for workers. GYRE_FAILED: past the end. */
GYRE_API gyre_status gyre_buffer_write(gyre_buffer buffer, uint64_t offset, const void* bytes, uint64_t size);
GYRE_API gyre_status gyre_buffer_read(gyre_buffer buffer, uint64_t offset, void* bytes, uint64_t size);
/** The elements in place, until the buffer is released. Of pinned memory: call it again after each reply, for
   what the handler wrote. Of unified memory: blocks, at most the timeout, until every worker is past what was
   sent before; good until a message with the buffer's handle is sent. GYRE_FAILED for device memory. */
GYRE_API gyre_status gyre_buffer_view(gyre_buffer buffer, int64_t timeout_ns, void** elements);
/** Frees it, at any time: its handles are stale then, and messages that use it already are not disturbed. */
GYRE_API gyre_status gyre_buffer_release(gyre_buffer buffer);

/* ---- Dead letters: messages that were accepted and not handled */

typedef uint64_t gyre_dead_letters;
/** Takes those since the last call, oldest first; 1,024 are kept at most, those of failed tells too. *count:
   how many. */
GYRE_API gyre_status gyre_take_dead_letters(gyre_runtime runtime, gyre_dead_letters* letters, size_t* count);
typedef struct gyre_dead_letter {
  size_t struct_size;
  gyre_status reason;
  int32_t is_ask;      /**< not 0: an ask, else a tell */
  uint64_t key;        /**< of the actor */
  const char* actor;   /**< the actor type's name; "" where it is not known */
  const char* message; /**< the message's name in its schema; "" where that is not known */
  const char* text;    /**< one line with all of it */
  const void* body;    /**< the message's body; null where it was not kept */
  size_t body_size;
} gyre_dead_letter;
/** Letter number `index`; what it points at belongs to the list. GYRE_INVALID_ARGUMENT past the last. */
GYRE_API gyre_status gyre_dead_letter_at(gyre_dead_letters letters, size_t index, gyre_dead_letter* letter);
GYRE_API gyre_status gyre_dead_letters_release(gyre_dead_letters letters);

#ifdef __cplusplus
}
#endif
#endif /* GYRE_GYRE_H */
