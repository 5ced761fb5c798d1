"""The retry bucket: what waits, and moving what is due into its partition.

One atomic script per item where the keys share a slot. Elsewhere an item is first
pushed ahead, so that nobody else moves it meanwhile, then appended, then removed: a
crash in between repeats it, never loses it.
"""

from dataclasses import dataclass

from mqctl.codecs import native
from mqctl.core.clock import rfc3339
from mqctl.core.errors import MqError, Undecodable, WrongType
from mqctl.core.message import RetryItem
from mqctl.engine.session import Session
from mqctl.store import scripts
from mqctl.store.wire import Command, ServerError

_HOLD_MS = 30_000


@dataclass(frozen=True, slots=True)
class Moved:
    """One round of the mover. `next_ms` is how long until the next item is due.

    `broken` are items that cannot be moved: they name no partition, or it takes no
    entries. They are kept, and pushed ahead half a minute.
    """

    moved: int
    next_ms: int | None
    broken: list[str]
    more: bool


def move_due(session: Session, topic: str, limit: int = 100) -> Moved:
    """Move up to `limit` due items of a topic. One trip when none is due, else three.

    Due is decided by the server's clock. Any number of movers may run at once.
    Raises OutOfMemory when the server takes no entries; every item stays then.
    """
    keys, wire = session.keys, session.wire
    zset = keys.retries(topic)
    atomic = session.atomic([zset, keys.partition(topic, 0)])
    hold = 0 if atomic else _HOLD_MS
    ((now, after, *due),) = wire.calls([scripts.due_items(wire, zset, limit, hold)])
    next_ms = None if after == b"" else max(0, int(float(after)) - int(now))
    if not due:
        return Moved(0, next_ms, [], more=False)
    items = [item.decode("utf-8", "surrogateescape") for item in due]
    found = wire.batch([("HGETALL", item) for item in items])
    ready: list[tuple[str, str, list[bytes]]] = []
    broken: list[str] = []
    gone: list[str] = []
    for item, flat in zip(items, found, strict=True):
        if isinstance(flat, ServerError):
            broken.append(item)
        elif not flat:
            gone.append(item)
        else:
            try:
                entry = native.decode_item(item, 0, flat)
            except Undecodable:
                broken.append(item)
                continue
            stream = keys.partition(entry.topic, entry.partition)
            fields = native.moved_fields(flat, rfc3339(session.clock.now_ms()))
            ready.append((item, stream, fields))
    moved, refused = _move(session, zset, ready)
    broken += refused
    tidy: list[Command] = [("ZREM", zset, item) for item in gone]
    tidy += [scripts.schedule_item(wire, zset, item, _HOLD_MS) for item in broken]
    wire.calls(tidy)
    return Moved(moved, next_ms, broken, more=len(due) == limit)


def _move(
    session: Session, zset: str, ready: list[tuple[str, str, list[bytes]]]
) -> tuple[int, list[str]]:
    """Return how many were moved, and the items whose partition takes no entries."""
    wire = session.wire
    whole = [r for r in ready if session.atomic([zset, r[0], r[1]])]
    apart = [r for r in ready if r not in whole]
    replies = wire.batch([scripts.move_item(wire, zset, i, s, f) for i, s, f in whole])
    for item, stream, fields in apart:
        (added,) = wire.batch([("XADD", stream, "*", *fields)])
        if not isinstance(added, ServerError):
            wire.calls([("DEL", item), ("ZREM", zset, item)])
        replies.append(added if isinstance(added, ServerError) else 1)
    refused: list[str] = []
    for (item, _, _), reply in zip(whole + apart, replies, strict=True):
        if not isinstance(reply, ServerError):
            continue
        error = reply.explained("moving a retry")
        if type(error) not in {MqError, WrongType}:
            raise error
        refused.append(item)
    return sum(r for r in replies if isinstance(r, int)), refused


def waiting(session: Session, topic: str) -> tuple[int, int, int | None]:
    """Return how many items wait, how many are due, and when the next is, epoch ms."""
    zset = session.keys.retries(topic)
    now = session.clock.now_ms()
    total, due, first = session.wire.calls(
        [
            ("ZCARD", zset),
            ("ZCOUNT", zset, "-inf", now),
            ("ZRANGE", zset, 0, 0, "WITHSCORES"),
        ]
    )
    return total, due, int(float(first[1])) if first else None


def listed(session: Session, topic: str) -> list[RetryItem]:
    """Return the readable items that wait, by due time, at most 10,000. Two trips."""
    zset = session.keys.retries(topic)
    rows = session.wire.call("ZRANGE", zset, 0, 9_999, "WITHSCORES")
    names = [raw.decode("utf-8", "surrogateescape") for raw in rows[::2]]
    found = session.wire.batch([("HGETALL", name) for name in names])
    items: list[RetryItem] = []
    for name, due, flat in zip(names, rows[1::2], found, strict=True):
        if isinstance(flat, ServerError) or not flat:
            continue
        try:
            items.append(native.decode_item(name, int(float(due)), flat))
        except Undecodable:
            continue
    return items
