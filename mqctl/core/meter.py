"""What a run has done, counted: totals, timings and gauges, by name and tags."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock

Listener = Callable[[str, float, Mapping[str, str]], None]
"""Gets every count, timing (seconds) and gauge: name, value, tags."""

Tags = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Timing:
    """How often something was timed, in seconds together and at most."""

    count: int = 0
    total: float = 0.0
    longest: float = 0.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All figures at one moment."""

    counts: dict[tuple[str, Tags], float]
    timings: dict[tuple[str, Tags], Timing]
    gauges: dict[tuple[str, Tags], float]


@dataclass(slots=True)
class Meter:
    """Adds up what it is told and passes it on; for several threads at once.

    A listener that raises ends the work that told it: it must not.
    """

    listener: Listener | None = None
    _counts: dict[tuple[str, Tags], float] = field(default_factory=dict)
    _timings: dict[tuple[str, Tags], Timing] = field(default_factory=dict)
    _gauges: dict[tuple[str, Tags], float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def count(self, name: str, amount: float, **tags: str) -> None:
        """Add to a total."""
        if not amount:
            return
        key = (name, tuple(sorted(tags.items())))
        with self._lock:
            self._counts[key] = self._counts.get(key, 0.0) + amount
        self._pass_on(name, amount, tags)

    def time(self, name: str, seconds: float, **tags: str) -> None:
        """Note how long something took."""
        key = (name, tuple(sorted(tags.items())))
        with self._lock:
            timing = self._timings.setdefault(key, Timing())
            timing.count += 1
            timing.total += seconds
            timing.longest = max(timing.longest, seconds)
        self._pass_on(name, seconds, tags)

    def gauge(self, name: str, value: float, **tags: str) -> None:
        """Set what is the case now."""
        key = (name, tuple(sorted(tags.items())))
        with self._lock:
            same = self._gauges.get(key) == value
            self._gauges[key] = value
        if not same:
            self._pass_on(name, value, tags)

    def _pass_on(self, name: str, value: float, tags: dict[str, str]) -> None:
        if self.listener is not None:
            self.listener(name, value, tags)

    def snapshot(self) -> Snapshot:
        """Return a copy of all figures."""
        with self._lock:
            timings = {
                key: Timing(t.count, t.total, t.longest)
                for key, t in self._timings.items()
            }
            return Snapshot(dict(self._counts), timings, dict(self._gauges))
