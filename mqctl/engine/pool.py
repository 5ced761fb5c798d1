"""Handlers that block: threads that run them, and the queue their results come by."""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread

from mqctl.core.assignment import Slot
from mqctl.core.errors import HandlerBroken
from mqctl.core.handler import Handler, Outcome, Result
from mqctl.core.message import Delivery

Submit = Callable[[Delivery, Callable[[Result, BaseException | None], None]], None]
"""Hands over a delivery; the answer comes by the function, in any thread."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A handler's answer. `broken` instead of a result: it cannot be started."""

    slot: Slot
    delivery: Delivery
    result: Result
    broken: HandlerBroken | None = None
    seconds: float = 0.0


class Wake:
    """A pair of sockets to end a wait from a signal handler or another thread."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.settimeout(0)
        self._writer.settimeout(0)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable."""
        return self._reader.fileno()

    def ring(self) -> None:
        """End the wait, now or as soon as it begins. Safe in a signal handler."""
        try:
            os.write(self._writer.fileno(), b"!")
        except (BlockingIOError, OSError):
            return

    def clear(self) -> None:
        """Forget the rings so far."""
        try:
            while self._reader.recv(4096):
                pass
        except BlockingIOError:
            return

    def close(self) -> None:
        """Close both ends."""
        self._reader.close()
        self._writer.close()


class Pool:
    """At most `workers` handlers at a time, each in a thread of its own."""

    def __init__(
        self, handler: Handler, workers: int, wake: Wake, now: Callable[[], float]
    ) -> None:
        self._handler = handler
        self._wake = wake
        self._now = now
        self.free = workers
        self._orders: SimpleQueue[tuple[Slot, Delivery] | None] = SimpleQueue()
        self._done: SimpleQueue[Finished] = SimpleQueue()
        self._threads = [
            Thread(target=self._serve, name=f"handler-{i}", daemon=True)
            for i in range(workers)
        ]
        self._started = 0
        self._submit: Submit | None = getattr(handler, "submit", None)

    def start(self, slot: Slot, delivery: Delivery) -> None:
        """Hand a delivery to the handler; only while `free` is above 0.

        To one that answers by itself directly, to others in a free thread.
        """
        self.free -= 1
        if self._submit is not None:
            begun = self._now()

            def done(result: Result, error: BaseException | None) -> None:
                if error is not None:
                    result, broken = _failure(error)
                else:
                    broken = None
                self._finish(slot, delivery, result, broken, begun)

            self._submit(delivery, done)
            return
        busy = len(self._threads) - self.free
        while self._started < busy:
            self._threads[self._started].start()
            self._started += 1
        self._orders.put((slot, delivery))

    def finished(self) -> list[Finished]:
        """Return the answers that have come since the last call."""
        answers: list[Finished] = []
        while True:
            try:
                answers.append(self._done.get_nowait())
            except Empty:
                break
        self.free += len(answers)
        return answers

    def drain(self) -> None:
        """Tell the handler that no more will come."""
        self._handler.drain()

    def kill(self) -> None:
        """Stop what runs at once."""
        self._handler.kill()

    def close(self) -> None:
        """Let the threads end; those still in a handler are left to it."""
        for _ in range(self._started):
            self._orders.put(None)

    def _serve(self) -> None:
        while (order := self._orders.get()) is not None:
            slot, delivery = order
            begun = self._now()
            result, broken = self._handle(delivery)
            self._finish(slot, delivery, result, broken, begun)

    def _finish(
        self,
        slot: Slot,
        delivery: Delivery,
        result: Result,
        broken: HandlerBroken | None,
        begun: float,
    ) -> None:
        seconds = self._now() - begun
        self._done.put(Finished(slot, delivery, result, broken, seconds))
        self._wake.ring()

    def _handle(self, delivery: Delivery) -> tuple[Result, HandlerBroken | None]:
        try:
            return self._handler(delivery), None
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is a failure
            return _failure(error)


def _failure(error: BaseException) -> tuple[Result, HandlerBroken | None]:
    """Return what an error of a handler comes to."""
    if isinstance(error, HandlerBroken):
        return Result(Outcome.RELEASE), error
    return Result(Outcome.RETRY, detail=f"{type(error).__name__}: {error}"), None
