"""One partition in the hands of one consumer: what is queued, in work, unsettled."""

from collections import deque
from dataclasses import dataclass, field

from mqctl.core.assignment import Slot
from mqctl.core.message import Delivery
from mqctl.engine.settle import Settlement, Step

NOBODY = "\0"
"""In place of the one a partition is handed to: it is only let go."""


@dataclass(slots=True)
class Assigned:
    """A leased partition.

    `held_at` is when (monotonic) the last successful acquisition or renewal was sent.
    `cursor` is where the take-over scan stands, None when it is done; `mine` makes it
    take entries under the own name too. `last_id` is the last id known delivered.
    `shed_to` is who gets the partition once it is idle. `touched` is when (monotonic)
    a handler was last started here, or the entry in work was kept fresh. `kept` is the
    id of a failed message that is waited for, until `wait_until` (monotonic).
    """

    slot: Slot
    stream: str
    held_at: float
    last_id: str = "0-0"
    queue: deque[Delivery] = field(default_factory=deque)
    busy: Delivery | None = None
    cursor: str | None = "-"
    mine: bool = True
    next_scan: float = 0.0
    ripe_at: float | None = None
    shed_to: str | None = None
    acks: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    touched: float = 0.0
    kept: str | None = None
    wait_until: float = 0.0

    @property
    def topic(self) -> str:
        """Return the topic's name."""
        return self.slot[0]

    @property
    def scan_at(self) -> float:
        """Return when (monotonic) pending entries are to be looked at again."""
        return min(self.next_scan, self.ripe_at or self.next_scan)

    @property
    def idle(self) -> bool:
        """Tell whether nothing is in work and nothing waits to be settled."""
        return self.busy is None and not self.acks and not self.steps

    def waits(self, now: float) -> bool:
        """Tell whether the first message in the queue is not due yet."""
        head = self.queue[0].message.id if self.queue else None
        return head is not None and head == self.kept and now < self.wait_until

    def in_hand(self) -> set[str]:
        """Return the ids this consumer holds and has not settled."""
        ids = {d.message.id for d in self.queue}
        ids.update(self.acks)
        ids.update(step.id for step in self.steps)
        if self.busy is not None:
            ids.add(self.busy.message.id)
        return ids

    def settlement(self, group: str, consumer: str) -> Settlement:
        """Return what waits to be settled, as one order."""
        topic, index = self.slot
        return Settlement(
            topic, index, group, consumer, list(self.acks), list(self.steps)
        )
