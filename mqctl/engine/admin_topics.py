"""Topics as a whole: what there is, how much of it, where a key goes."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from mqctl.core.errors import NameInUse
from mqctl.core.partition import java_hash, key_partition
from mqctl.engine import admin, admin_groups, retries, topics
from mqctl.engine.admin import GroupInfo, StreamInfo
from mqctl.engine.session import Session
from mqctl.store.wire import Command, ServerError


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic in a list. `groups` counts distinct names."""

    topic: str
    partitions: int
    length: int
    groups: int
    pending: int
    retries: int
    dead: int
    entries_added: int | None
    last_id: str | None
    last_at_ms: int | None


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic in full. `memory_bytes` is that of its partitions."""

    topic: str
    partitions: int
    length: int
    entries_added: int | None
    first_id: str | None
    first_at_ms: int | None
    last_id: str | None
    last_at_ms: int | None
    groups: int
    members: int
    pending: int
    lag: int | None
    memory_bytes: int | None
    retries: int
    retries_due: int
    next_due_at_ms: int | None
    dead: int
    payloads: int
    codec: str


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition; `owners` names the lease holder of each group, if any."""

    topic: str
    partition: int
    stream: str
    length: int
    entries_added: int | None
    first_id: str | None
    first_at_ms: int | None
    last_id: str | None
    last_at_ms: int | None
    memory_bytes: int | None
    groups: int
    pending: int
    owners: dict[str, str | None]


@dataclass(frozen=True, slots=True)
class Route:
    """Where a key goes; `hash` is Java's."""

    topic: str
    key: str
    hash: int
    partition: int


def named(session: Session, pattern: str | None) -> list[str]:
    """Return the registered topics a glob matches (or that have it for a name)."""
    return [
        name
        for name in topics.names(session)
        if pattern is None or name == pattern or fnmatchcase(name, pattern)
    ]


def rows(session: Session, names: Iterable[str]) -> list[TopicRow]:
    """Return a row for each topic; four trips per 500 commands."""
    listed = list(names)
    keys = session.keys
    sizes: list[Command] = []
    for name in listed:
        sizes += [
            ("HGET", keys.meta(name), "partitionCount"),
            ("ZCARD", keys.retries(name)),
            ("XLEN", keys.dlq(name)),
        ]
    replies = iter(
        admin.checked(r, "looking at the topics") for r in admin.trips(session, sizes)
    )
    counted = [
        (name, topics.counted(name, stored), waiting, dead)
        for name, stored, waiting, dead in zip(
            listed, replies, replies, replies, strict=True
        )
    ]
    every = [keys.partition(name, i) for name, n, *_ in counted for i in range(n)]
    infos = iter(admin.streams(session, every))
    groups = iter(admin.groups(session, every))
    return [
        _row(
            name,
            [next(infos) for _ in range(n)],
            [next(groups) for _ in range(n)],
            waiting,
            dead,
        )
        for name, n, waiting, dead in counted
    ]


def _row(
    name: str,
    infos: list[StreamInfo],
    groups: list[dict[str, GroupInfo]],
    waiting: int,
    dead: int,
) -> TopicRow:
    last = admin.newest_id(info.last_id for info in infos)
    return TopicRow(
        topic=name,
        partitions=len(infos),
        length=sum(info.length for info in infos),
        groups=len({group for found in groups for group in found}),
        pending=sum(g.pending for found in groups for g in found.values()),
        retries=waiting,
        dead=dead,
        entries_added=admin.sum_or_none(info.entries_added for info in infos),
        last_id=last,
        last_at_ms=admin.ms_of(last),
    )


def info(session: Session, topic: str) -> TopicInfo:
    """Return everything about a topic at a glance; NotFound when it is not there."""
    looks = admin_groups.looks(session, topic)
    parts = partitions(session, topic, looks)
    waiting, due, next_due = retries.waiting(session, topic)
    keys = session.keys
    dead, aside = session.wire.calls(
        [("XLEN", keys.dlq(topic)), ("SCARD", keys.payload_index(topic))]
    )
    first = admin.oldest_id(part.first_id for part in parts)
    last = admin.newest_id(part.last_id for part in parts)
    return TopicInfo(
        topic=topic,
        partitions=len(parts),
        length=sum(part.length for part in parts),
        entries_added=admin.sum_or_none(part.entries_added for part in parts),
        first_id=first,
        first_at_ms=admin.ms_of(first),
        last_id=last,
        last_at_ms=admin.ms_of(last),
        groups=len(looks.names),
        members=sum(len(looks.alive(group)) for group in looks.names),
        pending=sum(part.pending for part in parts),
        lag=admin.sum_or_none(
            backlog.lag for group in looks.names for backlog in looks.backlogs(group)
        ),
        memory_bytes=admin.sum_or_none(part.memory_bytes for part in parts),
        retries=waiting,
        retries_due=due,
        next_due_at_ms=next_due,
        dead=dead,
        payloads=aside,
        codec="native",
    )


def partitions(
    session: Session, topic: str, looks: admin_groups.Looks | None = None
) -> list[PartitionInfo]:
    """Return a topic's partitions; NotFound when it is not there."""
    seen = looks or admin_groups.looks(session, topic)
    memory = admin.trips(session, [("MEMORY", "USAGE", key) for key in seen.streams])
    owners = {group: seen.owners(group) for group in seen.names}
    return [
        PartitionInfo(
            topic=topic,
            partition=index,
            stream=key,
            length=stream.length,
            entries_added=stream.entries_added,
            first_id=stream.first_id,
            first_at_ms=admin.ms_of(stream.first_id),
            last_id=stream.last_id,
            last_at_ms=admin.ms_of(stream.last_id),
            # not permitted: unknown; no such key: nothing
            memory_bytes=None if isinstance(used, ServerError) else used or 0,
            groups=len(groups),
            pending=sum(group.pending for group in groups.values()),
            owners={group: owners[group][index].name for group in seen.names},
        )
        for index, (key, stream, groups, used) in enumerate(
            zip(seen.streams, seen.infos, seen.groups, memory, strict=True)
        )
    ]


def create(session: Session, topic: str, count: int) -> bool:
    """Create a topic; False when it is there already with that many partitions.

    NameInUse when it has another number of them.
    """
    known = topics.exists(session, topic)
    have = topics.ensure(session, topic, count)
    if have != count:
        raise NameInUse(
            f"topic {topic} exists with {have} partitions",
            hint=f"mqctl admin info {topic}",
            topic=topic,
        )
    return not known


def routes(session: Session, topic: str, given: Iterable[bytes]) -> list[Route]:
    """Return where keys go; NotFound when the topic is not there."""
    count = topics.require(session, topic)
    return [
        Route(
            topic,
            key.decode("utf-8", "replace"),
            java_hash(key.decode("utf-8", "replace")),
            key_partition(key, count),
        )
        for key in given
    ]
