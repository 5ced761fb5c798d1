"""What a handler answers, and what a handler is."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from mqctl.core.message import Delivery


class Outcome(Enum):
    """What is to become of a delivery."""

    SUCCESS = "success"
    RETRY = "retry"
    DEAD = "dead"
    DEFER = "defer"  # stays pending until its receipt is settled
    RELEASE = "release"  # not handled at all: give it back, no attempt used
    FAIL = DEAD


@dataclass(frozen=True, slots=True)
class Result:
    """An outcome with its facts.

    `delay_ms` overrides the backoff of a retry. `reason` is the dead letter's one
    word. `stderr` is the last 8 KB of the command's. `stop` asks the consumer to
    drain after settling this delivery.
    """

    outcome: Outcome
    delay_ms: int | None = None
    reason: str | None = None
    detail: str = ""
    exit_code: int | None = None
    signal: str | None = None
    stderr: str = ""
    stop: bool = False


SUCCESS = Result(Outcome.SUCCESS)


class Handler(Protocol):
    """Handles one delivery at a time per partition; may block; called in threads.

    Raises HandlerBroken when it cannot be started at all: the consumer gives the
    message back and stops with 78.
    """

    def __call__(self, delivery: Delivery) -> Result:
        """Handle the delivery and say what is to become of it."""

    def drain(self) -> None:
        """Hear that no more will come: what is stopped from outside is given back."""

    def kill(self) -> None:
        """Stop everything that runs, at once; callable from another thread."""
