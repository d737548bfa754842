"""Buffers in other packages: DLPack capsules, and exports that the array interfaces name."""

from __future__ import annotations

import ctypes
from typing import Any

from ._errors import check
from ._library import Handle, lib

HOST, CUDA = 1, 2  # DLPack's device types
_NAMES = {0: b"dltensor", 1: b"dltensor_versioned"}
_DELETER = {0: 56, 1: 16}  # its offset in a DLManagedTensor, in a DLManagedTensorVersioned

_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, _Destructor]
# Of a capsule that is being destroyed: a py_object would count it anew.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _delete(capsule: int) -> None:
    """A consumer renames the capsule, and calls the deleter itself."""
    for version, name in _NAMES.items():
        if _is_valid(capsule, name):
            tensor = _pointer(capsule, name)
            deleter = ctypes.c_void_p.from_address(tensor + _DELETER[version]).value or 0
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(tensor)


_destroy = _Destructor(_delete)


def capsule(buffer_handle: int, version: int) -> Any:
    """Returns a DLPack capsule of the buffer: of DLPack 1.0 if `version` is 1, of an older one if it is 0."""
    tensor = ctypes.c_void_p()
    check(lib.gyre_buffer_to_dlpack(buffer_handle, version, ctypes.byref(tensor)))
    return _new(tensor, _NAMES[version], _destroy)


class Export:
    """Keeps a buffer's memory for code outside Gyre. `device`: the CUDA device that has it; -1: the host."""

    def __init__(self, buffer_handle: int) -> None:
        handle, address, device = Handle(), ctypes.c_void_p(), ctypes.c_int32()
        check(
            lib.gyre_buffer_export(buffer_handle, ctypes.byref(handle), ctypes.byref(address), ctypes.byref(device))
        )
        self._handle, self.address, self.device = handle.value, address.value, device.value

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            lib.gyre_export_release(self._handle)
