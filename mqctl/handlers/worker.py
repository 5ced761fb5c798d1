"""Long-lived workers: children that handle one message after another.

A topic's partition goes to the same worker as long as the handler lives, so that its
messages come in order; a new one goes to the worker that has the fewest. Workers are
started when the first message waits for them. One that ends, or is ended for what it
did, is replaced when the next message waits, after a pause that doubles until
something succeeds. What a worker started ends with it.

The protocols, and what a worker must not do in them, are in `worker_answers`. The
command is taken as it stands: placeholders and MQ_ variables are about one message
and belong to commands that are started for each.
"""

import os
import shutil
from collections import Counter, deque
from collections.abc import Sequence
from itertools import count as numbers
from math import ceil, inf
from queue import SimpleQueue
from threading import RLock, Thread

from mqctl.core import backoff
from mqctl.core.clock import Clock
from mqctl.core.errors import BadData, HandlerBroken
from mqctl.core.handler import Outcome, Result
from mqctl.core.message import Delivery
from mqctl.handlers.environment import inheritable
from mqctl.handlers.exec import _cannot_start, _no_program
from mqctl.handlers.process import _LONGEST_POLL, _TICK
from mqctl.handlers.worker_answers import Encode, WorkerProtocol, language
from mqctl.handlers.worker_child import Poller
from mqctl.handlers.worker_run import RELEASE, Done, Orders, Rules, Run, Task


class WorkerHandler:
    """Hands each delivery to one of `count` workers and waits for its answer.

    Callable from any number of threads, which share the workers: up to `window`
    deliveries are in the hands of one that speaks ndjson, one with `lines`.

    `timeout_ms` limits the time a delivery is the oldest in its worker's hands; then
    the worker gets TERM, after `grace_ms` KILL. That, the worker's end and nonsense
    from it make each delivery in its hands a retry. A worker is started again after
    `restart_base_ms`, doubled for each end without a success up to `restart_cap_ms`.

    Raises HandlerBroken when the program cannot be found, ValueError without `encode`
    where it is needed. `close` it at the end.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        count: int,
        clock: Clock,
        protocol: WorkerProtocol = "ndjson",
        encode: Encode | None = None,
        window: int = 64,
        timeout_ms: int | None = None,
        grace_ms: int = 10_000,
        restart_base_ms: int = 100,
        restart_cap_ms: int = 10_000,
    ) -> None:
        name = command[0]
        program = shutil.which(name)
        if program is None:
            raise _no_program(name)
        self._clock = clock
        self._rules = Rules(
            name=name,
            program=program,
            argv=tuple(os.fsencode(part) for part in command),
            env=inheritable(os.environb),
            language=language(protocol, encode, window),
            clock=clock,
            timeout=None if timeout_ms is None else timeout_ms / 1000,
            grace=grace_ms / 1000,
        )
        self._orders = Orders()
        self._poller = Poller()
        self._seats = [
            _Seat(
                self._rules, self._orders, self._poller, restart_base_ms, restart_cap_ms
            )
            for _ in range(count)
        ]
        self._seat_of: dict[tuple[str, int], _Seat] = {}
        self._shares = Counter[_Seat]()
        self._numbers = numbers(1)
        self._inbox: deque[tuple[_Seat, Task]] = deque()
        self._lock = RLock()  # a signal handler may come in between
        self._thread: Thread | None = None
        self._bell: tuple[int, int] | None = None
        self._rung = False
        self._over = False
        self._crash: BaseException | None = None

    # -- for the threads that bring deliveries -----------------------------------

    def __call__(self, delivery: Delivery) -> Result:
        """Have the delivery handled and return the answer.

        Raises HandlerBroken when no worker can be started; what cannot be said in the
        protocol is the message's fault and makes it a dead letter.
        """
        answer: SimpleQueue[tuple[Result, BaseException | None]] = SimpleQueue()
        self.submit(delivery, lambda result, error: answer.put((result, error)))
        result, error = answer.get()
        if error is not None:
            raise error
        return result

    def submit(self, delivery: Delivery, done: Done) -> None:
        """Have the delivery handled; `done` gets what a call returns or raises.

        It is called in another thread, or in this one before this returns. No thread
        waits for an answer then: three times as many messages get through.
        """
        seq = next(self._numbers)
        try:
            line = self._rules.language.say(delivery, seq)
        except BadData as error:
            done(_undecodable(error), None)
            return
        slot = (delivery.message.topic, delivery.message.partition)
        if not self._post(slot, Task(seq, line, done)):
            done(RELEASE, self._crash)

    def _post(self, slot: tuple[str, int], task: Task) -> bool:
        with self._lock:
            if self._over or self._orders.closing or self._orders.killed:
                return False
            self._begin()
            self._inbox.append((self._seat(slot), task))
            self._ring()
            return True

    def drain(self) -> None:
        """From now on a worker ended by INT, TERM or HUP gives its messages back."""
        self._orders.draining = True

    def kill(self) -> None:
        """Kill all workers, with everything they started, at once.

        Their messages, and those of calls still to come, are given back.
        """
        self._orders.killed = True
        for seat in self._seats:
            seat.kill()
        self._ring()

    def close(self) -> None:
        """End the workers and wait for it; calls still to come are given back.

        Their stdin is closed; those that have not ended after the grace get TERM, and
        after another one KILL. Answers count until then.
        """
        self._orders.closing = True
        self._ring()
        if self._thread is not None:
            self._thread.join()

    def _begin(self) -> None:
        if self._thread is None:
            self._bell = os.pipe()
            for fd in self._bell:
                os.set_blocking(fd, False)
            self._poller.watch(self._bell[0], self._answer_the_bell)
            self._thread = Thread(target=self._main, name="workers", daemon=True)
            self._thread.start()

    def _seat(self, slot: tuple[str, int]) -> "_Seat":
        seat = self._seat_of.get(slot)
        if seat is None:
            seat = min(self._seats, key=lambda s: self._shares[s])
            self._shares[seat] += 1
            self._seat_of[slot] = seat
        return seat

    def _ring(self) -> None:
        with self._lock:
            if self._bell is not None and not self._rung:
                self._rung = True
                os.write(self._bell[1], b"!")

    # -- the thread that polls ----------------------------------------------------

    def _main(self) -> None:
        try:
            while not self._done():
                self._poller.wait(self._patience())
                self._take_in()
                for seat in self._seats:
                    seat.tick()
        except BaseException as error:  # noqa: BLE001 - nobody must wait for ever
            self._crash = error
        finally:
            self._end()

    def _done(self) -> bool:
        stopping = self._orders.closing or self._orders.killed
        return stopping and all(seat.empty for seat in self._seats)

    def _patience(self) -> int:
        """Return the milliseconds until something must be done."""
        left = min(s.due() for s in self._seats) - self._clock.monotonic()
        tick = _TICK if any(s.ticks for s in self._seats) else _LONGEST_POLL
        return ceil(max(0.0, min(left, tick)) * 1000)

    def _answer_the_bell(self) -> None:
        if self._bell is not None:
            os.read(self._bell[0], 64)
        self._rung = False  # before the inbox is emptied: then none is overlooked

    def _take_in(self) -> None:
        while self._inbox:
            seat, task = self._inbox.popleft()
            seat.queue.append(task)

    def _end(self) -> None:
        with self._lock:
            self._over = True
            bell, self._bell = self._bell, None
            self._take_in()
        for seat in self._seats:
            seat.give_up(self._crash)
        for fd in bell or ():
            self._poller.forget(fd)
            os.close(fd)


class _Seat:
    """The place of one worker: the queue before it, and the run of the present one.

    Owned by the thread that polls; only `kill` may be called from others.
    """

    def __init__(
        self, rules: Rules, orders: Orders, poller: Poller, base_ms: int, cap_ms: int
    ) -> None:
        self._rules = rules
        self._orders = orders
        self._poller = poller
        self._base_ms = base_ms
        self._cap_ms = cap_ms
        self._failures = 0
        self._start_at = -inf
        self._run: Run | None = None
        self.queue: deque[Task] = deque()

    @property
    def empty(self) -> bool:
        """Tell whether there is neither a worker nor anything to do."""
        return self._run is None and not self.queue

    @property
    def ticks(self) -> bool:
        """Tell whether a worker's end must be looked for."""
        return self._run is not None and self._run.ticks

    def due(self) -> float:
        """Return the monotonic time at which `tick` has something to do."""
        if self._run is not None:
            return self._run.due()
        return self._start_at if self.queue else inf

    def tick(self) -> None:
        """Start a worker, look after it, or bury it."""
        if self._run is not None and self._run.over():
            self._bury(self._run)
        if self._orders.closing or self._orders.killed:
            self._settle_queue(None)
        if self._run is None and self.queue:
            self._start()
        if self._run is not None:
            self._run.tick()

    def kill(self) -> None:
        """Kill the worker at once."""
        run = self._run
        if run is not None:
            run.kill()

    def give_up(self, error: BaseException | None) -> None:
        """Let go of everything: failed with the error, or given back without one."""
        if self._run is not None:
            self._run.give_up(error or RuntimeError("the worker was left"))
            self._run = None
        self._settle_queue(error)

    def _start(self) -> None:
        if self._rules.clock.monotonic() < self._start_at:
            return
        try:
            self._run = Run(self._rules, self._orders, self._poller, self.queue)
        except OSError as error:
            self._settle_queue(_cannot_start(self._rules.name, error))
            return
        if self._orders.killed:  # it came before there was anything to kill
            self._run.kill()

    def _bury(self, run: Run) -> None:
        self._run = None
        broken: HandlerBroken | None = run.bury()
        if broken is not None:
            self._settle_queue(broken)
        self._failures = 1 if run.succeeded else self._failures + 1
        pause = backoff.delay_ms(self._failures, self._base_ms, self._cap_ms)
        self._start_at = self._rules.clock.monotonic() + pause / 1000

    def _settle_queue(self, error: BaseException | None) -> None:
        while self.queue:
            task = self.queue.popleft()
            if error is None:
                task.settle(RELEASE)
            else:
                task.fail(error)


def _undecodable(error: BadData) -> Result:
    return Result(Outcome.DEAD, reason="undecodable", detail=error.message)
