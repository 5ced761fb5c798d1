"""Signals of a worker: the first drains, the second stops at once."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class Caught:
    """Which signal asked to stop first, and whether another one came after it."""

    number: int | None = None
    again: bool = False


@contextmanager
def stopping(stop: Callable[[bool], None]) -> Iterator[Caught]:
    """Call `stop(hard)` on INT, TERM and HUP while the block runs."""
    caught = Caught()

    def handle(number: int, _: FrameType | None) -> None:
        if caught.number is None:
            caught.number = number
            stop(False)
        else:
            caught.again = True
            stop(True)

    wanted = [n for n in _STOPPING if signal.getsignal(n) != signal.SIG_IGN]  # nohup
    before = {number: signal.signal(number, handle) for number in wanted}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
