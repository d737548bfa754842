"""Tensors of other packages: where their elements are on the GPU, by DLPack or __cuda_array_interface__."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any

from ._errors import BadArgument
from ._library import ReleaseOwner

DEFAULT_STREAM = 1  # CUDA's legacy default stream, as both protocols and gyre_import number it


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


_CUDA = 2
_DEVICES = {1: "on the host", 3: "in page-locked host memory", 10: "on a ROCm device", 13: "in managed memory"}
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
_IS_READ_ONLY = 1  # a bit of `flags`


def _capsule_function(name: str, returns: Any, *takes: Any) -> Any:
    function = getattr(ctypes.pythonapi, name)
    function.restype, function.argtypes = returns, takes
    return function


_capsule_is_valid = _capsule_function("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_capsule_pointer = _capsule_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)


class Tensor:
    """A tensor's elements. `keeper` keeps them allocated; `stream` has work on them that is not done (-1: none)."""

    def __init__(
        self, address: int, shape: Sequence[int], strides: Sequence[float] | None, dtype: str, read_only: bool,
        stream: int, keeper: object,
    ) -> None:  # fmt: skip
        self.address, self.shape, self.dtype, self.read_only = address, tuple(shape), dtype, read_only
        self.strides = None if strides is None else tuple(strides)  # in elements; None: contiguous
        self.stream, self.keeper = stream, keeper

    @property
    def size(self) -> int:
        size = 1
        for length in self.shape:
            size *= length
        return size

    def is_contiguous(self) -> bool:
        step = 1
        for length, stride in zip(reversed(self.shape), reversed(self.strides or ())):
            if length != 1 and stride != step:
                return False
            step *= length
        return True


def refusal(tensor: Any, why: object) -> BadArgument:
    """The error for a tensor that cannot be imported, which it names."""
    shape, dtype = getattr(tensor, "shape", None), getattr(tensor, "dtype", None)
    named = "" if shape is None else f" of shape {tuple(shape)}" + ("" if dtype is None else f" and {dtype}")
    return BadArgument(f"importing a {type(tensor).__name__}{named}: {why}")


def _from_dlpack(tensor: Any) -> Tensor:
    device = int(tensor.__dlpack_device__()[0])
    if device != _CUDA:
        where = _DEVICES.get(device, f"on a device of DLPack's type {device}")
        raise refusal(tensor, f"it is {where}, not on a CUDA device; move it there, or copy it with Runtime.buffer()")
    # The producer makes the default stream wait for its own, and the import waits for the default stream.
    try:
        capsule = tensor.__dlpack__(stream=DEFAULT_STREAM, max_version=(1, 0))
    except TypeError:  # a producer of before DLPack 1.0
        capsule = tensor.__dlpack__(stream=DEFAULT_STREAM)
    # Arrays of JAX are immutable, also where their capsule cannot say so.
    read_only = type(tensor).__module__.split(".")[0] in ("jax", "jaxlib")
    if _capsule_is_valid(capsule, b"dltensor_versioned"):
        managed = _DLManagedTensorVersioned.from_address(_capsule_pointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise refusal(tensor, f"its DLPack is of version {managed.major}, and Gyre knows 1")
        read_only = read_only or bool(managed.flags & _IS_READ_ONLY)
        there = managed.tensor
    elif _capsule_is_valid(capsule, b"dltensor"):
        there = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    else:
        raise refusal(tensor, "its __dlpack__ returned no DLPack capsule")
    dtype = f"{_CODES.get(there.code, f'type {there.code} of ')}{there.bits}" + (
        "" if there.lanes == 1 else f"x{there.lanes}"
    )
    # The capsule frees what it has when it is collected: it is kept, not consumed.
    return Tensor(
        (there.data or 0) + there.byte_offset, there.shape[: there.ndim],
        there.strides[: there.ndim] if there.strides else None, dtype, read_only, DEFAULT_STREAM, (tensor, capsule),
    )


def _from_cuda_array_interface(tensor: Any) -> Tensor:
    import numpy

    there = tensor.__cuda_array_interface__
    dtype = numpy.dtype(there["typestr"])
    if there.get("mask") is not None:
        raise refusal(tensor, "it has a mask, which a buffer has not")
    address, read_only = there["data"]
    strides = there.get("strides")
    if strides is not None:
        # Of what is no whole number of elements apart nothing is contiguous.
        strides = [stride / dtype.itemsize for stride in strides]
    stream = there.get("stream")
    return Tensor(address, there["shape"], strides, dtype.name if dtype.isnative else str(dtype), bool(read_only),
                  -1 if stream is None else int(stream), tensor)


def describe(tensor: Any) -> Tensor:
    """Returns the Tensor for any object with __dlpack__ or __cuda_array_interface__."""
    if hasattr(tensor, "__dlpack__") and hasattr(tensor, "__dlpack_device__"):
        return _from_dlpack(tensor)
    if hasattr(tensor, "__cuda_array_interface__"):
        return _from_cuda_array_interface(tensor)
    raise refusal(tensor, "it has neither __dlpack__ nor __cuda_array_interface__; copy it with Runtime.buffer()")


_keepers: dict[int, object] = {}
_keys = itertools.count(1)


def _release(key: int) -> None:
    """Called by Gyre, in any thread."""
    _keepers.pop(key, None)


release_keeper = ReleaseOwner(_release)


def keep(keeper: object) -> int:
    """Keeps an object until release_keeper() is called with the key that is returned."""
    key = next(_keys)
    _keepers[key] = keeper
    return key


def drop(key: int) -> None:
    """Likewise, where nothing was imported."""
    _keepers.pop(key, None)
