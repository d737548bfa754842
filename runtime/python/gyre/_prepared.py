"""Prepared asks: one request, sent again and again, whose fields and whose reply's are used in place."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy

from . import _asyncio
from ._errors import BUSY, BadArgument, Error, failure, nanoseconds, number_of_bits, shown
from ._library import lib
from ._schema import Schema, no_such_field
from ._views import NUMBERS, Classes, put_word, struct_at

if TYPE_CHECKING:
    from ._ask_by_ctypes import Ask
    from ._runtime import Runtime
else:
    try:
        from ._ask import Ask, bind
    except ImportError:  # built without Python's headers
        from ._ask_by_ctypes import Ask
    else:
        _functions = (lib.gyre_ask, lib.gyre_call_wait, lib.gyre_call_reply, lib.gyre_call_release)
        bind(*(ctypes.cast(function, ctypes.c_void_p).value for function in _functions))

_FIRST_REPLY_BYTES = 4096
_MOST_ELEMENTS = 1 << 29  # that a list's pointer counts


class _Request:
    """The request's bytes. Their layout never changes."""

    _generation = 1

    def __init__(self, what: str, content: bytes) -> None:
        self._what = what
        self._size = len(content)
        self._memory = _memory(len(content))
        self._memory[: len(content)] = content


def _memory(size: int) -> memoryview:
    """Zeroed bytes, aligned to words, and a word behind them."""
    words: Any = numpy.zeros((size + 7) // 8 + 1, "u8")
    return memoryview(words.view("u1"))


def _address(memory: memoryview) -> int:
    return int(numpy.frombuffer(memory, "u1").ctypes.data)


class Prepared(Ask):
    """A request that is built once and sent many times. Client.prepare makes it. Used by one thread at a time.

        ask = client.prepare("gyre::actors::VectorAdd", 1, "VectorAddRequest", a=64, b=64)
        ask.request.a[:] = x
        ask()
        ask.reply.result

    Calling it sends the request, waits, and returns `reply`. send() and wait() do the two halves: with several prepared
    asks, several are in flight."""

    #: The request's fields, as attributes. A list of numbers is a NumPy array of the message's own memory.
    request: Any
    #: The reply's fields, likewise and read only. The next call overwrites them: copy what you keep.
    reply: Any

    def __init__(
        self, runtime: Runtime, actor: str, key: int, request: str | int, message: Mapping[str, Any],
        lengths: Mapping[str, int], timeout: float | None, max_reply_bytes: int,
    ) -> None:  # fmt: skip
        schema = runtime.schema
        type_id = schema.type_id(request)
        if str(type_id) not in schema._structs:
            schema.encode(type_id, {})  # says that there is no such type
        self._runtime, self._response = runtime, runtime._responses.get((actor, type_id), 0)
        struct = schema._structs[str(type_id)]
        doing = f"preparing an ask {struct['name']} of {actor}"
        if (actor, type_id) in runtime._responses and self._response == 0:
            raise BadArgument(f"{doing}: its handler sends no reply; use Client.tell")
        if self._response == 0:
            handled = [f"{name} {schema.name_of(taken)}" for (name, taken) in runtime._responses]
            raise BadArgument(f"{doing}: the runtime has no such handler; it has {', '.join(handled)}")
        content = _append_lists(doing, schema, type_id, schema.encode(type_id, message), lengths)
        if schema._views is None:
            schema._views = Classes(schema)
        body = _Request(f"a request {struct['name']}", content)
        self._what = f"a reply {schema.name_of(self._response)}"
        self._body = body
        self._is_awaited = False
        self._grow(_FIRST_REPLY_BYTES)
        self._set_up(
            runtime._handle, actor.encode(), number_of_bits("key", key, 64), type_id, _address(body._memory), body._size,
            nanoseconds(timeout), number_of_bits("max_reply_bytes", max_reply_bytes, 32),
        )  # fmt: skip
        self.request = schema._views.root(body, type_id, True)
        self.reply = schema._views.root(self, self._response, False)
        for name in lengths:
            if struct["fields"][name] == "Text":
                setattr(self.request, name, "")

    @property
    def key(self) -> int:
        """Selects the actor among those of its type. May be set between calls."""
        return int(self._key)

    @key.setter
    def key(self, key: int) -> None:
        self._key = number_of_bits("key", key, 64)

    async def wait_async(self) -> Any:
        """Waits for the reply to what send() sent without blocking the event loop, and returns it. Cancelling the
        coroutine cancels the ask."""
        if not self._call:
            self._idle()
        if self._is_awaited:
            self._in_flight()
        self._is_awaited = True
        try:
            await _asyncio.queue_of(asyncio.get_running_loop()).outcome(self._call)
        except BaseException:
            self._abandon()
            raise
        finally:
            self._is_awaited = False
        return self._collect()

    def as_dict(self) -> dict[str, Any]:
        """Returns the reply as Client.ask does: a dict of its fields, without null pointers."""
        if self._size < 0:
            raise Error(f"reading {self._what}: there is none; the last call failed, or there was none yet")
        found: dict[str, Any] = self._runtime.schema._decode(self._response, _address(self._memory), self._size)
        return found

    def __repr__(self) -> str:
        return f"<gyre.Prepared {self.request!r} to key {self.key}>"

    # What the inner call uses.

    def _grow(self, size: int) -> None:
        """Gives the reply other memory. Arrays of earlier replies keep theirs."""
        self._memory = _memory(size)
        self._set_reply_memory(_address(self._memory), size)

    def _failed(self, status: int) -> None:
        raise failure(status)

    def _in_flight(self) -> None:
        raise Error(
            f"asking by {self._body._what}: it is in flight; wait for its reply first, or prepare one for each thread "
            "and each ask at a time", BUSY, "busy"
        )  # fmt: skip

    def _idle(self) -> None:
        raise BadArgument(f"waiting for {self._what}: nothing is in flight; send() first")


def _append_lists(doing: str, schema: Schema, type_id: int, content: bytes, lengths: Mapping[str, int]) -> bytes:
    """Appends lists of zeros behind an encoded message, and points the root's fields to them."""
    struct = schema._structs[str(type_id)]
    extended = bytearray(content)
    words, pointers = struct["layout"]["words"], struct["layout"]["pointers"]
    first = struct_at(_Request(doing, content), "", 0)[0] // 8 + words  # word of the first pointer
    for name, length in lengths.items():
        if name not in struct["fields"]:
            raise BadArgument(f"{doing}: {no_such_field(name, struct, length)}")
        if name in struct.get("union", ()):
            raise BadArgument(f"{doing}: {name} is a field of the union of {struct['name']}; choose it in the message")
        of, at = struct["fields"][name], struct["layout"]["fields"][name]["at"]
        if not isinstance(length, int) or not 0 <= length < _MOST_ELEMENTS:
            raise BadArgument(f"{doing}: {name}={shown(length)}: give the number of its elements, below {_MOST_ELEMENTS}; "
                              "values go into the message")
        listed = of.get("list") if isinstance(of, dict) else None
        count, bits, code, head = length, 8, 2, b""
        if of == "Text":
            count = length + 1
        elif listed == "Bool":
            bits, code = 1, 1
        elif isinstance(listed, str) and listed in NUMBERS:
            bits = 8 * NUMBERS[listed][2]
            code = {8: 2, 16: 3, 32: 4, 64: 5}[bits]
        elif isinstance(listed, dict) and "enum" in listed:
            bits, code = 16, 3
        elif isinstance(listed, dict) and "struct" in listed:
            layout = schema._structs[listed["struct"]]["layout"]
            element = layout["words"] + layout["pointers"]
            head = put_word(length << 2 | layout["words"] << 32 | layout["pointers"] << 48)
            bits, code, count = 64 * element, 7, length * element
        elif of != "Data":
            raise BadArgument(f"{doing}: {name}={length}: it is no list of numbers, flags, enums or structs, no Text and no "
                              "Data; give it in the message, as Client.ask takes it")
        if not first <= (word := first + at) < first + pointers or extended[8 * word : 8 * word + 8] != bytes(8):
            raise BadArgument(f"{doing}: {name} is given twice, as its length and in the message; give one of them")
        offset = len(extended) // 8 - word - 1
        extended[8 * word : 8 * word + 8] = put_word(1 | offset << 2 | code << 32 | count << 35)
        size = ((count if code != 7 else length) * bits + 63) // 64 * 8
        extended += head + bytes(size)
    return bytes(extended)
