"""A consumer seen from outside: ready, paused, and what it has done so far."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from mqctl.core.options import ConsumerOptions, Summary
from mqctl.engine.metering import Metering
from mqctl.engine.roster import Roster

_GAUGES_EVERY = 1.0


@dataclass(slots=True)
class Life:
    """Told of each round of the loop; tells what is due.

    `on_ready` is called once, when the first partition is held. `report` gets a line
    of statistics every `stats_ms`, and whenever one was asked for.
    """

    options: ConsumerOptions
    summary: Summary
    roster: Roster
    metering: Metering
    report: Callable[[str], None]
    on_ready: Callable[[], None]
    paused: bool = False
    asked: bool = False
    _ready: bool = False
    _next_report: float = 0.0
    _next_gauges: float = 0.0

    def tick(self, now: float) -> None:
        """Do what is due at this moment (monotonic)."""
        if not self._ready and self.roster.parts:
            self._ready = True
            self.on_ready()
        if self.asked or self._report_due(now):
            self.asked = False
            self.report(self.line())
        if now >= self._next_gauges:
            self._next_gauges = now + _GAUGES_EVERY
            self._gauges()

    def _report_due(self, now: float) -> bool:
        every = self.options.stats_ms / 1000
        if not every or now < self._next_report:
            return False
        first, self._next_report = self._next_report == 0.0, now + every
        return not first

    @property
    def next_timer(self) -> float:
        """Return when (monotonic) the next line is due; infinite without."""
        return self._next_report if self.options.stats_ms else float("inf")

    @property
    def in_flight(self) -> int:
        """Return how many handlers run."""
        return sum(part.busy is not None for part in self.roster.parts.values())

    def line(self) -> str:
        """Return what has been done so far, and what is held now."""
        done = self.summary
        held = Counter(topic for topic, _ in self.roster.parts)
        parts = [
            f"{done.received} received",
            f"{done.acked} acknowledged",
            f"{done.retried} retried",
            f"{done.dead} dead",
            f"{self.in_flight} in work",
            f"{held.total()} partitions",
        ]
        return ", ".join(parts) + (", paused" if self.paused else "")

    def _gauges(self) -> None:
        eligible = Counter(topic for topic, _ in self.roster.selected())
        leased = Counter(topic for topic, _ in self.roster.parts)
        leased.update(dict.fromkeys(eligible, 0))
        self.metering.state(
            self.in_flight, self.options.max_in_flight, dict(eligible), dict(leased)
        )
