"""CUDA streams of other packages, ordered before and after asks."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Callable

from ._errors import NOT_READY, OK, BadArgument, check, failure, nanoseconds, shown
from ._library import lib

if TYPE_CHECKING:
    from ._runtime import Runtime


def handle_of(stream: Any) -> int:
    """Returns the CUstream of a stream of PyTorch, CuPy or Numba, of any object with __cuda_stream__, or an integer."""
    if isinstance(stream, int) and not isinstance(stream, bool):
        handle: Any = stream
    elif hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        handle = (protocol() if callable(protocol) else protocol)[1]
    else:
        handle = getattr(stream, "cuda_stream", None)  # PyTorch
        if handle is None:
            handle = getattr(stream, "ptr", None)  # CuPy
        if handle is None:
            handle = getattr(stream, "handle", None)  # Numba: a c_void_p
            handle = getattr(handle, "value", handle) or (None if handle is None else 0)
    if not isinstance(handle, int) or not 0 <= handle < 2**64:
        raise BadArgument(f"stream {shown(stream)}: give a stream of PyTorch, CuPy or Numba, or its CUstream as an integer")
    return handle


def wait_for(runtime: Runtime, stream: Any, timeout: float | None) -> None:
    """Waits until the work that the stream was given so far is done."""
    check(lib.gyre_wait_for_stream(runtime._handle, handle_of(stream), nanoseconds(timeout)))


class PendingReply:
    """An ask that was sent, or the receipt of a tell. Client.send() and tell_with_receipt() make it. Used by one thread
    at a time."""

    def __init__(self, call: int, reply: Callable[[int], Any]) -> None:
        self._call, self._reply = call, reply

    def __del__(self) -> None:
        if getattr(self, "_call", 0):
            lib.gyre_call_release(self._call)

    def wait_on(self, stream: Any) -> PendingReply:
        """Makes a CUDA stream wait for the outcome, and returns this object without blocking. What the stream is given
        later finds what the handler wrote. Once for an ask. The stream goes on at the latest at the ask's timeout,
        also if this object is dropped."""
        check(lib.gyre_call_wait_on(self._call, handle_of(stream)))
        return self

    def done(self) -> bool:
        """Returns whether wait() returns at once."""
        done = ctypes.c_int32()
        check(lib.gyre_call_poll(self._call, ctypes.byref(done)))
        return bool(done.value)

    def cancel(self) -> bool:
        """Cancels the ask, unless it has an outcome. Returns whether this call decided it. A worker may still handle
        the request."""
        cancelled = ctypes.c_int32()
        check(lib.gyre_call_cancel(self._call, ctypes.byref(cancelled)))
        return bool(cancelled.value)

    def wait(self) -> Any:
        """Waits for the reply and returns it, as Client.ask() does. For a receipt returns None."""
        while True:
            status = lib.gyre_call_wait(self._call, 50_000_000)
            if status == OK:
                return self._reply(self._call)
            if status != NOT_READY:
                raise failure(status)
