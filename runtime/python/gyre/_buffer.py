"""Buffers: memory that messages name by a handle, copied from and to NumPy arrays."""

from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Any

from ._errors import BadArgument, Error, check, nanoseconds, shown
from ._library import BufferHandle, Handle, Import, lib
from ._tensor import describe, drop, keep, refusal, release_keeper

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from ._runtime import Runtime

    Array = NDArray[Any]

MEMORIES = {"device": 0, "pinned": 1, "unified": 2}
# Names of element types by their gyre_element numbers.
ELEMENTS = ["none", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]


class Buffer:
    """Owns a typed block of device, pinned or unified memory, or uses a tensor's. Runtime.buffer and
    Runtime.import_tensor make it.

    Pass a Buffer for a BufferHandle field of a message. It is closed by `with`, close() or garbage collection. Used by
    one thread at a time."""

    read_only = False  # True: handlers must ask for Context::buffer<const T>, and write() is refused

    def __init__(self, runtime: Runtime, like: Any, memory: str = "device") -> None:
        import numpy

        if memory not in MEMORIES:
            raise BadArgument(f"memory {shown(memory)}: give one of {', '.join(MEMORIES)}")
        array = like if isinstance(like, numpy.ndarray) else None
        dtype, size = (array.dtype, array.size) if array is not None else (numpy.dtype(like[0]), int(like[1]))
        if dtype.name not in ELEMENTS[1:] or not dtype.isnative:
            raise BadArgument(f"a buffer of {dtype}: its elements are one of {', '.join(ELEMENTS[1:])}")
        self.dtype, self.size, self.memory = dtype, size, memory
        self._views: list[weakref.ref[Any]] = []  # weak references to the arrays of view()
        handle = Handle()
        check(
            lib.gyre_buffer_create(
                runtime._handle, MEMORIES[memory], ELEMENTS.index(dtype.name), size, ctypes.byref(handle)
            )
        )
        self._handle = handle.value
        if array is not None:
            self.write(array)

    @classmethod
    def _of_tensor(cls, runtime: Runtime, tensor: Any, read_only: bool | None) -> Buffer:
        import numpy

        there = describe(tensor)
        if there.dtype not in ELEMENTS[1:]:
            raise refusal(tensor, f"it has elements of {there.dtype}, and a buffer has one of {', '.join(ELEMENTS[1:])}; "
                          "view it as one of these with the same size")
        if there.size == 0:
            raise refusal(tensor, "it has no elements, and a buffer has one at least")
        if not there.is_contiguous():
            raise refusal(tensor, f"its strides are {there.strides}, and a buffer's elements lie one after the other; "
                          "import a contiguous copy")
        if there.read_only and read_only is False:
            raise refusal(tensor, "it is immutable; import it with read_only=True, or a copy that may be changed")
        self = cls.__new__(cls)
        self.dtype, self.size, self.memory, self._views = numpy.dtype(there.dtype), there.size, "imported", []
        self.read_only = there.read_only or bool(read_only)
        asked = Import()
        asked.elements, asked.element, asked.count = there.address, ELEMENTS.index(there.dtype), there.size
        asked.access, asked.stream = int(self.read_only), there.stream
        asked.release, asked.owner = release_keeper, keep(there.keeper)
        handle = Handle()
        try:
            check(lib.gyre_buffer_import(runtime._handle, ctypes.byref(asked), ctypes.byref(handle)))
        except Error as error:
            drop(asked.owner)
            raise type(error)(str(refusal(tensor, error)), error.status, error.name) from None
        self._handle = handle.value
        return self

    def __enter__(self) -> Buffer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            lib.gyre_buffer_release(self._handle)

    def __len__(self) -> int:
        return self.size

    def close(self) -> None:
        """Frees the buffer; its handles become stale. Raises BufferError while arrays of view() exist."""
        self._views = [view for view in self._views if view() is not None]
        if self._views:
            raise BufferError(f"closing a buffer: {len(self._views)} arrays of its view() are in use; drop them first")
        handle, self._handle = self._handle, 0
        if handle:
            check(lib.gyre_buffer_release(handle))

    def handle(self, length: int = 0) -> dict[str, Any]:
        """Returns the fields of a BufferHandle that names the first `length` elements; 0: all."""
        handle = BufferHandle()
        check(lib.gyre_buffer_get_handle(self._handle, length, ctypes.byref(handle)))
        return {
            "index": handle.index,
            "generation": handle.generation,
            "runtime": handle.runtime,
            "element": ELEMENTS[handle.element],
            "length": handle.length,
        }

    def write(self, array: Any, offset: int = 0) -> None:
        """Copies an array into the buffer from element `offset` on, and returns when it is there. A contiguous array of
        the buffer's type is copied once; other arrays are converted first."""
        import numpy

        array = numpy.ascontiguousarray(array, dtype=self.dtype)
        self._check_offset(offset)
        check(lib.gyre_buffer_write(self._handle, offset * self.dtype.itemsize, array.ctypes.data, array.nbytes))

    def read(self, out: Array | None = None, offset: int = 0) -> Array:
        """Copies elements out of the buffer from element `offset` on, and returns the array. What a handler wrote is
        visible once its reply has arrived.

        out: a contiguous, writeable array of the buffer's type; by default a new array of the elements from there on.
        """
        import numpy

        self._check_offset(offset)
        if out is None:
            out = numpy.empty(self.size - offset, dtype=self.dtype)
        if not isinstance(out, numpy.ndarray) or out.dtype != self.dtype or not out.flags.c_contiguous \
                or not out.flags.writeable:
            raise BadArgument(f"reading a buffer: out must be a contiguous, writeable array of {self.dtype}")
        check(lib.gyre_buffer_read(self._handle, offset * self.dtype.itemsize, out.ctypes.data, out.nbytes))
        return out

    def view(self, timeout: float | None = None) -> Array:
        """Returns an array that shares the elements of pinned or unified memory. Call it again after each reply, to see
        what the handler wrote. For unified memory it waits until every worker is past all messages sent before, at most
        `timeout` seconds."""
        import numpy

        address = ctypes.c_void_p()
        check(lib.gyre_buffer_view(self._handle, nanoseconds(timeout), ctypes.byref(address)))
        shared: Any = (ctypes.c_char * (self.size * self.dtype.itemsize)).from_address(address.value or 0)
        shared._buffer = self  # keeps the buffer alive as long as the array
        self._views.append(weakref.ref(shared))
        found: Array = numpy.frombuffer(shared, dtype=self.dtype)
        return found

    def _check_offset(self, offset: int) -> None:
        if not 0 <= offset <= self.size:
            raise BadArgument(f"element {shown(offset)} of a buffer of {self.size}: there is none")
