"""Views: the fields of a message where its bytes are, read and set in place.

A view is a path from the message's root. It finds its struct again whenever the body's generation has changed, and checks
every pointer against the body's bytes, as they may come from anywhere. Arrays that it gave out stay valid memory: each
refers to the memory that it lies in.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy

from ._errors import MALFORMED, BadArgument, Error, shown
from ._schema import INTEGERS, Schema, Wrong, no_such_field, real_number, whole_number

#: Of numbers: NumPy's type, the format of struct, bytes.
NUMBERS = {
    "Int8": ("i1", "b", 1), "UInt8": ("u1", "B", 1), "Int16": ("<i2", "h", 2), "UInt16": ("<u2", "H", 2),
    "Int32": ("<i4", "i", 4), "UInt32": ("<u4", "I", 4), "Int64": ("<i8", "q", 8), "UInt64": ("<u8", "Q", 8),
    "Float32": ("<f4", "f", 4), "Float64": ("<f8", "d", 8),
}  # fmt: skip
_RAW = {1: struct.Struct("<B"), 2: struct.Struct("<H"), 4: struct.Struct("<I"), 8: struct.Struct("<Q")}
_word, put_word = _RAW[8].unpack_from, _RAW[8].pack
# Elements of a list by the code in its pointer: bytes each.
_BITS, _POINTERS, _STRUCTS = 1, 6, 7
_CODES = {2: 1, 3: 2, 4: 4, 5: 8}
# A list of elements without a size takes no bytes, whatever it counts: so many are the most.
_MOST_EMPTY = 65536

Place = tuple[int, int, int]  # of a struct: where it begins, bytes of data, number of pointers
_NOWHERE: Place = (0, 0, 0)


class Body(Protocol):
    """A message's body. `_size` -1: there is none."""

    _memory: memoryview  # of bytes; may be longer than the body
    _size: int
    _generation: int
    _what: str  # "a request VectorAddRequest", for errors


def _malformed(body: Body, path: str, why: str) -> Error:
    return Error(f"reading {body._what}: {path or 'the message'}: {why}; the actor wrote no such message as its schema "
                 "says", MALFORMED, "malformed")


def struct_at(body: Body, path: str, position: int) -> Place:
    """Follows the pointer at a byte of the body."""
    word = _word(body._memory, position)[0]
    if word == 0:
        return _NOWHERE
    if word & 3 != 0:
        raise _malformed(body, path, "its pointer is to no struct")
    start = position // 8 + 1 + _offset(word)
    words, pointers = word >> 32 & 0xFFFF, word >> 48
    if start < 0 or start + words + pointers > body._size // 8:
        raise _malformed(body, path, f"its pointer leads out of the {body._size} bytes")
    return start * 8, words * 8, pointers


def _offset(word: int) -> int:
    return ((word & 0xFFFFFFFF) >> 2) - (1 << 30 if word & 0x80000000 else 0)


class _List:
    """Where a list is: its elements begin at `start`; of structs each has `data` bytes and `pointers`."""

    __slots__ = ("start", "code", "count", "data", "pointers")

    def __init__(self, start: int, code: int, count: int, data: int = 0, pointers: int = 0) -> None:
        self.start, self.code, self.count, self.data, self.pointers = start, code, count, data, pointers


def _list_at(body: Body, path: str, position: int) -> _List | None:
    word = _word(body._memory, position)[0]
    if word == 0:
        return None
    if word & 3 != 1:
        raise _malformed(body, path, "its pointer is to no list")
    start = position // 8 + 1 + _offset(word)
    code, count = word >> 32 & 7, word >> 35
    words = count if code == _STRUCTS else (count * (0, 1, 8, 16, 32, 64, 64)[code] + 63) // 64
    if start < 0 or start + words + (code == _STRUCTS) > body._size // 8:
        raise _malformed(body, path, f"its list of {count} elements leads out of the {body._size} bytes")
    if code != _STRUCTS:
        if code == 0 and count > _MOST_EMPTY:
            raise _malformed(body, path, f"its list has {count} elements without a size")
        return _List(start * 8, code, count)
    tag = _word(body._memory, start * 8)[0]
    elements, data, pointers = (tag & 0xFFFFFFFF) >> 2, tag >> 32 & 0xFFFF, tag >> 48
    if tag & 3 != 0 or elements * (data + pointers) > count or (data + pointers == 0 and elements > _MOST_EMPTY):
        raise _malformed(body, path, f"its list of {elements} structs is longer than it says")
    return _List(start * 8 + 8, code, elements, data * 8, pointers)


class View:
    """A struct of a message. Its fields are attributes."""

    __slots__ = (
        "_body", "_path", "_locate", "_seen", "_memory", "_data", "_data_bytes", "_pointers", "_key", "_found", "_words_of",
        "_words", "_size",
    )  # fmt: skip
    _struct: dict[str, Any] = {}
    _body: Body
    _memory: Any
    _data: int
    _data_bytes: int
    _pointers: int
    _size: int
    _key: Any
    _words_of: Any
    _words: Any

    def __init__(self, body: Body, path: str, locate: Callable[[], Place]) -> None:
        put = object.__setattr__
        put(self, "_body", body)
        put(self, "_path", path)
        put(self, "_locate", locate)
        put(self, "_seen", -1)
        put(self, "_memory", None)
        put(self, "_key", None)
        put(self, "_found", {})
        put(self, "_words_of", None)
        put(self, "_size", -1)

    def _find(self) -> None:
        """Finds the struct in the body as it is now. What was found is kept where the pointers are the same."""
        body = self._body
        size, memory = body._size, body._memory
        # The usual case: a root as long as the last one, with the same pointers.
        if size == self._size and memory is self._memory and self._words_of is not None:
            if self._words_of(memory) == self._words:
                self._seen = body._generation
                return
        if size < 0:
            raise Error(f"reading {body._what}: there is none; the last call failed, or there was none yet")
        data, data_bytes, pointers = self._locate()
        end = data + data_bytes
        key = (size, data, data_bytes, bytes(memory[end : end + 8 * pointers]))
        if key != self._key or memory is not self._memory:
            self._found.clear()
            self._memory, self._size, self._key = memory, size, key
            self._data, self._data_bytes, self._pointers = data, data_bytes, pointers
            self._words_of = None
            if self._path == "" and data == 8 and pointers != 0:  # right behind its pointer
                self._words_of = struct.Struct(f"<Q{data_bytes}x{pointers}Q").unpack_from
                self._words = self._words_of(memory)
        self._seen = body._generation

    def _pointer(self, index: int) -> int:
        """The byte where a pointer lies, or -1: the struct is shorter."""
        if self._seen != self._body._generation:
            self._find()
        return self._data + self._data_bytes + 8 * index if index < self._pointers else -1

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(no_such_field(name, self._struct))

    def __dir__(self) -> list[str]:
        return list(self._struct["fields"])

    def __repr__(self) -> str:
        fields = []
        for name in self._struct["fields"]:
            try:
                fields.append(f"{name}={getattr(self, name)!r}")
            except _NotHeld:
                pass
        return f"{self._struct['name']}({', '.join(fields)})"


class _Settable(View):
    """A struct of a request."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._struct["fields"] and not name.startswith("_"):
            raise AttributeError(no_such_field(name, self._struct, value))
        object.__setattr__(self, name, value)


class Structs(Sequence[Any]):
    """A list of structs, of texts or of lists."""

    def __init__(self, view: View, path: str, index: int, make: Callable[[Structs, int], Any]) -> None:
        self._view, self._path, self._index, self._make = view, path, index, make
        self._seen, self._list = -1, _List(0, 0, 0)
        self._made: dict[int, Any] = {}

    def _place(self) -> _List:
        view = self._view
        if self._seen != view._body._generation:
            position = view._pointer(self._index)
            found = None if position < 0 else _list_at(view._body, self._path, position)
            self._list = found or _List(0, 0, 0)
            self._made.clear()
            self._seen = view._body._generation
        return self._list

    def __len__(self) -> int:
        return self._place().count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        count = self._place().count
        at = index + count if index < 0 else index
        if not 0 <= at < count:
            raise IndexError(f"{self._path}[{index}]: the list has {count} elements")
        if at not in self._made:
            self._made[at] = self._make(self, at)
        return self._made[at]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return repr(list(self))


class _NotHeld(BadArgument):
    """A field of a union that holds another one."""


class Classes:
    """Makes the classes of a schema's structs."""

    def __init__(self, schema: Schema) -> None:
        self._structs = schema._structs
        self._made: dict[tuple[str, bool], type[View]] = {}

    def root(self, body: Body, type_id: int, settable: bool) -> View:
        """The view of a body's root struct."""
        return self._of(str(type_id), settable)(body, "", lambda: struct_at(body, "", 0) if body._size else _NOWHERE)

    def _of(self, type_id: str, settable: bool) -> type[View]:
        made = self._made.get((type_id, settable))
        if made is None:
            described = self._structs[type_id]
            base = _Settable if settable else View
            made = type(described["name"], (base,), {"__slots__": (), "_struct": described})
            self._made[type_id, settable] = made
            tag = described["layout"].get("tag")
            for name, of in described["fields"].items():
                where = described["layout"]["fields"][name]
                if name not in described.get("union", ()):
                    held = None
                else:
                    held = _Member(described, name, tag, where["member"])
                get, put = self._field(name, of, where, settable)
                setattr(made, name, _property(name, get, put if settable else None, held))
        return made

    def _field(self, name: str, of: Any, where: dict[str, Any], settable: bool) -> tuple[Any, Any]:
        """The functions that get and set a field of any view with it."""
        at, default = where["at"], where.get("default", 0)
        if of == "Void":
            return lambda view: None, _put_void(name)
        if of == "Bool":
            return _bool(name, at, bool(int(default)))
        if isinstance(of, str) and of in NUMBERS:
            return _number(name, of, at, int(default))
        if isinstance(of, dict) and "enum" in of:
            return _enum(name, of["enum"], at, int(default))
        if isinstance(of, dict) and "struct" in of:
            return self._struct(name, of["struct"], at, default, settable)
        if of == "Text":
            return _text(name, at, default)
        if of == "Data":
            return _array(name, "Data", at, default, "u1", 2)
        if isinstance(of, dict):
            return self._list(name, of["list"], at, default, settable)
        return _unreadable(name, of), _unreadable(name, of)

    def _struct(self, name: str, type_id: str, at: int, default: Any, settable: bool) -> tuple[Any, Any]:
        is_group = self._structs[type_id]["layout"].get("group", False)

        def locate(view: View) -> Callable[[], Place]:
            if is_group:

                def of_group() -> Place:
                    view._pointer(0)
                    return view._data, view._data_bytes, view._pointers

                return of_group

            def of_struct() -> Place:
                position = view._pointer(at)
                place = _NOWHERE if position < 0 else struct_at(view._body, view._at(name), position)
                _check_default(view, name, default, place != _NOWHERE)
                return place

            return of_struct

        def get(view: View) -> Any:
            if view._seen != view._body._generation:
                view._find()
            found = view._found.get(name)
            if found is None:
                found = view._found[name] = self._of(type_id, settable)(view._body, view._at(name), locate(view))
            return found

        def put(view: View, value: Any) -> None:
            inner = get(view)
            inner._pointer(0)
            if not is_group and inner._data == 0:
                raise _wrong(view, name, value, "the request was prepared without it; prepare it with this field")
            if hasattr(value, "handle"):
                value = value.handle()
            if not isinstance(value, Mapping):
                raise _wrong(view, name, value, f"give a dict of fields, for a {inner._struct['name']}")
            for field, content in value.items():
                setattr(inner, field, content)

        return get, put

    def _list(self, name: str, of: Any, at: int, default: Any, settable: bool) -> tuple[Any, Any]:
        if isinstance(of, str) and of in NUMBERS:
            dtype, _, size = NUMBERS[of]
            return _array(name, of, at, default, dtype, {1: 2, 2: 3, 4: 4, 8: 5}[size])
        if of == "Bool":
            return _bools(name, at, default)
        if of == "Void":
            return lambda view: [None] * _find_list(view, name, at, default, (0,), "List(Void)").count, _fixed(name)
        if isinstance(of, dict) and "enum" in of:
            return _enums(name, of["enum"], at, default)
        return _sequence(name, at, default, self._element(of, settable)), _fixed(name)

    def _element(self, of: Any, settable: bool) -> Callable[[Structs, int], Any]:
        """What makes an element of a list of structs, texts, data or lists."""
        if isinstance(of, dict) and "struct" in of:
            of_struct = self._of(of["struct"], settable)

            def make(structs: Structs, index: int) -> Any:
                def locate() -> Place:
                    place = structs._place()
                    if index >= place.count:
                        return _NOWHERE
                    if place.code == _STRUCTS:
                        step = place.data + 8 * place.pointers
                        return place.start + index * step, place.data, place.pointers
                    if place.code == _POINTERS:
                        return place.start + index * 8, 0, 1
                    size = _CODES.get(place.code, 0)
                    return place.start + index * size, size, 0

                return of_struct(structs._view._body, f"{structs._path}[{index}]", locate)

            return make

        # Each is behind a pointer: as the only field of a struct.
        name = "elements"
        get, _ = self._field(name, of, {"at": 0}, settable)
        only = type("Element", (View,), {"__slots__": (), "_struct": {"name": "element", "fields": {name: of}}})

        def make_pointed(structs: Structs, index: int) -> Any:
            place = structs._place()
            path = f"{structs._path}[{index}]"
            if place.code != _POINTERS:
                raise _malformed(structs._view._body, path, "its list holds no pointers")
            view = only(structs._view._body, path, lambda: (place.start + index * 8, 0, 1))
            return get(view)

        return make_pointed


class _Member:
    """A field's place in its struct's union."""

    def __init__(self, described: dict[str, Any], name: str, tag: int, member: int) -> None:
        self.name, self.tag, self.member = name, tag, member
        self.struct = described["name"]
        fields = described["layout"]["fields"]
        self.members = {fields[other]["member"]: other for other in described["union"]}

    def check(self, view: View) -> None:
        view._pointer(0)
        held = _raw(view, self.tag, 2)
        if held != self.member:
            raise _NotHeld(f"reading {view._body._what}: {view._at(self.name)}: the union of {self.struct} holds "
                           f"{self.members.get(held, f'member number {held}')}; read that")

    def choose(self, view: View) -> None:
        view._pointer(0)
        _set_raw(view, self.tag, 2, self.member)


def _property(name: str, get: Any, put: Any, member: _Member | None) -> Any:
    if member is not None:
        get_field, put_field, held = get, put, member

        def get_member(view: View) -> Any:
            held.check(view)
            return get_field(view)

        def put_member(view: View, value: Any) -> None:
            before = _raw(view, held.tag, 2)
            held.choose(view)
            try:
                put_field(view, value)
            except BaseException:
                _set_raw(view, held.tag, 2, before)
                raise

        get, put = get_member, put_member if put is not None else None

    def refused(view: View, value: Any) -> None:
        raise BadArgument(f"setting {view._at(name)} of {view._body._what}: it is a reply, which is read only; copy it")

    return property(get, put or refused)


def _wrong(view: View, name: str, value: Any, expected: str) -> BadArgument:
    return BadArgument(f"setting {view._at(name)} of {view._body._what} to {shown(value)}: {expected}")


def _raw(view: View, at: int, size: int) -> int:
    view._pointer(0)
    if (at + 1) * size > view._data_bytes:
        return 0
    return int(_RAW[size].unpack_from(view._memory, view._data + at * size)[0])


def _set_raw(view: View, at: int, size: int, value: int) -> None:
    view._pointer(0)
    if (at + 1) * size <= view._data_bytes:
        _RAW[size].pack_into(view._memory, view._data + at * size, value)


def _put_void(name: str) -> Any:
    def put(view: View, value: Any) -> None:
        if value is not None:
            raise _wrong(view, name, value, "give None, for a Void")

    return put


def _number(name: str, of: str, at: int, default: int) -> tuple[Any, Any]:
    _, letter, size = NUMBERS[of]
    plain, raw = struct.Struct("<" + letter), _RAW[size]
    absent = plain.unpack(raw.pack(default))[0]
    offset, end, read, write = at * size, (at + 1) * size, plain.unpack_from, plain.pack_into

    def get(view: View) -> Any:
        if view._seen != view._body._generation:
            view._find()
        if end > view._data_bytes:
            return absent
        if default:
            return plain.unpack(raw.pack(_raw(view, at, size) ^ default))[0]
        return read(view._memory, view._data + offset)[0]

    def put(view: View, value: Any) -> None:
        try:
            number = whole_number(value, of) if of in INTEGERS else real_number(value, of)
        except Wrong as wrong:
            raise _wrong(view, name, value, wrong.expected) from None
        if default:
            _set_raw(view, at, size, raw.unpack(plain.pack(number))[0] ^ default)
            return
        if view._seen != view._body._generation:
            view._find()
        if end <= view._data_bytes:
            write(view._memory, view._data + offset, number)

    return get, put


def _bool(name: str, bit: int, default: bool) -> tuple[Any, Any]:
    def get(view: View) -> bool:
        return bool(_raw(view, bit // 8, 1) >> bit % 8 & 1) != default

    def put(view: View, value: Any) -> None:
        if not isinstance(value, (bool, numpy.bool_)):
            raise _wrong(view, name, value, "give True or False, for a Bool")
        held = _raw(view, bit // 8, 1) & ~(1 << bit % 8)
        _set_raw(view, bit // 8, 1, held | int(bool(value) != default) << bit % 8)

    return get, put


def _enum(name: str, names: list[str], at: int, default: int) -> tuple[Any, Any]:
    numbers = {enumerant: number for number, enumerant in enumerate(names)}

    def get(view: View) -> Any:
        number = _raw(view, at, 2) ^ default
        return names[number] if number < len(names) else number

    def put(view: View, value: Any) -> None:
        if not isinstance(value, str) or value not in numbers:
            raise _wrong(view, name, value, f"give one of {', '.join(names)}")
        _set_raw(view, at, 2, numbers[value] ^ default)

    return get, put


def _check_default(view: View, name: str, default: Any, is_there: bool) -> None:
    if default is True and not is_there:
        raise Error(f"reading {view._body._what}: {view._at(name)} is its schema's default, which views do not know; "
                    "read the reply as a dict: as_dict()")


def _find_list(view: View, name: str, at: int, default: Any, codes: tuple[int, ...], of: str) -> _List:
    position = view._pointer(at)
    found = None if position < 0 else _list_at(view._body, view._at(name), position)
    if found is None:
        _check_default(view, name, default, False)
        return _List(0, codes[0], 0)
    if found.code not in codes:
        raise _malformed(view._body, view._at(name), f"it is no {of}")
    return found


def _array(name: str, of: str, at: int, default: Any, dtype: str, code: int) -> tuple[Any, Any]:
    of = of if of == "Data" else f"List({of})"

    def get(view: View) -> Any:
        if view._seen != view._body._generation:
            view._find()
        found = view._found.get(name)
        if found is None:
            place = _find_list(view, name, at, default, (code,), of)
            found = numpy.frombuffer(view._memory, dtype, place.count, place.start)
            if not isinstance(view, _Settable):
                found.flags.writeable = False
            view._found[name] = found
        return found

    def put(view: View, value: Any) -> None:
        to = get(view)
        if to is value:  # features[:] = x has set it, and so has features += x
            return
        if of == "Data" and isinstance(value, (bytes, bytearray, memoryview)):
            value = numpy.frombuffer(value, "u1")
        try:
            given = numpy.asarray(value)
        except ValueError as error:
            raise _wrong(view, name, value, str(error)) from None
        takes = _takes(to.dtype, given)
        if given.shape != to.shape or not takes:
            raise BadArgument(
                f"setting {view._at(name)} of {view._body._what}: it is {to.dtype} of shape {to.shape}, and "
                f"{given.dtype} of shape {given.shape} is given; "
                + ("the shape is the prepared request's: prepare another" if given.shape != to.shape
                   else "convert it with astype(), or give numbers in range")
            )
        to[...] = given

    return get, put


def _takes(dtype: Any, given: Any) -> bool:
    """Whether elements of `dtype` hold what is given: floats rounded, whole numbers exactly."""
    if given.size == 0 or numpy.can_cast(given.dtype, dtype, "safe"):
        return True
    if dtype.kind == "f":
        return given.dtype.kind in "fiu"
    if given.dtype.kind not in "iu":
        return False
    limits = numpy.iinfo(dtype)
    return int(given.min()) >= limits.min and int(given.max()) <= limits.max


def _bools(name: str, at: int, default: Any) -> tuple[Any, Any]:
    def bits(view: View) -> tuple[Any, int]:
        place = _find_list(view, name, at, default, (_BITS,), "List(Bool)")
        return numpy.frombuffer(view._memory, "u1", (place.count + 7) // 8, place.start), place.count

    def get(view: View) -> Any:
        packed, count = bits(view)
        found = numpy.unpackbits(packed, count=count, bitorder="little").astype(bool)
        found.flags.writeable = False  # a copy: what is stored in it would not be in the message
        return found

    def put(view: View, value: Any) -> None:
        packed, count = bits(view)
        given = numpy.asarray(value)
        if given.shape != (count,) or (given.dtype != bool and count != 0):
            raise BadArgument(f"setting {view._at(name)} of {view._body._what}: it is bool of shape ({count},), and "
                              f"{given.dtype} of shape {given.shape} is given")
        packed[...] = numpy.packbits(given.astype(bool), bitorder="little")

    return get, put


def _enums(name: str, names: list[str], at: int, default: Any) -> tuple[Any, Any]:
    def numbers(view: View) -> Any:
        place = _find_list(view, name, at, default, (3,), "List of an enum")
        return numpy.frombuffer(view._memory, "<u2", place.count, place.start)

    def get(view: View) -> list[Any]:
        return [names[number] if number < len(names) else number for number in numbers(view).tolist()]

    def put(view: View, value: Any) -> None:
        to = numbers(view)
        if not isinstance(value, (list, tuple)) or len(value) != len(to) or any(one not in names for one in value):
            raise _wrong(view, name, value, f"give {len(to)} of {', '.join(names)}")
        to[...] = [names.index(one) for one in value]

    return get, put


def _text(name: str, at: int, default: Any) -> tuple[Any, Any]:
    def get(view: View) -> str:
        place = _find_list(view, name, at, default, (2,), "Text")
        if place.count == 0:
            return ""
        found = bytes(view._memory[place.start : place.start + place.count])
        if found[-1] != 0:
            raise _malformed(view._body, view._at(name), "it does not end with a 0")
        try:
            return found[:-1].decode()
        except UnicodeDecodeError as error:
            raise _malformed(view._body, view._at(name), f"it is no UTF-8: {error.reason} at {error.start}") from None

    def put(view: View, value: Any) -> None:
        if not isinstance(value, str):
            raise _wrong(view, name, value, "give a str, for a Text")
        try:
            given = value.encode()
        except UnicodeEncodeError as error:
            raise _wrong(view, name, value, f"give a str of whole characters: {error.reason} at {error.start}") from None
        place = _find_list(view, name, at, default, (2,), "Text")
        # The room is what the request was prepared with: the pointer that is there now may be to a shorter text.
        room = view._found.setdefault(("room", name), place.count)
        if len(given) + 1 > room:
            raise _wrong(view, name, value, f"it has {len(given)} bytes, and the request was prepared with "
                         f"{max(room - 1, 0)}; prepare it with a longer text")
        view._memory[place.start : place.start + room] = given.ljust(room, b"\0")
        position = view._pointer(at)
        word = _word(view._memory, position)[0]
        _RAW[8].pack_into(view._memory, position, word & 0x7FFFFFFFF | (len(given) + 1) << 35)

    return get, put


def _sequence(name: str, at: int, default: Any, make: Callable[[Structs, int], Any]) -> Any:
    def get(view: View) -> Any:
        if view._seen != view._body._generation:
            view._find()
        found = view._found.get(name)
        if found is None:
            position = view._pointer(at)
            _check_default(view, name, default, position >= 0 and _word(view._memory, position)[0] != 0)
            found = view._found[name] = Structs(view, view._at(name), at, make)
        return found

    return get


def _fixed(name: str) -> Any:
    def put(view: View, value: Any) -> None:
        raise _wrong(view, name, value, "set the fields of its elements, or prepare the request with it")

    return put


def _unreadable(name: str, of: Any) -> Any:
    def refuse(view: View, *_: Any) -> None:
        raise BadArgument(f"{view._at(name)} of {view._body._what} is of type {of}, which Python cannot use")

    return refuse

