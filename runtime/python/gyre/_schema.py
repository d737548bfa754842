"""Schemas, and messages as dicts."""

import ctypes
import json
import math

from ._errors import TOO_SMALL, BadArgument, check, text_of
from ._library import Handle, Text, lib

BODY, STREAM, PACKED = 0, 1, 2
ENCODINGS = {"body": BODY, "stream": STREAM, "packed": PACKED}

_INTEGERS = {"Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"}
_FLOATS = {"Float32", "Float64"}


class Schema:
    """Cap'n Proto schemas: `files` maps names, as imports say them, to texts. Gyre's own messages are in each, and
    are importable as /gyre/messages/buffer.capnp and so on. Any thread may use one.

    A message is a dict of fields by name: numbers, str, bytes for Data, lists (or NumPy arrays) for lists, dicts for
    structs, groups and what a union holds, the enumerant's name for an enum; a gyre.Buffer for a BufferHandle. Fields
    that are not given have their defaults."""

    def __init__(self, files=None):
        files = dict(files or {})
        texts = (Text * max(len(files), 1))()
        for text, (name, content) in zip(texts, files.items()):
            encoded = content.encode()
            text.name, text.text, text.text_length = name.encode(), encoded, len(encoded)
        handle = Handle()
        check(lib.gyre_schema_parse(texts if files else None, len(files), ctypes.byref(handle)))
        self._handle = handle.value
        self._structs = json.loads(text_of(lib.gyre_schema_describe, self._handle))
        self._ids = {}

    def __del__(self):
        if getattr(self, "_handle", 0):
            lib.gyre_schema_release(self._handle)

    def type_id(self, name):
        """The 64-bit id of a struct: "VectorAddRequest", "Outer.Inner", "file.capnp:Name"; an id is itself."""
        if isinstance(name, int):
            return name
        found = self._ids.get(name)
        if found is None:
            value = ctypes.c_uint64()
            check(lib.gyre_schema_type_id(self._handle, name.encode(), ctypes.byref(value)))
            found = self._ids[name] = value.value
        return found

    def views(self):
        """The C++ headers that actors of these messages include, by name."""
        found = {}
        view = Text()
        while lib.gyre_schema_view(self._handle, len(found), ctypes.byref(view)) == 0:
            found[view.name.decode()] = view.text.decode()
        return found

    def encode(self, type_name, fields, encoding="body"):
        """The message as bytes."""
        type_id = self.type_id(type_name)
        text = json.dumps(self._to_json(fields, {"struct": str(type_id)}), ensure_ascii=False, allow_nan=False).encode()
        size = ctypes.c_size_t()
        capacity = 2 * len(text) + 256
        while True:
            buffer = ctypes.create_string_buffer(capacity)
            status = lib.gyre_message_from_json(
                self._handle, type_id, text, len(text), _encoding(encoding), buffer, capacity, ctypes.byref(size)
            )
            if status != TOO_SMALL:
                check(status)
                return buffer.raw[: size.value]
            capacity = size.value

    def decode(self, type_name, message, encoding="body"):
        """The message's fields, all but null pointers."""
        message = bytes(message)
        return self._decode(self.type_id(type_name), message, len(message), _encoding(encoding))

    def _decode(self, type_id, address, size, encoding=BODY):
        text = text_of(lib.gyre_message_to_json, self._handle, type_id, address, size, encoding)
        return self._from_json(json.loads(text), {"struct": str(type_id)})

    def _to_json(self, value, of):
        if isinstance(of, dict):
            if "list" in of:
                if hasattr(value, "tolist"):
                    value = value.tolist()
                return [self._to_json(element, of["list"]) for element in value]
            if hasattr(value, "handle"):
                value = value.handle()
            fields = self._structs.get(of["struct"], {"fields": {}})["fields"]
            return {name: self._to_json(field, fields.get(name)) for name, field in value.items()}
        if of in _INTEGERS:
            return str(int(value)) if of.endswith("64") else int(value)
        if of in _FLOATS:
            value = float(value)
            if math.isnan(value):
                return "NaN"
            return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
        if of == "Data":
            return list(bytes(value))
        return value

    def _from_json(self, value, of):
        if isinstance(of, dict):
            if "list" in of:
                return [self._from_json(element, of["list"]) for element in value]
            fields = self._structs[of["struct"]]["fields"]
            return {name: self._from_json(field, fields[name]) for name, field in value.items()}
        if of in _INTEGERS:
            return int(value)
        if of in _FLOATS:
            return float(value)
        if of == "Data":
            return bytes(value)
        return value


def _encoding(name):
    if name not in ENCODINGS:
        raise BadArgument(f"encoding {name!r}: give one of {', '.join(ENCODINGS)}")
    return ENCODINGS[name]
