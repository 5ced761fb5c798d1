"""Deleting a topic: every key it owns, no other topic's.

Most keys can be named. Those that cannot (leases of groups that are gone, ack sets,
bodies and retry items that fell out of their index) are found by SCAN and taken only
when the whole name reads as this topic's: names hold any character, colons too, and
topics may begin alike.

The registry entry goes first, so that consumers let go, and the meta hash last, so
that an interrupted deletion can be run again.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from mqctl.core.keys import KeySpace
from mqctl.engine import admin, topics
from mqctl.engine.session import Session

if TYPE_CHECKING:
    from mqctl.store.wire import Command

_TRIP = 500
_SCAN = 1000


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a deletion takes: `keys` are there, `deleted_keys` were removed."""

    action: str
    topic: str
    dry_run: bool
    length: int
    dead: int
    retries: int
    payloads: int
    groups: int
    keys: int
    deleted_keys: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The names to remove, in the order of their removal, and what they hold.

    `remembered` deduplication keys are left to their TTL.
    """

    summary: Deletion
    names: list[str] = field(default_factory=list)
    remembered: int = 0


def plan(session: Session, topic: str) -> Plan:
    """Find everything a topic owns; NotFound when nothing says that it exists."""
    keys = session.keys
    if not _is_there(session, topic):
        raise topics.missing(session, topic)
    count = topics.count(session, topic)
    owned = _owned(keys, topic)
    names = {name for name in _indexed(session, topic) if owned.match(name)}
    scanned = set(_scanned(session, topic))
    names |= set(_unlisted(session, topic, scanned, owned))
    names |= {keys.partition(topic, i) for i in range(count)}
    streams = sorted(n for n in names if n.startswith(f"{keys.stream}:"))
    groups = {name for found in admin.groups(session, streams) for name in found}
    names |= _named(keys, topic, count, groups)
    listed = [*sorted(names), keys.meta(topic)]
    there = admin.trips(session, [("EXISTS", name) for name in listed])
    present = [n for n, found in zip(listed, there, strict=True) if found == 1]
    dead, waiting = session.wire.calls(
        [("XLEN", keys.dlq(topic)), ("ZCARD", keys.retries(topic))]
    )
    summary = Deletion(
        action="delete",
        topic=topic,
        dry_run=True,
        length=sum(info.length for info in admin.streams(session, streams)),
        dead=dead,
        retries=waiting,
        payloads=sum(name.startswith(_bodies(keys, topic)) for name in present),
        groups=len(groups),
        keys=len(present),
        deleted_keys=0,
    )
    known = tuple(keys.dedupe(topic, i, "") for i in range(count))
    return Plan(summary, present, sum(name.startswith(known) for name in scanned))


def delete(session: Session, planned: Plan) -> Deletion:
    """Remove what the plan names and the topic's entries in shared indices."""
    keys, topic = session.keys, planned.summary.topic
    session.wire.call("SREM", keys.registry, topic)
    removed = 0
    names = iter(planned.names)
    while part := list(islice(names, _TRIP)):
        # one key per command: they lie in different slots of a cluster
        commands: list[Command] = [("UNLINK", name) for name in part]
        bodies = [name for name in part if name.startswith(_bodies(keys, topic))]
        if bodies:
            commands.append(("ZREM", keys.payload_times, *bodies))
        removed += sum(session.wire.calls(commands)[: len(part)])
    return replace(planned.summary, dry_run=False, deleted_keys=removed)


def _is_there(session: Session, topic: str) -> bool:
    if topics.exists(session, topic):
        return True
    keys = session.keys
    names = (keys.meta(topic), keys.partitions(topic))
    return any(session.wire.calls([("EXISTS", name) for name in names]))


def _named(keys: KeySpace, topic: str, count: int, groups: Iterable[str]) -> set[str]:
    """Return the keys that follow from topic, partition count and groups."""
    return {
        keys.dlq(topic),
        keys.partitions(topic),
        keys.retries(topic),
        keys.payload_index(topic),
        keys.replayed(topic),
        *(keys.commit(topic, i) for i in range(count)),
        *(keys.acked(topic, i) for i in range(count)),
        *(keys.lease(topic, group, i) for group in groups for i in range(count)),
    }


def _indexed(session: Session, topic: str) -> Iterator[str]:
    """Yield what the topic's own indices list: streams, retry items, bodies."""
    keys = session.keys
    yield from _members(session, "SSCAN", keys.partitions(topic))
    yield from _members(session, "SSCAN", keys.payload_index(topic))
    yield from _members(session, "ZSCAN", keys.retries(topic))


def _members(session: Session, command: str, key: str) -> Iterator[str]:
    step = 2 if command == "ZSCAN" else 1
    cursor = "0"
    while True:
        raw, members = session.wire.call(command, key, cursor, "COUNT", _SCAN)
        yield from map(admin.text, members[::step])
        cursor = raw.decode()
        if cursor == "0":
            return


def _scanned(session: Session, topic: str) -> Iterator[str]:
    """Yield the keys that look as if they were the topic's, by SCAN in steps."""
    keys = session.keys
    for pattern in (
        f"{admin.literal(keys.control)}:*:{admin.literal(topic)}:*",
        admin.literal(keys.partition(topic, 0).removesuffix("0")) + "*",
    ):
        yield from admin.scan(session, pattern)


def _unlisted(
    session: Session, topic: str, scanned: Iterable[str], owned: re.Pattern[str]
) -> Iterator[str]:
    """Yield those of the keys that are the topic's and no other's."""
    lease = _leases(session.keys, topic)
    others = [name for name in topics.names(session) if name != topic]
    for name in scanned:
        if owned.match(name) or (
            name.startswith(lease) and not _claimed(session, topic, name, others)
        ):
            yield name


def _bodies(keys: KeySpace, topic: str) -> str:
    """Return what the keys of the topic's bodies begin with."""
    return keys.payload(topic, 0, "").removesuffix("0:")


def _leases(keys: KeySpace, topic: str) -> str:
    """Return what the topic's leases begin with."""
    return keys.lease(topic, "", 0).removesuffix(":0")


def _owned(keys: KeySpace, topic: str) -> re.Pattern[str]:
    """Return what matches the whole names of keys that can be this topic's alone."""

    def numbered(key: str) -> str:
        return re.escape(key.removesuffix("0")) + "[0-9]+"

    forms = (
        numbered(keys.partition(topic, 0)),
        numbered(keys.commit(topic, 0)),
        numbered(keys.acked(topic, 0)),
        numbered(keys.acks(topic, 0, "").removesuffix(":")) + ":[0-9]+-[0-9]+",
        numbered(keys.payload(topic, 0, "").removesuffix(":")) + ":[^:]+",
        re.escape(keys.retry_item(topic, "")) + "[^:]+",
    )
    return re.compile(rf"(?:{'|'.join(forms)})\Z")


def _claimed(session: Session, topic: str, lease: str, others: Iterable[str]) -> bool:
    """Tell whether a lease's name reads as another topic's.

    `a:b:c:0` may be topic `a`, group `b:c`, or topic `a:b`, group `c`. The longer
    topic has it, as new groups hold no colon; unless the shorter one has that group.
    """
    keys = session.keys
    for other in others:
        prefix = _leases(keys, other)
        if not lease.startswith(prefix):
            continue
        if len(other) > len(topic):
            return True
        group = lease.removeprefix(prefix).rpartition(":")[0]
        count = topics.count(session, other)
        streams = [keys.partition(other, i) for i in range(count)]
        if any(group in found for found in admin.groups(session, streams)):
            return True
    return False
