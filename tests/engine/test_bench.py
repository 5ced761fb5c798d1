"""Measuring: what is counted is what happened, and nothing is left behind."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from multiprocessing import Pipe
from pathlib import Path

import pytest

from mqctl.core.errors import BadUsage, Interrupted, MqError, OutOfMemory
from mqctl.engine import bench
from mqctl.engine.bench import BenchResult
from mqctl.engine.bench_crew import Progress, Watch
from mqctl.engine.bench_load import Job, Line, Mode, Report, Sender, Workload
from mqctl.engine.session import Session
from mqctl.store.url import parse_url
from tests.support.server import Server, start_server
from tests.support.worker import stream

TOPIC = "bench-1"
SMALL = Workload(messages=600, size=100, partitions=3, batch=50)


@pytest.fixture
def session(redis: Server) -> Iterator[Session]:
    opened = Session.open(parse_url(redis.url, tls=None))
    yield opened
    opened.close()


def run(session: Session, load: Workload, watch: Watch | None = None) -> BenchResult:
    result, cause = bench.run(session, TOPIC, load, watch or Watch())
    assert cause is None
    return result


def entries(server: Server, partitions: int) -> list[tuple[int, bytes]]:
    """Milliseconds of the id and payload of every entry, by time."""
    found = []
    for index in range(partitions):
        for entry_id, flat in server.call("XRANGE", stream(TOPIC, index), "-", "+"):
            fields = dict(zip(flat[::2], flat[1::2], strict=True))
            found.append((int(entry_id.split(b"-")[0]), fields[b"payload"]))
    return sorted(found)


# -- counts -------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["produce", "consume", "e2e"])
@pytest.mark.parametrize("processes", [1, 2])
def test_every_message_is_counted_once(
    redis: Server, session: Session, mode: Mode, processes: int
) -> None:
    load = replace(SMALL, mode=mode, producers=processes, consumers=processes)

    result = run(session, load)

    assert (result.messages, result.lost, result.duplicates) == (600, 0, 0)
    assert result.errors == 0
    assert result.producers == (0 if mode == "consume" else processes)
    assert result.consumers == (0 if mode == "produce" else processes)
    assert result.messages_per_s * result.duration_ms / 1000 == pytest.approx(
        600, rel=0.1
    )
    assert result.memory_bytes_per_message is not None
    assert 100 < result.memory_bytes_per_message < 1000
    assert result.server_version == redis.info()["valkey_version"]
    assert redis.call("KEYS", "*") == []


@pytest.mark.parametrize("mode", ["produce", "consume"])
def test_latency_is_unknown_where_nothing_was_on_its_way(
    session: Session, mode: Mode
) -> None:
    assert run(session, replace(SMALL, mode=mode)).latency_max_us is None


def test_end_to_end_has_latencies_in_order(session: Session) -> None:
    result = run(session, SMALL)

    known = [
        result.latency_p50_us or 0,
        result.latency_p90_us or 0,
        result.latency_p99_us or 0,
        result.latency_p999_us or 0,
        result.latency_max_us or 0,
    ]
    assert known == sorted(known)
    assert known[0] > 0
    assert known[-1] < 60e6


@pytest.mark.parametrize("mode", ["produce", "e2e"])
def test_what_is_sent_to_warm_up_is_not_counted(session: Session, mode: Mode) -> None:
    load = replace(SMALL, mode=mode, warmup_ms=200, rate=1000.0, messages=300)

    result = run(session, load)

    assert (result.messages, result.lost, result.duplicates) == (300, 0, 0)
    assert result.duration_ms == pytest.approx(300, abs=100)


def test_a_duration_bounds_the_run(session: Session) -> None:
    load = replace(SMALL, messages=0, duration_ms=500, rate=400.0, producers=2)

    result = run(session, load)

    assert (result.messages, result.lost) == (200, 0)


def test_consuming_that_runs_out_of_time_has_lost_nothing(session: Session) -> None:
    load = replace(SMALL, mode="consume", messages=20_000, duration_ms=1)

    result = run(session, load)

    assert result.messages < 20_000
    assert result.lost == 0


def test_lost_and_repeated_messages_are_counted(
    redis: Server, session: Session
) -> None:
    """Behind its back, seven stored messages vanish and one is doubled."""

    def meddle(progress: Progress) -> None:
        if progress == Progress("storing", 600, 600):
            for index, gone in enumerate((2, 5)):
                length = redis.call("XLEN", stream(TOPIC, index))
                redis.call("XTRIM", stream(TOPIC, index), "MAXLEN", length - gone)
            _, flat = redis.call("XRANGE", stream(TOPIC, 2), "-", "+")[0]
            redis.call("XADD", stream(TOPIC, 2), "*", *flat)

    load = replace(SMALL, mode="consume")

    result = run(session, load, Watch(progress=meddle))

    assert (result.messages, result.lost, result.duplicates) == (593, 7, 1)


# -- open loop ----------------------------------------------------------------


def send_evenly(session: Session, load: Workload, paused_ms: int = 0) -> Report:
    job = Job(session.endpoint, session.keys, TOPIC, TOPIC, load, 0)
    here, there = Pipe()
    with here, there:
        sender = Sender(job, session, Line(there, session.clock))
        if paused_ms:
            session.wire.call("CLIENT", "PAUSE", paused_ms, "WRITE")
        report = sender.run(session.clock.monotonic())
    assert report.cause is None
    return report


def test_an_open_loop_sends_evenly(redis: Server, session: Session) -> None:
    load = replace(SMALL, mode="produce", messages=400, rate=200.0)

    report = send_evenly(session, load)

    stored = entries(redis, load.partitions)
    assert report.done == len(stored) == 400
    due = sorted(int(payload[12:28]) for _, payload in stored)
    assert {b - a for a, b in pairwise(due)} <= {4999, 5000, 5001}
    times = [ms for ms, _ in stored]
    assert max(b - a for a, b in pairwise(times)) < 300
    for count in Counter((ms - times[0]) // 500 for ms in times[:-1]).values():
        assert count <= 160  # 100 are due


def test_latency_counts_from_when_a_message_was_due(session: Session) -> None:
    """While the server is stopped for 400 ms, messages go on being due."""
    load = replace(SMALL, mode="produce", messages=200, rate=200.0)

    latencies = send_evenly(session, load, paused_ms=400).latencies

    assert latencies.counts.total() == 200
    assert (latencies.permille(1000) or 0) > 380_000
    assert (latencies.permille(900) or 0) > 250_000
    assert (latencies.permille(300) or 0) < 200_000


# -- ends ---------------------------------------------------------------------


def test_a_run_that_is_ended_leaves_no_key(redis: Server, session: Session) -> None:
    looks = iter(range(1000))

    def check() -> None:
        if next(looks) > 5 and redis.call("XLEN", stream(TOPIC, 0)):
            raise Interrupted("enough")

    load = replace(SMALL, messages=0, duration_ms=60_000)

    with pytest.raises(Interrupted):
        bench.run(session, TOPIC, load, Watch(check=check))

    assert redis.call("KEYS", "*") == []


def test_what_the_server_refuses_is_an_error_and_is_counted(tmp_path: Path) -> None:
    server = start_server(tmp_path, "--maxmemory-policy", "noeviction")
    try:
        used = int(server.info()["used_memory"])
        server.call("CONFIG", "SET", "maxmemory", used + (4 << 20))
        session = Session.open(parse_url(server.url, tls=None))
        load = Workload("produce", messages=20_000, size=1000)

        result, cause = bench.run(session, TOPIC, load, Watch())

        session.close()
        assert isinstance(cause, OutOfMemory)
        assert 0 < result.messages < 20_000
        assert result.errors > 0
        assert result.lost == 0
        assert server.call("KEYS", "*") == []
    finally:
        server.stop()


def test_a_server_that_goes_away_is_said_with_the_topic_it_keeps(
    tmp_path: Path,
) -> None:
    server = start_server(tmp_path)
    notes: list[str] = []

    def check() -> None:
        if server.answers and server.call("XLEN", stream(TOPIC, 0)):
            server.kill()

    session = Session.open(parse_url(server.url, tls=None))
    load = replace(SMALL, messages=0, duration_ms=60_000)

    with pytest.raises(MqError, match="lost the server"):
        bench.run(session, TOPIC, load, Watch(check=check, note=notes.append))

    assert len(notes) == 1
    assert notes[0].startswith(f"topic {TOPIC} is left behind: ")


def test_a_topic_is_kept_when_that_is_asked(redis: Server, session: Session) -> None:
    notes: list[str] = []
    load = replace(SMALL, mode="produce")

    bench.run(session, TOPIC, load, Watch(note=notes.append), keep=True)

    assert notes == [f"the topic is kept: {TOPIC}"]
    assert len(entries(redis, load.partitions)) == 600


def test_what_the_server_does_not_permit_is_unknown(
    redis: Server, session: Session
) -> None:
    redis.call("ACL", "SETUSER", "u", "on", ">pw", "~*", "+@all", "-info", "-memory")
    endpoint = replace(session.endpoint, username="u", password="pw")
    limited = Session.open(endpoint)
    try:
        result = run(limited, replace(SMALL, mode="produce"))
    finally:
        limited.close()
        redis.call("ACL", "DELUSER", "u")

    assert result.server_version is None
    assert result.memory_bytes_per_message is None
    assert result.messages == 600


@pytest.mark.parametrize(
    "wrong",
    [
        {"messages": 0},
        {"messages": -1},
        {"size": 27},
        {"partitions": 0},
        {"producers": 0},
        {"consumers": 5},
        {"mode": "consume", "rate": 100.0},
        {"mode": "consume", "messages": 0, "duration_ms": 1000},
    ],
)
def test_a_workload_that_cannot_be_meant_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadUsage):
        Workload(**wrong)  # type: ignore[arg-type]
