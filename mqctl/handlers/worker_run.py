"""One worker from its start to its end: what it has in hand, its answers, its time.

A delivery counts as handed over with the first byte that goes to the worker. When the
worker ends with deliveries in hand, each is retried; what was not handed over stays
in the queue, no attempt used. So does what a worker that has answered before left
unread in its pipe: ending after so many messages is a way to work. One that has not
answered is charged in any case, or a message could wait for ever.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from select import POLLOUT
from signal import SIGKILL, SIGTERM

from mqctl.core.clock import Clock
from mqctl.core.errors import HandlerBroken
from mqctl.core.handler import Outcome, Result
from mqctl.core.units import short_duration
from mqctl.handlers.exec import _SHELL_OFFSET, _STOPPED_BY, _signal_name
from mqctl.handlers.worker_answers import Language, Nonsense
from mqctl.handlers.worker_child import Child, Poller, start_child

RELEASE = Result(Outcome.RELEASE)

_MOST_LINES = 500  # in one write; systems take 1024
_LAST_MOMENTS = 1.0  # seconds for a worker to end that has closed a pipe


Done = Callable[[Result, BaseException | None], None]
"""Takes an answer, or an error and no answer; once, quickly, in any thread."""


@dataclass(frozen=True, slots=True)
class Task:
    """A delivery on its way through a worker, and who waits for the answer."""

    seq: int
    line: bytes
    done: Done

    def settle(self, result: Result) -> None:
        """Give the answer."""
        self.done(result, None)

    def fail(self, error: BaseException) -> None:
        """Say why there is none."""
        self.done(RELEASE, error)


@dataclass(frozen=True, slots=True)
class Rules:
    """What workers are run by. `grace` lies between TERM and KILL; seconds."""

    name: str
    program: str
    argv: tuple[bytes, ...]
    env: Mapping[bytes, bytes]
    language: Language
    clock: Clock
    timeout: float | None
    grace: float


@dataclass(slots=True)
class Orders:
    """What all workers have been told from outside."""

    draining: bool = False
    closing: bool = False
    killed: bool = False


class Run:
    """Starts a worker and hands it what stands in `queue`. OSError when it cannot.

    Owned by the thread that polls; only `kill` may be called from others. The clock
    of a delivery runs while it is the oldest in the worker's hands.
    """

    def __init__(
        self, rules: Rules, orders: Orders, poller: Poller, queue: deque[Task]
    ) -> None:
        self._rules = rules
        self._orders = orders
        self._poller = poller
        self._queue = queue
        self._in_hand: dict[int, Task] = {}
        self._overdue: Task | None = None
        self._rest = memoryview(b"")  # of a line written in part
        self._since = 0.0  # when the oldest in hand became the oldest
        self._leaves_at = inf  # when it must have ended by itself
        self._kill_at = inf
        self._why: str | None = None  # it is stopped, or will be
        self._stopping = False
        self._deaf = False
        self._blocked = False  # its stdin is full and watched
        self._ended = False
        self._answered = False
        self.succeeded = False
        self._child = self._start()

    def _start(self) -> Child:
        child = start_child(self._rules.program, self._rules.argv, self._rules.env)
        self._poller.watch(child.stdout, self._hear)
        self._poller.watch(child.stderr, self._listen)
        if child.pidfd is not None:
            self._poller.watch(child.pidfd, self._end)
        return child

    def due(self) -> float:
        """Return the monotonic time at which `tick` has something to do."""
        return min(self._leaves_at, self._kill_at, self._times_out_at())

    @property
    def ticks(self) -> bool:
        """Tell whether its end must be looked for, as nothing will tell of it."""
        return self._child.pidfd is None

    def over(self) -> bool:
        """Tell whether the worker has ended."""
        return self._ended or (self._child.pidfd is None and self._child.gone())

    def tick(self) -> None:
        """Stop what is past its time, hand over what waits."""
        now = self._rules.clock.monotonic()
        if now >= self._kill_at:
            self._kill_at = inf
            self._child.signal(SIGKILL)
        elif now >= self._times_out_at():
            self._overdue = self._in_hand.pop(next(iter(self._in_hand)))
            limit = round((self._rules.timeout or 0) * 1000)
            self._stop(f"timed out after {short_duration(limit)}")
        elif now >= self._leaves_at:
            self._stop(self._why)
        self._feed()

    def kill(self) -> None:
        """Kill the worker and all it started, at once."""
        self._child.signal(SIGKILL)

    # -- handing over -----------------------------------------------------------

    def _feed(self) -> None:
        """Hand over as many deliveries as the window and the pipe take."""
        self._unblock()
        if self._leaves_at < inf or self._stopping:
            return
        while lines := self._lines():
            taken = self._child.write(lines)
            if taken is None:
                self._leave("its worker closed its standard input")
                return
            if not taken:
                self._poller.watch(self._child.stdin, self._feed, POLLOUT)
                self._blocked = True
                return
            self._handed_over(taken)
        if self._orders.closing:
            self._child.shut()
            self._leave(None, self._rules.grace)

    def _unblock(self) -> None:
        if self._blocked:
            self._poller.forget(self._child.stdin)
            self._blocked = False

    def _lines(self) -> list[bytes | memoryview]:
        room = min(self._rules.language.window - len(self._in_hand), _MOST_LINES)
        rest = [self._rest] if self._rest else []
        return [*rest, *(task.line for task in islice(self._queue, max(0, room)))]

    def _handed_over(self, taken: int) -> None:
        before = len(self._rest)
        self._rest = self._rest[taken:]
        taken -= before
        while taken > 0:
            task = self._queue.popleft()
            if not self._in_hand:
                self._since = self._rules.clock.monotonic()
                self._child.tail = b""  # nothing said before is about this one
            self._in_hand[task.seq] = task
            self._rest = memoryview(task.line)[taken:]
            taken -= len(task.line)

    # -- answers ----------------------------------------------------------------

    def _hear(self) -> None:
        try:
            lines = self._child.lines()
            if lines is None:
                self._poller.forget(self._child.stdout)
                self._leave("its worker closed its standard output")
            elif not self._deaf:
                for line in lines:
                    self._take(line)
        except Nonsense as error:
            self._deaf = True
            if not self._stopping:
                self._stop(f"its worker's answer is nonsense: {error}")

    def _take(self, line: bytes) -> None:
        seq, result = self._rules.language.read(line)
        if seq is None:
            seq = next(iter(self._in_hand), 0)
        task = self._in_hand.get(seq)
        if task is None:
            if self._stopping:  # too late
                return
            raise Nonsense(f"unknown seq {seq}" if seq else "an answer to nothing")
        if seq == next(iter(self._in_hand)):
            self._since = self._rules.clock.monotonic()
        del self._in_hand[seq]
        self._answered = True
        if result.outcome is Outcome.SUCCESS:
            self.succeeded = True
        else:
            self._listen()
            result = replace(result, stderr=self._stderr())
        task.settle(result)

    def _listen(self) -> None:
        if not self._child.listen():
            self._poller.forget(self._child.stderr)

    def _stderr(self) -> str:
        return self._child.tail.decode("utf-8", "replace")

    # -- stopping ---------------------------------------------------------------

    def _times_out_at(self) -> float:
        limit = self._rules.timeout
        if limit is None or not self._in_hand or self._stopping:
            return inf
        return self._since + limit

    def _leave(self, why: str | None, seconds: float = _LAST_MOMENTS) -> None:
        """Give it that long to end by itself; it gets nothing more to do."""
        if self._leaves_at == inf and not self._stopping:
            self._leaves_at = self._rules.clock.monotonic() + seconds
            self._why = why

    def _stop(self, why: str | None) -> None:
        """Send TERM; KILL comes after the grace."""
        self._why = why
        self._stopping = True
        self._leaves_at = inf
        self._kill_at = self._rules.clock.monotonic() + self._rules.grace
        self._child.signal(SIGTERM)

    def _end(self) -> None:
        self._ended = True
        if self._child.pidfd is not None:
            self._poller.forget(self._child.pidfd)

    # -- the end ----------------------------------------------------------------

    def bury(self) -> HandlerBroken | None:
        """Settle all it had in hand; when that can never work, return why.

        Then what it had in hand stands in the queue again.
        """
        self._hear()
        self._listen()
        if self._answered:
            self._take_back(self._child.unread())
        code = self._dismiss()
        in_hand = list(self._in_hand.values())
        why = self._why if self._stopping else f"its worker ended: {_ending(code)}"
        if self._overdue is not None:
            self._overdue.settle(self._failed(f"{why}", code))
            why = f"its worker was stopped: another message {why}"
        if self._given_back(code):
            for task in in_hand:
                task.settle(RELEASE)
            return None
        if code in (126, 127) and not (self._answered or self._stopping):
            self._queue.extendleft(reversed(in_hand))
            return _broken(self._rules.name, code)
        for task in in_hand:
            task.settle(self._failed(f"{why}", code))
        return None

    def _take_back(self, unread: int) -> None:
        """Put the last deliveries back that are wholly among the unread bytes."""
        unread += len(self._rest)
        while self._in_hand:
            seq, task = self._in_hand.popitem()
            unread -= len(task.line)
            if unread < 0:
                self._in_hand[seq] = task
                return
            self._queue.appendleft(task)

    def give_up(self, error: BaseException) -> None:
        """Kill the worker and fail all it has in hand."""
        self._dismiss()
        for task in self._in_hand.values():
            task.fail(error)
        if self._overdue is not None:
            self._overdue.fail(error)

    def _dismiss(self) -> int | None:
        child = self._child
        self._unblock()
        for fd in (child.stdout, child.stderr, child.pidfd):
            if fd is not None:
                self._poller.forget(fd)
        return child.end()

    def _given_back(self, code: int | None) -> bool:
        """Tell whether it ended because we stop, or are being stopped."""
        if self._orders.killed:
            return True
        if self._stopping and self._why is not None:
            return False
        stopped = code is not None and (
            -code in _STOPPED_BY or code - _SHELL_OFFSET in _STOPPED_BY
        )
        return self._orders.closing or (self._orders.draining and stopped)

    def _failed(self, why: str, code: int | None) -> Result:
        signal = None if code is None or code >= 0 else _signal_name(-code)
        return Result(
            Outcome.RETRY,
            detail=why,
            exit_code=None if signal else code,
            signal=signal,
            stderr=self._stderr(),
        )


def _ending(code: int | None) -> str:
    if code is None:
        return "its exit status was lost"
    return f"killed by {_signal_name(-code)}" if code < 0 else f"exit status {code}"


def _broken(name: str, code: int) -> HandlerBroken:
    meaning = "cannot be executed" if code == 126 else "was not found"  # noqa: PLR2004
    return HandlerBroken(
        f"{name!r} exited with {code}: a command it needs {meaning}",
        command=name,
        exit_code=code,
    )
