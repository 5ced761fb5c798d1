"""How Java spells instants, JSON sizes, maps and typed JSON."""

import json
import math
import re
from base64 import b64decode, b64encode
from datetime import datetime
from typing import TypeAlias

from mqctl.codecs.kryo import Opaque, Value
from mqctl.core.clock import rfc3339

_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?:\.([0-9]{1,9}))?"
    r"(?:[Zz]|([+-])([0-9]{2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?)"
)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - offsets are added by hand
_DAY_S = 86_400
_LAST_MS = 253_402_300_799_999  # the end of year 9999
_SIXTY, _MAX_OFFSET = 60, 18 * 3600

_SHORT_ESCAPES = b'"\\\b\t\n\f\r'
_ESCAPED = _SHORT_ESCAPES + bytes(set(range(0x20)) - set(_SHORT_ESCAPES))
_UNESCAPED = bytes(set(range(0x100)) - set(_ESCAPED))

TYPE_MARK = "@class"
_CLASS_NAME = re.compile(r"\[+[BCDFIJSZ]|(?:\[+L)?[\w$]+(?:\.[\w$]+)+;?")
_WRAPPER_SIZE = 2

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def parse_instant(text: str) -> int:
    """Return epoch ms of what Java's `Instant.parse` accepts; ValueError otherwise.

    A date, `T`, a time with seconds, up to nine fraction digits (cut to ms), and `Z`
    or a numeric offset.
    """
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise ValueError(text)
    whole, fraction, sign = found.group(1, 2, 3)
    moment = datetime.fromisoformat(whole)
    since = moment - _EPOCH
    seconds = since.days * _DAY_S + since.seconds - (_offset(found) if sign else 0)
    return seconds * 1000 + int(f"{fraction}00"[:3] if fraction else 0)


def _offset(found: re.Match[str]) -> int:
    minute, second = int(found[5] or 0), int(found[6] or 0)
    seconds = (int(found[4]) * 60 + minute) * 60 + second
    if minute >= _SIXTY or second >= _SIXTY or seconds > _MAX_OFFSET:
        raise ValueError(found[0])
    return -seconds if found[3] == "-" else seconds


def format_instant(ms: int) -> str:
    """Return `2026-01-02T03:04:05.678Z`; times after year 9999 become its last ms."""
    return rfc3339(min(ms, _LAST_MS))


def json_size(payload: bytes) -> int:
    r"""Return the UTF-8 length of the JSON string that holds this UTF-8 text.

    Quotes, backslashes and \b \t \n \f \r take two bytes, other controls six, as
    Jackson writes them.
    """
    escaped = payload.translate(None, _UNESCAPED)
    size = len(payload) + 2
    if escaped:
        size += len(escaped) + 4 * len(escaped.translate(None, _SHORT_ESCAPES))
    return size


def utf8(text: str) -> bytes:
    """Encode as Java does: a lone surrogate becomes `?`."""
    return text.encode("utf-8", "replace")


def unwrap(
    text: str,
    retry_count: int,
    original_size: int | None,
    *,
    replayed: bool = False,
) -> str:
    """Undo the JSON quoting that each redelivery by the Java library adds.

    At most `retry_count` layers, none once the text has its original JSON size.
    `replayed`: the counter was reset by a replay, so only a size that is met exactly
    says how many layers there were.
    """
    if original_size is None and replayed:
        return text
    limit = len(text) if replayed else retry_count
    inner = text
    for _ in range(limit):
        if inner[:1] != '"' or _has_size(inner, original_size):
            break
        unquoted = unquote(inner)
        if unquoted is None:
            break
        inner = unquoted
    if replayed and not _has_size(inner, original_size):
        return inner if len(utf8(inner)) == original_size else text
    return inner


def _has_size(text: str, size: int | None) -> bool:
    return size is not None and json_size(utf8(text)) == size


def unquote(text: str) -> str | None:
    """Return the text in a JSON string, None if it is not one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, str) else None


def parse_map(text: str) -> dict[str, str] | None:
    """Read `{k=v, k2=v2}`, Java's `Map.toString`; None if it is not that form.

    Best effort: the form has no escapes. A part without `=` belongs to the value
    before it.
    """
    if len(text) < len("{}") or text[0] != "{" or text[-1] != "}" or text[1] == '"':
        return None
    entries: dict[str, str] = {}
    name = ""
    for part in text[1:-1].split(", "):
        key, equals, value = part.partition("=")
        if equals and key:
            name = key
            entries[name] = value
        elif name:
            entries[name] += ", " + part
    return entries


def typed_json(text: str) -> Value:
    """Read Jackson's typed JSON without its type marks; ValueError if it is no JSON.

    `{"@class": C, ...}` is a map, `[C, [...]]` a list, `[C, value]` a value; `[B` is
    bytes in base64.
    """
    try:
        return _untyped(json.loads(text))
    except RecursionError as e:
        raise ValueError("nested too deeply") from e


def _untyped(value: Json) -> Value:
    if isinstance(value, dict):
        return {k: _untyped(v) for k, v in value.items() if k != TYPE_MARK}
    if not isinstance(value, list):
        return value
    if not _is_wrapper(value):
        return [_untyped(item) for item in value]
    name, inner = value
    if isinstance(inner, list):  # what is in a wrapper is a list, never a wrapper
        return [_untyped(item) for item in inner]
    if name == "[B" and isinstance(inner, str):
        return b64decode(inner, validate=True)
    return _untyped(inner)


def _is_wrapper(value: list[Json]) -> bool:
    return (
        len(value) == _WRAPPER_SIZE
        and isinstance(value[0], str)
        and _CLASS_NAME.fullmatch(value[0]) is not None
    )


def compact_json(value: Value) -> str:
    """Return compact JSON as Jackson writes it: base64 for bytes, NaN as text.

    Raises ValueError for a number of thousands of digits.
    """
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))


def _plain(value: Value) -> Json:
    match value:
        case bytes():
            return b64encode(value).decode()
        case Opaque():
            return b64encode(value.raw).decode()
        case float() if not math.isfinite(value):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case _:
            return value
