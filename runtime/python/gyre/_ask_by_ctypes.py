"""The inner call of a prepared ask, by ctypes. The extension gyre._ask does the same in less time."""

from __future__ import annotations

import ctypes
from typing import Any

from ._errors import ARENA_FULL, CALL_TABLE_FULL, NOT_READY, OK, RING_FULL
from ._library import Handle, SendOptions, lib

_KEPT_NS, _BETWEEN_SIGNALS_NS = 20_000, 50_000_000
_REFUSE, _WAIT = 1, 0


class Ask:
    """Sends one request's bytes again and again, and copies each reply into memory of the caller's."""

    _call = 0  # 0: none in flight
    _size = -1  # -1: there is no reply
    _generation = 0  # of the reply

    def _set_up(
        self, runtime: int, actor: bytes, key: int, request: int, body: int, size: int, timeout: int, max_reply: int
    ) -> None:
        self._to = runtime, actor
        self._key = key
        self._message = request, ctypes.c_void_p(body), size
        self._options = SendOptions(timeout_ns=timeout, max_reply_bytes=max_reply)
        self._busy = False

    def _set_reply_memory(self, address: int, capacity: int) -> None:
        self._reply_memory = address, capacity

    def __call__(self) -> Any:
        self.send()
        try:
            self._wait()
        except BaseException:
            self._abandon()
            raise
        return self._collect()

    def send(self) -> None:
        """Sends the request, and does not wait for the reply."""
        if self._call or self._busy:
            self._in_flight()
        call = Handle()
        self._busy = True
        try:
            for when_full in (_REFUSE, _WAIT):
                self._options.when_full = when_full
                status = lib.gyre_ask(
                    *self._to, self._key, *self._message, ctypes.byref(self._options), ctypes.byref(call)
                )
                if status not in (RING_FULL, CALL_TABLE_FULL, ARENA_FULL):
                    break
            if status != OK:
                self._failed(status)
            self._call = call.value
        finally:
            self._busy = False

    def wait(self) -> Any:
        """Waits for the reply to what send() sent, and returns it."""
        if not self._call:
            self._idle()
        if self._busy:
            self._in_flight()
        self._wait()
        return self._collect()

    def _wait(self) -> None:
        self._busy = True
        try:
            status = lib.gyre_call_wait(self._call, _KEPT_NS)
            while status == NOT_READY:
                status = lib.gyre_call_wait(self._call, _BETWEEN_SIGNALS_NS)
            if status != OK:
                self._failed(status)
        finally:
            self._busy = False

    def _collect(self) -> Any:
        if not self._call:
            self._idle()
        body, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._generation += 1
        self._size = -1
        try:
            status = lib.gyre_call_reply(self._call, ctypes.byref(body), ctypes.byref(size))
            if status != OK:
                self._failed(status)
            if size.value > self._reply_memory[1]:
                self._grow(size.value)
            ctypes.memmove(self._reply_memory[0], body, size.value)
            self._size = size.value
        finally:
            self._abandon()
        return self.reply

    def _abandon(self) -> None:
        call, self._call = self._call, 0
        if call:
            lib.gyre_call_release(call)

    def __del__(self) -> None:
        self._abandon()

    # The prepared ask has these.
    reply: Any

    def _grow(self, size: int) -> None:
        raise NotImplementedError

    def _failed(self, status: int) -> None:
        raise NotImplementedError

    def _in_flight(self) -> None:
        raise NotImplementedError

    def _idle(self) -> None:
        raise NotImplementedError
