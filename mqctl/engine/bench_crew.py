"""The processes of a bench: started, heard, told to end, never left behind."""

import multiprocessing as mp
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Literal

from mqctl.core.errors import MqError, TimedOut
from mqctl.engine import bench_load
from mqctl.engine.bench_load import READY, Job, Report, Workload
from mqctl.engine.session import Session

_LOOK = 0.1  # seconds between two looks at signals and at what is left
_PATIENCE = 30.0  # seconds without any news
_GRACE = 3.0  # seconds for processes to end by themselves

Side = Literal["send", "receive"]
Doing = Literal["storing", "sending", "receiving"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is: `done` of `total` messages (None: until the time is over)."""

    doing: Doing
    done: int
    total: int | None


@dataclass(frozen=True, slots=True)
class Watch:
    """Who looks on. `check` is called every 0.1 s and raises to end the run."""

    check: Callable[[], None] = lambda: None
    progress: Callable[[Progress], None] = lambda _: None
    note: Callable[[str], None] = lambda _: None


@dataclass(slots=True, eq=False)
class Worker:
    """One process as seen from here: what it has said so far."""

    process: SpawnProcess
    pipe: Connection
    ready: bool = False
    done: int = 0
    report: Report | None = None

    def hear(self) -> None:
        """Take in what it says next. Raises the error that kept it from a report."""
        try:
            word = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            code = self.process.exitcode
            raise MqError(f"a bench process ended early: exit code {code}") from None
        if isinstance(word, Exception):
            raise word
        if isinstance(word, Report):
            self.report = word
            self.done = word.done + word.warm
        elif word == READY:
            self.ready = True
        else:
            self.done = word


@dataclass(slots=True)
class Crew:
    """All processes of a run. Group and topic have the same name."""

    session: Session
    topic: str
    load: Workload
    watch: Watch
    workers: list[Worker] = field(default_factory=list)

    def start(self, side: Side, load: Workload, count: int) -> list[Worker]:
        """Start processes; return them once all are connected."""
        session = self.session
        started = []
        for index in range(count):
            job = Job(
                session.endpoint, session.keys, self.topic, self.topic, load, index
            )
            started.append(_start(side, job))
            self.workers.append(started[-1])
        for _ in self.news():
            if all(worker.ready for worker in started):
                break
        return started

    def go(self, workers: Iterable[Worker]) -> None:
        """Let them begin at this moment."""
        now = self.session.clock.monotonic()
        for worker in workers:
            worker.pipe.send(now)

    def news(self) -> Iterator[bool]:
        """Yield each time somebody said something or 0.1 s passed: which of the two.

        Raises TimedOut when nobody says anything for too long.
        """
        clock = self.session.clock
        heard = clock.monotonic()
        patience = max(_PATIENCE, 3 / self.load.rate if self.load.rate else 0.0)
        while True:
            self.watch.check()
            talking = {w.pipe: w for w in self.workers if w.report is None}
            ready = connection.wait(list(talking), _LOOK)
            for pipe in ready:
                if isinstance(pipe, Connection):
                    talking[pipe].hear()
            if ready or not talking:
                heard = clock.monotonic()
            elif clock.monotonic() - heard > patience:
                raise TimedOut(f"nothing has moved for {patience:g} s")
            yield bool(ready)

    def reports(self, workers: list[Worker], doing: Doing) -> list[Report]:
        """Return what they report once all have ended."""
        total = self.load.messages or None
        for _ in self.news():
            done = sum(worker.done for worker in workers)
            self.watch.progress(Progress(doing, done, total))
            if all(worker.report for worker in workers):
                break
        return [worker.report for worker in workers if worker.report]

    def stop(self, workers: Iterable[Worker]) -> None:
        """Ask processes to end and to report."""
        for worker in workers:
            if worker.report is None:
                with suppress(OSError):  # it has ended
                    worker.pipe.send(None)

    def end(self) -> None:
        """See to it that no process is left, and that what they sent has arrived."""
        self.stop(self.workers)
        deadline = self.session.clock.monotonic() + _GRACE
        for worker in self.workers:
            with suppress(Exception):  # whatever it says now is of no interest
                while worker.report is None and worker.pipe.poll(self._until(deadline)):
                    worker.hear()
            worker.pipe.close()
            worker.process.join(self._until(deadline))
            worker.process.kill()
            worker.process.join()
            worker.process.close()

    def _until(self, deadline: float) -> float:
        return max(0.0, deadline - self.session.clock.monotonic())


@contextmanager
def crew(session: Session, topic: str, load: Workload, watch: Watch) -> Iterator[Crew]:
    """Give a crew whose processes have all ended when the block is left."""
    made = Crew(session, topic, load, watch)
    try:
        yield made
    finally:
        made.end()


def _start(side: Side, job: Job) -> Worker:
    """Start a process that never sees a Ctrl-C: it is told through its pipe."""
    context = mp.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(
        target=bench_load.run, args=(side, job, there), daemon=True
    )
    resource_tracker.ensure_running()  # it would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    there.close()
    return Worker(process, here)
