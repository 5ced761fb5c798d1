"""Kryo 5 values, as the Java library's default codec writes them.

One value is one independent `writeClassAndObject`: a class tag, then the body. This
is the part of the format that strings, numbers, maps and lists need (references off,
no registered classes). Maps are read as dicts with text keys; every list and set
class as a list; `java.util.Date` as its epoch milliseconds.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from mqctl.core.clock import rfc3339

HASH_MAP = "java.util.HashMap"
LINKED_HASH_MAP = "java.util.LinkedHashMap"
_ARRAY_LIST = "java.util.ArrayList"
_BIG_INTEGER = "java.math.BigInteger"
_BYTES = "[B"
_IMMUTABLE = "java.util.ImmutableCollections$"
_MAPS = frozenset(
    {
        HASH_MAP,
        LINKED_HASH_MAP,
        "java.util.concurrent.ConcurrentHashMap",
        _IMMUTABLE + "Map1",
        _IMMUTABLE + "MapN",
    }
)
_LISTS = frozenset(
    {
        _ARRAY_LIST,
        "java.util.LinkedList",
        "java.util.HashSet",
        "java.util.LinkedHashSet",
        _IMMUTABLE + "List12",
        _IMMUTABLE + "ListN",
    }
)
# Classes with a number instead of a name, in the order of their numbers.
_INT, _STRING, _FLOAT, _BOOLEAN, _BYTE, _CHAR, _SHORT, _LONG, _DOUBLE = _BUILTIN = (
    "int",
    "String",
    "float",
    "boolean",
    "byte",
    "char",
    "short",
    "long",
    "double",
)
_SELF_NULL = _MAPS | _LISTS | {_STRING, _BIG_INTEGER, _BYTES}
_NULL_TAG, _NAMED_TAG, _FIRST_ID = 0, 1, 2
_MORE = 0x80
_SHORT_ASCII = 32
_MAX_NULLS = 1_000_000  # nulls take no bytes, so only a bound stops a forged count
_INT_BITS, _LONG_BITS = 32, 64


class KryoError(ValueError):
    """Bytes that are not one whole Kryo value, or a value that has no Kryo form."""


class _UnknownClassError(KryoError):
    """An object whose class only its application can read."""


class JavaLong(int):
    """An integer that is a java.lang.Long, whatever its size."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that only its owner can decode, as its undecoded bytes."""

    raw: bytes


Value: TypeAlias = (
    "bool | int | float | str | bytes | Opaque | list[Value] | dict[str, Value] | None"
)


def loads(raw: bytes) -> Value:
    """Return the value; an object of an unknown class, at any depth, is Opaque.

    Raises KryoError when `raw` is cut short, has trailing bytes or breaks the format.
    """
    reader = _Reader(raw)
    try:
        value = reader.value()
    except _UnknownClassError:
        return Opaque(raw)
    except (UnicodeDecodeError, RecursionError) as e:
        raise KryoError(str(e)) from e
    if reader.at != len(raw):
        raise KryoError("trailing bytes")
    return value


def dumps(value: Value, *, map_class: str = LINKED_HASH_MAP) -> bytes:
    """Return the bytes of `value`; `map_class` is the class of an outermost dict.

    Integers are written as Integer, Long or BigInteger by size, lists as ArrayList,
    inner dicts as LinkedHashMap. Raises KryoError for an Opaque inside a container.
    """
    if isinstance(value, Opaque):
        return value.raw
    writer = _Writer()
    writer.value(value, map_class)
    return bytes(writer.out)


class _Reader:
    """A position in one value, and the class names met so far."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 0
        self.names: dict[int, str] = {}

    def value(self) -> Value:
        name = self.class_name()
        return None if name is None else self.body(name)

    def class_name(self) -> str | None:
        tag = self.unsigned()
        if tag == _NULL_TAG:
            return None
        if tag == _NAMED_TAG:
            index = self.unsigned()
            if index not in self.names:
                self.names[index] = self.string() or ""
            return self.names[index]
        if tag - _FIRST_ID >= len(_BUILTIN):
            raise KryoError(f"class number {tag}")
        return _BUILTIN[tag - _FIRST_ID]

    def body(self, name: str) -> Value:
        if name in _MAPS:
            return self.mapping()
        if name in _LISTS:
            return self.sequence(has_null_flag=not name.startswith(_IMMUTABLE))
        read = _BODIES.get(name)
        if read is None:
            raise _UnknownClassError(name)
        return read(self)

    def byte(self) -> int:
        if self.at >= len(self.raw):
            raise KryoError("cut short")
        self.at += 1
        return self.raw[self.at - 1]

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.raw):
            raise KryoError("cut short")
        self.at += count
        return self.raw[self.at - count : self.at]

    def unsigned(self, bits: int = _INT_BITS) -> int:
        value = 0
        for shift in range(0, 35 if bits == _INT_BITS else 56, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < _MORE:
                return value & ((1 << bits) - 1)
        if bits == _LONG_BITS:
            value |= self.byte() << 56  # the ninth byte carries eight bits
        return value & ((1 << bits) - 1)

    def signed(self, bits: int = _INT_BITS) -> int:
        value = self.unsigned(bits)
        return (value >> 1) ^ -(value & 1)

    def flagged(self) -> tuple[bool, int]:
        first = self.byte()
        value = first & 0x3F
        if first & 0x40:
            value |= self.unsigned() << 6
        return first >= _MORE, value

    def string(self) -> str | None:
        if self.at < len(self.raw) and self.raw[self.at] < _MORE:
            return self.short_ascii()
        _, size = self.flagged()
        if size <= 1:
            return None if size == 0 else ""
        return self.units(size - 1)

    def short_ascii(self) -> str:
        start = self.at
        while self.byte() < _MORE:
            pass
        text = bytearray(self.raw[start : self.at])
        text[-1] &= 0x7F
        return text.decode("ascii")

    def units(self, count: int) -> str:
        """Read UTF-16 units, each written as UTF-8 of its own."""
        start = self.at
        if self.raw.isascii() or self.raw[start : start + count].isascii():
            return self.take(count).decode("ascii")
        for _ in range(count):
            lead = self.byte()
            self.take(0 if lead < 0x80 else 1 if lead < 0xE0 else 2)  # noqa: PLR2004
        text = self.raw[start : self.at].decode("utf-8", "surrogatepass")
        if len(text) != count:
            raise KryoError("malformed text")
        utf16 = text.encode("utf-16-le", "surrogatepass")
        return utf16.decode("utf-16-le", "surrogatepass")

    def blob(self) -> bytes | None:
        size = self.unsigned()
        return None if size == 0 else self.take(size - 1)

    def mapping(self) -> dict[str, Value] | None:
        size = self.unsigned()
        if size == 0:
            return None
        result: dict[str, Value] = {}
        for _ in range(size - 1):
            key = self.value()
            result[key if isinstance(key, str) else str(key)] = self.value()
        return result

    def sequence(self, *, has_null_flag: bool) -> list[Value] | None:
        same, size = self.flagged()
        if size <= 1:
            return None if size == 0 else []
        if not same:
            return [self.value() for _ in range(size - 1)]
        name = self.class_name()
        if name is None:
            if size > _MAX_NULLS:
                raise KryoError("too many nulls")
            return [None] * (size - 1)
        nulls = has_null_flag and self.byte() == 1
        flagged = nulls and name not in _SELF_NULL
        return [
            None if flagged and self.byte() == 0 else self.body(name)
            for _ in range(size - 1)
        ]


def _unpack(layout: str) -> Callable[[_Reader], Value]:
    packed = struct.Struct(layout)

    def read(reader: _Reader) -> Value:
        found: int | float = packed.unpack(reader.take(packed.size))[0]
        return found

    return read


def _read_float(reader: _Reader) -> float:
    """Return the shortest decimal that is this 32-bit float, as Java prints it."""
    raw = reader.take(4)
    value: float = struct.unpack("<f", raw)[0]
    for digits in range(1, 9):
        short = float(f"{value:.{digits}g}")
        try:
            if struct.pack("<f", short) == raw:
                return short
        except OverflowError:
            continue
    return value


def _read_big(reader: _Reader) -> int | None:
    raw = reader.blob()
    return None if raw is None else int.from_bytes(raw, "big", signed=True)


def _read_instant(reader: _Reader) -> str:
    seconds, nanos = reader.unsigned(_LONG_BITS), reader.unsigned()
    if seconds >> 63:
        seconds -= 1 << 64
    fraction = f".{nanos:09d}" if nanos else ""
    return rfc3339(seconds * 1000).replace(".000", fraction)


_BODIES: dict[str, Callable[[_Reader], Value]] = {
    _INT: _Reader.signed,
    _STRING: _Reader.string,
    _FLOAT: _read_float,
    _BOOLEAN: lambda r: r.byte() == 1,
    _BYTE: _unpack("<b"),
    _CHAR: lambda r: chr(int.from_bytes(r.take(2), "little")),
    _SHORT: _unpack("<h"),
    _LONG: lambda r: JavaLong(r.signed(_LONG_BITS)),
    _DOUBLE: _unpack("<d"),
    _BYTES: _Reader.blob,
    _BIG_INTEGER: _read_big,
    "java.util.Date": lambda r: r.unsigned(_LONG_BITS),
    "java.time.Instant": _read_instant,
}


class _Writer:
    """The bytes of one value, and the class names written so far."""

    def __init__(self) -> None:
        self.out = bytearray()
        self.names: dict[str, int] = {}

    def value(self, value: Value, map_class: str = LINKED_HASH_MAP) -> None:
        name = _class_of(value, map_class)
        if name is None:
            self.out.append(_NULL_TAG)
        else:
            self.tag(name)
            self.body(name, value)

    def tag(self, name: str) -> None:
        if name in _BUILTIN:
            self.unsigned(_BUILTIN.index(name) + _FIRST_ID)
            return
        self.out.append(_NAMED_TAG)
        known = self.names.get(name)
        if known is None:
            known = self.names[name] = len(self.names)
            self.unsigned(known)
            self.short_ascii(name)
        else:
            self.unsigned(known)

    def body(self, name: str, value: Value) -> None:  # noqa: C901 - one arm a class
        match value:
            case bool():
                self.out.append(value)
            case int() if name == _INT:
                self.unsigned((value << 1) ^ (value >> 31))
            case int() if name == _LONG:
                self.unsigned((value << 1) ^ (value >> 63), _LONG_BITS)
            case int():
                size = (value if value >= 0 else ~value).bit_length() // 8 + 1
                self.blob(value.to_bytes(size, "big", signed=True))
            case float():
                self.out += struct.pack("<d", value)
            case str():
                self.string(value)
            case bytes():
                self.blob(value)
            case dict():
                self.unsigned(len(value) + 1)
                for key, inner in value.items():
                    self.value(key)
                    self.value(inner)
            case list():
                self.sequence(value)

    def unsigned(self, value: int, bits: int = _INT_BITS) -> None:
        value &= (1 << bits) - 1
        for _ in range(8 if bits == _LONG_BITS else 4):
            if value < _MORE:
                break
            self.out.append(value & 0x7F | _MORE)
            value >>= 7
        self.out.append(value)

    def flagged(self, value: int, *, flag: bool) -> None:
        rest = value >> 6
        self.out.append(value & 0x3F | (_MORE if flag else 0) | (0x40 if rest else 0))
        if rest:
            self.unsigned(rest)

    def blob(self, raw: bytes) -> None:
        self.unsigned(len(raw) + 1)
        self.out += raw

    def short_ascii(self, text: str) -> None:
        self.out += text.encode("ascii")
        self.out[-1] |= _MORE

    def string(self, text: str) -> None:
        if text.isascii() and 1 < len(text) <= _SHORT_ASCII:
            self.short_ascii(text)
            return
        utf16 = text.encode("utf-16-le", "surrogatepass")
        count = len(utf16) // 2
        if count > len(text):  # astral: each surrogate becomes UTF-8 of its own
            text = "".join(map(chr, struct.unpack(f"<{count}H", utf16)))
        self.flagged(count + 1, flag=True)
        self.out += text.encode("utf-8", "surrogatepass")

    def sequence(self, values: list[Value]) -> None:
        if not values:
            self.out.append(1)
            return
        names = {_class_of(value) for value in values}
        nulls = None in names
        names.discard(None)
        self.flagged(len(values) + 1, flag=len(names) <= 1)
        if len(names) > 1:
            for value in values:
                self.value(value)
        elif not names:
            self.out.append(_NULL_TAG)
        else:
            self.elements(names.pop() or "", values, nulls=nulls)

    def elements(self, name: str, values: list[Value], *, nulls: bool) -> None:
        self.tag(name)
        self.out.append(nulls)
        for value in values:
            if nulls and name not in _SELF_NULL:
                self.out.append(value is not None)
            if value is not None:
                self.body(name, value)
            elif name in _SELF_NULL:
                self.out.append(_MORE if name == _STRING else 0)


def _class_of(value: Value, map_class: str = LINKED_HASH_MAP) -> str | None:
    if value is None:
        return None
    if isinstance(value, int):
        return _integer_class(value)
    if isinstance(value, dict):
        return map_class
    name = _CLASSES.get(type(value))
    if name is None:
        raise KryoError(f"no Java class for {type(value).__name__}")
    return name


def _integer_class(value: int) -> str:
    if isinstance(value, bool):
        return _BOOLEAN
    if not isinstance(value, JavaLong) and -(2**31) <= value < 2**31:
        return _INT
    return _LONG if -(2**63) <= value < 2**63 else _BIG_INTEGER


_CLASSES: dict[type, str] = {
    str: _STRING,
    float: _DOUBLE,
    bytes: _BYTES,
    list: _ARRAY_LIST,
}
