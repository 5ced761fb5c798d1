"""What waits in a topic's retry bucket: failed messages, and delayed ones."""

from dataclasses import dataclass
from itertools import islice

from mqctl.codecs import native
from mqctl.core import headers as h
from mqctl.core.errors import Undecodable
from mqctl.core.message import RetryItem
from mqctl.engine import admin, topics
from mqctl.engine.session import Session
from mqctl.store.wire import Reply, ServerError

_PAGE = 1000
_FETCH = 100  # items whose bodies are loaded at once


@dataclass(frozen=True, slots=True)
class RetryRow:
    """An item that waits. `item` is its UUID, the whole key where that is foreign.

    `attempt` is the one it will be. `state`: ok, broken (no mover can deliver it) or
    orphan (nothing is left of it but its place in the list).
    """

    topic: str
    item: str
    kind: str | None
    partition: int | None
    group: str | None
    due_at_ms: int
    due_in_ms: int
    attempt: int | None
    max_retries: int | None
    original_id: str | None
    key: str | None
    payload_bytes: int | None
    state: str


def rows(session: Session, topic: str) -> list[RetryRow]:
    """Return all items by due time; NotFound when the topic is not there."""
    topics.require(session, topic)
    due = sorted(_due(session, topic).items(), key=lambda item: (item[1], item[0]))
    made: list[RetryRow] = []
    left = iter(due)
    while part := list(islice(left, _FETCH)):
        replies = session.wire.batch([("HGETALL", item) for item, _ in part])
        made += [
            _row(session, topic, item, due_ms, flat)
            for (item, due_ms), flat in zip(part, replies, strict=True)
        ]
    return made


def _due(session: Session, topic: str) -> dict[str, int]:
    """Return every item's due time; what waits all the time is never passed over."""
    found: dict[str, int] = {}
    cursor = "0"
    while True:
        raw, pairs = session.wire.call(
            "ZSCAN", session.keys.retries(topic), cursor, "COUNT", _PAGE
        )
        for member, score in zip(pairs[::2], pairs[1::2], strict=True):
            found[admin.text(member)] = int(float(score))
        cursor = raw.decode()
        if cursor == "0":
            return found


def _row(session: Session, topic: str, item: str, due_ms: int, flat: Reply) -> RetryRow:
    decoded: RetryItem | None = None
    state = "ok" if flat else "orphan"
    if isinstance(flat, ServerError):
        state = "broken"
    elif flat:
        try:
            decoded = native.decode_item(item, due_ms, flat)
        except Undecodable:
            state = "broken"
    group = decoded.headers.get(h.RETRY_GROUP) if decoded else None
    key = decoded.key if decoded else None
    return RetryRow(
        topic=topic,
        item=item.removeprefix(session.keys.retry_item(topic, "")),
        kind=_kind(decoded, group) if decoded else None,
        partition=decoded.partition if decoded else None,
        group=group,
        due_at_ms=due_ms,
        due_in_ms=due_ms - session.clock.now_ms(),
        attempt=decoded.retry_count + 1 if decoded else None,
        max_retries=decoded.max_retries if decoded else None,
        original_id=decoded.original_id if decoded else None,
        key=None if key is None else key.decode("utf-8", "replace"),
        payload_bytes=len(decoded.payload) if decoded else None,
        state=state,
    )


def _kind(item: RetryItem, group: str | None) -> str:
    never_delivered = not item.retry_count and not item.original_id and group is None
    return "delayed" if never_delivered else "retry"
