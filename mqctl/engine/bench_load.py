"""The two sides of a bench, each in a process of its own: sending and receiving.

They run the same producer and consumer as the commands do. A payload begins with the
message's sequence number and the moment (monotonic, microseconds) it was to be sent;
what is sent to warm up has the number -1.

Over its pipe a process says READY once it is connected, waits for the moment to begin,
says now and then how many messages it has done, and ends with a `Report` or with the
error that kept it from one. Whatever else comes in, or the end of the other side, asks
it to stop.
"""

import select
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from threading import Thread
from typing import Literal

from mqctl.core.clock import Clock
from mqctl.core.errors import BadUsage, MqError, Unreachable
from mqctl.core.histogram import Histogram
from mqctl.core.keys import KeySpace
from mqctl.core.message import Delivery
from mqctl.core.options import ConsumerOptions
from mqctl.engine.consumer import Consumer
from mqctl.engine.producer import Producer, ProducerOptions, Sent
from mqctl.engine.session import Session
from mqctl.store.url import Endpoint
from mqctl.store.wire import ConnectionLost

Mode = Literal["produce", "consume", "e2e"]
READY = "ready"

_NUMBER, _STAMP = 12, 28  # where the sequence number ends, and the moment
_WARM = -1
_MAX_RETRIES = 3
_TELL = 0.1  # seconds between two counts
_DRAIN_MS = 2000
_TOGETHER = 50  # messages stamped with one moment, about as many as one send takes
_NO_HEADERS: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Workload:
    """What is to be measured.

    `messages` and `duration_ms`: whichever is reached first, 0 = no bound. `rate` in
    messages per second over all producers, 0 = as fast as it goes. `size` in bytes.
    """

    mode: Mode = "e2e"
    messages: int = 100_000
    duration_ms: int = 0
    size: int = 1000
    partitions: int = 4
    batch: int = 500
    producers: int = 1
    consumers: int = 1
    rate: float = 0.0
    warmup_ms: int = 0

    def __post_init__(self) -> None:
        for name in ("partitions", "batch", "producers", "consumers"):
            if getattr(self, name) < 1:
                raise BadUsage(f"--{name} must be at least 1")
        if self.messages < 0 or not (self.messages or self.duration_ms):
            raise BadUsage("nothing to measure", hint="--messages N or --duration DUR")
        if self.size < _STAMP:
            raise BadUsage(f"--size must be at least {_STAMP}B, for number and time")
        if self.mode == "consume" and self.rate:
            raise BadUsage("--rate is for sending: it goes with produce and e2e")
        if self.mode == "consume" and not self.messages:
            raise BadUsage("consuming needs messages: they are stored before")
        if self.mode != "produce" and self.consumers > self.partitions:
            raise BadUsage(
                f"{self.consumers} consumers cannot share {self.partitions} partitions",
                hint=f"--partitions {self.consumers}",
            )


@dataclass(frozen=True, slots=True)
class Job:
    """One process's part of a workload; `index` counts from 0 on its side."""

    endpoint: Endpoint
    keys: KeySpace
    topic: str
    group: str
    load: Workload
    index: int


@dataclass(slots=True)
class Report:
    """What a process did. Moments are monotonic seconds, latencies microseconds.

    `done` messages are stored, or received for the first time, and `repeated` ones
    received again; `warm` ones, done before the measuring began, are none of them.
    `seen` has a 1 for each sequence number received, warm or not.
    """

    began: float
    ended: float
    done: int = 0
    warm: int = 0
    repeated: int = 0
    failed: int = 0
    latencies: Histogram = field(default_factory=Histogram)
    seen: bytearray = field(default_factory=bytearray)
    cause: MqError | None = None


class Line:
    """A process's end of its pipe."""

    def __init__(self, pipe: Connection, clock: Clock) -> None:
        self._pipe = pipe
        self._clock = clock
        self._told = clock.monotonic()

    def count(self, done: int) -> None:
        """Say how many messages are done, not too often."""
        now = self._clock.monotonic()
        if now - self._told >= _TELL:
            self._told = now
            self._pipe.send(done)

    def stopped(self, seconds: float | None = 0.0) -> bool:
        """Tell whether to stop, as soon as that is asked, at most so much later."""
        wait = None if seconds is None else max(0.0, seconds)
        return bool(select.select([self._pipe], [], [], wait)[0])


def run(side: Literal["send", "receive"], job: Job, pipe: Connection) -> None:
    """Do one process's part; the pipe gets the outcome, whatever it is."""
    begin = _send if side == "send" else _receive
    try:
        session = Session.open(job.endpoint, keys=job.keys)
        try:
            pipe.send(begin(job, session, pipe))
        finally:
            session.close()
    except (EOFError, BrokenPipeError):  # nobody is there to be told
        return
    except MqError as error:
        pipe.send(_portable(error))
    except Exception as error:  # noqa: BLE001 - told as a bug by the other side
        pipe.send(RuntimeError(f"{type(error).__name__}: {error}"))


def _portable(error: MqError) -> MqError:
    """Return the same as an error that can go through a pipe."""
    return Unreachable(error.message) if isinstance(error, ConnectionLost) else error


def _send(job: Job, session: Session, pipe: Connection) -> Report:
    sender = Sender(job, session, Line(pipe, session.clock))
    return sender.run(_begin(pipe))


def _receive(job: Job, session: Session, pipe: Connection) -> Report:
    receiver = Receiver(job, session, Line(pipe, session.clock))
    return receiver.run(_begin(pipe))


def _begin(pipe: Connection) -> float:
    """Say READY; return the moment to begin. EOFError when there will be none."""
    pipe.send(READY)
    moment: float | None = pipe.recv()
    if moment is None:
        raise EOFError
    return moment


class Sender:
    """Sends every `producers`-th message of the workload."""

    def __init__(self, job: Job, session: Session, line: Line) -> None:
        load = job.load
        self._job, self._line, self._clock = job, line, session.clock
        self._filler = b"x" * (load.size - _STAMP)
        self._step = load.producers / load.rate if load.rate else 0.0
        self._first = 0.0  # when the first message of the phase is due
        self._latencies: Histogram | None = None
        options = ProducerOptions(
            partitions=load.partitions, batch=load.batch, max_bytes=load.size
        )
        report = self._stored if load.rate else None
        self._producer = Producer(session, job.topic, options, report=report)

    def run(self, start: float) -> Report:
        """Warm up, then send what counts; both bounds and requests to stop end it."""
        load, tally = self._job.load, self._producer.tally
        counted = start + load.warmup_ms / 1000
        report = Report(start, start)
        try:
            if load.warmup_ms:
                self._phase(start, counted, None)
                report.warm = tally.stored
            report.began = counted if load.rate else self._clock.monotonic()
            end = counted + load.duration_ms / 1000 if load.duration_ms else None
            self._latencies = report.latencies
            self._phase(counted, end, load.messages or None, self._job.index)
        except MqError as error:
            report.cause = _portable(error)
        report.ended = self._clock.monotonic()
        report.done = tally.stored - report.warm
        report.failed = len(tally.failed) + len(tally.unknown)
        return report

    def _phase(
        self, first: float, end: float | None, limit: int | None, number: int = _WARM
    ) -> None:
        """Send until the moment `end` or the sequence number `limit`; wait for all."""
        until = float("inf") if end is None else end
        last = float("inf") if limit is None else limit
        if self._step:
            self._first = first + self._job.index / self._job.load.rate
            self._evenly(until, last, number)
        else:
            self._flat_out(until, last, number)
        self._producer.drain()

    def _flat_out(self, until: float, last: float, number: int) -> None:
        """Send as fast as the server takes it."""
        stride = 0 if number == _WARM else self._job.load.producers
        add, monotonic = self._producer.add, self._clock.monotonic
        line = 0
        while not self._line.stopped():
            now = monotonic()
            if now >= until:
                return
            rest = b"%016d%b" % (now * 1e6, self._filler)
            for _ in range(min(self._job.load.batch, _TOGETHER)):
                if number >= last:
                    return
                line += 1
                payload = b"%012d%b" % (number, rest)
                add(payload, None, _NO_HEADERS, None, _MAX_RETRIES, line)
                number += stride
            self._line.count(self._producer.tally.stored)

    def _evenly(self, until: float, last: float, number: int) -> None:
        """Send each message when it is due; what is late is sent at once, and is late.

        Nothing is left unanswered while waiting, so that replies are seen in time.
        """
        stride = 0 if number == _WARM else self._job.load.producers
        line, wait = 0, self._first - self._clock.monotonic()
        while not self._line.stopped(wait):
            now = self._clock.monotonic()
            for _ in range(self._job.load.batch):
                due = self._first + line * self._step
                if number >= last or due >= until:
                    return
                if due > now:
                    self._producer.drain()
                    break
                line += 1
                payload = b"%012d%016d%b" % (number, due * 1e6, self._filler)
                self._producer.tick()
                self._producer.add(payload, None, _NO_HEADERS, None, _MAX_RETRIES, line)
                number += stride
            wait = self._first + line * self._step - self._clock.monotonic()
            self._line.count(self._producer.tally.stored)

    def _stored(self, sent: list[Sent]) -> None:
        if self._latencies is None:
            return
        now = self._clock.monotonic()
        self._latencies.record(
            int((now - self._first - (one.line - 1) * self._step) * 1e6)
            for one in sent
            if one.status == "stored"
        )


class Receiver:
    """A consumer of every `consumers`-th partition that checks what it gets."""

    def __init__(self, job: Job, session: Session, line: Line) -> None:
        load = job.load
        self._job, self._line, self._clock = job, line, session.clock
        self._report = Report(0.0, 0.0, seen=bytearray(load.messages))
        alone = load.mode == "consume"
        self._timed = not alone  # how long it lay there before says nothing
        limit = load.duration_ms and load.duration_ms + load.warmup_ms
        options = ConsumerOptions(
            topics=(job.topic,),
            group=job.group,
            partitions=tuple(range(job.index, load.partitions, load.consumers)),
            exit_when_empty=alone,
            max_time_ms=limit if alone else 0,
            drain_timeout_ms=_DRAIN_MS,
        )
        self._consumer = Consumer(session, options, sink=self)

    def run(self, start: float) -> Report:
        """Consume until stopped, or in consume mode until nothing is left."""
        report = self._report
        warmup = self._job.load.warmup_ms / 1000 if not self._timed else 0.0
        report.began = report.ended = start + warmup
        Thread(target=self._listen, daemon=True).start()
        try:
            self._consumer.run()
        except MqError as error:
            report.cause = _portable(error)
        return report

    def _listen(self) -> None:
        self._line.stopped(None)
        self._consumer.stop()

    def write(self, deliveries: Sequence[Delivery], alive: Callable[[], float]) -> int:
        """Take all messages; one, when the rest may not be mine any more."""
        if not alive():
            deliveries = deliveries[:1]
        moment = self._clock.monotonic()
        now, report, seen = int(moment * 1e6), self._report, self._report.seen
        latencies: list[int] = []
        fresh = 0
        for delivery in deliveries:
            payload = delivery.message.payload
            number = int(payload[:_NUMBER])
            if number == _WARM:
                continue
            if number >= len(seen):
                seen.extend(bytes(number + 1))
            fresh += not seen[number]
            seen[number] = 1
            latencies.append(now - int(payload[_NUMBER:_STAMP]))
        if moment < report.began:
            report.warm += fresh
        else:
            report.done += fresh
            report.repeated += len(latencies) - fresh
            report.ended = moment
        if self._timed:
            report.latencies.record(latencies)
        self._line.count(report.done + report.warm)
        return len(deliveries)
