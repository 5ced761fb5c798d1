"""Entries of partition streams, retry items and commit hashes, as in Java.

Messages are read in whichever codec they were written, and always written as plain
text, which every Java client of the library reads. Bodies are handed out as their
producer gave them.
"""

from dataclasses import replace
from functools import lru_cache

import orjson

from mqctl.codecs import entry, java
from mqctl.codecs.entry import Codec, Entry, codec_of, payload_text
from mqctl.codecs.entry import codec_of_name as commit_codec
from mqctl.core import headers as h
from mqctl.core import ids
from mqctl.core.errors import Undecodable
from mqctl.core.message import Message, RetryItem, int_or

__all__ = [
    "INLINE_LIMIT",
    "Codec",
    "aside_fields",
    "aside_text",
    "codec_of",
    "commit_codec",
    "commit_entry",
    "decode",
    "decode_item",
    "delayed_fields",
    "entry_fields",
    "item_fields",
    "moved_fields",
    "payload_text",
    "retry_headers",
    "stored_size",
    "with_body",
]

INLINE_LIMIT = 65_536  # bytes of JSON; a larger body is stored aside

_PAYLOAD = b"payload"
_TIMESTAMP = b"timestamp"
_RETRY_COUNT = b"retryCount"
_MAX_RETRIES = b"maxRetries"
_TOPIC = b"topic"
_PARTITION = b"partitionId"
_KEY = b"key"
_HEADERS = b"headers"
_ORIGINAL_ID = b"originalMessageId"


def decode(topic: str, partition: int, entry_id: str, flat: list[bytes]) -> Message:
    """Return the message in an entry of a partition stream.

    `flat` is field, value, field, value. Absent fields have the library's defaults;
    without a timestamp the entry id says when. Raises Undecodable when the timestamp
    is not an instant.
    """
    return _first_delivery(topic, partition, entry_id, flat) or _any(
        topic, partition, entry_id, flat
    )


def _first_delivery(
    topic: str, partition: int, entry_id: str, flat: list[bytes]
) -> Message | None:
    """Return what `_any` would, for the common case alone: a plain first delivery.

    Ten times as fast; None for anything that is not just as a producer writes it.
    """
    fields: dict[bytes, bytes] = dict(zip(flat[::2], flat[1::2], strict=True))
    raw_headers, timestamp = fields.get(_HEADERS), fields.get(_TIMESTAMP)
    if fields.get(_RETRY_COUNT) != b"0" or raw_headers is None or timestamp is None:
        return None
    headers = _plain_headers(raw_headers)
    ts_ms = _plain_instant(timestamp)
    limit = fields.get(_MAX_RETRIES, b"")
    payload = fields.get(_PAYLOAD)
    if headers is None or ts_ms is None or payload is None or not limit.isdigit():
        return None
    key = fields.get(_KEY)
    if _ORIGINAL_ID in fields or (key is None and h.PARTITION in headers):
        return None
    return Message(
        topic,
        partition,
        entry_id,
        payload,
        key,
        headers,
        timestamp.decode(),
        ts_ms,
        0,
        int(limit),
    )


@lru_cache(maxsize=1024)
def _plain_headers(raw: bytes) -> dict[str, str] | None:
    """Return headers that ask for nothing special, None for others.

    The same object for the same text: nobody changes a message's headers.
    """
    try:
        found = orjson.loads(raw)
    except ValueError:
        return None
    if not isinstance(found, dict) or found.get(h.PAYLOAD_STORAGE) != entry.INLINE:
        return None
    if not found.keys().isdisjoint(_SPECIAL) or not all(
        type(value) is str for value in found.values()
    ):
        return None
    return found


_SPECIAL = frozenset({h.PAYLOAD_REF, h.PAYLOAD_ENCODING, h.ORIGINAL_ID})


@lru_cache(maxsize=1024)
def _plain_instant(raw: bytes) -> int | None:
    try:
        return java.parse_instant(raw.decode())
    except ValueError:
        return None


def _any(topic: str, partition: int, entry_id: str, flat: list[bytes]) -> Message:
    found = entry.read(flat)
    fields = found.fields
    headers = entry.headers_of(fields.get(_HEADERS))
    retry_count = entry.int_of(fields.get(_RETRY_COUNT), 0)
    key = entry.bytes_of(fields.get(_KEY))
    if key is None:
        key, headers = _replayed_key(headers, retry_count)
    payload, ref = _payload(found, headers, retry_count)
    timestamp = entry.text_of(fields.get(_TIMESTAMP))
    try:
        if timestamp is None:
            ts_ms = ids.parse(entry_id)[0]
            timestamp = java.format_instant(ts_ms)
        else:
            ts_ms = java.parse_instant(timestamp)
    except ValueError:
        raise Undecodable(
            f"entry {entry_id} has no readable timestamp",
            entry_id=entry_id,
            fields=dict(zip(flat[::2], flat[1::2], strict=True)),
            payload=payload,
        ) from None
    return Message(
        topic=topic,
        partition=partition,
        id=entry_id,
        payload=payload,
        key=key,
        headers=headers,
        timestamp=timestamp,
        ts_ms=ts_ms,
        retry_count=retry_count,
        max_retries=entry.int_of(fields.get(_MAX_RETRIES), entry.DEFAULT_MAX_RETRIES),
        payload_ref=ref,
        first_id=entry.text_of(fields.get(_ORIGINAL_ID)) or None,
    )


def _payload(
    found: Entry, headers: dict[str, str], retry_count: int
) -> tuple[bytes, str | None]:
    value = found.fields.get(_PAYLOAD)
    ref = headers.get(h.PAYLOAD_REF)
    if ref and (headers.get(h.PAYLOAD_STORAGE) == entry.HASH or not value):
        return b"", ref
    return entry.body_of(found.codec, value, headers, retry_count), None


def _replayed_key(
    headers: dict[str, str], retry_count: int
) -> tuple[bytes | None, dict[str, str]]:
    """Return the key and the other headers of an entry without a key field.

    Java's replays of dead letters leave the key in a header, beside the header
    `partitionId` that only its consumer adds.
    """
    if retry_count or h.KEY not in headers or h.PARTITION not in headers:
        return None, headers
    rest = {k: v for k, v in headers.items() if k != h.KEY}
    return headers[h.KEY].encode(), rest


def with_body(message: Message, stored: bytes) -> Message:
    """Return the message with its body, which was stored aside, in it.

    A JSON string is unquoted, and decoded where the headers say base64; any other
    JSON value is handed out as its text.
    """
    headers = {k: v for k, v in message.headers.items() if k not in _ASIDE}
    if headers.get(h.PAYLOAD_ENCODING) == entry.BASE64:
        payload = entry.from_base64(stored)
    else:
        payload = _unquoted(stored)
    return replace(message, payload=payload, payload_ref=None, headers=headers)


_ASIDE = frozenset({h.PAYLOAD_REF, h.PAYLOAD_STORAGE, h.PAYLOAD_SIZE})


def _unquoted(stored: bytes) -> bytes:
    text = java.unquote(stored.decode("utf-8", "replace"))
    return stored if text is None else java.utf8(text)


def aside_text(payload: bytes) -> tuple[bytes, bool]:
    """Return the JSON string of a body stored aside, and whether it is base64."""
    text, base64 = payload_text(payload)
    return (text if base64 else orjson.dumps(text.decode())), base64


def stored_size(payload: bytes) -> int:
    """Return the bytes of the payload's JSON text; above INLINE_LIMIT it goes aside."""
    text, base64 = payload_text(payload)
    return len(text) if base64 else java.json_size(text)


def entry_fields(
    *,
    topic: str,
    partition: int,
    payload: bytes,
    key: bytes | None,
    headers: dict[str, str],
    timestamp: str,
    retry_count: int,
    max_retries: int,
) -> list[bytes]:
    """Return field, value, field, value of an entry with its payload in it."""
    text, base64 = payload_text(payload)
    return _fields(
        topic=topic,
        partition=partition,
        text=text,
        key=key,
        headers=entry.stored_headers(headers, text, base64=base64),
        timestamp=timestamp,
        retry_count=retry_count,
        max_retries=max_retries,
    )


def aside_fields(
    *,
    topic: str,
    partition: int,
    payload: bytes,
    ref: str,
    key: bytes | None,
    headers: dict[str, str],
    timestamp: str,
    retry_count: int,
    max_retries: int,
) -> list[bytes]:
    """Return the same for an entry whose payload is stored aside under `ref`."""
    text, base64 = payload_text(payload)
    return _fields(
        topic=topic,
        partition=partition,
        text=b"",
        key=key,
        headers=entry.stored_headers(headers, text, base64=base64, ref=ref),
        timestamp=timestamp,
        retry_count=retry_count,
        max_retries=max_retries,
    )


def _fields(
    *,
    topic: str,
    partition: int,
    text: bytes,
    key: bytes | None,
    headers: dict[str, str],
    timestamp: str,
    retry_count: int,
    max_retries: int,
) -> list[bytes]:
    fields = [
        _PAYLOAD,
        text,
        _TIMESTAMP,
        timestamp.encode(),
        _RETRY_COUNT,
        b"%d" % retry_count,
        _MAX_RETRIES,
        b"%d" % max_retries,
        _TOPIC,
        topic.encode(),
        _PARTITION,
        b"%d" % partition,
        _HEADERS,
        entry.headers_json(headers),
    ]
    if key is not None:
        fields += (_KEY, key)
    return fields


def retry_headers(message: Message, group: str | None) -> dict[str, str]:
    """Return the headers of a message that is sent again, to `group` alone or to all.

    The first id and timestamp are kept or set. Those about the body's storage are
    left out: whoever writes the entry sets them.
    """
    headers = {
        k: v
        for k, v in message.headers.items()
        if not k.startswith("x-payload-") and k != h.RETRY_GROUP
    }
    if message.original_id:
        headers[h.ORIGINAL_ID] = message.original_id
    headers.setdefault(h.ORIGINAL_TIMESTAMP, message.timestamp)
    if group is not None:
        headers[h.RETRY_GROUP] = group
    return headers


def item_fields(
    message: Message, *, group: str | None, retry_count: int
) -> list[bytes]:
    """Return the fields of a retry item: the message waiting for its next delivery."""
    text, base64 = payload_text(message.payload)
    headers = entry.stored_headers(retry_headers(message, group), text, base64=base64)
    limit = message.max_retries
    return [
        _TOPIC,
        message.topic.encode(),
        _PARTITION,
        b"%d" % message.partition,
        _PAYLOAD,
        text,
        _KEY,
        message.key or b"",
        _HEADERS,
        entry.headers_json(headers),
        _RETRY_COUNT,
        b"%d" % retry_count,
        _MAX_RETRIES,
        b"%d" % (entry.DEFAULT_MAX_RETRIES if limit is None else limit),
        _ORIGINAL_ID,
        message.original_id.encode(),
    ]


def delayed_fields(
    *,
    topic: str,
    partition: int,
    payload: bytes,
    key: bytes | None,
    headers: dict[str, str],
    timestamp: str,
    max_retries: int,
) -> list[bytes]:
    """Return the fields of an item that is delivered for the first time later.

    Its body is in it whatever its size; the time of sending goes into a header, since
    the mover stamps the entry with the time of the move.
    """
    text, base64 = payload_text(payload)
    own = {**headers, h.ORIGINAL_TIMESTAMP: timestamp}
    return [
        _TOPIC,
        topic.encode(),
        _PARTITION,
        b"%d" % partition,
        _PAYLOAD,
        text,
        _KEY,
        key or b"",
        _HEADERS,
        entry.headers_json(entry.stored_headers(own, text, base64=base64)),
        _RETRY_COUNT,
        b"0",
        _MAX_RETRIES,
        b"%d" % max_retries,
        _ORIGINAL_ID,
        b"",
    ]


def decode_item(item_key: str, due_ms: int, flat: list[bytes]) -> RetryItem:
    """Return the message in a retry item.

    Raises Undecodable for an item without a topic or with a partition that is no
    number: no mover can deliver it.
    """
    fields: dict[bytes, bytes] = dict(zip(flat[::2], flat[1::2], strict=True))
    headers = entry.headers_of(fields.get(_HEADERS))
    retry_count = int_or(fields.get(_RETRY_COUNT), 0)
    stored = fields.get(_PAYLOAD, b"")
    payload = entry.body_of("string", stored, headers, retry_count)
    topic = fields.get(_TOPIC, b"").decode("utf-8", "replace")
    partition = int_or(fields.get(_PARTITION), -1)
    if not topic or partition < 0:
        raise Undecodable(
            f"retry item {item_key} names no partition",
            entry_id=item_key,
            fields=fields,
            payload=payload,
        )
    return RetryItem(
        item=item_key,
        topic=topic,
        partition=partition,
        payload=payload,
        key=fields.get(_KEY) or None,
        headers=headers,
        retry_count=retry_count,
        max_retries=int_or(fields.get(_MAX_RETRIES), 0),
        original_id=fields.get(_ORIGINAL_ID, b"").decode("utf-8", "replace") or None,
        due_ms=due_ms,
    )


def moved_fields(flat_item: list[bytes], timestamp: str) -> list[bytes]:
    """Return the entry that the mover appends for a due item, as Java's does."""
    item: dict[bytes, bytes] = dict(zip(flat_item[::2], flat_item[1::2], strict=True))
    fields = [
        _PAYLOAD,
        item.get(_PAYLOAD, b""),
        _TIMESTAMP,
        timestamp.encode(),
        _RETRY_COUNT,
        item.get(_RETRY_COUNT, b"0"),
        _MAX_RETRIES,
        item.get(_MAX_RETRIES, b"0"),
        _TOPIC,
        item.get(_TOPIC, b""),
        _PARTITION,
        b"%d" % int_or(item.get(_PARTITION), 0),
    ]
    for name in (_KEY, _HEADERS, _ORIGINAL_ID):
        value = item.get(name)
        if value:
            fields += (name, value)
    return fields


def commit_entry(field: bytes, value: bytes) -> tuple[str, str] | None:
    """Return group and committed id from a commit hash; None for what is neither.

    Field and value are read each for itself: newer Java mends a value in plain text
    below a field that an older one wrote.
    """
    group = entry.text_of(entry.loads(commit_codec(field), field))
    committed = entry.text_of(entry.loads(commit_codec(value), value))
    if group is None or committed is None:
        return None
    try:
        ids.parse(committed)
    except ValueError:
        return None
    return group, committed
