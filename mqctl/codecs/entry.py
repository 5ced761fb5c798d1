"""One entry in any of the three codecs of the Java library, and what is in it.

Field names and values of an entry are plain text, Kryo values or JSON values, by the
codec of the client that wrote it. Each entry is sniffed for itself: one stream can
hold a mixture.
"""

import json
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import orjson

from mqctl.codecs import java, kryo
from mqctl.codecs.kryo import Opaque, Value
from mqctl.core import headers as h
from mqctl.core.message import int_or

Codec: TypeAlias = Literal["kryo5", "json", "string"]

BASE64 = "base64"
INLINE = "inline"
HASH = "hash"
DEFAULT_MAX_RETRIES = 3


class Entry(NamedTuple):
    """An entry's codec and its decoded fields; in `string` every value is bytes."""

    codec: Codec
    fields: Mapping[bytes, Value]


def codec_of_name(name: bytes) -> Codec:
    """Return the codec that a field name is written in."""
    try:
        if name[:1] == b"\x03" and isinstance(kryo.loads(name), str):
            return "kryo5"
        if name[:1] == b'"' and isinstance(orjson.loads(name), str):
            return "json"
    except ValueError:
        pass
    return "string"


def codec_of(flat: list[bytes]) -> Codec:
    """Return the codec of an entry by its first field name; `string` if it has none."""
    return codec_of_name(flat[0]) if flat else "string"


def read(flat: list[bytes]) -> Entry:
    """Decode an entry given as field, value, field, value. A bad value is Opaque."""
    codec = codec_of(flat)
    pairs = zip(flat[::2], flat[1::2], strict=True)
    if codec == "string":
        return Entry(codec, dict(pairs))
    fields: dict[bytes, Value] = {}
    for name, value in pairs:
        decoded = loads(codec, name)
        known = java.utf8(decoded) if isinstance(decoded, str) else name
        fields[known] = loads(codec, value)
    return Entry(codec, fields)


def loads(codec: Codec, raw: bytes) -> Value:
    """Decode one field name or value; what cannot be decoded is Opaque."""
    try:
        if codec == "kryo5":
            return kryo.loads(raw)
        if codec == "json":
            return java.typed_json(raw.decode())
    except ValueError:
        return Opaque(raw)
    return raw


def text_of(value: Value) -> str | None:
    """Return a scalar as Java's `toString` has it; None for null and for structures."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else None


def bytes_of(value: Value) -> bytes | None:
    """Return a scalar's text in UTF-8, the stored bytes of a plain entry unchanged."""
    if isinstance(value, bytes):
        return value
    text = text_of(value)
    return None if text is None else java.utf8(text)


def int_of(value: Value, default: int) -> int:
    """Return an integer field, the default when it is absent or not one."""
    return int_or(value if isinstance(value, bytes) else text_of(value), default)


def headers_of(value: Value) -> dict[str, str]:
    """Return stored headers: all or none; null values dropped, scalars as text."""
    if isinstance(value, bytes):
        return _parse_headers(value)
    if isinstance(value, str):
        return _parse_headers(java.utf8(value))
    return _text_map(value) if isinstance(value, dict) else {}


def _parse_headers(raw: bytes) -> dict[str, str]:
    if not raw:
        return {}
    try:
        found = orjson.loads(raw)
        if type(found) is dict and set(map(type, found.values())) <= {str}:
            return found
    except ValueError:
        pass
    text = raw.decode("utf-8", "replace")
    try:
        # numbers stay as they are spelt
        lenient = json.loads(
            text, parse_int=str, parse_float=str, parse_constant=_not_json
        )
    except (ValueError, RecursionError):
        return java.parse_map(text) or {}
    return _text_map(lenient) if isinstance(lenient, dict) else {}


def _not_json(constant: str) -> str:
    raise ValueError(constant)


def _text_map(found: dict[str, Value]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in found.items():
        text = text_of(value)
        if text is not None:
            headers[_valid(name)] = _valid(text)
        elif value is not None:
            return {}
    return headers


def _valid(text: str) -> str:
    return java.utf8(text).decode()


def headers_json(headers: dict[str, str]) -> bytes:
    """Write headers as Java does: one compact JSON object of strings."""
    try:
        return orjson.dumps(headers)
    except TypeError:  # a lone surrogate
        return orjson.dumps({_valid(k): _valid(v) for k, v in headers.items()})


def body_of(
    codec: Codec, value: Value, headers: Mapping[str, str], retry_count: int
) -> bytes:
    """Return the body in a payload field as its producer gave it.

    Text loses the quoting that redeliveries added, and its base64 where the header
    says so; a typed value becomes compact JSON; an opaque one stays as it is stored.
    """
    if isinstance(value, bytes):
        return value if codec == "kryo5" else _unwrap(value, headers, retry_count)
    if isinstance(value, str):
        return _unwrap(java.utf8(value), headers, retry_count)
    if isinstance(value, Opaque):
        return value.raw
    return b"" if value is None else java.utf8(java.compact_json(value))


def _unwrap(raw: bytes, headers: Mapping[str, str], retry_count: int) -> bytes:
    if headers.get(h.PAYLOAD_ENCODING) == BASE64:
        return from_base64(raw)
    replayed = retry_count == 0 and h.ORIGINAL_ID in headers
    if raw[:1] != b'"' or not (retry_count or replayed):
        return raw
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return raw
    size = int_or(headers.get(h.PAYLOAD_SIZE), -1)
    plain = java.unwrap(
        text, retry_count, size if size >= 0 else None, replayed=replayed
    )
    return java.utf8(plain)


def from_base64(raw: bytes) -> bytes:
    """Return the bytes in base64, below any number of JSON quotings.

    What is no base64 is returned unchanged.
    """
    text = raw.decode("utf-8", "replace")
    while text[:1] == '"':
        inner = java.unquote(text)
        if inner is None:
            return raw
        text = inner
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError):
        return raw


def payload_text(payload: bytes) -> tuple[bytes, bool]:
    """Return what a payload field holds, and whether that is base64.

    UTF-8 is stored verbatim, anything else as Java stores `byte[]`: base64 in JSON
    quotes.
    """
    if is_text(payload):
        return payload, False
    return b'"' + b64encode(payload) + b'"', True


def is_text(payload: bytes) -> bool:
    """Tell whether the payload is valid UTF-8."""
    if payload.isascii():
        return True
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def stored_headers(
    headers: Mapping[str, str], text: bytes, *, base64: bool, ref: str | None = None
) -> dict[str, str]:
    """Return headers with the storage ones set for this body, stale ones removed.

    `text` is the payload as `payload_text` gives it, `ref` the key it lies under when
    it is stored aside.
    """
    result = {k: v for k, v in headers.items() if k not in _STORAGE}
    result[h.PAYLOAD_SIZE] = str(len(text) if base64 else java.json_size(text))
    result[h.PAYLOAD_STORAGE] = INLINE if ref is None else HASH
    if ref is not None:
        result[h.PAYLOAD_REF] = ref
    if base64:
        result[h.PAYLOAD_ENCODING] = BASE64
    return result


_STORAGE = frozenset(
    {h.PAYLOAD_REF, h.PAYLOAD_STORAGE, h.PAYLOAD_SIZE, h.PAYLOAD_ENCODING}
)
