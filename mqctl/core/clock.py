"""Time as an argument: the only module that reads a clock.

The server's time decides what is due, idle or expired; the monotonic clock
measures waiting. `Clock` has both: the offset to the server is measured when the
connection opens.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Two readings: the server's wall clock and a monotonic one."""

    def now_ms(self) -> int:
        """Return the server's time in epoch milliseconds, as far as known."""

    def monotonic(self) -> float:
        """Return seconds of a clock that never jumps."""


@dataclass(slots=True)
class SystemClock:
    """The machine's clocks; `offset_ms` corrects towards the server's."""

    offset_ms: int = 0

    def now_ms(self) -> int:
        """Return epoch milliseconds by the server's clock."""
        return time.time_ns() // 1_000_000 + self.offset_ms

    def monotonic(self) -> float:
        """Return seconds of the monotonic clock."""
        return time.monotonic()

    def follow(self, server_ms: int) -> None:
        """Take the server's clock as the truth from now on."""
        self.offset_ms = server_ms - time.time_ns() // 1_000_000


@dataclass(slots=True)
class ManualClock:
    """A clock that tests move by hand."""

    ms: int = 1_700_000_000_000
    seconds: float = 1000.0

    def now_ms(self) -> int:
        """Return the milliseconds set."""
        return self.ms

    def monotonic(self) -> float:
        """Return the seconds set."""
        return self.seconds

    def advance(self, seconds: float) -> None:
        """Move both readings forward."""
        self.seconds += seconds
        self.ms += round(seconds * 1000)


def rfc3339(ms: int) -> str:
    """Format epoch milliseconds as `2026-01-02T03:04:05.678Z`."""
    seconds, rest = divmod(ms, 1000)
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return f"@{ms}"
    return f"{moment.replace(tzinfo=None).isoformat()}.{rest:03d}Z"
