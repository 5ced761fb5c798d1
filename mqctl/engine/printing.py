"""Handing out by writing: batches to a sink, acknowledged once they have left."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mqctl.core.message import Delivery
from mqctl.core.options import ConsumerOptions
from mqctl.engine.credit import Credit
from mqctl.engine.ending import Ending, HardStop
from mqctl.engine.metering import Metering
from mqctl.engine.roster import Roster

_BLOCKED_PAUSE = 0.1  # seconds between two looks while a record is half written


class Sink(Protocol):
    """Where messages go that no handler takes."""

    def write(self, deliveries: Sequence[Delivery], alive: Callable[[], float]) -> int:
        """Write whole messages, from the first on; return how many are out, at least 1.

        Calls `alive` again and again while writing: it returns in how many seconds it
        wants to be called at the latest, or 0: end with the message begun. Raises
        OutputFailed or BrokenPipeError when it cannot write, and whatever `alive` does.
        """


class Stuck(Exception):
    """The reader does not read and there is no more time to wait for it."""


@dataclass(slots=True)
class Printing:
    """Writes what is queued. `active` is when (monotonic) it last did."""

    options: ConsumerOptions
    sink: Sink
    roster: Roster
    credit: Credit
    metering: Metering
    ending: Ending
    active: float

    def absorb(self) -> bool:
        """Do nothing: what is written is done."""
        return False

    def hand_out(self) -> bool:
        """Write a batch; return whether there was anything to write."""
        parts = list(self.roster.parts.values())
        ready = [part for part in parts if part.queue and self.roster.sure(part)]
        batch = [(part, delivery) for part in ready for delivery in part.queue]
        if not batch:
            return False
        self.active = self.ending.clock.monotonic()
        written = self.sink.write([delivery for _, delivery in batch], self._alive)
        self.credit.summary.received += written
        auto = self.options.ack == "auto"
        for part, delivery in batch[:written]:
            part.queue.popleft()
            if auto:
                part.acks.append(delivery.message.id)
        for slot, number in Counter(p.slot for p, _ in batch[:written]).items():
            self.metering.consumed(slot, number)
        if not auto:
            self.credit.unsettled += written
        self.active = self.ending.clock.monotonic()
        if self.credit.used_up:
            self.ending.ask()
        return True

    def _alive(self) -> float:
        """Keep leases while the reader is slow; 0 when the rest must be seen anew."""
        self.ending.obey()
        if self.ending.late:
            raise Stuck
        before = len(self.roster.parts)
        now = self.ending.clock.monotonic()
        self.roster.keep(now)
        if self.ending.drain or len(self.roster.parts) < before:
            return 0.0
        return max(0.01, min(self.roster.next_timer - now, _BLOCKED_PAUSE))

    def next_timer(self) -> float:
        """Return when (monotonic) something is due: never."""
        return float("inf")

    def drain(self) -> None:
        """Hear that no more will come."""

    def kill(self) -> None:
        """Have nothing to kill."""

    def close(self) -> None:
        """Have nothing to close."""


__all__ = ["HardStop", "Printing", "Sink", "Stuck"]
