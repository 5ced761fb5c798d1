"""What a group has pending: delivered to somebody, acknowledged by nobody."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import nlargest, nsmallest
from itertools import count
from typing import Literal

from mqctl.codecs import native
from mqctl.core import ids, verdict
from mqctl.core.errors import Undecodable
from mqctl.core.message import Message
from mqctl.engine import admin, admin_groups, payloads
from mqctl.engine.admin import Pending
from mqctl.engine.session import Session
from mqctl.store.wire import Reply

Sort = Literal["idle", "deliveries", "id"]
_PAGE = 100  # entries whose bodies are loaded at once
_Found = tuple[int, Pending]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which pending entries: of one consumer, idle for at least that long."""

    consumer: str | None = None
    idle_ms: int = 0


@dataclass(frozen=True, slots=True)
class PendingRow:
    """A pending entry. What only the entry can say is None when it was trimmed."""

    topic: str
    group: str
    partition: int
    id: str
    consumer: str
    consumer_state: str
    idle_ms: int
    deliveries: int
    attempt: int | None
    state: str
    key: str | None
    payload_bytes: int | None


@dataclass(frozen=True, slots=True)
class PendingCount:
    """How many entries a group has pending."""

    topic: str
    group: str
    pending: int


def rows(
    session: Session,
    topic: str,
    group: str,
    selection: Selection,
    *,
    limit: int,
    sort: Sort,
    ascending: bool,
) -> list[PendingRow]:
    """Return the first `limit` (0 = all) in that order, of all that is pending.

    All pages are read, so the order is right whatever the number.
    """
    seen = admin_groups.looks(session, topic)
    seen.require(group)
    pick = nsmallest if ascending else nlargest
    found = _selected(seen, group, selection)
    key = _ORDER[sort]
    picked = (
        pick(limit, found, key=key)
        if limit
        else sorted(found, key=key, reverse=not ascending)
    )
    states = seen.states(group)
    made: list[PendingRow] = []
    for start in range(0, len(picked), _PAGE):
        made += _described(seen, group, picked[start : start + _PAGE], states)
    return made


def counted(
    session: Session, topic: str, group: str, selection: Selection
) -> PendingCount:
    """Return how many entries are pending; without a selection by counters alone."""
    seen = admin_groups.looks(session, topic)
    seen.require(group)
    if selection == Selection():
        total = sum(found[group].pending for found in seen.groups if group in found)
    else:
        total = sum(1 for _ in _selected(seen, group, selection))
    return PendingCount(topic, group, total)


_ORDER: dict[Sort, Callable[[_Found], tuple[object, ...]]] = {
    "idle": lambda found: (found[1].idle_ms, ids.parse(found[1].id), found[0]),
    "deliveries": lambda found: (
        found[1].deliveries,
        found[1].idle_ms,
        ids.parse(found[1].id),
        found[0],
    ),
    "id": lambda found: (ids.parse(found[1].id), found[0]),
}


def _selected(
    seen: admin_groups.Looks, group: str, selection: Selection
) -> Iterator[_Found]:
    for index, key, groups in zip(count(), seen.streams, seen.groups, strict=False):
        if group in groups:
            for entry in admin.pending(
                seen.session,
                key,
                group,
                idle_ms=selection.idle_ms,
                consumer=selection.consumer,
            ):
                yield index, entry


def _described(
    seen: admin_groups.Looks, group: str, found: list[_Found], states: dict[str, str]
) -> list[PendingRow]:
    session, topic = seen.session, seen.topic
    replies = admin.trips(
        session,
        [("XRANGE", seen.streams[i], entry.id, entry.id) for i, entry in found],
    )
    rows = [admin.checked(reply, "reading pending entries") for reply in replies]
    messages = [
        _message(topic, i, entry.id, entries)
        for (i, entry), entries in zip(found, rows, strict=True)
    ]
    present = [message for message in messages if message is not None]
    bodies = iter(payloads.load(session, present))
    made: list[PendingRow] = []
    for (index, entry), entries, message in zip(found, rows, messages, strict=True):
        body = next(bodies) if message is not None else None
        key = message.key if message else None
        made.append(
            PendingRow(
                topic=topic,
                group=group,
                partition=index,
                id=entry.id,
                consumer=entry.consumer,
                consumer_state=states.get(entry.consumer, "gone"),
                idle_ms=entry.idle_ms,
                deliveries=entry.deliveries,
                attempt=_attempt(message, entry) if message else None,
                state="ok" if entries else "trimmed",
                key=None if key is None else key.decode("utf-8", "replace"),
                payload_bytes=len(body.payload) if body else None,
            )
        )
    return made


def _message(topic: str, index: int, entry_id: str, entries: Reply) -> Message | None:
    if not entries:
        return None
    try:
        return native.decode(topic, index, entry_id, entries[0][1])
    except Undecodable:
        return None


def _attempt(message: Message, entry: Pending) -> int:
    """Return the attempt that is under way, or will be the next when none is."""
    return max(
        message.retry_count + 1,
        verdict.attempts_made(message.retry_count, entry.deliveries),
    )
