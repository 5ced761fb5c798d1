"""Groups of a topic: where they stand, who is in them, who holds what."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from mqctl.core.assignment import Member, subscription_id
from mqctl.engine import admin, topics
from mqctl.engine.admin import Backlog, GroupInfo, StreamInfo
from mqctl.engine.session import Session

_TTL_MS = 15_000  # life of a lease and of a beat, unless a consumer says otherwise
_CLAIM_IDLE_MS = 300_000
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Lease:
    """Who holds a partition, None = nobody, and for how long, None = for ever."""

    name: str | None = None
    ttl_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Registered:
    """A consumer's name on one stream: what it holds, how long since it was heard."""

    pending: int
    idle_ms: int


@dataclass(slots=True)
class Looks:
    """One look at a topic: its streams and groups; more about a group when asked.

    `streams`, `infos` and `groups` have a place for each partition.
    """

    session: Session
    topic: str
    streams: list[str]
    infos: list[StreamInfo]
    groups: list[dict[str, GroupInfo]]
    _owners: dict[str, list[Lease]] = field(default_factory=dict)
    _registered: dict[str, list[dict[str, Registered]]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Return the groups' names, sorted."""
        return sorted({name for found in self.groups for name in found})

    def require(self, group: str) -> None:
        """Raise NotFound for a group that is on no partition."""
        if group not in self.names:
            raise admin.no_group(self.topic, group, self.names)

    def owners(self, group: str) -> list[Lease]:
        """Return the lease of each partition; one trip, once."""
        if group not in self._owners:
            keys = [
                self.session.keys.lease(self.topic, group, i)
                for i in range(len(self.streams))
            ]
            commands = [(name, key) for key in keys for name in ("GET", "PTTL")]
            replies = iter(admin.trips(self.session, commands))
            self._owners[group] = [
                Lease(admin.text(holder), ttl if ttl >= 0 else None)
                if isinstance(holder, bytes)
                else Lease()
                for holder, ttl in zip(replies, replies, strict=True)
            ]
        return self._owners[group]

    def registered(self, group: str) -> list[dict[str, Registered]]:
        """Return the consumers' names on each partition; one trip, once."""
        if group not in self._registered:
            present = [i for i, found in enumerate(self.groups) if group in found]
            replies = admin.trips(
                self.session,
                [("XINFO", "CONSUMERS", self.streams[i], group) for i in present],
            )
            made: list[dict[str, Registered]] = [{} for _ in self.streams]
            for index, reply in zip(present, replies, strict=True):
                for row in admin.checked(reply, "looking at the consumers"):
                    found = admin.fields_of(row)
                    made[index][admin.text(found[b"name"])] = Registered(
                        found[b"pending"], found[b"idle"]
                    )
            self._registered[group] = made
        return self._registered[group]

    def beating(self, group: str) -> dict[str, Member]:
        """Return the members of the group that are alive and belong to this topic.

        Presence is kept per group: a member counts here when it has a name on one of
        the partitions or subscribes to this topic alone. One trip.
        """
        oldest = self.session.clock.now_ms() - _TTL_MS
        key = self.session.keys.members(group)
        found = self.session.wire.call("ZRANGEBYSCORE", key, oldest, "+inf")
        here = {name for part in self.registered(group) for name in part}
        alone = subscription_id([self.topic])
        members = filter(None, map(Member.parse, found))
        return {
            m.consumer: m
            for m in members
            if m.consumer in here or m.subscription == alone
        }

    def alive(self, group: str) -> set[str]:
        """Return the names that beat or hold a lease."""
        holders = {lease.name for lease in self.owners(group) if lease.name is not None}
        return holders | self.beating(group).keys()

    def backlogs(self, group: str) -> list[Backlog]:
        """Return what each partition has not given the group yet; one trip."""
        parts = zip(self.streams, self.infos, self.groups, strict=True)
        listed = [(key, info, found.get(group)) for key, info, found in parts]
        return admin.backlogs(self.session, listed)

    def last_acks(self, group: str) -> list[tuple[int, str] | None]:
        """Return time (epoch ms) and consumer of each partition's last ack."""
        keys = self.session.keys
        replies = admin.trips(
            self.session,
            [
                ("HGET", keys.acked(self.topic, i), group)
                for i in range(len(self.streams))
            ],
        )
        found: list[tuple[int, str] | None] = []
        for reply in replies:
            ms, _, name = (reply or b"").partition(b" ")
            found.append((int(ms), admin.text(name)) if ms.isdigit() else None)
        return found

    def states(self, group: str) -> dict[str, str]:
        """Return alive, idle or gone for every name known in the group.

        Alive: it holds a lease or beats; idle: heard within claim-idle.
        """
        alive = self.alive(group)
        heard: dict[str, int] = {}
        for part in self.registered(group):
            for name, seen in part.items():
                heard[name] = min(seen.idle_ms, heard.get(name, seen.idle_ms))
        states = {
            name: "idle" if idle < _CLAIM_IDLE_MS else "gone"
            for name, idle in heard.items()
        }
        return states | dict.fromkeys(alive, "alive")


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group over all partitions of a topic.

    `members` are alive, `consumers` registered names. `active`: a member is alive or
    was heard within 24 hours.
    """

    topic: str
    group: str
    partitions: int
    owned: int
    members: int
    consumers: int
    pending: int
    oldest_pending_ms: int | None
    lag: int | None
    lag_ms: int
    finished: int | None
    last_ack_at_ms: int | None
    active: bool


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """A group on one partition."""

    topic: str
    group: str
    partition: int
    owner: str | None
    lease_ttl_ms: int | None
    last_delivered_id: str | None
    committed_id: str | None
    lag: int | None
    lag_ms: int
    pending: int
    first_pending_id: str | None
    oldest_idle_ms: int | None
    max_deliveries: int | None
    entries_read: int | None


@dataclass(frozen=True, slots=True)
class ConsumerRow:
    """A consumer of a group. `kind` is mqctl or other, None for a silent stranger."""

    topic: str
    group: str
    consumer: str
    state: str
    kind: str | None
    weight: int | None
    partitions: list[int]
    pending: int
    idle_ms: int | None
    oldest_pending_ms: int | None
    last_ack_at_ms: int | None


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """A lease that is held; `stuck`: it has no TTL and frees itself never."""

    topic: str
    group: str
    partition: int
    owner: str
    owner_kind: str
    ttl_ms: int | None
    stuck: bool


def looks(session: Session, topic: str) -> Looks:
    """Look at a topic; NotFound when it is not there. Four trips."""
    count = topics.require(session, topic)
    keys = [session.keys.partition(topic, i) for i in range(count)]
    return Looks(
        session, topic, keys, admin.streams(session, keys), admin.groups(session, keys)
    )


def rows(session: Session, topic: str) -> list[GroupRow]:
    """Return the groups of a topic."""
    seen = looks(session, topic)
    return [_row(seen, group) for group in seen.names]


def _row(seen: Looks, group: str) -> GroupRow:
    infos = [found.get(group) for found in seen.groups]
    backlogs = seen.backlogs(group)
    registered = seen.registered(group)
    last = max((ack[0] for ack in seen.last_acks(group) if ack), default=None)
    alive = seen.alive(group)
    now = seen.session.clock.now_ms()
    heard = [one.idle_ms for part in registered for one in part.values()]
    heard += [] if last is None else [now - last]
    read = admin.sum_or_none(i.entries_read for i in infos if i is not None)
    pending = sum(i.pending for i in infos if i is not None)
    return GroupRow(
        topic=seen.topic,
        group=group,
        partitions=len(seen.streams),
        owned=sum(lease.name is not None for lease in seen.owners(group)),
        members=len(alive),
        consumers=len({name for part in registered for name in part}),
        pending=pending,
        oldest_pending_ms=max(_oldest(seen, group).values(), default=None),
        lag=admin.sum_or_none(backlog.lag for backlog in backlogs),
        lag_ms=max(backlog.lag_ms for backlog in backlogs),
        finished=None if read is None else read - pending,
        last_ack_at_ms=last,
        active=bool(alive) or any(age < _DAY_MS for age in heard),
    )


def _oldest(seen: Looks, group: str) -> dict[str, int]:
    """Return the longest idle time of what each consumer holds."""
    oldest: dict[str, int] = {}
    for key, found in zip(seen.streams, seen.groups, strict=True):
        if group in found and found[group].pending:
            for entry in admin.pending(seen.session, key, group):
                known = oldest.get(entry.consumer, 0)
                oldest[entry.consumer] = max(known, entry.idle_ms)
    return oldest


def partitions(session: Session, topic: str, group: str) -> list[GroupPartition]:
    """Return where a group stands on each partition; NotFound for topic and group."""
    seen = looks(session, topic)
    seen.require(group)
    every = range(len(seen.streams))
    made: list[GroupPartition] = []
    for index, lease, backlog, committed in zip(
        every,
        seen.owners(group),
        seen.backlogs(group),
        admin.committed(session, topic, every, group),
        strict=True,
    ):
        info = seen.groups[index].get(group)
        held = _held(seen, group, index)
        made.append(
            GroupPartition(
                topic=topic,
                group=group,
                partition=index,
                owner=lease.name,
                lease_ttl_ms=lease.ttl_ms,
                last_delivered_id=info.delivered_id if info else None,
                committed_id=committed,
                lag=backlog.lag,
                lag_ms=backlog.lag_ms,
                pending=held.count,
                first_pending_id=held.first_id,
                oldest_idle_ms=held.oldest_ms,
                max_deliveries=held.deliveries,
                entries_read=info.entries_read if info else None,
            )
        )
    return made


@dataclass(frozen=True, slots=True)
class _Held:
    count: int = 0
    first_id: str | None = None
    oldest_ms: int | None = None
    deliveries: int | None = None


def _held(seen: Looks, group: str, index: int) -> _Held:
    """Sum up what is pending on a partition, page by page."""
    info = seen.groups[index].get(group)
    held = _Held()
    if info is None or not info.pending:
        return held
    for entry in admin.pending(seen.session, seen.streams[index], group):
        held = _Held(
            held.count + 1,
            held.first_id or entry.id,
            max(held.oldest_ms or 0, entry.idle_ms),
            max(held.deliveries or 0, entry.deliveries),
        )
    return held


def consumers(session: Session, topic: str, group: str) -> list[ConsumerRow]:
    """Return every consumer known in a group; NotFound for topic and group."""
    seen = looks(session, topic)
    seen.require(group)
    beating, acks = seen.beating(group), seen.last_acks(group)
    oldest, registered = _oldest(seen, group), seen.registered(group)
    acked: dict[str, int] = {}
    for ack in filter(None, acks):
        acked[ack[1]] = max(ack[0], acked.get(ack[1], 0))
    made: list[ConsumerRow] = []
    for name, state in sorted(seen.states(group).items()):
        own = [part[name] for part in registered if name in part]
        ours = name in beating or name in acked
        member = beating.get(name)
        made.append(
            ConsumerRow(
                topic=topic,
                group=group,
                consumer=name,
                state=state,
                kind="mqctl" if ours else "other" if state == "alive" else None,
                weight=member.weight if member else None,
                partitions=[
                    i
                    for i, lease in enumerate(seen.owners(group))
                    if lease.name == name
                ],
                pending=sum(one.pending for one in own),
                idle_ms=min((one.idle_ms for one in own), default=None),
                oldest_pending_ms=oldest.get(name),
                last_ack_at_ms=acked.get(name),
            )
        )
    return made


def leases(
    session: Session, names: Iterable[str], group: str | None = None
) -> list[LeaseRow]:
    """Return the leases held on these topics, of one group or of all that exist."""
    made: list[LeaseRow] = []
    for topic in names:
        seen = looks(session, topic)
        for name in seen.names if group is None else [group]:
            beating = seen.beating(name)
            made += [
                LeaseRow(
                    topic=topic,
                    group=name,
                    partition=index,
                    owner=lease.name,
                    owner_kind="mqctl" if lease.name in beating else "other",
                    ttl_ms=lease.ttl_ms,
                    stuck=lease.ttl_ms is None,
                )
                for index, lease in enumerate(seen.owners(name))
                if lease.name is not None
            ]
    return made
