"""Recordings of the Java library: their bytes, their keys, a server filled with them.

A recording is the whole content of one database and the right reading of it. Its
bytes are written as forms: text, hex, repeated or concatenated.
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

Recording = dict[str, Any]
Flat = list[bytes]

JAVA = Path(__file__).parents[1] / "golden" / "java"
_NOT_SCENARIOS = {"kryo_vectors", "partition_vectors"}


def names() -> list[str]:
    return sorted(p.stem for p in JAVA.glob("*.json") if p.stem not in _NOT_SCENARIOS)


@cache
def load(name: str) -> Any:
    return json.loads((JAVA / f"{name}.json").read_bytes())


def form(value: dict[str, Any]) -> bytes:
    """The bytes a form stands for."""
    match value:
        case {"text": str(text)}:
            return text.encode()
        case {"hex": digits}:
            return bytes.fromhex(digits)
        case {"repeat": [text, count]}:
            return text.encode() * count
        case {"repeat_hex": [digits, count]}:
            return bytes.fromhex(digits) * count
        case {"concat": parts}:
            return b"".join(map(form, parts))
    raise ValueError(value)


def text(value: dict[str, Any]) -> str:
    return form(value).decode()


def flat(pairs: list[list[dict[str, Any]]]) -> Flat:
    """Field, value, field, value."""
    return [form(item) for pair in pairs for item in pair]


def entries(recording: Recording) -> dict[tuple[str, str], Flat]:
    """Every stream entry, by stream key and id."""
    return {
        (key["key"], entry_id): flat(pairs)
        for key in recording["keys"]
        if key["type"] == "stream"
        for entry_id, pairs in key["value"]
    }


def hashes(recording: Recording) -> dict[str, Flat]:
    return {
        key["key"]: flat(key["value"])
        for key in recording["keys"]
        if key["type"] == "hash"
    }


def strings(recording: Recording) -> dict[str, bytes]:
    return {
        key["key"]: form(key["value"])
        for key in recording["keys"]
        if key["type"] == "string"
    }


def expected(kind: str) -> list[Any]:
    """Every expectation of one kind, as (recording name, expectation)."""
    return [(name, e) for name in names() for e in load(name)["expect"].get(kind, [])]


def headers(expectation: Recording) -> dict[str, str]:
    """The application's headers; one with a null value is none."""
    pairs = expectation["headers"]
    return {text(name): text(value) for name, value in pairs if value is not None}


def key(expectation: Recording) -> bytes | None:
    return None if expectation["key"] is None else form(expectation["key"])


def check_headers(found: dict[str, str], expectation: Recording) -> None:
    """Those that a reader can be sure of are right; nothing is made up beside them."""
    right = headers(expectation)
    unsure = {text(name) for name in expectation.get("ambiguous_headers", [])}
    if unsure:
        sure = right.keys() - unsure
        assert {k: found.get(k) for k in sure} == {k: right[k] for k in sure}
    else:
        assert found == right


def check_payload(found: bytes, expectation: Recording) -> None:
    """Equal bytes; equal JSON where the body is stored as a typed value."""
    payload = expectation["payload"]
    right = b"" if payload is None else form(payload)
    if expectation.get("payload_stored_as") == "object" and found != right:
        assert json.loads(found) == json.loads(right)
    else:
        assert found == right


Call = Callable[..., Any]


def restore(call: Call, recording: Recording) -> None:
    """Fill an empty server; `call` executes one command and raises on an error."""
    for key in recording["keys"]:
        _RESTORE[key["type"]](call, key)
        if key["pttl_ms"] is not None:
            call("PEXPIRE", key["key"], key["pttl_ms"])


def _string(call: Call, key: Recording) -> None:
    call("SET", key["key"], form(key["value"]))


def _hash(call: Call, key: Recording) -> None:
    call("HSET", key["key"], *flat(key["value"]))


def _set(call: Call, key: Recording) -> None:
    call("SADD", key["key"], *map(form, key["value"]))


def _zset(call: Call, key: Recording) -> None:
    for member, score in key["value"]:
        call("ZADD", key["key"], score, form(member))


def _stream(call: Call, key: Recording) -> None:
    name, info = key["key"], key["info"]
    for entry_id, pairs in key["value"]:
        call("XADD", name, entry_id, *flat(pairs))
    if not key["value"]:
        call("XGROUP", "CREATE", name, "-", "0", "MKSTREAM")
        call("XGROUP", "DESTROY", name, "-")
    call(
        *("XSETID", name, info["last_id"]),
        *("ENTRIESADDED", info["entries_added"]),
        *("MAXDELETEDID", info["max_deleted_id"]),
    )
    for group in key["groups"]:
        _group(call, name, group)


def _group(call: Call, stream: str, group: Recording) -> None:
    name, read = group["name"], group["entries_read"]
    call(
        *("XGROUP", "CREATE", stream, name, group["last_delivered_id"]),
        *("ENTRIESREAD", -1 if read is None else read),
    )
    for consumer in group["consumers"]:
        call("XGROUP", "CREATECONSUMER", stream, name, consumer["name"])
    for row in group["pending_rows"]:
        call(
            *("XCLAIM", stream, name, row["consumer"], 0, row["id"]),
            *("IDLE", row["idle_ms"], "RETRYCOUNT", row["deliveries"]),
            *("FORCE", "JUSTID"),
        )


_RESTORE: dict[str, Callable[[Call, Recording], None]] = {
    "string": _string,
    "hash": _hash,
    "set": _set,
    "zset": _zset,
    "stream": _stream,
}
