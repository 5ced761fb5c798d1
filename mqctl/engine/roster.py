"""Which partitions this consumer has: topics, beats, leases, hand-overs."""

import select
from collections.abc import Callable
from dataclasses import dataclass, replace

from mqctl.core import assignment
from mqctl.core.assignment import Member, Slot
from mqctl.core.errors import (
    MqError,
    NameInUse,
    OutOfMemory,
)
from mqctl.core.options import ConsumerOptions
from mqctl.core.selection import Selection
from mqctl.engine import topics
from mqctl.engine.assigned import NOBODY, Assigned
from mqctl.engine.catalogue import Catalogue
from mqctl.engine.groups import Groups
from mqctl.engine.keeping import Keeper
from mqctl.engine.membership import Membership
from mqctl.engine.session import Session
from mqctl.store import scripts
from mqctl.store.wire import ServerError

_RECENT_BEATS = 3
_LONGEST_BEAT = 1.0  # seconds between two beats of any consumer
_LOOK_PAUSE = 0.05
_GIVE_UP_SHARE = 1 / 3  # of a lease that must be left for anything to be written
_MENDABLE = frozenset({"NOGROUP", "UNBLOCKED", "WRONGTYPE"})


@dataclass(slots=True)
class _Timers:
    """When (monotonic) each periodic duty is due."""

    beat: float = 0.0
    renew: float = 0.0
    refresh: float = 0.0


class Roster:
    """Keeps `parts`, the partitions held, in line with the group.

    `strangers` are topics of which somebody who does not beat holds a lease.
    `repeated` counts messages that were in hand when their partition was lost.
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
        self._me = Member(
            name,
            options.selection.subscription,
            options.weight,
            bound=options.max_partitions,
        )
        self._membership = Membership(
            session,
            options.group,
            self._me,
            options.lease_ttl_ms,
            options.beat_ms * _RECENT_BEATS,
        )
        self._keeper = Keeper(session, options.group, name)
        self._catalogue = Catalogue(session, options.selection, note)
        self._groups = Groups(session, options, note)
        self._free: dict[Slot, int] = {}
        self._timers = _Timers()
        self.parts: dict[Slot, Assigned] = {}
        self.strangers: set[str] = set()
        self.repeated = 0
        self._retired = False
        self._displaced = False

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
        if options.exit_when_empty and self._catalogue.missing:
            raise topics.missing(self._session, self._catalogue.missing[0])
        self._catalogue.check_partitions()
        if options.consumer is not None:
            self._take_name()
        self._groups.begin(self.selected())
        self.pulse(self._session.clock.monotonic())

    def _take_name(self) -> None:
        """Take the name, from nobody or from a consumer whose beat has stopped.

        Of several that try at once one succeeds.
        """
        wait_for = 2 * _LONGEST_BEAT + 0.2
        clock = self._session.clock
        while True:
            seen = self._membership.last_beat()
            if seen is None:
                if self._membership.claim():
                    return
                continue
            until = clock.monotonic() + wait_for
            while (score := self._membership.last_beat()) == seen:
                if clock.monotonic() > until:
                    self._membership.evict(seen)
                    break
                select.select([], [], [], _LOOK_PAUSE)
            if score not in {seen, None}:
                raise self._name_in_use()

    def _name_in_use(self) -> NameInUse:
        """Return the error; from now on everything of that name is another's."""
        self._displaced = True
        self.parts.clear()
        return NameInUse(
            f"consumer {self._me.consumer} is already running in group "
            f"{self._options.group}",
            hint="leave --consumer out to get a name of your own",
            group=self._options.group,
        )

    # -- topics ---------------------------------------------------------------

    @property
    def topics(self) -> list[str]:
        """Return the topics that exist."""
        return self._catalogue.topics

    def selected(self) -> list[Slot]:
        """Return all partitions this consumer could take."""
        return self._catalogue.slots()

    def _refresh(self) -> None:
        gone = self._catalogue.refresh()
        for topic in gone:
            self._groups.forget(topic)
            for part in [p for p in self.parts.values() if p.topic == topic]:
                self.drop(part, "the topic was deleted", release=True)
        if not self._options.exit_when_empty:
            self._catalogue.say_waiting(gone)

    # -- the beat -------------------------------------------------------------

    @property
    def next_timer(self) -> float:
        """Return when (monotonic) something is due."""
        return min(self._timers.beat, self._timers.renew)

    def pulse(self, now: float) -> None:
        """Do what is due: renew, look for topics, beat, take and shed partitions."""
        beats = now >= self._timers.beat
        if self._retired or not beats:
            self.keep(now)
            return
        self._watch_out(now)
        self._renew_all(now)
        if now >= self._timers.refresh:
            options = self._options
            pause = options.beat_ms if self._catalogue.missing else options.rebalance_ms
            self._timers.refresh = now + pause / 1000
            self._refresh()
        self._timers.beat = now + self._options.beat_ms / 1000
        self._rebalance()

    def keep(self, now: float) -> None:
        """Only renew leases and give signs of life, whatever else is going on."""
        self._watch_out(now)
        self._renew_all(now)
        if now >= self._timers.beat:
            self._timers.beat = now + self._options.beat_ms / 1000
            self._membership.look([])

    def _watch_out(self, now: float) -> None:
        """After standing still: end if somebody has taken the name meanwhile.

        His leases and entries look like mine, so nothing may be touched any more.
        """
        patience = min(_LONGEST_BEAT, self._options.lease_ttl_ms / 2000)
        stood = now - self._timers.beat > patience
        if self._options.consumer is None or not self._membership.beaten_ms:
            return
        if stood and (self._membership.last_beat() or 0) > self._membership.beaten_ms:
            raise self._name_in_use()

    def _renew_all(self, now: float) -> None:
        if now >= self._timers.renew:
            self._timers.renew = now + self._options.renew_ms / 1000
            self.renew(list(self.parts.values()))

    def sure(self, part: Assigned) -> bool:
        """Make sure that the lease is still mine before anything is written."""
        if part.slot not in self.parts:
            return False
        now, ttl = self._session.clock.monotonic(), self._options.lease_ttl_ms / 1000
        if now - part.held_at < ttl * (1 - _GIVE_UP_SHARE):
            return True
        self._watch_out(now)
        return self.renew([part])

    def renew(self, parts: list[Assigned]) -> bool:
        """Renew leases; drop those that are lost. True when all are still mine.

        A lease that is free although it cannot have run out was deleted by somebody:
        it is taken again.
        """
        sent = self._session.clock.monotonic()
        kept = set(self._membership.renew(part.slot for part in parts))
        alive = sent - self._options.lease_ttl_ms / 1000
        deleted = [
            part.slot
            for part in parts
            if part.slot not in kept and part.held_at > alive
        ]
        if deleted:
            kept.update(self._membership.acquire(deleted))
        for part in parts:
            if part.slot in kept:
                part.held_at = sent
            else:
                self.drop(part, "its lease is gone")
        return len(kept) == len(parts)

    def _rebalance(self) -> None:
        slots = self.selected()
        members, holders = self._membership.look(slots)
        me = self._me.consumer
        live = {member.consumer for member in members}
        self.strangers = {
            slot[0]
            for slot, holder in holders.items()
            if holder is not None and holder not in live
        }
        self.renew([p for s, p in self.parts.items() if holders.get(s, me) != me])
        holders.update((slot, me) for slot in self.parts if slot in holders)
        self._free = assignment.count_free(holders, self._free)
        decided = assignment.plan(
            me=me,
            subscription=self._me.subscription,
            members=members,
            holders=holders,
            max_partitions=self._options.max_partitions,
            free_rounds=self._free,
            busy={s for s, p in self.parts.items() if not p.idle},
            leaving={s for s, p in self.parts.items() if p.shed_to},
        )
        shed = dict(decided.shed)
        for slot, part in self.parts.items():
            if slot in holders:
                part.shed_to = shed.get(slot)
        mine = [s for s, h in holders.items() if h == me and s not in self.parts]
        self._adopt([*mine, *decided.take])

    def _adopt(self, slots: list[Slot]) -> None:
        """Acquire leases and begin with the partitions that are mine then."""
        if not slots:
            return
        sent = self._session.clock.monotonic()
        try:
            gained = self._membership.acquire(slots)
        except OutOfMemory:  # not now: what cannot be settled is not to be begun
            return
        try:
            states = self._delivered(gained)
        except MqError:
            self._membership.give(dict.fromkeys(gained))
            raise
        self._membership.give({slot: None for slot in gained if slot not in states})
        gained = list(states)
        self._groups.enter(gained)
        for slot in gained:
            self.parts[slot] = Assigned(
                slot, self._stream(slot), sent, last_id=states[slot]
            )
        if self._options.retry_mode == "in-place":
            self._go_on_waiting(gained)

    def _go_on_waiting(self, slots: list[Slot]) -> None:
        """Take up the wait for a failed message where the last owner left it."""
        now = self._session.clock.monotonic()
        for slot, kept in zip(slots, self._keeper.look(slots), strict=True):
            if kept is not None:
                self.parts[slot].kept = kept.id
                self.parts[slot].wait_until = now + kept.wait_ms / 1000

    def _delivered(self, slots: list[Slot]) -> dict[Slot, str]:
        """Return how far the group has come in the partitions that still exist."""
        states = self._groups.delivered(slots)
        lost = [slot for slot, state in states.items() if state is None]
        if lost:
            self._refresh()
            there = set(self.selected())
            states.update(
                self._groups.restore([slot for slot in lost if slot in there])
            )
        return {slot: state for slot, state in states.items() if state is not None}

    # -- losing and leaving ---------------------------------------------------

    def drop(self, part: Assigned, why: str, *, release: bool = False) -> None:
        """Forget a partition; what was in hand there is not acknowledged."""
        if self.parts.pop(part.slot, None) is None:
            return
        if release:
            self._membership.give({part.slot: None})
        elif part.in_hand():
            topic, index = part.slot
            count = len(part.in_hand())
            self.repeated += count
            self._note(
                f"lost {topic}[{index}]: {why}; "
                f"{count} messages in hand may be repeated"
            )

    def mend(self, parts: list[Assigned], error: ServerError | None = None) -> None:
        """Find out what is wrong after an error: a lost group, a deleted topic.

        Raises WrongType, GroupDeleted, and any error that is of another kind.
        """
        if error is not None and error.kind not in _MENDABLE:
            raise error.explained("reading")
        self._refresh()
        left = [part.slot for part in parts if part.slot in self.parts]
        states = self._groups.delivered(left)
        self._groups.restore([slot for slot in left if states[slot] is None])

    def catch_up(self, parts: list[Assigned]) -> None:
        """Learn anew how far the group has been delivered in these partitions."""
        states = self._groups.delivered([part.slot for part in parts])
        for part in parts:
            part.last_id = states[part.slot] or part.last_id

    @property
    def retired(self) -> bool:
        """Tell whether it takes no more partitions."""
        return self._retired

    def reselect(self, selection: Selection) -> None:
        """Take other partitions from now on; what falls outside is let go when idle."""
        self._catalogue.reselect(selection)
        self._me = replace(self._me, subscription=selection.subscription)
        self._membership.rename(self._me)
        wanted = set(self.selected())
        for slot, part in self.parts.items():
            if slot not in wanted:
                part.shed_to = NOBODY
        self._timers.beat = 0.0

    def retire(self) -> None:
        """Take no more partitions; shares are computed without me from now on."""
        if not self._retired:
            self._retired = True
            self._membership.retire()

    def release(self, parts: list[Assigned]) -> None:
        """Hand over idle partitions: shed ones to their receiver, else by share."""
        if self._retired:
            given = self._handover([part.slot for part in parts])
        else:
            given = {
                part.slot: None if part.shed_to == NOBODY else part.shed_to
                for part in parts
            }
        for part in parts:
            self.parts.pop(part.slot, None)
        self._membership.give(given)
        self._forget_name(parts)

    def _handover(self, mine: list[Slot]) -> dict[Slot, str | None]:
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

    def leave(self) -> None:
        """Leave the group; leases still held go to others, work in them stays."""
        if self._displaced:
            return
        self.retire()
        if self.parts:
            self.release(list(self.parts.values()))
        self._pass_on()
        self._membership.leave()

    def _pass_on(self) -> None:
        """Hand over what was handed to me meanwhile and I have not begun with."""
        _, holders = self._membership.look(self.selected(), beat=False)
        mine = [slot for slot, holder in holders.items() if holder == self._me.consumer]
        if mine:
            self._membership.give(self._handover(mine))

    def recover(self) -> None:
        """Go on after a new connection: keep what is still mine, read it anew."""
        self._timers.renew = self._timers.refresh = 0.0
        self.renew(list(self.parts.values()))
        for part in self.parts.values():
            part.queue.clear()
            part.cursor, part.mine = "-", True

    def _stream(self, slot: Slot) -> str:
        return self._session.keys.partition(*slot)
