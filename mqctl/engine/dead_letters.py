"""Dead letters: which topics have some, what they say, removing them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from mqctl.codecs import dead_letter
from mqctl.core import headers as h
from mqctl.core.errors import Denied
from mqctl.core.filters import Filter, like
from mqctl.core.message import DeadLetter, int_or
from mqctl.engine import admin, tail, topics
from mqctl.engine.session import Session
from mqctl.engine.tail import Reader

if TYPE_CHECKING:
    from mqctl.store.wire import Command

_START = 80  # characters of a payload that a row shows


@dataclass(frozen=True, slots=True)
class TopicDead:
    """How many dead letters a topic has, and when the first and last failed."""

    topic: str
    dead: int
    first_failed_at_ms: int | None
    last_failed_at_ms: int | None


@dataclass(frozen=True, slots=True)
class DeadRow:
    """A dead letter in a list; what nothing says is None."""

    topic: str
    id: str
    failed_at_ms: int
    reason: str
    detail: str | None
    group: str | None
    partition: int | None
    key: str | None
    attempts: int
    max_retries: int | None
    exit_code: int | None
    signal: str | None
    original_id: str | None
    last_id: str | None
    replays: int
    last_replayed_at_ms: int | None
    payload_bytes: int
    payload_start: str
    codec: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Which dead letters: by reason and key (globs), between two ids of theirs."""

    reason: str | None = None
    key: str | None = None
    first: str = "-"
    to: str = "+"


@dataclass(frozen=True, slots=True)
class Removal:
    """What removing dead letters takes, and took."""

    action: str
    topic: str
    dry_run: bool
    selected: int
    not_found: int
    deleted: int


@dataclass(frozen=True, slots=True)
class Replays:
    """How often a dead letter was replayed, and when last, epoch ms."""

    count: int = 0
    last_ms: int | None = None

    @staticmethod
    def parse(raw: bytes | None) -> "Replays":
        """Read `count:ms`; anything else is no replay."""
        count, _, ms = (raw or b"").partition(b":")
        return Replays(int_or(count, 0), int(ms) if ms.isdigit() else None)


def counts(session: Session) -> list[TopicDead]:
    """Return the topics that have dead letters, deleted topics too, sorted."""
    names = sorted({*topics.names(session), *_orphans(session)})
    keys = [session.keys.dlq(name) for name in names]
    infos = admin.streams(session, keys)
    found = [
        (name, key, info)
        for name, key, info in zip(names, keys, infos, strict=True)
        if info.length
    ]
    commands: list[Command] = []
    for _, key, _ in found:
        commands.append(("XRANGE", key, "-", "+", "COUNT", 1))
        commands.append(("XREVRANGE", key, "+", "-", "COUNT", 1))
    replies = iter(admin.trips(session, commands))
    return [
        TopicDead(name, info.length, _failed_at(name, first), _failed_at(name, last))
        for (name, _, info), first, last in zip(found, replies, replies, strict=True)
    ]


def _failed_at(topic: str, reply: object) -> int | None:
    rows = admin.checked(reply, "looking at dead letters")
    if not rows:
        return None
    return dead_letter.decode(topic, rows[0][0].decode(), rows[0][1]).failed_at_ms


def _orphans(session: Session) -> Iterator[str]:
    """Yield topics that have a dead-letter stream, found by SCAN in steps."""
    prefix, suffix = session.keys.dlq("\0").split("\0")
    pattern = f"{admin.literal(prefix)}*{suffix}"
    try:
        for name in admin.scan(session, pattern, kind="stream"):
            yield name.removeprefix(prefix).removesuffix(suffix)
    except Denied:  # then those in the registry are all that can be known
        return


def size(session: Session, topic: str) -> int:
    """Return the number of a topic's dead letters; NotFound as in `tail.sources`."""
    tail.sources(session, topic, dead=True)
    return int(session.wire.call("XLEN", session.keys.dlq(topic)))


def newest(
    reader: Reader, topic: str, selection: Selection, limit: int
) -> Iterator[DeadLetter]:
    """Yield up to `limit` (0 = all) dead letters that are meant, newest first."""
    session = reader.session
    source = tail.sources(session, topic, dead=True)
    reader.wanted = Filter(key=selection.key)
    filtered = selection.key is not None or selection.reason is not None
    page = tail.PAGE if filtered else min(limit or tail.PAGE, tail.PAGE)
    raws = tail.entries(
        session, source, selection.first, selection.to, newest_first=True, page=page
    )
    found = (
        item
        for item in reader.items(raws, page)
        if isinstance(item, DeadLetter)
        and (selection.reason is None or like(item.death.reason, selection.reason))
    )
    return islice(found, limit or None)


def rows(
    session: Session, topic: str, letters: Iterable[DeadLetter]
) -> Iterator[DeadRow]:
    """Yield a row for each; a trip per 100."""
    source = iter(letters)
    while part := list(islice(source, 100)):
        told = history(session, topic, [letter.message.id for letter in part])
        for letter, replays in zip(part, told, strict=True):
            yield _row(topic, letter, replays)


def history(session: Session, topic: str, entry_ids: Sequence[str]) -> list[Replays]:
    """Return what is known of earlier replays of these dead letters; one trip."""
    key = session.keys.replayed(topic)
    return [Replays.parse(raw) for raw in session.wire.call("HMGET", key, *entry_ids)]


def _row(topic: str, letter: DeadLetter, replays: Replays) -> DeadRow:
    message, death = letter.message, letter.death
    return DeadRow(
        topic=topic,
        id=message.id,
        failed_at_ms=letter.failed_at_ms,
        reason=death.reason,
        detail=death.detail or None,
        group=death.group or None,
        partition=message.partition if letter.partition_known else None,
        key=None if message.key is None else message.key.decode("utf-8", "replace"),
        attempts=death.attempts,
        max_retries=message.max_retries,
        exit_code=death.exit_code,
        signal=death.signal,
        original_id=message.headers.get(h.ORIGINAL_ID) or message.first_id,
        last_id=letter.last_id,
        replays=replays.count,
        last_replayed_at_ms=replays.last_ms,
        payload_bytes=len(message.payload),
        payload_start=message.payload.decode("utf-8", "replace")[:_START],
        codec=letter.codec,
    )


def get(reader: Reader, topic: str, entry_id: str) -> DeadLetter | None:
    """Return one dead letter, None when it is not there."""
    source = tail.sources(reader.session, topic, dead=True)
    raws = tail.entries(reader.session, source, entry_id, entry_id)
    return next((i for i in reader.items(raws) if isinstance(i, DeadLetter)), None)


def remove(
    session: Session, topic: str, entry_ids: Sequence[str], *, dry_run: bool
) -> Removal:
    """Delete dead letters with what is known of their replays, or only count them.

    The history goes last: a crash in between leaves a line nobody reads.
    """
    tail.sources(session, topic, dead=True)
    dlq, replayed = session.keys.dlq(topic), session.keys.replayed(topic)
    unique = list(dict.fromkeys(entry_ids))
    there = [
        bool(admin.checked(reply, "looking at dead letters"))
        for reply in admin.trips(session, [("XRANGE", dlq, i, i) for i in unique])
    ]
    present = [i for i, found in zip(unique, there, strict=True) if found]
    deleted = 0
    if present and not dry_run:
        deleted = session.wire.call("XDEL", dlq, *present)
        session.wire.call("HDEL", replayed, *present)
    return Removal(
        action="dlq-delete",
        topic=topic,
        dry_run=dry_run,
        selected=len(unique),
        not_found=len(unique) - len(present),
        deleted=deleted,
    )
