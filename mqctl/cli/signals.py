"""Signals: a worker drains at the first; a producer stops between two messages."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from mqctl.core.errors import Interrupted

Handler = Callable[[int, FrameType | None], Any] | int | None
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class Caught:
    """Which signal asked to stop first, and whether another one came after it."""

    number: int | None = None
    again: bool = False


@contextmanager
def stopping(
    stop: Callable[[bool], None], actions: Mapping[signal.Signals, Callable[[], None]]
) -> Iterator[Caught]:
    """Call `stop(hard)` on INT, TERM and HUP while the block runs.

    `actions` are called on the other signals they name.
    """
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
    for number, act in actions.items():
        before[number] = signal.signal(number, lambda *_, act=act: act())
    try:
        yield caught
    finally:
        _restore(before)


def _restore(handlers: Mapping[signal.Signals, Handler]) -> None:
    """Put handlers back; a signal that comes meanwhile waits and meets the old one."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, handlers)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class Interruptible:
    """A signal noted, to be obeyed where nothing is half done.

    `check` raises Interrupted once a signal has come; while `waiting` for input it is
    raised at once.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._waiting = False

    def heard(self, number: int) -> None:
        """Note a signal; a second one, or one that comes while waiting, is obeyed."""
        again = self.number is not None
        self.number = self.number or number
        if self._waiting or again:
            self._waiting = False
            self.check()

    def check(self) -> None:
        """Raise Interrupted when a signal has come."""
        if self.number is not None:
            raise Interrupted("stopped by a signal", number=self.number)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let a signal end the block at once."""
        self.check()
        self._waiting = True
        try:
            yield
        finally:
            self._waiting = False

    def sleep(self, seconds: float) -> None:
        """Sleep, unless a signal comes."""
        with self.waiting():
            time.sleep(seconds)


@contextmanager
def interruptible() -> Iterator[Interruptible]:
    """Note INT, TERM and HUP while the block runs, instead of dying of them."""
    interrupt = Interruptible()

    def handle(number: int, _: FrameType | None) -> None:
        interrupt.heard(number)

    wanted = [n for n in _STOPPING if signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in wanted}
    try:
        yield interrupt
    finally:
        _restore(before)
