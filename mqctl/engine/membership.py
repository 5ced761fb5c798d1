"""Who is in the group and who holds which partition: beats and leases.

A beat is one script on one key. A lease is `SET NX PX`; it is renewed, handed over
and dropped only while it still names its holder.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mqctl.core.assignment import FIXED, Member, Slot
from mqctl.engine.session import Session
from mqctl.store import scripts
from mqctl.store.wire import Command, Reply


@dataclass(slots=True)
class Membership:
    """One consumer's place in its group. Times in milliseconds.

    `recent_ms` is how old a member's last beat may be for it to count as there: less
    than the life of a lease, so that nothing is handed to a member that has died.
    `beaten_ms` is when I last beat, by the server's clock.
    """

    session: Session
    group: str
    me: Member
    ttl_ms: int
    recent_ms: int
    beaten_ms: int = 0

    def look(
        self, slots: Iterable[Slot], *, beat: bool = True
    ) -> tuple[list[Member], dict[Slot, str | None]]:
        """Beat; return the live members and the holder of each slot. One trip."""
        listed = list(slots)
        session, wire = self.session, self.session.wire
        name = self.me.format() if beat else ""
        commands: list[Command] = [
            scripts.beat_member(
                wire, session.keys.members(self.group), self.ttl_ms, name
            )
        ]
        commands += [("GET", self.lease(slot)) for slot in listed]
        seen, *holders = wire.calls(commands)
        session.clock.follow(int(seen[0]))
        if beat:
            self.beaten_ms = int(seen[0])
        oldest = int(seen[0]) - self.recent_ms
        members = [
            Member.parse(raw)
            for raw, score in zip(seen[1::2], seen[2::2], strict=True)
            if float(score) >= oldest
        ]
        held = {
            slot: holder.decode("utf-8", "surrogateescape") if holder else None
            for slot, holder in zip(listed, holders, strict=True)
        }
        return [m for m in members if m is not None], held

    def last_beat(self) -> int | None:
        """Return my name's last sign of life, whoever gave it; one trip, no beat."""
        wire = self.session.wire
        key = self.session.keys.members(self.group)
        (seen,) = wire.calls([scripts.beat_member(wire, key, self.ttl_ms, "")])
        rows = zip(seen[1::2], seen[2::2], strict=True)
        parsed = ((Member.parse(raw), int(float(score))) for raw, score in rows)
        mine = (s for m, s in parsed if m and m.consumer == self.me.consumer)
        return max(mine, default=None)

    def claim(self) -> bool:
        """Beat for the first time; False when my very name is there already."""
        key, now = self.session.keys.members(self.group), self.session.clock.now_ms()
        added, _ = self.session.wire.calls(
            [
                ("ZADD", key, "NX", now, self.me.format()),
                ("PEXPIRE", key, self.ttl_ms),
            ]
        )
        return bool(added)

    def evict(self, score: int) -> None:
        """Forget the members whose last sign of life was just then."""
        key = self.session.keys.members(self.group)
        self.session.wire.call("ZREMRANGEBYSCORE", key, score, score)

    def retire(self) -> None:
        """Take part in no share any more; the name stays in use until `leave`."""
        self.leave()
        self.me = Member(self.me.consumer, FIXED, 0)

    def rename(self, me: Member) -> None:
        """Be known with another subscription from the next beat on; one trip."""
        old, self.me = self.me, me
        key = self.session.keys.members(self.group)
        self.session.wire.call("ZREM", key, old.format())

    def leave(self) -> None:
        """Take the own name out of the group at once."""
        key = self.session.keys.members(self.group)
        self.session.wire.call("ZREM", key, self.me.format())

    def lease(self, slot: Slot) -> str:
        """Return the slot's lease key."""
        topic, index = slot
        return self.session.keys.lease(topic, self.group, index)

    def acquire(self, slots: Iterable[Slot]) -> list[Slot]:
        """Try to take free slots; return those that are mine now. Two trips at most.

        A lease that already holds my name counts as mine and is renewed.
        """
        listed = list(slots)
        name = self.me.consumer
        replies = self.session.wire.calls(
            [
                ("SET", self.lease(slot), name, "NX", "PX", self.ttl_ms)
                for slot in listed
            ]
        )
        refused = [s for s, r in zip(listed, replies, strict=True) if r is None]
        mine = set(self.renew(refused))
        return [
            s
            for s, r in zip(listed, replies, strict=True)
            if r is not None or s in mine
        ]

    def renew(self, slots: Iterable[Slot]) -> list[Slot]:
        """Renew leases; return the slots that are still mine. One trip."""
        listed = list(slots)
        replies = self._hold(listed, dict.fromkeys(listed, self.me.consumer))
        return [s for s, r in zip(listed, replies, strict=True) if r == 1]

    def give(self, handover: Mapping[Slot, str | None]) -> None:
        """Hand leases to the members named, drop those mapped to None. One trip."""
        self._hold(list(handover), {s: to or "" for s, to in handover.items()})

    def _hold(self, slots: list[Slot], holders: Mapping[Slot, str]) -> list[Reply]:
        wire, me = self.session.wire, self.me.consumer
        return wire.calls(
            [
                scripts.hold_lease(
                    wire, self.lease(slot), me, holders[slot], self.ttl_ms
                )
                for slot in slots
            ]
        )
