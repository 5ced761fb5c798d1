"""What the server says about a topic's streams and the groups that read them.

Everything here only reads, and creates nothing. A partition that was never written is
an empty stream; what the server cannot say is None, never 0.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from mqctl.codecs import native
from mqctl.core import ids
from mqctl.core.errors import NotFound
from mqctl.engine.claims import FOREVER_MS
from mqctl.engine.session import Session
from mqctl.store.wire import Arg, Command, Reply, ServerError

_TRIP = 500  # commands sent at once
_PAGE = 1000  # pending entries read at once


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A stream: entries in it and ever added to it, ids of the oldest and newest.

    `generated_id` is the highest id it ever gave out, `deleted_id` the highest one
    that was deleted (None: the server does not tell).
    """

    length: int = 0
    entries_added: int | None = 0
    first_id: str | None = None
    last_id: str | None = None
    generated_id: str = "0-0"
    deleted_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A group on one stream, as XINFO GROUPS has it."""

    pending: int
    delivered_id: str
    lag: int | None
    entries_read: int | None


@dataclass(frozen=True, slots=True)
class Backlog:
    """What a group has not been given of a partition: entries, age of the oldest."""

    lag: int | None
    lag_ms: int


@dataclass(frozen=True, slots=True)
class Pending:
    """An entry delivered to a consumer and not acknowledged."""

    id: str
    consumer: str
    idle_ms: int
    deliveries: int


def trips(session: Session, commands: Iterable[Command]) -> list[Reply]:
    """Run any number of commands, a bounded number at once; errors are values."""
    source, replies = iter(commands), []
    while part := list(islice(source, _TRIP)):
        replies += session.wire.batch(part)
    return replies


def streams(session: Session, keys: Iterable[str]) -> list[StreamInfo]:
    """Look at streams, one trip per 500."""
    return [
        StreamInfo() if fields is None else _stream(fields)
        for fields in _infos(session, [("XINFO", "STREAM", key) for key in keys])
    ]


def groups(session: Session, keys: Iterable[str]) -> list[dict[str, GroupInfo]]:
    """Look at the groups of streams, by name; one trip per 500."""
    found = _infos(session, [("XINFO", "GROUPS", key) for key in keys])
    return [dict(map(_group, rows or ())) for rows in found]


def backlogs(
    session: Session, parts: Sequence[tuple[str, StreamInfo, GroupInfo | None]]
) -> list[Backlog]:
    """Count what is undelivered on each (stream, its info, the group's); one trip.

    A group that is not on a stream has been given nothing of it. The count is exact
    when nothing or everything is undelivered, else the server's, None when it has
    none and its counters do not tell either.
    """
    replies = trips(
        session,
        [
            ("XRANGE", key, f"({g.delivered_id}" if g else "-", "+", "COUNT", 1)
            for key, _, g in parts
        ],
    )
    now = session.clock.now_ms()
    made = []
    for (_, info, group), reply in zip(parts, replies, strict=True):
        rows = checked(reply, "looking at what is undelivered")
        if not rows:
            made.append(Backlog(0, 0))
            continue
        oldest = rows[0][0].decode()
        lag = info.length if oldest == info.first_id else _lag(info, group)
        made.append(Backlog(lag, max(0, now - ids.parse(oldest)[0])))
    return made


def _lag(info: StreamInfo, group: GroupInfo | None) -> int | None:
    """Return a count that is above 0, None when nothing vouches for it."""
    if group is None or group.lag:
        return group.lag if group else None
    # Redis gives up when the last delivered entry itself was deleted, too.
    if info.entries_added is None or not group.entries_read or not info.deleted_id:
        return None
    if ids.parse(info.deleted_id) > ids.parse(group.delivered_id):
        return None
    return max(0, info.entries_added - group.entries_read) or None


def pending(
    session: Session,
    key: str,
    group: str,
    *,
    idle_ms: int = 0,
    consumer: str | None = None,
) -> Iterator[Pending]:
    """Yield what a group has pending on a stream, in id order; a trip per 1000.

    Only what is idle for `idle_ms` and held by `consumer`, when given. An entry that
    was given back counts as idle since then: Redis has it as idle for ages, so that
    everybody may claim it.
    """
    who: list[Arg] = [] if consumer is None else [consumer]
    idle: list[Arg] = ["IDLE", idle_ms] if idle_ms else []
    cursor = "-"
    while True:
        command: list[Arg] = ["XPENDING", key, group, *idle, cursor, "+", _PAGE, *who]
        rows = session.wire.call(*command)
        now = session.clock.now_ms()
        for raw_id, owner, age, deliveries in rows:
            entry_id = raw_id.decode()
            since = _true_idle(entry_id, age, now)
            if since >= idle_ms:
                yield Pending(entry_id, text(owner), since, deliveries)
        if len(rows) < _PAGE:
            return
        cursor = ids.after(rows[-1][0].decode())


def _true_idle(entry_id: str, idle_ms: int, now_ms: int) -> int:
    older_than_itself = (
        idle_ms >= FOREVER_MS and idle_ms > now_ms - (ids.parse(entry_id)[0])
    )
    return idle_ms - FOREVER_MS if older_than_itself else idle_ms


def committed(
    session: Session, topic: str, partitions: Iterable[int], group: str
) -> list[str | None]:
    """Return how far each partition is finished by the commit hash; one trip."""
    replies = trips(
        session, [("HGETALL", session.keys.commit(topic, i)) for i in partitions]
    )
    found: list[str | None] = []
    for reply in replies:
        flat = checked(reply, "looking at the commit hash")
        entries = map(native.commit_entry, flat[::2], flat[1::2])
        known = [entry[1] for entry in entries if entry and entry[0] == group]
        found.append(max(known, key=ids.parse, default=None))
    return found


def no_group(topic: str, group: str, known: Iterable[str]) -> NotFound:
    """Return the error for an unknown group, with the nearest name as a hint."""
    from difflib import get_close_matches

    near = get_close_matches(group, list(known), 1)
    hint = f"did you mean {near[0]}?" if near else f"mqctl admin groups {topic}"
    message = f"topic {topic} has no group {group}"
    return NotFound(message, hint=hint, topic=topic, group=group)


def scan(session: Session, pattern: str, kind: str | None = None) -> Iterator[str]:
    """Yield keys that match, in steps; one that is moved meanwhile may come twice."""
    of_kind: list[Arg] = [] if kind is None else ["TYPE", kind]
    cursor = "0"
    while True:
        raw, names = session.wire.call(
            "SCAN", cursor, "MATCH", pattern, "COUNT", _PAGE, *of_kind
        )
        yield from map(text, names)
        cursor = raw.decode()
        if cursor == "0":
            return


def literal(name: str) -> str:
    """Return a pattern of Redis's that matches this text alone."""
    return re.sub(r"([*?\[\]\\^])", r"\\\1", name)


def checked(reply: Reply, doing: str) -> Reply:
    """Return a reply; an error in its place is raised."""
    if isinstance(reply, ServerError):
        raise reply.explained(doing)
    return reply


def text(raw: bytes) -> str:
    """Return a name as text, whatever its bytes."""
    return raw.decode("utf-8", "surrogateescape")


def fields_of(row: list[Reply]) -> dict[bytes, Reply]:
    """Return an XINFO reply of names and values as a dictionary."""
    return dict(zip(row[::2], row[1::2], strict=True))


def sum_or_none(counts: Iterable[int | None]) -> int | None:
    """Add counts; unknown when one of them is."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def ms_of(entry_id: str | None) -> int | None:
    """Return the time in an entry's id, epoch ms."""
    return None if entry_id is None else ids.parse(entry_id)[0]


def oldest_id(found: Iterable[str | None]) -> str | None:
    """Return the lowest id that is there."""
    return min((i for i in found if i is not None), key=ids.parse, default=None)


def newest_id(found: Iterable[str | None]) -> str | None:
    """Return the highest id that is there."""
    return max((i for i in found if i is not None), key=ids.parse, default=None)


def _infos(session: Session, commands: list[Command]) -> list[Reply]:
    """Return XINFO's replies, None where there is no such stream."""
    found: list[Reply] = []
    for command, reply in zip(commands, trips(session, commands), strict=True):
        missing = isinstance(reply, ServerError) and "no such key" in reply.text
        found.append(None if missing else checked(reply, f"looking at {command[2]!s}"))
    return found


def _stream(row: list[Reply]) -> StreamInfo:
    fields = fields_of(row)
    first, last = fields[b"first-entry"], fields[b"last-entry"]
    deleted = fields.get(b"max-deleted-entry-id")
    return StreamInfo(
        length=fields[b"length"],
        entries_added=fields.get(b"entries-added"),
        first_id=first[0].decode() if first else None,
        last_id=last[0].decode() if last else None,
        generated_id=fields[b"last-generated-id"].decode(),
        deleted_id=deleted.decode() if deleted else None,
    )


def _group(row: list[Reply]) -> tuple[str, GroupInfo]:
    fields = fields_of(row)
    delivered = fields[b"last-delivered-id"].decode()
    read = fields.get(b"entries-read")
    return text(fields[b"name"]), GroupInfo(
        pending=fields[b"pending"],
        delivered_id=delivered,
        lag=fields.get(b"lag"),
        entries_read=0 if delivered == "0-0" else read,
    )
