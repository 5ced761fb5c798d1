"""Entries of dead-letter streams.

They are written in the codec of the Java clients that share the stream, because those
read nothing else. What mqctl knows beyond them stands in headers, which every Java
reader shows: `x-dead-*`, the key and the real partition.
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from mqctl.codecs import entry, java, kryo
from mqctl.codecs.entry import Entry
from mqctl.core import headers as h
from mqctl.core import ids
from mqctl.core.message import DeadLetter, Death, Message, int_or

EXHAUSTED = "exhausted"
REJECTED = "rejected"
DETAIL_LIMIT = 1024
STDERR_LIMIT = 8 * 1024

# A key that is not UTF-8, which no header can hold: base64 beside its readable form.
_KEY_BYTES = "x-dead-key-b64"
_ADDED = frozenset({h.KEY, h.PARTITION, h.ORIGINAL_TOPIC})
_KEPT = (
    h.ORIGINAL_TIMESTAMP,
    h.REPLAY_COUNT,
    h.PAYLOAD_MISSING,
    h.PAYLOAD_MISSING_REF,
)


@dataclass(frozen=True, slots=True)
class _Times:
    timestamp: str
    ts_ms: int
    failed_at_ms: int


def decode(topic: str, entry_id: str, flat: list[bytes]) -> DeadLetter:
    """Return the dead letter in an entry, whichever codec and writer it has.

    Nothing in it fails the reading: a time that cannot be read is that of the entry
    id, an entry of the Java library has its reason by its counters. Raises ValueError
    when `entry_id` is no id.
    """
    found = entry.read(flat)
    fields = found.fields
    headers = entry.headers_of(fields.get(b"headers"))
    partition, known = _partition(found, headers)
    retry_count = entry.int_of(fields.get(b"retryCount"), 0)
    max_retries = entry.int_of(fields.get(b"maxRetries"), entry.DEFAULT_MAX_RETRIES)
    last_id = entry.text_of(fields.get(b"originalMessageId")) or None
    times = _times(found, entry_id)
    value = fields.get(b"payload")
    ref = headers.get(h.PAYLOAD_REF) if value in (b"", "", None) else None
    message = Message(
        topic=entry.text_of(fields.get(b"originalTopic")) or topic,
        partition=partition,
        id=entry_id,
        payload=entry.body_of(found.codec, value, headers, retry_count),
        key=_key(found, headers),
        headers={k: v for k, v in headers.items() if not _is_added(k)},
        timestamp=times.timestamp,
        ts_ms=times.ts_ms,
        retry_count=retry_count,
        max_retries=max_retries,
        payload_ref=ref,
        first_id=last_id,
    )
    return DeadLetter(
        message=message,
        death=_death(headers, retry_count, max_retries),
        failed_at_ms=times.failed_at_ms,
        last_id=last_id,
        partition_known=known,
        codec=found.codec,
    )


def _partition(found: Entry, headers: Mapping[str, str]) -> tuple[int, bool]:
    """Return the partition, and whether something says so.

    The Java consumer leaves the field at 0 whatever the partition is; its header has
    the real one.
    """
    recorded = entry.int_of(found.fields.get(b"partitionId"), 0)
    if recorded > 0:
        return recorded, True
    real = int_or(headers.get(h.PARTITION), -1)
    return (real, True) if real >= 0 else (0, False)


def _key(found: Entry, headers: Mapping[str, str]) -> bytes | None:
    field = entry.bytes_of(found.fields.get(b"key"))
    if field is not None:
        return field
    if _KEY_BYTES in headers:
        return entry.from_base64(headers[_KEY_BYTES].encode())
    return headers[h.KEY].encode() if h.KEY in headers else None


def _is_added(name: str) -> bool:
    return name in _ADDED or name.startswith("x-dead-")


def _times(found: Entry, entry_id: str) -> _Times:
    written_ms = ids.parse(entry_id)[0]
    text, ts_ms = _instant(found, b"timestamp", written_ms)
    return _Times(text, ts_ms, _instant(found, b"failedAt", written_ms)[1])


def _instant(found: Entry, name: bytes, default_ms: int) -> tuple[str, int]:
    text = entry.text_of(found.fields.get(name)) or ""
    try:
        return text, java.parse_instant(text)
    except ValueError:
        return java.format_instant(default_ms), default_ms


def _death(headers: Mapping[str, str], retry_count: int, max_retries: int) -> Death:
    exit_code = headers.get(h.DEAD_EXIT_CODE)
    default = EXHAUSTED if retry_count >= max_retries else REJECTED
    return Death(
        reason=headers.get(h.DEAD_REASON, default),
        detail=headers.get(h.DEAD_DETAIL, ""),
        group=headers.get(h.DEAD_GROUP, ""),
        consumer=headers.get(h.DEAD_CONSUMER, ""),
        attempts=int_or(headers.get(h.DEAD_ATTEMPTS), retry_count + 1),
        exit_code=None if exit_code is None else int_or(exit_code, 1),
        signal=headers.get(h.DEAD_SIGNAL),
        stderr=headers.get(h.DEAD_STDERR, ""),
        raw=headers.get(h.DEAD_RAW),
    )


def encode(
    message: Message, death: Death, *, codec: str, failed_at_ms: int, last_id: str
) -> list[bytes]:
    """Return field, value, field, value of a dead letter in `codec`.

    `codec` is kryo5, json or string; `last_id` the id of the last delivery. Detail is
    cut to 1 KB from its start, stderr to its last 8 KB. A header of the application
    named like one that is added (`key`, `partitionId`, `originalTopic`) gives way, as
    in Java.
    """
    text, base64 = entry.payload_text(message.payload)
    limit = message.max_retries
    headers = entry.stored_headers(
        _message_headers(message) | _death_headers(death), text, base64=base64
    )
    fields: dict[str, str | int] = {
        "originalTopic": message.topic,
        "payload": text.decode(),
        "timestamp": message.timestamp,
        "failedAt": java.format_instant(failed_at_ms),
        "retryCount": message.retry_count,
        "maxRetries": entry.DEFAULT_MAX_RETRIES if limit is None else limit,
        "partitionId": message.partition,
        "originalMessageId": last_id,
    }
    flat: list[bytes] = []
    for name, value in fields.items():
        flat += (_write(codec, name), _write(codec, value))
    flat += (_write(codec, "headers"), _write_headers(codec, headers))
    return flat


def _message_headers(message: Message) -> dict[str, str]:
    applied = h.application(message.headers)
    headers = {k: v for k, v in applied.items() if k not in _ADDED}
    headers |= {k: message.headers[k] for k in _KEPT if k in message.headers}
    headers[h.ORIGINAL_ID] = message.original_id
    headers[h.PARTITION] = str(message.partition)
    if message.key is not None:
        headers[h.KEY] = message.key.decode("utf-8", "replace")
        if not entry.is_text(message.key):
            headers[_KEY_BYTES] = b64encode(message.key).decode()
    return headers


def _death_headers(death: Death) -> dict[str, str]:
    headers = {h.DEAD_REASON: death.reason, h.DEAD_ATTEMPTS: str(death.attempts)}
    optional = {
        h.DEAD_DETAIL: _head(death.detail, DETAIL_LIMIT) or None,
        h.DEAD_GROUP: death.group or None,
        h.DEAD_CONSUMER: death.consumer or None,
        h.DEAD_EXIT_CODE: None if death.exit_code is None else str(death.exit_code),
        h.DEAD_SIGNAL: death.signal,
        h.DEAD_STDERR: _tail(death.stderr, STDERR_LIMIT) or None,
        h.DEAD_RAW: death.raw,
    }
    return headers | {k: v for k, v in optional.items() if v is not None}


def _head(text: str, limit: int) -> str:
    return java.utf8(text)[:limit].decode("utf-8", "ignore")


def _tail(text: str, limit: int) -> str:
    return java.utf8(text)[-limit:].decode("utf-8", "ignore")


def _write(codec: str, value: str | int) -> bytes:
    match codec:
        case "kryo5":
            return kryo.dumps(value)
        case "json" if isinstance(value, str):
            return orjson.dumps(java.utf8(value).decode())
        case _:
            return java.utf8(str(value))


def _write_headers(codec: str, headers: dict[str, str]) -> bytes:
    match codec:
        case "kryo5":
            return kryo.dumps(dict(headers), map_class=kryo.HASH_MAP)
        case "json":
            rest = {k: v for k, v in headers.items() if k != java.TYPE_MARK}
            return entry.headers_json({java.TYPE_MARK: kryo.HASH_MAP} | rest)
        case _:
            return entry.headers_json(headers)


def raw_of(fields: Mapping[bytes, bytes]) -> str:
    """Return the `x-dead-raw` text: base64 of a JSON object, name -> base64 value."""
    named = {
        name.decode("utf-8", "backslashreplace"): b64encode(value).decode()
        for name, value in fields.items()
    }
    return b64encode(orjson.dumps(named)).decode()


def replay_headers(dead: DeadLetter, *, all_groups: bool) -> dict[str, str]:
    """Return the headers of a replay, addressed to the group it died in if known.

    The application's, the first id and timestamp, and one replay more than before.
    """
    message = dead.message
    headers = h.application(message.headers)
    first = message.headers.get(h.ORIGINAL_ID) or message.first_id
    if first:
        headers[h.ORIGINAL_ID] = first
    headers[h.ORIGINAL_TIMESTAMP] = message.headers.get(
        h.ORIGINAL_TIMESTAMP, message.timestamp
    )
    headers[h.REPLAY_COUNT] = str(message.replay_count + 1)
    if dead.death.group and not all_groups:
        headers[h.RETRY_GROUP] = dead.death.group
    return headers
