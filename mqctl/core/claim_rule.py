"""From which idle time on a pending entry may be taken: by mode, owner and count."""

from dataclasses import dataclass
from typing import Literal

from mqctl.core import backoff

RetryMode = Literal["requeue", "pending", "in-place"]
ClaimMode = Literal["on", "off", "only"]


@dataclass(frozen=True, slots=True)
class ClaimRule:
    """What `threshold` decides by; durations in milliseconds.

    `mode` is the retry mode, `claim` whether entries of others are taken at all.
    """

    idle_ms: int
    mode: RetryMode = "requeue"
    claim: ClaimMode = "on"
    base_ms: int = 1_000
    cap_ms: int = 60_000
    schedule: tuple[int, ...] = ()

    def threshold(self, *, own: bool, first: bool, deliveries: int) -> int | None:
        """Return the idle time that suffices, None for never.

        `own`: it is pending under my name. `first`: nobody of this run has looked at
        the partition yet, so that what is mine was left by an earlier one. In place,
        the lease proves that nobody else may have it. Left pending, an entry whose
        handling was started waits its backoff, one that was only fetched does not.
        """
        if self.mode == "in-place" and first:
            return 0
        if self.mode == "pending" and deliveries > 1 and (own or self.claim != "off"):
            return backoff.delay_ms(
                deliveries - 1, self.base_ms, self.cap_ms, self.schedule
            )
        if own and first:
            return 0
        return None if self.claim == "off" else self.idle_ms
