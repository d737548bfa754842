"""Runtimes and clients."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import dataclasses
import itertools
import json
import os
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _asyncio, _stream
from ._buffer import Buffer
from ._errors import ARENA_FULL, CALL_TABLE_FULL, NOT_READY, OK, RING_FULL, BadArgument, Error, check, failure
from ._errors import bytes_of, nanoseconds, number_of_bits, shown, text_of
from ._library import ActorCursor as _ActorCursor
from ._library import DeadLetter as _DeadLetter
from ._library import FIELDS, Handle, Handler, Info, Options, SendOptions, Source, Termination, Text, ToldHandler, lib
from ._schema import ENCODINGS, Schema
from ._stream import PendingReply

if TYPE_CHECKING:
    from ._prepared import Prepared

_ENGINES = ["auto", "cuda", "cpu"]
_TRANSPORTS = ["auto", "bar", "pinned", "heap", "unified"]
_STATES = ["launched", "active", "inactive", "draining", "terminated", "failed"]
_WAITS = ["polite", "spin"]
_ISOLATIONS = ["process", "in_process"]
_ALL_MULTIPROCESSORS = 2**32 - 1
_CONTEXTS = ["own", "primary", "given"]
_CHOICES = {"context": _CONTEXTS, "transport": _TRANSPORTS, "wait": _WAITS, "isolation": _ISOLATIONS}
_DEVICE_NAME, _TRANSPORT_REASON, _FAILURE, _STATS = range(4)


class Actors:
    """Holds a set of actor types. Actors() is the built-in set; see also from_source() and load()."""

    def __init__(self, handle: int | None = None, schema: Schema | None = None) -> None:
        if handle is None:
            made = Handle()
            check(lib.gyre_actors_builtin(ctypes.byref(made)))
            handle = made.value
        self._handle = handle
        self.schema = schema

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            lib.gyre_actors_release(self._handle)

    @classmethod
    def from_source(
        cls, source: str, types: Sequence[str], schema: Schema | Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Actors:  # fmt: skip
        """Makes a set of actors from C++ text, which the CUDA engine compiles at launch. Other engines cannot run it.

        types: the actors' qualified names. schema: the schema of their messages, a Schema or a dict of texts by name;
        the C++ text includes <file.view.hpp> for file.capnp. headers: a dict of other headers that the text includes,
        by name."""
        schema = schema if isinstance(schema, Schema) or schema is None else Schema(schema)
        text = source.encode()
        names = (ctypes.c_char_p * len(types))(*[name.encode() for name in types])
        headers = dict(headers or {})
        texts = (Text * max(len(headers), 1))()
        for entry, (name, content) in zip(texts, headers.items()):
            encoded = content.encode()
            entry.name, entry.text, entry.text_length = name.encode(), encoded, len(encoded)
        given = Source(
            text=text,
            text_length=len(text),
            types=names,
            type_count=len(types),
            headers=texts,
            header_count=len(headers),
            schema=schema._handle if schema else 0,
        )
        made = Handle()
        check(lib.gyre_actors_from_source(ctypes.byref(given), ctypes.byref(made)))
        return cls(made.value, schema)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], name: str | None = None, schema: Schema | Mapping[str, str] | None = None,
    ) -> Actors:
        """Loads a set of actors from a shared object, for every engine. The object has GYRE_EXPORT_ACTORS(name, …), or
        `gyre validate --build-library` made it.

        name: the set to load; needed only if the object exports several. schema: the schema of the messages, a Schema
        or a dict of texts by name; by default the types that the object carries. Raises BadArgument, and names the
        field, if the schema differs from these types."""
        made = Handle()
        check(lib.gyre_actors_load(str(path).encode(), None if name is None else name.encode(), ctypes.byref(made)))
        actors = cls(made.value)
        if schema is None:
            actors.schema = Schema._of_actors(made.value)
        else:
            actors.schema = schema if isinstance(schema, Schema) else Schema(schema)
            check(lib.gyre_actors_check_schema(made.value, actors.schema._handle))
        return actors


@dataclasses.dataclass(frozen=True)
class DeadLetter:
    """Holds a message that was accepted and not handled."""

    reason: str  #: the status's name
    is_ask: bool
    actor: str  #: the actor type's name; "" if unknown
    key: int
    message: str  #: the message's name in its schema; "" if unknown
    body: bytes  #: the message's body; empty if it was not kept
    text: str  #: one line that describes the dead letter


@dataclasses.dataclass(frozen=True)
class FromActor:
    """Names the actor that sent a message to the host."""

    actor: str  #: the actor type's qualified name
    key: int
    worker: int  #: that the actor belongs to


_numbers = itertools.count(1)
_told_handlers: dict[int, Callable[[Any], None]] = {}  # those that the library may call, by number


def _on_told(number: int | None, told: Any) -> None:
    handle = _told_handlers.get(number or 0)
    if handle is not None:
        handle(told.contents)


_told_handler = ToldHandler(_on_told)  # for good: the library may call it until the process ends


def launch(
    actors: Actors | None = None, *, source: str | None = None, types: Sequence[str] | None = None,
    schema: Schema | Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None, engine: str = "auto",
    **options: Any,
) -> Runtime:  # fmt: skip
    """Launches workers and returns a Runtime. Close it: `with gyre.launch(…) as runtime`.

    actors: an Actors; by default the built-in Echo and VectorAdd. Alternatively pass source, types, schema and headers,
    as for Actors.from_source.
    schema: the schema of requests and replies; needed only if the actors carry no types. Raises BadArgument, and names
    the field, if the schema differs from the types that the actors carry.
    engine: "auto", "cuda" or "cpu".
    options: the fields of gyre_options in <gyre/gyre.h>, for example workers=4, slots=256, transport="pinned",
    isolation="in_process", timeout_ms=5000, pin_workers=[0, 1].
    """
    if source is not None:
        if actors is not None:
            raise BadArgument("launching: both actors and source are given; give one of them")
        actors = Actors.from_source(source, list(types or []), schema, headers)
    elif types is not None or headers is not None:
        raise BadArgument("launching: types and headers are of source text, and source is not given")
    if schema is None or source is not None:
        messages = (actors.schema if actors else None) or Schema()
    else:
        messages = schema if isinstance(schema, Schema) else Schema(schema)
        actors = actors or Actors()
        check(lib.gyre_actors_check_schema(actors._handle, messages._handle))
    given = Options()
    check(lib.gyre_options_init(ctypes.byref(given), ctypes.sizeof(Options)))
    given.engine = _number("engine", engine, _ENGINES)
    for name, value in options.items():
        if name in _CHOICES:
            value = _number(name, value, _CHOICES[name])
        elif name == "multiprocessors" and value == "all":
            value = _ALL_MULTIPROCESSORS
        elif name == "keep_program":
            value = str(value).encode()
        elif name == "pin_workers":
            given.pin_worker_count = len(value)
            value = (ctypes.c_int32 * len(value))(*value)
        elif name not in _OPTION_NAMES:
            raise BadArgument(f"launching: there is no option {name}; there are {', '.join(sorted(_OPTION_NAMES))}")
        field = FIELDS[Options][name]
        setattr(given, name, int(value) if isinstance(value, bool) else _in_range(name, value, field))
    handle = Handle()
    check(lib.gyre_launch(actors._handle if actors else 0, ctypes.byref(given), ctypes.byref(handle)))
    return Runtime(handle.value, messages, given.timeout_ms / 1000)


_OPTION_NAMES = set(FIELDS[Options]) - {"struct_size", "reserved", "pin_worker_count", "engine"}


def _number(name: str, value: Any, names: Sequence[str]) -> int:
    if value not in names:
        raise BadArgument(f"{name} {shown(value)}: give one of {', '.join(names)}")
    return names.index(value)


def _in_range(name: str, value: Any, field: Any) -> Any:
    # ctypes truncates numbers that do not fit, so compare.
    if isinstance(value, int) and field(value).value != value:
        raise BadArgument(f"launching: {name}={shown(value)} is out of range")
    return value


class Runtime:
    """Owns launched workers. Thread-safe. Ended by `with`, close() or garbage collection."""

    def __init__(self, handle: int, schema: Schema, timeout: float) -> None:
        self._handle = handle
        self.schema = schema
        self._timeout = timeout
        self._responses: dict[tuple[str, int], int] = {}
        self._told: dict[int, int] = {}  # numbers of handlers, by type id
        handler = Handler()
        index = 0
        while lib.gyre_runtime_handler(handle, index, ctypes.byref(handler)) == OK:
            self._responses[handler.actor.decode(), handler.request] = handler.response
            index += 1
        _open.add(self)

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            lib.gyre_runtime_release(self._handle)
            self._forget_told()

    def client(self) -> Client:
        """Returns a Client of these workers."""
        return Client(self)

    def buffer(self, like: Any, memory: str = "device") -> Buffer:
        """Allocates a Buffer.

        like: an array, whose elements are copied into the buffer, or (dtype, size) for zeroed elements. memory:
        "device", "pinned" or "unified"; on CUDA the last one needs isolation="in_process"."""
        return Buffer(self, like, memory)

    def import_tensor(self, tensor: Any, read_only: bool | None = None) -> Buffer:
        """Imports a tensor of the GPU as a Buffer, without a copy: handlers use its elements in place.

        tensor: any object with __dlpack__ or __cuda_array_interface__ (PyTorch, CuPy, JAX, Numba): contiguous, of a
        buffer's element type, on the engine's device. Work on it in the producer's stream is waited for. Later work is
        yours to order: synchronize before you send a message, and use the tensor again once the reply has come. It is
        kept until the buffer is closed and the workers are past the messages sent before.
        read_only: True: handlers may only read it. JAX arrays are immutable, and always imported so."""
        return Buffer._of_tensor(self, tensor, read_only)

    def handlers(self) -> list[tuple[str, int, int]]:
        """Lists the message types that the actors take, each as (actor, request's type id, response's type id or 0)."""
        return [(actor, request, response) for (actor, request), response in self._responses.items()]

    def info(self) -> dict[str, Any]:
        """Returns a dict of what runs where: the fields of gyre_info, device_name, transport_reason and failure."""
        info = Info()
        check(lib.gyre_runtime_info(self._handle, ctypes.byref(info)))
        found = {name: getattr(info, name) for name in FIELDS[Info] if name not in ("struct_size", "reserved")}
        found["engine"] = _ENGINES[info.engine]
        found["transport"] = _TRANSPORTS[info.transport]
        found["state"] = _STATES[info.state]
        found["from_cache"] = bool(info.from_cache)
        found["compiled_ahead"] = bool(info.compiled_ahead)
        found["device_name"] = text_of(lib.gyre_runtime_text, self._handle, _DEVICE_NAME)
        found["transport_reason"] = text_of(lib.gyre_runtime_text, self._handle, _TRANSPORT_REASON)
        found["failure"] = text_of(lib.gyre_runtime_text, self._handle, _FAILURE)
        return found

    def stats(self) -> dict[str, Any]:
        """Counts what became of every message, as a dict of the fields of gyre_stats. Exact after terminate()."""
        found: dict[str, Any] = json.loads(text_of(lib.gyre_runtime_text, self._handle, _STATS))
        return found

    def dead_letters(self) -> list[DeadLetter]:
        """Takes the dead letters since the last call, oldest first."""
        handle, count = Handle(), ctypes.c_size_t()
        check(lib.gyre_take_dead_letters(self._handle, ctypes.byref(handle), ctypes.byref(count)))
        try:
            return [self._dead_letter(handle.value, index) for index in range(count.value)]
        finally:
            lib.gyre_dead_letters_release(handle.value)

    @staticmethod
    def _dead_letter(handle: int, index: int) -> DeadLetter:
        letter = _DeadLetter()
        check(lib.gyre_dead_letter_at(handle, index, ctypes.byref(letter)))
        return DeadLetter(
            reason=lib.gyre_status_name(letter.reason).decode(),
            is_ask=bool(letter.is_ask),
            actor=letter.actor.decode(),
            key=letter.key,
            message=letter.message.decode(),
            body=ctypes.string_at(letter.body, letter.body_size) if letter.body else b"",
            text=letter.text.decode(),
        )

    def on(self, message: str | int, handler: Callable[[FromActor, Any], object] | None) -> None:
        """Has handler(from_actor, message) called for each message of that type that an actor tells the host, in place
        of what was set before. None: nothing, and such messages are dropped and counted.

        message: the message's type, as its name in the schema or its 64-bit id. The handler gets a dict, or bytes, a
        body, if the schema has no such type. It runs on a thread of the runtime, one call at a time; it may send, and
        must not wait for replies. What it raises goes to sys.unraisablehook. Raises Error if no actor of the set tells
        the host."""
        type_id = self.schema.type_id(message)
        if handler is None:
            check(lib.gyre_on_told(self._handle, type_id, ToldHandler(), None))
            _told_handlers.pop(self._told.pop(type_id, 0), None)
            return
        call, schema = handler, self.schema

        def handle(told: Any) -> None:
            body: Any
            if str(type_id) in schema._structs:
                body = schema._decode(type_id, told.body, told.body_size)
            else:
                body = ctypes.string_at(told.body, told.body_size)
            call(FromActor(told.actor.decode(), told.key, told.worker), body)

        number = next(_numbers)
        _told_handlers[number] = handle
        try:
            check(lib.gyre_on_told(self._handle, type_id, _told_handler, ctypes.c_void_p(number)))
        except BaseException:
            _told_handlers.pop(number, None)
            raise
        _told_handlers.pop(self._told.pop(type_id, 0), None)
        self._told[type_id] = number

    def activate(self, timeout: float | None = None) -> None:
        """Makes the workers handle messages again. Waits until all obey, at most `timeout` seconds."""
        check(lib.gyre_set_active(self._handle, 1, nanoseconds(timeout)))

    def deactivate(self, timeout: float | None = None) -> None:
        """Makes the workers answer each ask `inactive` instead of handling it, and make a dead letter of each tell.
        Waits until all obey, at most `timeout` seconds."""
        check(lib.gyre_set_active(self._handle, 0, nanoseconds(timeout)))

    def drain(self, timeout: float | None = None) -> None:
        """Refuses new messages, and waits until all accepted messages are done, at most `timeout` seconds."""
        check(lib.gyre_drain(self._handle, nanoseconds(timeout)))

    def relaunch(self, timeout: float | None = None) -> None:
        """Launches the engine again after it failed. Clients stay valid; buffers and actors' state are lost. Waits
        first at most `timeout` seconds while another thread relaunches. Raises Error if the engine works."""
        check(lib.gyre_relaunch(self._handle, nanoseconds(timeout)))

    def terminate(self, timeout: float | None = None) -> dict[str, Any]:
        """Ends the workers after the message in hand, and returns a dict of the fields of gyre_termination. Stats and
        dead letters can still be read afterwards."""
        report = Termination()
        check(lib.gyre_terminate(self._handle, nanoseconds(timeout), ctypes.byref(report)))
        return {
            "worker_stuck": bool(report.worker_stuck),
            "sender_stuck": bool(report.sender_stuck),
            "reader_stuck": bool(report.reader_stuck),
            "unfinished": bool(report.unfinished),
            "buffers_stuck": bool(report.buffers_stuck),
            "balanced": bool(report.balanced),
            "uptime_s": report.uptime_s,
            "terminate_ms": report.terminate_ms,
        }

    def close(self) -> None:
        """Terminates the workers and releases the runtime. Does nothing if it was closed before."""
        handle, self._handle = self._handle, 0
        if handle:
            check(lib.gyre_runtime_release(handle))
            self._forget_told()

    def _forget_told(self) -> None:
        for number in self._told.values():
            _told_handlers.pop(number, None)
        self._told.clear()


class Client:
    """Sends messages to actors. Thread-safe.

    actor: the actor type's qualified name, for example "gyre::actors::VectorAdd".
    key: selects the actor among those of its type.
    request: the message's type, as its name in the schema or its 64-bit id.
    message: a dict (see Schema), or bytes in `encoding`: "body", "stream" or "packed". The reply to a dict is a dict;
    the reply to bytes is bytes, a body.
    timeout: in seconds; None is the runtime's own.
    max_reply_bytes: bytes to reserve for a reply larger than a slot.
    after: a CUDA stream of PyTorch, CuPy or Numba, or a CUstream as an integer. The work that it was given before is
    waited for, at most for the timeout, and then the message is sent: the handler sees that work's results. ask_async()
    waits on another thread, ask(), send() and tell() on this one."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def ask(
        self, actor: str, key: int, request: str | int, message: Any, *, timeout: float | None = None,
        encoding: str = "body", max_reply_bytes: int = 0, after: Any = None,
    ) -> Any:  # fmt: skip
        """Sends a request, waits for the reply and returns it. Raises KeyboardInterrupt within 50 ms of the signal."""
        if after is not None:
            _stream.wait_for(self._runtime, after, timeout)
        call, as_dict = self._send(actor, key, request, message, encoding, timeout, max_reply_bytes, wait=True)
        try:
            while True:
                status = lib.gyre_call_wait(call, 50_000_000)
                if status == OK:
                    return self._reply(call, as_dict)
                if status != NOT_READY:
                    raise failure(status)
        finally:
            lib.gyre_call_release(call)

    def send(
        self, actor: str, key: int, request: str | int, message: Any, *, timeout: float | None = None,
        encoding: str = "body", max_reply_bytes: int = 0, after: Any = None,
    ) -> PendingReply:  # fmt: skip
        """Sends a request and returns a PendingReply: a CUDA stream, or this thread later, waits for the reply."""
        if after is not None:
            _stream.wait_for(self._runtime, after, timeout)
        call, as_dict = self._send(actor, key, request, message, encoding, timeout, max_reply_bytes, wait=True)
        return PendingReply(call, lambda call: self._reply(call, as_dict))

    def prepare(
        self, actor: str, key: int, request: str | int, message: Mapping[str, Any] | None = None, *,
        timeout: float | None = None, max_reply_bytes: int = 0, **lengths: int,
    ) -> Prepared:  # fmt: skip
        """Builds a request once and returns a Prepared, which sends it many times.

        message: a dict, as for ask(): the first values, and how long the lists are.
        lengths: further lists by name, as the number of their elements, which are 0: features=64. Also the bytes of a
        Text or Data. A list never becomes longer; a Text may be set to a shorter one.

        Needs NumPy."""
        from ._prepared import Prepared

        return Prepared(self._runtime, actor, key, request, message or {}, lengths, timeout, max_reply_bytes)

    async def ask_async(
        self, actor: str, key: int, request: str | int, message: Any, *, timeout: float | None = None,
        encoding: str = "body", max_reply_bytes: int = 0, after: Any = None,
    ) -> Any:  # fmt: skip
        """Sends a request and returns the reply without blocking the event loop. Cancelling the coroutine cancels the
        ask."""
        if after is not None:
            stream = _stream.handle_of(after)
            await asyncio.get_running_loop().run_in_executor(None, _stream.wait_for, self._runtime, stream, timeout)
        deadline = None
        while True:
            try:
                call, as_dict = self._send(actor, key, request, message, encoding, timeout, max_reply_bytes, wait=False)
                break
            except Error as error:  # no room: try again within the timeout
                if error.status not in (RING_FULL, CALL_TABLE_FULL, ARENA_FULL):
                    raise
                if deadline is None:
                    deadline = time.monotonic() + (self._runtime._timeout if timeout is None else timeout)
                if time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(0.001)
        try:
            await _asyncio.queue_of(asyncio.get_running_loop()).outcome(call)
            return self._reply(call, as_dict)
        finally:
            lib.gyre_call_release(call)

    def tell(
        self, actor: str, key: int, request: str | int, message: Any, *, timeout: float | None = None,
        encoding: str = "body", expires_after: float = 0, after: Any = None,
    ) -> None:  # fmt: skip
        """Sends a message without a reply. When tell() returns, the message was accepted: a worker handles it, or it
        becomes a dead letter. After `expires_after` seconds workers no longer handle it; 0: no limit."""
        if after is not None:
            _stream.wait_for(self._runtime, after, timeout)
        name, type_id, content, known = self._content(actor, request, message, encoding)
        key = number_of_bits("key", key, 64)
        options = self._options(known, timeout)
        options.expires_after_ns = nanoseconds(expires_after)
        check(lib.gyre_tell(self._runtime._handle, name, key, type_id, content, len(content), ctypes.byref(options)))

    def tell_with_receipt(
        self, actor: str, key: int, request: str | int, message: Any, *, timeout: float | None = None,
        encoding: str = "body", expires_after: float = 0, after: Any = None,
    ) -> PendingReply:  # fmt: skip
        """Sends a message like tell() and returns its receipt. The receipt's wait() returns None once the handler has
        ended well. Otherwise it raises: the handler's failure; `expired` if a worker took the message after
        `expires_after`; TimedOut if nothing is known at the timeout, which may be days."""
        if after is not None:
            _stream.wait_for(self._runtime, after, timeout)
        name, type_id, content, known = self._content(actor, request, message, encoding)
        key = number_of_bits("key", key, 64)
        options = self._options(known, timeout)
        options.expires_after_ns = nanoseconds(expires_after)
        call = Handle()
        check(
            lib.gyre_tell_with_receipt(
                self._runtime._handle, name, key, type_id, content, len(content), ctypes.byref(options),
                ctypes.byref(call),
            )
        )

        def nothing(call: int) -> None:
            self._reply(call, 0)

        return PendingReply(call.value, nothing)

    def start(self, actor: str, key: int, timeout: float | None = None) -> None:
        """Creates an actor unless it exists, and waits for the worker's answer."""
        key = number_of_bits("key", key, 64)
        check(lib.gyre_start_actor(self._runtime._handle, actor.encode(), key, nanoseconds(timeout)))

    def stop(self, actor: str, key: int, timeout: float | None = None) -> None:
        """Removes an actor with its state, and waits for the worker's answer."""
        key = number_of_bits("key", key, 64)
        check(lib.gyre_stop_actor(self._runtime._handle, actor.encode(), key, nanoseconds(timeout)))

    def read_state(self, actor: str, key: int, timeout: float | None = None) -> bytes:
        """Copies an actor's state as it is between two of its messages. Waits for the worker's answer.

        The bytes have the layout of the actor's type. Raises Error "no_such_actor" if there is no actor with
        that key: reading creates none.
        """
        key = number_of_bits("key", key, 64)
        return bytes_of(
            lib.gyre_read_state, self._runtime._handle, actor.encode(), key, nanoseconds(timeout)
        )

    def actors(self, actor: str, page: int = 1000, timeout: float | None = None) -> Iterator[int]:
        """Yields the keys of the actors of one type, which it asks the workers for a page at a time.

        An actor that is there from the first page to the last comes once; one that is created or stopped
        meanwhile may come. `timeout` is a page's.
        """
        page = number_of_bits("page", page, 24)
        cursor, keys, count = _ActorCursor(), (ctypes.c_uint64 * page)(), ctypes.c_size_t()
        while not cursor.ended:
            check(
                lib.gyre_list_actors(
                    self._runtime._handle, actor.encode(), ctypes.byref(cursor), keys, page,
                    ctypes.byref(count), nanoseconds(timeout),
                )
            )
            yield from keys[: count.value]

    def _content(self, actor: str, request: str | int, message: Any, encoding: str) -> tuple[bytes, int, bytes, int]:
        schema = self._runtime.schema
        type_id = schema.type_id(request)
        if isinstance(message, dict):
            return actor.encode(), type_id, schema.encode(type_id, message), ENCODINGS["body"]
        if encoding not in ENCODINGS:
            raise BadArgument(f"encoding {shown(encoding)}: give one of {', '.join(ENCODINGS)}")
        try:
            content = memoryview(message).tobytes()
        except TypeError:
            raise BadArgument(f"a message is {shown(message)}: give a dict of its fields, or bytes") from None
        return actor.encode(), type_id, content, ENCODINGS[encoding]

    @staticmethod
    def _options(encoding: int, timeout: float | None) -> SendOptions:
        return SendOptions(encoding=encoding, timeout_ns=nanoseconds(timeout))

    def _send(
        self, actor: str, key: int, request: str | int, message: Any, encoding: str, timeout: float | None,
        max_reply_bytes: int, wait: bool,
    ) -> tuple[int, int]:  # fmt: skip
        name, type_id, content, known = self._content(actor, request, message, encoding)
        options = self._options(known, timeout)
        options.max_reply_bytes = number_of_bits("max_reply_bytes", max_reply_bytes, 32)
        options.when_full = 0 if wait else 1
        key = number_of_bits("key", key, 64)
        call = Handle()
        check(
            lib.gyre_ask(
                self._runtime._handle, name, key, type_id, content, len(content), ctypes.byref(options),
                ctypes.byref(call),
            )
        )
        as_dict = self._runtime._responses.get((actor, type_id), 0) if isinstance(message, dict) else 0
        return call.value, as_dict

    def _reply(self, call: int, response: int) -> Any:
        body, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(lib.gyre_call_reply(call, ctypes.byref(body), ctypes.byref(size)))
        if response:
            return self._runtime.schema._decode(response, body, size.value)
        return ctypes.string_at(body, size.value)


_open: weakref.WeakSet[Runtime] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for runtime in list(_open):
        runtime.close()
