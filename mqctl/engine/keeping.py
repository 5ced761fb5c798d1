"""Strict order: the failed message that a partition waits for, kept in Redis.

Whoever owns the partition next goes on with the same attempt, after the rest of the
wait. A record that outlives its message is harmless: it names an id that will not
come again, and expires.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mqctl.core.assignment import Slot
from mqctl.core.message import int_or
from mqctl.engine.session import Session
from mqctl.store import scripts
from mqctl.store.wire import Command, ServerError

_TTL_MS = 30 * 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Kept:
    """A message being waited for; `wait_ms` is what is left of the wait."""

    id: str
    wait_ms: int


@dataclass(frozen=True, slots=True)
class Keeper:
    """The records of one consumer's partitions."""

    session: Session
    group: str
    name: str

    def _record(self, slot: Slot) -> str:
        return self.session.keys.kept(slot[0], self.group, slot[1])

    def keep(self, slot: Slot, entry_id: str, attempts: int, delay_ms: int) -> bool:
        """Remember a failure before waiting; False when the lease is lost. One trip.

        On a cluster, for a plain topic name, two: the lease is looked at just before.
        """
        session, wire = self.session, self.session.wire
        lease = session.keys.lease(slot[0], self.group, slot[1])
        record = self._record(slot)
        if not session.atomic([lease, record]):
            return self._keep_in_order(lease, record, entry_id, attempts, delay_ms)
        order = scripts.keep_retry(
            wire,
            (lease, record),
            me=self.name,
            entry_id=entry_id,
            attempts=attempts,
            delay_ms=delay_ms,
            ttl_ms=_TTL_MS,
        )
        return bool(wire.calls([order])[0] == 1)

    def _keep_in_order(
        self, lease: str, record: str, entry_id: str, attempts: int, delay_ms: int
    ) -> bool:
        wire, now = self.session.wire, self.session.clock.now_ms()
        holder, (known, first) = wire.calls(
            [("GET", lease), ("HMGET", record, "id", "first_failed_at_ms")]
        )
        if holder != self.name.encode():
            return False
        if known != entry_id.encode() or first is None:
            first = now
        written: Command = (
            *("HSET", record, "id", entry_id, "attempts", attempts),
            *("first_failed_at_ms", first, "due_at_ms", now + delay_ms),
        )
        wire.calls([written, ("PEXPIRE", record, _TTL_MS)])
        return True

    def look(self, slots: Sequence[Slot]) -> list[Kept | None]:
        """Return what each partition waits for; one trip."""
        replies = self.session.wire.batch(
            [("HMGET", self._record(slot), "id", "due_at_ms") for slot in slots]
        )
        now = self.session.clock.now_ms()
        return [
            None
            if isinstance(reply, ServerError) or reply[0] is None
            else Kept(reply[0].decode(), max(0, int_or(reply[1], 0) - now))
            for reply in replies
        ]

    def drop(self, slot: Slot, entry_id: str) -> None:
        """Forget a message that was settled; one trip."""
        wire = self.session.wire
        wire.calls([scripts.drop_kept(wire, self._record(slot), entry_id)])
