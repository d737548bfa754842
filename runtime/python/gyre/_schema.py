"""Schemas, and messages as dicts."""

from __future__ import annotations

import collections.abc
import ctypes
import difflib
import json
import math
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._errors import BAD_JSON, BAD_SCHEMA, TOO_SMALL, BadArgument, check, shown, text_of
from ._library import Handle, Text, lib

if TYPE_CHECKING:
    from ._views import Classes

BODY, STREAM, PACKED = 0, 1, 2
ENCODINGS = {"body": BODY, "stream": STREAM, "packed": PACKED}

INTEGERS = {
    f"{sign}Int{bits}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for sign in ("", "U")
    for bits in (8, 16, 32, 64)
}
FLOATS = {"Float32": float.fromhex("0x1.fffffefffffffp+127"), "Float64": math.inf}  # the largest that rounds to one


class Wrong(Exception):
    """Reports a value that its field does not take. The structs and lists around the field complete `path`."""

    def __init__(self, value: object, expected: str) -> None:
        super().__init__()
        self.value, self.expected, self.path = value, expected, ""

    def below(self, step: str) -> Wrong:
        self.path = step + ("." if self.path and not self.path.startswith("[") else "") + self.path
        return self


class WrongFields(Wrong):
    """Reports fields that a struct does not take, or not together. `expected` names them."""


class Schema:
    """Parses Cap'n Proto schemas, and converts messages from and to dicts. Thread-safe.

    files: maps names, as imports use them, to texts. Every Schema contains Gyre's own messages, which the texts import
    as /gyre/messages/buffer.capnp and so on.

    A message is a dict of fields by name. Values are numbers, str, bytes for Data, lists or NumPy arrays for lists,
    dicts for structs, groups and the field that a union holds, the enumerant's name for an enum, and a gyre.Buffer for
    a BufferHandle. Missing fields have their defaults."""

    def __init__(self, files: Mapping[str, str] | None = None) -> None:
        files = dict(files or {})
        texts = (Text * max(len(files), 1))()
        for text, (name, content) in zip(texts, files.items()):
            encoded = content.encode()
            text.name, text.text, text.text_length = name.encode(), encoded, len(encoded)
        handle = Handle()
        check(lib.gyre_schema_parse(texts if files else None, len(files), ctypes.byref(handle)))
        self._take(handle.value)

    @classmethod
    def _of_actors(cls, actors: int) -> Schema | None:
        """Makes the schema of the types that a set of actors carries; None if it carries none."""
        handle = Handle()
        status = lib.gyre_actors_schema(actors, ctypes.byref(handle))
        if status == BAD_SCHEMA:
            return None
        check(status)
        schema = cls.__new__(cls)
        schema._take(handle.value)
        return schema

    def _take(self, handle: int) -> None:
        self._handle = handle
        self._structs: dict[str, dict[str, Any]] = json.loads(text_of(lib.gyre_schema_describe, self._handle))
        self._ids: dict[str, int] = {}
        self._views: Classes | None = None  # the classes of views, made by the first Prepared

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            lib.gyre_schema_release(self._handle)

    def type_id(self, name: str | int) -> int:
        """Returns the 64-bit id of a struct by its name: "VectorAddRequest", "Outer.Inner" or "file.capnp:Name".
        Returns an id unchanged."""
        if isinstance(name, int):
            return name
        found = self._ids.get(name)
        if found is None:
            value = ctypes.c_uint64()
            check(lib.gyre_schema_type_id(self._handle, name.encode(), ctypes.byref(value)))
            found = self._ids[name] = value.value
        return found

    def name_of(self, type_id: int) -> str:
        """Returns the name of a struct by its id, or the id as text if there is none."""
        found: str = self._structs.get(str(type_id), {"name": f"{type_id:#x}"})["name"]
        return found

    def views(self) -> dict[str, str]:
        """Returns a dict of the C++ headers that actors of these messages include, by name."""
        found: dict[str, str] = {}
        view = Text()
        while lib.gyre_schema_view(self._handle, len(found), ctypes.byref(view)) == 0:
            found[view.name.decode()] = view.text.decode()
        return found

    def encode(self, type_name: str | int, fields: Mapping[str, Any], encoding: str = "body") -> bytes:
        """Encodes a message as bytes. Raises BadArgument if a field does not take its value; the text names the field
        by its path ("orders[3].price"), the value, and what is expected."""
        type_id = self.type_id(type_name)
        text = self._json_of(type_id, fields).encode()
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

    def decode(self, type_name: str | int, message: Any, encoding: str = "body") -> dict[str, Any]:
        """Decodes a message into a dict of its fields, without null pointers."""
        message = bytes(message)
        return self._decode(self.type_id(type_name), message, len(message), _encoding(encoding))

    def _decode(self, type_id: int, address: Any, size: int, encoding: int = BODY) -> dict[str, Any]:
        text = text_of(lib.gyre_message_to_json, self._handle, type_id, address, size, encoding)
        found: dict[str, Any] = self._from_json(json.loads(text), {"struct": str(type_id)})
        return found

    def _json_of(self, type_id: int, fields: Any) -> str:
        struct = self._structs.get(str(type_id))
        if struct is None:
            return "{}"  # the library then reports that there is no such type
        try:
            value = self._to_json(fields, {"struct": str(type_id)})
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
        except RecursionError:
            what = "it lies too deep, or holds itself; write it flatter"
        except WrongFields as wrong:
            what = f"{wrong.path}: {wrong.expected}" if wrong.path else wrong.expected
        except Wrong as wrong:
            what = f"{wrong.path or 'the message'} is {shown(wrong.value)}; {wrong.expected}"
        raise BadArgument(f"making a message {struct['name']}: {what}", BAD_JSON, "bad_json")

    def _to_json(self, value: Any, of: Any) -> Any:
        if isinstance(of, dict):
            if "list" in of:
                return self._list_to_json(value, of["list"])
            if "enum" in of:
                if not isinstance(value, str) or value not in of["enum"]:
                    raise Wrong(value, f"give one of {', '.join(of['enum'])}")
                return value
            return self._struct_to_json(value, of["struct"])
        if of in INTEGERS:
            return _integer(value, of)
        if of in FLOATS:
            return _float(value, of)
        if of == "Text":
            if not isinstance(value, str):
                raise Wrong(value, "give a str, for a Text")
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise Wrong(value, f"give a str of whole characters: {error.reason} at {error.start}") from None
            return value
        if of == "Data":
            if isinstance(value, (int, str)):
                raise Wrong(value, "give bytes, for Data")
            try:
                return list(bytes(value))
            except Exception:
                raise Wrong(value, "give bytes, for Data") from None
        if of == "Bool":
            if isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b":
                return bool(value)
            raise Wrong(value, "give True or False, for a Bool")
        if of == "Void":
            if value is not None:
                raise Wrong(value, "give None, for a Void")
            return None
        raise Wrong(value, f"give none: a field of type {of} cannot be set from Python")

    def _struct_to_json(self, value: Any, of: str) -> dict[str, Any]:
        if hasattr(value, "handle"):
            value = value.handle()
        struct = self._structs.get(of)
        if not isinstance(value, collections.abc.Mapping):
            raise Wrong(value, f"give a dict of fields, for a {struct['name'] if struct else 'struct'}")
        if struct is None:
            return dict(value)  # a generic struct: the library reports what it does not take
        types = struct["fields"]
        chosen = [name for name in struct.get("union", ()) if name in value]
        if len(chosen) > 1:
            raise WrongFields(
                None, f"{' and '.join(chosen)} are fields of one union of {struct['name']}, which holds one of them; "
                "give one"
            )
        found = {}
        for name, field in value.items():
            if name not in types:
                raise WrongFields(None, no_such_field(name, struct, field))
            try:
                found[name] = self._to_json(field, types[name])
            except Wrong as wrong:
                raise wrong.below(name)
        return found

    def _list_to_json(self, value: Any, of: Any) -> list[Any]:
        if hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(value, (str, collections.abc.Mapping)) or not isinstance(value, collections.abc.Iterable):
            raise Wrong(value, f"give a list or an array, for a List({self._name_of(of)})")
        found = []
        for element in value:
            try:
                found.append(self._to_json(element, of))
            except Wrong as wrong:
                raise wrong.below(f"[{len(found)}]")
        return found

    def _name_of(self, of: Any) -> str:
        if not isinstance(of, dict):
            return str(of)
        if "list" in of:
            return f"List({self._name_of(of['list'])})"
        return "enum" if "enum" in of else str(self._structs.get(of["struct"], {"name": "struct"})["name"])

    def _from_json(self, value: Any, of: Any) -> Any:
        if isinstance(of, dict):
            if "list" in of:
                return [self._from_json(element, of["list"]) for element in value]
            if "enum" in of:
                return value
            fields = self._structs[of["struct"]]["fields"]
            return {name: self._from_json(field, fields[name]) for name, field in value.items()}
        if of in INTEGERS:
            return int(value)
        if of in FLOATS:
            return float(value)
        if of == "Data":
            return bytes(value)
        return value


def whole_number(value: Any, of: str) -> int:
    """Returns an integer that a field of type `of` takes. Raises Wrong."""
    lowest, highest = INTEGERS[of]
    expected = f"give an integer from {lowest} to {highest}, for a {of}"
    if isinstance(value, bool):
        raise Wrong(value, expected)
    try:
        number = operator.index(value)
    except Exception:  # a class's own __index__ may raise anything
        raise Wrong(value, expected) from None
    if not lowest <= number <= highest:
        raise Wrong(value, expected)
    return number


def real_number(value: Any, of: str) -> float:
    """Returns a float that a field of type `of` takes. Raises Wrong."""
    if isinstance(value, (bool, str, bytes, bytearray)):
        raise Wrong(value, f"give a number, for a {of}")
    try:
        number = float(value)
    except Exception:
        raise Wrong(value, f"give a number, for a {of}") from None
    if math.isfinite(number) and abs(number) > FLOATS[of]:
        raise Wrong(value, f"give a number that a {of} holds, or an infinity")
    return number


def _integer(value: Any, of: str) -> str | int:
    number = whole_number(value, of)
    return str(number) if of.endswith("64") else number


def _float(value: Any, of: str) -> str | float:
    number = real_number(value, of)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return number


_NOT_GIVEN = object()


def no_such_field(name: Any, struct: Mapping[str, Any], value: object = _NOT_GIVEN) -> str:
    """Returns what an error says of a field that a struct has not."""
    given = "" if value is _NOT_GIVEN else f" (given {shown(value)})"
    text = f"{struct['name']} has no field {shown(name)}{given}"
    near = difflib.get_close_matches(name, struct["fields"], 1) if isinstance(name, str) else ()
    text += f"; is it {near[0]}? It has" if near else "; it has"
    return f"{text} {', '.join(struct['fields']) or 'none'}"


def _encoding(name: str) -> int:
    if name not in ENCODINGS:
        raise BadArgument(f"encoding {shown(name)}: give one of {', '.join(ENCODINGS)}")
    return ENCODINGS[name]
