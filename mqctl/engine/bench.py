"""Measuring: a temporary topic, processes that use it, one record of what came out.

The processes are `mqctl.engine.bench_load`'s. Whatever happens, they are ended before
the topic is removed, so that none of them brings a key back.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from mqctl.core.errors import MqError, NotFound, Unreachable
from mqctl.core.histogram import Histogram
from mqctl.engine import admin_delete, topics
from mqctl.engine.bench_crew import Crew, Progress, Watch, crew
from mqctl.engine.bench_load import Mode, Report, Workload
from mqctl.engine.session import Session
from mqctl.engine.standing import standing
from mqctl.store.wire import Command, ServerError


@dataclass(frozen=True, slots=True)
class BenchResult:
    """What was measured. MB are 10^6 payload bytes; None: unknown, not applicable.

    `messages` are those measured: stored in produce mode, else received.
    """

    mode: Mode
    messages: int
    size_bytes: int
    partitions: int
    batch: int | None
    producers: int
    consumers: int
    rate_per_s: float | None
    duration_ms: int
    messages_per_s: float
    mb_per_s: float
    latency_p50_us: int | None
    latency_p90_us: int | None
    latency_p99_us: int | None
    latency_p999_us: int | None
    latency_max_us: int | None
    duplicates: int
    lost: int
    errors: int
    memory_bytes_per_message: float | None
    limit_messages_per_s: float | None
    ratio: float | None
    server_version: str | None
    started_at_ms: int


def run(
    session: Session, topic: str, load: Workload, watch: Watch, *, keep: bool = False
) -> tuple[BenchResult, MqError | None]:
    """Measure a workload on a topic of its own; return the record and what went wrong.

    The topic is removed at the end, however that comes, unless `keep`. Raises the
    error itself when nothing was measured, and whatever `watch.check` raises.
    """
    try:
        topics.ensure(session, topic, load.partitions)
        with crew(session, topic, load, watch) as workers:
            return _measured(workers)
    finally:
        if keep:
            watch.note(f"the topic is kept: {topic}")
        else:
            _remove(session, topic, load.partitions, watch.note)


def _remove(
    session: Session, topic: str, partitions: int, note: Callable[[str], None]
) -> None:
    """Delete the topic and its group; say so when that cannot be done.

    Streams are removed once more at the end: a process that had to be killed may have
    left the server something to read.
    """
    keys = session.keys
    try:
        if session.wire.closed:
            session.reopen()
        with suppress(NotFound):
            admin_delete.delete(session, admin_delete.plan(session, topic))
        rest = [keys.members(topic)]
        rest += [keys.partition(topic, index) for index in range(partitions)]
        session.wire.calls([("UNLINK", name) for name in rest])
    except MqError as error:
        note(f"topic {topic} is left behind: {error.message}")


# -- modes ----------------------------------------------------------------------


def _measured(crew: Crew) -> tuple[BenchResult, MqError | None]:
    started_at = crew.session.clock.now_ms()
    mode = crew.load.mode
    if mode == "produce":
        sent, received = _produce(crew)
    elif mode == "consume":
        sent, received = _consume(crew)
    else:
        sent, received = _end_to_end(crew)
    counted = sent if mode == "produce" else received
    reports = [*sent, *received]
    cause = next((report.cause for report in reports if report.cause), None)
    if cause is not None and not sum(report.done for report in counted):
        raise cause
    try:
        return _result(crew, sent, received, started_at), cause
    except Unreachable as error:
        raise cause or error from error


def _produce(crew: Crew) -> tuple[list[Report], list[Report]]:
    senders = crew.start("send", crew.load, crew.load.producers)
    crew.go(senders)
    return crew.reports(senders, "sending"), []


def _consume(crew: Crew) -> tuple[list[Report], list[Report]]:
    """Store first, at any speed; then receive all of it, or until time is over."""
    load = crew.load
    filling = replace(load, mode="produce", duration_ms=0, warmup_ms=0)
    senders = crew.start("send", filling, load.producers)
    crew.go(senders)
    sent = crew.reports(senders, "storing")
    for report in sent:
        if report.cause is not None:
            raise report.cause
    receivers = crew.start("receive", load, load.consumers)
    crew.go(receivers)
    return sent, crew.reports(receivers, "receiving")


def _end_to_end(crew: Crew) -> tuple[list[Report], list[Report]]:
    """Send once every partition has a reader; end when all that was sent has come."""
    load = crew.load
    receivers = crew.start("receive", load, load.consumers)
    senders = crew.start("send", load, load.producers)
    crew.go(receivers)
    for _ in crew.news():
        if _all_held(crew):
            break
    crew.go(senders)
    sent = crew.reports(senders, "sending")
    wanted = sum(report.done for report in sent)
    for heard in crew.news():
        done = sum(receiver.done for receiver in receivers)
        crew.watch.progress(Progress("receiving", done, wanted))
        if done >= wanted or not (heard or _is_left(crew)):
            break
    crew.stop(receivers)
    return sent, crew.reports(receivers, "receiving")


def _all_held(crew: Crew) -> bool:
    keys, topic = crew.session.keys, crew.topic
    leases = [("GET", keys.lease(topic, topic, i)) for i in _indices(crew)]
    return None not in crew.session.wire.calls(leases)


def _is_left(crew: Crew) -> bool:
    """Tell whether the group has anything undelivered or in hand."""
    slots = [(crew.topic, index) for index in _indices(crew)]
    left = standing(crew.session, crew.topic, slots, 0)
    return left.startable or left.pending > 0


def _indices(crew: Crew) -> range:
    return range(crew.load.partitions)


# -- the record ---------------------------------------------------------------


def _result(
    crew: Crew, sent: list[Report], received: list[Report], started_at: int
) -> BenchResult:
    load, mode = crew.load, crew.load.mode
    began = min(r.began for r in (received if mode == "consume" else sent))
    ended = max(r.ended for r in (received or sent))
    stored = sum(report.done for report in sent)
    length, memory = _occupied(crew)
    if mode == "produce":
        messages, arrived = stored, length - sum(report.warm for report in sent)
        repeated = max(0, arrived - stored)
    else:
        messages = sum(report.done for report in received)
        arrived = _unique(received)
        repeated = sum(r.done + r.warm + r.repeated for r in received) - arrived
    lost = stored - arrived
    if mode == "consume" and load.duration_ms and lost > 0 and _is_left(crew):
        lost = 0  # the time was over before all had been read
    seconds = max(ended - began, 1e-6)
    latencies = Histogram()
    for report in received or sent:
        latencies.add(report.latencies)
    return BenchResult(
        mode=mode,
        messages=messages,
        size_bytes=load.size,
        partitions=load.partitions,
        batch=None if mode == "consume" else load.batch,
        producers=0 if mode == "consume" else load.producers,
        consumers=0 if mode == "produce" else load.consumers,
        rate_per_s=load.rate or None,
        duration_ms=round(seconds * 1000),
        messages_per_s=round(messages / seconds, 1),
        mb_per_s=round(messages * load.size / seconds / 1e6, 3),
        latency_p50_us=latencies.permille(500),
        latency_p90_us=latencies.permille(900),
        latency_p99_us=latencies.permille(990),
        latency_p999_us=latencies.permille(999),
        latency_max_us=latencies.permille(1000),
        duplicates=repeated,
        lost=max(0, lost),
        errors=sum(report.failed for report in sent),
        memory_bytes_per_message=memory,
        limit_messages_per_s=None,
        ratio=None,
        server_version=_version(crew.session),
        started_at_ms=started_at,
    )


def _unique(received: list[Report]) -> int:
    """Return how many messages somebody has received."""
    union = reduce(or_, (int.from_bytes(r.seen, "little") for r in received), 0)
    return union.bit_count()


def _occupied(crew: Crew) -> tuple[int, float | None]:
    """Return the entries of all partitions and the memory of each, if permitted."""
    keys = [crew.session.keys.partition(crew.topic, i) for i in _indices(crew)]
    commands: list[Command] = [("XLEN", key) for key in keys]
    length = sum(crew.session.wire.calls(commands))
    used = crew.session.wire.batch([("MEMORY", "USAGE", key) for key in keys])
    if not length or any(isinstance(reply, ServerError) for reply in used):
        return length, None
    return length, round(sum(reply or 0 for reply in used) / length, 1)


def _version(session: Session) -> str | None:
    """Return the server's version, None when INFO is not permitted."""
    (reply,) = session.wire.batch([("INFO", "server")])
    if not isinstance(reply, bytes):
        return None
    lines = reply.decode("utf-8", "replace").splitlines()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    return facts.get("valkey_version") or facts.get("redis_version")
