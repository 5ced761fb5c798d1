"""Whether a consumer is to end, since when, and how."""

from dataclasses import dataclass, field

from mqctl.core.clock import Clock
from mqctl.core.options import ConsumerOptions


class HardStop(Exception):
    """Stop at once; whatever is in hand stays pending."""


@dataclass(slots=True)
class Ending:
    """Asked for by limits, signals and other threads; obeyed by the consumer's loop.

    `since` is when (monotonic) draining began. `ask` may be called at any time from
    anywhere; everything else belongs to the loop.
    """

    clock: Clock
    options: ConsumerOptions
    drain: bool = False
    hard: bool = False
    since: float | None = None
    began: float = field(init=False)
    drain_ms: int = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock.monotonic()
        self.drain_ms = self.options.drain_timeout_ms

    def ask(self, *, hard: bool = False, drain_ms: int | None = None) -> None:
        """Drain, in `drain_ms` if given, or with `hard` stop at once."""
        if drain_ms is not None:
            self.drain_ms = drain_ms
        if self.since is None:
            self.since = self.clock.monotonic()
        self.drain = True
        self.hard = self.hard or hard

    def obey(self) -> None:
        """Raise HardStop if that was asked; ask to drain when the time is over."""
        if self.hard:
            raise HardStop
        now = self.clock.monotonic()
        if not self.drain and now >= self.deadline:
            self.ask()

    @property
    def deadline(self) -> float:
        """Return when (monotonic) the whole run is to end, infinite without bound."""
        limit = self.options.max_time_ms
        return self.began + limit / 1000 if limit else float("inf")

    @property
    def last_moment(self) -> float:
        """Return when (monotonic) draining has taken too long; infinite before."""
        if self.since is None:
            return float("inf")
        return self.since + self.drain_ms / 1000

    @property
    def late(self) -> bool:
        """Tell whether draining has taken too long."""
        return self.clock.monotonic() > self.last_moment
