"""Buffers: memory that messages name by a handle, copied from and to NumPy arrays."""

from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Any

from . import _export
from ._copies import Copy
from ._errors import BadArgument, Error, check, nanoseconds, shown
from ._library import BufferHandle, BufferInfo, Handle, Import, lib
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

    Pass a Buffer for a BufferHandle field of a message. Other packages use device and host memory in place, as an array
    of one dimension: by __dlpack__ (torch.from_dlpack, cupy.from_dlpack, jax.dlpack.from_dlpack, numpy.from_dlpack), by
    __cuda_array_interface__ (Numba, CuPy) or __array_interface__ (NumPy). The memory stays until the last of their
    arrays is gone, also if the buffer is closed. Of work on it nothing is ordered: wait for replies before you use it,
    and for the GPU before you send a message.

    It is closed by `with`, close() or garbage collection. Used by
    one thread at a time."""

    _exported: _export.Export | None = None  # what the array interfaces name: kept as long as this object, which their arrays keep
    _copies: list[Copy] = []  # that go on; never changed in place
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
        self._copies = []  # they are done

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
        out = self._array_to_read(out, offset)
        check(lib.gyre_buffer_read(self._handle, offset * self.dtype.itemsize, out.ctypes.data, out.nbytes))
        return out

    def _array_to_read(self, out: Array | None, offset: int) -> Array:
        import numpy

        self._check_offset(offset)
        if out is None:
            out = numpy.empty(self.size - offset, dtype=self.dtype)
        if not isinstance(out, numpy.ndarray) or out.dtype != self.dtype or not out.flags.c_contiguous \
                or not out.flags.writeable:
            raise BadArgument(f"reading a buffer: out must be a contiguous, writeable array of {self.dtype}")
        return out

    def write_async(self, array: Any, offset: int = 0) -> Copy:
        """Begins to copy an array into the buffer from element `offset` on: `await` what it returns, or wait() for it.
        Copies of one buffer are made in the order of the calls. Do not change the array before the copy is done. A
        contiguous array of the buffer's type is copied once; other arrays are converted first."""
        import numpy

        array = numpy.ascontiguousarray(array, dtype=self.dtype)
        self._check_offset(offset)
        return self._begin(lib.gyre_buffer_write_async, array, offset)

    def read_async(self, out: Array | None = None, offset: int = 0) -> Copy:
        """Begins to copy elements out of the buffer from element `offset` on; the outcome is the array. What a handler
        wrote is copied once its reply has arrived. Arguments and order: read(), write_async()."""
        return self._begin(lib.gyre_buffer_read_async, self._array_to_read(out, offset), offset)

    def _begin(self, begin: Any, array: Array, offset: int) -> Copy:
        # Arrays stay until their copies are done, whatever the program keeps of them: also where Ctrl-C comes between
        # the begin of a copy and its return.
        copy = Copy(array)
        self._copies = [each for each in self._copies if not each.done()] + [copy]
        copy.begin(
            lambda handle: begin(
                self._handle, offset * self.dtype.itemsize, array.ctypes.data, array.nbytes, ctypes.byref(handle)
            )
        )
        return copy

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

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self._device()
        return (_export.HOST, 0) if device < 0 else (_export.CUDA, device)

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """Returns a capsule that shares the elements. `stream` is ignored: no work on them is under way once the replies
        have arrived. The first time on a GPU the program must have a CUDA context there."""
        if copy:
            raise BufferError("exporting a buffer: it is not copied; pass copy=None, or copy it by read()")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"exporting a buffer: it is on DLPack's device {self.__dlpack_device__()}, and "
                              f"{shown(dl_device)} is asked for; copy it there from an array that shares it")
        return _export.capsule(self._handle, 0 if max_version is None or max_version[0] < 1 else 1)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._device() < 0:
            raise AttributeError("a buffer in host memory has __array_interface__")
        return dict(self._array_interface(), stream=None)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self._device() >= 0:
            raise AttributeError("a buffer in device memory has __cuda_array_interface__; copy it by read()")
        return self._array_interface()

    def _array_interface(self) -> dict[str, Any]:
        if self._exported is None:
            self._exported = _export.Export(self._handle)
        return {"shape": (self.size,), "typestr": self.dtype.str, "data": (self._exported.address, False),
                "strides": None, "version": 3}

    def _device(self) -> int:
        """The CUDA device that has the memory; -1: the host."""
        info = BufferInfo()
        check(lib.gyre_buffer_get_info(self._handle, ctypes.byref(info)))
        return int(info.device)

    def _check_offset(self, offset: int) -> None:
        if not 0 <= offset <= self.size:
            raise BadArgument(f"element {shown(offset)} of a buffer of {self.size}: there is none")
