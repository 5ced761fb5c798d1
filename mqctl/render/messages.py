r"""Messages as bytes, one way per output format, for whoever writes and flushes them.

A writer only turns items into bytes: `begin`, then `batch` as often as wanted, then
`end`. Nothing here depends on a terminal except the readable lines of `table`.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Literal, Protocol

from mqctl.codecs.envelope import timestamp
from mqctl.core.message import DeadLetter
from mqctl.render.csvline import csv_line
from mqctl.render.notes import escape, escape_bytes
from mqctl.render.template import (
    Item,
    Template,
    attempt_of,
    envelope_of,
    message_of,
)

MessageFormat = Literal["table", "ndjson", "json", "csv", "raw", "none"]
CSV_COLUMNS = (
    "topic",
    "partition",
    "id",
    "timestamp",
    "ts_ms",
    "key",
    "attempt",
    "payload",
    "payload_b64",
    "key_b64",
)
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


class MessageWriter(Protocol):
    """Turns messages into the bytes of one document."""

    def begin(self) -> bytes:
        """Return what stands before the first item."""

    def batch(self, items: Iterable[Item]) -> bytes:
        """Return the items, complete: what was written can be acknowledged."""

    def end(self) -> bytes:
        """Return what closes the document."""


class EachWriter:
    """Writes each item by itself, after an optional header."""

    def __init__(self, encode: Callable[[Item], bytes], head: bytes = b"") -> None:
        self._encode = encode
        self._head = head

    def begin(self) -> bytes:
        """Return the header."""
        return self._head

    def batch(self, items: Iterable[Item]) -> bytes:
        """Return the items one after the other."""
        return b"".join(map(self._encode, items))

    def end(self) -> bytes:
        """Return nothing."""
        return b""


class ArrayWriter:
    """Writes one JSON array with an item per line; `[]` when there is none."""

    def __init__(self, encode: Callable[[Item], bytes]) -> None:
        self._encode = encode
        self._separator = b"\n"

    def begin(self) -> bytes:
        """Return the opening bracket."""
        return b"["

    def batch(self, items: Iterable[Item]) -> bytes:
        """Return the items, each behind its separator."""
        parts = []
        for item in items:
            parts += [self._separator, self._encode(item)[:-1]]
            self._separator = b",\n"
        return b"".join(parts)

    def end(self) -> bytes:
        """Return the closing bracket."""
        return b"]\n" if self._separator == b"\n" else b"\n]\n"


def message_writer(
    output: MessageFormat,
    *,
    delimiter: bytes = b"\n",
    receipt: bool = False,
    json_payload: bool = False,
    show_topic: bool = False,
    color: bool = False,
) -> MessageWriter:
    """Return the writer of an output format.

    `delimiter` ends each payload of `raw`; `receipt` and `json_payload` are for the
    envelopes of `ndjson` and `json`; `show_topic` and `color` for `table`.
    """

    def line(item: Item) -> bytes:
        return envelope_of(item, receipt=receipt, json_payload=json_payload)

    def readable(item: Item) -> bytes:
        return message_line(item, show_topic=show_topic, color=color).encode() + b"\n"

    if output == "json":
        return ArrayWriter(line)
    if output == "csv":
        return EachWriter(csv_row, csv_line(CSV_COLUMNS))
    encoders: dict[str, Callable[[Item], bytes]] = {
        "raw": lambda item: message_of(item).payload + delimiter,
        "ndjson": line,
        "table": readable,
        "none": lambda _: b"",
    }
    return EachWriter(encoders[output])


def template_writer(template: Template) -> MessageWriter:
    """Return the writer of a format string."""
    return EachWriter(template.render)


def csv_row(item: Item) -> bytes:
    """Return the item under CSV_COLUMNS.

    Payload and key are text, or base64 in a column of their own when they are not
    UTF-8. CSV does not tell no key from an empty one.
    """
    message = message_of(item)
    key, key_b64 = _text_or_base64(message.key or b"")
    payload, payload_b64 = _text_or_base64(message.payload)
    return csv_line(
        (
            message.topic,
            message.partition,
            message.id,
            timestamp(message),
            message.ts_ms,
            key,
            attempt_of(item),
            payload,
            payload_b64,
            key_b64,
        )
    )


def message_line(item: Item, *, show_topic: bool = False, color: bool = False) -> str:
    """Return `[partition] id key | payload` on one line, safe for a terminal.

    No key is `-`, an empty one `""`; a dead letter's reason follows the key.
    """
    message = message_of(item)
    topic = f"{escape(message.topic)} " if show_topic else ""
    place = f"{topic}[{message.partition}] {message.id}"
    if color:
        place = f"{_DIM}{place}{_PLAIN}"
    key = "-" if message.key is None else escape_bytes(message.key) or '""'
    reason = f" ({escape(item.death.reason)})" if isinstance(item, DeadLetter) else ""
    return f"{place} {key}{reason} | {escape_bytes(message.payload)}"


def _text_or_base64(raw: bytes) -> tuple[str, str]:
    try:
        return raw.decode(), ""
    except UnicodeDecodeError:
        return "", b64encode(raw).decode()
