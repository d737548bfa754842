"""Declares the structs and functions of the C interface <gyre/gyre.h> for ctypes."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pathlib
from typing import Any
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p

Handle = c_uint64
Status = c_int32


class _Struct(ctypes.Structure):
    """Base of the structs that begin with struct_size, and sets this field."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)


class Text(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("text", c_char_p), ("text_length", c_size_t)]


class ErrorEntry(_Struct):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("meaning", c_char_p), ("check", c_char_p)]


class Source(_Struct):
    _fields_ = [
        ("struct_size", c_size_t),
        ("text", c_char_p),
        ("text_length", c_size_t),
        ("types", POINTER(c_char_p)),
        ("type_count", c_size_t),
        ("headers", POINTER(Text)),
        ("header_count", c_size_t),
        ("schema", Handle),
    ]


class Options(_Struct):
    _fields_ = [
        ("struct_size", c_size_t),
        ("engine", c_int32),
        ("device", c_int32),
        ("transport", c_int32),
        ("wait", c_int32),
        ("workers", c_uint32),
        ("block", c_uint32),
        ("blocks", c_uint32),
        ("slots", c_uint32),
        ("slot_bytes", c_uint32),
        ("max_reply_bytes", c_uint32),
        ("actors_per_worker", c_uint32),
        ("max_buffers", c_uint32),
        ("grid_scoped", c_int32),
        ("verbose", c_int32),
        ("cache", c_int32),
        ("isolation", c_int32),
        ("timeout_ms", c_int64),
        ("arena_bytes", c_uint64),
        ("region_budget", c_uint64),
        ("keep_program", c_char_p),
        ("pin_workers", POINTER(c_int32)),
        ("pin_worker_count", c_size_t),
        ("heartbeat_timeout_ms", c_int64),
        ("restart_times", c_uint32),
        ("multiprocessors", c_uint32),
        ("restart_within_ms", c_int64),
        ("cuda_context", c_void_p),
        ("context", c_int32),
        ("reserved", c_int32),
        ("stall_after_ms", c_int64),
        ("spill_bytes", c_uint64),
        ("body_pool_bytes", c_uint64),
        ("body_bytes", c_uint32),
        ("reserved_2", c_uint32),
    ]


class Info(_Struct):
    _fields_ = [
        ("struct_size", c_size_t),
        ("engine", c_int32),
        ("transport", c_int32),
        ("state", c_int32),
        ("workers", c_uint32),
        ("slot_body_bytes", c_uint32),
        ("from_cache", c_int32),
        ("max_body_bytes", c_uint64),
        ("region_bytes", c_uint64),
        ("uptime_s", c_double),
        ("compile_ms", c_double),
        ("launch_ms", c_double),
        ("compiled_ahead", c_int32),
        ("reserved", c_int32),
    ]


class Handler(_Struct):
    _fields_ = [
        ("struct_size", c_size_t),
        ("actor", c_char_p),
        ("request_name", c_char_p),
        ("request", c_uint64),
        ("response", c_uint64),
    ]


class Termination(_Struct):
    _fields_ = [
        ("struct_size", c_size_t),
        ("worker_stuck", c_int32),
        ("balanced", c_int32),
        ("uptime_s", c_double),
        ("terminate_ms", c_double),
        ("sender_stuck", c_int32),
        ("reader_stuck", c_int32),
        ("unfinished", c_int32),
        ("buffers_stuck", c_int32),
    ]


class SendOptions(_Struct):
    _fields_ = [
        ("struct_size", c_size_t),
        ("encoding", c_int32),
        ("when_full", c_int32),
        ("timeout_ns", c_int64),
        ("expires_after_ns", c_int64),
        ("max_reply_bytes", c_uint32),
        ("reserved", c_uint32),
    ]


#: Called with an owner that is not needed any more.
ReleaseOwner = ctypes.CFUNCTYPE(None, c_void_p)
#: Called with a context, and the outcome of a copy that is done.
CopyDone = ctypes.CFUNCTYPE(None, c_void_p, Status)


class Import(_Struct):
    _fields_ = [
        ("struct_size", c_size_t),
        ("elements", c_void_p),
        ("element", c_int32),
        ("access", c_int32),
        ("count", c_uint64),
        ("stream", c_int64),
        ("release", ReleaseOwner),
        ("owner", c_void_p),
    ]


class BufferInfo(_Struct):
    _fields_ = [
        ("struct_size", c_size_t),
        ("memory", c_int32),
        ("element", c_int32),
        ("elements", c_uint64),
        ("bytes", c_uint64),
        ("device", c_int32),
        ("reserved", c_int32),
    ]


class BufferHandle(ctypes.Structure):
    _fields_ = [
        ("index", c_uint32),
        ("generation", c_uint32),
        ("runtime", c_uint32),
        ("element", c_uint16),
        ("reserved", c_uint16),
        ("length", c_uint64),
    ]


class Told(_Struct):
    _fields_ = [
        ("struct_size", c_size_t),
        ("actor", c_char_p),
        ("key", c_uint64),
        ("type_id", c_uint64),
        ("body", c_void_p),
        ("body_size", c_size_t),
        ("worker", c_uint32),
        ("reserved", c_uint32),
    ]


#: Called with a context, and a message of an actor to the host.
ToldHandler = ctypes.CFUNCTYPE(None, c_void_p, POINTER(Told))


class DeadLetter(_Struct):
    _fields_ = [
        ("struct_size", c_size_t),
        ("reason", Status),
        ("is_ask", c_int32),
        ("key", c_uint64),
        ("actor", c_char_p),
        ("message", c_char_p),
        ("text", c_char_p),
        ("body", c_void_p),
        ("body_size", c_size_t),
    ]


class ActorCursor(_Struct):
    _fields_ = [
        ("worker", c_uint32),
        ("slot", c_uint32),
        ("key", c_uint64),
        ("ended", c_int32),
        ("reserved", c_int32),
    ]


#: The structs by their names in the header.
STRUCTS = {
    "gyre_text": Text,
    "gyre_error_entry": ErrorEntry,
    "gyre_source": Source,
    "gyre_options": Options,
    "gyre_info": Info,
    "gyre_handler": Handler,
    "gyre_termination": Termination,
    "gyre_send_options": SendOptions,
    "gyre_import": Import,
    "gyre_buffer_info": BufferInfo,
    "gyre_buffer_handle": BufferHandle,
    "gyre_dead_letter": DeadLetter,
    "gyre_told": Told,
    "gyre_actor_cursor": ActorCursor,
}


def _fields_of(struct: Any) -> dict[str, Any]:
    return {entry[0]: entry[1] for entry in struct._fields_}


#: The types of the fields of each struct, by name.
FIELDS: dict[type, dict[str, Any]] = {struct: _fields_of(struct) for struct in STRUCTS.values()}

_ASK = [Handle, c_char_p, c_uint64, c_uint64, c_void_p, c_size_t, POINTER(SendOptions), POINTER(Handle)]
_START = [Handle, c_char_p, c_uint64, c_int64]
_TEXT_OUT = [c_char_p, c_size_t, POINTER(c_size_t)]

#: The functions that the package calls: the type that each returns, and the types of its parameters.
FUNCTIONS = {
    "gyre_version": (c_char_p, []),
    "gyre_status_name": (c_char_p, [Status]),
    "gyre_last_error": (c_char_p, []),
    "gyre_schema_parse": (Status, [POINTER(Text), c_size_t, POINTER(Handle)]),
    "gyre_schema_type_id": (Status, [Handle, c_char_p, POINTER(c_uint64)]),
    "gyre_schema_describe": (Status, [Handle, *_TEXT_OUT]),
    "gyre_schema_view": (Status, [Handle, c_size_t, POINTER(Text)]),
    "gyre_schema_release": (Status, [Handle]),
    "gyre_message_from_json": (
        Status,
        [Handle, c_uint64, c_char_p, c_size_t, c_int32, c_void_p, c_size_t, POINTER(c_size_t)],
    ),
    "gyre_message_to_json": (Status, [Handle, c_uint64, c_void_p, c_size_t, c_int32, *_TEXT_OUT]),
    "gyre_actors_builtin": (Status, [POINTER(Handle)]),
    "gyre_actors_from_source": (Status, [POINTER(Source), POINTER(Handle)]),
    "gyre_actors_load": (Status, [c_char_p, c_char_p, POINTER(Handle)]),
    "gyre_actors_schema": (Status, [Handle, POINTER(Handle)]),
    "gyre_actors_check_schema": (Status, [Handle, Handle]),
    "gyre_actors_release": (Status, [Handle]),
    "gyre_options_init": (Status, [POINTER(Options), c_size_t]),
    "gyre_launch": (Status, [Handle, POINTER(Options), POINTER(Handle)]),
    "gyre_runtime_info": (Status, [Handle, POINTER(Info)]),
    "gyre_runtime_text": (Status, [Handle, c_int32, *_TEXT_OUT]),
    "gyre_runtime_handler": (Status, [Handle, c_size_t, POINTER(Handler)]),
    "gyre_on_told": (Status, [Handle, c_uint64, ToldHandler, c_void_p]),
    "gyre_set_active": (Status, [Handle, c_int32, c_int64]),
    "gyre_drain": (Status, [Handle, c_int64]),
    "gyre_relaunch": (Status, [Handle, c_int64]),
    "gyre_terminate": (Status, [Handle, c_int64, POINTER(Termination)]),
    "gyre_runtime_release": (Status, [Handle]),
    "gyre_send_options_init": (Status, [POINTER(SendOptions), c_size_t]),
    "gyre_ask": (Status, _ASK),
    "gyre_call_wait": (Status, [Handle, c_int64]),
    "gyre_call_poll": (Status, [Handle, POINTER(c_int32)]),
    "gyre_call_wait_on": (Status, [Handle, c_void_p]),
    "gyre_wait_for_stream": (Status, [Handle, c_void_p, c_int64]),
    "gyre_call_reply": (Status, [Handle, POINTER(c_void_p), POINTER(c_size_t)]),
    "gyre_call_cancel": (Status, [Handle, POINTER(c_int32)]),
    "gyre_call_release": (Status, [Handle]),
    "gyre_queue_create": (Status, [POINTER(Handle)]),
    "gyre_queue_fd": (Status, [Handle, POINTER(c_int32)]),
    "gyre_queue_watch": (Status, [Handle, Handle, c_uint64]),
    "gyre_queue_take": (Status, [Handle, POINTER(Handle), POINTER(c_uint64)]),
    "gyre_queue_release": (Status, [Handle]),
    "gyre_tell": (Status, _ASK[:-1]),
    "gyre_tell_with_receipt": (Status, _ASK),
    "gyre_start_actor": (Status, _START),
    "gyre_stop_actor": (Status, _START),
    "gyre_read_state": (Status, [*_START, c_void_p, c_size_t, POINTER(c_size_t)]),
    "gyre_list_actors": (
        Status,
        [Handle, c_char_p, POINTER(ActorCursor), POINTER(c_uint64), c_size_t, POINTER(c_size_t), c_int64],
    ),
    "gyre_buffer_create": (Status, [Handle, c_int32, c_int32, c_uint64, POINTER(Handle)]),
    "gyre_buffer_import": (Status, [Handle, POINTER(Import), POINTER(Handle)]),
    "gyre_buffer_get_handle": (Status, [Handle, c_uint64, POINTER(BufferHandle)]),
    "gyre_buffer_write": (Status, [Handle, c_uint64, c_void_p, c_uint64]),
    "gyre_buffer_read": (Status, [Handle, c_uint64, c_void_p, c_uint64]),
    "gyre_buffer_write_async": (Status, [Handle, c_uint64, c_void_p, c_uint64, POINTER(Handle)]),
    "gyre_buffer_read_async": (Status, [Handle, c_uint64, c_void_p, c_uint64, POINTER(Handle)]),
    "gyre_copy_wait": (Status, [Handle, c_int64]),
    "gyre_copy_notify": (Status, [Handle, CopyDone, c_void_p]),
    "gyre_copy_release": (Status, [Handle]),
    "gyre_buffer_view": (Status, [Handle, c_int64, POINTER(c_void_p)]),
    "gyre_buffer_get_info": (Status, [Handle, POINTER(BufferInfo)]),
    "gyre_buffer_export": (Status, [Handle, POINTER(Handle), POINTER(c_void_p), POINTER(c_int32)]),
    "gyre_buffer_to_dlpack": (Status, [Handle, c_int32, POINTER(c_void_p)]),
    "gyre_export_release": (Status, [Handle]),
    "gyre_buffer_release": (Status, [Handle]),
    "gyre_take_dead_letters": (Status, [Handle, POINTER(Handle), POINTER(c_size_t)]),
    "gyre_dead_letter_at": (Status, [Handle, c_size_t, POINTER(DeadLetter)]),
    "gyre_dead_letters_release": (Status, [Handle]),
}


def _name_cuda_folders() -> None:
    """Names the folders of the nvidia-* packages in $GYRE_CUDA_PATH, unless it is set: NVRTC and the toolkit's headers."""
    try:
        packages = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return
    folders = [
        str(folder)
        for packages_folder in (packages.submodule_search_locations or [] if packages else [])
        for folder in sorted(pathlib.Path(packages_folder).glob("*"))
        if (folder / "include").is_dir() or (folder / "lib").is_dir()
    ]
    if folders:
        os.environ.setdefault("GYRE_CUDA_PATH", ":".join(folders))


def _load() -> ctypes.CDLL:
    """$GYRE_LIBRARY, the library that was installed with the package, or the system's."""
    own = pathlib.Path(__file__).parent / "libgyre.so"
    path = os.environ.get("GYRE_LIBRARY") or (str(own) if own.exists() else "libgyre.so.0")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"loading Gyre's C library: {error}; set GYRE_LIBRARY to the path of libgyre.so, or install the package "
            "anew from Gyre's tree, which builds it"
        ) from error
    for name, (returns, takes) in FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(
                f"loading Gyre's C library: {path} has no function {name}, which this package calls: it is another version's; "
                "install package and library from one tree of Gyre, and set GYRE_LIBRARY to that library or not at all"
            ) from None
        function.restype = returns
        function.argtypes = takes
    return library


_name_cuda_folders()
lib = _load()
