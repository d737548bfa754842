"""Copies of buffers that go on by themselves."""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import threading
from typing import TYPE_CHECKING, Any, Callable, Generator

from ._errors import NOT_READY, OK, TimedOut, check, failure, nanoseconds
from ._library import CopyDone, Handle, lib

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_numbers = itertools.count(1)
_notified: dict[int, Copy] = {}  # those that the library will call for, by number


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _on_done(number: int | None, _: int) -> None:
    copy = _notified.pop(number or 0, None)
    if copy is not None:
        copy._wake()


_copy_done = CopyDone(_on_done)  # for good: the library may call it until the process ends


class Copy:
    """A copy of a buffer that goes on by itself. Buffer.write_async and Buffer.read_async begin it. Its outcome is the
    array: `await` the copy, or call wait(). The array is kept until the copy is done. Any thread may use it."""

    def __init__(self, array: Array) -> None:
        self._handle = Handle()
        self._begun = True  # unless begin() learns that it was refused
        self._array = array
        self._lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._asked = False  # for a call when it is done

    def __del__(self) -> None:
        if self._handle.value:
            lib.gyre_copy_release(self._handle)

    def begin(self, begin: Callable[[Handle], int]) -> None:
        """Called once, by the buffer: `begin` has the library begin the copy and store its handle."""
        status = begin(self._handle)
        self._begun = status == OK
        check(status)

    def done(self) -> bool:
        """Returns whether wait() will not block."""
        if not self._handle.value:
            return not self._begun
        return bool(lib.gyre_copy_wait(self._handle, 0) != NOT_READY)

    def wait(self, timeout: float | None = None) -> Array:
        """Blocks until the copy is done, at most `timeout` seconds, and returns the array. None: however long it takes.
        Raises TimedOut after the timeout, Error if the copy failed."""
        status = lib.gyre_copy_wait(self._handle, nanoseconds(timeout))
        if status == NOT_READY:
            error = failure(status)
            raise TimedOut(str(error), error.status, error.name)
        check(status)
        return self._array

    def __await__(self) -> Generator[Any, None, Array]:
        return self._outcome().__await__()

    async def _outcome(self) -> Array:
        if not self.done():
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            with self._lock:
                self._waiting.append((loop, future))
                asks = not self._asked
                self._asked = True
            if asks:
                number = next(_numbers)
                _notified[number] = self
                try:
                    check(lib.gyre_copy_notify(self._handle, _copy_done, ctypes.c_void_p(number)))
                except BaseException:
                    _notified.pop(number, None)
                    self._asked = False
                    raise
            elif self.done():  # the call may have come before this coroutine was in the list
                self._wake()
            await future
        return self.wait()

    def _wake(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            try:
                loop.call_soon_threadsafe(_finish, future)
            except RuntimeError:  # the loop is closed: nobody waits any more
                pass
