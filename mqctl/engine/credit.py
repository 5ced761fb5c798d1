"""How many messages may still be fetched: limits, and receipts not yet settled.

What is asked for and not yet handed out never exceeds what is left of a limit, so
that nothing beyond it is ever pending.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from mqctl.core.assignment import Slot
from mqctl.core.options import ConsumerOptions, Summary
from mqctl.engine.assigned import Assigned
from mqctl.engine.session import Session
from mqctl.store.wire import ServerError

_MANUAL_BOUND = 1000
_COUNT_PAUSE = 0.05


@dataclass(slots=True)
class Credit:
    """The limits of one consumer. `unsettled` counts receipts handed out."""

    session: Session
    options: ConsumerOptions
    name: str
    parts: Mapping[Slot, Assigned]
    summary: Summary
    unsettled: int = 0
    _counted: float = 0.0

    def left(self) -> int | None:
        """Return how many may be fetched now; None = no bound.

        Never negative. A trip now and then while receipts are at their bound.
        """
        options, parts = self.options, self.parts.values()
        queued = sum(len(part.queue) for part in parts)
        bounds: list[int] = []
        if options.max_messages:
            bounds.append(options.max_messages - self.summary.received - queued)
        if options.ack == "manual":
            bound = options.max_in_flight or _MANUAL_BOUND
            bounds.append(bound - queued - self._receipts(bound))
        elif options.max_in_flight:
            busy = sum(part.busy is not None for part in parts)
            bounds.append(options.max_in_flight - queued - busy)
        return max(0, min(bounds)) if bounds else None

    @property
    def used_up(self) -> bool:
        """Tell whether the limit of messages is reached."""
        limit = self.options.max_messages
        return bool(limit) and self.summary.received >= limit

    def _receipts(self, bound: int) -> int:
        now = self.session.clock.monotonic()
        if self.unsettled >= bound and now - self._counted > _COUNT_PAUSE:
            self._counted = now
            self.unsettled = self._own_pending()
        return self.unsettled

    def _own_pending(self) -> int:
        replies = self.session.wire.batch(
            [
                ("XPENDING", part.stream, self.options.group)
                for part in self.parts.values()
            ]
        )
        me = self.name.encode()
        return sum(
            int(count)
            for reply in replies
            if not isinstance(reply, ServerError)
            for owner, count in reply[3] or ()
            if owner == me
        )
