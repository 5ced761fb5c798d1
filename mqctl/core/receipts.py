"""Receipts: what settles a delivery later, from another process."""

import re
from dataclasses import dataclass

from mqctl.core import ids
from mqctl.core.errors import BadData

_SAFE = re.compile(r"[A-Za-z0-9._~-]*")
_UNSAFE = re.compile(rb"[^A-Za-z0-9._~-]")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_TEXT = r"((?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})+)"
_RECEIPT = re.compile(
    rf"r1:{_TEXT}:([0-9]{{1,10}}):([0-9]{{1,20}}-[0-9]{{1,20}})"
    rf":{_TEXT}:{_TEXT}:([0-9]{{1,19}})"
)


@dataclass(frozen=True, slots=True)
class Receipt:
    """The right to settle one entry, as long as it is pending just like this.

    It holds while the entry is pending under `consumer` with that many
    `deliveries`, whether or not the consumer still runs.
    """

    topic: str
    partition: int
    id: str
    group: str
    consumer: str
    deliveries: int


def format_receipt(receipt: Receipt) -> str:
    """Write `r1:TOPIC:PARTITION:ID:GROUP:CONSUMER:DELIVERIES`, percent-encoded."""
    return (
        f"r1:{_quote(receipt.topic)}:{receipt.partition}:{receipt.id}"
        f":{_quote(receipt.group)}:{_quote(receipt.consumer)}:{receipt.deliveries}"
    )


def parse_receipt(text: str) -> Receipt:
    """Read a receipt; BadData when it is none."""
    found = _RECEIPT.fullmatch(text)
    if not found:
        raise BadData(f"not a receipt: {text[:200]}")
    try:
        ids.parse(found[3])
        return Receipt(
            topic=_unquote(found[1]),
            partition=int(found[2]),
            id=found[3],
            group=_unquote(found[4]),
            consumer=_unquote(found[5]),
            deliveries=int(found[6]),
        )
    except ValueError:  # an id out of range, or a name that is not UTF-8
        raise BadData(f"not a receipt: {text[:200]}") from None


def _quote(text: str) -> str:
    if _SAFE.fullmatch(text):
        return text
    return _UNSAFE.sub(lambda found: b"%%%02X" % found[0][0], text.encode()).decode()


def _unquote(text: str) -> str:
    raw = _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), text.encode())
    return raw.decode()
