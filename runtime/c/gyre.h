/* Gyre's C interface, for every language that can call C: actors on a GPU, or on CPU threads.

   Conventions
   1. Handles. A runtime, a call, a buffer, … is a 64-bit number, never a pointer; 0 is no handle. A handle
   encodes its kind and a generation, so that misuse is an error and not a crash: garbage and a handle of
   another kind are GYRE_BAD_HANDLE, a handle that was released is GYRE_STALE_HANDLE. Handles are valid only
   in their own process.
   2. Results. A function that can fail returns a gyre_status, GYRE_OK = 0 or the reason. gyre_last_error()
   then returns the text on the calling thread: what was being done, what is wrong with the actual numbers,
   what to do. No exception leaves the library, and it changes no signal handler.
   3. Output. Results come through pointers. Only a successful function writes there, except for the size
   that GYRE_TOO_SMALL reports. A null pointer is GYRE_INVALID_ARGUMENT unless the description says "or
   null".
   4. Structs begin with struct_size, which the caller sets to sizeof, also in structs that receive results.
   A program therefore runs with a later library, and with an earlier one as long as fields unknown to the
   library are 0. A size that no version has is GYRE_INVALID_ARGUMENT. The gyre_…_init functions fill in the
   defaults.
   5. Memory. A function reads or copies what the caller passes before it returns, unless its name ends with
   _async; the caller keeps ownership. Memory that a handle shows (a reply's bytes, a dead letter's text, a
   schema's views) belongs to the library and is valid until the handle is released. Each …_release function
   ends one handle; objects made from the handle stay valid. After a runtime is released its calls and buffers
   return GYRE_TERMINATED, and a reply that had arrived stays readable.
   6. Text. Input strings are UTF-8, and end with a 0 or have a length. Strings from a handle end with a 0
   and have a length. Functions with `buffer`, `capacity` and `size` set *size to the number of bytes, and
   write them if they fit into `capacity` bytes. Otherwise they write nothing and return GYRE_TOO_SMALL;
   `buffer` may be null then. Text is followed by a 0, which `capacity` must include and *size does not.
   7. Messages are Cap'n Proto messages as bytes, in one of three encodings (gyre_encoding). Any language
   with a Cap'n Proto library can make and read them; gyre_message_from_json and gyre_message_to_json serve
   languages without one.
   8. Threads. Any thread may call any function. Several threads may use a runtime, actors or a schema at
   once. One thread at a time may use a call, a buffer or a list of dead letters; a second thread gets
   GYRE_BUSY. A thread that pthread_cancel() cancels within a function is cancelled after the function has
   returned. Functions may be called until the last code of a thread or process has run, including atexit()
   functions and destructors. Never call a function in a signal handler.
   9. Blocking. Functions that may wait for a worker say so, with the longest time; no other function waits
   for one. Times are in nanoseconds. -1 (GYRE_DEFAULT_TIMEOUT) means the runtime's timeout; a smaller
   number is GYRE_INVALID_ARGUMENT.
   10. Fork. In a child of fork() runtimes belong to the parent: functions that need their workers, memory
   or counts return GYRE_FORKED. Release runtimes before the process ends. */
#ifndef GYRE_GYRE_H
#define GYRE_GYRE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GYRE_VERSION "0.1.0"

/** Selects the runtime's timeout. */
#define GYRE_DEFAULT_TIMEOUT INT64_C(-1)

#if defined(__GNUC__)
#define GYRE_API __attribute__((visibility("default")))
#else
#define GYRE_API
#endif

/* ---- Errors */

/** Says whether a function succeeded, and why not. docs/reference/errors.md lists every status. */
typedef int32_t gyre_status;
enum {
  GYRE_OK = 0,
  /* A message was refused: nothing was sent. */
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
  /* Outcomes of an accepted message. */
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
  GYRE_BUFFER_LOST = 33,
  GYRE_MAILBOX_FULL = 34,
  GYRE_OPEN_CALLS_FULL = 35,
  GYRE_ACTOR_STOPPED = 36,
  GYRE_TIMERS_FULL = 37,
  GYRE_SUBSCRIPTIONS_FULL = 38,
  GYRE_BODY_POOL_FULL = 39,
  /* States of the whole runtime. */
  GYRE_WORKER_STUCK = 40,
  /* Errors of this interface. The numbers above are those of gyre::Status. */
  GYRE_INVALID_ARGUMENT = 1000, /* a null pointer, a number out of range, a struct_size that no version has */
  GYRE_BAD_HANDLE = 1001,       /* not a handle of this library, or a handle of another kind */
  GYRE_STALE_HANDLE = 1002,     /* the handle was released */
  GYRE_BUSY = 1003,             /* another thread is using an object that one thread may use at a time */
  GYRE_NOT_READY = 1004,        /* there is no outcome yet */
  GYRE_TOO_SMALL = 1005,        /* the caller's buffer is too small; *size says what is needed */
  /* Options or actors are wrong on any machine; the text lists everything that is wrong. */
  GYRE_BAD_OPTIONS = 1006,
  /* This machine has no such engine; the text says why, and what to install. */
  GYRE_ENGINE_UNAVAILABLE = 1007,
  GYRE_FAILED = 1008, /* set-up or an operation on memory failed; the text says why */
  GYRE_OUT_OF_MEMORY = 1009,
  /* The schema does not parse, or workers cannot read it; the text has file, line and column. */
  GYRE_BAD_SCHEMA = 1010,
  GYRE_UNKNOWN_TYPE = 1011, /* the schema has no such type */
  GYRE_BAD_JSON = 1012      /* the text is no JSON, or does not fit the type */
};

/** Returns the library's version, for example "0.1.0". Static memory. */
GYRE_API const char* gyre_version(void);
/** Returns the status's name in this header, without GYRE_ and in lower case, for example "ring_full";
   "unknown status" for an unknown number. Static memory. */
GYRE_API const char* gyre_status_name(gyre_status status);
/** Returns the text of this thread's last failure; "" if no function failed. Valid until the thread's next
   call of this library. Never null. */
GYRE_API const char* gyre_last_error(void);

/** Selects the list of error numbers: Gyre's, the CUDA driver's or NVRTC's. */
enum { GYRE_SOURCE_GYRE = 0, GYRE_SOURCE_CUDA = 1, GYRE_SOURCE_NVRTC = 2 };
typedef struct gyre_error_entry {
  size_t struct_size;
  const char* name;    /**< "ring_full", "CUDA_ERROR_ILLEGAL_ADDRESS" */
  const char* meaning; /**< what the error means in Gyre */
  const char* check;   /**< what to check or do next; may be "" */
} gyre_error_entry;
/** Finds an error in the catalogue (docs/reference/errors.md). `code` is a gyre_status below 1000, a
   CUresult, or an nvrtcResult. The texts lie in static memory. Fails with GYRE_INVALID_ARGUMENT if there is
   no entry. */
GYRE_API gyre_status gyre_find_error(int32_t source, uint32_t code, gyre_error_entry* entry);

/* ---- Schemas, and messages of their types */

/** Holds the text of a schema or a C++ header, and its name. */
typedef struct gyre_text {
  const char* name;   /**< the name that import or #include uses */
  const char* text;   /**< need not end with a 0 */
  size_t text_length; /**< bytes, at most 2^26 */
} gyre_text;

/** Selects how a message is laid out in bytes. */
typedef int32_t gyre_encoding;
enum {
  GYRE_BODY = 0,   /**< one unpacked segment of whole words without a frame, as workers read and reply */
  GYRE_STREAM = 1, /**< Cap'n Proto's standard framing: `capnp encode`, writeMessage */
  GYRE_PACKED = 2  /**< Cap'n Proto's packed framing: `capnp encode --packed`, writePackedMessage */
};

/** Names a set of schemas known at run time. */
typedef uint64_t gyre_schema;
/** Parses `count` schemas, at most 4,096. They may import each other as "name" or "/name", Gyre's schemas
   (/gyre/messages/buffer.capnp, echo.capnp, vector_add.capnp) and /capnp/c++.capnp. Every schema contains
   Gyre's own messages; with count 0 and `files` null it contains nothing else. Each file needs
   $Cxx.namespace("…"), the C++ namespace of its views. Brackets may be nested 100 deep. Fails with
   GYRE_BAD_SCHEMA. */
GYRE_API gyre_status gyre_schema_parse(const gyre_text* files, size_t count, gyre_schema* schema);
/** Finds the 64-bit id of a struct by its name, for example "VectorAddRequest" or "Outer.Inner". Use
   "file.capnp:Name" if several files have a struct of the name. Fails with GYRE_UNKNOWN_TYPE. */
GYRE_API gyre_status gyre_schema_type_id(gyre_schema schema, const char* name, uint64_t* id);
/** Describes all structs as JSON: {"<id in decimal>": {"name": …, "fields": {"<name>": <type>}, "union":
   ["<name>", …]}}, where a type is "Int32" and so on as schemas spell it, {"enum": ["<name>", …]}, {"list":
   <type>} or {"struct": "<id>"}; a group is a struct. "union" names the fields of a union, of which a
   message holds one; it is absent if the struct has no union. Each struct also has a "layout", which says
   where its fields lie in a message: {"words": W, "pointers": P, "tag": T, "group": true, "fields":
   {"<name>": {"at": A, "default": D, "member": M}}}.
     W, P   words of data and pointers of the struct; a group has those of the struct around it
     T      place of the union's tag, in units of 16 bits
     A      place of the field: in units of the field's size; of a pointer, in pointers
     D      a number's bits, as a string, that the value is xor'ed with; true: a pointer that has a default
     M      the tag's value while the union holds the field
   An entry is absent where it does not apply: "tag" without a union, "group" but for a group. Text (6). */
GYRE_API gyre_status gyre_schema_describe(gyre_schema schema, char* buffer, size_t capacity, size_t* size);
/** Returns the view of file number `index` of the parsed files: the C++ header that actors include,
   <file.view.hpp> for file.capnp. gyre_actors_from_source adds the views automatically. *view belongs to
   the schema. Fails with GYRE_INVALID_ARGUMENT past the last file. */
GYRE_API gyre_status gyre_schema_view(gyre_schema schema, size_t index, gyre_text* view);
/** Releases the schema. */
GYRE_API gyre_status gyre_schema_release(gyre_schema schema);

/** Makes a message of struct `type_id` from JSON in UTF-8, of at most 2^28 bytes and 64 nested brackets.
   The JSON is that of the official JsonCodec: fields by name, each once; 64-bit integers as strings, or as
   numbers below 2^53; Data as a list of numbers; enums by name. Bytes (6). Fails with GYRE_UNKNOWN_TYPE or
   GYRE_BAD_JSON; the text names the field, the value and what is expected. */
GYRE_API gyre_status gyre_message_from_json(gyre_schema schema, uint64_t type_id, const char* json,
                                            size_t json_length, gyre_encoding encoding, void* buffer,
                                            size_t capacity, size_t* size);
/** Writes a message as JSON: all fields except null pointers; 64-bit integers, NaN and infinities as
   strings. Pointers are followed as far as a worker follows them by default: to 64 times the size of the
   message, at least 65,536 words; an element without a size counts as one word. Text (6). Fails with
   GYRE_UNKNOWN_TYPE or GYRE_MALFORMED. */
GYRE_API gyre_status gyre_message_to_json(gyre_schema schema, uint64_t type_id, const void* bytes,
                                          size_t bytes_size, gyre_encoding encoding, char* buffer,
                                          size_t capacity, size_t* size);
/** Encodes a body, for example a reply's or a dead letter's, in another encoding. Bytes (6). */
GYRE_API gyre_status gyre_message_encode(const void* body, size_t body_size, gyre_encoding encoding,
                                         void* buffer, size_t capacity, size_t* size);

/* ---- Actors */

/** Names a set of actor types. */
typedef uint64_t gyre_actors;
/** Describes actors given as C++ source text. */
typedef struct gyre_source {
  size_t struct_size;
  const char* text;         /**< C++ text of a header that defines the actors */
  size_t text_length;       /**< bytes, at most 2^26 */
  const char* const* types; /**< the actors' qualified names, for example "my::Counter" */
  size_t type_count;        /**< at most 4,096 */
  /** Headers that the text includes, except Gyre's device headers and the schema's views; or null. */
  const gyre_text* headers;
  size_t header_count; /**< at most 4,096 */
  gyre_schema schema;  /**< schema of the actors' messages; 0: they use only Gyre's own messages */
} gyre_source;
/** Makes the set of Echo and VectorAdd, which come with Gyre. They run on every engine. */
GYRE_API gyre_status gyre_actors_builtin(gyre_actors* actors);
/** Makes a set of actors from source text, for the CUDA engine only. The text is compiled at launch, and
   not checked before. Fails with GYRE_BAD_OPTIONS if a name is wrong, and with GYRE_BAD_SCHEMA if the
   schema is. */
GYRE_API gyre_status gyre_actors_from_source(const gyre_source* source, gyre_actors* actors);
/** Loads actors from the shared object `path`, for every engine. The object must have been built with this
   Gyre, either with GYRE_EXPORT_ACTORS(name, …) of <gyre/runtime/c/export_actors.hpp>, or by `gyre validate
   --build-library`, which uses the name "actors". `name` null: the only actors that the object exports. The
   object stays loaded until the process ends. Fails with GYRE_FAILED. */
GYRE_API gyre_status gyre_actors_load(const char* path, const char* name, gyre_actors* actors);
/** Makes a schema of the types that the actors carry: their messages, and all types reachable from these,
   besides Gyre's own. It needs no schema text and has no views. Fails with GYRE_BAD_SCHEMA if the actors
   carry no types, as actors from source text do. */
GYRE_API gyre_status gyre_actors_schema(gyre_actors actors, gyre_schema* schema);
/** Checks whether the actors can read messages made with `schema`. Fails with GYRE_BAD_SCHEMA if a field or
   enumerant differs from the actors' types; the text names the first. A field that only one side has is
   compatible: it belongs to another revision. Returns GYRE_OK if the actors carry no types. */
GYRE_API gyre_status gyre_actors_check_schema(gyre_actors actors, gyre_schema schema);
/** Releases the actors. */
GYRE_API gyre_status gyre_actors_release(gyre_actors actors);

/* ---- Runtimes */

/** Selects where actors run. */
typedef int32_t gyre_engine;
enum { GYRE_ENGINE_AUTO = 0, GYRE_ENGINE_CUDA = 1, GYRE_ENGINE_CPU = 2 };
/** Selects the memory that messages travel through. */
typedef int32_t gyre_transport;
enum {
  GYRE_TRANSPORT_AUTO = 0,
  GYRE_TRANSPORT_BAR = 1,
  GYRE_TRANSPORT_PINNED = 2,
  GYRE_TRANSPORT_HEAP = 3,
  GYRE_TRANSPORT_UNIFIED = 4
};
/** Selects how threads wait; see gyre::WaitPolicy. */
enum { GYRE_WAIT_POLITE = 0, GYRE_WAIT_SPIN = 1 };

/** Selects where the CUDA engine runs; see gyre::Isolation. */
enum { GYRE_ISOLATION_PROCESS = 0, GYRE_ISOLATION_IN_PROCESS = 1 };

/** The value of gyre_options.multiprocessors for all that the device has. */
#define GYRE_ALL_MULTIPROCESSORS UINT32_MAX
/** Selects the CUDA context of an engine in process; see gyre::CudaContext. */
enum { GYRE_CONTEXT_OWN = 0, GYRE_CONTEXT_PRIMARY = 1, GYRE_CONTEXT_GIVEN = 2 };

/** Configures a runtime. gyre::Options (runtime/options.hpp) describes every option; the tools' --help uses
   the same names. */
typedef struct gyre_options {
  size_t struct_size;
  gyre_engine engine;       /**< auto: CUDA if there is a device, else the CPU */
  int32_t device;           /**< CUDA device number */
  gyre_transport transport; /**< auto: on CUDA bar if it works, else pinned; on the CPU heap */
  int32_t wait;             /**< GYRE_WAIT_POLITE, or GYRE_WAIT_SPIN: each waiting thread occupies a core */
  uint32_t workers;         /**< blocks on CUDA, threads on the CPU */
  uint32_t block;           /**< CUDA threads per block, a multiple of 32 */
  uint32_t blocks;          /**< blocks of the grid with grid_scoped on CUDA; 0: one per multiprocessor */
  uint32_t slots;           /**< slots per ring; a power of two */
  uint32_t slot_bytes;      /**< bytes per slot, a multiple of 64 */
  /** Bytes that an ask reserves for its reply; 0: as many as its request has, and at least what fits a
     slot. */
  uint32_t max_reply_bytes;
  uint32_t actors_per_worker; /**< actors with state, per type, that one worker has room for */
  uint32_t max_buffers;       /**< buffers at one time, at most 65,535 */
  int32_t grid_scoped;        /**< not 0: on CUDA one worker is the whole grid */
  int32_t verbose;            /**< not 0: launch parameters go to stderr */
  int32_t cache;              /**< not 0: compiled actors are kept on disk and reused */
  int32_t isolation;          /**< GYRE_ISOLATION_PROCESS or GYRE_ISOLATION_IN_PROCESS; the CPU ignores it */
  int64_t timeout_ms;         /**< limits an ask, and the wait for room in a full ring; milliseconds */
  uint64_t arena_bytes;       /**< bytes for messages larger than a slot; a multiple of 4096 */
  uint64_t region_budget;     /**< bytes; a larger region is refused */
  const char* keep_program;   /**< folder to write the compiled actors to; or null */
  const int32_t* pin_workers; /**< processor numbers for the CPU engine's workers; or null */
  size_t pin_worker_count;    /**< at most 65,536 */
  /** An engine process that is silent for so long is killed, and one that finishes no part of a copy for 30
     times as long; milliseconds, 0: never. */
  int64_t heartbeat_timeout_ms;
  /** Most times in restart_within_ms that a failed engine is launched again by itself; 0: never. */
  uint32_t restart_times;
  /** Multiprocessors that the workers of an engine process may occupy under MPS; 0: one per block, at most a
     quarter of the device's, and all without MPS; GYRE_ALL_MULTIPROCESSORS: all. */
  uint32_t multiprocessors;
  int64_t restart_within_ms;
  /** With GYRE_CONTEXT_GIVEN a CUcontext of `device`, which must outlive the runtime and all its calls and
     buffers; else null. */
  void* cuda_context;
  int32_t context;  /**< GYRE_CONTEXT_OWN, GYRE_CONTEXT_PRIMARY or GYRE_CONTEXT_GIVEN; in process only */
  int32_t reserved; /**< 0 */
  /** An engine process with a worker that is in one handler for so long is killed; milliseconds, 0: never. */
  int64_t stall_after_ms;
  /** Bytes, at most, for messages between actors that wait to be handled; actors that do not send take none. */
  uint64_t spill_bytes;
  /** Bytes for the bodies of messages between actors that do not fit a slot, body_bytes each; actors that send
     no such messages (gyre::LargeMessages) take none. 0: messages between actors must fit a slot. */
  uint64_t body_pool_bytes;
  uint32_t body_bytes; /**< bytes of the largest such body, a multiple of 128 */
  uint32_t reserved_2; /**< 0 */
} gyre_options;
/** Fills in the defaults. `struct_size` is the caller's sizeof(gyre_options). */
GYRE_API gyre_status gyre_options_init(gyre_options* options, size_t struct_size);

/** Names a set of launched workers. */
typedef uint64_t gyre_runtime;
/** Launches workers for `actors` (0: the built-in actors) with `options`, or the defaults if null. Blocks
   until the workers run: some hundred ms on CUDA, and a second or more if the actors are compiled. `actors`
   may be released or launched again afterwards. Fails with GYRE_BAD_OPTIONS, GYRE_ENGINE_UNAVAILABLE or
   GYRE_FAILED. */
GYRE_API gyre_status gyre_launch(gyre_actors actors, const gyre_options* options, gyre_runtime* runtime);

/** Names a runtime's state; see gyre::Lifecycle. */
typedef int32_t gyre_lifecycle;
enum {
  GYRE_LAUNCHED = 0,
  GYRE_ACTIVE = 1,
  GYRE_LIFECYCLE_INACTIVE = 2,
  GYRE_LIFECYCLE_DRAINING = 3,
  GYRE_LIFECYCLE_TERMINATED = 4,
  GYRE_LIFECYCLE_FAILED = 5
};
/** Says what runs where. */
typedef struct gyre_info {
  size_t struct_size;
  gyre_engine engine;
  gyre_transport transport;
  gyre_lifecycle state;
  uint32_t workers;
  uint32_t slot_body_bytes; /**< the largest body that fits a slot */
  int32_t from_cache;       /**< not 0: the compiled actors were found on disk */
  uint64_t max_body_bytes;  /**< the largest body that can be sent */
  uint64_t region_bytes;
  double uptime_s;
  double compile_ms;      /**< time to compile the actors, or to find them compiled; 0 on the CPU engine */
  double launch_ms;       /**< the rest of gyre_launch */
  int32_t compiled_ahead; /**< not 0: compiled for the GPU when their program or library was built */
  int32_t reserved;       /**< 0 */
} gyre_info;
/** Reads what runs where. */
GYRE_API gyre_status gyre_runtime_info(gyre_runtime runtime, gyre_info* info);

enum {
  GYRE_TEXT_DEVICE_NAME = 0,
  GYRE_TEXT_TRANSPORT_REASON = 1, /**< why auto did not choose BAR on CUDA; else "" */
  GYRE_TEXT_FAILURE = 2,          /**< why the engine failed; "" if it did not */
  GYRE_TEXT_STATS = 3             /**< gyre_stats as a JSON object, with its field names */
};
/** Reads a text about a runtime; `which` selects it. Text (6). */
GYRE_API gyre_status gyre_runtime_text(gyre_runtime runtime, int32_t which, char* buffer, size_t capacity,
                                       size_t* size);

/** Describes one message type that an actor takes. */
typedef struct gyre_handler {
  size_t struct_size;
  const char* actor;        /**< the actor type's name; belongs to the runtime */
  const char* request_name; /**< the request's name in its schema; "" if unknown; belongs to the runtime */
  uint64_t request;         /**< the request's type id */
  uint64_t response;        /**< the response's type id; 0: tells only */
} gyre_handler;
/** Reads handler number `index`. Fails with GYRE_INVALID_ARGUMENT past the last. */
GYRE_API gyre_status gyre_runtime_handler(gyre_runtime runtime, size_t index, gyre_handler* handler);

/** Stops or resumes handling. With `active` 0 workers answer each ask with GYRE_INACTIVE, and make a dead
   letter of each tell; otherwise they handle messages again. Blocks until every worker obeys, at most for
   the timeout, and fails with GYRE_WORKER_STUCK then. */
GYRE_API gyre_status gyre_set_active(gyre_runtime runtime, int32_t active, int64_t timeout_ns);
/** Refuses new messages, and waits until all accepted messages are done. Blocks at most for the timeout,
   and fails with GYRE_WORKER_STUCK then; it may be called again. */
GYRE_API gyre_status gyre_drain(gyre_runtime runtime, int64_t timeout_ns);

/** Launches the engine again after it failed: see gyre::Runtime::relaunch. The handle stays valid; buffers
   and actors' state are lost. Blocks as gyre_launch does, and first at most for the timeout while another
   thread relaunches. Fails with GYRE_FAILED if the engine works, GYRE_TERMINATED, or as gyre_launch does. */
GYRE_API gyre_status gyre_relaunch(gyre_runtime runtime, int64_t timeout_ns);

/** Counts what became of every message. Exact once the runtime has terminated. */
typedef struct gyre_stats {
  size_t struct_size;
  uint64_t asks_accepted, asks_answered, asks_error_replies, asks_timed_out, asks_dead_letters,
      asks_cancelled;
  uint64_t asks_late_replies; /**< replies to asks that had another outcome; not in asks_accepted */
  uint64_t asks_in_flight;
  uint64_t tells_accepted, tells_processed, tells_dead_letters;
  uint64_t tells_in_flight;
  uint64_t dead_letters_dropped; /**< dead letters that the bounded log had no room for */
  uint64_t corrupt_slots;        /**< 0 unless memory was overwritten */
  /** Buffers and their bytes, by gyre_memory: in use, and freed but kept until termination. */
  uint64_t buffers_in_use[3], buffer_bytes_in_use[3], buffers_freed[3], buffer_bytes_freed[3];
  /** Memory that the runtime uses: rings, counters and arena; device memory behind BAR; actor tables; code
     of the compiled actors on the device; the table of buffers. */
  uint64_t region_bytes, bar_bytes, actor_bytes, module_bytes, buffer_table_bytes;
  /** Total and free memory of the device, at most 100 ms ago; 0: unknown, or no GPU. */
  uint64_t device_bytes, device_free_bytes;
  /** Dead letters that a worker may have handled; part of the dead letters. 0 unless the device had a
     fault, or a worker or thread did not finish in time (gyre_termination). */
  uint64_t asks_inferred, tells_inferred;
  /** Imported buffers and their bytes: in use, and freed while a worker may still use them. */
  uint64_t imported_in_use, imported_bytes_in_use, imported_freed, imported_bytes_freed;
  /** Messages between actors. lost: were under way at the end. */
  uint64_t mail_sent, mail_processed, mail_failed, mail_refused, mail_lost;
  /** Messages of actors to the host: see gyre_on_told. refused: found no room; not in told_sent. */
  uint64_t told_sent, told_handled, told_dropped, told_refused;
  /** Timers of actors. done: one-shot timers that have sent their message. lost: were set at the end. */
  uint64_t timers_set, timers_done, timers_cancelled, timers_lost;
} gyre_stats;
/** Reads the stats. */
GYRE_API gyre_status gyre_runtime_stats(gyre_runtime runtime, gyre_stats* stats);

/** Reports what gyre_terminate did. */
typedef struct gyre_termination {
  size_t struct_size;
  /** Not 0: a worker did not stop in time. Its engine process was killed, or its memory left allocated. */
  int32_t worker_stuck;
  int32_t balanced; /**< not 0: every message has its outcome, and no slot was corrupt */
  double uptime_s;
  double terminate_ms;
  int32_t sender_stuck; /**< not 0: a thread did not finish sending in time */
  int32_t reader_stuck; /**< not 0: a thread did not finish taking replies in time */
  int32_t unfinished;   /**< not 0: another call was still ending the workers when the time was up */
  /** Not 0: a thread did not finish allocating or freeing a buffer in time; memory of freed buffers stays
     allocated until the runtime's last holder is gone. */
  int32_t buffers_stuck;
} gyre_termination;
/** Ends the workers. Each finishes the message in hand; messages behind it become dead letters, and every
   call in flight gets its outcome. `report` may be null. Blocks at most for the timeout, raised to 250 ms
   if it is shorter. Later calls return the report of the first. Stats and dead letters can still be read
   afterwards. */
GYRE_API gyre_status gyre_terminate(gyre_runtime runtime, int64_t timeout_ns, gyre_termination* report);
/** Releases the runtime; calls gyre_terminate with the runtime's timeout unless it was called. Memory that
   calls, replies and buffers refer to is freed with the last of them. */
GYRE_API gyre_status gyre_runtime_release(gyre_runtime runtime);

/* ---- Messages */

/** Selects what to do if there is no room for a message. */
enum {
  GYRE_WHEN_FULL_WAIT = 0,  /**< wait, at most for the timeout */
  GYRE_WHEN_FULL_REFUSE = 1 /**< fail at once: GYRE_RING_FULL, GYRE_ARENA_FULL, GYRE_CALL_TABLE_FULL */
};
/** Configures one ask or tell. */
typedef struct gyre_send_options {
  size_t struct_size;
  gyre_encoding encoding; /**< encoding of the message's bytes */
  int32_t when_full;      /**< GYRE_WHEN_FULL_WAIT or GYRE_WHEN_FULL_REFUSE */
  int64_t timeout_ns;     /**< -1: the runtime's */
  /** A tell that is older becomes a dead letter; 0: no limit. More than 30 minutes count as no limit. */
  int64_t expires_after_ns;
  uint32_t max_reply_bytes; /**< bytes an ask reserves for its reply; 0: the actor's, or the runtime's */
  uint32_t reserved;        /**< 0 */
} gyre_send_options;
/** Fills in the defaults: GYRE_BODY, GYRE_WHEN_FULL_WAIT, the runtime's timeout. `struct_size` is the
   caller's sizeof(gyre_send_options). */
GYRE_API gyre_status gyre_send_options_init(gyre_send_options* options, size_t struct_size);

/** Names an ask, or a tell's receipt, and its outcome. Holds a slot of the runtime's call table until
 * released. */
typedef uint64_t gyre_call;
/** Blocks until the work that a CUDA stream (a CUstream; null: the default one) was given before is done, so
   that handlers of messages sent afterwards see its results. Makes CUDA calls in this thread: in its current
   context, or in the primary one that the program has made. Creates no context. Fails with GYRE_TIMED_OUT at
   the timeout; with GYRE_FAILED and CUDA's error if the stream's work failed, without a context, or on the
   CPU engine. */
GYRE_API gyre_status gyre_wait_for_stream(gyre_runtime runtime, void* stream, int64_t timeout_ns);
/** Sends a request. `actor` is the actor type's qualified name, for example "gyre::actors::VectorAdd";
   `request` is the request's 64-bit type id; `options` may be null. Blocks only while there is no room, at
   most for the timeout; never with GYRE_WHEN_FULL_REFUSE. A refused request leaves no call to release.
   Refusals: GYRE_RING_FULL, GYRE_CALL_TABLE_FULL, GYRE_ARENA_FULL, GYRE_UNKNOWN_ACTOR,
   GYRE_UNKNOWN_MESSAGE, GYRE_MALFORMED (the bytes are no message), GYRE_TOO_LARGE, GYRE_DRAINING,
   GYRE_TERMINATED, GYRE_ENGINE_FAILED. */
GYRE_API gyre_status gyre_ask(gyre_runtime runtime, const char* actor, uint64_t key, uint64_t request,
                              const void* bytes, size_t bytes_size, const gyre_send_options* options,
                              gyre_call* call);
/** Sends a request like gyre_ask, and waits for the outcome. On GYRE_OK *call holds the reply and must be
   released; otherwise there is no call. Blocks at most for the timeout while there is no room, and again
   for the reply. */
GYRE_API gyre_status gyre_ask_and_wait(gyre_runtime runtime, const char* actor, uint64_t key,
                                       uint64_t request, const void* bytes, size_t bytes_size,
                                       const gyre_send_options* options, gyre_call* call);
/** Sets *done to 1 if the outcome is there, else to 0. Completes the replies that have arrived, for all
   threads. */
GYRE_API gyre_status gyre_call_poll(gyre_call call, int32_t* done);
/** Blocks until the outcome is there, and returns GYRE_OK also if the ask failed. Fails with GYRE_NOT_READY
   after the timeout; with -1 it waits until the ask's own timeout. Completes other threads' replies
   meanwhile. */
GYRE_API gyre_status gyre_call_wait(gyre_call call, int64_t timeout_ns);
/** Returns the outcome: GYRE_OK and the reply's body, or why there is no reply. The body is aligned to 8
   bytes and valid until the call is released. Fails with GYRE_NOT_READY before the outcome is there. May be
   called repeatedly. */
GYRE_API gyre_status gyre_call_reply(gyre_call call, const void** body, size_t* body_size);
/** Makes a CUDA stream (a CUstream; null: the default one) wait for the outcome, whatever it is. Work that
   the stream is given later begins after the outcome, and finds what the handler wrote. Takes one stream for
   a call, and the call cannot be watched by a queue afterwards. Does not block. Makes CUDA calls in this
   thread: in its current context, or in the primary one that the program has made. Creates no context. The
   stream goes on at the latest at the ask's timeout, even if the call is released; until then calls that wait
   for the device, such as cudaFree, wait too. Fails with GYRE_FAILED and CUDA's error, without a context, or
   on the CPU engine: the stream does not wait then. */
GYRE_API gyre_status gyre_call_wait_on(gyre_call call, void* stream);
/** Cancels the ask, from any thread, also while another thread waits for it: its outcome becomes
   GYRE_CANCELLED, unless it has one. `cancelled` may be null; otherwise *cancelled becomes 1 if this call
   decided the outcome, else 0. A worker may still handle the request. */
GYRE_API gyre_status gyre_call_cancel(gyre_call call, int32_t* cancelled);
/** Releases the call, at any time. An outcome that arrives later is counted and dropped. */
GYRE_API gyre_status gyre_call_release(gyre_call call);

/** Names a queue of outcomes for poll loops. */
typedef uint64_t gyre_queue;
/** Creates an empty queue. */
GYRE_API gyre_status gyre_queue_create(gyre_queue* queue);
/** Returns an eventfd for poll() and epoll. It is readable while gyre_queue_take has an outcome, and
   possibly once more. It belongs to the queue: do not read or close it. */
GYRE_API gyre_status gyre_queue_fd(gyre_queue queue, int32_t* fd);
/** Adds the call to the queue once its outcome is there; gyre_queue_take returns it. Until then
   gyre_call_poll reports no outcome, gyre_call_reply returns GYRE_NOT_READY, and waiting for the call or
   watching it again is GYRE_BUSY. The first watch starts a thread of the runtime that polls for outcomes.
   Fails with GYRE_INVALID_ARGUMENT if the call's outcome was taken already. `tag` is returned with the
   call. */
GYRE_API gyre_status gyre_queue_watch(gyre_queue queue, gyre_call call, uint64_t tag);
/** Takes the call that was done first, with its tag; gyre_call_reply then returns its outcome. Skips calls
   that were released. Fails with GYRE_NOT_READY if there is none. Used by one thread at a time; a second
   gets GYRE_BUSY. */
GYRE_API gyre_status gyre_queue_take(gyre_queue queue, gyre_call* call, uint64_t* tag);
/** Releases the queue. Calls in the queue stay valid, but never get an outcome; release them. */
GYRE_API gyre_status gyre_queue_release(gyre_queue queue);

/** Sends a message without a reply; `options` may be null. GYRE_OK means that the message was accepted: a
   worker handles it, or it becomes a dead letter. Blocks and fails like gyre_ask. */
GYRE_API gyre_status gyre_tell(gyre_runtime runtime, const char* actor, uint64_t key, uint64_t message,
                               const void* bytes, size_t bytes_size, const gyre_send_options* options);

/** Sends a message like gyre_tell, and sets *call to its receipt: a call whose outcome says what became of
   the message. GYRE_OK: the handler has ended well; the handler's failure; GYRE_EXPIRED: a worker took it
   after options->expires_after_ns, and did not handle it; GYRE_TIMED_OUT: nothing is known at the timeout,
   and the message may be handled later. The timeout may be days. The receipt of a handler that began in time
   arrives though the message expires meanwhile. The handler may be one with a response, which is the reply's
   body, or one without, whose reply has 0 bytes. Stats count an ask. Blocks and fails like gyre_ask; a
   refused message leaves no call to release. */
GYRE_API gyre_status gyre_tell_with_receipt(gyre_runtime runtime, const char* actor, uint64_t key,
                                            uint64_t message, const void* bytes, size_t bytes_size,
                                            const gyre_send_options* options, gyre_call* call);

/** Creates an actor unless it exists, and runs its on_start. Blocks until the worker has answered, at most
   for the timeout. Fails with GYRE_ACTOR_TABLE_FULL, or with the failure of on_start, for example
   GYRE_CHECK_FAILED. */
GYRE_API gyre_status gyre_start_actor(gyre_runtime runtime, const char* actor, uint64_t key,
                                      int64_t timeout_ns);
/** Runs an actor's on_stop and removes the actor with its state. Blocks until the worker has answered, at
   most for the timeout. Fails with GYRE_NO_SUCH_ACTOR, or with the failure of on_stop, after which the
   actor is removed as well. */
GYRE_API gyre_status gyre_stop_actor(gyre_runtime runtime, const char* actor, uint64_t key,
                                     int64_t timeout_ns);

/** Copies an actor's state as it is between two of its messages. All messages that this thread sent to the
   actor before are handled by then. Creates no actor; counts as an ask. The layout is that of the actor's
   type. Bytes (6). Blocks until the worker has answered, at most for the timeout. Fails with
   GYRE_NO_SUCH_ACTOR if there is none or its type has no state, with GYRE_TOO_LARGE if the state fits
   neither a slot nor the arena, or as gyre_ask does. */
GYRE_API gyre_status gyre_read_state(gyre_runtime runtime, const char* actor, uint64_t key,
                                     int64_t timeout_ns, void* buffer, size_t capacity, size_t* size);
/** Says where a listing of actors goes on. All 0: at its begin. */
typedef struct gyre_actor_cursor {
  uint32_t worker;
  uint32_t slot;
  uint64_t key;
  int32_t ended; /**< not 0: the listing is complete */
  int32_t reserved;
} gyre_actor_cursor;
/** Lists keys of the actors of one type: writes up to `capacity` of them, at least 1, sets *count, and moves
   *cursor on. Call it until cursor->ended is not 0. An actor that is there from the first call to the last is
   listed once; one that is created or stopped meanwhile may be. Blocks until the workers have answered, at
   most for the timeout. Fails with GYRE_NO_SUCH_ACTOR if the type has no state, or as gyre_ask does; *cursor
   is as before then. */
GYRE_API gyre_status gyre_list_actors(gyre_runtime runtime, const char* actor, gyre_actor_cursor* cursor,
                                      uint64_t* keys, size_t capacity, size_t* count, int64_t timeout_ns);

/* ---- Buffers */

/** Selects where a buffer's memory lies. */
typedef int32_t gyre_memory;
enum {
  GYRE_MEMORY_DEVICE = 0,  /**< the engine's memory: fastest for workers; the host copies in and out */
  GYRE_MEMORY_PINNED = 1,  /**< page-locked host memory: host and workers use it, workers over the bus */
  GYRE_MEMORY_UNIFIED = 2, /**< memory managed by the driver; on CUDA only with GYRE_ISOLATION_IN_PROCESS */
  GYRE_MEMORY_IMPORTED = 3 /**< device memory of the program: gyre_buffer_import */
};
/** Selects a buffer's element type. */
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
/** Names a typed block of memory, which messages name by a gyre_buffer_handle. */
typedef uint64_t gyre_buffer;
/** Allocates a buffer of `elements` zeroed elements, at least one. Blocks for as long as zeroing takes.
   Fails with GYRE_FAILED, and the numbers, if there is no room or no memory of this kind. */
GYRE_API gyre_status gyre_buffer_create(gyre_runtime runtime, gyre_memory memory, gyre_element element,
                                        uint64_t elements, gyre_buffer* buffer);
/** Selects what handlers and gyre_buffer_write may do to a buffer. */
typedef int32_t gyre_buffer_access;
enum {
  GYRE_READ_WRITE = 0,
  GYRE_READ_ONLY = 1 /**< a handler must ask for Context::buffer<const T> */
};
/** Frees what keeps imported memory allocated. Called once, by any thread; must not end the runtime. */
typedef void (*gyre_release_owner)(void* owner);
/** Describes device memory that the program allocated, and that workers are to use in place. */
typedef struct gyre_import {
  size_t struct_size;
  void* elements; /**< the first one, aligned to its size, of the engine's device */
  gyre_element element;
  gyre_buffer_access access;
  uint64_t count; /**< of elements, at least 1, all in one allocation */
  /** A CUstream whose work so far is waited for; 1: the default stream, 2: the thread's default stream;
     -1: none. */
  int64_t stream;
  /** Called with `owner` once the buffer is released and the workers are past the messages sent before.
     Null: nothing is called. */
  gyre_release_owner release;
  void* owner;
} gyre_import;
/** Imports device memory without a copy: memory of cudaMalloc, or of cuMemCreate with a descriptor as
   handle type. Makes CUDA calls in this thread, in the memory's own context, and makes no context. Where it
   fails nothing is kept, and `release` is not called. Fails with GYRE_FAILED, the numbers and what to do:
   host or managed memory, memory of a stream-ordered pool, of another device, past the allocation's end, or
   on the CPU engine. */
GYRE_API gyre_status gyre_buffer_import(gyre_runtime runtime, const gyre_import* import, gyre_buffer* buffer);
/** Describes a buffer. */
typedef struct gyre_buffer_info {
  size_t struct_size;
  gyre_memory memory;
  gyre_element element;
  uint64_t elements;
  uint64_t bytes;
  int32_t device;   /**< the CUDA device that has the memory; -1: host memory */
  int32_t reserved; /**< 0 */
} gyre_buffer_info;
/** Reads the description of a buffer. */
GYRE_API gyre_status gyre_buffer_get_info(gyre_buffer buffer, gyre_buffer_info* info);
/** Holds the fields of a BufferHandle (/gyre/messages/buffer.capnp). These 24 bytes are the data section of
   a BufferHandle in a message. */
typedef struct gyre_buffer_handle {
  uint32_t index;
  uint32_t generation;
  uint32_t runtime;
  uint16_t element;
  uint16_t reserved; /**< 0 */
  uint64_t length;   /**< elements */
} gyre_buffer_handle;
/** Returns the handle by which a message names the buffer's first `length` elements; 0: all. Valid until
   the buffer is released. The handler sees everything that the host wrote before the message was sent. */
GYRE_API gyre_status gyre_buffer_get_handle(gyre_buffer buffer, uint64_t length, gyre_buffer_handle* handle);
/** Copies `size` bytes into the buffer from byte `offset` on, and returns when they are there. Works for
   every kind of memory. Does not wait for workers. Fails with GYRE_FAILED past the end of the buffer. */
GYRE_API gyre_status gyre_buffer_write(gyre_buffer buffer, uint64_t offset, const void* bytes, uint64_t size);
/** Copies `size` bytes out of the buffer from byte `offset` on. What a handler wrote is visible once its
   reply has arrived. Works for every kind of memory. Does not wait for workers. Fails with GYRE_FAILED past
   the end. */
GYRE_API gyre_status gyre_buffer_read(gyre_buffer buffer, uint64_t offset, void* bytes, uint64_t size);
/** Names an asynchronous copy. Several threads may use it. */
typedef uint64_t gyre_copy;
/** Called once when a copy is done: with GYRE_OK, or why not. */
typedef void (*gyre_copy_done)(void* context, gyre_status outcome);
/** Begins to copy `size` bytes into the buffer from byte `offset` on. `bytes` must stay, unchanged, until the
   copy is done. Copies of one buffer, also by gyre_buffer_write and gyre_buffer_read, are made in the order
   of the calls. Fails at once as gyre_buffer_write does; if the engine fails the copy's outcome is
   GYRE_BUFFER_LOST or GYRE_ENGINE_FAILED. The first copy in each direction starts a thread of the runtime. */
GYRE_API gyre_status gyre_buffer_write_async(gyre_buffer buffer, uint64_t offset, const void* bytes,
                                             uint64_t size, gyre_copy* copy);
/** Begins to copy `size` bytes out of the buffer from byte `offset` on, as gyre_buffer_write_async. What a
   handler wrote is copied once its reply has arrived. */
GYRE_API gyre_status gyre_buffer_read_async(gyre_buffer buffer, uint64_t offset, void* bytes, uint64_t size,
                                            gyre_copy* copy);
/** Blocks until the copy is done, and returns its outcome: GYRE_OK, or why it failed. Returns GYRE_NOT_READY
   after the timeout; 0 polls, -1 waits until the copy is done. May be called repeatedly. */
GYRE_API gyre_status gyre_copy_wait(gyre_copy copy, int64_t timeout_ns);
/** Has `done` called with `context` once the copy is done, on the thread of the runtime that polls for
   outcomes; this starts that thread. After the runtime has ended this function calls `done` itself. `done`
   must not block. Once for a copy: a second call returns GYRE_BUSY. */
GYRE_API gyre_status gyre_copy_notify(gyre_copy copy, gyre_copy_done done, void* context);
/** Releases the copy, which goes on: its bytes must stay until it is done. gyre_buffer_release waits for the
   buffer's copies. */
GYRE_API gyre_status gyre_copy_release(gyre_copy copy);
/** Returns the elements in place; the pointer is valid until the buffer is released. Pinned memory: call it
   again after each reply, to see what the handler wrote. Unified memory: blocks until every worker is past
   all messages sent before the call, at most for the timeout; use the elements until a message with the
   buffer's handle is sent. Device memory: fails with GYRE_FAILED. */
GYRE_API gyre_status gyre_buffer_view(gyre_buffer buffer, int64_t timeout_ns, void** elements);
/** Names an export: a buffer's memory in use outside Gyre. */
typedef uint64_t gyre_export;
/** Sets *elements to the first element's address for code of the program, and *device, unless null, to the
   CUDA device that has the memory, or to -1: host memory, on the CPU engine or pinned. The memory stays until
   the last export is released, even if the buffer is released or the engine process ends before. The first
   time, and for device memory of an engine process, makes CUDA calls in this thread: in its current context,
   or in the primary one that the program has made. Creates no context. Work on the elements is not ordered:
   wait for replies before a stream uses them, and for the stream before a message is sent. Fails with
   GYRE_FAILED and what to do: no CUDA context, unified or imported memory. */
GYRE_API gyre_status gyre_buffer_export(gyre_buffer buffer, gyre_export* exported, void** elements,
                                        int32_t* device);
/** Releases an export. Does not block. Once the buffer and its last export are released, a thread of the
   runtime waits until the context's work on the device is done, and then gives the memory back; in process in
   a primary or given context it does not wait. */
GYRE_API gyre_status gyre_export_release(gyre_export exported);
/** Exports the buffer as a tensor of one dimension, by DLPack: sets *tensor to a DLManagedTensor, or to a
   DLManagedTensorVersioned of version 1.0 if `version` is 1. The tensor's deleter releases the export.
   Otherwise like gyre_buffer_export. */
GYRE_API gyre_status gyre_buffer_to_dlpack(gyre_buffer buffer, int32_t version, void** tensor);
/** Releases the buffer, at any time. Blocks until its copies are done. Its handles become stale; messages in
   use of the memory are not disturbed. */
GYRE_API gyre_status gyre_buffer_release(gyre_buffer buffer);

/* ---- Messages of actors to the host */

/** A message that an actor sent to the host. Its texts and its body are valid until the call returns. */
typedef struct gyre_told {
  size_t struct_size; /**< set by the library */
  const char* actor;  /**< the actor type's qualified name */
  uint64_t key;       /**< of the actor */
  uint64_t type_id;   /**< of the message */
  const void* body;   /**< one Cap'n Proto segment: GYRE_BODY */
  size_t body_size;   /**< in bytes */
  uint32_t worker;    /**< that the actor belongs to */
  uint32_t reserved;
} gyre_told;
/** Called with a context for each such message, on the runtime's poller thread, one call at a time. It may send
   messages. It must not block, wait for a reply, or drain. */
typedef void (*gyre_told_handler)(void* context, const gyre_told* told);
/** Sets `handler`, called with `context` for each message of type `type_id` that an actor tells the host.
   Replaces the former one. Null removes it: such messages are then dropped. gyre_relaunch keeps it. A call in
   progress may outlast this function. No call begins after gyre_terminate has returned. Fails with GYRE_FAILED
   where no handler of the actors tells the host. */
GYRE_API gyre_status gyre_on_told(gyre_runtime runtime, uint64_t type_id, gyre_told_handler handler,
                                  void* context);

/* ---- Dead letters: messages that were accepted and not handled */

/** Names a list of dead letters. */
typedef uint64_t gyre_dead_letters;
/** Takes the dead letters since the last call, oldest first, and sets *count to their number. At most 1,024
   are kept, including failed tells. */
GYRE_API gyre_status gyre_take_dead_letters(gyre_runtime runtime, gyre_dead_letters* letters, size_t* count);
/** Describes one dead letter. */
typedef struct gyre_dead_letter {
  size_t struct_size;
  gyre_status reason;
  int32_t is_ask;      /**< not 0: an ask, else a tell */
  uint64_t key;        /**< the actor's key */
  const char* actor;   /**< the actor type's name; "" if unknown */
  const char* message; /**< the message's name in its schema; "" if unknown */
  const char* text;    /**< one line that describes the dead letter */
  const void* body;    /**< the message's body; null if it was not kept */
  size_t body_size;
} gyre_dead_letter;
/** Reads letter number `index`. Its texts and body belong to the list. Fails with GYRE_INVALID_ARGUMENT
   past the last. */
GYRE_API gyre_status gyre_dead_letter_at(gyre_dead_letters letters, size_t index, gyre_dead_letter* letter);
/** Releases the list. */
GYRE_API gyre_status gyre_dead_letters_release(gyre_dead_letters letters);

#ifdef __cplusplus
}
#endif
#endif /* GYRE_GYRE_H */
