"""Which partitions this consumer has: topics, groups, beats, leases, hand-overs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mqctl.codecs import native
from mqctl.core import assignment
from mqctl.core.assignment import FIXED, Member, Slot
from mqctl.core.errors import BadUsage, LostLease, NameInUse, NotFound
from mqctl.core.ids import before
from mqctl.core.names import check_new_group
from mqctl.core.options import ConsumerOptions
from mqctl.core.positions import Position, parse_position
from mqctl.engine import topics
from mqctl.engine.assigned import Assigned
from mqctl.engine.membership import Membership
from mqctl.engine.session import Session
from mqctl.store import scripts
from mqctl.store.wire import Reply, ServerError

_RECENT_BEATS = 3


@dataclass(slots=True)
class _Timers:
    """When (monotonic) each periodic duty is due."""

    beat: float = 0.0
    renew: float = 0.0
    refresh: float = 0.0


class Roster:
    """Keeps `parts`, the partitions held, in line with the group.

    `strangers` are topics of which somebody who does not beat holds a lease.
    """

    def __init__(
        self,
        session: Session,
        options: ConsumerOptions,
        name: str,
        note: Callable[[str], None],
    ) -> None:
        self._session = session
        self._options = options
        self._note = note
        subscription = (
            FIXED if options.partitions else assignment.subscription_id(options.topics)
        )
        self._me = Member(
            name, subscription, options.weight, bound=options.max_partitions
        )
        self._membership = Membership(
            session,
            options.group,
            self._me,
            options.lease_ttl_ms,
            options.beat_ms * _RECENT_BEATS,
        )
        self._counts: dict[str, int | None] = dict.fromkeys(options.topics)
        self._members: list[Member] = []
        self._holders: dict[Slot, str | None] = {}
        self._free: dict[Slot, int] = {}
        self._timers = _Timers()
        self._waited: set[str] = set()
        self._leaving = False
        self.parts: dict[Slot, Assigned] = {}
        self.strangers: set[str] = set()

    # -- joining --------------------------------------------------------------

    def join(self) -> None:
        """Find the topics, take the name, make the group, take a first share.

        Raises NotFound for a missing topic that is not to be waited for, NameInUse,
        BadUsage for a partition out of range.
        """
        options = self._options
        if options.create:
            for topic in options.topics:
                topics.ensure(self._session, topic, options.create_partitions)
        self._refresh()
        if options.exit_when_empty:
            for topic, count in self._counts.items():
                if count is None:
                    raise topics.missing(self._session, topic)
        self._check_partitions()
        if options.consumer is not None:
            self._take_name()
        self._begin(self.selected())
        self.pulse(self._session.clock.monotonic())

    def _check_partitions(self) -> None:
        for topic, count in self._counts.items():
            for index in self._options.partitions:
                if count is not None and not 0 <= index < count:
                    raise BadUsage(
                        f"partition {index} is out of range: topic {topic} has {count}"
                        f" (0 to {count - 1})",
                        topic=topic,
                        partition=index,
                    )

    def _take_name(self) -> None:
        """Make sure that nobody alive has the name: its beat must have stopped."""
        seen = self._membership.scores().get(self._me.consumer)
        if seen is None:
            return
        clock = self._session.clock
        until = clock.monotonic() + 2 * self._options.beat_ms / 1000 + 0.2
        while clock.monotonic() < until:
            score = self._membership.scores().get(self._me.consumer)
            if score is None:
                return
            if score != seen:
                raise NameInUse(
                    f"consumer {self._me.consumer} is already running in group "
                    f"{self._options.group}",
                    hint="leave --consumer out to get a name of your own",
                    group=self._options.group,
                )
            self._pause(0.05)

    def _pause(self, seconds: float) -> None:
        import select

        select.select([], [], [], seconds)

    def _begin(self, slots: Iterable[Slot]) -> None:
        """Create the group where it is missing, at the position asked for."""
        listed = list(slots)
        position = parse_position(self._options.position, self._session.clock.now_ms())
        states = self._groups(listed)
        missing = [slot for slot in listed if states[slot] is None]
        if not missing:
            if self._options.position != "start" and listed:
                self._note(
                    f"group {self._options.group} exists: it goes on where it was, "
                    "--from has no effect"
                )
            return
        check_new_group(self._options.group)
        starts = self._starts(missing, position)
        committed = self._committed(missing)
        self._create({slot: committed.get(slot, starts[slot]) for slot in missing})

    def _groups(self, slots: list[Slot]) -> dict[Slot, str | None]:
        """Return the group's last delivered id in each partition, None = no group."""
        replies = self._session.wire.batch(
            [("XINFO", "GROUPS", self._stream(slot)) for slot in slots]
        )
        return {s: self._delivered(r) for s, r in zip(slots, replies, strict=True)}

    def _delivered(self, reply: Reply) -> str | None:
        if isinstance(reply, ServerError):
            if reply.kind == "WRONGTYPE":
                raise reply.explained("looking at the group")
            return None
        for row in reply:
            info = dict(zip(row[::2], row[1::2], strict=True))
            if info[b"name"] == self._options.group.encode():
                return str(info[b"last-delivered-id"].decode())
        return None

    def _starts(self, slots: list[Slot], position: Position) -> dict[Slot, str]:
        """Return the id after which the group begins, for each partition."""
        if position.last is None:
            return dict.fromkeys(slots, position.after)
        replies = self._session.wire.calls(
            [
                ("XREVRANGE", self._stream(slot), "+", "-", "COUNT", position.last)
                for slot in slots
            ]
        )
        newest = sorted(
            (
                (tuple(map(int, raw.decode().split("-"))), slot)
                for slot, entries in zip(slots, replies, strict=True)
                for raw, _ in entries
            ),
            reverse=True,
        )[: position.last]
        starts = dict.fromkeys(slots, "$")
        for (ms, seq), slot in newest:
            starts[slot] = before(f"{ms}-{seq}")
        return starts

    def _committed(self, slots: list[Slot]) -> dict[Slot, str]:
        """Return what the group had finished, where that is known."""
        keys, group = self._session.keys, self._options.group
        replies = self._session.wire.batch(
            [("HGETALL", keys.commit(topic, index)) for topic, index in slots]
        )
        found: dict[Slot, str] = {}
        for slot, flat in zip(slots, replies, strict=True):
            if isinstance(flat, ServerError):
                continue
            entries = map(native.commit_entry, flat[::2], flat[1::2])
            ids = [e[1] for e in entries if e is not None and e[0] == group]
            if ids:
                found[slot] = max(ids, key=lambda i: tuple(map(int, i.split("-"))))
        return found

    def _create(self, positions: dict[Slot, str]) -> None:
        group = self._options.group
        replies = self._session.wire.batch(
            [
                ("XGROUP", "CREATE", self._stream(slot), group, start, "MKSTREAM")
                for slot, start in positions.items()
            ]
        )
        for reply in replies:
            if isinstance(reply, ServerError) and reply.kind != "BUSYGROUP":
                raise reply.explained("creating the group")

    # -- topics ---------------------------------------------------------------

    @property
    def topics(self) -> list[str]:
        """Return the topics that exist."""
        return [t for t, count in self._counts.items() if count is not None]

    def selected(self) -> list[Slot]:
        """Return all partitions this consumer could take."""
        wanted = self._options.partitions
        return [
            (topic, index)
            for topic, count in self._counts.items()
            if count is not None
            for index in (wanted or range(count))
            if index < count
        ]

    def _refresh(self) -> None:
        keys = self._session.keys
        replies = iter(
            self._session.wire.calls(
                [
                    command
                    for topic in self._counts
                    for command in (
                        ("SISMEMBER", keys.registry, topic),
                        ("HGET", keys.meta(topic), "partitionCount"),
                    )
                ]
            )
        )
        for topic, there, stored in zip(
            list(self._counts), replies, replies, strict=False
        ):
            known = self._counts[topic]
            now = topics.counted(topic, stored) if there else None
            self._counts[topic] = now
            if now is None:
                self._wait_for(topic, deleted=known is not None)
            elif topic in self._waited:
                self._waited.discard(topic)
                self._note(f"topic {topic} is there: {now} partitions")

    def _wait_for(self, topic: str, *, deleted: bool) -> None:
        for part in [p for p in self.parts.values() if p.topic == topic]:
            self.drop(part, "the topic was deleted", release=True)
        if topic in self._waited or self._options.exit_when_empty:
            return
        self._waited.add(topic)
        if deleted:
            self._note(f"topic {topic} was deleted; waiting for it")
            return
        near = topics.similar(self._session, topic)
        meant = f" (did you mean {near}?)" if near else ""
        self._note(f"topic {topic} does not exist yet; waiting for it{meant}")

    # -- the beat -------------------------------------------------------------

    @property
    def next_timer(self) -> float:
        """Return when (monotonic) something is due."""
        return min(self._timers.beat, self._timers.renew)

    def pulse(self, now: float) -> None:
        """Do what is due: renew, look for topics, beat, take and shed partitions."""
        self.keep(now)
        if self._leaving:
            return
        if now >= self._timers.refresh:
            waiting = bool(self._waited)
            pause = self._options.beat_ms if waiting else self._options.rebalance_ms
            self._timers.refresh = now + pause / 1000
            self._refresh()
        if now >= self._timers.beat:
            self._timers.beat = now + self._options.beat_ms / 1000
            self._rebalance()

    def keep(self, now: float) -> None:
        """Only renew leases and give signs of life, whatever else is going on."""
        if now >= self._timers.renew:
            self._timers.renew = now + self._options.renew_ms / 1000
            self.renew(list(self.parts.values()))
            if not self._leaving:
                self._membership.look([])

    def renew(self, parts: list[Assigned]) -> bool:
        """Renew leases; drop those that are lost. True when all are still mine."""
        sent = self._session.clock.monotonic()
        kept = set(self._membership.renew(part.slot for part in parts))
        for part in parts:
            if part.slot in kept:
                part.held_at = sent
            else:
                self.drop(part, "its lease ran out")
        return len(kept) == len(parts)

    def _rebalance(self) -> None:
        slots = self.selected()
        self._members, self._holders = self._membership.look(slots)
        me = self._me.consumer
        live = {member.consumer for member in self._members}
        self.strangers = {
            slot[0]
            for slot, holder in self._holders.items()
            if holder is not None and holder not in live
        }
        for slot, part in list(self.parts.items()):
            if self._holders.get(slot, me) != me:
                self.drop(part, f"{self._holders[slot]} holds it")
        self._free = assignment.count_free(self._holders, self._free)
        decided = assignment.plan(
            me=me,
            subscription=self._me.subscription,
            members=self._members,
            holders=self._holders,
            max_partitions=self._options.max_partitions,
            free_rounds=self._free,
            busy={s for s, p in self.parts.items() if not p.idle},
            leaving={s for s, p in self.parts.items() if p.shed_to},
        )
        shed = dict(decided.shed)
        for slot, part in self.parts.items():
            part.shed_to = shed.get(slot)
        mine = [s for s, h in self._holders.items() if h == me and s not in self.parts]
        self._adopt([*mine, *decided.take])

    def _adopt(self, slots: list[Slot]) -> None:
        """Acquire leases and begin with the partitions that are mine then."""
        if not slots:
            return
        sent = self._session.clock.monotonic()
        gained = self._membership.acquire(slots)
        states = self._groups(gained)
        lost = [slot for slot in gained if states[slot] is None]
        if lost:
            committed = self._committed(lost)
            starts = {slot: committed.get(slot, "0-0") for slot in lost}
            self._create(starts)
            states.update(starts)
        keys, group = self._session.keys, self._options.group
        self._session.wire.calls(
            [("HSETNX", keys.commit(t, i), group, "0-0") for t, i in gained]
        )
        for slot in gained:
            self.parts[slot] = Assigned(
                slot, self._stream(slot), sent, last_id=states[slot] or "0-0"
            )

    # -- losing and leaving ---------------------------------------------------

    def drop(self, part: Assigned, why: str, *, release: bool = False) -> None:
        """Forget a partition; what was in hand there is not acknowledged."""
        if self.parts.pop(part.slot, None) is None:
            return
        if release:
            self._membership.give({part.slot: None})
        elif part.in_hand():
            topic, index = part.slot
            lost = LostLease(f"lost {topic}[{index}]: {why}")
            count = len(part.in_hand())
            self._note(f"{lost.message}; {count} messages in hand may be repeated")

    def mend(self, parts: list[Assigned], error: ServerError) -> None:
        """Find out why a group read failed: a lost group, a deleted topic, a type."""
        if error.kind not in {"NOGROUP", "UNBLOCKED"}:
            raise error.explained("reading")
        self._refresh()
        left = [part for part in parts if part.slot in self.parts]
        states = self._groups([part.slot for part in left])
        lost = [part.slot for part in left if states[part.slot] is None]
        committed = self._committed(lost)
        for topic, index in lost:
            start = committed.get((topic, index), "0-0")
            self._note(
                f"the group {self._options.group} was gone from {topic}[{index}]: "
                f"made again after {start}"
            )
        self._create({slot: committed.get(slot, "0-0") for slot in lost})

    def release(self, parts: list[Assigned], *, stopping: bool) -> None:
        """Hand over idle partitions: shed ones to their receiver, else by share."""
        if stopping:
            self._leaving = True
            given = self._handover([part.slot for part in parts])
        else:
            given = {part.slot: part.shed_to for part in parts}
        for part in parts:
            self.parts.pop(part.slot, None)
        self._membership.give(given)
        self._forget_name(parts)

    def _handover(self, mine: list[Slot]) -> dict[Slot, str | None]:
        self._membership.leave()
        members, holders = self._membership.look(self.selected(), beat=False)
        return assignment.handover(
            me=self._me.consumer,
            subscription=self._me.subscription,
            members=members,
            holders=holders,
            mine=mine,
        )

    def _forget_name(self, parts: list[Assigned]) -> None:
        if self._options.consumer is not None:
            return
        wire = self._session.wire
        wire.batch(
            [
                scripts.drop_consumer(
                    wire, part.stream, self._options.group, self._me.consumer
                )
                for part in parts
            ]
        )

    def leave(self, parts: list[Assigned]) -> None:
        """Leave the group; leases still held go to others, work in them stays."""
        if parts:
            self.release(parts, stopping=True)
        else:
            self._membership.leave()

    def recover(self) -> None:
        """Go on after a new connection: keep what is still mine, read it anew."""
        self._timers = _Timers()
        self.renew(list(self.parts.values()))
        for part in self.parts.values():
            part.queue.clear()
            part.cursor, part.mine = "-", True

    def _stream(self, slot: Slot) -> str:
        return self._session.keys.partition(*slot)


__all__ = ["NotFound", "Roster"]
