"""Exceptions. Each has the status, and Gyre's text with the numbers and what to do."""

from __future__ import annotations

import ctypes
import operator
from typing import Any

from ._library import lib


class Error(Exception):
    """A Gyre function failed. `status` is the failure's number, `name` its name in docs/reference/errors.md ("ring_full")."""

    def __init__(self, text: str, status: int = 0, name: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.name = name


class TimedOut(Error, TimeoutError):
    """No reply arrived before the deadline."""


class BadArgument(Error, ValueError):
    """An argument, an option, a schema, a name or a message's content is wrong."""


class EngineUnavailable(Error):
    """This machine has no such engine; the text says why, and what to install."""


class Closed(Error):
    """The runtime, buffer or schema was closed, or has terminated."""


_CLASSES = {
    "timed_out": TimedOut,
    "invalid_argument": BadArgument,
    "bad_options": BadArgument,
    "bad_schema": BadArgument,
    "unknown_type": BadArgument,
    "bad_json": BadArgument,
    "engine_unavailable": EngineUnavailable,
    "bad_handle": Closed,
    "stale_handle": Closed,
    "terminated": Closed,
}

OK = 0
RING_FULL, CALL_TABLE_FULL, ARENA_FULL = 1, 2, 9
MALFORMED = 21
BUSY, NOT_READY, TOO_SMALL, BAD_SCHEMA, BAD_JSON = 1003, 1004, 1005, 1010, 1012


def failure(status: int) -> Error:
    """Makes the exception for the status that this thread's last call returned."""
    text: str = lib.gyre_last_error().decode()
    name: str = lib.gyre_status_name(status).decode()
    return _CLASSES.get(name, Error)(text, status, name)


def check(status: int) -> None:
    """Raises the exception for a status, unless it is OK."""
    if status != OK:
        raise failure(status)


def bytes_of(function: Any, *arguments: Any) -> bytes:
    """Calls a function that writes bytes or text (see gyre.h, Text) and returns the bytes."""
    size = ctypes.c_size_t()
    capacity = 4096
    while True:
        buffer = ctypes.create_string_buffer(capacity)
        status = function(*arguments, buffer, capacity, ctypes.byref(size))
        if status != TOO_SMALL:
            check(status)
            return buffer.raw[: size.value]
        capacity = size.value + 1


def text_of(function: Any, *arguments: Any) -> str:
    """Calls a function that writes text and returns the text."""
    return bytes_of(function, *arguments).decode()


def shown(value: object) -> str:
    """Returns a short text for a value of any class, for an error's text."""
    try:
        text = repr(value)
    except Exception as error:  # an int with too many digits, or a __repr__ that raises
        return f"of type {type(value).__name__}, whose repr() raises {type(error).__name__}"
    return text if len(text) <= 80 else text[:77] + "…"


def nanoseconds(seconds: float | None) -> int:
    """Converts a timeout in seconds to nanoseconds; None becomes -1, the runtime's own."""
    if seconds is None:
        return -1
    if not 0 <= seconds <= 10**9:
        raise BadArgument(f"a timeout of {shown(seconds)} s: give 0 to 10^9 seconds, or None for the runtime's own")
    return int(seconds * 1_000_000_000)


def number_of_bits(name: str, value: Any, bits: int) -> int:
    """Returns an integer that fits. ctypes truncates numbers that do not: the message would go to another actor."""
    number = operator.index(value)
    if not 0 <= number < 1 << bits:
        raise BadArgument(f"{name} {shown(value)}: give 0 to 2^{bits} - 1")
    return number
