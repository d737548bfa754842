"""Outcomes of asks for asyncio: one queue per event loop."""

from __future__ import annotations

import asyncio
import ctypes
import weakref

from ._errors import OK, check
from ._library import Handle, lib


class _LoopQueue:
    """Resumes the asks that one event loop awaits. The loop watches the queue's descriptor while asks are pending."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        handle, fd = Handle(), ctypes.c_int32()
        check(lib.gyre_queue_create(ctypes.byref(handle)))
        self._handle = handle.value
        check(lib.gyre_queue_fd(self._handle, ctypes.byref(fd)))
        self._fd = fd.value
        self._pending: dict[int, asyncio.Future[None]] = {}

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            lib.gyre_queue_release(self._handle)

    async def outcome(self, call: int) -> None:
        """Waits until the call is done. Cancelling the coroutine cancels the ask."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        if not self._pending:
            loop.add_reader(self._fd, self._take)
        self._pending[call] = future
        try:
            check(lib.gyre_queue_watch(self._handle, call, 0))
            await future
        except asyncio.CancelledError:
            lib.gyre_call_cancel(call, None)
            raise
        finally:
            del self._pending[call]
            if not self._pending:
                loop.remove_reader(self._fd)

    def _take(self) -> None:
        call, tag = Handle(), ctypes.c_uint64()
        while lib.gyre_queue_take(self._handle, ctypes.byref(call), ctypes.byref(tag)) == OK:
            future = self._pending.get(call.value)
            if future is not None and not future.done():
                future.set_result(None)


_queues: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopQueue] = weakref.WeakKeyDictionary()


def queue_of(loop: asyncio.AbstractEventLoop) -> _LoopQueue:
    """Returns the queue of an event loop; makes it on first use."""
    found = _queues.get(loop)
    if found is None:
        found = _queues[loop] = _LoopQueue(loop)
    return found
